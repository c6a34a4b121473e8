"""Measure, and write the tables of the README and the docs.

``python -m benchmarks.tables`` measures everything and rewrites what stands between the comments
``<!-- measured: NAME -->`` and ``<!-- end -->`` of README.md and docs/*.md; with names, those
tables only. ``--check`` measures nothing, and says whether each table has a place and each place a
table. No number of theirs is typed by hand.
"""

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import pglp_fast as pf

from .cli import HOW, quiet
from .startup import cold_start, fresh_process
from .workloads import check_ins, city, places, scalar_call, seconds, walks, whole_map

ROOT = Path(__file__).resolve().parents[1]
_PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.S)


def _time(value):
    """Seconds in a unit that reads well."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{_ratio(value / size)} {unit}"
    return f"{value * 1e9:.0f} ns"


def _ratio(value):
    """Two digits."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def releases():
    """Single releases, against NumPy's."""
    grid = pf.Grid(1000, 1000)
    m = pf.PPIM(pf.blocks(grid, 5), epsilon=1.0)
    cells = np.random.default_rng(0).integers(0, grid.size, 10_000_000).astype(np.int32)
    table, before = np.arange(grid.size), pf.get_num_threads()
    noise = seconds(lambda: np.random.default_rng().laplace(size=(10_000_000, 2)), 3)
    gather = seconds(lambda: table[cells], 3)
    rows = []
    for threads in (1, 2):
        pf.set_num_threads(threads)
        took = seconds(lambda: m.release(cells), 3)
        against = f"{_ratio(took / noise)} of NumPy's raw noise, "
        against += f"{_ratio(took / gather)} of `table[cells]`"
        rows.append((f"10 million P-PIM releases, {threads} thread(s)", _time(took), against))
    pf.set_num_threads(before)
    one, call = seconds(lambda: [m.release(5) for _ in range(1000)]) / 1000, scalar_call()
    rows.append(
        ("one release in a call", _time(one), f"{_ratio(one / call)} scalar calls of NumPy")
    )
    make = seconds(lambda: pf.PPIM(pf.blocks(pf.Grid(1000, 1000), 5), epsilon=1.0).release([0]), 3)
    rows.append(("a policy of 12 million edges and a mechanism", _time(make), ""))
    return _table(("what", "takes", "against"), rows)


def traces():
    """Whole traces by users, and one user's step."""
    grid, model = city(300)
    releaser, call = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0), scalar_call()
    rows = []
    for users, steps in ((10_000, 50), (1000, 100)):
        some = walks(grid, users, steps)
        took = seconds(lambda some=some: releaser.run(some), 3) / some.size
        what = f"a user-step, exact, {users:,} users x {steps}, 300 x 300, `blocks(g, 3)`"
        rows.append((what, _time(took), f"{_ratio(took / call)} scalar calls of NumPy"))
    stream, walk = releaser.start(1, "point"), iter(walks(grid, 1, 3000)[0])
    one = seconds(lambda: [stream.step([next(walk)]) for _ in range(300)]) / 300
    rows.append(("one user's step in a call", _time(one), f"{_ratio(one / call)} scalar calls"))
    _, model, graph = places()
    events = check_ins(model)
    by_place = pf.TraceReleaser(graph, model, epsilon=1.0, rng=0)
    took = seconds(lambda: by_place.run(events, "point", evidence=True), 1)
    found = by_place.run(events, "point", evidence=True)
    attack = seconds(lambda: pf.attack(found), 1)
    rows.append(("3,632 events of 30 users, 1,041 steps, 7,004 places: release", _time(took), ""))
    rows.append(("the attack on them", _time(attack), ""))
    stream = releaser.start(1000, "point")
    for column in walks(grid, 1000, 20).T:
        stream.step(column)
    rows.append(("state of a user between steps", f"{stream.memory() / 1000:.0f} bytes", ""))
    peak = _peak_of_many_users()
    what = "memory of a process that releases 100,000 users x 100 on 1000 x 1000"
    each = f"{peak / 10_000_000:.0f} bytes a user-step, all included"
    rows.append((what, f"{_ratio(peak / 2**30)} GiB", each))
    return _table(("what", "takes", "against"), rows)


def _peak_of_many_users():
    """Most bytes that a process of its own ever had."""
    code = "import resource; from benchmarks.workloads import many_users; "
    code += "releaser, traces = many_users(); releaser.run(traces, 'point'); "
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024  # Linux counts in KiB


def domains():
    """A step by |C|, where everything stays possible."""
    rows = []
    for side in (10, 20, 40, 60, 100):
        each = []
        for likelihood in ("exact", "density"):
            releaser, prior = whole_map(side, likelihood)
            some = walks(releaser.locations, 4, 25)
            each.append(seconds(lambda r=releaser, s=some, p=prior: r.run(s, p), 3) / some.size)
        rows.append((f"{side * side:,}", *map(_time, each)))
    return _table(("locations in C", "exact", "density"), rows)


def repairs():
    """Detection and repair of a random domain, and a forward step, on a million cells."""
    grid, model = city(1000)
    graph, rng = pf.blocks(grid, 3), np.random.default_rng(0)
    domain = pf.Domain(grid, rng.choice(grid.size, 100_000, replace=False))
    found = seconds(lambda: pf.isolated(graph, domain), 3)
    added = len(pf.repair(graph, domain).added)
    repaired = seconds(lambda: pf.repair(graph, domain), 2)
    matrix, p = model.matrix(), np.full(grid.size, 1 / grid.size)
    cells = (np.arange(500, 505)[:, None] * 1000 + np.arange(500, 505)).ravel()
    few, space = np.full(25, 0.04), model.workspace()
    step = seconds(lambda: model.forward_sparse(cells, few, workspace=space), 200)
    scipy = seconds(lambda: p @ matrix, 3)
    rows = [
        ("isolated locations of a random domain of 100,000, `blocks(g, 3)`", _time(found), ""),
        (f"{added:,} repairs in it", _time(repaired), ""),
        ("p M of 25 locations", _time(step), f"{_time(scipy)}: SciPy's dense `p @ M`"),
    ]
    return _table(("what", "takes", "against"), rows)


def starts():
    """Imports, and the first release with nothing compiled."""
    numba = seconds(lambda: fresh_process("import numba"), 3)
    ours = seconds(lambda: fresh_process("import pglp_fast"), 3)
    cold = seconds(cold_start, 1)
    rows = [
        ("`import pglp_fast`", _time(ours), f"{_ratio(ours / numba)} imports of Numba"),
        ("first release and certificate", _time(cold), f"{_ratio(cold / numba)} imports of Numba"),
    ]
    return _table(("what", "takes", "against"), rows)


def commands():
    """``release`` of a million rows, with and without a mobility model."""
    with tempfile.TemporaryDirectory() as folder:
        table, model, out = (Path(folder) / n for n in ("t.parquet", "m.npz", "o.parquet"))
        quiet("simulate", "-o", table, "--users", 2000, "--steps", 500)
        where = HOW[HOW.index("--bounds") :]
        quiet("fit", table, "-o", model, *where)
        plain = seconds(lambda: quiet("release", table, "-o", out, *HOW), 1)
        along = seconds(lambda: quiet("release", table, "-o", out, *HOW, "--mobility", model), 1)
    rows = [
        ("a million rows, row by row", _time(plain), ""),
        ("the same along 2,000 traces", _time(along), f"{_ratio(along / plain)} times as long"),
    ]
    return _table(("`pglp-fast release`", "takes", "against"), rows)


TABLES = {f.__name__: f for f in (releases, traces, domains, repairs, starts, commands)}


def pages():
    """Pages with places for tables, and their names."""
    found = {}
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]):
        names = [match[1] for match in _PLACE.findall(page.read_text(encoding="utf-8"))]
        if names:
            found[page] = names
    return found


def _machine():
    return (
        f"Python {platform.python_version()}, {platform.machine()}, "
        f"{pf.get_num_threads()} threads; written by `python -m benchmarks.tables`."
    )


def write(names):
    """Measure these tables, and put them where they belong."""
    made = {name: f"{TABLES[name]()}\n{_machine()}\n" for name in names}
    for page in pages():
        text = page.read_text(encoding="utf-8")

        def place(match):
            return match[1] + made[match[2]] + match[3] if match[2] in made else match[0]

        page.write_text(_PLACE.sub(place, text), encoding="utf-8")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TABLES)}; all unless given")
    parser.add_argument("--check", action="store_true", help="measure nothing: do they match?")
    options = parser.parse_args(arguments)
    odd = set(options.names) - set(TABLES)
    if odd:
        parser.error(f"no table is called {sorted(odd)[0]!r}")
    if options.check:
        return int({name for names in pages().values() for name in names} != set(TABLES))
    write(options.names or list(TABLES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
