"""``pglp-fast release`` row by row: every row, order, foreign column, format, and how it fails."""

import gzip
import json
import re
import stat
import subprocess
import sys

import numpy as np
import pytest

import pglp_fast as pf
from cases import ROOT, large
from cli_tools import (
    BOUNDS,
    MAP,
    answer,
    read,
    real_process,
    run,
    some_rows,
    the_grid,
    trips,
    write_csv,
)
from pglp_fast import cli
from pglp_fast.pipeline.plan_policies import read_labels
from pglp_fast.pipeline.sink import ParquetSink, TextSink
from pglp_fast.pipeline.work_folder import Job, work_of

pytestmark = pytest.mark.usefixtures("here")

PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
ALL = ["--keep", "all"]
ADDED = ["released_lat", "released_lon", "released_cell", "released_status"]


def left_behind(tmp_path):
    return sorted(
        p.name
        for p in tmp_path.iterdir()
        if p.suffix in (".part", ".work") or p.name.startswith(".")
    )


def check_text(before, after):
    """Each line of the output is the line of the input, then the new fields: a table that is quoted
    where it must be comes out byte for byte."""
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    for a, b in zip(old, new, strict=True):
        assert b.startswith(a + b",")
        assert b[len(a) :].count(b",") == 4
    assert new[0][len(old[0]) + 1 :].decode().split(",") == ADDED


def test_rows_are_released_as_the_library_would_by_row_number(tmp_path):
    """The oracle is the mechanism itself: row k is the draw of (seed, k). Would catch rows that are
    shifted, sorted or dropped, and draws that depend on batches."""
    trips(tmp_path / "t.csv", 300, inside=0.8)
    for rows, out in ((1000, "a.csv"), (7, "b.csv")):
        run("release", "t.csv", "-o", out, *PROMISE, *MAP, *ALL, "--seed", 5, "--batch-rows", rows)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    check_text((tmp_path / "t.csv").read_bytes(), (tmp_path / "a.csv").read_bytes())
    g, rows = the_grid(), read(tmp_path / "a.csv")
    cells = g.locate([float(r["lat"]) for r in rows], [float(r["lon"]) for r in rows])
    drawn = pf.PPIM(pf.blocks(g, 3), epsilon=1.0).release(
        np.maximum(cells, 0), users=np.arange(300), rng=5
    )
    assert (cells < 0).sum() > 20
    for r, cell, z in zip(rows, cells, drawn, strict=True):
        if cell < 0:
            assert [r[name] for name in ADDED] == ["", "", "", "outside"]
        else:
            assert r["released_cell"] == str(z) and r["released_status"] == "alone"
            np.testing.assert_allclose(
                [float(r["released_lat"]), float(r["released_lon"])], g.latlon(int(z)), atol=1e-6
            )
            assert g.locate(float(r["released_lat"]), float(r["released_lon"])) == z
    assert left_behind(tmp_path) == []


def test_without_a_seed_no_two_runs_are_alike(tmp_path):
    trips(tmp_path / "t.csv", 100)
    for out in ("a.csv", "b.csv"):
        run("release", "t.csv", "-o", out, *PROMISE, *MAP)
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("t.csv", {"ending": "\r\n"}),
        ("t.tsv", {"delimiter": "\t"}),
        ("t.csv.gz", {}),
        ("t.txt", {"delimiter": ";"}),
    ],
)
def test_line_ends_delimiters_and_zip_stay(tmp_path, name, how):
    trips(tmp_path / "t.csv", 60, **how)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    elif name != "t.csv":
        (tmp_path / "t.csv").rename(tmp_path / name)
    run("release", name, "-o", f"out-{name}", *PROMISE, *MAP, *ALL, "--batch-rows", 11)
    raw = (tmp_path / f"out-{name}").read_bytes()
    after = gzip.decompress(raw) if name.endswith(".gz") else raw
    before = (
        (tmp_path / name).read_bytes()
        if not name.endswith(".gz")
        else gzip.decompress((tmp_path / name).read_bytes())
    )
    d, ending = how.get("delimiter", ",").encode(), how.get("ending", "\n").encode()
    old, new = before.split(ending), after.split(ending)
    assert len(old) == len(new) == 62
    for a, b in zip(old[:-1], new[:-1], strict=True):
        assert b.startswith(a + d) and b[len(a) :].count(d) == 4 and not b.endswith(b"\r")


def test_blank_lines_are_no_rows_and_the_last_line_needs_no_end(tmp_path):
    text = "\n\nuser,time,lat,lon\n\na,1760000000,35.70,139.62\n\r\n\nb,1760000000,35.70,139.62"
    (tmp_path / "t.csv").write_text(text)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--batch-rows", 1)
    assert [r["user"] for r in read(tmp_path / "o.csv")] == ["a", "b"]
    assert (tmp_path / "o.csv").read_bytes().endswith(b"alone\n")


def test_a_table_without_header_stays_without(tmp_path):
    (tmp_path / "t.csv").write_text("a,1760000000,35.70,139.62\nb,1760000000,35.70,139.62\n")
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, *ALL, "--names", "user,time,lat,lon")
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert len(lines) == 2 and lines[0].startswith("a,1760000000,35.70,139.62,")


def test_columns_stay_by_list(tmp_path, capsys):
    """The user and the time unless told; of rows that cannot be read nothing: those may hold a
    place anywhere. What stays and what was left out is said by name."""
    trips(tmp_path / "t.csv", 40)
    with (tmp_path / "t.csv").open("a") as file:
        file.write('x,u1,1760000000,35.7zz,139.62\n"open,u1,1760000000,35.70,139.62\n')
    before = read(tmp_path / "t.csv")[:40]
    for keep, names in (
        ([], ["user", "time"]),
        (["--keep", "time,note"], ["note", "time"]),
        (["--keep", "note,user,time,lon"], ["note", "user", "time", "lon"]),
    ):
        job = ["release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, *keep, "--on-error", "skip"]
        said = answer(capsys, *job, "--force")
        after = read(tmp_path / "o.csv")
        assert list(after[0]) == [*names, *ADDED]
        assert said["kept"] == names and set(said["kept"] + said["left_out"]) == set(before[0])
        for old, new in zip(before, after[:40], strict=True):
            assert [old[k] for k in names] == [new[k] for k in names]
        for r in after[40:]:
            assert list(r.values()) == [*[""] * len(names), "", "", "", "malformed"]
        assert all("35.7zz" not in text for text in said["malformed"])
    run(*job, "--keep", "note,venue", "--force", code=2)
    assert "t.csv has no column 'venue' to keep, among 'note', 'user'" in capsys.readouterr().err
    run(*job, "--drop-true", "--force", code=2)
    assert "--drop-true is gone: true places are left out unless" in capsys.readouterr().err


# columns that --drop-true, which went by names, left in
TELLING = ["venue_id", "WKT", "gps", "geohash", "h3", "x", "y", "address", "lat2", "place"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("mobility", [False, True])
def test_nothing_that_is_not_asked_for_tells_of_the_truth(tmp_path, capsys, kind, mobility):
    """Neither a column of the output nor a figure of the summary depends on where people were,
    unless the true places are kept. Would catch a count of surrogates, or GeoParquet's box."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    user, seconds, lat, lon = some_rows(60, 4)
    columns = {"user": user, "time": seconds, "lat": lat, "lon": lon}
    columns |= {name: [f"{v:.6f}" for v in lat] for name in TELLING}
    write_csv(tmp_path / "t.csv", columns)
    table = pa.table(columns).replace_schema_metadata({b"geo": b"box", b"mine": b"35.7"})
    pq.write_table(table, "t.parquet")
    run("fit", "t.csv", "-o", "m.npz", *MAP, "--smoothing", "neighbours8")
    where = ["--mobility", "m.npz"] if mobility else MAP
    job = ["release", f"t.{kind}", *PROMISE, *where, "--seed", 2]
    said = answer(capsys, *job, "-o", f"o.{kind}")
    flag = ["released_exposed"] if mobility else []
    if kind == "csv":
        assert list(read(tmp_path / "o.csv")[0]) == ["user", "time", *ADDED, *flag]
    else:
        after = pq.read_table("o.parquet")
        assert after.column_names == ["user", "time", *ADDED, *flag]
        assert set(after.schema.metadata) == {b"pglp_fast"}
    telling = {"from_cells_without_an_edge", "surrogate", "model_fitted_on_these_traces"}
    assert not telling & set(said)
    kept = answer(capsys, *job, "-o", f"p.{kind}", "--keep", "user,time,lat,lon")
    assert telling <= set(kept)
    if mobility and kind == "csv":
        assert "released_surrogate" in read(tmp_path / "p.csv")[0]


MALFORMED = (
    "user,time,lat,lon,more\na,1760000000,35.70,139.62,1\nb,1760000000,35.7x,139.62,2\nc,1760000000,35.70\n"
    'd,1760000000,35.70,139.62,"3\ne,1760000000,35.70,139.62,5,6\n,1760000000,35.70,139.62,7\nf,,35.70,139.62,8\ng,1760000000,,139.62,9\n'
)


def test_malformed_rows_stop_the_job_before_any_output(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(MALFORMED)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--batch-rows", 1, code=2)
    said = (
        "pglp-fast: t.csv, line 3: lat '35.7x' is not a number; --on-error skip keeps such "
        "rows, unreleased, and goes on\n"
    )
    assert capsys.readouterr().err == said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_malformed_rows_are_kept_unreleased_by_choice(tmp_path, capsys):
    """Every row stays, and the table stays one: a line of the wrong shape is the text of its
    first column."""
    (tmp_path / "t.csv").write_text(MALFORMED)
    said = answer(
        capsys,
        "release",
        "t.csv",
        "-o",
        "o.csv",
        *PROMISE,
        *MAP,
        *ALL,
        "--on-error",
        "skip",
        "--batch-rows",
        3,
    )
    rows = read(tmp_path / "o.csv")
    statuses = [r["released_status"] for r in rows]
    assert statuses == [
        "alone",
        "malformed",
        "malformed",
        "malformed",
        "malformed",
        "malformed",
        "alone",
        "missing",
    ]
    assert said["status"] == {"alone": 2, "missing": 1, "malformed": 5}
    assert said["rows"] == 8 and said["released"] == 2
    assert said["malformed"][1] == "t.csv, line 4: 3 fields where 5 are due"
    assert rows[1]["lat"] == "35.7x"  # the right number of fields: kept as it is
    texts = ["c,1760000000,35.70", 'd,1760000000,35.70,139.62,"3', "e,1760000000,35.70,139.62,5,6"]
    assert [rows[k]["user"] for k in (2, 3, 4)] == texts
    assert all(None not in r and None not in r.values() for r in rows)


def parquet_table(n=400, seed=1):
    import pyarrow as pa

    user, seconds, lat, lon = some_rows(n, 5, seed, inside=0.9)
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "tag": pa.array([["x", "yy"][: k % 3] for k in range(n)], pa.list_(pa.string())),
            "user": pa.array([f"p{u}" for u in user]).dictionary_encode(),
            "t": pa.array(seconds * 1_000_000, pa.timestamp("us", "Asia/Tokyo")),
            "lat": pa.array(lat),
            "lon": pa.array(lon, mask=rng.random(n) < 0.05),
            "small": pa.array(rng.integers(0, 9, n), pa.int8()),
            "blob": pa.array([bytes([k % 7]) for k in range(n)]),
            "price": pa.array([k if k % 4 else None for k in range(n)], pa.decimal128(12, 2)),
        },
        metadata={"mine": "kept"},
    )


def test_parquet_keeps_types_rows_and_order(tmp_path):
    """Would catch a trip through pandas or text: lists, decimals, dictionaries, zones and small
    integers come back."""
    import pyarrow.parquet as pq

    table = parquet_table()
    pq.write_table(table, "t.parquet", row_group_size=90)
    for rows, out in ((64, "a.parquet"), (5000, "b.parquet")):
        run(
            "release",
            "t.parquet",
            "-o",
            out,
            *PROMISE,
            *MAP,
            *ALL,
            "--columns",
            "time=t",
            "--seed",
            3,
            "--batch-rows",
            rows,
        )
    after, other = pq.read_table("a.parquet"), pq.read_table("b.parquet")
    assert after.column_names == [*table.column_names, *ADDED]
    stored = pq.read_table("t.parquet")
    for name in table.column_names:
        assert after.schema.field(name) == stored.schema.field(name)
        assert after[name].combine_chunks() == stored[name].combine_chunks()
    assert after.to_pydict() == other.to_pydict()
    g = the_grid()
    lat, lon = (
        stored[name].to_numpy(zero_copy_only=False).astype(float) for name in ("lat", "lon")
    )
    cells = g.locate(lat, lon)
    drawn = pf.PPIM(pf.blocks(g, 3), epsilon=1.0).release(
        np.maximum(cells, 0), users=np.arange(400), rng=3
    )
    statuses = [
        "alone" if c >= 0 else "missing" if np.isnan(x) else "outside"
        for c, x in zip(cells, lon, strict=True)
    ]
    assert after["released_status"].to_pylist() == statuses
    assert after["released_cell"].to_pylist() == [
        int(z) if c >= 0 else None for c, z in zip(cells, drawn, strict=True)
    ]
    assert after.schema.metadata[b"mine"] == b"kept"
    facts = json.loads(after.schema.metadata[b"pglp_fast"])
    assert (
        facts["adversary"].startswith("none: rows were released one by one")
        and facts["epsilon"] == 1.0
    )
    run(
        "release",
        "t.parquet",
        "-o",
        "c.parquet",
        *PROMISE,
        *MAP,
        "--columns",
        "time=t",
    )
    assert pq.read_table("c.parquet").column_names == ["user", "t", *ADDED]


@large
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fifty_thousand_rows_go_round(tmp_path, kind):
    run("simulate", "-o", f"t.{kind}", "--users", 500, "--steps", 100)
    run(
        "release",
        f"t.{kind}",
        "-o",
        f"o.{kind}",
        *PROMISE,
        "--cell-km",
        "0.34",
        *ALL,
        "--batch-rows",
        7001,
    )
    if kind == "csv":
        check_text((tmp_path / "t.csv").read_bytes(), (tmp_path / "o.csv").read_bytes())
    else:
        import pyarrow.parquet as pq

        before, after = pq.read_table("t.parquet"), pq.read_table("o.parquet")
        assert after.select(before.column_names).equals(before)
        assert after["released_cell"].null_count == 0


def test_an_empty_table_is_a_table(tmp_path):
    (tmp_path / "t.csv").write_text("user,time,lat,lon\n")
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP)
    assert (tmp_path / "o.csv").read_text() == "user,time," + ",".join(ADDED) + "\n"


# -- the whole file or none of it, and going on


def crash_after(monkeypatch, batches, error=KeyboardInterrupt):
    """The process stops after so many batches were written."""
    for kind in (TextSink, ParquetSink):
        write, count = kind.write, [0]

        def stop(self, batch, added, write=write, count=count):
            if count[0] == batches:
                raise error
            count[0] += 1
            write(self, batch, added)

        monkeypatch.setattr(kind, "write", stop)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("seeded", [True, False])
def test_an_interrupted_job_goes_on_with_the_same_key(tmp_path, monkeypatch, capsys, kind, seeded):
    """The resumed output is that of a job with the same key that was never stopped. Would catch
    fresh noise for rows that were released already."""
    import pyarrow.parquet as pq

    if kind == "parquet":
        pq.write_table(parquet_table(200), "t.parquet")
        job = ["release", "t.parquet", "--columns", "time=t"]
    else:
        trips(tmp_path / "t.csv", 200)
        if kind == "csv.gz":
            (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        job = ["release", f"t.{kind}"]
    job += [*PROMISE, *MAP]
    out, seed = tmp_path / f"o.{kind}", ["--seed", 8] if seeded else []
    with monkeypatch.context() as patch:
        crash_after(patch, 3)
        capsys.readouterr()
        run(*job, *seed, "-o", out.name, "--batch-rows", 30, code=130)
    assert "--resume" in capsys.readouterr().err
    assert not out.exists()
    head = work_of(out) / "job.json"
    assert stat.S_IMODE(head.stat().st_mode) == 0o600
    assert stat.S_IMODE(work_of(out).stat().st_mode) == 0o700
    key = json.loads(head.read_text())["seed"]
    assert (key == "8") == seeded and len(key) > (0 if seeded else 60)
    run(*job, *seed, "-o", out.name, code=2)  # neither --resume nor --force
    assert (
        "was interrupted: --resume goes on with it, --force starts anew" in capsys.readouterr().err
    )
    run(*job, *seed, "-o", out.name, "--resume", "--batch-rows", 7)
    assert left_behind(tmp_path) == []
    run(*job, "--seed", key, "-o", f"whole.{kind}")
    if kind == "parquet":  # its metadata say whether it was seeded
        assert pq.read_table(out).equals(pq.read_table("whole.parquet"))
    else:
        assert out.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()


@pytest.mark.parametrize("change", ["input", "epsilon", "columns"])
def test_another_job_cannot_take_over_the_key(tmp_path, monkeypatch, capsys, change):
    """One draw must not serve two inputs: their difference would show through."""
    trips(tmp_path / "t.csv", 100)
    job = ["release", "t.csv", "-o", "o.csv", *MAP, "--policy", "blocks:3", "--batch-rows", 20]
    with monkeypatch.context() as patch:
        crash_after(patch, 2)
        run(*job, "--epsilon", 1, code=130)
    epsilon = 2 if change == "epsilon" else 1
    if change == "input":
        trips(tmp_path / "t.csv", 100, seed=9)
    more = ["--columns", "lat=lat"] if change == "columns" else []
    run(*job, "--epsilon", epsilon, *more, "--resume", code=2)
    assert "had another input, model or other options" in capsys.readouterr().err
    assert (work_of(tmp_path / "o.csv") / "job.json").exists()
    run(*job, "--epsilon", epsilon, *more, "--force")
    assert (tmp_path / "o.csv").exists() and left_behind(tmp_path) == []


@large
@pytest.mark.parametrize("mobility", [False, True])
def test_killed_at_any_moment_it_resumes_to_the_same(tmp_path, mobility):
    """kill -9 at random moments, ten of them or PGLP_KILLS. The output appears whole or not at all,
    and is that of a job that was never stopped; nothing else is left."""
    trips(tmp_path / "t.csv", 1500, users=50)
    job = ["release", "t.csv", *PROMISE, *MAP, "--batch-rows", "100", "--seed", "4"]
    if mobility:
        run("fit", "t.csv", "-o", "m.npz", *MAP, "--smoothing", "neighbours8")
        job = [*job[:6], "--mobility", "m.npz", *job[-4:]]
    _, env = real_process()
    script = ROOT / "tests" / "kill_release.py"
    done = subprocess.run(
        [sys.executable, script, env.get("PGLP_KILLS", "10"), str(int(mobility)), *job],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_processes_cannot_write_one_output(tmp_path, capsys):
    trips(tmp_path / "t.csv", 20)
    out = tmp_path / "o.csv"
    held = Job(out, [out], [], "job", seed=1, resume=False, force=False)
    before = (work_of(out) / "job.json").read_bytes()
    for more in ([], ["--resume"], ["--force"], ["--force", "--resume"]):
        run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, *more, code=2)
        err = capsys.readouterr().err
        assert "another process is releasing" in err and "interrupted" not in err
    assert (work_of(out) / "job.json").read_bytes() == before
    held.close(finished=True)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP)


def test_nothing_is_overwritten_unless_told(tmp_path, capsys):
    trips(tmp_path / "t.csv", 20)
    (tmp_path / "o.csv").write_text("dear")
    job = ["release", "t.csv", "-o", "o.csv", *PROMISE, *MAP]
    run(*job, code=2)
    assert capsys.readouterr().err == "pglp-fast: o.csv is there: --force overwrites it\n"
    run(*job, "--resume", code=2)
    assert "no job is left to resume: it is complete" in capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text() == "dear"
    run(*job, "--force")
    assert len(read(tmp_path / "o.csv")) == 20
    run("release", "t.csv", "-o", "t.csv", *PROMISE, *MAP, "--force", code=2)
    assert "is the input: name another output" in capsys.readouterr().err


# -- options


def test_all_of_it_from_a_toml_file(tmp_path, capsys):
    trips(tmp_path / "t.csv", 50)
    (tmp_path / "job.toml").write_text(
        'table = "t.csv"\noutput = "o.csv"\nepsilon = 1\npolicy = "blocks:3"\nbounds = '
        f"{list(BOUNDS)}\ncell-km = 0.4\nseed = 3\n"
        'columns = { user = "user", lat = "lat" }\nkeep = ["user", "note"]\nforce = false\n'
    )
    run("release", "--config", "job.toml")
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP, "--seed", 3, "--keep", "user,note")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    said = answer(capsys, "release", "--config=job.toml", "--epsilon", "2", "--output", "q.csv")
    assert (said["epsilon"], said["output"]) == (2.0, "q.csv")  # the command line has the last word
    for text, message in (
        ("epsilonn = 1", "job.toml: unknown key 'epsilonn': did you mean epsilon?"),
        ("zzz = 1", "job.toml: unknown key 'zzz': the keys are allow-outside, batch-rows"),
        ("force = 1", "job.toml: force must be true or false, got 1"),
        ("epsilon = [[1]]", "job.toml: epsilon must be text or a number, got [[1]]"),
        ("epsilon = ", "job.toml is not TOML"),
    ):
        (tmp_path / "job.toml").write_text(text)
        run("release", "--config", "job.toml", code=2)
        assert message in capsys.readouterr().err
    run("release", "--config", "none.toml", code=2)
    assert capsys.readouterr().err == "pglp-fast: none.toml: No such file or directory\n"


def test_the_output_and_the_terminal_say_that_there_is_no_adversary(tmp_path, capsys):
    trips(tmp_path / "t.csv", 50, users=2)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, *ALL)
    out, err = capsys.readouterr()
    assert "adversary: none. Rows were released one by one" in out
    counts = np.unique([r["user"] for r in read(tmp_path / "t.csv")], return_counts=True)[1]
    assert out.startswith("Whoever sees a release knows in which group of places somebody is")
    middle = f"{np.median(counts):g}"
    assert f"epsilon adds up: {middle} for the median user ({middle} releases)" in out
    assert f", {counts.max()} for the one with most ({counts.max()})" in out
    m = pf.PPIM(pf.blocks(the_grid(), 3), epsilon=1.0)
    assert f"expected error of a release: {pf.utility(m).e_eu:.3f} km" in out
    assert "o.csv STILL HAS THE TRUE PLACES" in err
    assert {r["released_status"] for r in read(tmp_path / "o.csv")} == {"alone"}
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP, "--seed", 1)
    err = capsys.readouterr().err
    assert "TRUE PLACES" not in err and "whoever knows the seed can subtract the noise" in err


def test_a_budget_is_kept_in_the_order_of_the_table(tmp_path, capsys):
    trips(tmp_path / "t.csv", 120, users=3)
    job = [
        "release",
        "t.csv",
        "-o",
        "o.csv",
        "--epsilon",
        "0.1",
        "--policy",
        "blocks:3",
        *MAP,
        "--batch-rows",
        17,
    ]
    job += ["--budget", "1"]
    run(*job, code=2)
    assert "rows are beyond the budget" in capsys.readouterr().err
    assert left_behind(tmp_path) == [] and not (tmp_path / "o.csv").exists()
    run(*job, "--on-error", "skip")
    spent = {}
    for r in read(tmp_path / "o.csv"):
        n = spent[r["user"]] = spent.get(r["user"], 0) + 1
        assert r["released_status"] == ("alone" if n <= 10 else "budget")
        assert (r["released_cell"] == "") == (n > 10)


def test_policies_by_category_and_by_edges(tmp_path, capsys):
    """Against policies made by hand; cells without an edge are released as they are, and the
    command says so."""
    g = the_grid()
    trips(tmp_path / "t.csv", 80)
    labels = np.where(np.arange(g.size) % 5 == 0, -1, np.arange(g.size) % 3)
    kinds = np.array(["food", "home", "work"])
    known = np.flatnonzero(labels >= 0)
    write_csv(tmp_path / "cells.csv", {"cell": known, "category": kinds[labels[known]]})
    at = g.latlon(known)
    write_csv(
        tmp_path / "places.csv",
        {"category": kinds[labels[known]], "lon": at[:, 1], "lat": at[:, 0]},
    )
    edges = np.array([[0, 1], [1, 2], [5, 30]])
    write_csv(tmp_path / "edges.csv", dict(zip("ab", edges.T, strict=True)))
    np.savetxt(tmp_path / "bare.txt", edges, fmt="%d", delimiter="\t")
    np.save(tmp_path / "edges.npy", edges)
    import scipy.sparse

    matrix = scipy.sparse.coo_array((np.ones(3), edges.T), shape=(g.size, g.size))
    scipy.sparse.save_npz(tmp_path / "edges.npz", scipy.sparse.csr_array(matrix + matrix.T))
    by_edges = pf.PolicyGraph.from_edges(g, edges)
    wanted = {
        ("categories:4", "cells.csv"): pf.categories(g, labels, 4),
        ("categories:4", "places.csv"): pf.categories(g, labels, 4),
        ("edges:edges.csv", None): by_edges,
        ("edges:bare.txt", None): by_edges,
        ("edges:edges.npy", None): by_edges,
        ("edges:edges.npz", None): by_edges,
        ("neighbours8", None): pf.neighbours8(g),
        ("complete", None): pf.complete(g),
    }
    true = g.locate(
        *(np.array([float(r[k]) for r in read(tmp_path / "t.csv")]) for k in ("lat", "lon"))
    )
    for (policy, file), graph in wanted.items():
        more = [] if file is None else ["--labels", file]
        job = [
            "release",
            "t.csv",
            "-o",
            "o.csv",
            "--force",
            "--epsilon",
            1,
            "--policy",
            policy,
            *more,
            *MAP,
            *ALL,
            "--seed",
            2,
        ]
        said = answer(capsys, *job)
        cells = [int(r["released_cell"]) for r in read(tmp_path / "o.csv")]
        assert (
            cells == pf.PPIM(graph, epsilon=1.0).release(true, users=np.arange(80), rng=2).tolist()
        )
        assert said["from_cells_without_an_edge"] == (graph.degrees()[true] == 0).sum()
        assert said["edges"] == graph.n_edges


def test_a_cell_has_the_category_of_most_of_its_places(tmp_path, capsys):
    """Ties to the first by name; a place off the map or without a category has no say."""
    g = the_grid()
    (lat, lon), (lat2, lon2) = g.latlon([0, 1])
    (tmp_path / "p.csv").write_text(
        f"lat,lon,category\n{lat},{lon},work\n{lat},{lon},home\n{lat2},{lon2},home\n{lat2},{lon2},work\n{lat2},{lon2},work\n"
        f"1,1,zoo\n{lat},{lon},\n{lat},{lon},\n{lat},{lon},\n"
    )
    labels, names = read_labels("p.csv", g)
    assert [names[k] for k in labels[:2]] == ["home", "work"]
    assert (labels[2:] == -1).all()
    (tmp_path / "p.csv.gz").write_bytes(
        gzip.compress((tmp_path / "p.csv").read_bytes().replace(b"zoo", b"caf\xe9"))
    )
    zipped, latin = read_labels("p.csv.gz", g)  # and not in UTF-8
    assert [latin[k] for k in zipped[:2]] == ["home", "work"] and (zipped[2:] == -1).all()
    (tmp_path / "far.csv").write_text("lat,lon,category\n1,1,zoo\n")
    run("certify", "--epsilon", 1, "--policy", "categories:3", "--labels", "far.csv", *MAP, code=2)
    assert "far.csv has no place on the map" in capsys.readouterr().err
    (tmp_path / "odd.csv").write_text("lat,lon,category\n1,1,zoo\nx,1,zoo\n")
    run("certify", "--epsilon", 1, "--policy", "categories:3", "--labels", "odd.csv", *MAP, code=2)
    assert (
        "odd.csv, line 3: 'x,1,zoo' cannot be read as a place and its category"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("mechanism", ["ppim", "plm", "planar-laplace", "krr", "graph-exponential"])
def test_every_mechanism_also_remapped(tmp_path, mechanism):
    kinds = {"ppim": pf.PPIM, "plm": pf.PLM, "planar-laplace": pf.PlanarLaplace, "krr": pf.KRR}
    kinds["graph-exponential"] = pf.GraphExponential
    trips(tmp_path / "t.csv", 30)
    g = the_grid()
    true = g.locate(
        *(np.array([float(r[k]) for r in read(tmp_path / "t.csv")]) for k in ("lat", "lon"))
    )
    m = kinds[mechanism](pf.blocks(g, 2), epsilon=0.7)
    for remap, expected in (([], m), (["--remap", "squared"], pf.Remapped(m, loss="squared"))):
        how = ["--epsilon", 0.7, "--policy", "blocks:2", "--mechanism", mechanism, *remap]
        run("release", "t.csv", "-o", "o.csv", *how, *MAP, "--seed", 6, "--force")
        cells = [int(r["released_cell"]) for r in read(tmp_path / "o.csv")]
        assert cells == expected.release(true, users=np.arange(30), rng=6).tolist()


# what is typed (PROMISE and MAP stand for the usual options), and what is said
BAD = [
    ("", "the following arguments are required: -o/--output, --epsilon, --policy"),
    (
        "-o o.csv PROMISE MAP",
        "which table? Name it behind 'release', or as table in the --config file",
    ),
    (
        "t.csv -o o.csv PROMISE",
        "which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34, or --mobility MODEL",
    ),
    (
        "t.csv -o o.csv --epsilon -1 --policy blocks:3",
        "argument --epsilon: must be a finite number above 0, got -1",
    ),
    ("t.csv -o o.csv --epsilon x --policy blocks:3", "argument --epsilon: 'x' is not a number"),
    ("t.csv -o o.csv PROMISE --bounds 1,2,3", "'1,2,3' must be four numbers: LAT0,LAT1,LON0,LON1"),
    ("t.csv -o o.csv PROMISE --bounds -1,-2,3,4", "must ascend and be degrees"),
    (
        "t.csv -o o.csv PROMISE --bounds 35.68,35.72,139.6,139.65 --cell-km 0",
        "'0' is not the side of a cell",
    ),
    (
        "t.csv -o o.csv --epsilon 1 --policy blocks MAP",
        "write blocks:K with the side K of a block in cells",
    ),
    (
        "t.csv -o o.csv --epsilon 1 --policy star MAP",
        "--policy star is not known: write blocks:K, neighbours8",
    ),
    ("t.csv -o o.csv --epsilon 1 --policy categories:3 MAP", "needs --labels FILE"),
    (
        "t.csv -o o.csv PROMISE --labels x MAP",
        "--labels is for --policy categories:K, not for blocks:3",
    ),
    ("t.csv -o o.csv --epsilon 1 --policy edges:no.csv MAP", "no.csv: No such file or directory"),
    (
        "t.csv -o o.csv PROMISE MAP --delta 0.1",
        "--delta is for users who move: give --mobility MODEL",
    ),
    ("t.csv -o o.csv PROMISE MAP --step 5min", "--step is for users who move"),
    ("t.csv -o o.csv PROMISE MAP --max-missing 3", "unrecognized arguments: --max-missing 3"),
    ("off.csv -o o.csv PROMISE MAP", "2 of 3 places are off the map: are latitude and longitude"),
    ("off.csv -o o.csv PROMISE MAP", "--allow-outside releases the others"),
    (
        "t.csv -o o.csv PROMISE MAP --mechanism pim",
        "--mechanism pim is for --policy complete: use ppim for others",
    ),
    (
        "t.csv -o o.csv PROMISE MAP --mechanism krr --calibration graph",
        "knows --calibration component only",
    ),
    (
        "t.csv -o o.csv PROMISE MAP --columns user=who",
        "t.csv: no column 'who' for the user among 'note', 'user'",
    ),
    (
        "t.csv -o o.csv PROMISE MAP --columns who=user",
        "'who=user' is not ROLE=NAME with a role of user, time, lat, lon",
    ),
    ("t.csv -o o.csv PROMISE MAP --timezone Mars", 'timezone must be a name such as "UTC"'),
    ("t.csv -o o.csv PROMISE MAP --delimiter ab", "'ab' is not one character"),
    (
        "t.csv -o o.parquet PROMISE MAP",
        "t.csv is a text file, and so is what is released: name it .csv, not o.parquet",
    ),
    ("t.csv -o no/o.csv PROMISE MAP", "no is not a folder: make it first"),
    ("t.csv -o . PROMISE MAP", "is a folder: name a file with -o"),
    (". -o o.csv PROMISE MAP", "the source is a folder, and o.csv is no name for one"),
    ("no.csv -o o.csv PROMISE MAP", "no.csv is not there"),
    ("no*.csv -o out PROMISE MAP", "no*.csv matches no file"),
    (
        "t.csv -o o.csv PROMISE --mobility no.npz",
        "no.npz: No such file or directory: make a model with 'pglp-fast fit'",
    ),
    ("t.csv -o o.csv PROMISE --mobility t.csv", "t.csv was not written by pglp_fast"),
    (
        "poor.csv -o o.csv PROMISE MAP",
        "no column for user, time among 'lat', 'lon': name it with --columns user=...,time=...,",
    ),
    (
        "taken.csv -o o.csv PROMISE MAP",
        "has a column 'released_cell' already: choose another start of the new names with --prefix",
    ),
    ("empty.csv -o o.csv PROMISE MAP", "empty.csv is empty: a table has a header line"),
    ("sea.csv -o o.csv PROMISE --cell-km 0.4", "sea.csv has no place on Earth"),
    (
        "world.csv -o o.csv PROMISE --cell-km 0.01",
        "give the box you mean with --bounds, or a larger --cell-km",
    ),
    ("t.csv -o o.csv --epsilon 1 --policy edges:t.csv MAP", "is not two cells"),
    ("t.csv -o o.csv --epsilon 1 --policy edges:far.csv MAP", "far.csv, line 1: cells are 0.."),
    (
        "t.csv -o o.csv --epsilon 1 --policy categories:2 --labels t.csv MAP",
        "must have columns lat,lon,category",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[m[:40] for _, m in BAD])
def test_bad_usage_is_told_and_nothing_is_written(tmp_path, capsys, arguments, message):
    trips(tmp_path / "t.csv", 10)
    (tmp_path / "poor.csv").write_text("lat,lon\n1,2\n")
    (tmp_path / "taken.csv").write_text("user,time,lat,lon,released_cell\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "sea.csv").write_text("user,time,lat,lon\na,1760000000,,\n")
    (tmp_path / "world.csv").write_text(
        "user,time,lat,lon\na,1760000000,-60,-170\na,1760000000,60,170\n"
    )
    (tmp_path / "far.csv").write_text("0,1000000\n")
    (tmp_path / "off.csv").write_text(
        "user,time,lat,lon\na,1,35.70,139.62\na,2,139.62,35.70\na,3,139.62,35.70\na,4,,\n"
    )
    before = sorted(p.name for p in tmp_path.iterdir())
    typed = arguments.replace("PROMISE", " ".join(PROMISE)).replace("MAP", " ".join(MAP)).split()
    assert cli.main(["release", *typed]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err and "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_progress_is_shown_when_asked_for(tmp_path, capsys):
    trips(tmp_path / "t.csv", 30)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--progress")
    out, err = capsys.readouterr()
    assert re.search(r"releasing.*100%.* of .* bytes", err) and "releasing" not in out
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP)
    assert "100%" not in capsys.readouterr().err
