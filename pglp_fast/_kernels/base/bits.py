"""Bitmasks: location i is bit ``i & 63`` of word ``i >> 6``; bits past the last location stay zero.

Every bit constant is typed ``np.uint64``: a jitted expression that mixes int64 and uint64 turns
into float64."""

import numpy as np

from .jit import bare, kernel
from .sorting import insert, sort_in_place

_ONE = np.uint64(1)
_SIX, _LOW = np.uint64(6), np.uint64(63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_MUL = np.uint64(0x0101010101010101)
_FEW = 12  # cells that are sorted by insertion


@bare
def popcount1(word):
    """Number of set bits of one word (the SWAR sum, which LLVM turns into one instruction)."""
    word = word - ((word >> _ONE) & _M1)
    word = (word & _M2) + ((word >> np.uint64(2)) & _M2)
    word = (word + (word >> np.uint64(4))) & _M4
    return np.int64((word * _MUL) >> np.uint64(56))


@bare
def lowest1(word):
    """Position of the lowest set bit; 64 for a zero word."""
    return popcount1((word & (~word + _ONE)) - _ONE)


@bare
def highest1(word):
    """Position of the highest set bit; -1 for a zero word."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return popcount1(word) - 1


@bare
def test1(words, i):
    at = np.uint64(i)  # unsigned: no index is asked whether it counts from the end
    return (words[at >> _SIX] >> (at & _LOW)) & _ONE != np.uint64(0)


@bare
def set1(words, i):
    at = np.uint64(i)
    words[at >> _SIX] |= _ONE << (at & _LOW)


@kernel
def _from(i):
    """Bits i and above of a word."""
    return _ALL << np.uint64(i)


@kernel
def _upto(i):
    """Bits 0..i of a word."""
    return _ALL >> np.uint64(63 - i)


@bare
def set_cells(words, cells):
    for cell in cells:
        set1(words, cell)


@kernel
def test_cells(words, cells, out):
    for i in range(cells.shape[0]):
        out[i] = test1(words, cells[i])


@kernel
def first_repeat(values, words):
    """Position of the first value that occurred before, or -1; ``words`` starts empty."""
    for i in range(values.shape[0]):
        if test1(words, values[i]):
            return i
        set1(words, values[i])
    return -1


@kernel
def popcount(words):
    total = 0
    for word in words:
        total += popcount1(word)
    return total


@bare
def _list_words(words, first, last, out):
    """Write the set positions of words first..last, ascending; returns how many."""
    n = 0
    for w in range(first, last + 1):
        word = words[w]
        while word != np.uint64(0):
            out[n] = (w << 6) + lowest1(word)
            n += 1
            word &= word - _ONE
    return n


@bare
def list_cells(words, out):
    """Write the set positions, ascending, to ``out`` (of length ``popcount``)."""
    _list_words(words, 0, words.shape[0] - 1, out)


@kernel
def _clipped(words, w, start, stop):
    """Word w, without the bits outside positions start..stop-1."""
    word = words[w]
    if w == start >> 6:
        word &= _from(start & 63)
    if w == (stop - 1) >> 6:
        word &= _upto((stop - 1) & 63)
    return word


@kernel
def first_in_span(words, start, stop):
    """Lowest set position in start..stop-1, or -1: a row of a grid is one span."""
    if start < stop:
        for w in range(start >> 6, (stop + 63) >> 6):
            word = _clipped(words, w, start, stop)
            if word != np.uint64(0):
                return (w << 6) + lowest1(word)
    return -1


@kernel
def last_in_span(words, start, stop):
    """Highest set position in start..stop-1, or -1."""
    if start < stop:
        for w in range((stop - 1) >> 6, (start >> 6) - 1, -1):
            word = _clipped(words, w, start, stop)
            if word != np.uint64(0):
                return (w << 6) + highest1(word)
    return -1


@kernel
def window(words, start):
    """64 bits from position ``start`` on; what lies past the last word is arbitrary."""
    w, shift = start >> 6, np.uint64(start & 63)
    above = words[min(w + 1, words.shape[0] - 1)]
    return (words[w] >> shift) | ((above << _ONE) << (np.uint64(63) - shift))


@kernel
def any_in_span(words, start, stop):
    """Whether any of positions start..stop-1 is set; most spans are within one word or two."""
    if start >= stop:
        return False
    first, last = start >> 6, (stop - 1) >> 6
    head, tail = words[first] & _from(start & 63), _upto((stop - 1) & 63)
    if first == last:
        return head & tail != np.uint64(0)
    if (head | (words[last] & tail)) != np.uint64(0):
        return True
    for w in range(first + 1, last):
        if words[w] != np.uint64(0):
            return True
    return False


@bare
def sort_cells(words, cells, n):
    """Sort the n cells that ``words`` holds: by the bitmask where they lie close together, as on a
    map they do."""
    if n <= _FEW:
        insert(cells, 0, n)
        return
    low = high = cells[0]
    for k in range(1, n):
        low, high = min(low, cells[k]), max(high, cells[k])
    first, last = low >> 6, high >> 6
    if last - first <= n << 3:
        _list_words(words, first, last, cells)
    else:
        sort_in_place(cells, n)


@bare
def clear_cells(words, cells, n):
    """Empty a bitmask of its cells."""
    for k in range(n):
        words[np.uint64(cells[k]) >> _SIX] = np.uint64(0)
