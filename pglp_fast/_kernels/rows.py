"""Growing arrays. Plain loops: assigning to a slice makes the compiler build broadcasting errors for seconds."""

import numpy as np

from .jit import kernel


@kernel
def copy_rows(source, n, target, at):
    """target[at : at + n, :w] = source[:n, :w] for the width w that both have."""
    width = min(source.shape[1], target.shape[1])
    for i in range(n):
        for j in range(width):
            target[at + i, j] = source[i, j]


@kernel
def append_rows(pool, used, rows, n):
    """rows[:n] after pool[:used]; returns (pool, used), for a full pool moves."""
    if used + n > pool.shape[0]:
        larger = np.empty((2 * (used + n), pool.shape[1]), pool.dtype)
        copy_rows(pool, used, larger, 0)
        pool = larger
    copy_rows(rows, n, pool, used)
    return pool, used + n
