"""What a release gives away, in one sentence: true of the policy."""

import numpy as np
import pytest
import scipy.sparse

import pglp_fast as pf
from pglp_fast.cli.plans import headline_of
from pglp_fast.evaluation.headline import explained, headline, headlines
from pglp_fast.evaluation.mean_error import expected_error

GRID = pf.Grid(12, 12, cell_km=(0.5, 0.25))


def test_a_policy_of_blocks_gives_the_block_away():
    text = headline(pf.blocks(GRID, 3), 1.0)
    assert text.startswith("Whoever sees a release knows in which group of places somebody is")
    assert "typically 3 x 3 cells, within 1.5 x 0.75 km" in text and "e^1 = 2.72" in text
    assert "no edge" not in text
    loose = headline(pf.blocks(GRID, 3), 1.0, calibration="graph")
    assert "knows in which group" not in loose and "nothing is promised" in loose


def test_a_connected_policy_gives_no_group_away():
    for graph in (pf.complete(GRID), pf.neighbours8(GRID)):
        assert "group" not in headline(graph, 2.0)


def test_places_without_an_edge_are_named():
    some = pf.PolicyGraph.from_edges(GRID, [[0, 1], [1, 14]])
    text = headline(some, 0.5)
    assert "141 of 144 places have no edge: whoever is there is given away exactly" in text
    assert "typically 3 places within 1.5 x 0.5 km" in text
    one = pf.PolicyGraph.from_edges(pf.Grid(1, 3), [[0, 1]])
    assert "1 of 3 places has no edge" in headline(one, 0.5)
    none = pf.PolicyGraph.from_edges(GRID, [])
    assert headline(none, 0.5) == (
        "Whoever sees a release knows the exact place: the policy hides nothing."
    )


def test_points_have_extents_in_km():
    p = pf.Points([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    graph = pf.PolicyGraph.from_edges(p, [[0, 1], [0, 2]])
    assert "typically 3 places within 1 x 2 km" in headline(graph, 1.0)


def test_huge_epsilon_is_written_as_a_power():
    assert "e^1000 in" in headline(pf.blocks(GRID, 3), 1000.0)


def test_refusals():
    with pytest.raises(pf.InvalidParameter, match="epsilon"):
        headline(pf.blocks(GRID, 3), 0.0)
    with pytest.raises(pf.InvalidParameter, match="calibration"):
        headline(pf.blocks(GRID, 3), 1.0, calibration="none")


def test_expected_error_is_exact_where_it_can_be_and_drawn_elsewhere():
    m = pf.PPIM(pf.blocks(GRID, 3), epsilon=1.0)
    prior = [3.0] + [1.0] * 143
    assert expected_error(m, prior=prior) == pf.utility(m, prior=prior).e_eu
    wide = pf.Grid(50, 50, cell_km=0.5)
    large = pf.PPIM(pf.complete(wide), epsilon=2.0, sampler="geometric")
    with pytest.raises(pf.TooLarge):
        pf.utility(large)
    drawn = expected_error(large)
    cells = range(0, 2500, 7)
    more = [large.release(list(cells), rng=k) for k in range(40)]
    oracle = sum(wide.distance(list(cells), z).mean() for z in more) / 40
    assert drawn == pytest.approx(oracle, rel=0.03)  # about four standard errors


def test_a_headline_promises_no_more_than_holds():
    """The largest weight counts; with the graph calibration, who has no edge is not given away."""
    g = pf.Grid(2, 5)
    G = pf.PolicyGraph.from_edges(g, [(0, 1), (1, 2)], weights=[3, 1])
    assert "e^3 = 20.1 (or less, by the weight of their edge)" in headline(G, 1.0)
    text = headline(pf.PolicyGraph.from_edges(g, [(0, 1)]), 1.0, calibration="graph")
    assert "given away exactly" not in text and "of those nothing is promised" in text
    assert headlines({"b": (pf.blocks(g, 2), 5.0)}) == headline(pf.blocks(g, 2), 5.0)


def lazy_walk(grid):
    """Any of the eight cells around, or to stay."""
    near = pf.neighbours8(grid)
    M = scipy.sparse.csr_array((np.ones(len(near.indices)), near.indices, near.indptr))
    M = M + scipy.sparse.eye_array(grid.size)
    return pf.MobilityModel(grid, scipy.sparse.csr_array(M / M.sum(axis=1)[:, None]))


def test_along_traces_nobody_is_told_that_a_release_is_in_the_block():
    """The sentence that holds for rows is false along traces: the first half shows it, repairs and
    surrogates do lead out of the block. So the sentence says when."""
    g = pf.Grid(9, 9, cell_km=0.5)
    G = pf.blocks(g, 3)
    T = pf.TraceReleaser(G, lazy_walk(g), epsilon=1.0, rng=3)
    walk = np.tile([0, 1, 2, 3, 4, 5, 6, 7, 8], (200, 1))
    R = T.run(walk, priors="point")
    left = G.components[R.released] != G.components[walk]
    assert left[R.added > 0].any()
    far = np.tile([0, 80, 0], (50, 1))  # the model calls such a move impossible
    R = T.run(far, priors="point")
    assert R.surrogate.any() and (G.components[R.released] != G.components[far])[R.surrogate].any()
    text = headline(G, 1.0, repair="min-area")
    assert "unless the step was repaired or the model of movement was wrong" in text
    assert "that are both still possible" in text and text.count(". ") == 0
    meant = explained("min-area")
    assert "A step is repaired where" in meant and "nothing is promised of the true one" in meant
    assert "repaired or" not in headline(G, 1.0) and "possible" not in headline(G, 1.0)
    assert "repaired or" not in headline(G, 1.0, repair="none")
    assert "it is given away: repair is off" in explained("none")
    with pytest.raises(pf.InvalidParameter, match="repair"):
        headline(G, 1.0, repair="often")


def test_several_policies_have_a_sentence_each():
    both = {"day": (pf.blocks(GRID, 3), 1.0), "night": (pf.blocks(GRID, 4), 0.5)}
    text = headlines(both, repair="nearest")
    assert text.count("Under policy") == 2 and "4 x 4 cells" in text and "e^0.5" in text


def test_delta_leaves_places_out_and_the_headline_says_so():
    """Two cells of one block, both possible, are told apart by delta alone: no step is repaired.
    So the promise is of the places that delta keeps, and the others are an exception."""
    g = pf.Grid.from_bounds(lat=(39.8, 39.88), lon=(116.2, 116.3), cell_km=1.0)
    n, G = g.size, pf.blocks(g, 3)
    M = pf.MobilityModel(g, np.eye(n) * 0.6 + 0.4 / n)
    T = pf.TraceReleaser(G, M, epsilon=1.0, delta=0.02, rng=1)
    p = np.full(n, 1e-4)
    p[[0, g.cols, 3, g.cols + 3]] = 0.25
    assert G.has_edges(np.array([[0, 2]]))[0]
    runs = [T.run(np.full((300, 1), c), priors=np.tile(p / p.sum(), (300, 1))) for c in (0, 2)]
    near, cut = (set(R.released.ravel().tolist()) for R in runs)
    assert not near & cut and not any(R.added.any() for R in runs)
    text, exact = (headline(G, 1.0, repair="min-area", delta=d) for d in (0.02, 0.0))
    assert "still possible and in the smallest set of mass 1 - 0.02 cannot be told" in text
    left = "among the least likely ones, of mass up to 0.02, that are left out"
    assert f"repaired, the model of movement was wrong or the place was {left};" in text
    assert f"wrong or the place was {left}" in headline(G, 1.0, repair="none", delta=0.02)
    assert "left out" not in exact and "mass" not in exact
    assert "of mass up to 0.02" in explained("min-area", 0.02)
    assert "mass" not in explained("min-area")
    with pytest.raises(pf.InvalidParameter, match="delta"):
        headline(G, 1.0, delta=0.02)
    plan = pf.Plan(policy="blocks:3", epsilon=1.0, mobility=M, step="5min", delta=0.02)
    told, meant = headline_of(plan)
    assert told == text and meant == explained("min-area", 0.02)
    assert "delta 0.02: the least likely places" in plan.describe()


def test_outputs_on_the_whole_map_do_not_tell_the_group():
    """Half of the releases lie in another group: nobody knows the group, and nothing is promised of
    it. Who has no edge is still given away exactly."""
    g = pf.Grid(12, 12, cell_km=0.5)
    G = pf.blocks(g, 3)
    m = pf.PPIM(G, epsilon=1.0, outputs="map")
    released = m.release(np.full(500, 13), rng=1)
    assert (G.components[released] != G.components[13]).mean() > 0.3
    text = headline(G, 1.0, outputs="map")
    assert "may learn in which group" in text and "of which nothing is promised" in text
    bare = pf.PolicyGraph.from_edges(g, [(0, 1)])
    assert (pf.PPIM(bare, epsilon=1.0, outputs="map").release(np.full(50, 77), rng=1) == 77).all()
    assert "given away exactly" in headline(bare, 1.0, outputs="map")
