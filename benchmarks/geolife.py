"""Geolife, a release a minute, by this version of the package and by others side by side:
``python -m benchmarks.geolife FOLDER [TREE ...]``, a tree being a checkout of another version.

Half of the people are released, 100 minutes at a time; the other half is what the adversary has
learned from. Processor time of all threads, the best of three after one that does not count."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS, ROUNDS = 100, 3
SIDES = {"G_k9": 3, "G_k25": 5}

# what every version understands: made of arrays, and told in lines
_MEASURE = """
import sys, time
import numpy as np, pglp_fast as pf
given = np.load(sys.argv[1])
rows, cols, rounds = given["map"]
grid = pf.Grid(int(rows), int(cols), cell_km=0.34)
others = np.split(given["others"], given["ends"])
model = pf.MobilityModel.fit(grid, others)
for side in given["sides"]:
    best = {}
    for _ in range(rounds + 1):
        T = pf.TraceReleaser(pf.blocks(grid, int(side)), model, epsilon=1.0, rng=0)
        for tables in ("made on the way", "at hand"):
            started = time.process_time()
            T.run(given["traces"], "point")
            best.setdefault(tables, []).append(time.process_time() - started)
    for tables, took in best.items():
        print(side, tables, min(took[1:]) / given["traces"].size, sep="|")
"""


def prepare(folder: Path, path: Path) -> str:
    """Write the traces that are released and those that are learned from; what they are."""
    import numpy as np

    from pglp_fast.experiments.data import beijing, read_beijing

    _, fixes = read_beijing(folder)
    grid = beijing()
    traces = fixes.clean(grid, max_speed_kmh=200).resample(
        grid, "1min", max_gap="10min", carry="10min"
    )
    released = traces.user.codes % 2 == 0
    pieces = traces[np.flatnonzero(released)].cut(STEPS, observed=1.0)
    others = list(traces[np.flatnonzero(~released)])
    array = pieces.to_array()
    np.savez(
        path,
        traces=array,
        others=np.concatenate(others),
        ends=np.cumsum([len(cells) for cells in others])[:-1],
        sides=list(SIDES.values()),
        map=[grid.rows, grid.cols, ROUNDS],
    )
    people = len(np.unique(pieces.user.codes))
    return f"{len(array):,} traces of {people} people, {STEPS} minutes each, {grid.size:,} cells"


def measure(tree: Path, path: Path) -> dict[tuple[int, str], float]:
    """Seconds of a user-step by policy and tables, of the version in this folder."""
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], env=env, cwd=tree, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    lines = [line.split("|") for line in done.stdout.splitlines()]
    return {(int(side), tables): float(took) for side, tables, took in lines}


def main(folder: Path, trees: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as room:
        path = Path(room) / "traces.npz"
        print(prepare(folder, path))
        ours, *others = [measure(tree, path) for tree in (Path(__file__).parents[1], *trees)]
    print("| policy | tables | a user-step |" + " before | times faster |" * len(others))
    print("| --- | --- | --- |" + " --- | --- |" * len(others))
    for (side, tables), took in ours.items():
        name = next(name for name, k in SIDES.items() if k == side)
        row = f"| {name} | {tables} | {took * 1e6:.2f} us |"
        for other in others:
            before = other[side, tables]
            row += f" {before * 1e6:.2f} us | {before / took:.1f} |"
        print(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(tree).absolute() for tree in sys.argv[2:]])
