"""Alias rows against the integer weights that they were made of."""

import numpy as np
import pytest

from pglp_fast._kernels.noise import alias_rows


def test_bits():
    assert [alias_rows.column_bits(k) for k in (1, 2, 3, 4, 5, 8, 9)] == [1, 1, 2, 2, 3, 3, 4]


ROWS = {
    "one": [2**63],
    "even": [2**61] * 4,
    "odd": [2**63 - 5, 2, 0, 3],
    "three": [2**62, 2**61 + 1, 2**61 - 1],
    "nothing first": [0, 0, 2**63],
}


@pytest.mark.parametrize("weights", ROWS.values(), ids=ROWS.keys())
def test_rows_keep_the_weights_exactly(weights):
    bits = alias_rows.column_bits(len(weights))
    cut, to = np.empty(1 << bits, np.uint64), np.empty(1 << bits, np.int32)
    alias_rows.build_alias(np.array(weights, np.uint64), bits, cut, to)
    back = np.empty(1 << bits, np.uint64)
    alias_rows.read_alias(cut, to, bits, back)
    assert back.tolist() == weights + [0] * ((1 << bits) - len(weights))
    assert max(cut.tolist()) <= 2 ** (63 - bits)


def test_words_pick_in_proportion():
    """Every cut of a small row, one word to its left and one to its right."""
    weights, bits = [2**62, 2**61 + 2**40, 2**61 - 2**40], 2
    cut, to = np.empty(4, np.uint64), np.empty(4, np.int32)
    alias_rows.build_alias(np.array(weights, np.uint64), bits, cut, to)
    for column in range(4):
        at = int(cut[column])
        for rest, expected in (at - 1, column), (at, int(to[column])):
            if 0 <= rest < 2**61:
                word = np.uint64((column << 62) | (rest << 1))
                assert alias_rows.pick(word, cut, to, 0, bits) == expected


def test_units_are_inside():
    for word, expected in (0, 2.0**-54), (2**63, 0.5 + 2.0**-54), (2**64 - 1, 1 - 2.0**-53):
        assert alias_rows.unit(np.uint64(word)) == expected


def test_rows_that_release_elsewhere_are_seen():
    bits = np.array([1, 2])
    offset, cut, to = np.array([-1, 0]), np.empty(12, np.uint64), np.empty(12, np.int32)
    tables = alias_rows.AliasTables(bits, offset, cut, to)
    rows = np.array([[2**63, 0, 0], [1, 2**63 - 2, 1], [2**62, 2**61, 2**61]], np.uint64)
    for s in range(3):
        alias_rows.build_alias(rows[s], 2, cut[4 * s : 4 * s + 4], to[4 * s : 4 * s + 4])
    W = np.empty((3, 3), np.uint64)
    assert alias_rows.read_rows(tables, 1, W)
    assert W.tolist() == rows.tolist()
    to[5] = 7
    assert not alias_rows.read_rows(tables, 1, W)
    alias_rows.build_alias(np.array([0, 0, 0, 2**63], np.uint64), 2, cut[:4], to[:4])
    to[5] = 0
    assert not alias_rows.read_rows(tables, 1, W)
