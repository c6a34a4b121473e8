"""Alias rows of integer weights: what releases are drawn from.

A row of weights sums to TOTAL = 2**63. Its alias row keeps them exactly (Walker's method, Vose's
construction): 2**b columns of 2**(63-b) each, column c gives its first ``cut[c]`` to output c and
the rest to output ``alias[c]``."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel

TOTAL = 2**63
_ZERO = np.uint64(0)
_TO_UNIT = 2.0**-53  # the step of a float64 just below 1

# Alias rows of shapes: that of place p of a shape starts at offset[shape] + p * 2**bits[shape] and
# has 2**bits[shape] columns. An offset of -1: the shape has none.
AliasTables = namedtuple("AliasTables", "bits offset cut alias")


@bare
def column_bits(k):
    """b with 2**b >= k columns, at least one bit."""
    b = 1
    while (1 << b) < k:
        b += 1
    return b


@kernel
def build_alias(weights, bits, cut, alias):
    """Vose's construction in integers, exact: every column ends with its full capacity."""
    columns = 1 << bits
    capacity = np.uint64(1) << np.uint64(63 - bits)
    left = np.zeros(columns, np.uint64)
    for c in range(weights.shape[0]):
        left[c] = weights[c]
    small, large = np.empty(columns, np.int64), np.empty(columns, np.int64)
    n_small = n_large = 0
    for c in range(columns):
        if left[c] < capacity:
            small[n_small] = c
            n_small += 1
        else:
            large[n_large] = c
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        c, d = small[n_small], large[n_large - 1]
        cut[c], alias[c] = left[c], d
        left[d] -= capacity - left[c]
        if left[d] < capacity:
            n_large -= 1
            small[n_small] = d
            n_small += 1
    for i in range(n_large):
        cut[large[i]], alias[large[i]] = capacity, large[i]
    for i in range(n_small):  # only reached when capacities are met exactly
        cut[small[i]], alias[small[i]] = capacity, small[i]


@bare
def read_alias(cut, alias, bits, weights):
    """The weights that an alias row really samples."""
    capacity = np.uint64(1) << np.uint64(63 - bits)
    for c in range(weights.shape[0]):
        weights[c] = _ZERO
    for c in range(1 << bits):
        if cut[c] > _ZERO:
            weights[c] += cut[c]
        if cut[c] < capacity:
            weights[alias[c]] += capacity - cut[c]


@bare
def pick(word, cut, alias, start, bits):
    """The output that a 64-bit random word selects from the alias row at ``start``: top bits the
    column, the next the cut."""
    bits = np.uint64(bits)
    column, rest = word >> (np.uint64(64) - bits), (word << bits) >> (bits + np.uint64(1))
    at = np.uint64(start) + column
    other = np.int64(alias[at])  # read before the choice: no branch to mispredict
    return np.int64(column) if rest < cut[at] else other


@bare
def unit(word):
    """A number in (0, 1) of a 64-bit random word: the middle of one of 2**53 equal steps."""
    return min((np.float64(word >> np.uint64(11)) + 0.5) * _TO_UNIT, 1.0 - _TO_UNIT)


@kernel
def read_rows(tables, shape, W):
    """Weights of all rows of a shape, read back from what is sampled.

    Returns whether they make sense: no row may release a place that is not one of the shape's."""
    columns, k = 1 << tables.bits[shape], W.shape[0]
    wide = np.empty(columns, np.uint64)
    for s in range(k):
        at = tables.offset[shape] + s * columns
        cut, alias = tables.cut[at : at + columns], tables.alias[at : at + columns]
        for c in range(columns):
            if not 0 <= alias[c] < columns:
                return False
        read_alias(cut, alias, tables.bits[shape], wide)
        for c in range(k):
            W[s, c] = wide[c]
        for c in range(k, columns):
            if wide[c] > _ZERO:
                return False
    return True
