"""Hashes of integers, for tables whose size is a power of two."""

import numpy as np

from .jit import bare

# 2**64 divided by the golden ratio, odd: Fibonacci hashing (Knuth, The Art of Computer
# Programming, volume 3, section 6.4)
SEED = np.uint64(0x9E3779B97F4A7C15)


@bare
def mix(h, value):
    """A hash of the values so far and of one more integer."""
    h = (h ^ np.uint64(value)) * SEED
    return h ^ (h >> np.uint64(29))


@bare
def hash_row(key):
    """Hash of a row of integers."""
    h = np.uint64(key.shape[0])
    for value in key:
        h = mix(h, value)
    return h


@bare
def slot_of(h, size):
    """Where the search for a hash begins in a table of ``size`` slots, a power of two."""
    return np.int64(h & np.uint64(size - 1))
