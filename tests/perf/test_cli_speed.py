"""The command line against a script that does the same; and memory against the size of a table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pglp_fast as pf
from benchmarks.cli import HOW, quiet


@pytest.mark.parametrize(("kind", "most"), [("csv", 0.6), ("parquet", 2.0)])
def test_a_table_is_released_as_fast_as_by_a_script_with_pandas(
    ratio, promise, tmp_path, kind, most
):
    """The script holds the whole table in memory: read, locate, release, add columns, write.
    Parquet is pyarrow's work in both, and the command reads it in batches, twice side by side."""
    pandas = pytest.importorskip("pandas")
    table, out, copy = (tmp_path / f"{name}.{kind}" for name in ("t", "o", "c"))
    quiet("simulate", "-o", table, "--users", 3000, "--steps", 100)

    def script():
        frame = pandas.read_csv(table) if kind == "csv" else pandas.read_parquet(table)
        grid = pf.Grid.from_bounds(lat=(35.68, 35.83), lon=(139.60, 139.78), cell_km=0.34)
        cells = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0).release(
            grid.locate(frame["lat"].to_numpy(), frame["lon"].to_numpy())
        )
        frame[["released_lat", "released_lon"]] = grid.latlon(cells)
        frame["released_cell"], frame["released_status"] = cells, "alone"
        frame.to_csv(copy, index=False) if kind == "csv" else frame.to_parquet(copy)

    value = ratio(lambda: quiet("release", table, "-o", out, *HOW), script, rounds=2)
    promise(value, most)


def test_a_million_rows_of_text_take_at_most_twice_and_a_half_what_arrow_takes_to_copy_them(
    ratio, promise, tmp_path
):
    """``read_csv`` and ``write_csv`` of the same file, whole in memory; the release goes through it
    in batches, names bad rows by their line, and draws noise."""
    csv = pytest.importorskip("pyarrow.csv")
    table, out, copy = (tmp_path / f"{name}.csv" for name in ("t", "o", "c"))
    quiet("simulate", "-o", table, "--users", 10_000, "--steps", 100)
    value = ratio(
        lambda: quiet("release", table, "-o", out, *HOW),
        lambda: csv.write_csv(csv.read_csv(table), copy),
        rounds=1,
    )
    promise(value, 2.5)


def test_a_million_rows_along_traces(ratio, promise, tmp_path):
    """2,000 users x 500 rows against an adversary who knows how they move: at most nine times the
    release row by row."""
    table, model, out = (tmp_path / n for n in ("t.parquet", "m.npz", "o.parquet"))
    quiet("simulate", "-o", table, "--users", 2000, "--steps", 500)
    quiet("fit", table, "-o", model, *HOW[HOW.index("--bounds") :])
    along, alone = (*HOW, "--mobility", model), HOW

    def release(how):
        return quiet("release", table, "-o", out, *how)

    promise(ratio(lambda: release(along), lambda: release(alone), rounds=1), 9.0)  # aimed at: 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_table(tmp_path, promise):
    """Peak memory of a process that releases eight times the rows, in batches of one size. Both
    tables are longer than what is read ahead, some blocks of a megabyte each."""
    code = "import re, sys; from pglp_fast.cli import main; main(sys.argv[1:]); "
    code += "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"
    peaks = []
    for users in (2000, 16_000):
        table, out = tmp_path / f"t{users}.csv", tmp_path / f"o{users}.csv"
        quiet("simulate", "-o", table, "--users", users, "--steps", 100)
        env = {**os.environ, "PYTHONPATH": str(Path(pf.__file__).parent.parent)}
        command = [
            sys.executable,
            "-c",
            code,
            "release",
            str(table),
            "-o",
            str(out),
            *HOW,
            "--batch-rows",
            "20000",
        ]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.splitlines()[-1]))
    promise(peaks[1] / peaks[0], 1.1)
