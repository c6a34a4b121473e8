"""Errors of releases, against sums written out."""

import math

import numpy as np
import pytest

from pglp_fast._kernels.evaluation import errors
from pglp_fast._kernels.policy.shapes import Groups

LATTICE = np.array([[0, 0], [3, 0], [0, 2], [7, 7], [10, 7], [7, 9]], np.int32)
DX, DY = 0.5, 2.0
ZERO = np.array([0])
# two groups of one shape, without an edge
GROUPS = Groups(
    np.arange(6, dtype=np.int32),
    np.array([0, 3, 6]),
    np.array([0, 1, 2] * 2),
    np.array([[g, k] for g in range(2) for k in range(3)], np.int32),
    np.array([0, 0], np.int32),
    np.array([0], np.int32),
    LATTICE,
    np.full(6, -1, np.int32),
    np.zeros(7, np.int64),
    np.empty(0, np.int32),
)
P = np.array([[0.5, 0.25, 0.25], [0.2, 0.8, 0.0], [0.1, 0.2, 0.7]])
D = [[0.0, 1.5, 4.0], [1.5, 0.0, math.hypot(1.5, 4)], [4.0, math.hypot(1.5, 4), 0.0]]


def test_kilometres():
    for i in range(3):
        for j in range(3):
            assert errors.kilometres(LATTICE, i, j, DX, DY) == pytest.approx(D[i][j])
            assert errors.kilometres(LATTICE, i + 3, j + 3, DX, DY) == pytest.approx(D[i][j])


def test_weights_by_place_and_back():
    out = np.zeros(3)
    errors.add_by_place(GROUPS, ZERO, np.array([1.0, 2, 3, 10, 20, 30]), out)
    assert out.tolist() == [11, 22, 33]
    back = np.empty(6)
    errors.spread_by_place(GROUPS, ZERO, out, back)
    assert back.tolist() == [11, 22, 33, 11, 22, 33]


@pytest.fixture
def pairs():
    """Pr(z|s) column by column, as ``shape_errors`` leaves them; what else it writes is checked."""
    with np.errstate(divide="ignore"):
        logs = np.log(P).ravel()
    weight = np.array([0.2, 0.3, 0.5])
    places = errors.Places(ZERO, weight, np.empty(3), np.empty(3))
    pairs = errors.Pairs(ZERO, logs, np.empty(9), np.empty(9), np.empty(9))
    errors.shape_errors(0, 1, GROUPS, DX, DY, places, pairs)
    expected = [sum(p * d for p, d in zip(P[i], D[i])) for i in range(3)]
    assert places.mean == pytest.approx(expected)
    assert places.largest == pytest.approx([4.0, 1.5, math.hypot(1.5, 4)])  # never where p = 0
    assert pairs.distance == pytest.approx(np.ravel(D))
    assert pairs.mass == pytest.approx((weight[:, None] * P).ravel())
    assert pairs.columns == pytest.approx(P.T.ravel())
    return pairs


def test_labels_that_differ(pairs):
    labels, out = np.array([4, 4, 5, 1, 1, 1]), np.empty(6)
    errors.label_errors(np.array([0, 1]), 0, 2, 0, GROUPS, pairs, labels, out)
    assert out == pytest.approx([P[0, 2], P[1, 2], P[2, 0] + P[2, 1], 0, 0, 0])


def test_samples():
    true, released = np.array([0, 1, -1, 4]), np.array([2, -1, 0, 3])
    labels = np.array([0, 0, 0, 1, 1, 1]), np.arange(6)
    other = np.ones(4, bool), np.zeros(4, bool)
    samples = errors.Samples(true, released, np.full(4, 9.0), other)
    errors.sample_errors(samples, 0, 4, LATTICE, DX, DY, labels)
    assert samples.distance == pytest.approx([4.0, -1, -1, 1.5])
    assert other[0][[0, 3]].tolist() == [False, False]
    assert other[1][[0, 3]].tolist() == [True, True]
    none = np.empty(0, np.int64)
    errors.sample_errors(samples, 0, 4, LATTICE, DX, DY, (none, none))
    assert samples.distance == pytest.approx([4.0, -1, -1, 1.5])
