"""Detection and repair against the literal algorithms: a new hull for every candidate, exact
ties."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import naive
import pglp_fast as pf
from cases import edge_set, large, random_domain, random_locations, random_policy

CALIBRATIONS = ("graph", "component")
STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")


def sites(locations):
    return [tuple(p) for p in locations.lattice.tolist()]


def random_case(rng, side):
    locations = random_locations(rng, side)
    return locations, random_policy(rng, locations), random_domain(rng, locations)


def compare(locations, graph, domain):
    """Ten comparisons: isolated and the four repairs, under both calibrations."""
    lattice, edges, cells = sites(locations), edge_set(graph), set(domain)
    assert pf.disconnected(graph, domain).tolist() == naive.disconnected(len(lattice), edges, cells)
    for calibration in CALIBRATIONS:
        ref = naive.isolated(lattice, locations.scale, edges, cells, calibration)
        assert pf.isolated(graph, domain, calibration=calibration).tolist() == ref
        for strategy in STRATEGIES:
            added, kept, exposed = naive.repair(
                lattice, locations.scale, edges, cells, strategy, calibration
            )
            comp = pf.repair(graph, domain, strategy=strategy, calibration=calibration)
            where = (
                f"{locations!r} {lattice} edges {sorted(edges)} domain {sorted(cells)} "
                f"{calibration} {strategy}"
            )
            assert [tuple(e) for e in comp.added.tolist()] == added, where
            assert comp.exposed.tolist() == exposed, where
            assert edge_set(comp.graph) == kept, where


@large
@pytest.mark.parametrize(("seed", "cases", "side"), [(1, 1200, 4), (2, 500, 6), (3, 120, 8)])
def test_the_literal_algorithm_answers_the_same(seed, cases, side):
    """18,000 comparisons.

    Catches a wrong tangent, a search that stops early, a tie broken the wrong way, a stale hull.
    """
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        compare(*random_case(rng, side))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_the_literal_algorithm_answers_the_same_on_drawn_cases(seed):
    compare(*random_case(np.random.default_rng(seed), 3))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(STRATEGIES))
def test_nobody_is_left_exposed(seed, strategy):
    """After a repair nobody is isolated, or has a component of one, who had neighbours, but
    those said to be exposed."""
    locations, graph, domain = random_case(np.random.default_rng(seed), 6)
    r = pf.repair(graph, domain, strategy=strategy, calibration="graph")
    left = [s for s in pf.disconnected(graph, domain).tolist() if len(r.graph.neighbours(s)) == 0]
    K = naive.sensitivity_hull(sites(locations), edge_set(r.graph))
    at = sites(locations)
    bare = [
        s
        for s in left
        if not any(z != s and naive.contains(K, np.subtract(at[z], at[s]).tolist()) for z in domain)
    ]
    assert bare == r.exposed.tolist()

    r = pf.repair(graph, domain, strategy=strategy, calibration="component")
    singletons = [s for s in domain if len(graph.neighbours(s)) and len(r.graph.component(s)) == 1]
    assert singletons == r.exposed.tolist()


def test_hand_solved_line():
    """Five cells in a row, 0-1 and 3-4 joined. C = {0, 1, 4}: 4 stands alone; K = [-1, 1].

    Every edge adds a longer segment.
    """
    g = pf.Grid(1, 5)
    G, C = pf.PolicyGraph.from_edges(g, [[0, 1], [3, 4]]), pf.Domain(g, [0, 1, 4])
    assert pf.disconnected(G, C).tolist() == [4]
    assert pf.isolated(G, C, calibration="graph").tolist() == [4]
    for calibration in CALIBRATIONS:
        r = pf.repair(G, C, calibration=calibration)
        assert r.added.tolist() == [[4, 1]]  # all areas are zero: the shorter edge
        assert pf.repair(G, C, strategy="arbitrary", calibration=calibration).added.tolist() == [
            [4, 0]
        ]


def test_area_misleads_and_error_does_not():
    """A far singleton costs no area (a segment has none) but a long noise; the near pair costs
    area but little noise."""
    g = pf.Grid(21, 41)
    at = lambda col, row: row * 41 + col  # noqa: E731
    node, mate, far = at(0, 0), at(0, 20), at(40, 0)
    near = [at(1, 2), at(2, 2), at(1, 3)]
    G = pf.PolicyGraph.from_edges(g, [[node, mate], [far, mate], *[[near[0], n] for n in near[1:]]])
    C = pf.Domain(g, [node, far, *near])
    by_area = pf.repair(G, C, strategy="min-area", calibration="component").added.tolist()
    by_error = pf.repair(G, C, strategy="min-error", calibration="component").added.tolist()
    assert by_area[0] == [node, far]
    assert by_error[0][0] == node
    assert by_error[0][1] in near


@pytest.mark.parametrize("sampler", ["table", "geometric"])
def test_the_trap_disconnected_but_not_isolated_is_still_protected(sampler):
    """Four corners of a square connected, the centre's only neighbour ruled out.

    Finding Isolated Node calls the centre safe, for its noise would be the square's. That holds for
    the graph calibration alone: a mechanism calibrated to components, fed the graph that was left
    unrepaired, releases the centre as it is."""
    g = pf.Grid(4, 3)
    corners, centre, mate = [0, 2, 6, 8], 4, 10
    pairs = [[a, b] for k, a in enumerate(corners) for b in corners[:k]]
    G, C = pf.PolicyGraph.from_edges(g, [*pairs, [centre, mate]]), pf.Domain(g, [*corners, centre])
    assert pf.disconnected(G, C).tolist() == [centre]
    assert pf.isolated(G, C, calibration="graph").tolist() == []
    assert pf.isolated(G, C, calibration="component").tolist() == [centre]
    repaired = {c: pf.repair(G, C, calibration=c).graph for c in CALIBRATIONS}
    for calibration in CALIBRATIONS:
        m = pf.PPIM(
            repaired[calibration], epsilon=1.0, domain=C, calibration=calibration, sampler=sampler
        )
        assert pf.certify(m).ok
        released = m.release(np.full(4000, centre), rng=5)
        assert len(np.unique(released)) == 5
        outputs, P = m.matrix(centre)
        rows = {int(s): P[k] for k, s in enumerate(outputs)}
        # within e^eps of some other location, for every output: that is what "not exposed" means
        assert min(np.abs(np.log(rows[centre] / rows[c])).max() for c in corners) <= 1.0 + 1e-9
    trap = pf.PPIM(
        repaired["graph"], epsilon=1.0, domain=C, calibration="component", sampler=sampler
    )
    assert set(trap.release(np.full(100, centre), rng=5).tolist()) == {
        centre
    }  # what must never be combined


def test_many_domains_are_the_single_ones_side_by_side():
    rng = np.random.default_rng(0)
    g = pf.Grid(9, 11, cell_km=(0.5, 0.25))
    G = pf.blocks(g, 3).with_edges([[0, 98], [50, 7]])
    domains = [
        pf.Domain(g, np.flatnonzero(rng.random(g.size) < p))
        for p in (0, 0.02, 0.1, 0.2, 0.4, 0.7, 1.0)
        for _ in range(6)
    ]
    words = np.stack([d.words for d in domains])
    for calibration in CALIBRATIONS:
        found = pf.isolated_many(G, words, calibration=calibration)
        r = pf.repair_many(G, words, calibration=calibration)
        for k, domain in enumerate(domains):
            one = pf.repair(G, domain, calibration=calibration)
            assert (
                found.cells[found.starts[k] : found.starts[k + 1]].tolist()
                == pf.isolated(G, domain, calibration=calibration).tolist()
            )
            assert r.added[r.added_starts[k] : r.added_starts[k + 1]].tolist() == one.added.tolist()
            assert (
                r.exposed[r.exposed_starts[k] : r.exposed_starts[k + 1]].tolist()
                == one.exposed.tolist()
            )
            assert (r.domain_size[k], r.disconnected[k], r.isolated[k]) == (
                len(domain),
                one.disconnected,
                one.isolated,
            )
    assert len(pf.isolated_many(G, words[:0]).cells) == 0


@large
def test_large_maps_agree_with_the_small_words():
    """Wide hulls (spans of more than a word), map edges, rows that share words: against brute
    force on a 150 x 150 grid."""
    rng = np.random.default_rng(4)
    g = pf.Grid(150, 150)
    for pairs, share in (
        ([[0, 140]], 0.003),
        ([[0, 75 * 150 + 40]], 0.004),
        ([[0, 33], [0, 33 * 150 + 2]], 0.01),
    ):
        anchors = np.unique(np.array(pairs))
        cells = np.union1d(np.flatnonzero(rng.random(g.size) < share), anchors)
        mates = rng.permutation(np.setdiff1d(np.arange(g.size), cells))[: len(cells)]
        G = pf.PolicyGraph.from_edges(g, np.concatenate([pairs, np.stack([cells, mates], axis=1)]))
        C = pf.Domain(g, cells)
        assert pf.isolated(G, C, calibration="graph").tolist() == naive.isolated(
            sites(g), g.scale, edge_set(G), set(C), "graph"
        )


@large
def test_min_error_is_never_worse_than_min_area_by_its_own_measure():
    """At the first step both decide on the same graph: the chosen edge has the smallest sum of
    expected noise."""
    rng = np.random.default_rng(7)
    for _ in range(150):
        locations, graph, domain = random_case(rng, 6)
        lattice, kept = sites(locations), naive.constrain(edge_set(graph), set(domain))
        for calibration in CALIBRATIONS:
            chosen = [
                pf.repair(graph, domain, strategy=s, calibration=calibration).added
                for s in ("min-error", "min-area")
            ]
            if len(chosen[0]) == 0:
                continue
            costs = naive.repair_costs(
                lattice,
                locations.scale,
                kept,
                set(domain),
                int(chosen[0][0, 0]),
                "min-error",
                calibration,
            )
            (ours, size), (theirs, _) = (costs[int(c[0, 1])] for c in chosen)
            assert ours <= theirs + 1e-12 * size


def test_errors_say_what_to_do():
    g = pf.Grid(3, 3)
    G, C = pf.blocks(g, 3), pf.Domain(g, [0, 1])
    for call in (pf.isolated, pf.repair):
        with pytest.raises(
            pf.InvalidParameter,
            match=r"calibration must be one of 'component', 'graph', got 'node'",
        ):
            call(G, C, calibration="node")
    with pytest.raises(
        pf.InvalidParameter,
        match="strategy must be one of 'min-area', 'nearest', 'arbitrary', 'min-error'",
    ):
        pf.repair(G, C, strategy="best")
    with pytest.raises(
        pf.InvalidDomain, match=r"domain must be a Domain, got list: make one with pf\.Domain"
    ):
        pf.disconnected(G, [0, 1])
    with pytest.raises(
        pf.InvalidDomain,
        match="the domain and the policy are over different maps: 4 and 9 locations",
    ):
        pf.repair(G, pf.Domain(pf.Grid(2, 2), [0]))
    with pytest.raises(pf.InvalidDomain, match=r"words must be uint64 of shape \(domains, 1\)"):
        pf.repair_many(G, np.zeros((2, 3), np.uint64))
    with pytest.raises(pf.InvalidDomain, match="domain 1 has bits beyond the last of 9 locations"):
        pf.isolated_many(G, np.array([[1], [1 << 9]], np.uint64))


@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_no_repair_exposes_who_is_isolated_and_warns(calibration):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        g = pf.Grid(6, 6)
        G, C = pf.blocks(g, 3), pf.Domain(g, rng.permutation(36)[: rng.integers(1, 12)])
        with pytest.warns(pf.UnsafeWarning, match="strategy='none' repairs nothing"):
            r = pf.repair(G, C, strategy="none", calibration=calibration)
        assert r.graph == G.constrain(C)
        assert len(r.added) == 0
        assert r.exposed.tolist() == pf.isolated(G, C, calibration=calibration).tolist()
        assert r.isolated == len(r.exposed)


def test_excluded_is_what_the_domain_leaves_out():
    g = pf.Grid(4, 5)
    C = pf.Domain(g, [0, 3, 19])
    assert pf.excluded(pf.blocks(g, 2), C).tolist() == [s for s in range(20) if s not in (0, 3, 19)]
    with pytest.raises(pf.InvalidDomain, match="different maps"):
        pf.excluded(pf.blocks(pf.Grid(5, 4), 2), C)
