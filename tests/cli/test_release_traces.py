"""``fit``, ``release --mobility`` and ``attack``: rows as steps of traces."""

import json

import numba
import numpy as np
import pytest

import pglp_fast as pf
from cases import large
from cli_tools import MAP, answer, read, run, the_grid, trips, write_csv
from pglp_fast.cli.plans import headline_of
from pglp_fast.pipeline.persons import Numbers
from pglp_fast.pipeline.steps import step_numbers

pytestmark = pytest.mark.usefixtures("here")

ALL = ["--keep", "all"]
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
STEP = 300


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
    assert (
        dropped["points outside the map"] == 1
        and sum(dropped.values()) == said["cleaning"]["rows"] - said["cleaning"]["kept"]
    )
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
    expected = pf.MobilityModel.fit(
        g, traces, smoothing="neighbours8", periods=4, period_of_step=when
    )
    assert model.periods == 4
    for k in range(4):
        assert (abs(expected.matrix(k) - model.matrix(k)) > 0).nnz == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--bounds", "1,2,3,4"], "which map? Give --cell-km"),
        (
            [*MAP, "--periods", "3", "--step", "7min"],
            "--periods needs a --step that divides the day: 420 s does not",
        ),
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
        ([*MAP, "--users", "nobody"], "history.csv has no user 'nobody'; it has e.g. "),
        ([*MAP, "--users", "@gone.txt"], "gone.txt cannot be read"),
        ([*MAP, "--users", "0", "--except-users", "1"], "not both"),
        ([*MAP, "--step", "soon"], "'soon' is not a duration: write 30s, 5min, 1h or 1d"),
    ],
)
def test_bad_fits_are_told(tmp_path, capsys, more, message):
    walks(tmp_path / "history.csv", 3, 5, 0)
    run("fit", "history.csv", "-o", "model.npz", *more, code=2)
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err
    assert not (tmp_path / "model.npz").exists()


def test_a_model_of_some_users_is_that_of_their_rows(tmp_path, capsys):
    """--users was not there: a model of other people needed a table of its own."""
    walks(tmp_path / "history.csv", 6, 30, 0)
    rows = read(tmp_path / "history.csv")
    some = [row for row in rows if row["user"] in ("1", "4")]
    write_csv(tmp_path / "two.csv", {k: [row[k] for row in some] for k in rows[0]})
    (tmp_path / "others.txt").write_text("0\n2\n\n3\n5\n")
    for name, table, how in (
        ("a", "two.csv", []),
        ("b", "history.csv", ["--users", "1,4"]),
        ("c", "history.csv", ["--except-users", "@others.txt"]),
    ):
        said = answer(capsys, "fit", table, "-o", f"{name}.npz", *MAP, *how)
        assert said["cleaning"]["kept"] == len(some)
    a, b, c = (pf.MobilityModel.open(f"{name}.npz") for name in "abc")
    for other in (b, c):
        assert np.array_equal(a.chains[0].data, other.chains[0].data)


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


def released_by_definition(rows, g, releaser, step_ms, seed):
    """Each person by itself through the library, by the rule of the help text."""
    labels = [r["user"] for r in rows]
    ms = [int(r["time"]) * 1000 for r in rows]
    cells = g.locate([float(r["lat"]) for r in rows], [float(r["lon"]) for r in rows])
    out = [("outside", None, None)] * len(rows)
    periods = releaser.model.periods
    local = (np.arange(86_400_000 // step_ms) * step_ms // 1000 + 9 * 3600) % 86400
    for label in sorted(set(labels)):
        person = Numbers(seed)(pf.Tracks.of([label], ["2020-01-01"], [0.0], [0.0]).user)[0]
        mine = [k for k in range(len(rows)) if labels[k] == label and cells[k] >= 0]
        mine.sort(key=lambda k: (ms[k], k))
        steps = step_numbers(np.array([ms[k] for k in mine]), step_ms).tolist()
        speaks = {}
        for k, step in zip(mine, steps, strict=True):
            speaks.setdefault(step, k)
        number = np.repeat(person, len(speaks))
        events = pf.Events(number, list(speaks), cells[list(speaks.values())])
        R = releaser.run(events, cycle=pf.day_period(local, periods))
        for e, k in enumerate(speaks.values()):
            out[k] = ("step", int(R.released[e]), bool(R.surrogate[e]))
        for k, step in zip(mine, steps, strict=True):
            if speaks[step] != k:
                out[k] = ("repeat", out[speaks[step]][1], None)
    return out


@pytest.mark.parametrize("periods", [1, pytest.param(3, marks=large)])
def test_traces_are_released_as_the_library_would(tmp_path, capsys, periods):
    """In no order, with repeats, gaps and rows off the map.

    Would catch any row that gets another row's release.
    """
    walks(tmp_path / "history.csv", 30, 40, 3)
    more = [] if periods == 1 else ["--periods", 3, "--utc-offset", "9h"]
    model = fitted(*more)
    n, users = (60, 3) if numba.config.DISABLE_JIT else (240, 9)
    trips(tmp_path / "t.csv", n, users=users, inside=0.9)
    g = model.locations
    job = ["release", "t.csv", *PROMISE, "--mobility", "model.npz", "--seed", 11, *ALL]
    said = answer(capsys, *job, "-o", "o.csv", "--batch-rows", 25)
    rows = read(tmp_path / "o.csv")
    assert [r["note"] for r in rows] == [r["note"] for r in read(tmp_path / "t.csv")]
    releaser = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=11)
    expected = released_by_definition(rows, g, releaser, 300_000, 11)
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


def test_what_is_released_about_somebody_depends_on_nobody_else(tmp_path):
    """Other people, other order, two files instead of one: the same releases for the same rows."""
    walks(tmp_path / "history.csv", 20, 30, 3)
    fitted()
    walks(tmp_path / "t.csv", 8, 12, 5, keep=0.7)
    job = [*PROMISE, "--mobility", "model.npz", "--seed", 1, "--batch-rows", 20]
    run("release", "t.csv", "-o", "o.csv", *job)
    head, *lines = (tmp_path / "t.csv").read_text().splitlines()
    whole = {(r["user"], r["time"]): r["released_cell"] for r in read(tmp_path / "o.csv")}
    few = [line for line in lines if line.split(",")[0] in ("2", "5")]
    (tmp_path / "few.csv").write_text("\n".join([head, *reversed(few)]))
    run("release", "few.csv", "-o", "f.csv", *job)
    got = {(r["user"], r["time"]): r["released_cell"] for r in read(tmp_path / "f.csv")}
    assert got and all(whole[key] == cell for key, cell in got.items())
    (tmp_path / "days").mkdir()
    for k, some in enumerate((lines[::2], lines[1::2])):
        (tmp_path / "days" / f"{k}.csv").write_text("\n".join([head, *some]) + "\n")
    run("release", "days", "-o", "private", *job)
    parts = [r for k in range(2) for r in read(tmp_path / "private" / f"{k}.csv")]
    assert {(r["user"], r["time"]): r["released_cell"] for r in parts} == whole
    run("release", "days/*.csv", "-o", "again", *job)
    for k in range(2):
        name = f"{k}.csv"
        one, other = ((tmp_path / f / name).read_bytes() for f in ("private", "again"))
        assert one == other
    assert sorted(p.name for p in (tmp_path / "private").iterdir()) == [
        "0.csv", "0.csv.json", "1.csv", "1.csv.json",
    ]  # fmt: skip


# -- silence


def two_ways(tmp_path, gap, epsilon, users):
    """Everybody starts anywhere on 3 x 6 cells, moves to 0 or to 3, and stays; rows of a first step
    and of one ``gap`` steps later, where half of the people are at 0 and half at 3."""
    g = pf.Grid.from_bounds(lat=(0.0, 0.02), lon=(0.0, 0.04), cell_km=0.75)
    assert (g.rows, g.cols) == (3, 6)
    M = np.zeros((18, 18))
    M[:, 0] = M[:, 3] = 0.5
    M[0], M[3] = np.eye(18)[0], np.eye(18)[3]
    pf.MobilityModel(g, M).save(tmp_path / "two.npz", notes={"step_ms": 300_000})
    start = np.arange(users) % 9 // 3 * 6 + np.arange(users) % 3 + 3 * (np.arange(users) % 2)
    later = np.where(np.arange(users) % 2, 3, 0)
    columns = {"user": [], "time": [], "lat": [], "lon": []}
    for cells, seconds in ((start, 0), (later, 300 * gap)):
        at = g.latlon(cells)
        columns["user"] += range(users)
        columns["time"] += [1_760_000_100 + seconds] * users
        columns["lat"] += at[:, 0].tolist()
        columns["lon"] += at[:, 1].tolist()
    write_csv(tmp_path / "t.csv", columns)
    run(
        "release", "t.csv", "-o", "o.csv", "--epsilon", epsilon, "--policy", "blocks:3",
        "--mobility", "two.npz", "--seed", 5, *ALL,
    )  # fmt: skip
    rows = read(tmp_path / "o.csv")[users:]
    told = np.array([int(r["released_cell"]) for r in rows])
    return later, told, [r["released_exposed"] for r in rows]


@pytest.mark.parametrize("gap", [1, 14, 1000])
def test_silence_of_any_length_forgets_nothing(tmp_path, gap):
    """After any silence only 0 and 3 are possible, in different blocks: each is alone in its block
    of C_t, so the policy is repaired, and the two are told apart by no more than e^epsilon allows.
    A belief that starts again after 12 silent steps holds the blocks for whole and releases 0 and 3
    within their own: an adversary is then right in 100 % of cases."""
    epsilon, users = 0.5, 2000
    later, told, exposed = two_ways(tmp_path, gap, epsilon, users)
    assert set(told) <= {0, 3} and set(exposed) == {"false"}
    right = (told == later).mean()
    most = np.exp(epsilon) / (1 + np.exp(epsilon))
    assert right <= most + 5 * np.sqrt(most * (1 - most) / users)


def test_a_person_has_one_budget_in_all_files_and_pieces(tmp_path, capsys):
    """Rows a week apart, in two files: five releases under a budget of 5, not ten."""
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    (tmp_path / "days").mkdir()
    for day in range(2):
        walks(tmp_path / "days" / f"{day}.csv", 3, 5, 5, start=1_760_000_100 + 604_800 * day)
    for where in (["--mobility", "model.npz"], MAP):
        job = ["release", "days", "-o", "out", *PROMISE, *where, "--budget", 5, "--force"]
        run(*job, code=2)
        assert "15 rows are beyond the budget" in capsys.readouterr().err
        said = answer(capsys, *job, "--on-error", "skip")
        assert said["status"]["budget"] == 15 and said["largest_epsilon_of_a_user"] == 5
        assert {r["released_status"] for r in read(tmp_path / "out" / "1.csv")} == {"budget"}


def test_rows_without_a_time_are_not_steps(tmp_path):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    (tmp_path / "t.csv").write_text(
        "user,time,lat,lon\na,,35.70,139.62\na,1760000000,35.70,139.62\na,1760000001,35.70,139.62\n"
    )
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
    table = {
        "user": [r["user"] for r in rows],
        "time": pa.array([int(r["time"]) for r in rows], pa.timestamp("s")),
    }
    pq.write_table(
        pa.table({**table, **{k: [float(r[k]) for r in rows] for k in ("lat", "lon")}}), "t.parquet"
    )
    for name in ("t.csv", "t.parquet"):
        run(
            "release",
            name,
            "-o",
            f"o-{name}",
            *PROMISE,
            "--mobility",
            "model.npz",
            "--seed",
            2,
            *ALL,
            "--batch-rows",
            13,
        )
    text, table = read(tmp_path / "o-t.csv"), pq.read_table("o-t.parquet").to_pylist()
    said = {True: "true", False: "false", None: ""}
    cell = {k: str(k) for k in range(the_grid().size)} | {None: ""}
    for a, b in zip(text, table, strict=True):
        assert (a["released_status"], a["released_cell"]) == (
            b["released_status"],
            cell[b["released_cell"]],
        )
        assert (a["released_surrogate"], a["released_exposed"]) == (
            said[b["released_surrogate"]],
            said[b["released_exposed"]],
        )


def test_the_budget_of_a_user_who_moves(tmp_path, capsys):
    walks(tmp_path / "history.csv", 10, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 3, 12, 5)
    job = ["release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz", "--budget", 5]
    run(*job, code=2)
    assert "21 rows are beyond the budget, the first of user" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "history.csv",
        "model.npz",
        "model.npz.users",
        "t.csv",
    ]
    run(*job, "--on-error", "skip")
    for u in "012":
        statuses = [r["released_status"] for r in read(tmp_path / "o.csv") if r["user"] == u]
        assert statuses == ["step"] * 5 + ["budget"] * 7


def test_the_first_sentence_and_the_count_of_repairs_are_those_of_traces(tmp_path, capsys):
    """It said "knows the block" of releases that repairs and a bad model lead out of. The count is
    worked out again from what was released."""
    walks(tmp_path / "history.csv", 20, 20, 3)
    model = fitted()
    walks(tmp_path / "t.csv", 6, 20, 4)
    how = ["--mobility", "model.npz", "--policy", "blocks:3", "--epsilon", "1"]
    capsys.readouterr()
    run("release", "t.csv", "-o", "o.csv", *how)
    told, meant, *lines = capsys.readouterr().out.splitlines()
    assert "unless the step was repaired or the model of movement was wrong" in told
    assert meant.startswith("A step is repaired where")
    assert any("if each cell of the map is as likely and none is ruled out" in x for x in lines)
    rows = [r for r in read(tmp_path / "o.csv") if r["released_status"] == "step"]
    users = sorted({r["user"] for r in rows})
    cells = np.full((len(users), 20), -1)
    for r in rows:
        step = (int(r["time"]) - 1_760_000_100) // STEP
        cells[users.index(r["user"]), step] = r["released_cell"]
    assert (cells >= 0).all()
    T = pf.TraceReleaser(pf.blocks(model.locations, 3), model, epsilon=1.0)
    repaired = sum(int((step.added > 0).sum()) for _, step in T.replay(T.observe(cells)))
    assert repaired > 0 and any(f" {repaired:,} steps repaired, " in x for x in lines)
    said = answer(capsys, "release", "t.csv", "-o", "p.csv", *how)
    assert said["headline"] == f"{told} {meant}" and 0 < said["repaired"] <= len(rows)
    answer(capsys, "certify", *how)
    (tmp_path / "job.toml").write_text(
        'table = "t.csv"\noutput = "q.csv"\nepsilon = 1.0\npolicy = "blocks:3"\n'
        'mobility = "model.npz"\npolicies = { night = "blocks:2" }\n'
        'schedule = { times = { "09:10-09:40" = "night" }, persons = { "0" = 0.5 } }\n'
    )
    capsys.readouterr()
    run("release", "--config", "job.toml")
    several = capsys.readouterr().out.splitlines()[0]
    assert "Under policy default" in several and "Under policy night" in several
    assert "2 x 2 cells" in several and several.count("a factor of e^1 = 2.72") == 2
    # before anything is released nobody knows which will hold
    plan = pf.Plan(
        grid=model.locations, policy="blocks:3", policies={"night": "blocks:2"}, epsilon=1.0,
        schedule={"times": {"22:00-06:00": "night"}, "persons": {"0": 0.5}}, step="5min",
        mobility=model,
    )  # fmt: skip
    ahead = headline_of(plan)[0]
    assert "Under policy night" in ahead and "where another holds, so does its factor" in ahead


def test_what_is_public_does_not_tell_where_users_were(tmp_path, capsys):
    """A surrogate depends on the true cell: published, it tells cells of one block apart for
    certain. And the model, which is public, must hold nothing of single users: their days are in a
    file of their own, for its owner."""
    walks(tmp_path / "history.csv", 12, 20, 3)
    fitted()
    walks(tmp_path / "t.csv", 12, 20, 4)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, "--mobility", "model.npz")
    assert "released_exposed" in read(tmp_path / "o.csv")[0]
    assert not [name for name in read(tmp_path / "o.csv")[0] if "surrogate" in name]
    assert (tmp_path / "model.npz.users").stat().st_mode & 0o077 == 0
    assert b"users" not in (tmp_path / "model.npz").read_bytes()
    capsys.readouterr()
    run("attack", "o.csv", *PROMISE, "--mobility", "model.npz")  # it can still be attacked
    (tmp_path / "model.npz.users").unlink()
    run("release", "t.csv", "-o", "p.csv", *PROMISE, "--mobility", "model.npz", *ALL, "--json")
    assert (
        json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))[
            "model_fitted_on_these_traces"
        ]
        is None
    )


@pytest.mark.parametrize("kind", ["same", "half a day", "parquet", "few", "others"])
def test_a_model_of_the_very_traces_is_not_public_knowledge(tmp_path, capsys, kind):
    """Warned of for the same users in another order or format, or some of them; not for other
    people."""
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
        (tmp_path / "t.csv").write_text(
            "\n".join(
                [lines[0], *(x for x in reversed(lines[1:]) if x.split(",")[0] in ("3", "4"))]
            )
        )
    elif kind == "half a day":
        (tmp_path / "t.csv").write_text("\n".join(lines[: len(lines) // 2]))
    elif kind == "same":
        (tmp_path / "t.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    else:
        walks(tmp_path / "t.csv", 12, 20, 4)
        share = 0.0
    run("release", name, "-o", f"o{name[1:]}", *PROMISE, "--mobility", "model.npz", *ALL, "--json")
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
        (
            ["--mechanism", "krr", "--likelihood", "density"],
            "--likelihood density is for noise alone",
        ),
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


# -- attack


@pytest.mark.parametrize("periods", [1, pytest.param(3, marks=large)])
def test_attack_says_what_the_library_says(tmp_path, capsys, periods):
    walks(tmp_path / "history.csv", 30, 40, 3)
    model = fitted(*([] if periods == 1 else ["--periods", 3, "--utc-offset", "9h"]))
    walks(tmp_path / "t.csv", 8, 12, 5)
    how = [*PROMISE, "--mobility", "model.npz"]
    run("release", "t.csv", "-o", "o.csv", *how, "--seed", 1, *ALL)
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
    run("release", "t.csv", "-o", "bare.csv", *how, "--seed", 1)
    bare = answer(capsys, "attack", "bare.csv", *how, "--traces", 3)
    assert bare["truth"] is False and bare["traces"] == 3 and bare["of_traces"] == 8
    assert bare["rows"][0]["error_km"] is None
    run("attack", "o.csv", *how)
    out = capsys.readouterr().out
    assert "privacy: the best guess is off by: expected" in out and "; measured" in out
    run("attack", "bare.csv", *how)
    out = capsys.readouterr().out
    assert "; not measured: no true places" in out and "if people move as the model says" in out


def test_attack_tells_of_homes_and_persons_where_the_truth_is_there(tmp_path, capsys):
    """What people ask first was in Python only. Days and nights are those of the local clock."""
    walks(tmp_path / "history.csv", 20, 20, 3)
    model = fitted()
    walks(tmp_path / "t.csv", 6, 20, 4)
    how = [*PROMISE, "--mobility", "model.npz"]
    run("release", "t.csv", "-o", "o.csv", *how, *ALL)
    cells = np.full((2, 6, 20), -1)
    for r in read(tmp_path / "o.csv"):
        at = int(r["user"]), (int(r["time"]) - 1_760_000_100) // STEP
        cells[:, *at] = r["released_cell"], model.locations.locate(float(r["lat"]), float(r["lon"]))
    seen, true = cells
    g, clock = model.locations, (np.arange(20) * STEP + 1_760_000_100) // STEP * STEP / 3600
    for more, hours in (([], None), (["--utc-offset", "-5h"], (clock - 5) % 24)):
        said = answer(capsys, "attack", "o.csv", *how, *more)["profiles"]
        for name, guesses in (
            ("released", seen),
            (
                "bayes",
                pf.attack(
                    pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0).observe(seen)
                ).bayes,
            ),
        ):
            want = pf.profile_attacks(g, true, guesses, hours=hours)
            assert [r["attack"] for r in said[name]] == [r.attack for r in want]
            for shown, row in zip(said[name], want, strict=True):
                for key in ("before", "after"):
                    value = getattr(row, key)
                    assert shown[key] == (None if np.isnan(value) else value)
    run("attack", "o.csv", *how)
    out = capsys.readouterr().out
    assert (
        "nan" not in out
        and "re-identified" in out
        and "--utc-offset tells nights and working hours" in out
    )
    run("release", "t.csv", "-o", "shared.csv", *how)
    capsys.readouterr()
    run("attack", "shared.csv", *how)
    assert "re-identified" not in capsys.readouterr().out


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
    other = ["--epsilon", 1, "--policy", "blocks:1", "--mobility", "model.npz"]
    run("attack", "o.csv", *other, code=2)
    assert "was released with --policy blocks:3, not blocks:1" in capsys.readouterr().err
    (tmp_path / "o.csv.json").unlink()
    run("attack", "o.csv", *other, code=2)
    err = capsys.readouterr().err
    assert "o.csv does not say how it was released" in err and "cannot have released" in err
    with (tmp_path / "alone.csv").open("a") as file:
        file.write("\n")
    run("certify", *PROMISE, *MAP, "--table", "alone.csv", code=2)
    assert "alone.csv is not what was released: alone.csv.json tells" in capsys.readouterr().err
