"""``fit``, ``release --mobility`` and ``attack``: rows as steps of traces."""

import json

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pglp_fast as pf
from cli_tools import MAP, answer, read, run, the_grid, trips, write_csv
from pglp_fast.cli import journal as journals
from pglp_fast.cli.steps import blocks, lay_out

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="large input")
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
STEP = 300


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def walks(path, users, steps, seed, *, start=1_760_000_100, keep=1.0):
    """People who walk from cell to cell; rows user by user."""
    g, rng = the_grid(), np.random.default_rng(seed)
    row, col = rng.integers(0, g.rows, users), rng.integers(0, g.cols, users)
    columns = {"user": [], "time": [], "lat": [], "lon": []}
    for t in range(steps):
        row = np.clip(row + rng.integers(-1, 2, users), 0, g.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, g.cols - 1)
        at = g.latlon(row * g.cols + col)
        for u in np.flatnonzero(rng.random(users) < keep):
            columns["user"].append(u), columns["time"].append(start + STEP * t)
            columns["lat"].append(at[u, 0]), columns["lon"].append(at[u, 1])
    return write_csv(path, columns)


def fitted(*more, name="model.npz"):
    run("fit", "history.csv", "-o", name, *MAP, "--smoothing", "neighbours8", *more)
    return pf.MobilityModel.open(name)


# -- the rule for rows and steps


def naive_layout(user, ms, step, max_gap, allowed):
    """The rule as the help text has it, user by user and row by row: (role of each row, traces as lists of (row, step))."""
    role, traces = {}, []
    for u in sorted(set(user)):
        rows = sorted((k for k in range(len(user)) if user[k] == u), key=lambda k: (ms[k], k))
        last, spent, trace = None, 0, None
        speaks, unpaid = None, None
        for k in rows:
            now = ms[k] // step
            if now == unpaid:
                role[k] = "budget"
            elif now == last:
                role[k] = ("repeat", speaks)
            elif allowed is not None and spent == allowed:
                role[k], unpaid = "budget", now
            else:
                if last is None or now - last - 1 > max_gap:
                    trace = []
                    traces.append(trace)
                trace.append((k, now))
                role[k], last, speaks, spent = "step", now, k, spent + 1
    return role, traces


rows_of_users = st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 400)), max_size=30)


@given(rows_of_users, st.integers(1, 13), st.integers(0, 6), st.none() | st.integers(0, 5))
def test_rows_become_steps_by_the_rule(rows, step, max_gap, allowed):
    """Would catch a gap counted off by one, a repeat that is released afresh, or a budget spent by repeats."""
    user, ms = (np.array([r[k] for r in rows], np.int64) for k in (0, 1))
    got = lay_out(user.astype(np.int32), ms, step, max_gap, allowed)
    role, traces = naive_layout(user.tolist(), ms.tolist(), step, max_gap, allowed)
    assert got.rows.tolist() == [k for trace in traces for k, _ in trace]
    assert got.trace.tolist() == [i for i, trace in enumerate(traces) for _ in trace]
    assert got.at.tolist() == [now - trace[0][1] for trace in traces for _, now in trace]
    assert got.lengths.tolist() == [trace[-1][1] - trace[0][1] + 1 for trace in traces]
    for k in range(len(rows)):
        if role[k] == "budget":
            assert got.over[k] and got.follows[k] == -1
        else:
            speaks = k if role[k] == "step" else role[k][1]
            assert not got.over[k] and got.rows[got.follows[k]] == speaks


@given(rows_of_users, st.sampled_from([3_600_000, 7_200_000]), st.sampled_from([1, 4]), st.integers(1, 200))
def test_blocks_hold_every_row_once_at_a_step_of_its_own(rows, step, periods, most):
    """Entries are where their time says, whatever the size of a block: a draw is numbered by the trace alone."""
    user, ms = (np.array([r[k] for r in rows], np.int64) for k in (0, 1))
    ms = ms * 1_800_000
    steps = lay_out(user.astype(np.int32), ms, step, 5)
    seen = {}
    for block in blocks(steps, step, periods, 3_600_000, most):
        assert block.width >= steps.lengths[block.traces].max() and block.width & (block.width - 1) == 0
        assert len(block.traces) == 1 or (len(block.traces) - 1) * block.width <= most
        for where, row, column in zip(block.where, block.row, block.column, strict=True):
            trace = steps.trace[where]
            assert block.traces[row] == trace
            assert column == block.width - steps.lengths[trace] + steps.at[where]
            seen[int(where)] = (int(trace), int(column))
            if periods > 1:
                local = (ms[steps.rows[where]] // step * step + 3_600_000) % 86_400_000
                assert block.periods[column] == local * periods // 86_400_000
    assert sorted(seen) == list(range(len(steps.rows)))
    assert len(set(seen.values())) == len(seen)
    other = {}
    for block in blocks(steps, step, periods, 3_600_000, 10**6):
        for where, row, column in zip(block.where, block.row, block.column, strict=True):
            other[int(where)] = (int(block.traces[row]), int(column))
    assert other == seen


# -- fit


def test_a_model_carries_its_map_and_says_what_was_left_out(tmp_path, capsys):
    walks(tmp_path / "history.csv", 20, 30, 0, keep=0.9)
    with (tmp_path / "history.csv").open("a") as file:
        file.write("0,1760000100,80.0,10.0\n1,,35.70,139.62\n1,1760000100,35.70,139.62\n")
    said = answer(capsys, "fit", "history.csv", "-o", "model.npz", *MAP)
    model = pf.MobilityModel.open("model.npz")
    g = the_grid()
    assert model.locations.to_dict() == g.to_dict() == said["map"]
    assert (model.locations.latlon([0, 5]) == g.latlon([0, 5])).all()
    assert pf.MobilityModel.load(g, "model.npz").notes["step_ms"] == 300_000
    dropped = said["cleaning"]["dropped"]
    assert dropped["points outside the map"] == 1 and sum(dropped.values()) == said["cleaning"]["rows"] - said["cleaning"]["kept"]
    tracks = pf.read_table("history.csv").clean(g)
    expected = pf.MobilityModel.fit(g, tracks.resample(g, "5min", rule="first", max_gap="1h"))
    assert (abs(expected.matrix() - model.matrix()) > 0).nnz == 0
    run("fit", "history.csv", "-o", "model.npz", *MAP, code=2)
    assert "model.npz is there: --force overwrites it" in capsys.readouterr().err
    run("fit", "history.csv", "-o", "model.npz", *MAP, "--force")
    out = capsys.readouterr().out
    assert "rows read" in out and "moves seen" in out and "points outside the map" in out


def test_fit_by_period_of_the_local_day(tmp_path):
    walks(tmp_path / "history.csv", 6, 400, 0)
    model = fitted("--periods", "4", "--utc-offset", "-5h")
    g = the_grid()
    traces = pf.read_table("history.csv").clean(g).resample(g, "5min", rule="first", max_gap="1h")
    local = traces.times() - np.timedelta64(5, "h")
    when = np.split(pf.day_period(local, 4), traces.starts[1:-1])
    expected = pf.MobilityModel.fit(g, traces, smoothing="neighbours8", periods=4, period_of_step=when)
    assert model.periods == 4
    for k in range(4):
        assert (abs(expected.matrix(k) - model.matrix(k)) > 0).nnz == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--bounds", "1,2,3,4"], "which map? Give --cell-km"),
        ([*MAP, "--periods", "3", "--step", "7min"], "--periods needs a --step that divides the day: 420 s does not"),
        ([*MAP, "--pseudo-count", "2"], "--pseudo-count is for --smoothing"),
        ([*MAP, "--utc-offset", "3h"], "--utc-offset is for --periods"),
        ([*MAP, "--window", "2020-01-01"], "--window must be FROM,TO"),
        ([*MAP, "--window", "x,y"], "window must be a moment such as"),
        ([*MAP, "--step", "1ms"], "no user was seen in two steps in a row"),
        (["--bounds", "1,2,3,4", "--cell-km", "9"], "no user was seen in two steps in a row"),
        ([*MAP, "--format", "geolife"], "holds no <user>/Trajectory/*.plt files"),
        (
            [*MAP, "--format", "geolife", "--names", "a,b"],
            "--names is for tables: geolife files have columns and times of their own",
        ),
        ([*MAP, "--step", "soon"], "'soon' is not a duration: write 30s, 5min, 1h or 1d"),
    ],
)
def test_bad_fits_are_told(tmp_path, capsys, more, message):
    walks(tmp_path / "history.csv", 3, 5, 0)
    run("fit", "history.csv", "-o", "model.npz", *more, code=2)
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err
    assert not (tmp_path / "model.npz").exists()


def test_a_geolife_folder_is_known_by_its_files(tmp_path, capsys):
    folder = tmp_path / "geo" / "000" / "Trajectory"
    folder.mkdir(parents=True)
    g, lines = the_grid(), ["x"] * 6
    for k, cell in enumerate([0, 1, 1, 2]):
        lat, lon = g.latlon(cell)
        lines.append(f"{lat:.6f},{lon:.6f},0,0,39000.0,2025-10-09,08:{5 * k:02d}:00")
    (folder / "20251009080000.plt").write_text("\n".join(lines) + "\n")
    said = answer(capsys, "fit", "geo", "-o", "m.npz", *MAP)
    assert said["moves_seen"] == 3


# -- release


def released_by_definition(rows, g, releaser_of, step_ms, max_gap):
    """Each trace by itself through the library, flush right in 2^k columns, its number the user of the stream."""
    labels = list(dict.fromkeys(r["user"] for r in rows))
    user = [labels.index(r["user"]) for r in rows]
    ms = [int(r["time"]) * 1000 for r in rows]
    cells = g.locate([float(r["lat"]) for r in rows], [float(r["lon"]) for r in rows])
    on = [k for k in range(len(rows)) if cells[k] >= 0]
    role, traces = naive_layout([user[k] for k in on], [ms[k] for k in on], step_ms, max_gap, None)
    out = [("outside", None, None)] * len(rows)
    for number, trace in enumerate(traces):
        length = trace[-1][1] - trace[0][1] + 1
        width = 1
        while width < length:
            width *= 2
        array = np.full((1, width), -1, np.int32)
        column = {k: width - length + now - trace[0][1] for k, now in trace}
        for k, c in column.items():
            array[0, c] = cells[on[k]]
        periods = None
        releaser = releaser_of()
        if releaser.model.periods > 1:
            first = trace[0][1] - (width - length)
            periods = pf.day_period(
                [((first + c) * step_ms // 1000 + 9 * 3600) % 86400 for c in range(width)], releaser.model.periods
            )
        R = releaser.run(array, users=[number], periods=periods)
        for k, c in column.items():
            out[on[k]] = ("step", int(R.released[0, c]), bool(R.surrogate[0, c]))
    for k, what in role.items():
        if what != "step":
            out[on[k]] = ("repeat", out[on[what[1]]][1], None)
    return out


@pytest.mark.parametrize("periods", [1, pytest.param(3, marks=compiled)])
def test_traces_are_released_as_the_library_would(tmp_path, capsys, periods):
    """In no order, with repeats, gaps and rows off the map. Would catch any row that gets another row's release."""
    walks(tmp_path / "history.csv", 30, 40, 3)
    more = [] if periods == 1 else ["--periods", 3, "--utc-offset", "9h"]
    model = fitted(*more)
    n, users = (60, 3) if numba.config.DISABLE_JIT else (240, 9)
    trips(tmp_path / "t.csv", n, users=users, inside=0.9)
    g = model.locations
    job = ["release", "t.csv", *PROMISE, "--mobility", "model.npz", "--seed", 11, "--max-missing", 2]
    said = answer(capsys, *job, "-o", "o.csv", "--batch-rows", 25)
    rows = read(tmp_path / "o.csv")
    assert [r["note"] for r in rows] == [r["note"] for r in read(tmp_path / "t.csv")]
    expected = released_by_definition(
        rows, g, lambda: pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=11), 300_000, 2
    )  # fmt: skip
    kinds = {"step": 0, "repeat": 0, "outside": 0}
    for r, (status, cell, surrogate) in zip(rows, expected, strict=True):
        kinds[status] += 1
        assert r["released_status"] == status
        assert r["released_cell"] == ("" if cell is None else str(cell))
        assert r["released_surrogate"] == ("" if surrogate is None else str(surrogate).lower())
        assert (r["released_exposed"] == "") == (status != "step")
    assert min(kinds.values()) > 3
    assert said["status"] == kinds
    assert said["surrogate"] == sum(bool(e[2]) for e in expected)
    run(*job, "-o", "p.csv", "--batch-rows", 5000)
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_the_prior_after_a_long_silence_rules_out_nothing(tmp_path):
    """The claim of the help text: stationary() of a fitted model, also one without smoothing, is positive everywhere."""
    walks(tmp_path / "history.csv", 5, 30, 3)
    run("fit", "history.csv", "-o", "model.npz", *MAP)
    assert (pf.MobilityModel.open("model.npz").stationary() > 0).all()


def test_rows_without_a_time_are_not_steps(tmp_path):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    (tmp_path / "t.csv").write_text("user,time,lat,lon\na,,35.70,139.62\na,1760000000,35.70,139.62\na,1760000001,35.70,139.62\n")
    run("release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz")
    assert [r["released_status"] for r in read(tmp_path / "o.csv")] == ["missing", "step", "repeat"]
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP)
    assert [r["released_status"] for r in read(tmp_path / "p.csv")] == ["alone"] * 3


def test_parquet_with_mobility(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    trips(tmp_path / "t.csv", 60, inside=0.9)
    rows = read(tmp_path / "t.csv")
    table = {"user": [r["user"] for r in rows], "time": pa.array([int(r["time"]) for r in rows], pa.timestamp("s"))}
    pq.write_table(pa.table({**table, **{k: [float(r[k]) for r in rows] for k in ("lat", "lon")}}), "t.parquet")
    for name in ("t.csv", "t.parquet"):
        run("release", name, "-o", f"o-{name}", *PROMISE, "--mobility", "model.npz", "--seed", 2, "--batch-rows", 13)
    text, table = read(tmp_path / "o-t.csv"), pq.read_table("o-t.parquet").to_pylist()
    said = {True: "true", False: "false", None: ""}
    cell = {k: str(k) for k in range(the_grid().size)} | {None: ""}
    for a, b in zip(text, table, strict=True):
        assert (a["released_status"], a["released_cell"]) == (b["released_status"], cell[b["released_cell"]])
        assert (a["released_surrogate"], a["released_exposed"]) == (said[b["released_surrogate"]], said[b["released_exposed"]])


def test_the_budget_of_a_user_who_moves(tmp_path, capsys):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 3, 12, 5)
    job = ["release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz", "--budget", 5]
    run(*job, code=2)
    assert "21 rows are beyond the budget, the first of user" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["history.csv", "model.npz", "model.npz.users", "t.csv"]
    run(*job, "--on-error", "skip")
    for u in "012":
        statuses = [r["released_status"] for r in read(tmp_path / "o.csv") if r["user"] == u]
        assert statuses == ["step"] * 5 + ["budget"] * 7


def test_what_is_public_does_not_tell_where_users_were(tmp_path, capsys):
    """A surrogate depends on the true cell: published, it tells cells of one block apart for certain. And the model, which is
    public, must hold nothing of single users: their days are in a file of their own, for its owner."""
    walks(tmp_path / "history.csv", 12, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 12, 20, 4)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz", "--drop-true")
    assert "released_exposed" in read(tmp_path / "o.csv")[0]
    assert not [name for name in read(tmp_path / "o.csv")[0] if "surrogate" in name]
    assert (tmp_path / "model.npz.users").stat().st_mode & 0o077 == 0
    assert b"users" not in (tmp_path / "model.npz").read_bytes()
    capsys.readouterr()
    run("attack", "o.csv", *PROMISE, "--mobility", "model.npz")  # it can still be attacked
    (tmp_path / "model.npz.users").unlink()
    run("release", "t.csv", "-o", "p.csv", *PROMISE, "--mobility", "model.npz", "--json")
    assert json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))["model_fitted_on_these_traces"] is None


@pytest.mark.parametrize("kind", ["same", "half a day", "parquet", "few", "others"])
def test_a_model_of_the_very_traces_is_not_public_knowledge(tmp_path, capsys, kind):
    """Warned of for the same users in another order or format, or some of them; not for other people."""
    walks(tmp_path / "history.csv", 12, 20, 3)
    fitted()
    capsys.readouterr()
    lines = (tmp_path / "history.csv").read_text().splitlines()
    name, share = "t.csv", 1.0
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        import pyarrow.csv as pc
        import pyarrow.parquet as pq

        pq.write_table(pc.read_csv("history.csv"), "t.parquet")
        name = "t.parquet"
    elif kind == "few":
        (tmp_path / "t.csv").write_text("\n".join([lines[0], *(x for x in reversed(lines[1:]) if x.split(",")[0] in ("3", "4"))]))
    elif kind == "half a day":
        (tmp_path / "t.csv").write_text("\n".join(lines[: len(lines) // 2]))
    elif kind == "same":
        (tmp_path / "t.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    else:
        walks(tmp_path / "t.csv", 12, 20, 4)
        share = 0.0
    run("release", name, "-o", f"o{name[1:]}", *PROMISE, "--mobility", "model.npz", "--json")
    out, err = capsys.readouterr()
    said = json.loads(out[out.index('{\n  "output"') :] if not out.startswith("{") else out)
    assert abs(said["model_fitted_on_these_traces"] - share) < 0.1  # strangers meet, on a grid
    assert ("was fitted on the very traces that are released here" in err) == (share > 0)


def test_the_map_of_the_model_is_taken_or_checked(tmp_path, capsys):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    trips(tmp_path / "t.csv", 20)
    job = ["release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz", "--force"]
    run(*job)
    run(*job, *MAP)
    for more, message in (
        (["--cell-km", "0.5"], "--cell-km 0.5,0.5 is not the model's: model.npz has"),
        (["--bounds", "35.68,35.80,139.60,139.65"], "--bounds are not the model's"),
        (["--bounds", "35.69,35.73,139.60,139.65"], "--bounds are not the model's"),
        (["--step", "1min"], "--step is 60 s, the model's steps are 300 s: leave --step out"),
        (["--mechanism", "krr", "--likelihood", "density"], "--likelihood density is for noise alone"),
    ):
        run(*job, *more, code=2)
        assert message in capsys.readouterr().err
    g = the_grid()
    pf.MobilityModel(g, np.eye(g.size)).save("plain.npz")
    job = ["release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "plain.npz", "--force"]
    run(*job, code=2)
    assert "plain.npz does not say how long its steps are: give --step" in capsys.readouterr().err
    run(*job, "--step", "5min")
    pf.MobilityModel(pf.Grid(2, 2), np.eye(4)).save("km.npz")
    run("release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "km.npz", "--force", code=2)
    assert "has no latitude and longitude" in capsys.readouterr().err
    pf.MobilityModel(pf.Points([[0, 0], [1, 1]]), np.eye(2)).save("points.npz")
    run("release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "points.npz", "--force", code=2)
    assert "does not hold its map" in capsys.readouterr().err


def test_an_interrupted_release_of_traces_takes_up_what_is_done(tmp_path, monkeypatch):
    """Blocks of traces that are done are not drawn again, and the output is that of a run without interruption."""
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 12, 16, 5)
    job = ["release", "t.csv", *PROMISE, "--mobility", "model.npz", "--seed", 3, "--batch-rows", 40]
    run(*job, "-o", "whole.csv")
    runs = []

    def counting(limit):
        original = pf.TraceReleaser.run

        def counted(self, *arguments, **options):
            if len(runs) == limit:
                raise KeyboardInterrupt
            runs.append(1)
            return original(self, *arguments, **options)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(pf.TraceReleaser, "run", counting(2))
        run(*job, "-o", "o.csv", code=130)
    steps = journals.steps_of(tmp_path / "o.csv")
    assert steps.stat().st_mode & 0o777 == 0o600
    with steps.open("ab") as file:
        file.write(b"cut off")
    with monkeypatch.context() as patch:
        runs.clear()
        patch.setattr(pf.TraceReleaser, "run", counting(100))
        run(*job, "-o", "o.csv", "--resume")
    total = len(list(blocks(lay_out(*_placed("t.csv"), 300_000, 12), 300_000, 1, 0, 40)))
    assert total > 3 and len(runs) == total - 2
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".part", ".journal", ".steps")]


def _placed(path):
    tracks = pf.read_table(path)
    return tracks.user.codes, tracks.ms


# -- attack


@pytest.mark.parametrize("periods", [1, pytest.param(3, marks=compiled)])
def test_attack_says_what_the_library_says(tmp_path, capsys, periods):
    walks(tmp_path / "history.csv", 30, 40, 3)
    model = fitted(*([] if periods == 1 else ["--periods", 3, "--utc-offset", "9h"]))
    walks(tmp_path / "t.csv", 8, 12, 5)
    how = [*PROMISE, "--mobility", "model.npz"]
    run("release", "t.csv", "-o", "o.csv", *how, "--seed", 1)
    said = answer(capsys, "attack", "o.csv", *how)
    g, rows = model.locations, read(tmp_path / "o.csv")
    T = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0)
    released, truth = np.full((8, 12), -1), np.full((8, 12), -1)
    for r in rows:
        t = (int(r["time"]) - 1_760_000_100) // 300
        released[int(r["user"]), t] = int(r["released_cell"])
        truth[int(r["user"]), t] = g.locate(float(r["lat"]), float(r["lon"]))
    when = None
    if periods > 1:
        first = 1_760_000_100 // 300
        when = pf.day_period([((first + t) * 300 + 9 * 3600) % 86400 for t in range(12)], 3)
    table = pf.attack(T.observe(released, periods=when), truth=truth).table()
    assert said["truth"] and said["traces"] == 8 and said["steps"] == 96
    for row in said["rows"]:
        assert row["expected_km"] == pytest.approx(table[row["estimator"]].expected_km, rel=1e-12)
        assert row["error_km"] == pytest.approx(table[row["estimator"]].error_km, rel=1e-12)
    assert said["utility_km"] == pytest.approx(table.utility_km)
    run("release", "t.csv", "-o", "bare.csv", *how, "--seed", 1, "--drop-true")
    bare = answer(capsys, "attack", "bare.csv", *how, "--traces", 3)
    assert bare["truth"] is False and bare["traces"] == 3 and bare["of_traces"] == 8
    assert bare["rows"][0]["error_km"] is None
    run("attack", "o.csv", *how)
    assert "privacy: the best guess is expected to be" in capsys.readouterr().out


def test_attack_needs_a_table_that_was_released_with_a_model(tmp_path, capsys):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 3, 6, 5)
    how = [*PROMISE, "--mobility", "model.npz"]
    run("release", "t.csv", "-o", "alone.csv", *PROMISE, *MAP)
    run("attack", "alone.csv", *how, code=2)
    assert "alone.csv was released one by one" in capsys.readouterr().err
    run("attack", "t.csv", *how, code=2)
    assert "no column 'released_lat'" in capsys.readouterr().err
    run("release", "t.csv", "-o", "o.csv", *how)
    run("attack", "o.csv", "--epsilon", 1, "--policy", "blocks:1", "--mobility", "model.npz", code=2)
    assert "cannot have released" in capsys.readouterr().err
