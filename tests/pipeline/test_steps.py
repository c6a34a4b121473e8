"""Rows to steps, persons to numbers, and events as streams see them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pglp_fast as pf
from pglp_fast.io.labels import Coded
from pglp_fast.pipeline.persons import Numbers, Persons, tell_apart
from pglp_fast.pipeline.steps import lay_out, step_numbers

DAY = 86_400_000


def naive_layout(person, ms, step, allowed):
    """The rule as the help text has it, person by person and row by row."""
    role = {}
    for u in sorted(set(person)):
        rows = sorted((k for k in range(len(person)) if person[k] == u), key=lambda k: (ms[k], k))
        last, spent, speaks, unpaid = None, 0, None, None
        for k in rows:
            now = ms[k] // step
            if now == unpaid:
                role[k] = "budget"
            elif now == last:
                role[k] = speaks
            elif allowed is not None and spent == allowed:
                role[k], unpaid = "budget", now
            else:
                role[k], last, speaks, spent = k, now, k, spent + 1
    return role


rows_of_persons = st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 400)), max_size=30)


@given(rows_of_persons, st.integers(1, 13), st.none() | st.integers(0, 5))
def test_rows_become_steps_by_the_rule(rows, step, allowed):
    """Would catch a repeat that is released afresh, or a budget spent by repeats."""
    person, ms = (np.array([r[k] for r in rows], np.int64) for k in (0, 1))
    got = lay_out(person, ms, step, allowed)
    role = naive_layout(person.tolist(), ms.tolist(), step, allowed)
    assert sorted(got.rows.tolist()) == sorted(k for k, speaks in role.items() if speaks == k)
    assert got.step.tolist() == step_numbers(ms[got.rows], step).tolist()
    key = list(zip(person[got.rows].tolist(), got.step.tolist(), strict=True))
    assert key == sorted(set(key))
    for k in range(len(rows)):
        if role[k] == "budget":
            assert got.over[k] and got.follows[k] == -1
        else:
            assert not got.over[k] and got.rows[got.follows[k]] == role[k]


def test_steps_count_from_a_midnight_long_ago():
    for step in (1000, 300_000, 3_600_000, DAY):
        numbers = step_numbers(np.array([-DAY, 0, DAY - 1]), step)
        assert numbers.min() > 0 and numbers[1] % (DAY // step) == 0
        assert numbers[1] - numbers[0] == DAY // step
    with pytest.raises(pf.InvalidTable, match="is the time column right"):
        step_numbers(np.array([-(1 << 48)]), 1000)


def test_a_person_keeps_its_number():
    """Whoever else is there, in whatever order, file or type; and not under another key."""

    def numbers(seed, *files):
        persons, number, found = Persons(), Numbers(seed), {}
        coded = [Coded.of(f) for f in files]
        for one in coded:
            found |= dict(zip(map(str, one.values()), number(one)[0].tolist(), strict=True))
        return found, [persons.codes(one).tolist() for one in coded]

    one, codes = numbers(5, np.array(["a", "b", "a", "7"]), np.array(["7", "c"]), np.array([7, 8]))
    assert codes == [[0, 1, 0, 2], [2, 3], [2, 4]]
    other, _ = numbers(5, np.array(["c"]), np.array(["b", "7", "a"]))
    assert all(one[label] == other[label] for label in other)
    assert len(set(one.values())) == 5 and all(0 <= v < 1 << 60 for v in one.values())
    assert numbers(6, np.array(["a"]))[0]["a"] != one["a"]


def test_two_persons_with_one_number_are_told(monkeypatch):
    user, other = Coded.of(np.array(["a", "b", "a"])), Coded.of(np.array(["b"]))
    known = np.concatenate([Numbers(1).listed(one)[1] for one in (user, other)])
    assert len(tell_apart(known)) == 2  # one who is listed twice is one
    monkeypatch.setattr("pglp_fast.pipeline.persons.person_number", lambda key, label: 1)
    with pytest.raises(pf.InvalidState, match="two persons got the same number by chance"):
        tell_apart(Numbers(1).listed(user)[1])


@pytest.mark.parametrize("periods", [1, 3])
def test_events_are_released_as_their_persons_alone_would_be(periods):
    """Each person by itself, by the releaser's own stream; beliefs walk through every silence."""
    g, rng = pf.Grid(3, 4), np.random.default_rng(0)
    M = rng.random((periods, 12, 12)) * (rng.random((periods, 12, 12)) < 0.4) + 0.01 * np.eye(12)
    import sparse

    T = pf.TraceReleaser(
        pf.blocks(g, 2),
        pf.MobilityModel(g, sparse.COO.from_numpy(M / M.sum(axis=2, keepdims=True))),
        epsilon=1.0,
        rng=4,
    )
    persons = np.repeat([9, 2, 5], [4, 1, 3])
    steps = np.array([40, 3, 11, 12, 7, 90, 20, 21])
    events = pf.Events(persons, steps, rng.integers(0, 12, 8))
    cycle = np.array([0, 2, 1, 1, 0]) % periods
    got = T.run(events, cycle=cycle)
    for k, person in enumerate(events.ids):
        mine = events.order[events.start[k] : events.start[k + 1]]
        S = T.start(users=[person])
        S._state = S._state._replace(t=int(steps[mine[0]]))
        for e in mine:
            while S.t <= steps[e]:
                here = [events.cells[e]] if S.t == steps[e] else [-1]
                R = S.step(here, period=int(cycle[(S.t - 1) % 5]))
            assert got.released[e] == R.released[0] and got.surrogate[e] == R.surrogate[0]
