"""Exact utility of a city, as a ratio against NumPy on the same pairs."""

import numpy as np
import pytest

import pglp_fast as pf


def numpy_gather(m, regions, labels):
    """E_eu, E_r and E_poi over every (s, z) of every block, by gathering labels and comparing
    all pairs at once."""
    members = m.groups.members.reshape(-1, 25)
    P = m.matrix(0)[1]
    at = m.locations.xy(members[0])
    distance = np.linalg.norm(at[:, None] - at[None], axis=-1)
    here, kind = regions[members], labels[members]
    e_r = np.einsum("ij,gij->", P, here[:, :, None] != here[:, None, :]) / m.locations.size
    e_poi = np.einsum("ij,gij->", P, kind[:, :, None] != kind[:, None, :]) / m.locations.size
    return (P * distance).sum() / 25, e_r, e_poi


def test_a_million_cells_cost_less_than_numpy_on_the_same_pairs(ratio, promise):
    """1000 x 1000 in blocks of 5 x 5: 25 million pairs, regions that cut the blocks, six
    categories, on any number of threads.

    A matrix for each component instead of one for each shape would be hundreds of times slower.
    """
    grid = pf.Grid(1000, 1000)
    m = pf.PPIM(pf.blocks(grid, 5), epsilon=1.0)
    labels = np.random.default_rng(0).integers(-1, 5, grid.size)
    regions = (np.arange(grid.size) // 1000 // 7) * 143 + np.arange(grid.size) % 1000 // 7
    u = pf.utility(m, region=7, categories=labels)
    assert (u.e_eu, u.e_r, u.e_poi) == pytest.approx(numpy_gather(m, regions, labels), rel=1e-9)
    value = ratio(
        lambda: pf.utility(m, region=7, categories=labels),
        lambda: numpy_gather(m, regions, labels),
        rounds=3,
    )
    promise(value, 0.7)


def test_estimates_cost_at_most_four_times_the_distances_alone(ratio, promise):
    """10 million pairs: all metrics with quantiles, intervals and means by location, against
    NumPy's distances."""
    grid = pf.Grid(1000, 1000)
    rng = np.random.default_rng(0)
    true, released = (rng.integers(0, grid.size, 10_000_000).astype(np.int32) for _ in range(2))
    labels = rng.integers(-1, 5, grid.size)
    value = ratio(
        lambda: pf.estimate_utility(grid, true, released, categories=labels),
        lambda: grid.distance(true, released),
        rounds=1,
    )
    promise(value, 4.0)
