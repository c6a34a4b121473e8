"""``pglp-fast release`` row by row: every row, order, foreign column, format, and how it fails."""

import gzip
import json
import signal
import stat
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import BOUNDS, MAP, answer, read, real_process, run, some_rows, the_grid, trips, write_csv
from pglp_fast import cli
from pglp_fast.cli import journal as journals
from pglp_fast.cli import tables
from pglp_fast.cli.world import read_labels

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="large input")
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
ADDED = ["released_lat", "released_lon", "released_cell", "released_status"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def left_behind(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.suffix in (".part", ".journal", ".steps") or p.name.startswith("."))


def check_text(before, after, *, status="alone"):
    """Each line of the output is the line of the input, byte for byte, then the new fields."""
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    for a, b in zip(old, new, strict=True):
        assert b.startswith(a + b",")
        assert b[len(a) :].count(b",") == 4
    assert new[0][len(old[0]) + 1 :].decode().split(",") == ADDED


def test_rows_are_released_as_the_library_would_by_row_number(tmp_path):
    """The oracle is the mechanism itself: row k is the draw of (seed, k). Would catch rows that are shifted, sorted or dropped,
    and draws that depend on batches."""
    trips(tmp_path / "t.csv", 300, inside=0.8)
    for rows, out in ((1000, "a.csv"), (7, "b.csv")):
        run("release", "t.csv", "-o", out, *PROMISE, *MAP, "--seed", 5, "--batch-rows", rows)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    check_text((tmp_path / "t.csv").read_bytes(), (tmp_path / "a.csv").read_bytes())
    g, rows = the_grid(), read(tmp_path / "a.csv")
    cells = g.locate([float(r["lat"]) for r in rows], [float(r["lon"]) for r in rows])
    drawn = pf.PPIM(pf.blocks(g, 3), epsilon=1.0).release(np.maximum(cells, 0), users=np.arange(300), rng=5)
    assert (cells < 0).sum() > 20
    for r, cell, z in zip(rows, cells, drawn, strict=True):
        if cell < 0:
            assert [r[name] for name in ADDED] == ["", "", "", "outside"]
        else:
            assert r["released_cell"] == str(z) and r["released_status"] == "alone"
            np.testing.assert_allclose([float(r["released_lat"]), float(r["released_lon"])], g.latlon(int(z)), atol=1e-6)
            assert g.locate(float(r["released_lat"]), float(r["released_lon"])) == z
    assert left_behind(tmp_path) == []


def test_without_a_seed_no_two_runs_are_alike(tmp_path):
    trips(tmp_path / "t.csv", 100)
    for out in ("a.csv", "b.csv"):
        run("release", "t.csv", "-o", out, *PROMISE, *MAP)
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "how"),
    [("t.csv", {"ending": "\r\n"}), ("t.tsv", {"delimiter": "\t"}), ("t.csv.gz", {}), ("t.txt", {"delimiter": ";"})],
)
def test_line_ends_delimiters_and_zip_stay(tmp_path, name, how):
    trips(tmp_path / "t.csv", 60, **how)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    elif name != "t.csv":
        (tmp_path / "t.csv").rename(tmp_path / name)
    run("release", name, "-o", f"out-{name}", *PROMISE, *MAP, "--batch-rows", 11)
    raw = (tmp_path / f"out-{name}").read_bytes()
    after = gzip.decompress(raw) if name.endswith(".gz") else raw
    before = (tmp_path / name).read_bytes() if not name.endswith(".gz") else gzip.decompress((tmp_path / name).read_bytes())
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
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--names", "user,time,lat,lon")
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert len(lines) == 2 and lines[0].startswith("a,1760000000,35.70,139.62,")


def test_true_places_can_be_left_out(tmp_path):
    """Also from quoted fields beside them, and wholly from rows that cannot be read: those may hold a place anywhere."""
    trips(tmp_path / "t.csv", 40)
    with (tmp_path / "t.csv").open("a") as file:
        file.write('x,u1,1760000000,35.7zz,139.62\n"open,u1,1760000000,35.70,139.62\n')
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--drop-true", "--on-error", "skip")
    before, after = read(tmp_path / "t.csv")[:40], read(tmp_path / "o.csv")
    assert list(after[0]) == ["note", "user", "time", *ADDED]
    for old, new in zip(before, after[:40], strict=True):
        assert [old[k] for k in ("note", "user", "time")] == [new[k] for k in ("note", "user", "time")]
    for r in after[40:]:
        assert list(r.values()) == ["", "", "", "", "", "", "malformed"]


MALFORMED = (
    "user,time,lat,lon,more\na,1760000000,35.70,139.62,1\nb,1760000000,35.7x,139.62,2\nc,1760000000,35.70\n"
    'd,1760000000,35.70,139.62,"3\ne,1760000000,35.70,139.62,5,6\n,1760000000,35.70,139.62,7\nf,,35.70,139.62,8\ng,1760000000,,139.62,9\n'
)


def test_malformed_rows_stop_the_job_before_any_output(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(MALFORMED)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--batch-rows", 1, code=2)
    said = "pglp-fast: t.csv, line 3: lat '35.7x' is not a number; --on-error skip keeps such rows, unreleased, and goes on\n"
    assert capsys.readouterr().err == said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_malformed_rows_are_kept_unreleased_by_choice(tmp_path, capsys):
    """Every row stays, and the table stays one: a line of the wrong shape is the text of its first column."""
    (tmp_path / "t.csv").write_text(MALFORMED)
    said = answer(capsys, "release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--on-error", "skip", "--batch-rows", 3)
    rows = read(tmp_path / "o.csv")
    statuses = [r["released_status"] for r in rows]
    assert statuses == ["alone", "malformed", "malformed", "malformed", "malformed", "malformed", "alone", "missing"]
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
    return pa.table({
        "tag": pa.array([["x", "yy"][: k % 3] for k in range(n)], pa.list_(pa.string())),
        "user": pa.array([f"p{u}" for u in user]).dictionary_encode(),
        "t": pa.array(seconds * 1_000_000, pa.timestamp("us", "Asia/Tokyo")),
        "lat": pa.array(lat), "lon": pa.array(lon, mask=rng.random(n) < 0.05),
        "small": pa.array(rng.integers(0, 9, n), pa.int8()), "blob": pa.array([bytes([k % 7]) for k in range(n)]),
        "price": pa.array([k if k % 4 else None for k in range(n)], pa.decimal128(12, 2)),
    }, metadata={"mine": "kept"})  # fmt: skip


def test_parquet_keeps_types_rows_and_order(tmp_path):
    """Would catch a trip through pandas or text: lists, decimals, dictionaries, zones and small integers come back."""
    import pyarrow.parquet as pq

    table = parquet_table()
    pq.write_table(table, "t.parquet", row_group_size=90)
    for rows, out in ((64, "a.parquet"), (5000, "b.parquet")):
        run("release", "t.parquet", "-o", out, *PROMISE, *MAP, "--columns", "time=t", "--seed", 3, "--batch-rows", rows)
    after, other = pq.read_table("a.parquet"), pq.read_table("b.parquet")
    assert after.column_names == [*table.column_names, *ADDED]
    stored = pq.read_table("t.parquet")
    for name in table.column_names:
        assert after.schema.field(name) == stored.schema.field(name)
        assert after[name].combine_chunks() == stored[name].combine_chunks()
    assert after.to_pydict() == other.to_pydict()
    g = the_grid()
    lat, lon = (stored[name].to_numpy(zero_copy_only=False).astype(float) for name in ("lat", "lon"))
    cells = g.locate(lat, lon)
    drawn = pf.PPIM(pf.blocks(g, 3), epsilon=1.0).release(np.maximum(cells, 0), users=np.arange(400), rng=3)
    statuses = ["alone" if c >= 0 else "missing" if np.isnan(x) else "outside" for c, x in zip(cells, lon, strict=True)]
    assert after["released_status"].to_pylist() == statuses
    assert after["released_cell"].to_pylist() == [int(z) if c >= 0 else None for c, z in zip(cells, drawn, strict=True)]
    assert after.schema.metadata[b"mine"] == b"kept"
    facts = json.loads(after.schema.metadata[b"pglp_fast"])
    assert facts["adversary"].startswith("none: rows were released one by one") and facts["epsilon"] == 1.0
    run("release", "t.parquet", "-o", "c.parquet", *PROMISE, *MAP, "--columns", "time=t", "--drop-true")
    assert not {"lat", "lon"} & set(pq.read_table("c.parquet").column_names)


@compiled
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fifty_thousand_rows_go_round(tmp_path, kind):
    run("simulate", "-o", f"t.{kind}", "--users", 500, "--steps", 100)
    run("release", f"t.{kind}", "-o", f"o.{kind}", *PROMISE, "--cell-km", "0.34", "--batch-rows", 7001)
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
    assert (tmp_path / "o.csv").read_text() == "user,time,lat,lon," + ",".join(ADDED) + "\n"


# -- the whole file or none of it, and going on


def crash_after(monkeypatch, batches, error=KeyboardInterrupt):
    """The process stops after so many batches were written."""
    for kind in (tables.TextWriter, tables.ParquetWriter):
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
    """Seeded: the resumed output is the uninterrupted one, byte for byte. Unseeded: rows that were written before the crash stay
    as they were. Would catch fresh noise for rows that were released already."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(parquet_table(200), "t.parquet")
        job = ["release", "t.parquet", "--columns", "time=t"]
    else:
        trips(tmp_path / "t.csv", 200)
        if kind == "csv.gz":
            (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        job = ["release", f"t.{kind}"]
    job += [*PROMISE, *MAP, "--batch-rows", 30, *(["--seed", 8] if seeded else [])]
    out = tmp_path / f"o.{kind}"
    if seeded:
        run(*job, "-o", f"whole.{kind}")
    with monkeypatch.context() as patch:
        crash_after(patch, 3)
        capsys.readouterr()
        run(*job, "-o", out.name, code=130)
    assert "--resume" in capsys.readouterr().err
    assert not out.exists()
    journal, part = journals.journal_of(out), journals.part_of(out)
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    key = json.loads(journal.read_text().splitlines()[0])["seed"]
    assert (key == "8") == seeded and len(key) > (0 if seeded else 60)
    begun = part.read_bytes()
    run(*job, "-o", out.name, code=2)  # neither --resume nor --force
    assert "was interrupted: --resume goes on with it, --force starts anew" in capsys.readouterr().err
    run(*job, "-o", out.name, "--resume")
    assert left_behind(tmp_path) == []
    if kind != "parquet":
        assert out.read_bytes().startswith(begun)
    if kind == "csv.gz":
        assert begun[4:8] == bytes(4)  # no time of writing in it: the same bytes tomorrow
    if seeded:
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
    assert journals.journal_of(tmp_path / "o.csv").exists()
    run(*job, "--epsilon", epsilon, *more, "--force")
    assert (tmp_path / "o.csv").exists() and left_behind(tmp_path) == []


def test_a_line_of_the_journal_that_was_cut_off_says_nothing(tmp_path, monkeypatch):
    trips(tmp_path / "t.csv", 100)
    job = ["release", "t.csv", *PROMISE, *MAP, "--batch-rows", 20, "--seed", 1]
    run(*job, "-o", "whole.csv")
    with monkeypatch.context() as patch:
        crash_after(patch, 2)
        run(*job, "-o", "o.csv", code=130)
    journal = journals.journal_of(tmp_path / "o.csv")
    journal.write_bytes(journal.read_bytes()[:-5])
    with journals.part_of(tmp_path / "o.csv").open("ab") as file:
        file.write(b"half a row" * 5000)
    run(*job, "-o", "o.csv", "--resume")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@compiled
def test_killed_midway_leaves_no_output_and_resumes_to_the_same(tmp_path):
    """kill -9 in a real process."""
    trips(tmp_path / "t.csv", 20_000, users=50)
    command, env = real_process()
    job = [*command, "release", "t.csv", *PROMISE, *MAP, "--batch-rows", "50", "--seed", "4"]
    process = subprocess.Popen([*job, "-o", "o.csv"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = journals.journal_of(tmp_path / "o.csv")
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") > 20):
        assert process.poll() is None, "finished before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "o.csv").exists()
    assert left_behind(tmp_path) == ["o.csv.journal", "o.csv.part"]
    done = subprocess.run([*job, "-o", "o.csv", "--resume", "--json"], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 20_000
    run("release", "t.csv", "-o", "whole.csv", *PROMISE, *MAP, "--batch-rows", "50", "--seed", "4")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert left_behind(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_processes_cannot_write_one_output(tmp_path, capsys):
    trips(tmp_path / "t.csv", 20)
    held = journals.Journal.start(tmp_path / "o.csv", "job", 1, False)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--resume", code=2)
    assert "another process is releasing" in capsys.readouterr().err
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--force", code=2)
    assert "another process is releasing" in capsys.readouterr().err
    assert journals.journal_of(tmp_path / "o.csv").exists()
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
        f'table = "t.csv"\noutput = "o.csv"\nepsilon = 1\npolicy = "blocks:3"\nbounds = {list(BOUNDS)}\ncell-km = 0.4\nseed = 3\n'
        'columns = { user = "user", lat = "lat" }\ndrop_true = true\nforce = false\n'
    )
    run("release", "--config", "job.toml")
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP, "--seed", 3, "--drop-true")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    said = answer(capsys, "release", "--config=job.toml", "--epsilon", "2", "--output", "q.csv")
    assert (said["epsilon"], said["output"]) == (2.0, "q.csv")  # the command line has the last word
    for text, message in (
        ("epsilonn = 1", "job.toml: unknown key 'epsilonn': did you mean epsilon?"),
        ("zzz = 1", "job.toml: unknown key 'zzz': the keys are batch-rows, bounds"),
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
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP)
    out, err = capsys.readouterr()
    assert "adversary: none. Rows were released one by one" in out
    counts = np.unique([r["user"] for r in read(tmp_path / "t.csv")], return_counts=True)[1]
    assert f"epsilon adds up: {counts.max()} for the user with most releases ({counts.max()})" in out
    assert "still has the true places" in err
    assert {r["released_status"] for r in read(tmp_path / "o.csv")} == {"alone"}
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP, "--drop-true", "--seed", 1)
    err = capsys.readouterr().err
    assert "true places" not in err and "whoever knows the seed can subtract the noise" in err


def test_a_budget_is_kept_in_the_order_of_the_table(tmp_path, capsys):
    trips(tmp_path / "t.csv", 120, users=3)
    job = ["release", "t.csv", "-o", "o.csv", "--epsilon", "0.1", "--policy", "blocks:3", *MAP, "--batch-rows", 17]
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
    """Against policies made by hand; cells without an edge are released as they are, and the command says so."""
    g = the_grid()
    trips(tmp_path / "t.csv", 80)
    labels = np.where(np.arange(g.size) % 5 == 0, -1, np.arange(g.size) % 3)
    kinds = np.array(["food", "home", "work"])
    known = np.flatnonzero(labels >= 0)
    write_csv(tmp_path / "cells.csv", {"cell": known, "category": kinds[labels[known]]})
    at = g.latlon(known)
    write_csv(tmp_path / "places.csv", {"category": kinds[labels[known]], "lon": at[:, 1], "lat": at[:, 0]})
    edges = np.array([[0, 1], [1, 2], [5, 30]])
    write_csv(tmp_path / "edges.csv", dict(zip("ab", edges.T, strict=True)))
    np.savetxt(tmp_path / "bare.txt", edges, fmt="%d", delimiter="\t")
    np.save(tmp_path / "edges.npy", edges)
    import scipy.sparse

    matrix = scipy.sparse.coo_array((np.ones(3), edges.T), shape=(g.size, g.size))
    scipy.sparse.save_npz(tmp_path / "edges.npz", scipy.sparse.csr_array(matrix + matrix.T))
    by_edges = pf.PolicyGraph.from_edges(g, edges)
    wanted = {
        ("categories:4", "cells.csv"): pf.categories(g, labels, 4), ("categories:4", "places.csv"): pf.categories(g, labels, 4),
        ("edges:edges.csv", None): by_edges, ("edges:bare.txt", None): by_edges, ("edges:edges.npy", None): by_edges,
        ("edges:edges.npz", None): by_edges, ("neighbours8", None): pf.neighbours8(g), ("complete", None): pf.complete(g),
    }  # fmt: skip
    true = g.locate(*(np.array([float(r[k]) for r in read(tmp_path / "t.csv")]) for k in ("lat", "lon")))
    for (policy, file), graph in wanted.items():
        more = [] if file is None else ["--labels", file]
        job = ["release", "t.csv", "-o", "o.csv", "--force", "--epsilon", 1, "--policy", policy, *more, *MAP, "--seed", 2]
        said = answer(capsys, *job)
        cells = [int(r["released_cell"]) for r in read(tmp_path / "o.csv")]
        assert cells == pf.PPIM(graph, epsilon=1.0).release(true, users=np.arange(80), rng=2).tolist()
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
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress((tmp_path / "p.csv").read_bytes().replace(b"zoo", b"caf\xe9")))
    zipped, latin = read_labels("p.csv.gz", g)  # and not in UTF-8
    assert [latin[k] for k in zipped[:2]] == ["home", "work"] and (zipped[2:] == -1).all()
    (tmp_path / "far.csv").write_text("lat,lon,category\n1,1,zoo\n")
    run("certify", "--epsilon", 1, "--policy", "categories:3", "--labels", "far.csv", *MAP, code=2)
    assert "far.csv has no place on the map" in capsys.readouterr().err
    (tmp_path / "odd.csv").write_text("lat,lon,category\n1,1,zoo\nx,1,zoo\n")
    run("certify", "--epsilon", 1, "--policy", "categories:3", "--labels", "odd.csv", *MAP, code=2)
    assert "odd.csv, line 3: 'x,1,zoo' cannot be read as a place and its category" in capsys.readouterr().err


@pytest.mark.parametrize("mechanism", ["ppim", "plm", "planar-laplace", "krr", "graph-exponential"])
def test_every_mechanism_also_remapped(tmp_path, mechanism):
    kinds = {"ppim": pf.PPIM, "plm": pf.PLM, "planar-laplace": pf.PlanarLaplace, "krr": pf.KRR}
    kinds["graph-exponential"] = pf.GraphExponential
    trips(tmp_path / "t.csv", 30)
    g = the_grid()
    true = g.locate(*(np.array([float(r[k]) for r in read(tmp_path / "t.csv")]) for k in ("lat", "lon")))
    m = kinds[mechanism](pf.blocks(g, 2), epsilon=0.7)
    for remap, expected in (([], m), (["--remap", "squared"], pf.Remapped(m, loss="squared"))):
        how = ["--epsilon", 0.7, "--policy", "blocks:2", "--mechanism", mechanism, *remap]
        run("release", "t.csv", "-o", "o.csv", *how, *MAP, "--seed", 6, "--force")
        cells = [int(r["released_cell"]) for r in read(tmp_path / "o.csv")]
        assert cells == expected.release(true, users=np.arange(30), rng=6).tolist()


# what is typed (PROMISE and MAP stand for the usual options), and what is said
BAD = [
    ("", "the following arguments are required: -o/--output, --epsilon, --policy"),
    ("-o o.csv PROMISE MAP", "which table? Name it behind 'release', or as table in the --config file"),
    ("t.csv -o o.csv PROMISE", "which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34, or --mobility MODEL"),
    ("t.csv -o o.csv --epsilon -1 --policy blocks:3", "argument --epsilon: must be above 0, got -1"),
    ("t.csv -o o.csv --epsilon x --policy blocks:3", "argument --epsilon: 'x' is not a number"),
    ("t.csv -o o.csv PROMISE --bounds 1,2,3", "'1,2,3' must be four numbers: LAT0,LAT1,LON0,LON1"),
    ("t.csv -o o.csv PROMISE --bounds -1,-2,3,4", "must ascend and be degrees"),
    ("t.csv -o o.csv PROMISE --bounds 35.68,35.72,139.6,139.65 --cell-km 0", "'0' is not the side of a cell"),
    ("t.csv -o o.csv --epsilon 1 --policy blocks MAP", "write blocks:K with the side K of a block in cells"),
    ("t.csv -o o.csv --epsilon 1 --policy star MAP", "--policy star is not known: write blocks:K, neighbours8"),
    ("t.csv -o o.csv --epsilon 1 --policy categories:3 MAP", "needs --labels FILE"),
    ("t.csv -o o.csv PROMISE --labels x MAP", "--labels is for --policy categories:K, not for blocks:3"),
    ("t.csv -o o.csv --epsilon 1 --policy edges:no.csv MAP", "no.csv: No such file or directory"),
    ("t.csv -o o.csv PROMISE MAP --delta 0.1", "--delta is for users who move: give --mobility MODEL"),
    ("t.csv -o o.csv PROMISE MAP --max-missing 3", "--max-missing is for users who move"),
    ("t.csv -o o.csv PROMISE MAP --mechanism pim", "--mechanism pim is for --policy complete: use ppim for others"),
    ("t.csv -o o.csv PROMISE MAP --mechanism krr --calibration graph", "knows --calibration component only"),
    ("t.csv -o o.csv PROMISE MAP --columns user=who", "t.csv: no column 'who' for the user among 'note', 'user'"),
    ("t.csv -o o.csv PROMISE MAP --columns who=user", "'who=user' is not ROLE=NAME with a role of user, time, lat, lon"),
    ("t.csv -o o.csv PROMISE MAP --timezone Mars", 'timezone must be a name such as "UTC"'),
    ("t.csv -o o.csv PROMISE MAP --delimiter ab", "'ab' is not one character"),
    ("t.csv -o o.parquet PROMISE MAP", "t.csv is a text file, and so is what is released: name it .csv, not o.parquet"),
    ("t.csv -o no/o.csv PROMISE MAP", "no is not a folder: make it first"),
    ("t.csv -o . PROMISE MAP", "is a folder: name a file with -o"),
    (". -o o.csv PROMISE MAP", "is a folder: release one file at a time"),
    ("t.csv -o o.csv PROMISE --mobility no.npz", "no.npz: No such file or directory: make a model with 'pglp-fast fit'"),
    ("t.csv -o o.csv PROMISE --mobility t.csv", "t.csv was not written by pglp_fast"),
    ("poor.csv -o o.csv PROMISE MAP", "no column for user, time among 'lat', 'lon': name it with --columns user=...,time=...,"),
    (
        "taken.csv -o o.csv PROMISE MAP",
        "has a column 'released_cell' already: choose another start of the new names with --prefix",
    ),
    ("empty.csv -o o.csv PROMISE MAP", "empty.csv is empty: a table has a header line"),
    ("sea.csv -o o.csv PROMISE --cell-km 0.4", "sea.csv has no place on Earth"),
    ("world.csv -o o.csv PROMISE --cell-km 0.01", "give the box you mean with --bounds, or a larger --cell-km"),
    ("t.csv -o o.csv --epsilon 1 --policy edges:t.csv MAP", "is not two cells"),
    ("t.csv -o o.csv --epsilon 1 --policy edges:far.csv MAP", "far.csv, line 1: cells are 0.."),
    ("t.csv -o o.csv --epsilon 1 --policy categories:2 --labels t.csv MAP", "must have columns lat,lon,category"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[m[:40] for _, m in BAD])
def test_bad_usage_is_told_and_nothing_is_written(tmp_path, capsys, arguments, message):
    trips(tmp_path / "t.csv", 10)
    (tmp_path / "poor.csv").write_text("lat,lon\n1,2\n")
    (tmp_path / "taken.csv").write_text("user,time,lat,lon,released_cell\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "sea.csv").write_text("user,time,lat,lon\na,1760000000,,\n")
    (tmp_path / "world.csv").write_text("user,time,lat,lon\na,1760000000,-60,-170\na,1760000000,60,170\n")
    (tmp_path / "far.csv").write_text("0,1000000\n")
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
    assert "releasing [########################] 100% 30 rows, " in err and "releasing" not in out
    run("release", "t.csv", "-o", "p.csv", *PROMISE, *MAP)
    assert "100%" not in capsys.readouterr().err


def test_dropping_true_places_drops_every_place(tmp_path):
    """A second latitude, a geometry, and GeoParquet's box of all points would each give away what --drop-true leaves out."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {
            "user": ["a", "b"],
            "time": pa.array([0, 300_000], pa.timestamp("ms")),
            "lat": [35.70, 35.71],
            "lon": [139.65, 139.66],
            "geometry": [b"true", b"places"],
            "Latitude": [35.70, 35.71],
            "note": ["kept", "kept"],
        }
    ).replace_schema_metadata({b"geo": b'{"bbox": [139.65, 35.70, 139.66, 35.71]}', b"mine": b"kept"})
    parquet.write_table(table, tmp_path / "t.parquet")
    how = ["--epsilon", 1, "--policy", "blocks:3", *MAP, "--drop-true", "--columns", "lat=lat,lon=lon"]
    run("release", tmp_path / "t.parquet", "-o", tmp_path / "o.parquet", *how)
    out = parquet.read_table(tmp_path / "o.parquet")
    assert out.column_names[:3] == ["user", "time", "note"]
    assert all(name.startswith("released_") for name in out.column_names[3:])
    assert b"geo" not in out.schema.metadata
    assert out.schema.metadata[b"mine"] == b"kept"
    (tmp_path / "t.csv").write_text("user,time,lat,lon,latitude,longitude,x\na,2020-01-01,35.7,139.65,35.7,139.65,1\n")
    run("release", tmp_path / "t.csv", "-o", tmp_path / "o.csv", *how)
    assert list(read(tmp_path / "o.csv")[0])[:3] == ["user", "time", "x"]
