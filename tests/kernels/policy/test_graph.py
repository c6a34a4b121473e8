"""Graph kernels on a hand-drawn graph: cliques {0, 1, 4} and {2, 5}, extra edges, one loner."""

from itertools import pairwise

import numpy as np
import pytest

import naive
from pglp_fast._kernels.policy import graph

N = 9
CLIQUES = np.array([0, 0, 1, -1, 0, 1, -1, -1, -1], np.int32)
EXTRA = {(1, 2), (6, 7), (3, 6)}  # 8 is alone
EDGES = {(0, 1), (0, 4), (1, 4), (2, 5)} | EXTRA


def csr(edges, n=N):
    return graph.pairs_to_csr(n, np.array(sorted(edges), np.int32).reshape(-1, 2))


def rows_of(indptr, indices):
    return [indices[a:b].tolist() for a, b in pairwise(indptr)]


def neighbours(edges, n=N):
    return [sorted(naive.neighbours(edges, i)) for i in range(n)]


MEMBERS, STARTS = graph.group_by(CLIQUES, 2)
INDPTR, INDICES = csr(EXTRA)


def test_groups_in_ascending_order():
    assert (MEMBERS.tolist(), STARTS.tolist()) == ([0, 1, 4, 2, 5], [0, 3, 5])
    assert graph.group_by(np.array([-1, -1]), 0)[0].size == 0


@pytest.mark.parametrize(
    ("alone", "expected"), [(False, [0, -1, 1, 0, -1]), (True, [0, 1, 2, 0, 3])]
)
def test_labels_are_numbered_by_their_lowest_location(alone, expected):
    out = np.empty(5, np.int32)
    count = graph.relabel(np.array([7, -1, 2, 7, -1]), alone, out)
    assert out.tolist() == expected
    assert count == max(expected) + 1


def test_components():
    out = np.empty(N, np.int32)
    assert graph.components(CLIQUES, 2, INDPTR, INDICES, out) == 3
    assert out.tolist() == [0, 0, 0, 1, 0, 0, 1, 1, 2]


def test_roots():
    """Paths are halved on the way, and a root is the lowest of its component."""
    parent = np.array([0, 0, 1, 2, 4, 4])
    assert [graph.find_root(parent, i) for i in range(6)] == [0, 0, 0, 0, 4, 4]
    out = np.empty(6, np.int64)
    assert graph.number_roots(np.array([0, 0, 1, 2, 4, 4]), out) == 2
    assert out.tolist() == [0, 0, 0, 0, 1, 1]


def test_edges():
    for i in range(N):
        for j in range(N):
            pair = (min(i, j), max(i, j))
            assert graph.in_row(INDPTR, INDICES, i, j) == (pair in EXTRA)
            assert graph.has_edge(CLIQUES, INDPTR, INDICES, i, j) == (pair in EDGES)
    pairs, out = np.array([[4, 0], [2, 1], [2, 4], [8, 8]]), np.empty(4, bool)
    graph.has_edges(CLIQUES, INDPTR, INDICES, pairs, out)
    assert out.tolist() == [True, True, False, False]


def test_pairs_in_any_order_and_repeated():
    pairs = np.array([[3, 1], [1, 3], [0, 3], [3, 1], [2, 0]], np.int32)
    indptr, indices = graph.pairs_to_csr(5, pairs)
    assert rows_of(indptr, indices) == [[2, 3], [3], [0], [0, 1], []]
    assert graph.upper_pairs(indptr, indices).tolist() == [[0, 2], [0, 3], [1, 3]]
    assert graph.first_asymmetry(indptr, indices) == (-1, -1)
    indptr, indices = np.array([0, 1, 1]), np.array([1], np.int32)
    assert graph.first_asymmetry(indptr, indices) == (0, 1)


def test_cliques_are_expanded():
    whole = graph.expand(MEMBERS, STARTS, CLIQUES, INDPTR, INDICES)
    assert rows_of(*whole) == neighbours(EDGES)
    out = np.empty(N, np.int32)
    for i, expected in enumerate(neighbours(EDGES)):
        n = graph.neighbour_row(MEMBERS, STARTS, CLIQUES, INDPTR, INDICES, i, out)
        assert out[:n].tolist() == expected


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_neighbours8(rows, cols):
    cells = [(r, c) for r in range(rows) for c in range(cols)]
    expected = [
        [j for j, b in enumerate(cells) if b != a and max(abs(b[0] - a[0]), abs(b[1] - a[1])) == 1]
        for a in cells
    ]
    assert rows_of(*graph.neighbours8(rows, cols)) == expected


def test_rows_within_a_domain():
    cells = {0, 1, 2, 5, 6, 7}
    words = np.array([sum(1 << c for c in cells)], np.uint64)
    kept = graph.filter_rows(*csr(EDGES), words)
    assert rows_of(*kept) == neighbours({e for e in EDGES if cells >= set(e)})


def test_hops():
    pairs = [(a, b) for a in (4, 8, 3) for b in range(N)]
    sources, targets = np.array(pairs).T
    out = np.empty(len(pairs))
    args = (MEMBERS, STARTS, CLIQUES, INDPTR, INDICES, sources, targets, np.arange(len(pairs)))
    graph.hops(*args, out)
    assert out.tolist() == [naive.hop_distance(N, EDGES, a, b) for a, b in pairs]


def test_boxes_of_cliques():
    lattice = np.array([[i % 3, i // 3] for i in range(N)], np.int32)
    assert graph.clique_extents(lattice, CLIQUES, 2).tolist() == [[1, 1], [0, 1]]
