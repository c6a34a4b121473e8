"""Maps, policies and domains that the golden cases share. Small on purpose."""

from functools import cache

import numpy as np
from scipy import sparse as sp

import pglp_fast as pf


@cache
def grid():
    return pf.Grid(6, 7, cell_km=(0.5, 0.8), origin=(35.6, 139.5))


@cache
def points():
    """Places that are no grid, wider than high."""
    xy = np.random.default_rng(11).integers(0, 400, (26, 2)) * (0.02, 0.005)
    return pf.Points(xy, resolution_km=0.005)


def labels(n, kinds=3, seed=4):
    return np.random.default_rng(seed).integers(-1, kinds, n)


def random_edges(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, m))
    return np.stack([a, b], axis=1)[a != b]


@cache
def policies():
    """Name -> policy, one of each kind."""
    g, p = grid(), points()
    i, j = np.triu_indices(p.size, 1)
    near = np.stack([i, j], axis=1)[p.distance(i, j) < 1.2]
    matrix = sp.coo_array(
        (np.ones(30), tuple(random_edges(g.size, 40, 8)[:30].T)), shape=(g.size, g.size)
    )
    path = np.stack([np.arange(0, 9), np.arange(1, 10)], axis=1)
    star = [[20, k] for k in (0, 6, 13, 22, 35, 41)]
    return {
        "blocks2": pf.blocks(g, 2),
        "blocks3": pf.blocks(g, 3),
        "cut": pf.blocks(g, 3).constrain(domain(g, 0.6, 3)),
        "categories": pf.categories(g, labels(g.size), 4),
        "neighbours8": pf.neighbours8(g),
        "complete": pf.complete(g, np.arange(3, 40, 4)),
        "path": pf.PolicyGraph.from_edges(g, path),
        "star": pf.PolicyGraph.from_edges(g, star),
        "random": pf.PolicyGraph.from_edges(g, random_edges(g.size, 25, 5)),
        "scipy": pf.PolicyGraph.from_scipy(g, ((matrix + matrix.T) > 0).astype(float)),
        "mixed": pf.blocks(g, 2).with_edges([[1, 2], [20, 40], [3, 30]]),
        "points": pf.PolicyGraph.from_edges(p, near),
        "points-categories": pf.categories(p, labels(26, 2, 9), 2.0),
    }


def domain(locations, share, seed):
    return pf.Domain.from_mask(
        locations, np.random.default_rng(seed).random(locations.size) < share
    )
