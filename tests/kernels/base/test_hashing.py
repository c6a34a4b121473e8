"""Hashes of integers against the same sums in Python's integers."""

import numpy as np

from pglp_fast._kernels.base import hashing

SEED = 0x9E3779B97F4A7C15


def mix(h, value):
    h = (h ^ (value % 2**64)) * SEED % 2**64
    return h ^ (h >> 29)


def test_mix_wraps_as_64_bits_do():
    for h in (0, 1, 2**63, 2**64 - 1):
        for value in (0, 1, 7, 2**31, 2**63 - 1):
            assert int(hashing.mix(np.uint64(h), np.int64(value))) == mix(h, value)


def test_a_row_is_hashed_with_its_length():
    for row in ([], [0], [0, 0], [3, 7, 2**40]):
        expected = len(row)
        for value in row:
            expected = mix(expected, value)
        h = hashing.hash_row(np.array(row, np.int64))
        assert int(h) == expected
        assert hashing.slot_of(np.uint64(h), 16) == expected % 16


def test_small_numbers_spread():
    """Lattice offsets are small: their slots must not be."""
    rows = [np.array([x, y]) for x in range(16) for y in range(16)]
    slots = {hashing.slot_of(np.uint64(hashing.hash_row(row)), 1024) for row in rows}
    assert len(slots) > 200  # 227 are expected of 256 thrown at random
