"""The adversary's forward step: p^- = p^+ M, for dense and for sparse vectors (spec section 7).

A sparse distribution is a list of cells and the logarithms of their probabilities. Which cells are listed is structural:
what transitions exist. A probability that float64 cannot hold is still a logarithm, so no possible location is ever lost
to underflow.
"""

from collections import namedtuple

import numpy as np

from .bits import list_cells, set1, test1
from .jit import kernel

# a row-stochastic matrix in CSR
Chain = namedtuple("Chain", "indptr indices data")

_TINY = 1e-280  # sums below this are done again with logarithms


@kernel
def gather(indptr, indices, data, p, start, stop, out):
    """out[j] = sum_i p[i] M[i, j] for j in start..stop-1.

    the arrays are those of M's transpose, so that every sum is read in one run.
    """
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
    """``gather`` for columns of P (N, users): one pass over M serves them all, and the innermost loop is over users."""
    users = P.shape[1]
    for j in range(start, stop):
        for u in range(users):
            out[j, u] = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            i, m = indices[e], data[e]
            for u in range(users):
                out[j, u] += P[i, u] * m


@kernel
def scatter(indptr, indices, data, cells, p, words, sums, out):
    """p M for a sparse p: targets ascending in ``out``, their values in ``sums[target]``; returns how many.

    ``words`` is an empty bitmask; on return it holds the targets.
    """
    n = 0
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if test1(words, j):
                sums[j] += p[k] * data[e]
            else:
                set1(words, j)
                sums[j] = p[k] * data[e]
                out[n] = j
                n += 1
    sort_cells(words, out, n)
    return n


@kernel
def forward_few(indptr, indices, data, cells, p, words, sums):
    """p M for a sparse p as (cells, probabilities); the work space is left as it was."""
    room = 0
    for i in cells:
        room += indptr[i + 1] - indptr[i]
    out = np.empty(min(room, indptr.shape[0] - 1), np.int32)
    n = scatter(indptr, indices, data, cells, p, words, sums, out)
    values = np.empty(n)
    for k in range(n):
        values[k] = sums[out[k]]
    clear_cells(words, out, n)
    return out[:n], values


@kernel
def _scatter_dense(indptr, indices, data, cells, p, words, sums, out):
    """``scatter`` for a p that is nearly everywhere: no question is asked for each move, only for products that underflow."""
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
    m = 0
    for j in range(n):
        if sums[j] > 0.0:
            set1(words, j)
        out[m] = j
        m += sums[j] > 0.0 or test1(words, j)
    return m


@kernel
def sort_cells(words, cells, n):
    """Sort the n cells that ``words`` holds: by insertion for a few, by the bitmask for very many."""
    if n <= 48:
        for k in range(1, n):
            value, at = cells[k], k
            while at > 0 and cells[at - 1] > value:
                cells[at] = cells[at - 1]
                at -= 1
            cells[at] = value
    elif n > words.shape[0] >> 3:
        list_cells(words, cells)
    else:
        cells[:n].sort()


@kernel
def clear_cells(words, cells, n):
    """Empty a bitmask of its cells."""
    for k in range(n):
        words[cells[k] >> 6] = np.uint64(0)


@kernel
def _relog(chain, cells, logs, sums, flagged):
    """sums[j] = ln sum_i exp(logs_i) M[i, j] for targets whose plain sum underflowed: once more, with logarithms."""
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(chain.indptr[i], chain.indptr[i + 1]):
            j = chain.indices[e]
            if flagged[j]:
                sums[j] = -np.inf
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(chain.indptr[i], chain.indptr[i + 1]):
            j = chain.indices[e]
            if flagged[j]:
                term = logs[k] + np.log(chain.data[e])
                high, low = max(sums[j], term), min(sums[j], term)
                sums[j] = high + np.log1p(np.exp(low - high)) if low > -np.inf else high


@kernel
def forward(chain, cells, logs, words, sums, flagged, p, out_cells, out_logs):
    """ln(p M) of a sparse p given by its logarithms; returns how many targets.

    ``flagged`` (locations) is all False, and left so.
    """
    top = logs.max()
    for k in range(logs.shape[0]):
        p[k] = np.exp(logs[k] - top)
    if cells.shape[0] > sums.shape[0] >> 4:
        n = _scatter_dense(chain.indptr, chain.indices, chain.data, cells, p, words, sums, out_cells)
    else:
        n = scatter(chain.indptr, chain.indices, chain.data, cells, p, words, sums, out_cells)
    tiny = 0
    for k in range(n):
        j = out_cells[k]
        if sums[j] < _TINY:
            flagged[j] = True
            tiny += 1
        else:
            out_logs[k] = np.log(sums[j]) + top
    if tiny > 0:
        _relog(chain, cells, logs, sums, flagged)
        for k in range(n):
            if flagged[out_cells[k]]:
                out_logs[k] = sums[out_cells[k]]
                flagged[out_cells[k]] = False
    return n


@kernel
def normalise(logs):
    """Subtract ln sum exp, in place."""
    top = logs.max()
    total = 0.0
    for k in range(logs.shape[0]):
        total += np.exp(logs[k] - top)
    shift = top + np.log(total)
    for k in range(logs.shape[0]):
        logs[k] -= shift


@kernel
def most_likely(logs, delta):
    """Places of the smallest set of mass >= 1 - delta, largest first, ties to the lower place; ascending."""
    order = np.argsort(-logs, kind="mergesort")
    mass, n = 0.0, 0
    while n < order.shape[0] and mass < 1.0 - delta:
        mass += np.exp(logs[order[n]])
        n += 1
    return np.sort(order[:n])


@kernel
def sum_down(order, before, step, out):
    """out[v] = sum of step along the path from the root to v; parents come before their children in ``order``."""
    for k in range(1, order.shape[0]):
        out[order[k]] = out[before[order[k]]] + step[order[k]]
