"""Differences of lattice coordinates, in int64: the coordinates themselves are int32."""

import numpy as np

from .jit import bare


@bare
def difference(lattice, i, j):
    """f(j) - f(i) in lattice units, as (columns, rows)."""
    x = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0])
    y = np.int64(lattice[j, 1]) - np.int64(lattice[i, 1])
    return x, y
