"""Pr(z|s): the closed form against the quadrature oracle, its sums and its ratios (spec section
5)."""

import math
from fractions import Fraction
from itertools import combinations

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import (
    DOMAINS,
    MECHANISMS,
    SMALL,
    assert_private,
    domain_of,
    expected,
    first_cells,
    large,
    log_ratio,
    path,
    points,
    random_tree,
    some_cells,
)

EPSILONS = (0.01, 0.1, 1, 5, 20)


# Against the oracle


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", SMALL)
def test_matrix_is_the_oracles(name, mechanism):
    for epsilon in EPSILONS:
        m = mechanism(SMALL[name], epsilon=epsilon)
        P, possible = expected(m)
        for s in first_cells(m):
            outputs, ours = m.matrix(s)
            where = np.ix_(outputs, outputs)
            np.testing.assert_allclose(ours, P[where], rtol=0, atol=1e-9)
            assert (m.matrix(s, log=True)[1] > -np.inf).tolist() == possible[where].tolist()
            assert_private(m, s)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_matrix_of_the_graph_calibration(name, mechanism):
    """The outputs are all of C; a line along a Voronoi boundary goes to the lower index."""
    graph, domain = domain_of(name)
    for epsilon in EPSILONS:
        m = mechanism(graph, epsilon=epsilon, domain=domain, calibration="graph")
        outputs, ours = m.matrix(domain.cells()[0])
        assert outputs.tolist() == domain.cells().tolist()
        P, possible = expected(m)
        np.testing.assert_allclose(ours, P[np.ix_(outputs, outputs)], rtol=0, atol=1e-9)
        logs = m.matrix(outputs[0], log=True)[1]
        assert (logs > -np.inf).tolist() == possible[np.ix_(outputs, outputs)].tolist()
        assert_private(m, outputs[0])


@large
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seed", range(4))
def test_matrix_of_forty_locations(seed, mechanism):
    g = pf.Grid(12, 12, cell_km=(0.31, 0.17 + seed))
    cells = some_cells(g, 40, seed)
    m = mechanism(
        random_tree(g, cells, seed) if seed % 2 else pf.complete(g, cells),
        epsilon=(0.1, 1, 5, 20)[seed],
    )
    outputs, ours = m.matrix(cells[0])
    np.testing.assert_allclose(ours, expected(m)[0][np.ix_(outputs, outputs)], rtol=0, atol=1e-9)
    assert_private(m, cells[0])


@st.composite
def policies(draw):
    """Irregular components of a Grid with oblong cells or of Points: a random tree, some chords,
    sometimes all pairs."""
    n = draw(st.integers(2, 12 if numba.config.DISABLE_JIT else 40))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    if draw(st.booleans()):
        places = pf.Grid(10, 11, cell_km=(1.0, draw(st.sampled_from([1.0, 0.1, 0.37, 4.0]))))
    else:
        span = draw(st.sampled_from([8, 100, 5000]))
        places = points(np.unique(rng.integers(0, span, (3 * n + 8, 2)), axis=0))
    cells = rng.permutation(places.size)[:n]
    graph = random_tree(places, cells, seed)
    kind = draw(st.sampled_from(["tree", "chords", "clique"]))
    if kind == "chords" and n > 2:
        graph = graph.with_edges([rng.choice(cells, 2, replace=False) for _ in range(n)])
    return pf.complete(places, cells) if kind == "clique" else graph, int(cells[0])


@given(policies(), st.sampled_from(MECHANISMS), st.sampled_from([1e-6, *EPSILONS, 100]))
def test_rows_sum_to_one_and_ratios_hold(policy, mechanism, epsilon):
    graph, s = policy
    assert_private(mechanism(graph, epsilon=epsilon), s)


@large
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("shape", ["row", "diagonal", "zigzag"])
def test_ratios_below_underflow(mechanism, shape):
    """At eps = 20 a path of 40 reaches probabilities of e^-780: the logarithms still keep every
    ratio."""
    g = pf.Grid(40, 40, cell_km=(1, 0.6))
    i = np.arange(40)
    cells = {"row": i, "diagonal": 41 * i, "zigzag": 40 * (i % 2) + i}[shape]
    m = mechanism(path(g, cells), epsilon=20)
    assert_private(m, cells[0])
    assert m.matrix(cells[0], log=True)[1].min() < -400
    if shape == "row" and mechanism is pf.PPIM:  # ln(Laplace tail beyond 38.5 steps)
        assert m.pmf(0, log=True)[1][-1] == pytest.approx(math.log(0.5) - 20 * 38.5, rel=1e-14)


@pytest.mark.parametrize("epsilon", [1, 20])
def test_small_probabilities_are_as_precise(epsilon):
    """Not only the absolute error: what is 1e-200 in the oracle is so here, to 9 digits."""
    m = pf.PPIM(SMALL["tree"], epsilon=epsilon)
    P, _ = expected(m)
    outputs, ours = m.matrix(np.flatnonzero(m.graph.degrees())[0])
    np.testing.assert_allclose(ours, P[np.ix_(outputs, outputs)], rtol=1e-9, atol=1e-280)


# Hard shapes


@large
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_regions_meet_in_one_point(mechanism):
    """32 locations on one circle: their Voronoi regions share one corner, where every clip is a
    tie."""
    ring = points(
        [(x + 33, y + 33) for x in range(-33, 34) for y in range(-33, 34) if x * x + y * y == 1105]
    )
    for graph in (pf.complete(ring), path(ring, np.arange(ring.size))):
        for epsilon in EPSILONS:
            assert_private(mechanism(graph, epsilon=epsilon), 0)


def two_clusters(apart, seed):
    """Sixteen places at 1 m in two clusters of 5 x 5 m: K is as thin as they are far apart, and
    oblique."""
    rng = np.random.default_rng(seed)
    sites = rng.permutation([(x, y) for x in range(5) for y in range(5)])[:16]
    sites[8:] += np.asarray(apart)
    places = points(sites)
    return pf.complete(places) if seed % 2 else path(places, np.arange(16))


@large
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "apart", [(1000, 0), (1000, 1000), (8192, 8192), (100_000, 100_000), (24_576, 8192)]
)
def test_thin_oblique_components(apart, mechanism):
    """Two sites some km apart, each with places 1 m apart.

    Catches cancellation along a K that is thin across the axes.
    """
    for seed in range(6):
        for epsilon in (0.01, 1, 20):
            assert_private(mechanism(two_clusters(apart, seed), epsilon=epsilon), 0)


@large
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_road(mechanism):
    """Places along a straight road, 1 m to the left or the right of it: regions with corners
    thousands of km away."""
    i = np.arange(24)
    side = np.random.default_rng(0).integers(0, 2, (24, 2))
    road = points(np.stack([3000 * i, 2 * i], axis=1) + side)
    for epsilon in EPSILONS:
        assert_private(mechanism(path(road, i), epsilon=epsilon), 0)


@pytest.mark.parametrize(
    "scale, cells, edge",
    [
        ((0.2, 0.6), [46, 55, 58, 64], (58, 64)),
        ((0.2, 0.6), [1, 36, 42, 48, 51], (36, 48)),
        ((0.3, 0.1), [36, 46, 47, 55], (36, 46)),
        ((0.5, 0.25), [36, 46, 47, 55], (36, 46)),
    ],
)
def test_ties_along_a_line_on_oblong_cells(scale, cells, edge):
    """Rank-1 K, and lines along a Voronoi boundary.

    0.2 and 0.6 stand for 1/5 and 3/5, a ratio that floats only round.
    """
    g = pf.Grid(9, 9, cell_km=scale)
    m = pf.PPIM(
        pf.PolicyGraph.from_edges(g, [edge]),
        epsilon=1,
        domain=pf.Domain(g, cells),
        calibration="graph",
    )
    outputs, ours = m.matrix(cells[0])
    P, _ = expected(m, tuple(Fraction(str(c)) for c in scale))
    assert abs(ours.sum(axis=1) - 1).max() < 1e-12
    np.testing.assert_allclose(ours, P[np.ix_(outputs, outputs)], rtol=0, atol=1e-9)
    assert log_ratio(m, cells[0]) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_rank_one_in_the_plane_keeps_the_ratio(seed):
    """Any domain, all edges parallel, cells whose proportions are no binary fraction."""
    rng = np.random.default_rng(seed)
    g = pf.Grid(12, 12, cell_km=[(0.3, 0.1), (0.1, 0.3), (0.7, 0.1), (0.2, 0.6)][seed % 4])
    cells = np.sort(rng.permutation(g.size)[:20])
    step = [(1, 0), (0, 1), (1, 1), (1, 3), (3, -1)][seed % 5]
    L = g.lattice[cells].astype(int)
    pairs = [
        (cells[a], cells[b])
        for a, b in combinations(range(20), 2)
        if naive.cross(L[b] - L[a], step) == 0
    ]
    m = pf.PPIM(
        pf.PolicyGraph.from_edges(g, pairs),
        epsilon=1,
        domain=pf.Domain(g, cells),
        calibration="graph",
    )
    assert_private(m, cells[0])


# Figures and invariants


@pytest.mark.parametrize("mechanism, error", [(pf.PPIM, 1.3396), (pf.PLM, 1.3720)])
def test_mean_error_of_a_block(mechanism, error):
    g = pf.Grid(3, 3)
    outputs, P = mechanism(pf.blocks(g, 3), epsilon=1).matrix(0)
    distance = g.distance(outputs.repeat(9), np.tile(outputs, 9)).reshape(9, 9)
    assert (P * distance).sum(axis=1).mean() == pytest.approx(error, abs=5e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pmf_is_a_row_of_the_matrix(mechanism):
    m = mechanism(SMALL["tree"], epsilon=2)
    s = np.flatnonzero(m.graph.degrees())[3]
    outputs, P = m.matrix(s)
    row = int(np.searchsorted(outputs, s))
    for log in (False, True):
        cells, p = m.pmf(s, log=log)
        assert cells.tolist() == outputs.tolist()
        assert p.tolist() == m.matrix(s, log=log)[1][row].tolist()
    np.testing.assert_array_equal(np.exp(m.matrix(s, log=True)[1]), P)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_proportions_matter(mechanism):
    """A map in other units, or somewhere else on the grid, has the same probabilities."""
    a = mechanism(
        pf.complete(pf.Grid(4, 5, cell_km=(0.5, 0.25)), [0, 3, 7, 11, 12]), epsilon=1
    ).matrix(0)[1]
    b = mechanism(
        pf.complete(pf.Grid(4, 5, cell_km=(8.0, 4.0)), [0, 3, 7, 11, 12]), epsilon=1
    ).matrix(0)[1]
    shifted = mechanism(
        pf.complete(pf.Grid(9, 9, cell_km=(0.5, 0.25)), [32, 35, 43, 51, 52]), epsilon=1
    )
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, shifted.matrix(32)[1], rtol=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_bisectors_parallel_to_rays_of_the_hull(seed):
    """Cells of (.1, .3) have a proportion that floats only round: a bisector along a ray of K is
    then cut near infinity."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        scale = ((0.1, 0.3), (0.3, 0.1), (0.37, 1.11), (0.1, 0.7), (0.2, 0.6))[rng.integers(5)]
        g = pf.Grid(8, 8, cell_km=scale)
        cells = rng.choice(g.size, 10, replace=False)
        edges = [rng.choice(cells, 2, replace=False) for _ in range(int(rng.integers(1, 5)))]
        C = pf.Domain(g, cells)
        m = pf.PPIM(
            pf.PolicyGraph.from_edges(g, edges),
            epsilon=float(rng.choice([0.05, 0.3, 1.0, 5.0])),
            domain=C,
            calibration="graph",
        )
        P = m.matrix(int(cells[0]))[1]
        assert np.abs(P.sum(axis=1) - 1).max() <= 1e-12


def test_a_table_of_rows_that_do_not_sum_to_one_is_refused(monkeypatch):
    """An error in the probabilities must not hide behind the mixing that makes the proof pass."""

    def off(self, which):
        return np.full((self.groups.sizes[which] ** 2).sum(), (1 - 1e-3) / 9)

    monkeypatch.setattr(pf.PPIM, "probabilities", off)
    with pytest.raises(pf.PGLPError, match=r"sum to 1 only within 1\.0e-03"):
        pf.PPIM(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0).release(0)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-6, 1.0, 1e3, 1e6, 1e7, 1e9])
@pytest.mark.parametrize("kind", [pf.PPIM, pf.PLM, pf.PlanarLaplace])
def test_rows_of_a_cluster_and_one_far_point_sum_to_1(kind, epsilon):
    """K is 1,000,000 times longer than wide. From epsilon 1e5 on rows of P-PIM were off by up to
    7e-11: noise much shorter than a lattice unit was placed from z and not from s."""
    far = [[64588848, 39311724], [78636979, 62956051]]
    near = [[2, 19], [5, 9], [7, 14], [8, 10], [11, 11], [11, 12], [13, 13], [13, 16], [15, 0]]
    for one in far:
        locations = pf.Points(np.array([*near, [16, 2], [18, 19], one], float), resolution_km=1.0)
        m = kind(pf.complete(locations), epsilon=epsilon)
        assert np.abs(m.matrix(0)[1].sum(axis=1) - 1).max() < 1e-13
