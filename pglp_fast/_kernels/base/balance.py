"""Detailed balance of a Markov chain."""

import numpy as np

from .jit import kernel


@kernel
def is_balanced(indptr, indices, data, p, share):
    """Whether as many go from i to j as from j to i: p_i M_ij = p_j M_ji for all pairs, up to this
    share of the largest flow. Rows are sorted."""
    most = apart = 0.0
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            first, end = indptr[j], indptr[j + 1]
            back = first + np.searchsorted(indices[first:end], i)
            if back == end or indices[back] != i:
                return False
            flow = p[i] * data[e]
            most = max(most, flow)
            apart = max(apart, abs(p[j] * data[back] - flow))
    return apart <= share * most
