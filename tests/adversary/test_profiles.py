"""Home, work, most visited places and re-identification: against plain loops, and cases solved by
hand."""

from collections import Counter

import numpy as np
import pytest

import pglp_fast as pf

GRID = pf.Grid(6, 7, cell_km=(0.5, 0.8))


def commonest(cells, places=1):
    """From the definition: the most frequent cells, ties to the lower."""
    count = Counter(int(c) for c in cells if c >= 0)
    return sorted(count, key=lambda c: (-count[c], c))[:places]


def test_by_hand():
    """Two persons, a day of six steps: at home at night, at work by day."""
    hours = [22, 23, 2, 10, 12, 15]
    truth = [[0, 0, 0, 41, 41, 41], [8, 8, 8, 20, 20, 20]]
    released = [[0, 0, 1, 40, 41, 40], [9, 9, 9, 20, 20, 21]]
    table = pf.profile_attacks(GRID, truth, released, hours=hours, top=2)
    home, work = table["home"], table["work"]
    assert (home.before, home.after, home.chance, home.persons) == (1.0, 0.5, 0.5, 2)
    assert home.error_km == pytest.approx(GRID.distance(8, 9) / 2)
    assert (work.before, work.after) == (1.0, 0.5)
    assert work.error_km == pytest.approx(GRID.distance(41, 40) / 2)
    # 0 and 40 of {0, 41}; 9 and 20 of {8, 20}
    assert (table["most visited"].before, table["most visited"].after) == (1.0, 0.5)
    assert table["re-identified"].before == table["re-identified"].after == 1.0
    assert "re-identified" in str(table) and "100.0 %" in str(table)


@pytest.mark.parametrize("seed", range(4))
def test_against_plain_loops(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 12, (9, 30))
    truth[rng.random(truth.shape) < 0.2] = -1
    truth[3] = -1  # nobody knows
    released = np.where(rng.random(truth.shape) < 0.5, truth, rng.integers(0, 42, truth.shape))
    released[rng.random(truth.shape) < 0.1] = -1
    hours = rng.uniform(0, 24, truth.shape)
    table = pf.profile_attacks(GRID, truth, released, hours=hours, top=3)
    for name, inside in (
        ("home", (hours >= 21) | (hours < 6)),
        ("work", (hours >= 9) & (hours < 17)),
    ):
        pairs = [
            (commonest(a[i]), commonest(b[i]))
            for a, b, i in zip(truth, released, inside, strict=True)
            if commonest(a[i])
        ]
        assert table[name].after == pytest.approx(np.mean([a == b for a, b in pairs]))
        assert table[name].persons == len(pairs)
    overlap = [
        len(set(commonest(a, 3)) & set(commonest(b, 3))) / len(commonest(a, 3))
        for a, b in zip(truth, released, strict=True)
        if commonest(a)
    ]
    assert table["most visited"].after == pytest.approx(np.mean(overlap))


def test_noise_makes_people_harder_to_find():
    """A release at small epsilon under the complete policy leaves little more than chance; the
    true traces give everybody away."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, GRID.size, (40, 1)) * np.ones((1, 50), int)
    truth[:, 1::2] = rng.integers(0, GRID.size, (40, 25))
    m = pf.PPIM(pf.complete(GRID), epsilon=0.01)
    released = m.release(truth.ravel(), users=np.arange(truth.size), rng=1).reshape(truth.shape)
    before = pf.profile_attacks(GRID, truth, truth)
    after = pf.profile_attacks(GRID, truth, released)
    assert before["re-identified"].after > 0.9 and before["home"].after == 1.0
    assert after["re-identified"].after < 0.2 and after["home"].after < 0.2
    assert after["re-identified"].chance == 1 / 40


def test_the_nearest_trace_is_taken():
    """All points known: the sum of distances, by a double loop; a missing step is as far as the
    map is wide."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, GRID.size, (12, 5))
    released = np.where(rng.random(truth.shape) < 0.4, truth, rng.integers(0, 42, truth.shape))
    released[rng.random(truth.shape) < 0.2] = -1
    far = float(GRID.distance(0, GRID.size - 1))
    right = 0
    for u in range(12):
        sums = [
            sum(far if z < 0 else float(GRID.distance(s, z)) for s, z in zip(truth[u], other))
            for other in released
        ]
        right += int(np.argmin(sums) == u)
    table = pf.profile_attacks(GRID, truth, released, known=5)
    assert table["re-identified"].after == pytest.approx(right / 12) and 0 < right < 12


def test_equal_traces_share():
    truth = [[3, 3, 3, 3]] * 4
    table = pf.profile_attacks(GRID, truth, truth, known=2)
    assert table["re-identified"].before == 0.25


def test_what_cannot_be_tried_is_left_open():
    table = pf.profile_attacks(GRID, [[-1, 5]], [[1, 1]], known=2)
    assert np.isnan(table["re-identified"].after) and table["re-identified"].persons == 0
    assert "work" not in [row.attack for row in table]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"truth": [0, 1]}, "cells \\(persons, T\\)"),
        ({"released": [[0, 1, 2]]}, "one cell for each step"),
        ({"truth": [[0, 42]]}, "truth has 42 for person 0 at step 1"),
        ({"hours": [0, 25]}, "hours must be 0 to 24"),
        ({"known": 0}, "known"),
        ({"top": 0}, "top"),
    ],
)
def test_refusals(change, message):
    given = {"truth": [[0, 1]], "released": [[0, 1]], **change}
    with pytest.raises(pf.InvalidParameter, match=message):
        pf.profile_attacks(GRID, given.pop("truth"), given.pop("released"), **given)
