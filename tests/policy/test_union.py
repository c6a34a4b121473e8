"""The union of two policies, against sets of edges."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import edge_set


def some_policies(grid, rng):
    labels = rng.integers(-1, 3, grid.size)
    pairs = rng.integers(0, grid.size, (6, 2))
    return [
        pf.blocks(grid, 2),
        pf.blocks(grid, 4),
        pf.categories(grid, labels, 3),
        pf.neighbours8(grid),
        pf.complete(grid, rng.permutation(grid.size)[:5]),
        pf.PolicyGraph.from_edges(grid, pairs[pairs[:, 0] != pairs[:, 1]]),
        pf.PolicyGraph.from_edges(grid, []),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_union_has_the_edges_of_both(seed):
    rng = np.random.default_rng(seed)
    grid = pf.Grid(6, 7)
    policies = some_policies(grid, rng)
    for G in policies:
        for H in policies:
            both = G | H
            assert edge_set(both) == edge_set(G) | edge_set(H)
            assert both == (H | G)
            assert (both & G) == G


def test_blocks_of_blocks_stay_compact():
    """2 x 2 blocks lie in 4 x 4 blocks: no edge is listed, whichever comes first."""
    grid = pf.Grid(300, 300)
    small, large = pf.blocks(grid, 2), pf.blocks(grid, 4)
    for union in (small | large, large | small):
        assert union == large
        assert len(union.extra_indices) == 0


def test_policies_of_two_maps_do_not_mix():
    with pytest.raises(pf.InvalidPolicy, match="different maps"):
        pf.blocks(pf.Grid(4, 4), 2) | pf.blocks(pf.Grid(4, 5), 2)
    with pytest.raises(TypeError):
        pf.blocks(pf.Grid(4, 4), 2) | 3
