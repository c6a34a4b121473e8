"""Growing arrays: a full array moves to one twice as large.

Plain loops: assigning to a slice makes the compiler build broadcasting errors for seconds.
"""

from collections import namedtuple

import numpy as np

from .jit import bare, kernel

Pool = namedtuple("Pool", "values used")  # a one-dimensional array, the first ``used`` in use


@bare
def copy_rows(source, n, target, at):
    """target[at : at + n, :w] = source[:n, :w] for the width w that both have."""
    width = min(source.shape[1], target.shape[1])
    for i in range(n):
        for j in range(width):
            target[at + i, j] = source[i, j]


@kernel
def append_rows(pool, used, rows, n):
    """rows[:n] after pool[:used], both two-dimensional; returns (pool, used)."""
    if used + n > pool.shape[0]:
        larger = np.empty((2 * (used + n), pool.shape[1]), pool.dtype)
        copy_rows(pool, used, larger, 0)
        pool = larger
    copy_rows(rows, n, pool, used)
    return pool, used + n


@kernel
def with_room(pool, used, n):
    """``pool`` with room for n more values after the first ``used``."""
    if used + n <= pool.shape[0]:
        return pool
    larger = np.empty(2 * (used + n), pool.dtype)
    for i in range(used):
        larger[i] = pool[i]
    return larger


@kernel
def append(pool, values):
    """The pool with all values after those in use."""
    used, n = pool.used, values.shape[0]
    grown = with_room(pool.values, used, n)
    for i in range(n):
        grown[used + i] = values[i]
    return Pool(grown, used + n)


@kernel
def append_one(pool, value):
    """The pool with one more value."""
    grown = with_room(pool.values, pool.used, 1)
    grown[pool.used] = value
    return Pool(grown, pool.used + 1)


@kernel
def contents(pool):
    """A copy of the values in use."""
    return pool.values[: pool.used].copy()
