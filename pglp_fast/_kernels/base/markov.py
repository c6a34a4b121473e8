"""Products p M of a distribution with a row-stochastic matrix, dense and sparse."""

from collections import namedtuple

import numpy as np

from .bits import clear_cells, list_cells, popcount, set1, sort_cells, test1
from .jit import bare, kernel

Chain = namedtuple("Chain", "indptr indices data")  # a row-stochastic matrix in CSR


@kernel
def gather(indptr, indices, data, p, start, stop, out):
    """out[j] = sum_i p[i] M[i, j] for j in start..stop-1.

    The arrays are those of M's transpose, so that every sum is read in one run."""
    for j in range(start, stop):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            total += p[indices[e]] * data[e]
        out[j] = total


@kernel
def transpose(A, start, stop, out):
    """out[i] = A[:, i] for i in start..stop-1, in tiles that fit the cache."""
    for i0 in range(start, stop, 32):
        for u0 in range(0, A.shape[0], 32):
            for u in range(u0, min(u0 + 32, A.shape[0])):
                for i in range(i0, min(i0 + 32, stop)):
                    out[i, u] = A[u, i]


@kernel
def gather_batch(indptr, indices, data, P, start, stop, out):
    """``gather`` for the columns of P (N, users).

    One pass over M serves them all, and the innermost loop is over users."""
    users = P.shape[1]
    for j in range(start, stop):
        for u in range(users):
            out[j, u] = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            i, m = indices[e], data[e]
            for u in range(users):
                out[j, u] += P[i, u] * m


@bare
def scatter(indptr, indices, data, cells, p, words, sums, out):
    """p M for a sparse p: targets ascending in ``out``, their values in ``sums[target]``.

    ``words`` is an empty bitmask; on return it holds the targets. Returns how many there are."""
    n = 0
    for k in range(cells.shape[0]):
        i, mass = np.uint32(cells[k]), p[k]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j, value = np.uint32(indices[e]), mass * data[e]
            if test1(words, j):
                sums[j] += value
            else:
                set1(words, j)
                sums[j] = value
                out[n] = j
                n += 1
    sort_cells(words, out, n)
    return n


@kernel
def scatter_dense(indptr, indices, data, cells, p, words, sums, out):
    """``scatter`` for a p that is nearly everywhere.

    The bitmask is consulted for products that underflow only, not for each move."""
    n = sums.shape[0]
    for j in range(n):
        sums[j] = 0.0
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(indptr[i], indptr[i + 1]):
            value = p[k] * data[e]
            sums[indices[e]] += value
            if value == 0.0:
                set1(words, indices[e])
    for w in range(words.shape[0]):
        word, first = words[w], w << 6
        for bit in range(min(64, n - first)):  # no branch: which bits are set, nobody can predict
            word |= np.uint64(sums[first + bit] > 0.0) << np.uint64(bit)
        words[w] = word
    list_cells(words, out)
    return popcount(words)


@kernel
def _room(indptr, cells, p):
    """How many targets there are at most, or -1: a cell is not on the map, or a p not finite."""
    room = 0
    for k in range(cells.shape[0]):
        i = cells[k]
        if not (0 <= i < indptr.shape[0] - 1 and np.isfinite(p[k])):
            return -1
        room += indptr[i + 1] - indptr[i]
    return room


@kernel
def forward_sparse(indptr, indices, data, cells, p, words, sums):
    """p M for a sparse p as (cells, probabilities); the work space is left as it was.

    Nothing, for cells that are not on the map and a p that is not finite: looking at them here
    costs next to nothing, and any cell of the map has targets."""
    room = max(_room(indptr, cells, p), 0)
    if room == 0:
        return np.empty(0, np.int32), np.empty(0)
    out = np.empty(min(room, indptr.shape[0] - 1), np.int32)
    n = scatter(indptr, indices, data, cells, p, words, sums, out)
    values = np.empty(n)
    for k in range(n):
        values[k] = sums[out[k]]
    clear_cells(words, out, n)
    return out[:n], values


@kernel
def sum_down(order, before, step, out):
    """out[v] = sum of ``step`` along the path from the root of a tree to v.

    Parents come before their children in ``order``."""
    for k in range(1, order.shape[0]):
        out[order[k]] = out[before[order[k]]] + step[order[k]]
