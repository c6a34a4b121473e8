"""Integer weights and their proof against Python's integers and fractions."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from pglp_fast._kernels.noise import integer_weights as kernels
from pglp_fast._kernels.policy.shapes import Protected
from pglp_fast.mechanisms.exp_bound import exp_lower_bound

TOTAL = 2**63


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 20.0, 43.0])
def test_within_is_exact(epsilon):
    """At the last weight that the bound allows, and one above."""
    bound = exp_lower_bound(epsilon)
    exact = Fraction(int(bound.numerator), 2**bound.shift)
    for v in (0, 1, 2, 3, 1000, 2**40 + 1, TOTAL // 3, TOTAL):
        most = math.floor(v * exact)
        for w in {0, most - 1, most, most + 1, TOTAL}:
            if 0 <= w <= TOTAL:
                assert kernels.within(np.uint64(w), np.uint64(v), bound) == (w <= v * exact)


def test_above_all_ratios_any_positive_weight_will_do():
    bound = exp_lower_bound(50.0)
    assert kernels.within(np.uint64(TOTAL), np.uint64(1), bound)
    assert not kernels.within(np.uint64(1), np.uint64(0), bound)
    assert kernels.within(np.uint64(0), np.uint64(0), bound)


def test_mean_rows():
    P = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1.0]])
    out = np.empty((2, 3))
    kernels.mean_rows(P, np.array([0, 0, 1]), out)
    assert out.tolist() == [[0.75, 0.25, 0], [0, 0, 1]]


# places 0, 1, 2 are a clique; 3 is joined to 2; 4 is alone
PROTECTED = Protected(np.array([0, 0, 0, 3, 4]), np.array([[2, 3]]))
PAIRS = [(0, 1), (0, 2), (1, 2), (2, 3)]


def largest_ratio(W):
    return max(
        Fraction(W[i][z], W[j][z])
        for pair in PAIRS
        for i, j in permutations(pair)
        for z in range(len(W))
        if W[i][z] or W[j][z]
    )


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_what_is_proved_holds(epsilon):
    """Probabilities with tiny entries: rounding alone would break their ratios."""
    hops = np.array(
        [[0, 1, 1, 2, 9], [1, 0, 1, 2, 9], [1, 1, 0, 1, 9], [2, 2, 1, 0, 9], [9, 9, 9, 9, 0]]
    )
    P = np.exp(-epsilon / 2 * hops - 30.0 * (hops == 9))
    P /= P.sum(axis=1, keepdims=True)
    W = np.empty((5, 5), np.uint64)
    bound = exp_lower_bound(epsilon)
    kernels.prove_weights(P, PROTECTED, bound, W)
    whole = W.tolist()
    assert [sum(row) for row in whole] == [TOTAL] * 5
    assert np.abs(W / TOTAL - P).sum(axis=1).max() < 2e-6
    assert largest_ratio(whole) <= Fraction(int(bound.numerator), 2**bound.shift)
    worst = np.empty(4)
    assert kernels.check_weights(W, PROTECTED, bound, worst)
    exact = largest_ratio(whole)
    assert worst[0] == pytest.approx(math.log(exact), rel=1e-9, abs=1e-12)
    s, r, z = worst[1:].astype(int)
    assert Fraction(whole[s][z], whole[r][z]) == exact


def test_one_weight_too_many_fails():
    W = np.full((5, 5), TOTAL // 5, np.uint64)
    bound, worst = exp_lower_bound(0.5), np.empty(4)
    assert kernels.check_weights(W, PROTECTED, bound, worst)
    assert worst[0] == 0.0
    for s in (0, 3):
        broken = W.copy()
        broken[s, 1] = math.floor(TOTAL // 5 * Fraction(int(bound.numerator), 2**bound.shift))
        assert kernels.check_weights(broken, PROTECTED, bound, worst)
        broken[s, 1] += np.uint64(1)
        assert not kernels.check_weights(broken, PROTECTED, bound, worst)
        assert worst[1] == s
        assert worst[3] == 1
    broken[4, 1] = TOTAL  # nobody is joined to place 4
    broken[3, 1] = TOTAL // 5
    assert kernels.check_weights(broken, PROTECTED, bound, worst)
