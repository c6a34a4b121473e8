"""Colours for the nodes of a graph, so that joined ones differ."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel


@kernel
def greedy(indptr, indices, out):
    """Give each node in turn the lowest colour that no neighbour before it has: at most one more
    than the largest degree."""
    n = out.shape[0]
    widest = 0
    for i in range(n):
        widest = max(widest, indptr[i + 1] - indptr[i])
    taken_by = np.full(widest + 2, -1, np.int64)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] < i:
                taken_by[out[indices[e]]] = i
        colour = 0
        while taken_by[colour] == i:
            colour += 1
        out[i] = colour
