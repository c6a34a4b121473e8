"""Policy graphs against sets of pairs: named policies, CSR, components, hops, operations; and
that cliques stay compact."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import cells_of, large, mixed
from pglp_fast._kernels.policy import graph as kernels


def pairs(array):
    return [tuple(p) for p in array.tolist()]


def is_graph(G, edges):
    """G has exactly these edges by every way of reading them, its CSR keeps its promises, and
    every edge is kept once."""
    n = G.locations.size
    assert pairs(G.edges()) == sorted(edges)
    assert G.n_edges == len(edges)
    assert (G.indptr.dtype, G.indices.dtype, G.edges().dtype) == (np.int64, np.int32, np.int32)
    assert len(G.indptr) == n + 1
    assert G.indptr[0] == 0
    rows = [G.indices[G.indptr[i] : G.indptr[i + 1]].tolist() for i in range(n)]
    expected = [
        sorted(naive.neighbours(edges, i)) for i in range(n)
    ]  # symmetric, no loop, no repeat, sorted
    assert rows == expected
    assert [G.neighbours(i).tolist() for i in range(n)] == expected
    assert G.degrees().tolist() == [len(row) for row in expected]
    assert [G.component(i).tolist() for i in range(n)] == [
        naive.component(n, edges, i) for i in range(n)
    ]
    lowest = [naive.component(n, edges, i)[0] for i in range(n)]
    assert G.components.tolist() == [sorted(set(lowest)).index(low) for low in lowest], (
        "numbered by lowest location"
    )
    assert G.components.dtype == np.int32
    everything = [(i, j) for i in range(n) for j in range(n)]
    assert G.has_edges(everything).tolist() == [(min(p), max(p)) in edges for p in everything]
    kept = [(i, j) for i, j in everything if i < j and G.cliques[i] == G.cliques[j] >= 0]
    assert sorted(kept + pairs(G.extra_edges())) == sorted(edges), (
        "every edge is in a clique or extra, never both"
    )
    assert np.all(np.bincount(G.cliques[G.cliques >= 0], minlength=1)[: G.n_cliques] >= 2), (
        "no clique of one"
    )
    return True


# The named policies

SHAPES = [(1, 1), (1, 7), (7, 1), (5, 7), (6, 6)]
shapes = pytest.mark.parametrize(("rows", "cols"), SHAPES)


def test_blocks_by_hand():
    G = pf.blocks(pf.Grid(3, 3), 2)
    assert pairs(G.edges()) == [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (2, 5), (3, 4), (6, 7)]
    assert G.components.tolist() == [0, 0, 1, 0, 0, 1, 2, 2, 3]
    assert G.distance([0, 0, 0, 8], [0, 4, 8, 8]).tolist() == [0, 1, np.inf, 0]
    assert repr(G) == "PolicyGraph(Grid(3, 3, cell_km=1.0), 8 edges)"


@shapes
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 9])
def test_blocks(rows, cols, k):
    """Would catch blocks that are dropped at the map's edge, or that run on into the next row of
    cells."""
    assert is_graph(pf.blocks(pf.Grid(rows, cols), k), naive.blocks(rows, cols, k))


@shapes
@pytest.mark.parametrize("k", [2, 3, 6])
def test_categories(rows, cols, k):
    """Would catch -1 taken for a category like any other, and equal categories joined across
    blocks."""
    labels = np.random.default_rng(k).integers(-1, 3, rows * cols)
    labels[labels == 2] = 10**6  # sparse categories
    edges = naive.categories(rows, cols, labels, k)
    for dtype in (np.int64, np.int32):
        assert is_graph(pf.categories(pf.Grid(rows, cols), labels.astype(dtype), k), edges)
    assert is_graph(pf.categories(pf.Grid(rows, cols), np.full(rows * cols, -1), k), set())


def test_categories_by_name():
    """Would catch None, NaN or empty text taken for a category like any other."""
    g = pf.Grid(4, 5)
    numbers = np.random.default_rng(1).integers(-1, 3, g.size)
    names = np.array(["", "food", "health", "shop"])
    text = names[numbers + 1]
    wanted = pf.categories(g, numbers, 2)
    mixed = [None if v == "" else v for v in text.tolist()]
    mixed[mixed.index(None)] = float("nan")
    nan = [v if v else float("nan") for v in text.tolist()]
    for labels in (text, text.tolist(), text.astype(object), mixed, nan):
        assert pf.categories(g, labels, 2) == wanted
    pandas = pytest.importorskip("pandas")
    assert pf.categories(g, pandas.Series(mixed), 2) == wanted
    assert pf.categories(g, pandas.Series(mixed, dtype="string"), 2) == wanted
    assert pf.categories(g, pandas.Series(mixed, dtype="category"), 2) == wanted
    with pytest.raises(pf.InvalidPolicy, match=r"labels\[1\] = 7: categories are all text"):
        pf.categories(g, ["food", 7] * 10)
    with pytest.raises(pf.InvalidPolicy, match="one category for each of the 20"):
        pf.categories(g, ["food"])


def test_categories_defaults_to_blocks_of_six():
    g = pf.Grid(7, 13)
    assert pairs(pf.categories(g, np.zeros(91, int)).edges()) == sorted(naive.blocks(7, 13, 6))
    assert pairs(pf.categories(g, np.zeros(91, np.uint8), None).edges()) == sorted(
        naive.complete(range(91))
    )


def test_categories_of_points():
    """A block is km a side on Points, counted from their south-west corner."""
    P = pf.Points([[10, 10], [11.9, 11.9], [12.1, 10], [10, 12.1], [10.5, 10], [13, 11]])
    assert is_graph(pf.categories(P, [0, 0, 0, 0, 1, 0], 2.0), {(0, 1), (2, 5)})


def test_categories_of_far_points_in_tiny_blocks():
    """2**32 blocks a side: would catch a block number that wraps at 2**64 and joins points 5,800
    km apart."""
    P = pf.Points([[4096, 0], [0, 4096]], resolution_km=1.0)
    assert is_graph(pf.categories(P, [0, 0], 2.0**-20), set())


@shapes
def test_neighbours8(rows, cols):
    assert is_graph(pf.neighbours8(pf.Grid(rows, cols)), naive.neighbours8(rows, cols))


@pytest.mark.parametrize(
    "cells", [None, [], [3], 3, [9, 2, 5], [4, 4, 0], np.array([11, 0], np.uint16)]
)
def test_complete(cells):
    chosen = range(12) if cells is None else set(np.atleast_1d(np.asarray(cells, int)).tolist())
    for map_ in (pf.Grid(3, 4), pf.Points(np.random.default_rng(0).random((12, 2)))):
        assert is_graph(pf.complete(map_, cells), naive.complete(chosen))


# Edge lists and matrices


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] != p[1]), max_size=25
    )
)
def test_from_edges(drawn):
    """Either direction, repeats, any integer dtype."""
    edges = {(min(p), max(p)) for p in drawn}
    for dtype in (np.int64, np.uint8, np.int32):
        array = np.array(drawn, dtype).reshape(-1, 2)
        assert is_graph(pf.PolicyGraph.from_edges(pf.Grid(2, 4), array), edges)
    assert is_graph(
        pf.PolicyGraph.from_edges(pf.Grid(2, 4), np.array(drawn, int).reshape(-1, 2)[:, ::-1]),
        edges,
    )


RING = {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}


def ring_matrix(dtype=float):
    dense = np.zeros((6, 6), dtype)
    for i, j in RING:
        dense[i, j] = dense[j, i] = 1
    return dense


def wide(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.ndarray.tolist,
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_array,
        sp.lil_array,
        sp.dok_array,
        lambda m: wide(sp.csr_array(m)),
        lambda m: wide(sp.csc_matrix(m)),
        lambda m: sp.csr_array(m.astype(bool)),
        lambda m: sp.csr_array(m.astype(np.int8) * -3),
        lambda m: sp.coo_array((np.ones(20), tuple(np.tile(np.nonzero(m), 2))), shape=m.shape),
    ],
)
def test_from_scipy(make):
    assert is_graph(pf.PolicyGraph.from_scipy(pf.Grid(2, 3), make(ring_matrix())), RING)


def untidy():
    """Edges 0-1 and 0-2: columns unsorted, (0, 1) stored twice, a stored zero at (0, 3), (1, 3)
    stored twice and cancelling."""
    data, columns = [1.0, 1, 2, 0, 1, 1, -1, 1], [2, 1, 1, 3, 3, 0, 3, 0]
    return sp.csr_array(
        (np.array(data), np.array(columns), np.array([0, 4, 7, 8, 8])), shape=(4, 4)
    )


def test_from_scipy_of_an_untidy_matrix():
    """Would catch a stored zero taken for an edge, and a repeated entry kept twice."""
    assert is_graph(pf.PolicyGraph.from_scipy(pf.Grid(1, 4), untidy()), {(0, 1), (0, 2)})


def test_from_scipy_leaves_its_input_alone():
    """Would catch in-place sorting or pruning of arrays that belong to the caller (or that are
    memory-mapped, read-only)."""
    matrix = untidy()
    pf.PolicyGraph.from_scipy(pf.Grid(1, 4), matrix)
    assert matrix.indices.tolist() == untidy().indices.tolist()
    assert matrix.indptr.tolist() == untidy().indptr.tolist()


def test_from_scipy_of_read_only_arrays():
    matrix = untidy()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    assert is_graph(pf.PolicyGraph.from_scipy(pf.Grid(1, 4), matrix), {(0, 1), (0, 2)})


# Reading and combining cliques and edges together


@given(mixed())
def test_mixed_graphs(case):
    """Would catch an edge counted in a clique and again as extra, and components that only
    follow one of the two."""
    assert is_graph(*case)


@given(mixed(), st.data())
def test_constrain(case, data):
    """Would catch an edge kept with one end in C, and a clique cut down to one member that still
    counts as one."""
    G, edges = case
    kept = data.draw(cells_of(G.locations.size))
    C = pf.Domain(G.locations, kept)
    assert is_graph(G.constrain(C), naive.constrain(edges, set(kept)))
    assert G.constrain(C).constrain(C) == G.constrain(C)
    assert G.constrain(pf.Domain.full(G.locations)) == G


@given(mixed(), st.data())
def test_intersection_and_union(case, data):
    """Cliques meet cliques, edges meet cliques, edges meet edges: each kind of common edge must
    survive, once."""
    G, edges = case
    n = G.locations.size
    labels = data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    cell = st.integers(0, n - 1)
    more = (
        data.draw(st.lists(st.tuples(cell, cell).filter(lambda p: p[0] != p[1]), max_size=8))
        if n > 1
        else []
    )
    H = pf.categories(G.locations, labels, None).with_edges(more)
    others = set(pairs(H.edges()))
    assert is_graph(G & H, edges & others)
    assert is_graph(H & G, edges & others)
    assert is_graph(G.with_edges(H.edges()), edges | others)
    assert (G == H) == (edges == others)
    assert pf.PolicyGraph.from_edges(G.locations, sorted(edges)) == G, "however the edges are kept"
    assert (G & G) == G


@given(mixed())
def test_distance(case):
    """Would catch a breadth-first search that enters a clique once and forgets it for the next
    source."""
    G, edges = case
    n = G.locations.size
    a, b = (v.reshape(-1) for v in np.indices((n, n)))
    expected = [naive.hop_distance(n, edges, i, j) for i, j in zip(a, b)]
    assert G.distance(a, b).tolist() == expected
    shuffled = np.random.default_rng(n).permutation(n * n)
    assert G.distance(a[shuffled], b[shuffled]).tolist() == [expected[k] for k in shuffled]
    assert G.distance(0, range(n)).tolist() == expected[:n]
    assert G.distance(0, n - 1) == expected[n - 1]
    assert G.distance([], []).shape == (0,)


def test_graphs_are_values():
    g = pf.Grid(2, 3)
    G = pf.blocks(g, 2)
    before = set(pairs(G.edges()))
    G.with_edges([[0, 5]])
    G.constrain(pf.Domain(g, [0]))
    edges = np.array([[0, 1], [1, 2]])
    H = pf.PolicyGraph.from_edges(g, edges)
    edges[:] = 5
    assert is_graph(G, before)
    assert is_graph(H, {(0, 1), (1, 2)})


# Compactness: cliques cost O(locations), never O(edges)


@pytest.fixture
def compact(monkeypatch):
    """Expanding cliques is an error here."""

    def expand(*args):
        raise AssertionError("cliques were expanded to their edges")

    monkeypatch.setattr(kernels, "expand", expand)


@large
@pytest.mark.parametrize("sampler", ["auto", "geometric"])
@pytest.mark.parametrize(
    ("make", "n_edges"),
    [
        (lambda: pf.blocks(pf.Grid(1000, 1000), 5), 40_000 * 300),
        (lambda: pf.complete(pf.Grid(250, 400)), 100_000 * 99_999 // 2),  # 40 GB as CSR
        (
            lambda: pf.complete(pf.Grid(250, 400), range(0, 100_000, 2)).with_edges([[0, 1]]),
            50_000 * 49_999 // 2 + 1,
        ),
    ],
    ids=["blocks", "complete", "complete and an edge"],
)
def test_cliques_stay_compact(compact, make, n_edges, sampler):
    G = make()
    C = pf.Domain(G.locations, range(0, G.locations.size, 3))
    kept = G.constrain(C)
    assert G.n_edges == n_edges
    assert len(G.component(0)) == G.components.tolist().count(0)
    assert len(G.neighbours(0)) == G.degrees()[0]
    assert G.distance(0, 2) == 1
    assert pf.sensitivity_hull(G, 0).rank == pf.sensitivity_hull(kept).rank == 2
    assert (G & kept).n_edges == kept.n_edges
    assert (G & kept) == kept
    for m in (
        pf.PPIM(G, epsilon=1.0, sampler=sampler),
        pf.PPIM(G, epsilon=1.0, domain=C, calibration="graph"),
    ):
        m.release(C.cells()[:2000], rng=1)
        assert "_csr" not in vars(m.graph)
    assert "_csr" not in vars(G)
    assert "_csr" not in vars(kept)
    assert len(G.extra_indices) <= 2


# Errors

g = pf.Grid(2, 3)
G = pf.blocks(g, 2)
points = pf.Points([[0, 0], [1, 1]])
from_edges, from_scipy = pf.PolicyGraph.from_edges, pf.PolicyGraph.from_scipy


def matrix_with(*entries):
    matrix = sp.lil_array((6, 6))
    for i, j in entries:
        matrix[i, j] = 1
    return matrix


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: from_edges(g, [[0, 1], [2, 6]]),
            pf.InvalidPolicy,
            r"edge 1 = \[2, 6\] leaves the 6 locations 0\.\.5",
        ),
        (
            lambda: from_edges(g, [[-1, 1]]),
            pf.InvalidPolicy,
            r"edge 0 = \[-1, 1\] leaves the 6 locations",
        ),
        (
            lambda: from_edges(g, [[0, 1], [3, 3]]),
            pf.InvalidPolicy,
            "edge 1 joins location 3 to itself: leave it out",
        ),
        (
            lambda: from_edges(g, [[0, 1, 2]]),
            pf.InvalidPolicy,
            r"edges must have shape \(m, 2\), got \(1, 3\)",
        ),
        (
            lambda: from_edges(g, [0, 1]),
            pf.InvalidPolicy,
            r"edges must have shape \(m, 2\), got \(2,\)",
        ),
        (
            lambda: from_edges(g, [[0.0, 1.0]]),
            pf.InvalidPolicy,
            "edges must be integers, got dtype float64",
        ),
        (lambda: from_edges(g, [["a", "b"]]), pf.InvalidPolicy, "edges must be integers"),
        (lambda: G.with_edges([[1, 9]]), pf.InvalidPolicy, r"edge 0 = \[1, 9\] leaves"),
        (lambda: G.with_edges([[2, 2]]), pf.InvalidPolicy, "edge 0 joins location 2 to itself"),
        (lambda: G.has_edges([[0, 6]]), pf.InvalidPolicy, r"edge 0 = \[0, 6\] leaves"),
        (
            lambda: from_scipy(g, np.eye(5)),
            pf.InvalidPolicy,
            "the matrix is 5 x 5, but there are 6 locations: it must be 6 x 6",
        ),
        (lambda: from_scipy(g, np.ones((6, 5))), pf.InvalidPolicy, "the matrix is 6 x 5"),
        (lambda: from_scipy(g, np.ones(6)), pf.InvalidPolicy, "matrix"),
        (lambda: from_scipy(g, np.ones((2, 2, 2))), pf.InvalidPolicy, "matrix"),
        (lambda: from_scipy(g, "ring"), pf.InvalidPolicy, "matrix"),
        (
            lambda: from_scipy(g, matrix_with((1, 2))),
            pf.InvalidPolicy,
            r"entry \(1, 2\) has no mirror image \(2, 1\)",
        ),
        (
            lambda: from_scipy(g, matrix_with((0, 1), (1, 0), (5, 0))),
            pf.InvalidPolicy,
            r"entry \(5, 0\) has no mirror image",
        ),
        (
            lambda: from_scipy(g, matrix_with((4, 4))),
            pf.InvalidPolicy,
            r"entry \(4, 4\) joins a location to itself",
        ),
        (lambda: pf.blocks(g, 0), pf.InvalidParameter, "k must be an integer at least 1, got 0"),
        (lambda: pf.blocks(g, 2.0), pf.InvalidParameter, "k must be an integer, got 2.0"),
        (
            lambda: pf.blocks(points, 2),
            pf.InvalidPolicy,
            r"blocks needs a Grid, got Points.* use complete",
        ),
        (lambda: pf.neighbours8(points), pf.InvalidPolicy, "neighbours8 needs a Grid"),
        (
            lambda: pf.categories(g, [0, 1]),
            pf.InvalidPolicy,
            r"shape \(2,\): give one integer for each of the 6 locations",
        ),
        (
            lambda: pf.categories(g, np.zeros((2, 3), int)),
            pf.InvalidPolicy,
            r"labels has shape \(2, 3\)",
        ),
        (
            lambda: pf.categories(g, [0, 0, 0, 0, -2, 0]),
            pf.InvalidPolicy,
            r"labels\[4\] = -2: categories are 0, 1, ",
        ),
        (
            lambda: pf.categories(g, [0.0] * 6),
            pf.InvalidPolicy,
            "labels must be integers, got dtype float64",
        ),
        (
            lambda: pf.categories(g, [0] * 6, 0),
            pf.InvalidParameter,
            "block must be an integer at least 1, got 0",
        ),
        (
            lambda: pf.categories(points, [0, 0], -1.0),
            pf.InvalidParameter,
            "block must be a finite number above 0, got -1.0",
        ),
        (
            lambda: pf.complete(g, [0, 6]),
            pf.InvalidPolicy,
            r"cells\[1\] = 6 is not one of the 6 locations",
        ),
        (lambda: pf.complete(g, [0.5]), pf.InvalidPolicy, "cells must be integers"),
        (lambda: G.neighbours(6), pf.InvalidLocation, "= 6 is not one of the 6 locations"),
        (
            lambda: G.neighbours([0]),
            pf.InvalidLocation,
            r"s must be one location, got an array of shape \(1,\)",
        ),
        (lambda: G.component(-1), pf.InvalidLocation, "= -1 is not one of the 6 locations"),
        (lambda: G.component(0.0), pf.InvalidLocation, "s must be integers"),
        (
            lambda: G.distance([0, 1], [0, 1, 2]),
            pf.InvalidPolicy,
            "a and b must be equally long, got 2 and 3",
        ),
        (lambda: G.distance(0, 6), pf.InvalidLocation, r"b\[0\] = 6 is not one of"),
        (
            lambda: G & pf.blocks(pf.Grid(2, 2), 2),
            pf.InvalidPolicy,
            "the policies are over different maps: 6 and 4 locations",
        ),
        # as many locations, other places
        (lambda: G & pf.blocks(pf.Grid(3, 2), 2), pf.InvalidPolicy, "map"),
        (
            lambda: G.constrain(pf.Domain(pf.Grid(2, 2), [0])),
            pf.InvalidPolicy,
            "the domain and the policy are over different maps: 4 and 6 locations",
        ),
        (lambda: G.constrain(pf.Domain(pf.Grid(3, 2), [0])), pf.InvalidPolicy, "map"),
        (lambda: G.constrain([0, 1]), pf.PGLPError, "Domain"),
    ],
)
def test_refused(call, kind, match):
    with pytest.raises(kind, match=match) as caught:
        call()
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)


def test_equal_means_the_same_map():
    assert pf.blocks(pf.Grid(2, 3), 3) == pf.blocks(pf.Grid(2, 3), 3)
    assert pf.complete(pf.Grid(2, 3)) != pf.complete(pf.Grid(3, 2))
    assert pf.complete(pf.Grid(2, 3)) != pf.complete(pf.Grid(2, 4), range(6))
    assert pf.complete(pf.Grid(2, 3)) != {(0, 1)}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array])
def test_an_edge_is_there_or_not(form, bad):
    matrix = np.zeros((4, 4))
    matrix[1, 2] = matrix[2, 1] = bad
    with pytest.raises(pf.InvalidPolicy, match=r"entry \(1, 2\) is"):
        pf.PolicyGraph.from_scipy(pf.Grid(2, 2), form(matrix))


def test_small_integers_do_not_wrap_when_duplicates_are_added():
    """Four times 64 in int8 is 0: the edge used to vanish."""
    at = np.array([0, 1] * 4), np.array([1, 0] * 4)
    matrix = sp.coo_array((np.full(8, 64, np.int8), at), shape=(4, 4))
    assert pf.PolicyGraph.from_scipy(pf.Grid(2, 2), matrix).edges().tolist() == [[0, 1]]
