"""The search tree, and snapping in the geometric sampler, against brute force in exact
arithmetic."""

from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import draw_noise, draw_words, large, path, points, random_tree, some_cells
from pglp_fast._kernels.geometry import kdtree as kd

SIZES = (1, 2, 8, 9, 16, 17, 33, 100)


def search(sites, stretch, xy):
    sites = np.asarray(sites, np.int64)
    order, boxes = np.arange(len(sites)), np.empty((kd.tree_nodes(len(sites)), 4), np.int64)
    kd.build_tree(sites, stretch, order, boxes)
    assert sorted(order) == list(range(len(sites)))
    out = np.empty(len(xy), np.int64)
    kd.nearest_sites(sites, order, boxes, stretch, np.asarray(xy, float), out)
    return out.tolist()


def brute(sites, stretch, xy):
    """By exact fractions; the lattice is the km frame, with rows stretched."""
    root = Fraction(float(np.sqrt(stretch)))
    scaled = (Fraction(1), root)
    return [
        naive.nearest(
            sites, scaled, range(len(sites)), (Fraction(float(x)), Fraction(float(y)) * root)
        )
        for x, y in xy
    ]


def site_sets():
    rng = np.random.default_rng(0)
    for n in SIZES:
        i = np.arange(n)
        yield (
            f"scattered {n}",
            rng.permutation(np.unique(rng.integers(0, 50 + n, (2 * n + 2, 2)), axis=0))[:n],
        )
        yield f"row {n}", np.stack([rng.permutation(3 * n)[:n], 0 * i], axis=1)
        yield f"column {n}", np.stack([0 * i, rng.permutation(3 * n)[:n]], axis=1)
        yield f"diagonal {n}", np.stack([i, i], axis=1)[rng.permutation(n)]
        yield (
            f"clusters {n}",
            np.unique(
                rng.integers(0, 4, (2 * n, 2)) + 1000 * rng.integers(0, 3, (2 * n, 1)), axis=0
            ),
        )
        yield (
            f"full square {n}",
            rng.permutation([(x, y) for x in range(11) for y in range(10)])[:n],
        )


SETS = dict(site_sets())


@pytest.mark.parametrize("stretch", [1.0, 4.0, 1 / 16])
@pytest.mark.parametrize("name", SETS)
def test_tree_against_brute_force(name, stretch):
    """Points between, around and on the sites; halves, where two or four of them tie, go to the
    lower index."""
    sites = SETS[name]
    rng = np.random.default_rng(1)
    low, high = sites.min(axis=0), sites.max(axis=0)
    ties = rng.integers(2 * low - 2, 2 * high + 3, (25, 2)) / 2
    around = rng.uniform(low - 5, high + 5, (15, 2))
    far = rng.normal(0, 1e6, (4, 2))
    xy = np.concatenate([ties, around, far, sites[:5]])
    assert search(sites, stretch, xy) == brute(sites, stretch, xy)


def test_four_way_tie_goes_to_the_lowest_index():
    for order in ([3, 1, 0, 2], [0, 1, 2, 3], [2, 3, 1, 0]):
        sites = np.array([(0, 0), (2, 0), (0, 2), (2, 2)])[order]
        assert search(sites, 1.0, [(1.0, 1.0)]) == [0]
    ring = np.array([(x, y) for x in range(-5, 6) for y in range(-5, 6) if x * x + y * y == 25])
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(ring)
        assert search(shuffled, 1.0, [(0.0, 0.0)]) == [0]


@pytest.mark.parametrize("stretch", [1 / 9, (0.1 / 0.3) ** 2, 9.0, (0.6 / 0.2) ** 2])
def test_ties_that_floats_only_round(stretch):
    """(1, 0) and (0, 3) are equally far from (0, 0) for a stretch of 1/9, whatever the last bit
    of 1/9 says."""
    wide = stretch < 1
    pair = [(1, 0), (0, 3)] if wide else [(3, 0), (0, 1)]
    for sites in (pair, pair[::-1]):
        assert search(sites, stretch, [(0.0, 0.0)]) == [0]


@given(st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([1.0, 0.25, 9.0]))
def test_tree_property(n, seed, stretch):
    rng = np.random.default_rng(seed)
    sites = rng.permutation(np.unique(rng.integers(0, rng.integers(2, 200), (n, 2)), axis=0))
    xy = rng.integers(-8, 800, (6, 2)) / 4
    assert search(sites, stretch, xy) == brute(sites, stretch, xy)


@large
def test_wide_maps():
    """Sites up to 2^29 apart."""
    rng = np.random.default_rng(3)
    sites = rng.integers(0, 2**29, (500, 2))
    xy = rng.uniform(-(2**29), 2**30, (200, 2))
    assert search(sites, 1.0, xy) == brute(sites, 1.0, xy)


@pytest.mark.parametrize("n", [*range(1, 40), 64, 65, 127, 128, 129, 1000])
def test_tree_nodes(n):
    """Leaves hold 1 to LEAF sites, so no node is empty."""
    levels = kd.tree_levels(n)
    assert kd.tree_nodes(n) == 2 << levels
    assert 1 <= n >> levels <= kd.LEAF


@pytest.mark.parametrize(
    "x, expected",
    [(0.5, 0), (1.5, 1), (-0.5, -1), (2.0, 2), (0.5000001, 1), (-1.49, -1), (1e15, 1e15)],
)
def test_round_down(x, expected):
    assert kd.round_down(x) == expected


# The geometric sampler snaps as brute force does


def snapped(m, s, draws, seed):
    """Noise of the sampler's own words, snapped to the output set of s in exact arithmetic."""
    places = m.locations
    lattice = places.lattice.astype(int)
    outputs = m.groups.of(s).tolist()
    noise = draw_noise(m, s, draw_words(seed, draws)) + lattice[s]
    scale = tuple(Fraction(c) for c in places.scale)
    return [
        naive.nearest(lattice, scale, outputs, (Fraction(x) * scale[0], Fraction(y) * scale[1]))
        for x, y in noise.tolist()
    ]


GRID = pf.Grid(8, 9, cell_km=(0.25, 1))
HOLES = random_tree(GRID, some_cells(GRID, 30, 1), 1)
HALF = pf.Domain(GRID, some_cells(GRID, 40, 2))


@pytest.mark.parametrize(
    "m",
    [
        pf.PPIM(HOLES, epsilon=3, sampler="geometric"),
        pf.PLM(HOLES, epsilon=3, sampler="geometric"),
        pf.PPIM(pf.complete(GRID), epsilon=0.5, sampler="geometric"),
        pf.PPIM(
            pf.blocks(GRID, 3), epsilon=1, domain=HALF, calibration="graph", sampler="geometric"
        ),
        pf.PLM(pf.blocks(GRID, 4), epsilon=1, domain=HALF, sampler="geometric"),
        pf.PPIM(
            path(points([(5 * i * i % 97, 7 * i) for i in range(25)]), np.arange(25)),
            epsilon=5,
            sampler="geometric",
        ),
        pf.PPIM(
            pf.PolicyGraph.from_edges(GRID, [(0, 10), (0, 20)]),
            epsilon=1,
            domain=HALF | pf.Domain(GRID, [0, 10, 20]),
            calibration="graph",
            sampler="geometric",
        ),
    ],
    ids=["holes", "holes, P-LM", "full box", "graph calibration", "cut blocks", "points", "rank 1"],
)
def test_geometric_release_is_the_nearest_output(m):
    draws = 60 if numba.config.DISABLE_JIT else 400
    connected = np.flatnonzero(m.graph.degrees())
    for s in connected[[0, len(connected) // 2]].tolist():
        assert m.release(np.full(draws, s), rng=9).tolist() == snapped(m, s, draws, 9)
