"""Bitmasks against Python's integers and sets, at the sizes where a word ends."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.base import bits


def test_one_word():
    """Every single bit, every pair with bit 63, none and all: a signed shift or a 32-bit
    constant fails here."""
    words = [
        0,
        2**64 - 1,
        *(1 << i for i in range(64)),
        *((1 << i) | (1 << 63) for i in range(63)),
        0x0123456789ABCDEF,
    ]
    for word in words:
        w = np.uint64(word)
        assert bits.popcount1(w) == word.bit_count()
        assert bits.lowest1(w) == ((word & -word).bit_length() - 1 if word else 64)
        assert bits.highest1(w) == word.bit_length() - 1


@pytest.mark.parametrize("density", [0.02, 0.5, 1.0])
def test_spans(density):
    """Every span of 131 positions: would catch a head or tail mask off by one at a word's end,
    and ``start >= stop``."""
    n = 131
    mask = np.random.default_rng(3).random(n) < density
    words = pf.Domain.from_mask(pf.Grid(1, n), mask).words
    for start in range(0, n + 1):
        for stop in range(max(0, start - 2), n + 1, 1 if start % 63 < 3 else 5):
            inside = [int(i) for i in np.flatnonzero(mask[start:stop]) + start]
            assert bits.first_in_span(words, start, stop) == (inside[0] if inside else -1)
            assert bits.last_in_span(words, start, stop) == (inside[-1] if inside else -1)
            assert bits.any_in_span(words, start, stop) == bool(inside)


def mask_of(cells, n):
    words = np.zeros((n + 63) // 64, np.uint64)
    bits.set_cells(words, np.array(sorted(cells), np.int64))
    return words


@pytest.mark.parametrize("cells", [[], [0], [63], [64], [0, 1, 63, 64, 127, 128], list(range(130))])
def test_cells_in_and_out(cells):
    words = mask_of(cells, 130)
    assert sum(int(w) << (64 * k) for k, w in enumerate(words)) == sum(1 << c for c in cells)
    assert bits.popcount(words) == len(cells)
    out = np.empty(len(cells), np.int64)
    bits.list_cells(words, out)
    assert out.tolist() == cells
    every, inside = np.arange(130), np.empty(130, bool)
    bits.test_cells(words, every, inside)
    assert np.flatnonzero(inside).tolist() == cells
    assert [i for i in range(130) if bits.test1(words, i)] == cells
    bits.set1(words, 77)
    assert bits.popcount(words) == len({*cells, 77})


def test_first_repeat():
    for values, expected in ([], -1), ([5], -1), ([5, 70, 5, 70], 2), ([0, 64, 128], -1):
        found = bits.first_repeat(np.array(values, np.int64), np.zeros(3, np.uint64))
        assert found == expected


def test_window():
    """64 bits from any position, over the end of a word, up to the last one."""
    cells = [0, 5, 62, 63, 64, 65, 100, 127, 128, 190]
    words, whole = mask_of(cells, 192), sum(1 << c for c in cells)
    for start in range(129):
        assert int(bits.window(words, start)) == (whole >> start) % 2**64


@pytest.mark.parametrize("n", [0, 1, 12, 13, 49, 500])
@pytest.mark.parametrize("spread", [1, 3, 2000])
def test_cells_are_sorted_with_the_help_of_their_bitmask(n, spread):
    """Few, close together, and far apart."""
    rng = np.random.default_rng(n)
    cells = (7 + spread * rng.permutation(2 * n)[:n]).astype(np.int32)
    words = np.zeros((7 + spread * 2 * n + 64) // 64, np.uint64)
    bits.set_cells(words, cells)
    wanted = np.sort(cells)
    bits.sort_cells(words, cells, n)
    assert np.array_equal(cells, wanted)
