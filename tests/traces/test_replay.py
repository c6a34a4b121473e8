"""Releases worked out again by an observer: ``TraceReleaser.replay``."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.errors import InvalidLocation, InvalidTransition


@pytest.fixture(scope="module")
def city():
    grid = pf.Grid(6, 7)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8", periods=2)
    rng = np.random.default_rng(0)
    traces = np.empty((9, 6), np.int64)
    row, col = rng.integers(0, 6, 9), rng.integers(0, 7, 9)
    for t in range(6):
        traces[:, t] = row * 7 + col
        row = np.clip(row + rng.integers(-1, 2, 9), 0, 5)
        col = np.clip(col + rng.integers(-1, 2, 9), 0, 6)
    traces[[1, 4], [2, 0]] = -1
    return pf.blocks(grid, 3), model, traces


@pytest.mark.parametrize("mechanism", ["ppim", "krr"])
def test_an_observer_sees_what_the_stream_knows(city, mechanism):
    """Domains, repairs, beliefs and ledgers at every step, from the releases alone."""
    graph, model, traces = city
    T = pf.TraceReleaser(graph, model, epsilon=1.0, mechanism=mechanism, delta=0.2, rng=1)
    found = T.run(traces, evidence=True)
    S = T.start(len(traces))
    users = [0, 4, 8]
    for t, (seen, step) in enumerate(T.replay(found.evidence, users)):
        own = S.step(traces[:, t])
        assert seen.t == S.t == t + 1 and seen.users == 3
        for k, u in enumerate(users):
            assert seen.domain(k).cells().tolist() == S.domain(u).cells().tolist()
            assert seen.policy(k).edges().tolist() == S.policy(u).edges().tolist()
            assert seen.added(k).tolist() == S.added(u).tolist()
            assert (seen.posterior(k) == S.posterior(u)).all()
            assert seen.ledger.epsilon(k) == S.ledger.epsilon(u)
            assert seen.ledger.graph(k).edges().tolist() == S.ledger.graph(u).edges().tolist()
        for name in ("released", "domain_size", "disconnected", "isolated", "added", "exposed"):
            assert (getattr(step, name) == getattr(own, name)[users]).all()
    assert t == traces.shape[1] - 1


def test_each_step_keeps_its_own_state(city):
    """What was yielded earlier does not move on."""
    graph, model, traces = city
    T = pf.TraceReleaser(graph, model, epsilon=1.0, rng=1)
    streams = [seen for seen, _ in T.replay(T.run(traces, evidence=True).evidence)]
    assert [s.t for s in streams] == list(range(1, 7))
    assert [s.ledger.epsilon(0) for s in streams] == list(range(1, 7))


def test_added_edges_are_those_of_the_repair(city):
    graph, model, traces = city
    T = pf.TraceReleaser(graph, model, epsilon=1.0, repair="nearest", rng=1)
    S = T.start(len(traces), "point")
    for t in range(1, 4):
        S.step(traces[:, t])
    for u in range(len(traces)):
        done = pf.repair(graph, S.domain(u), strategy="nearest")
        assert S.added(u).tolist() == done.added.tolist()
        assert S.policy(u).edges().tolist() == done.graph.edges().tolist()


def test_the_mechanism_of_a_step_keeps_its_promise(city):
    graph, model, traces = city
    for mechanism in ("ppim", "graph-exponential"):
        T = pf.TraceReleaser(graph, model, epsilon=0.7, mechanism=mechanism, rng=1)
        S = T.start(1)
        S.step(traces[:1, 0])
        m = T.step_mechanism(S.policy(0), S.domain(0))
        assert m.epsilon == 0.7 and pf.certify(m).ok


def test_users_and_releases_that_do_not_belong_are_refused(city):
    graph, model, traces = city
    T = pf.TraceReleaser(graph, model, epsilon=1.0, rng=1)
    evidence = T.run(traces, "point", evidence=True).evidence
    with pytest.raises(InvalidLocation, match="users"):
        next(T.replay(evidence, [9]))
    other = pf.TraceReleaser(pf.blocks(graph.locations, 3), model, epsilon=1.0, delta=0.9, rng=1)
    with pytest.raises(InvalidTransition, match="cannot have released"):
        list(other.replay(evidence))


def test_interrupts_leave_the_old_state_or_the_new_one(city, monkeypatch):
    """Wherever a step is interrupted, beliefs and ledger belong together."""
    graph, model, traces = city
    T = pf.TraceReleaser(graph, model, epsilon=1.0, rng=1)
    S, untouched = T.start(len(traces)), T.start(len(traces))
    S.step(traces[:, 0])
    untouched.step(traces[:, 0])
    real = T.engine.release

    def interrupted(*args, **more):
        real(*args, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(T.engine, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        S.step(traces[:, 1])
    monkeypatch.undo()
    assert S.t == untouched.t and S.ledger.epsilon(0) == untouched.ledger.epsilon(0)
    assert (S.step(traces[:, 1]).released == untouched.step(traces[:, 1]).released).all()
    assert (S.posterior(2) == untouched.posterior(2)).all()
