"""A domain as kernels see it: cells, and cliques linked within it."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.exposure import domain_view as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy

# cliques {0, 1, 4}, {2, 5} and 3 alone on a 2 x 3 grid, in a domain without 1
GRAPH = pf.categories(pf.Grid(2, 3), [0, 0, 1, -1, 0, 1], None)
CELLS = [0, 2, 3, 4, 5]


@pytest.fixture
def linked():
    policy = kernel_policy(GRAPH)
    head = np.full(GRAPH.n_cliques, -1, np.int32)
    words = pf.Domain(GRAPH.locations, CELLS).words.copy()
    view = kernels.make_view(words, np.empty((4, 6), np.int32), head, np.empty(6, np.int32))
    kernels.link_cliques(policy, view)
    return policy, view


def test_cells_and_cliques(linked):
    _, view = linked
    assert view.cells.tolist() == CELLS
    assert view.clique.tolist() == GRAPH.cliques[CELLS].tolist()


def test_lists_hold_each_clique_once(linked):
    policy, view = linked
    heads = [p for p in range(len(CELLS)) if kernels.heads_clique(view, p)]
    found = [sorted(kernels.clique_points(policy, view, p)[1].tolist()) for p in heads]
    assert sorted(found) == [[0, 4], [2, 5]]
    for p in heads:
        points, members = kernels.clique_points(policy, view, p)
        assert points.tolist() == GRAPH.locations.lattice[members].tolist()


def test_work_space_is_handed_back(linked):
    _, view = linked
    assert (view.head >= 0).any()
    kernels.unlink_cliques(view)
    assert (view.head == -1).all()
