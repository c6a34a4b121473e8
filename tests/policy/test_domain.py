"""Domains against Python sets, at the sizes where a word ends."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pglp_fast as pf

SIZES = [1, 2, 63, 64, 65, 127, 128, 129]
sizes = pytest.mark.parametrize("n", SIZES)


@st.composite
def two_sets(draw):
    n = draw(st.sampled_from(SIZES))
    cells = st.lists(st.integers(0, n - 1), max_size=2 * n)
    return n, draw(cells), draw(cells)


def same(domain, cells):
    """The domain is this set, by every way of reading it; bits past the last location are zero."""
    n = domain.locations.size
    expected = sorted(cells)
    assert domain.cells().tolist() == list(domain) == expected
    assert domain.cells().dtype == np.int32
    assert len(domain) == len(expected)
    assert np.flatnonzero(domain.mask()).tolist() == expected
    assert domain.words.dtype == np.uint64
    assert domain.words.tolist() == [
        sum(1 << (i & 63) for i in expected if i >> 6 == w) for w in range(-(-n // 64))
    ], "bit i & 63 of word i >> 6"
    return True


@given(two_sets())
def test_operations_are_those_of_sets(sets):
    """Would catch a complement that sets bits past the last location, and a shift that wraps at
    bit 63."""
    n, a, b = sets
    g = pf.Grid(1, n)
    A, B = pf.Domain(g, a), pf.Domain(g, np.array(b, np.int64))
    a, b, everything = set(a), set(b), set(range(n))
    assert same(A, a)
    assert same(A & B, a & b)
    assert same(A | B, a | b)
    assert same(A - B, a - b)
    assert same(~A, everything - a)
    assert ~~A == A
    assert (A == B) == (a == b)
    assert (A != B) == (a != b)
    assert hash(A) == hash(pf.Domain(g, sorted(a)))
    assert same(pf.Domain.from_mask(g, A.mask()), a)
    assert A.contains(range(n)).tolist() == [i in a for i in range(n)]
    assert [i in A for i in range(-1, n + 70)] == [i in a for i in range(-1, n + 70)]


@sizes
def test_full_and_empty(n):
    g = pf.Grid(1, n)
    assert same(pf.Domain.full(g), range(n))
    assert same(pf.Domain(g, []), [])
    assert ~pf.Domain.full(g) == pf.Domain(g, [])
    assert same(pf.Domain(g, n - 1), [n - 1])
    assert same(pf.Domain(g, np.array([0, n - 1, 0], np.uint8)), {0, n - 1})


def test_mask_of_a_grid():
    g = pf.Grid(3, 30)
    mask = np.zeros((3, 30), bool)
    mask[1, 4:7] = mask[2, 29] = True
    assert same(pf.Domain.from_mask(g, mask), [34, 35, 36, 89])
    assert same(pf.Domain.from_mask(g, mask[:, ::-1]), [53, 54, 55, 60])  # not contiguous


def test_contains_one_many_or_none():
    C = pf.Domain(pf.Grid(1, 70), [0, 64, 69])
    assert [C.contains(c).tolist() for c in (64, [64, 65], [])] == [True, [True, False], []]
    assert np.int32(69) in C
    assert np.uint8(65) not in C
    assert all(odd not in C for odd in (70, -1, 2**70, 64.0, "64", None))


def test_domains_are_values():
    """Would catch a domain that shares memory with what it was made from or hands out."""
    g = pf.Grid(1, 70)
    mask = np.zeros(70, bool)
    cells = np.array([1, 66])
    A, B = pf.Domain(g, cells), pf.Domain.from_mask(g, mask)
    cells[0], mask[5] = 9, True
    A.cells()[0] = 7
    A.mask()[8] = True
    C = A
    C |= B
    assert same(A, [1, 66])
    assert same(B, [])
    for D in (A, B, A & B, A | B, ~A, A - B, pf.Domain.full(g)):
        with pytest.raises(ValueError, match="read-only"):
            D.words[0] = 1
    assert {A: "a", B: "b"}[pf.Domain(g, [66, 1])] == "a"


def test_equal_means_the_same_map():
    """Both fit one word with the same bits, but one has 3 locations and the other 5: their
    complements differ."""
    assert pf.Domain(pf.Grid(1, 3), [0]) == pf.Domain(pf.Grid(1, 3), [0])
    assert pf.Domain(pf.Grid(1, 3), [0]) != pf.Domain(pf.Grid(1, 5), [0])
    assert pf.Domain(pf.Grid(1, 3), [0]) != {0}


# Errors

g = pf.Grid(2, 3)
C = pf.Domain(g, [0, 1])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: pf.Domain(g, [0, 6]), r"cells\[1\] = 6 is not one of the 6 locations 0\.\.5"),
        (lambda: pf.Domain(g, -1), "-1 is not one of"),
        (lambda: pf.Domain(g, [0.5]), "cells must be integers, got dtype float64"),
        (
            lambda: pf.Domain(g, [[0, 1]]),
            r"cells must be one number or a 1-d array, got shape \(1, 2\)",
        ),
        (
            lambda: pf.Domain(g, [True] * 6),
            "from_mask",
        ),  # "convert them with astype" would make it cells 0 and 1
        (
            lambda: pf.Domain.from_mask(g, [True] * 5),
            "mask must be 6 booleans, one for each location, got 5",
        ),
        (lambda: pf.Domain.from_mask(g, [1] * 6), "mask must be 6 booleans.*dtype int64"),
        (lambda: C.contains([0, 6]), r"cells\[1\] = 6 is not one of"),
        (lambda: C & pf.Domain(pf.Grid(2, 2), [0]), "different maps"),
        (
            lambda: C | pf.Domain(pf.Grid(3, 2), [0]),
            "different maps",
        ),  # as many locations, other places
        (
            lambda: C - pf.Domain(pf.Points([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [5, 5]]), [0]),
            "different maps",
        ),
    ],
)
def test_refused(call, match):
    with pytest.raises(pf.InvalidDomain, match=match) as caught:
        call()
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)


def test_maps_that_are_equal_are_one_map():
    assert same(C & pf.Domain(pf.Grid(2, 3), [1, 2]), [1])


@pytest.mark.parametrize("other", [{0}, 3, np.ones(6, bool), None])
def test_only_domains_combine(other):
    with pytest.raises((TypeError, pf.InvalidDomain)):
        C & other
