"""Fixes sorted by user and time, on rows that can be followed by eye."""

import math

import numpy as np
import pytest

from pglp_fast._kernels.io import fixes

USER = np.array([0, 0, 0, 0, 1, 1], np.int32)
TIME = np.array([0, 1000, 1000, 9000, 500, 2500], np.int64)
RADIUS = 6371.0


def test_order():
    assert fixes.in_order(USER, TIME)
    assert not fixes.in_order(USER, TIME[::-1].copy())
    assert not fixes.in_order(USER[::-1].copy(), TIME)
    assert fixes.in_order(USER[:0], TIME[:0])


@pytest.mark.parametrize(("last", "gone"), [(False, 2), (True, 1)])
def test_duplicates(last, gone):
    keep = np.ones(6, bool)
    assert fixes.mark_duplicates(USER, TIME, last, keep) == 1
    assert np.flatnonzero(~keep).tolist() == [gone]
    keep = np.array([True, False, True, True, True, True])
    assert fixes.mark_duplicates(USER, TIME, last, keep) == 0


def test_great_circles():
    quarter = math.pi / 2 * RADIUS
    assert fixes.distance_km(0.0, 0.0, 90.0, 0.0, RADIUS) == pytest.approx(quarter)
    assert fixes.distance_km(0.0, 10.0, 0.0, -80.0, RADIUS) == pytest.approx(quarter)
    assert fixes.distance_km(0.0, 0.0, 0.0, 180.0, RADIUS) == pytest.approx(2 * quarter)
    assert fixes.distance_km(5.0, 5.0, 5.0, 5.0, RADIUS) == 0.0


def test_too_fast():
    """The jump is dropped, and what follows is measured from the last fix kept."""
    user, time = np.zeros(4, np.int32), np.array([0, 3600, 7200, 10800]) * 1000
    lat, lon = np.array([0.0, 1.0, 0.1, 1.0]), np.zeros(4)
    keep = np.ones(4, bool)
    per_ms = 60 / 3_600_000  # 60 km/h; a degree is some 111 km
    assert fixes.mark_fast(user, time, lat, lon, per_ms, RADIUS, keep) == 2
    assert keep.tolist() == [True, False, True, False]


def test_breaks():
    fresh = np.empty(6, bool)
    none = np.empty(0, np.int32)
    assert fixes.mark_breaks(USER, TIME, none, 2000, fresh) == 3
    assert fresh.tolist() == [True, False, False, True, True, False]
    part = np.array([0, 0, 1, 1, 1, 2], np.int32)
    assert fixes.mark_breaks(USER, TIME, part, 10**6, fresh) == 4
    assert fresh.tolist() == [True, False, True, False, True, True]


def test_steps_of_segments():
    """Steps of one second from time 0: fixes 0, 1000, 1000, 9000 are in steps 0, 1, 1, 9."""
    fresh = np.array([True, False, False, False, True, False])
    lengths, firsts, rows = (np.empty(2, np.int64) for _ in range(3))
    fixes.measure_segments(TIME, fresh, 0, 1000, 0, lengths, firsts, rows)
    assert (lengths.tolist(), firsts.tolist(), rows.tolist()) == ([10, 3], [0, 0], [0, 4])
    starts = np.array([0, 10, 13])
    for rule, in_step_1 in (fixes.FIRST, 1), (fixes.LAST, 2), (fixes.NEAREST, 1):
        picked = np.full(13, -1, np.int64)
        fixes.pick_fixes(TIME, fresh, 0, 1000, 0, rule, starts, firsts, picked)
        assert picked.tolist() == [0, in_step_1, *[-1] * 7, 3, 4, -1, 5]


def test_carrying_forward():
    cells = np.array([3, -1, -1, -1, fixes.OUTSIDE, -1, 4, -1, 7, -1], np.int32)
    assert fixes.carry_forward(np.array([0, 7, 10]), 2, cells) == 3
    assert cells.tolist() == [3, 3, 3, -1, -1, -1, 4, -1, 7, 7]
