"""Mobility models: what they take, what they learn, and how they move distributions on."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
import sparse

import pglp_fast as pf
from cases import large
from pglp_fast.errors import InvalidLocation, InvalidParameter, InvalidState, InvalidTransition


def transitions(n, seed=0, moves=3.0):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < moves / n) * rng.random((n, n)) + np.diag(rng.random(n) + 0.01)
    return A / A.sum(axis=1, keepdims=True)


def dense(M, period=0):
    return M.matrix(period).toarray()


# What transitions may be


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
def test_scipy_formats(form, kind):
    A = transitions(6)
    M = pf.MobilityModel(pf.Grid(2, 3), kind(A).asformat(form))
    assert dense(M).tolist() == A.tolist()
    assert M.periods == 1
    assert M.matrix().has_sorted_indices


def test_dense_and_lists():
    g, A = pf.Grid(2, 3), transitions(6)
    for given in (A, A.tolist(), np.asfortranarray(A), A[None]):
        assert dense(pf.MobilityModel(g, given)).tolist() == A.tolist()
    assert dense(pf.MobilityModel(g, np.eye(6, dtype=np.int64))).tolist() == np.eye(6).tolist()
    assert (
        dense(pf.MobilityModel(g, scipy.sparse.eye_array(6, dtype=np.int8))).tolist()
        == np.eye(6).tolist()
    )
    single = np.eye(6, dtype=np.float32)
    assert dense(pf.MobilityModel(g, scipy.sparse.csr_array(single))).dtype == np.float64


@pytest.mark.parametrize("kind", [sparse.COO, sparse.GCXS])
def test_sparse_arrays(kind):
    g = pf.Grid(2, 3)
    A = np.stack([transitions(6, k) for k in range(4)])
    M = pf.MobilityModel(g, kind.from_numpy(A))
    assert M.periods == 4
    for k in range(4):
        assert dense(M, k).tolist() == A[k].tolist()
    assert dense(pf.MobilityModel(g, kind.from_numpy(A[1]))).tolist() == A[1].tolist()
    assert pf.MobilityModel(g, A).periods == 4
    with pytest.raises(InvalidTransition, match="got 4 dimensions"):
        pf.MobilityModel(g, kind.from_numpy(A[None]))


def test_periods_of_a_matrix_are_checked():
    M = pf.MobilityModel(pf.Grid(2, 3), np.stack([np.eye(6)] * 2))
    for period in (2, -1, 0.5):
        with pytest.raises(InvalidParameter, match="period must be an integer"):
            M.matrix(period)
        with pytest.raises(InvalidParameter, match="period must be an integer"):
            M.forward(np.full(6, 1 / 6), period=period)
        with pytest.raises(InvalidParameter, match="period must be an integer"):
            M.forward_sparse([0], [1.0], period=period)


def test_duplicates_add_up_and_zeros_are_no_moves():
    g = pf.Grid(1, 3)
    A = scipy.sparse.coo_array(
        ([0.25, 0.25, 0.5, 0.0, 1, 1], ([0, 0, 0, 0, 1, 2], [2, 2, 0, 1, 1, 2])), shape=(3, 3)
    )
    M = pf.MobilityModel(g, A)
    assert dense(M).tolist() == [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]]
    assert M.matrix().nnz == 4  # 0 -> 1 does not exist


def test_tiny_entries_are_moves():
    M = pf.MobilityModel(pf.Grid(1, 2), [[1.0, 5e-324], [0.0, 1.0]])
    assert M.matrix().nnz == 3
    cells, _ = M.forward_sparse([0], [1.0])
    assert cells.tolist() == [0, 1]


def test_given_matrix_is_left_alone():
    g = pf.Grid(1, 3)
    parts = np.array([0.5, 0.0, 0.5, 1.0, 1.0]), np.array([1, 2, 0, 1, 2]), np.array([0, 3, 4, 5])
    A = scipy.sparse.csr_array(tuple(p.copy() for p in parts), shape=(3, 3))
    M = pf.MobilityModel(g, A)
    for given, was in zip((A.data, A.indices, A.indptr), parts, strict=True):
        assert given.tolist() == was.tolist()
    A.data[:] = 7
    assert dense(M).tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]]


def test_read_only_matrix():
    """As out of a memory map: unsorted rows may not be sorted where they lie."""
    A = scipy.sparse.csr_array(
        (np.array([0.5, 0.5, 1.0, 1.0]), np.array([1, 0, 1, 2]), np.array([0, 2, 3, 4])),
        shape=(3, 3),
    )
    for array in (A.data, A.indices, A.indptr):
        array.flags.writeable = False
    assert dense(pf.MobilityModel(pf.Grid(1, 3), A))[0].tolist() == [0.5, 0.5, 0]


def spoilt(row, col, value, n=4):
    A = np.eye(n)
    A[row, col] = value
    return A


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.eye(3), "the matrix is 3 x 3, but there are 4 locations: it must be 4 x 4"),
        (np.ones((4, 3)), "the matrix is 4 x 3"),
        (np.eye(4)[0], "got 1 dimensions"),
        (np.ones((1, 1, 4, 4)), "got 4 dimensions"),
        (spoilt(2, 3, 0.5), "row 2 sums to 1.5, not 1: divide it by its sum"),
        (spoilt(3, 3, 0.0), "row 3 sums to 0, not 1: give it an entry, or pass unseen='stay'"),
        (
            spoilt(1, 2, -0.25),
            r"entry \(1, 2\) is -0.25: probabilities are finite and not negative",
        ),
        (spoilt(1, 2, np.nan), r"entry \(1, 2\) is nan"),
        (spoilt(3, 0, np.inf), r"entry \(3, 0\) is inf"),
        (np.stack([np.eye(4), spoilt(2, 3, 0.5)]), "row 2 of period 1 sums to 1.5"),
        (np.stack([np.eye(4), spoilt(2, 3, -1.0)]), r"entry \(2, 3\) of period 1 is -1"),
        (np.ones((2, 3, 3)), "the matrix of period 0 is 3 x 3"),
    ],
)
def test_bad_transitions(given, message):
    g = pf.Grid(2, 2)
    with pytest.raises(InvalidTransition, match=message):
        pf.MobilityModel(g, given)
    if given.ndim == 2:
        with pytest.raises(InvalidTransition, match=message):
            pf.MobilityModel(g, scipy.sparse.coo_array(given))
    if given.ndim in (2, 3):
        with pytest.raises(InvalidTransition, match=message):
            pf.MobilityModel(g, sparse.COO.from_numpy(given))


def test_row_sums_within_rounding():
    g = pf.Grid(2, 2)
    pf.MobilityModel(g, spoilt(1, 1, 1 + 1e-10))
    with pytest.raises(InvalidTransition, match="row 1 sums to"):
        pf.MobilityModel(g, spoilt(1, 1, 1 + 1e-8))


def test_unseen_rows():
    g = pf.Grid(2, 2)
    A = spoilt(3, 3, 0.0)
    assert dense(pf.MobilityModel(g, A, unseen="stay")).tolist() == np.eye(4).tolist()
    with pytest.raises(InvalidTransition, match="row 2 sums to"):  # seen, and wrong
        pf.MobilityModel(g, A - 0.5 * spoilt(3, 3, 0.0) * (np.arange(4) == 2), unseen="stay")
    with pytest.raises(InvalidParameter, match="unseen must be one of 'error', 'stay'"):
        pf.MobilityModel(g, A, unseen="uniform")


def test_repr():
    assert "5 moves, periods=1" in repr(
        pf.MobilityModel(pf.Grid(2, 2), [[0.5, 0.5, 0, 0], *np.eye(4)[1:].tolist()])
    )


# Learning


def counted(n, traces, *, minimum_count=1, periods=1, extra=None, fallback=None):
    """Literal counting, one dict for each period; rows without anything get ``fallback(s)``."""
    out = np.zeros((periods, n, n))
    for period in range(periods):
        counts = {}
        for trace in traces:
            for t, (a, b) in enumerate(pairwise(trace)):
                if a >= 0 and b >= 0 and t % periods == period:
                    counts[a, b] = counts.get((a, b), 0) + 1
        counts = {move: c for move, c in counts.items() if c >= minimum_count}
        for s in range(n):
            for b in extra(s) if extra else ():
                counts[s, b] = counts.get((s, b), 0) + 1.0
        for s in range(n):
            row = {b: c for (a, b), c in counts.items() if a == s}
            if not row:
                row = dict.fromkeys(fallback(s) if fallback else [s], 1.0)
            for b, c in row.items():
                out[period, s, b] = c / sum(row.values())
    return out


def around(rows, cols):
    def cells(s):
        row, col = divmod(s, cols)
        return [
            r * cols + c
            for r in range(rows)
            for c in range(cols)
            if abs(r - row) <= 1 and abs(c - col) <= 1
        ]

    return cells


@pytest.mark.parametrize("minimum_count", [1, 2, 4])
@pytest.mark.parametrize("periods", [1, 3])
def test_fit_counts(minimum_count, periods):
    rng = np.random.default_rng(minimum_count)
    g = pf.Grid(3, 4)
    traces = rng.integers(-1, 12, (30, 25))
    expected = counted(12, traces.tolist(), minimum_count=minimum_count, periods=periods)
    M = pf.MobilityModel.fit(g, traces, minimum_count=minimum_count, periods=periods)
    assert M.periods == periods
    for k in range(periods):
        assert np.abs(dense(M, k) - expected[k]).max() < 1e-14
        assert ((dense(M, k) > 0) == (expected[k] > 0)).all()  # no impossible move is made possible
        assert M.matrix(k).nnz == (expected[k] > 0).sum()
    ragged = [row[: rng.integers(0, 26)] for row in traces]
    M = pf.MobilityModel.fit(g, ragged, minimum_count=minimum_count, periods=periods)
    expected = counted(
        12, [r.tolist() for r in ragged], minimum_count=minimum_count, periods=periods
    )
    for k in range(periods):
        assert np.abs(dense(M, k) - expected[k]).max() < 1e-14


def test_fit_takes_lists_and_any_integers():
    g = pf.Grid(1, 4)
    traces = [[0, 1, 1, -1, 2], [3, 3, 0, 1, 2]]
    expected = dense(pf.MobilityModel.fit(g, np.array(traces)))
    for given in (
        traces,
        tuple(traces),
        [np.array(t, np.int8) for t in traces],
        np.array(traces, np.int16),
        np.asfortranarray(traces),
    ):
        assert dense(pf.MobilityModel.fit(g, given)).tolist() == expected.tolist()
    assert expected[0].tolist() == [0, 1, 0, 0]
    assert expected[1].tolist() == [0, 0.5, 0.5, 0]
    assert expected[2].tolist() == [
        0,
        0,
        1,
        0,
    ]  # 1, -1, 2 is no move, and 2 was never left: it stays
    assert expected[3].tolist() == [0.5, 0, 0, 0.5]


@pytest.mark.parametrize(
    "given",
    [
        np.empty((3, 1), int) * 0,
        [[1], []],
        [[-1, -1]],
    ],
)
def test_fit_of_no_moves_stays(given):
    assert dense(pf.MobilityModel.fit(pf.Grid(1, 3), given)).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("given", [[], np.empty((0, 5), int), np.empty((3, 0), int)])
def test_fit_of_no_traces_is_refused(given):
    with pytest.raises(InvalidTransition, match="no traces to fit"):
        pf.MobilityModel.fit(pf.Grid(1, 3), given)


def test_fit_of_one_trace():
    """One trace alone is a trace, or an error that says what to give; never a model that has
    learnt nothing."""
    g = pf.Grid(1, 3)
    try:
        M = pf.MobilityModel.fit(g, np.array([0, 1, 2, 1]))
    except ValueError as error:
        assert "trace" in str(error)
    else:
        assert dense(M).tolist() == dense(pf.MobilityModel.fit(g, [[0, 1, 2, 1]])).tolist()


def test_fit_with_smoothing_by_name():
    g = pf.Grid(3, 4)
    traces = np.random.default_rng(0).integers(-1, 12, (4, 10))
    cells = around(3, 4)
    M = pf.MobilityModel.fit(g, traces, smoothing="neighbours8")
    assert np.abs(dense(M) - counted(12, traces.tolist(), extra=cells)[0]).max() < 1e-14
    heavier = pf.MobilityModel.fit(g, traces, smoothing="neighbours8", pseudo_count=1e9)
    for s in range(12):
        assert dense(heavier)[s, cells(s)] == pytest.approx(1 / len(cells(s)), abs=1e-6)
    # pseudo_count alone, without the name, does nothing
    assert (
        dense(pf.MobilityModel.fit(g, traces, pseudo_count=5)).tolist()
        == dense(pf.MobilityModel.fit(g, traces)).tolist()
    )


def test_fit_of_unseen_rows():
    g = pf.Grid(3, 4)
    traces = [[0, 1, 0, 5, 5, 0, 1]]
    cells = around(3, 4)
    stay = pf.MobilityModel.fit(g, traces)
    assert np.abs(dense(stay) - counted(12, traces)[0]).max() < 1e-14
    wander = pf.MobilityModel.fit(g, traces, unseen="neighbours8")
    assert np.abs(dense(wander) - counted(12, traces, fallback=cells)[0]).max() < 1e-14
    # a row whose moves were all too rare is unseen too
    rare = pf.MobilityModel.fit(g, traces, minimum_count=2)
    assert dense(rare)[5].tolist() == np.eye(12)[5].tolist()
    assert dense(rare)[0].tolist() == np.eye(12)[1].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minimum_count": 0}, "minimum_count must be an integer in 1"),
        ({"unseen": "error"}, "unseen must be one of 'stay', 'neighbours8'"),
        ({"smoothing": "laplace"}, "smoothing must be one of 'neighbours8'"),
        (
            {"smoothing": "neighbours8", "pseudo_count": 0},
            "pseudo_count must be a finite number above 0",
        ),
        ({"periods": 0}, r"periods must be an integer in 1\.\.86400"),
    ],
)
def test_fit_bad_options(options, message):
    with pytest.raises(InvalidParameter, match=message):
        pf.MobilityModel.fit(pf.Grid(1, 3), [[0, 1]], **options)


def test_fit_neighbours_need_a_grid():
    p = pf.Points([[0.0, 0.0], [1.0, 0.0]])
    assert dense(pf.MobilityModel.fit(p, [[0, 1]])).tolist() == [[0, 1], [0, 1]]
    for options in ({"smoothing": "neighbours8"}, {"unseen": "neighbours8"}):
        with pytest.raises(InvalidParameter, match="neighbours8 needs a Grid"):
            pf.MobilityModel.fit(p, [[0, 1]], **options)


@pytest.mark.parametrize(
    ("traces", "error", "message"),
    [
        (
            np.array([[0, 1], [0, 3]]),
            InvalidTransition,
            r"trace 1 has 3 at step 1: cells are 0\.\.2, and -1 for missing",
        ),
        ([[0, 1], [0, 1, -2]], InvalidTransition, "trace 1 has -2 at step 2"),
        (np.array([[0.0, 1.0]]), InvalidLocation, "traces must be integers, got dtype float64"),
        ([[True, False]], InvalidLocation, "traces must be integers, got booleans"),
    ],
)
def test_fit_bad_traces(traces, error, message):
    with pytest.raises(error, match=message):
        pf.MobilityModel.fit(pf.Grid(1, 3), traces)


def test_fitted_model_makes_its_own_traces_possible():
    g = pf.Grid(3, 3)
    traces = np.random.default_rng(2).integers(0, 9, (8, 12))
    M = pf.MobilityModel.fit(g, traces)
    T = pf.TraceReleaser(pf.blocks(g, 2), M, epsilon=3.0, rng=1)
    assert not T.run(traces, "point").surrogate.any()


# Moving on


@pytest.mark.parametrize("n", [1, 7, 64, 130])
def test_forward(n):
    g, A = pf.Grid(1, n), transitions(n, n)
    M = pf.MobilityModel(g, A)
    rng = np.random.default_rng(n)
    P = rng.dirichlet(np.ones(n), 5)
    assert np.abs(M.forward(P[0]) - P[0] @ M.matrix()).max() < 1e-15
    assert np.abs(M.forward(P) - P @ M.matrix()).max() < 1e-15
    assert M.forward(P).shape == (5, n)
    assert M.forward(P[:0]).shape == (0, n)
    assert np.abs(M.forward(P[::2]) - P[::2] @ A).max() < 1e-15
    assert np.abs(M.forward(P[0].tolist()) - P[0] @ A).max() < 1e-15
    for u in range(5):
        assert (M.forward(P)[u] == M.forward(P[u])).all()  # one and many alike, bit for bit


def test_forward_by_period():
    A = np.stack([transitions(6, k) for k in range(3)])
    M = pf.MobilityModel(pf.Grid(2, 3), A)
    p = np.random.default_rng(0).dirichlet(np.ones(6))
    for k in (2, 0, 1, 2):
        assert np.abs(M.forward(p, period=k) - p @ A[k]).max() < 1e-15
        cells, values = M.forward_sparse(np.arange(6), p, period=k)
        assert cells.tolist() == np.flatnonzero(A[k].any(axis=0)).tolist()
        assert np.abs(values - (p @ A[k])[cells]).max() < 1e-15


@pytest.mark.parametrize("support", [1, 3, 40, 200])
def test_forward_sparse(support):
    n = 400
    rng = np.random.default_rng(support)
    M = pf.MobilityModel(pf.Grid(20, 20), scipy.sparse.csr_array(transitions(n, 1, 5.0)))
    work = M.workspace()
    for _ in range(4):  # the same workspace again and again
        at = rng.permutation(n)[:support]
        p = rng.dirichlet(np.ones(support))
        full = np.zeros(n)
        full[at] = p
        expected = full @ M.matrix()
        reached = np.flatnonzero(M.matrix()[at].sum(axis=0))
        for workspace in (None, work):
            cells, values = M.forward_sparse(at, p, workspace=workspace)
            assert cells.dtype == np.int32
            assert cells.tolist() == reached.tolist()
            assert np.abs(values - expected[cells]).max() < 1e-15
    assert not work[0].any()


def test_forward_sparse_is_structural():
    """A target exists because a move does, whatever its probability."""
    M = pf.MobilityModel(pf.Grid(1, 3), [[1, 1e-300, 0], [0, 1, 0], [0, 0, 1]])
    cells, values = M.forward_sparse([0, 2], [1e-300, 0.0])
    assert cells.tolist() == [0, 1, 2]
    assert values.tolist() == [1e-300, 0.0, 0.0]
    cells, values = M.forward_sparse([], [])
    assert cells.size == values.size == 0


def test_forward_errors():
    M = pf.MobilityModel(pf.Grid(2, 3), np.eye(6))
    for p in (np.ones(5), np.ones((2, 5)), np.ones((1, 2, 6)), 1.0):
        with pytest.raises(InvalidTransition, match=r"p must have shape \(6,\) or \(users, 6\)"):
            M.forward(p)
    with pytest.raises(
        InvalidTransition, match=r"p has shape .* for 2 cells: give one probability for each"
    ):
        M.forward_sparse([0, 1], [1.0])
    with pytest.raises(InvalidLocation, match=r"cells\[1\] = 6"):
        M.forward_sparse([0, 6], [0.5, 0.5])


@large
def test_forward_on_many_threads():
    n = 90_000
    rng = np.random.default_rng(0)
    A = scipy.sparse.csr_array(
        (np.full(3 * n, 1 / 3), (np.repeat(np.arange(n), 3), rng.integers(0, n, 3 * n))),
        shape=(n, n),
    )
    M = pf.MobilityModel(pf.Grid(300, 300), A)
    P = rng.random((3, n))
    before = pf.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            pf.set_num_threads(threads)
            results.append((M.forward(P[0]).tobytes(), M.forward(P).tobytes()))
    finally:
        pf.set_num_threads(before)
    assert len(set(results)) == 1
    assert np.abs(M.forward(P) - P @ A).max() < 1e-12


# What the chain keeps


def eigenvector(A):
    values, vectors = np.linalg.eig(A.T)
    v = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return v / v.sum()


def test_stationary_of_reversible_chains():
    """Exact, however slowly the chain mixes."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        W = rng.random((n, n)) * (rng.random((n, n)) < 0.5)
        W = W + W.T + np.eye(n) * 0.1 + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
        A = W / W.sum(axis=1, keepdims=True)
        pi = pf.MobilityModel(pf.Grid(1, n), A).stationary()
        assert np.abs(pi - W.sum(axis=1) / W.sum()).max() < 1e-13
        assert np.abs(pi - eigenvector(A)).max() < 1e-12
    n = 300  # a walk along a line mixes in n^2 steps
    A = np.zeros((n, n))
    for s in range(n):
        up, down = (0.3 if s < n - 1 else 0), (0.31 if s else 0)
        A[s, min(s + 1, n - 1)] += up
        A[s, max(s - 1, 0)] += down
        A[s, s] += 1 - up - down
    pi = pf.MobilityModel(pf.Grid(1, n), A).stationary()
    expected = (0.3 / 0.31) ** np.arange(n)
    assert np.abs(pi / (expected / expected.sum()) - 1).max() < 1e-9


def test_stationary_of_other_chains():
    for seed in range(5):
        A = transitions(9, seed, 4.0)
        A = 0.9 * A + 0.1 * np.roll(np.eye(9), 1, axis=1)  # irreducible, not reversible
        pi = pf.MobilityModel(pf.Grid(3, 3), A).stationary()
        assert pi.sum() == pytest.approx(1, abs=1e-14)
        assert np.abs(pi - eigenvector(A)).max() < 1e-10


def grid_chain(rows, cols, seed, periods=1):
    """Moves to the eight neighbours with uneven probabilities: irreducible, not reversible."""
    rng, n = np.random.default_rng(seed), rows * cols
    graph = pf.neighbours8(pf.Grid(rows, cols))
    adjacency = scipy.sparse.csr_matrix(
        (np.ones(len(graph.indices)), graph.indices, graph.indptr), (n, n)
    ) + scipy.sparse.identity(n)
    made = []
    for _ in range(periods):
        A = adjacency.tocsr().copy()
        A.data = rng.exponential(size=A.nnz) ** 2 + 0.01
        made.append(scipy.sparse.csr_matrix(A.multiply(1 / A.sum(axis=1))))
    return made


def by_elimination(A):
    """Stationary distribution in rational numbers where nothing is rounded."""
    flow = [[Fraction(x) for x in row] for row in A]
    n = len(flow)
    for i in range(n):  # rows as float64 holds them need not sum to 1: the rest stays
        flow[i][i] += 1 - sum(flow[i])
    for k in range(n - 1, 0, -1):
        left = sum(flow[k][:k])
        for i in range(k):
            flow[i][k] /= left
            for j in range(k):
                flow[i][j] += flow[i][k] * flow[k][j]
    x = [Fraction(1)]
    for k in range(1, n):
        x.append(sum(x[i] * flow[i][k] for i in range(k)))
    return np.array([float(v / sum(x)) for v in x])


@pytest.mark.parametrize("weak", [1e-3, 1e-9, 1e-13])
def test_stationary_of_a_chain_that_nearly_falls_apart(weak):
    """Two rings joined by rare moves, in one direction twice as rare: mass 2 : 1, exactly. Steps
    of the chain would see it only after 1 / weak of them; elimination with subtractions loses the
    rare moves in rounding."""
    A = np.zeros((6, 6))
    for ring in (0, 3):
        for k in range(3):
            A[ring + k, ring + (k + 1) % 3] = 1.0
    A[0, 1], A[0, 4] = 1 - weak, weak
    A[3, 4], A[3, 1] = 1 - 2 * weak, 2 * weak
    pi = pf.MobilityModel(pf.Grid(2, 3), A).stationary()
    assert np.abs(pi / by_elimination(A) - 1).max() < 1e-3 * weak + 1e-12
    assert pi[:3].sum() == pytest.approx(2 / 3, abs=1e-2)


def censored(A):
    """Stationary distribution by watching the chain on ever fewer states: what leaves a state that
    is no longer watched comes back elsewhere. Least squares would lose slow chains in rounding."""
    A = A.copy()
    for k in range(len(A) - 1, 0, -1):
        A[:k, :k] += A[:k, k, None] * (A[k, :k] / A[k, :k].sum())
        A[:k, k] /= A[k, :k].sum()
    x = np.zeros(len(A))
    x[0] = 1.0
    for k in range(1, len(A)):
        x[k] = x[:k] @ A[:k, k]
    return x / x.sum()


@pytest.mark.parametrize("solved", [0, 10_000])
@pytest.mark.parametrize(("rows", "cols", "periods"), [(30, 30, 1), (3, 200, 1), (15, 15, 3)])
def test_stationary_of_larger_maps(rows, cols, periods, solved, monkeypatch):
    """By aggregation, begun evenly and from a direct solver's answer: the error and not only the
    residual is small. A thousand lazy steps are 1e-2 off on these."""
    monkeypatch.setattr("pglp_fast.adversary.aggregation.SOLVED", solved)
    made = grid_chain(rows, cols, rows + periods, periods)
    model = pf.MobilityModel(
        pf.Grid(rows, cols), made[0] if periods == 1 else np.stack([m.toarray() for m in made])
    )
    day = made[0].toarray()
    for m in made[1:]:
        day = day @ m.toarray()
    assert np.abs(model.stationary() - censored(day)).sum() < 1e-11


def test_stationary_of_a_map_that_nearly_falls_apart():
    """Two halves with a bridge of 1e-4, crossed more often one way: cycles that begin evenly stop
    too early there, those that begin at a direct solver's answer do not."""
    A = grid_chain(30, 20, 5)[0].tolil()
    A[:300, 300:], A[300:, :300] = 0, 0
    A[290, 310], A[310, 290] = 3e-4, 1e-4
    A = A.toarray()
    A /= A.sum(axis=1, keepdims=True)
    found = pf.MobilityModel(pf.Grid(30, 20), A).stationary()
    assert np.abs(found - censored(A)).sum() < 1e-11


def test_stationary_of_chains_with_places_that_are_left():
    """Absorbing places, a closed ring, and a slow way to them: shares by first-step analysis, in
    rational numbers. A thousand lazy steps are far off here."""
    n = 12
    A = np.zeros((n, n))
    for s in range(1, 8):  # a walk along 1 .. 7 that ends at 0 or at 8
        A[s, s - 1], A[s, s], A[s, s + 1] = 0.0004, 0.999, 0.0006
    A[0, 0] = 1.0
    for s, to in ((8, 9), (9, 10), (10, 11), (11, 8)):
        A[s, to] = 1.0
    pi = pf.MobilityModel(pf.Grid(3, 4), A).stationary()
    r = Fraction(4, 6)  # of going down against going up: the gambler's ruin
    down = [(r**s - r**8) / (1 - r**8) for s in range(1, 8)]
    left = (1 + sum(down)) / n
    assert pi[0] == pytest.approx(float(left), abs=1e-12)
    assert pi[8:] == pytest.approx([float((1 - left) / 4)] * 4, abs=1e-12)
    assert (pi[1:8] > 0).all() and pi[1:8].sum() < 1e-280


def test_stationary_says_when_it_is_not_there_yet(monkeypatch):
    """More places that are left for ever than a direct solver takes, and too few steps."""
    from pglp_fast.adversary import stationary

    n = 60
    A = np.zeros((n, n))
    for s in range(1, n):
        A[s, s - 1], A[s, s] = 0.01, 0.99
    A[0, 0] = 1.0
    model = pf.MobilityModel(pf.Grid(1, n), A)
    monkeypatch.setattr(stationary, "SOLVED", 10)
    with pytest.warns(RuntimeWarning, match="off in L1"):
        model.stationary(steps=50)
    assert model.stationary(steps=20_000)[0] == pytest.approx(1.0, abs=1e-12)


def test_stationary_is_worked_out_once(monkeypatch):
    from pglp_fast.adversary import mobility

    model = pf.MobilityModel(pf.Grid(5, 5), grid_chain(5, 5, 1)[0])
    first = model.stationary()
    monkeypatch.setattr(mobility, "stationary_distribution", None)
    again = model.stationary()
    assert np.array_equal(first, again)
    again[:] = 0.0  # the caller's own
    assert np.array_equal(model.stationary(), first)


def test_stationary_of_periodic_chains():
    ring = np.roll(np.eye(6), 1, axis=1)
    assert np.abs(pf.MobilityModel(pf.Grid(2, 3), ring).stationary() - 1 / 6).max() < 1e-12
    swap = np.array([[0, 1.0], [1, 0]])
    assert np.abs(pf.MobilityModel(pf.Grid(1, 2), swap).stationary() - 0.5).max() < 1e-12
    # period 3, and not even: 0 -> {1, 2} -> 3 -> 0
    A = np.array([[0, 0.25, 0.75, 0], [0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]])
    assert (
        np.abs(pf.MobilityModel(pf.Grid(2, 2), A).stationary() - np.array([4, 1, 3, 4]) / 12).max()
        < 1e-10
    )


def test_stationary_of_chains_in_parts():
    """Closed parts keep the mass they began with."""
    pi = pf.MobilityModel(pf.Grid(1, 5), np.eye(5)).stationary()
    assert pi.tolist() == pytest.approx([0.2] * 5)
    A = np.array([[0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]])
    M = pf.MobilityModel(pf.Grid(2, 2), A)
    pi = M.stationary()
    assert np.abs(pi - [1 / 6, 1 / 3, 1 / 4, 1 / 4]).max() < 1e-10
    # a place that can only be left keeps some mass: the adversary must not call it impossible
    A = np.array([[0, 1.0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert (pf.MobilityModel(pf.Grid(1, 3), A).stationary() > 0).all()


def test_stationary_over_a_day():
    A = np.stack([0.8 * transitions(6, k) + 0.2 / 6 for k in range(3)])
    pi = pf.MobilityModel(pf.Grid(2, 3), A).stationary()
    assert np.abs(pi - eigenvector(A[0] @ A[1] @ A[2])).max() < 1e-10


# Keeping


@pytest.mark.parametrize("periods", [1, 3])
def test_save_and_load(tmp_path, periods):
    g = pf.Grid(2, 3)
    M = pf.MobilityModel(g, np.stack([transitions(6, k) for k in range(periods)]))
    M.save(tmp_path / "m")
    back = pf.MobilityModel.load(g, tmp_path / "m")
    assert back.periods == periods
    for k in range(periods):
        for a, b in zip(M.chains[k], back.chains[k], strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
    p = np.full(6, 1 / 6)
    assert back.forward(p).tobytes() == M.forward(p).tobytes()
    G = pf.blocks(g, 2)
    first, second = (pf.TraceReleaser(G, m, epsilon=1.0, rng=1) for m in (M, back))
    assert first.fingerprint() == second.fingerprint()
    traces = np.array([[0, 1, 2, 3]])
    assert first.run(traces).released.tolist() == second.run(traces).released.tolist()


def test_load_over_another_map(tmp_path):
    pf.MobilityModel(pf.Grid(2, 3), np.eye(6)).save(tmp_path / "m")
    with pytest.raises(InvalidTransition, match="is a model of 6 locations, the map has 8"):
        pf.MobilityModel.load(pf.Grid(2, 4), tmp_path / "m")


@pytest.mark.parametrize(
    "other", [pf.Grid(3, 2), pf.Grid(1, 6), pf.Points(np.arange(12).reshape(6, 2) * 1.0)]
)
def test_load_over_another_map_of_the_same_size(tmp_path, other):
    """Six cells in two rows are not six cells in three."""
    pf.MobilityModel(pf.Grid(2, 3), np.eye(6)).save(tmp_path / "m")
    with pytest.raises((InvalidTransition, InvalidState)):
        pf.MobilityModel.load(other, tmp_path / "m")


def test_periods_from_timestamps():
    """Six-hour periods: the moves of each hour of the day go to, and are taken from, the matrix
    of their part of the day."""
    times = np.array(
        [
            "2026-01-01T00:00",
            "2026-01-01T05:59",
            "2026-01-01T06:00",
            "2026-01-01T23:59:59",
            "1969-12-31T12:00",
        ],
        "datetime64",
    )
    assert pf.day_period(times, 4).tolist() == [0, 0, 1, 3, 2]
    assert pf.day_period([0, 21_599.9, 21_600, 86_400 + 70_000], 4).tolist() == [0, 0, 1, 3]
    assert pf.day_period([str(t) for t in times], 4).tolist() == [0, 0, 1, 3, 2]
    g = pf.Grid(1, 3)
    trace = np.array([0, 1, 2, 1, 0])
    by_time = pf.MobilityModel.fit(
        g, trace[None], periods=4, period_of_step=pf.day_period(times, 4)
    )
    moves = {(0, 0, 1), (0, 1, 2), (1, 2, 1), (3, 1, 0)}
    for period in range(4):
        seen = {
            (period, i, j) for i, j in zip(*by_time.matrix(period).nonzero(), strict=True) if i != j
        }
        assert seen == {m for m in moves if m[0] == period}
    as_list = pf.MobilityModel.fit(g, [trace], periods=4, period_of_step=[pf.day_period(times, 4)])
    for period in range(4):
        assert (as_list.matrix(period) != by_time.matrix(period)).nnz == 0
    assert by_time.period_of(times).tolist() == [0, 0, 1, 3, 2]
    with pytest.raises(InvalidTransition, match="times has an entry that is not a time"):
        pf.day_period(np.array(["NaT"], "datetime64[s]"), 4)
    with pytest.raises(InvalidTransition, match="times must be datetime64 or seconds"):
        pf.day_period(["noon"], 4)
    for wrong in ([1 + 2j], [True], np.array([5], "timedelta64[s]"), b"\xff"):
        with pytest.raises(InvalidTransition, match="times must be datetime64 or seconds"):
            pf.day_period(wrong, 4)  # an imaginary part was dropped, and inf a RuntimeWarning
    with pytest.raises(
        InvalidTransition, match=r"period_of_step must be numbers in 0\.\.3, one for each entry"
    ):
        pf.MobilityModel.fit(g, trace[None], periods=4, period_of_step=[0, 1])
