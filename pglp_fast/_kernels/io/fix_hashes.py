"""Hashes of fixes, by which the same fix is known again."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel


@kernel
def hash_fixes(ms, lat_bits, lon_bits, out):
    """A 64-bit mix of time and place of each row: the finaliser of SplitMix64, word by word."""
    a = np.uint64(0x9E3779B97F4A7C15)
    b, c = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for k in range(len(out)):
        z = a
        for word in (ms[k], lat_bits[k], lon_bits[k]):
            z = (z ^ word) + a
            z = (z ^ (z >> np.uint64(30))) * b
            z = (z ^ (z >> np.uint64(27))) * c
            z = z ^ (z >> np.uint64(31))
        out[k] = z
