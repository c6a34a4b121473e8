"""Products p M, dense and sparse, against NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp

from pglp_fast._kernels.base import markov

N = 70  # more than a word of a bitmask


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    A = rng.random((N, N)) * (rng.random((N, N)) < 0.1) + np.eye(N) * 0.1
    return A / A.sum(axis=1, keepdims=True)


def csr(A):
    S = sp.csr_matrix(A)
    return S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data


def test_dense(matrix):
    """By columns, in two parts; one distribution and many."""
    rng, columns = np.random.default_rng(1), csr(matrix.T)
    p, P = rng.random(N), rng.random((3, N))
    out, flat, many = np.empty(N), np.empty((N, 3)), np.empty((N, 3))
    for start, stop in (0, 31), (31, N):
        markov.gather(*columns, p, start, stop, out)
        markov.transpose(P, start, stop, flat)
    assert flat.tolist() == P.T.tolist()
    for start, stop in (0, 31), (31, N):
        markov.gather_batch(*columns, flat, start, stop, many)
    assert out == pytest.approx(p @ matrix, rel=1e-13)
    assert pytest.approx(P @ matrix, rel=1e-13) == many.T


@pytest.mark.parametrize("scatter", [markov.scatter, markov.scatter_dense])
@pytest.mark.parametrize("cells", [[], [3], [0, 63, 64, 69], list(range(N))])
def test_sparse(matrix, scatter, cells):
    p, cells = np.random.default_rng(2).random(len(cells)), np.array(cells, np.int64)
    words, sums, out = np.zeros(2, np.uint64), np.full(N, np.nan), np.empty(N, np.int32)
    n = scatter(*csr(matrix), cells, p, words, sums, out)
    expected = p @ matrix[cells]
    targets = sorted({int(j) for i in cells for j in np.flatnonzero(matrix[i])})
    assert out[:n].tolist() == targets
    assert sums[targets] == pytest.approx(expected[targets], rel=1e-13)
    assert sum(int(w) << (64 * k) for k, w in enumerate(words)) == sum(1 << j for j in targets)
    words[:] = 0
    found, values = markov.forward_sparse(*csr(matrix), cells, p, words, np.empty(N))
    assert found.tolist() == targets
    assert values == pytest.approx(expected[targets], rel=1e-13)
    assert not words.any()


@pytest.mark.parametrize("scatter", [markov.scatter, markov.scatter_dense])
def test_what_underflows_is_still_a_target(scatter):
    chain = csr(np.array([[1e-200, 1.0], [0.0, 1.0]]))
    words, sums, out = np.zeros(1, np.uint64), np.empty(2), np.empty(2, np.int32)
    n = scatter(*chain, np.array([0], np.int32), np.array([1e-200]), words, sums, out)
    assert out[:n].tolist() == [0, 1]
    assert sums[0] == 0.0


def test_sums_down_a_tree():
    """2 is the root; 0 and 3 below it, 1 below 3."""
    out, step = np.zeros(4), np.array([5.0, 7.0, 100.0, 2.0])
    markov.sum_down(np.array([2, 0, 3, 1]), np.array([2, 3, -1, 2]), step, out)
    assert out.tolist() == [5.0, 9.0, 0.0, 2.0]
