"""Releases of a made-up city: throughput and memory by users, steps, cells, parts and workers.

    python benchmarks/city.py            # prints the tables
    python benchmarks/city.py --write    # puts them into docs/pipelines.md

Each measurement is a process of its own: processor time of it and of its workers, and the most
memory that one of them had. Processor time says what a release costs whoever else uses the machine;
elapsed time is given beside it."""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parent.parent / "docs" / "pipelines.md"
START, END = "<!-- city: start -->", "<!-- city: end -->"
USUAL = {"users": 3000, "steps": 100, "side": 300, "batch_rows": 1 << 17, "workers": "this process"}
SERIES = {
    "users": [1000, 3000, 9000],
    "steps": [50, 100, 200],
    "side": [100, 300, 1000],
    "batch_rows": [1 << 15, 1 << 17, 1 << 19],
    "workers": [
        "this process",
        "1 process",
        "2 processes",
        "1 Dask worker",
        "2 Dask workers",
    ],
}
PEOPLE, DAY_STEPS, CORES = 10_000_000, 288, 4


def make(folder, users, steps, side):
    """Trips and a model, once for each size."""
    from pglp_fast import MobilityModel
    from pglp_fast.pipeline.simulation import Simulation, write_parts
    from pglp_fast.space.synthetic import City

    trips, model = folder / f"trips-{users}-{steps}-{side}", folder / f"model-{side}.npz"
    city = City.of_size(side, side, cell_km=0.1, seed=1)
    if not trips.exists():
        sum(write_parts(trips, Simulation(city, users, steps, seed=2)))
    if not model.exists():
        made = MobilityModel(city.grid, city.transitions(periods=1))
        made.save(model, notes={"step_ms": 300_000, "ahead_ms": 0})
    return trips, model


def measure(folder, case):
    """One release, in this process; what it took."""
    import pglp_fast as pf

    trips, model = make(folder, case["users"], case["steps"], case["side"])
    plan = pf.Plan(policy="blocks:3", epsilon=1.0, mobility=model, seed=3)
    with workers_of(case["workers"]) as executor, tempfile.TemporaryDirectory(dir=folder) as out:
        begun, used = time.perf_counter(), processor_time()
        said = pf.release_files(
            trips, Path(out) / "private", plan, executor, batch_rows=case["batch_rows"]
        )
        seconds, mine = time.perf_counter() - begun, processor_time() - used
    assert said.certificate.ok
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    # workers are counted once they have ended: with what they took to start
    return {
        "rows": said.rows, "seconds": seconds, "cpu": mine if executor is None else
        processor_time() - used, "bytes": peak * 1024,
    }  # fmt: skip


def processor_time():
    """Of this process and of those that it started and that ended."""
    whole = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in whole)


def workers_of(name):
    from concurrent.futures import ProcessPoolExecutor
    from contextlib import nullcontext
    from multiprocessing import get_context

    if name == "this process":
        return nullcontext()
    number, kind = int(name.split()[0]), name.split()[1]
    if kind.startswith("process"):
        return ProcessPoolExecutor(number, mp_context=get_context("spawn"))
    from distributed import Client

    return Client(n_workers=number, threads_per_worker=1, dashboard_address=None)


def measured(folder, case):
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(case), "--folder", str(folder)]
    make_first = [*command, "--only-make"]
    subprocess.run(make_first, check=True)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def tables(folder):
    """Markdown of all series, and what a metropolis would take."""
    lines, known = [], {}
    for name, values in SERIES.items():
        label = {"side": "cells", "batch_rows": "rows of a part"}.get(name, name)
        lines += [f"| {label} | rows | processor time | rows a second of it | elapsed | memory |"]
        lines += ["|---|---|---|---|---|---|"]
        for value in values:
            case = {**USUAL, name: value}
            key = json.dumps(case)
            got = known[key] = known.get(key) or measured(folder, case)
            shown = f"{value} x {value}" if name == "side" else value
            shown = f"{shown:,}" if isinstance(shown, int) else shown
            print(name, shown, got, file=sys.stderr, flush=True)
            lines.append(
                f"| {shown} | {got['rows']:,} | {got['cpu']:.1f} s | "
                f"{got['rows'] / got['cpu']:,.0f} | {got['seconds']:.1f} s | "
                f"{got['bytes'] / 1e6:,.0f} MB |"
            )
        lines.append("")
    return "\n".join([*lines, starting(known), "", metropolis(known)])


def starting(known):
    """What one worker more costs, whatever the rows."""
    cpu = {name: known[json.dumps({**USUAL, "workers": name})]["cpu"] for name in SERIES["workers"]}
    process = cpu["2 processes"] - cpu["1 process"]
    dask = cpu["2 Dask workers"] - cpu["1 Dask worker"]
    text = (
        f"One process more takes {process:.1f} s of processor time, one worker of Dask {dask:.1f} "
        "s: to start, to load kernels and to read the model, whatever the rows. The rows "
        "themselves cost the same anywhere. Memory is of the largest process."
    )
    return textwrap.fill(text, 100)


def metropolis(known):
    """Growth with the number of rows, and what 10 million people would take."""
    cases = [json.dumps({**USUAL, "users": n}) for n in SERIES["users"]]
    rows, cpu = (np.array([known[c][what] for c in cases]) for what in ("rows", "cpu"))
    each, fixed = np.polyfit(rows, cpu, 1)
    wide = known[json.dumps({**USUAL, "side": SERIES["side"][-1]})]
    usual = known[json.dumps(USUAL)]
    total = PEOPLE * DAY_STEPS * each
    text = (
        f"Processor time grows as {fixed:.1f} s + {each * 1e6:.1f} s for each million rows, fitted "
        f"to the users. On 1000 x 1000 cells it is {wide['cpu'] - usual['cpu']:+.1f} s, for the "
        "larger model and policy. Memory is what the model and one part take: it does not grow "
        f"with people. A metropolis of {PEOPLE:,} people and {DAY_STEPS} steps a day, computed "
        f"from these, with {CORES} cores a machine that are all busy:"
    )
    minutes = [(n, total / (n * CORES) / 60) for n in (1, 4, 16)]
    rows = [f"| {n} | {m:,.0f} min |" for n, m in minutes]
    head = ["", "| machines | time for a day of data |", "|---|---|"]
    return "\n".join([textwrap.fill(text, 100), *head, *rows])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--only-make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where cities are kept (default: a new one)")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    options = parser.parse_args()
    if options.one is not None:
        if options.only_make:
            make(options.folder, *(options.one[k] for k in ("users", "steps", "side")))
        else:
            print(json.dumps(measure(options.folder, options.one)))
        return
    with tempfile.TemporaryDirectory() as new:
        folder = options.folder or Path(new)
        folder.mkdir(exist_ok=True)
        made = tables(folder)
    machine = textwrap.fill(
        f"Measured on {os.cpu_count()} cores; usual: 3,000 users, 100 steps, 300 x 300 cells. "
        "Where other work shared the cores, elapsed time shows it, and processor time hardly.", 100
    )  # fmt: skip
    if not options.write:
        print(made)
        return
    page = PAGE.read_text()
    inside = f"{START}\n{machine}\n\n{made}\n{END}"
    PAGE.write_text(re.sub(f"{START}.*?{END}", lambda _: inside, page, flags=re.S))


if __name__ == "__main__":
    main()
