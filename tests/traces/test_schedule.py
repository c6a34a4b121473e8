"""Which policy holds when: by time of day, by period, by what was released last."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.traces.schedule import Moment

HOUR = 3_600_000


def at(schedule, steps, periods=None, step_ms=None):
    steps = np.array(steps)
    periods = np.zeros_like(steps) if periods is None else np.array(periods)
    return [schedule.names[k] for k in schedule.at(Moment(steps, periods, step_ms))]


def test_times_of_day():
    """A span has its first minute, not its last, and may go past midnight."""
    s = pf.Schedule("day", times={"22:00-06:00": "night", "12:00-13:00": "noon"}, step="30min")
    steps = {0: "night", 11: "night", 12: "day", 23: "day", 24: "noon", 26: "day", 44: "night"}
    assert at(s, list(steps)) == list(steps.values())
    assert at(s, [k + 48 * 365 for k in steps]) == list(steps.values())
    late = pf.Schedule("day", times={"22:00-24:00": "night"}, step="1h", start="21:00")
    assert at(late, [0, 1, 2, 3, 25]) == ["day", "night", "night", "day", "night"]


def test_traces_tell_how_long_a_step_is():
    s = pf.Schedule("day", times={"06:00-07:00": "early"})
    assert at(s, [5, 6, 7], step_ms=HOUR) == ["day", "early", "day"]
    with pytest.raises(pf.InvalidParameter, match="must know how long a step is"):
        at(s, [1])


def test_periods_and_what_wins():
    s = pf.Schedule("x", periods={1: "busy"}, times={"01:00-02:00": "t"}, step="1h")
    assert at(s, [0, 1, 2, 3], [0, 1, 1, 0]) == ["x", "t", "busy", "x"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(place={"a": [0]}), "cannot be chosen by the place where somebody is"),
        (dict(times={"25:00-26:00": "a"}), 'times must be spans of the day such as "22:00-06:00"'),
        (dict(times={"noon": "a"}), "got 'noon'"),
        (dict(times=["a"]), "times must be a mapping"),
        (dict(start="late"), "start must be a time of day, got 'late'"),
        (dict(periods={-1: "a"}), "period"),
        (dict(released={3: [0]}), "policies go by name, got 3"),
        (dict(step="x"), "step must be a duration"),
    ],
)
def test_bad_schedules(options, message):
    with pytest.raises(pf.InvalidParameter, match=message):
        pf.Schedule("default", **options)


def city():
    grid = pf.Grid(4, 4)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")
    graphs = {"all": pf.complete(grid), "home": pf.blocks(grid, 2), "night": pf.blocks(grid, 4)}
    return pf.TraceReleaser(graphs, model, epsilon=1.0, rng=3)


def test_a_period_that_never_comes_is_refused():
    """A typing error would leave people without the policy that was meant for them."""
    T, s = city(), pf.Schedule("all", periods={1: "night"})
    with pytest.raises(pf.InvalidParameter, match=r"period 1, which never comes: .* has 1, from 0"):
        T.run([[0, 1]], policy=s)
    with pytest.raises(pf.InvalidParameter, match="never comes"):
        T.start(1).step([0], policy=s)


def test_by_what_was_released_last():
    """The policy of a step follows from the release before, in a run, in events with gaps, in a
    stream, and in an observer's replay: never from the truth."""
    T = city()
    s = pf.Schedule(
        "all", released={"home": range(8), "night": [15]}, times={"00:00-03:00": "night"}, step="1h"
    )
    traces = np.random.default_rng(0).integers(0, 16, (40, 9))
    traces[np.random.default_rng(1).random(traces.shape) < 0.2] = -1
    R = T.run(traces, policy=s, evidence=True)
    names = np.full(traces.shape, "", object)
    for u, t in zip(*np.nonzero(traces >= 0)):
        names[u, t] = "night" if t % 24 < 3 else "all"
        before = R.released[u, :t][R.released[u, :t] >= 0]
        if before.size:
            place = before[-1]
            names[u, t] = "home" if place < 8 else "night" if place == 15 else names[u, t]
    assert (T.run(traces, policy=names).released == R.released).all()
    assert (T.run(traces, policy=s).released == R.released).all()  # without evidence: the fast loop
    S = T.start(len(traces))
    for t in range(traces.shape[1]):
        assert (S.step(traces[:, t], policy=s).released == R.released[:, t]).all()
    seen = T.observe(R.released, policy=s)
    assert (seen.policy == R.evidence.policy).all()
    assert (seen.logs == R.evidence.logs).all()
    assert len(np.unique(R.evidence.policy)) == 3


def test_places_of_a_schedule_are_checked():
    T = city()
    with pytest.raises(pf.PGLPError, match="16"):
        T.run([[0]], policy=pf.Schedule("all", released={"home": [16]}))
    twice = pf.Schedule("all", released={"home": [1, 2], "night": [2]})
    with pytest.raises(pf.InvalidParameter, match="location 2 under two policies"):
        T.run([[0]], policy=twice)
    with pytest.raises(pf.InvalidPolicy, match="no policy 'gone'"):
        T.run([[0]], policy=pf.Schedule("gone"))
