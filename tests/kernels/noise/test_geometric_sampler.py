"""Releases by noise against the nearest location to f(s) + noise, in floats by hand."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import words
from pglp_fast._kernels.base.chacha import GEOMETRIC
from pglp_fast._kernels.noise import cones, geometric_sampler as kernels
from pglp_fast.mechanisms.randomness import make_key

GRID = pf.Grid(4, 5, cell_km=(1.0, 0.5))
CASES = {
    "a full box": pf.complete(GRID),
    "a box with holes": pf.complete(GRID, [0, 1, 4, 7, 13, 18, 19]),
    "points": pf.complete(pf.Points([[0, 0], [5, 1], [2, 7], [9, 9]], resolution_km=1.0)),
}


@pytest.mark.parametrize("graph", CASES.values(), ids=CASES.keys())
def test_extents(graph):
    m = pf.PPIM(graph, epsilon=1.0, sampler="geometric")
    shape = m.groups.shape(0)
    sites = m.locations.lattice[m.groups.of(0)] - m.locations.lattice[m.groups.of(0)[0]]
    out = np.full((len(m.groups.representative), 4), 99)
    kernels.extents(np.array([shape]), m.groups.arrays, out)
    low, high = sites.min(axis=0), sites.max(axis=0)
    assert out[shape].tolist() == [low[0], high[0], low[1], high[1]]


@pytest.mark.parametrize("graph", CASES.values(), ids=CASES.keys())
def test_the_nearest_member_is_released(graph):
    """User u's noise, drawn from the documented words, added and snapped by hand."""
    m = pf.PPIM(graph, epsilon=0.7, sampler="geometric")
    members = m.groups.of(0)
    cells = np.resize(members, 300)
    released = m.release(cells, rng=8)
    K, key = m.polygon(m.groups.shape(0)), make_key(8)
    dx, dy = m.locations.scale
    for user, (s, z) in enumerate(zip(cells.tolist(), released.tolist())):
        drawn = np.array(words(key, user, 0, 2, GEOMETRIC), np.uint64)
        noise = cones.draw_noise(drawn, K, 0.7)
        at = m.locations.lattice[s] + np.array(noise)
        away = (m.locations.lattice[members] - at) * (dx, dy)
        distance = np.hypot(*away.T)
        assert distance[list(members).index(z)] <= distance.min() * (1 + 1e-9)
