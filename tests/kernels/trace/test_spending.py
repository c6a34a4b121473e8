"""Sums of epsilon to the last bit, and windows against a plain loop."""

import math

import numpy as np

from pglp_fast._kernels.trace import spending as kernels


def test_sums_are_rounded_once():
    """Whatever the order, and where plain sums are off."""
    rng = np.random.default_rng(0)
    for values in ([0.1] * 10, rng.random(1000) * 10.0 ** rng.integers(-9, 9, 1000)):
        values = np.array(values)
        high, low = np.zeros(1), np.zeros(1)
        kernels.add_events(np.array([0, len(values)]), values, high, low)
        assert high[0] + low[0] == math.fsum(values)
    assert sum([0.1] * 10) != 1.0


def test_every_user_has_a_sum_of_its_own():
    high, low = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    kernels.add_events(np.array([0, 2, 2, 3]), np.array([0.5, 0.25, 4.0]), high, low)
    assert high.tolist() == [1.75, 2.0, 7.0]


def literal(rows, window, limit, forgotten, since):
    """Every window that ends at an event, added up anew."""
    for u, row in enumerate(rows):
        for step, _, _ in row:
            inside = [(e, new) for s, e, new in row if step - window < s <= step]
            total = math.fsum(e for e, _ in inside)
            total += forgotten[u] if since[u] - 1 > step - window else 0.0
            if total > limit and any(new for _, new in inside):
                return True
    return False


def test_windows():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        rows = []
        for _ in range(3):
            steps = np.sort(rng.integers(0, 30, rng.integers(0, 8)))
            rows.append([(int(s), rng.integers(1, 5) / 4, rng.random() < 0.5) for s in steps])
        since, forgotten = rng.integers(0, 20, 3), rng.integers(0, 3, 3) / 2
        window, limit = int(rng.integers(1, 12)), rng.integers(1, 12) / 4
        flat = [event for row in rows for event in row]
        start = np.cumsum([0, *map(len, rows)])
        u, e = kernels.first_over(
            start, np.array([s for s, _, _ in flat], np.int64),
            np.array([v for _, v, _ in flat], float), np.array([n for _, _, n in flat], bool),
            window, limit, forgotten, since,
        )  # fmt: skip
        assert (u >= 0) == literal(rows, window, limit, forgotten, since)
        if u >= 0:
            assert start[u] <= e < start[u + 1]
        found.append(u >= 0)
    assert 60 < sum(found) < 240
