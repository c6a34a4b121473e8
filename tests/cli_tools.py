"""Tables for the tests of the command line, and what a release of them must be, written from the
definitions."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast import cli

BOUNDS = (35.68, 35.72, 139.60, 139.65)
MAP = ["--bounds", ",".join(map(str, BOUNDS)), "--cell-km", "0.4"]


def the_grid():
    return pf.Grid.from_bounds(lat=BOUNDS[:2], lon=BOUNDS[2:], cell_km=0.4)


def real_process():
    """(command, environment) of the command line in a process of its own, from the same tree as
    this one."""
    tree = str(Path(pf.__file__).parent.parent)
    paths = os.pathsep.join(p for p in (tree, os.environ.get("PYTHONPATH")) if p)
    return [sys.executable, "-m", "pglp_fast.cli"], {**os.environ, "PYTHONPATH": paths}


def run(*arguments, code=0):
    """Run the command line in this process."""
    got = cli.main([str(a) for a in arguments])
    assert got == code, (got, arguments)


def answer(capsys, *arguments, code=0):
    """What it says with --json: standard output must be one document and nothing else."""
    capsys.readouterr()
    run(*arguments, "--json", code=code)
    return json.loads(capsys.readouterr().out)


def read(path):
    """A text table as a list of dicts, by Python's own reader."""
    import gzip

    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def some_rows(n, users, seed=0, *, inside=1.0):
    """(user, time in seconds, lat, lon) of n rows in no order; a share of them off the map."""
    rng = np.random.default_rng(seed)
    south, north, west, east = BOUNDS
    lat, lon = rng.uniform(south, north, n), rng.uniform(west, east, n)
    lat[rng.random(n) >= inside] += 1.0
    return rng.integers(0, users, n), 1_760_000_000 + rng.integers(0, 40 * 300, n), lat, lon


def write_csv(path, columns, *, ending="\n", delimiter=","):
    rows = zip(*columns.values(), strict=True)
    lines = [delimiter.join(columns)] + [delimiter.join(map(str, row)) for row in rows]
    path.write_bytes((ending.join(lines) + ending).encode())
    return path


def trips(path, n=300, users=7, seed=0, *, inside=1.0, **how):
    user, time, lat, lon = some_rows(n, users, seed, inside=inside)
    columns = {
        "note": [f'"{k}, said ""{k}"""' for k in range(n)],
        "user": [f"u{u}" for u in user],
        "time": time,
        "lat": [f"{v:.6f}" for v in lat],
        "lon": [f"{v:.6f}" for v in lon],
    }
    if how.get("delimiter", ",") != ",":
        columns["note"] = [f"{k}" for k in range(n)]
    return write_csv(path, columns, **how)
