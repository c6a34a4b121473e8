"""A budget in a file that processes share: it is never exceeded, whoever dies when."""

import os
import signal

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._util import storage
from pglp_fast.traces.engine import TraceEngine
from pglp_fast.traces.ledger_file import LedgerFile

TRACES = np.array([[0, 1, 2], [3, -1, 4]])
ONE_RUN = [3.0, 2.0]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def releaser(budget=None, seed=None, window=None):
    grid = pf.Grid(3, 3)
    model = pf.MobilityModel(grid, np.full((9, 9), 1 / 9))
    return pf.TraceReleaser(
        pf.blocks(grid, 3), model, epsilon=1.0, budget=budget, window=window, rng=seed
    )


@pytest.fixture(scope="module", autouse=True)
def ready():
    """Compiled before anything forks."""
    releaser().run(TRACES)


def child(act):
    """Fork a process that does something: 0 done, 3 over budget, 9 killed, 1 anything else."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except pf.BudgetExceeded:
        code = 3
    finally:
        os._exit(code)


def wait(pid):
    status = os.waitpid(pid, 0)[1]
    return 9 if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def dying(monkeypatch, moment):
    """Let a process die before noise is drawn, after that, or while the file is written."""
    if moment == "before":
        monkeypatch.setattr(TraceEngine, "release", die)
    elif moment == "after":
        monkeypatch.setattr(LedgerFile, "settle", die)
    else:
        monkeypatch.setattr(storage, "publish", die)


@forks
@pytest.mark.parametrize("moment", ["before", "after", "while"])
def test_three_processes_with_crashes_between(monkeypatch, tmp_path, moment):
    """One releases, one dies, one releases, and so on: what was released never exceeds the budget,
    and what is written down is never less than that."""
    path, released = tmp_path / "ledger", 0
    for k in range(6):
        with monkeypatch.context() as patch:
            if k % 2:
                dying(patch, moment)
            code = wait(child(lambda: releaser(9.0).run(TRACES, ledger=path)))
        assert code in ((3, 9) if k % 2 else (0, 3))
        # who died after drawing may have shown its releases to somebody
        released += code == 0 or (code == 9 and moment == "after")
        ledger = pf.Ledger.load(path)
        assert ledger.epsilons()[0] >= 3.0 * released
        assert ledger.epsilons()[0] <= 9.0
    assert released == {"before": 2, "after": 3, "while": 3}[moment]
    assert code == 3
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name] == [] or moment == "while"


@forks
def test_processes_at_the_same_time(tmp_path):
    """Eight ask, three are served, whoever they are."""
    path = tmp_path / "ledger"
    codes = [wait(p) for p in [child(lambda: releaser(9.0).run(TRACES, ledger=path))
                               for _ in range(8)]]  # fmt: skip
    assert sorted(codes) == [0] * 3 + [3] * 5
    ledger = pf.Ledger.load(path)
    assert ledger.epsilons().tolist() == [9.0, 6.0]
    assert not ledger.unsettled.any()


@forks
def test_streams_of_three_processes(tmp_path):
    """Step by step, each with persons of its own and one in common."""
    path = tmp_path / "ledger"

    def act(k):
        S = releaser(4.0).start([0, k], ledger=path)
        for _ in range(2):
            S.step([0, 1])

    codes = [wait(child(lambda k=k: act(k))) for k in (1, 2, 3)]
    assert codes == [0, 0, 3]
    ledger = pf.Ledger.load(path)
    assert [ledger.epsilon(ledger.index(p)) for p in (0, 1, 2)] == [4.0, 2.0, 2.0]
    assert 3 not in ledger.ids or ledger.epsilon(ledger.index(3)) == 0.0


@forks
def test_nothing_is_kept_of_a_release_that_nobody_settled(monkeypatch, tmp_path):
    """It may have been shown: no edge counts as kept, until the end of time."""
    path = tmp_path / "ledger"
    releaser().run(TRACES, ledger=path)
    assert (pf.Ledger.load(path).kept_edges() > 0).all()
    with monkeypatch.context() as patch:
        dying(patch, "after")
        assert wait(child(lambda: releaser().run(TRACES[:1], ledger=path))) == 9
    ledger = pf.Ledger.load(path)
    assert ledger.unsettled.tolist() == [1, 0]
    assert (ledger.kept_edges() > 0).tolist() == [False, True]
    assert ledger.graph(0).n_edges == 0 < ledger.graph(1).n_edges
    R = releaser().run(TRACES, ledger=path)
    assert (R.certificate.ledger.kept_edges() > 0).tolist() == [False, True]


def test_an_error_takes_no_edge_away(monkeypatch, tmp_path):
    """Nothing was released: it counts as spent, for it was written down, but nothing is lost."""
    path = tmp_path / "ledger"

    def broken(*_, **__):
        raise pf.TooLarge("a table")

    with monkeypatch.context() as patch:
        patch.setattr(TraceEngine, "release", broken)
        with pytest.raises(pf.TooLarge):
            releaser().run(TRACES, ledger=path)
    ledger = pf.Ledger.load(path)
    assert ledger.epsilons().tolist() == ONE_RUN
    assert not ledger.unsettled.any()


def test_windows_across_runs(tmp_path):
    """Two days of events: steps are counted alike, and what lies outside the window is free."""
    path, T = tmp_path / "ledger", releaser(3.0, window=10)
    T.run(pf.Events([5, 5], [100, 101], [0, 1]), ledger=path)
    with pytest.raises(pf.BudgetExceeded, match="user 5 would spend more than 3 within the 10"):
        T.run(pf.Events([5, 5], [108, 109], [0, 1]), ledger=path)
    T.run(pf.Events([5, 5, 6], [110, 111, 100], [0, 1, 2]), ledger=path)
    assert pf.Ledger.load(path).epsilons().tolist() == [4.0, 1.0]
    # another process that knows no window has forgotten when: that counts, to be safe
    releaser().run(pf.Events([5], [112], [0]), ledger=path)
    with pytest.raises(pf.BudgetExceeded):
        T.run(pf.Events([5], [113], [0]), ledger=path)
    T.run(pf.Events([5], [123], [0]), ledger=path)


def test_a_stream_that_was_booked_is_resumed_so(tmp_path):
    T = releaser(2.0, seed=1)
    S = T.start([3], ledger=tmp_path / "ledger")
    S.step([0])
    assert S.ledger.epsilon(0) == 1.0
    S.save(tmp_path / "stream")
    with pytest.raises(pf.InvalidState, match="was started with a ledger file"):
        T.resume(tmp_path / "stream")
    S = T.resume(tmp_path / "stream", ledger=tmp_path / "ledger")
    S.step([0])
    with pytest.raises(pf.BudgetExceeded):
        S.step([0])


@pytest.mark.parametrize("how", ["deleted", "older"])
def test_a_file_that_lost_what_was_written_is_refused(tmp_path, how):
    """A stream knows what it has spent: nobody has a budget twice by taking the file away."""
    path, T = tmp_path / "ledger", releaser(3.0, seed=1)
    S = T.start([3, 4], ledger=path)
    S.step([0, -1])
    older = path.read_bytes()
    S.step([0, 1])
    S.save(tmp_path / "stream")
    latest = path.read_bytes()
    path.unlink()
    if how == "older":
        path.write_bytes(older)
    for stream in (S, T.resume(tmp_path / "stream", ledger=path)):
        with pytest.raises(pf.InvalidState, match="holds less than was written to it"):
            stream.step([1, 1])
        with pytest.raises(pf.InvalidState, match="restore the latest one"):
            stream.ledger  # noqa: B018
        assert stream.t == 2
    assert path.exists() == (how == "older")
    another = T.resume(tmp_path / "stream", ledger=tmp_path / "another", again=True)
    with pytest.raises(pf.InvalidState, match="another holds less than was written to it"):
        another.step([1, 1])
    path.write_bytes(latest)
    S.step([1, 1])
    assert S.ledger.epsilons().tolist() == [3.0, 2.0]


def test_files_are_private_and_checked(tmp_path):
    path = tmp_path / "ledger"
    releaser().run(TRACES, ledger=path)
    assert path.stat().st_mode & 0o777 == 0o600
    arrays, facts = storage.read_arrays(path, "ledger")
    changes = {
        "ids": lambda a: a * 0,
        "high": lambda a: a - 100,
        "releases": lambda a: a - 100,
        "kind": lambda a: a + 50,
        "cells": lambda a: a + 100,
        "start": lambda a: a[:-1],
        "edges": lambda a: np.full((3, 2), 99, np.int32),
        "edge_start": lambda a: a + 1,
        "used": lambda a: a[:, :0],
        "cliques_0": lambda a: a + 1,
        "extra_indices_0": lambda a: np.array([3], np.int32),
        "recent_start": lambda a: a + 1,
        "shared_cells": lambda a: a.astype(np.int64),
        "unsettled": lambda a: a - 1,
    }
    for name, change in changes.items():
        storage.write_arrays(path, "ledger", arrays | {name: change(arrays[name])}, facts)
        with pytest.raises(pf.InvalidState, match="contradicts itself"):
            pf.Ledger.load(path)
    storage.write_arrays(path, "ledger", arrays, facts)
    with pytest.raises(pf.InvalidState, match="over different maps"):
        pf.Ledger.load(path, pf.Grid(4, 4))
    with pytest.raises(pf.InvalidState):
        pf.TraceReleaser(
            pf.blocks(pf.Grid(2, 2), 2), pf.MobilityModel(pf.Grid(2, 2), np.eye(4)), epsilon=1.0
        ).run([[0]], ledger=path)


def test_points_are_given_again(tmp_path):
    points = pf.Points([[0, 0], [1, 0], [0, 1]])
    pf.compose((1.0, pf.complete(points))).save(tmp_path / "ledger")
    with pytest.raises(pf.InvalidState, match="does not hold its map"):
        pf.Ledger.load(tmp_path / "ledger")
    other = pf.Points([[0, 0], [1, 0], [0, 2]])
    with pytest.raises(pf.InvalidState, match="of another map"):
        pf.Ledger.load(tmp_path / "ledger", other)
    assert pf.Ledger.load(tmp_path / "ledger", points).graph(0).n_edges == 3
