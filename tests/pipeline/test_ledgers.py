"""Budgets over windows, and ledger files: what tables, days and processes spend together."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest

import pglp_fast as pf
from cases import large
from cli_tools import the_grid
from faults import ended, forked
from pglp_fast.pipeline import files, single_releases, tasks, trace_releases, work_folder
from pglp_fast.traces import job_ledger, ledger_file
from table_cases import frame, model, plan

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
G = the_grid()
forks = pytest.mark.skipif(sys.platform == "win32", reason="forks of POSIX")


def day(k, n=90):
    """The fixes of a day: the same six persons every day."""
    given = frame(n, seed=k, inside=1.0)
    rng = np.random.default_rng(k)
    minutes = rng.integers(0, 600, n)
    given["time"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(minutes + 1440 * k, unit="min")
    return given


def released(out):
    """Steps that were released, by person: (when, epsilon)."""
    some = out[out["released_status"].isin(["step", "alone"])]
    eps = some["released_epsilon"] if "released_epsilon" in some else pd.Series(1.0, some.index)
    return {
        user: list(zip(pd.to_datetime(part["time"]), eps[part.index]))
        for user, part in some.groupby("user")
    }


def literally(given, eps, total, hours, budget):
    """Take steps one after the other, each that fits: the rule, written down."""
    given = given.assign(eps=eps, step=given["time"].dt.floor("5min"))
    out = {}
    for user, part in given.sort_values("time", kind="stable").groupby("user"):
        kept = []
        for _, row in part.drop_duplicates("step").iterrows():
            lately = [e for t, e in kept if t > row["step"] - pd.Timedelta(hours=hours)]
            within = sum(lately) + row["eps"] <= budget + 1e-9
            if within and sum(e for _, e in kept) + row["eps"] <= total + 1e-9:
                kept.append((row["step"], row["eps"]))
        out[user] = kept
    return out


def test_windows_take_what_fits():
    """Against the rule written down; several tables of one ledger are one table."""
    given = pd.concat([day(0), day(1)]).reset_index(drop=True)
    rng = np.random.default_rng(0)
    given["eps"] = rng.choice([0.25, 0.5, 1.0], len(given))
    p = plan(
        mobility=model(), epsilon_column="eps", budget={"total": 7, "3h": 1.5}, on_error="skip"
    )
    out = released(pf.release_table(given, p))
    expected = literally(given, given["eps"], 7, 3, 1.5)
    for user, kept in expected.items():
        found = [(t.floor("5min"), e) for t, e in sorted(out[user])]
        assert found == kept
    assert any(len(kept) < len(given[given["user"] == user]) for user, kept in expected.items())
    with pytest.raises(pf.BudgetExceeded, match="the budget, and what was spent before, do not"):
        pf.release_table(given, plan(mobility=model(), budget=1.5, window="3h"))


@pytest.mark.parametrize("moves", [True, False])
def test_a_ledger_makes_days_one(tmp_path, moves):
    """Tables, record batches and files that share a ledger spend what one table would."""
    how = {"budget": 8, "on_error": "skip", "ledger": tmp_path / "ledger"}
    if moves:
        model().save(tmp_path / "m.npz", notes=model().notes)
        how["mobility"] = tmp_path / "m.npz"
    outs = [pf.release_table(day(0), plan(**how))]
    batches = pa.Table.from_pandas(day(1).sort_values("time")).to_batches(max_chunksize=20)
    made = pa.Table.from_batches(list(pf.release_batches(batches, plan(**how), resident=2)))
    outs.append(made.to_pandas())
    day(2).to_csv(tmp_path / "d2.csv", index=False)
    pf.release_files(tmp_path / "d2.csv", tmp_path / "o2.csv", plan(**how), batch_rows=30)
    outs.append(pd.read_csv(tmp_path / "o2.csv"))
    spent = {u: sum(len(released(o).get(u, [])) for o in outs) for u in day(0)["user"].unique()}
    assert set(spent.values()) == {8}
    ledger = pf.Ledger.load(tmp_path / "ledger")
    for user, n in spent.items():
        u = ledger.index(user)
        assert (ledger.epsilon(u), ledger.releases[u]) == (n, n)
    assert ledger.unsettled is None or not ledger.unsettled.any()
    if not moves:
        assert (ledger.kept_edges() == pf.blocks(G, 3).n_edges).all()
    with pytest.raises(pf.BudgetExceeded):
        pf.release_table(day(3), plan(**{**how, "on_error": "raise"}))
    assert pf.Ledger.load(tmp_path / "ledger").epsilons().sum() == sum(spent.values())
    with pytest.raises(pf.InvalidParameter, match="nobody called 'nobody'"):
        ledger.index("nobody")


@pytest.mark.parametrize("moves", [True, False])
def test_batches_miss_what_they_wrote_down(tmp_path, moves):
    """Of a ledger that was deleted between two batches nothing more is released: budgets would be
    had twice."""
    path = tmp_path / "ledger"
    how = {"budget": 8, "on_error": "skip", "ledger": path}
    if moves:
        model().save(tmp_path / "m.npz", notes=model().notes)
        how["mobility"] = tmp_path / "m.npz"
    batches = pa.Table.from_pandas(day(1).sort_values("time")).to_batches(max_chunksize=45)
    made = pf.release_batches(batches, plan(**how))
    next(made)
    path.unlink()
    with pytest.raises(pf.InvalidState, match="holds less than was written to it"):
        next(made)
    if moves:  # after the last batch: nobody could say which edges were kept
        made = pf.release_batches(batches[:1], plan(**how))
        next(made)
        path.unlink()
        with pytest.raises(pf.InvalidState, match="no longer holds what this job wrote"):
            next(made)
    assert not path.exists()


def interrupted(tmp_path, moves):
    """(call that goes on, the plan, the ledger before it) of a job of two files that stopped after
    half of its releases; half of the budget had been spent before."""
    how = {"budget": 8, "on_error": "skip", "ledger": tmp_path / "ledger", "seed": None}
    if moves:
        model().save(tmp_path / "m.npz", notes=model().notes)
        how["mobility"] = tmp_path / "m.npz"
    (tmp_path / "in").mkdir()
    for k in range(2):
        day(k).to_csv(tmp_path / "in" / f"d{k}.csv", index=False)
    pf.release_table(day(2), plan(**how | {"budget": 4}))
    before = (tmp_path / "ledger").read_bytes()

    def release(**other):
        p = plan(**{**how, **other.pop("plan", {})})
        return pf.release_files(tmp_path / "in", tmp_path / "out", p, batch_rows=60, **other)

    calls = []

    def stop(real):
        def stopping(*given, **rest):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return real(*given, **rest)

        return stopping

    where, name = (tasks, "release_persons") if moves else (files._Run, "_through")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, stop(getattr(where, name)))
        with pytest.raises(KeyboardInterrupt):
            release()
    return release, before


def spent_by_files(tmp_path):
    outs = [released(pd.read_csv(path)) for path in sorted((tmp_path / "out").glob("*.csv"))]
    return {sum(len(out.get(u, [])) for out in outs) for u in day(0)["user"].unique()}


@pytest.mark.parametrize("lost", ["deleted", "older"])
@pytest.mark.parametrize("moves", [True, False])
def test_a_resumed_job_misses_what_it_wrote_down(tmp_path, moves, lost):
    """Its budget would be had twice, and parts drawn after two pasts would lie in one output."""
    path, work = tmp_path / "ledger", tmp_path / "out.work"
    release, before = interrupted(tmp_path, moves)
    whole, left = path.read_bytes(), {p.name for p in work.iterdir()}
    path.unlink() if lost == "deleted" else path.write_bytes(before)
    with pytest.raises(pf.InvalidState, match="no longer holds what this job wrote to it"):
        release(resume=True)
    assert left <= {p.name for p in work.iterdir()} and not (tmp_path / "out").exists()
    path.write_bytes(whole)
    release(resume=True)
    assert spent_by_files(tmp_path) == {4}
    assert set(pf.Ledger.load(path).epsilons()) == {8.0}


@pytest.mark.parametrize("moves", [True, False])
def test_a_job_is_bound_to_its_ledger_file(tmp_path, moves):
    """By whatever name: a link leads to it, and another file knows of other budgets."""
    release, _ = interrupted(tmp_path, moves)
    with pytest.raises(pf.InvalidState, match="or another ledger"):
        release(resume=True, plan={"ledger": tmp_path / "other"})
    assert not (tmp_path / "other").exists()
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    release(resume=True, plan={"ledger": tmp_path / "link"})
    assert spent_by_files(tmp_path) == {4}


@pytest.mark.parametrize("moves", [True, False])
def test_an_error_leaves_a_job_that_matters(tmp_path, moves):
    """A job that was written down goes on after an error with the key it has."""
    release, _ = interrupted(tmp_path, moves)
    path, head = tmp_path / "ledger", (tmp_path / "out.work" / "job.json").read_bytes()
    whole = path.read_bytes()
    path.unlink()
    pf.compose((1.0, pf.blocks(pf.Grid(5, 5), 2))).save(path)
    with pytest.raises(pf.InvalidState):
        release(resume=True)
    assert (tmp_path / "out.work" / "job.json").read_bytes() == head
    path.write_bytes(whole)
    release(resume=True)
    assert spent_by_files(tmp_path) == {4} and not (tmp_path / "out.work").exists()


@pytest.mark.parametrize("why", ["booked", "published", "resumed", None])
def test_which_errors_leave_a_job(tmp_path, monkeypatch, why):
    """One that was written down, has an output in its place, or was begun before. What a first call
    leaves otherwise is of no use: it goes."""
    (tmp_path / "in").mkdir()
    for k in range(2):
        day(k).to_csv(tmp_path / "in" / f"d{k}.csv", index=False)
    p = plan(ledger=tmp_path / "ledger" if why == "booked" else None, seed=None)

    def release(error, place, after, **how):
        calls, real = [], getattr(*place)

        def fail(*given, **more):
            calls.append(1)
            if len(calls) > after:
                raise error
            return real(*given, **more)

        with monkeypatch.context() as patch:
            patch.setattr(*place, fail)
            pf.release_files(tmp_path / "in", tmp_path / "out", p, **how)

    error, through = pf.InvalidTable("of a test"), (files._Run, "_through")
    place, after = ((work_folder, "publish"), 2) if why == "published" else (through, 1)
    if why == "resumed":
        with pytest.raises(KeyboardInterrupt):
            release(KeyboardInterrupt(), through, 1)
    with pytest.raises(pf.InvalidTable, match="of a test"):
        release(error, place, after, resume=why == "resumed")
    assert (tmp_path / "out.work").exists() == (why is not None)
    if why == "published":
        first = (tmp_path / "out" / "d0.csv").read_bytes()
        release(error, place, 99, resume=True)
        assert (tmp_path / "out" / "d0.csv").read_bytes() == first


@pytest.mark.parametrize("moves", [True, False])
def test_an_input_that_changed_leaves_no_results(tmp_path, moves, monkeypatch):
    """What was made from another input is forgotten; the key and the past are not."""
    release, _ = interrupted(tmp_path, moves)
    told, real = iter([True, False]), files._digests
    monkeypatch.setattr(files, "_digests", lambda p: real(p) if next(told, True) else [])
    with pytest.raises(pf.InvalidTable, match="an input changed"):
        release(resume=True)
    names = {p.name for p in (tmp_path / "out.work").iterdir()}
    assert names == {"job.json", "ledger-before"}
    release(resume=True)
    assert spent_by_files(tmp_path) == {4}


@pytest.mark.parametrize("moves", [True, False])
def test_a_ledger_knows_weights(tmp_path, moves):
    """An edge of weight w costs w epsilon a release, by rows, batches and files. Would catch sums
    that are not kept by policy: the edge would seem to cost epsilon."""
    weighted = pf.PolicyGraph.from_edges(G, [(0, 1), (1, 2)], weights=[2, 1])
    how = {"policy": weighted, "ledger": tmp_path / "ledger", "on_error": "skip"}
    if moves:
        how |= {"mobility": pf.MobilityModel(G, np.full((G.size,) * 2, 1 / G.size)), "step": "5min"}
    where = G.latlon([0, 1, 2, 1])
    given = pd.DataFrame({"user": "a", "lat": where[:, 0], "lon": where[:, 1]})
    given["time"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(4) * 5, unit="min")
    pf.release_table(given, plan(**how))
    batches = pa.Table.from_pandas(given.assign(user="b")).to_batches(max_chunksize=2)
    list(pf.release_batches(batches, plan(**how)))
    ledger = pf.Ledger.load(tmp_path / "ledger")
    for user in "ab":
        u = ledger.index(user)
        edges, spent = ledger.edge_epsilons(u)
        assert edges.tolist() == [[0, 1], [1, 2]]
        assert ledger.epsilon(u) == 4 and spent.tolist() == [8.0, 4.0]


@pytest.mark.parametrize("batches", [False, True])
def test_a_window_knows_how_long_steps_are(tmp_path, batches):
    """Plans with steps of 5 min and of 1 h that share a ledger: within a day nobody is above the
    budget. Would catch steps that are written down as bare numbers."""
    moves = pf.MobilityModel(G, np.full((G.size,) * 2, 1 / G.size))

    def release(step, hours, window="1d"):
        where = G.latlon([0] * len(hours))
        given = pd.DataFrame({"user": "a", "lat": where[:, 0], "lon": where[:, 1]})
        given["time"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(hours, unit="h")
        p = plan(
            mobility=moves, step=step, budget=2.0, window=window, ledger=tmp_path / "ledger",
            on_error="skip",
        )  # fmt: skip
        if not batches:
            return pf.release_table(given, p)["released_status"].tolist()
        made = pf.release_batches(pa.Table.from_pandas(given).to_batches(), p)
        return pa.Table.from_batches(list(made))["released_status"].to_pylist()

    assert release("5min", [0, 0.1]) == ["step", "step"]
    with pytest.raises(pf.InvalidParameter, match="steps of 5min, and these are of 1h"):
        release("60min", [12, 13])
    assert release("60min", [12, 13], None) == ["budget", "budget"]
    assert release("5min", [10, 30, 31, 32]) == ["budget", "step", "step", "budget"]
    assert pf.Ledger.load(tmp_path / "ledger").epsilons().tolist() == [4.0]


def test_a_ledger_of_an_older_version_goes_on(tmp_path):
    """It says nothing of the duration of steps: they count in every window. What is released from
    then on has a date again."""
    moves = pf.MobilityModel(G, np.full((G.size,) * 2, 1 / G.size))
    path = tmp_path / "ledger"

    def release(user, hours, budget=2.0):
        where = G.latlon([0] * len(hours))
        given = pd.DataFrame({"user": user, "lat": where[:, 0], "lon": where[:, 1]})
        given["time"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(hours, unit="h")
        p = plan(
            mobility=moves, step="5min", budget=budget, window="1d", ledger=path, on_error="skip"
        )
        return pf.release_table(given, p)["released_status"].tolist()

    assert release("a", [0, 1]) == ["step", "step"]
    replace(pf.Ledger.load(path), step_ms=None).save(path)
    assert release("a", [100, 101]) == ["budget", "budget"]
    assert release("b", [0, 1]) == ["step", "step"]
    assert release("b", [2, 100]) == ["budget", "step"]
    assert release("a", [100, 101], 3.0) == ["step", "budget"]


POINTS = [  # where a process dies: (module, name, before or after the call)
    (job_ledger, "begin_job", "before"),
    (ledger_file.LedgerFile, "write", "before"),
    (ledger_file.LedgerFile, "write", "after"),
    (trace_releases, "release_part", "before"),
    (trace_releases, "release_part", "after"),
    (tasks, "write", "before"),
    (work_folder.Job, "finish", "before"),
    (work_folder.Job, "close", "before"),
]


def dying(patch, where, name, when):
    real = getattr(where, name)

    def die(*given, **how):
        if when == "after":
            real(*given, **how)
        os._exit(9)

    for module in (where, *([single_releases] if hasattr(single_releases, name) else [])):
        patch.setattr(module, name, die)
    if name == "begin_job":
        from pglp_fast.pipeline import booking

        patch.setattr(booking, name, die)


@forks
@large
@pytest.mark.parametrize("resumed", [True, False])
def test_a_budget_of_three_processes_with_crashes(tmp_path, monkeypatch, resumed):
    """A process for each day, killed at every point in turn; then resumed, or given up and started
    anew by another. Would catch a release that is not written down, or one written down twice."""
    model().save(tmp_path / "m.npz", notes=model().notes)
    days = 3
    for k in range(days):
        day(k, 60).to_csv(tmp_path / f"d{k}.csv", index=False)
    for n, point in enumerate(POINTS if resumed else POINTS[1::3]):
        ledger, outs = tmp_path / f"ledger{n}", []
        p = plan(
            mobility=tmp_path / "m.npz", budget={"total": 9, "1d": 4}, on_error="skip",
            ledger=ledger, seed=None,
        )  # fmt: skip
        for k in range(days):
            out = tmp_path / f"o{n}-{k}.csv"

            def work(out=out, k=k, p=p, **how):
                pf.release_files(tmp_path / f"d{k}.csv", out, p, batch_rows=40, **how)

            with monkeypatch.context() as patch:
                dying(patch, *point)
                assert ended(forked(work)) == 9
            again = {"resume" if resumed else "force": True}
            if not (resumed and out.exists() and not out.with_name(f"{out.name}.work").exists()):
                work(**again)
            outs.append(pd.read_csv(out))
        spent = pf.Ledger.load(ledger)
        for user in day(0)["user"].unique():
            all_of = [released(out).get(user, []) for out in outs]
            n_released = sum(map(len, all_of))
            assert all(len(one) <= 4 for one in all_of) and n_released <= 9
            told = spent.epsilon(spent.index(user))
            assert n_released <= told <= 9  # what was given up counts as spent
            assert told == n_released or not resumed
        assert not spent.unsettled.any() or not resumed
