"""``pglp-fast plot``: pictures of maps, policies, noise and traces."""

import argparse
from pathlib import Path
from typing import Any

from .options import POLICY_HELP, Commands, add_json, add_map, add_mechanism, add_output, add_table, command, count_from

_TEXT = f"""
Draw a picture, PNG, SVG or PDF by the name of OUT:
  map      how many rows of TABLE are in each cell
  policy   the components of a policy
  noise    what a mechanism makes of one cell: the exact probabilities of what is released
  trace    where a user of TABLE (written by 'release', true places not dropped) was, and what was released

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
pglp-fast plot map trips.csv -o map.png --cell-km 0.34
pglp-fast plot policy -o policy.png --policy blocks:5 --bounds 35.68,35.72,139.60,139.65 --cell-km 0.34
pglp-fast plot noise -o noise.svg --policy blocks:5 --epsilon 1 --bounds 35.68,35.72,139.60,139.65 --cell-km 0.34
pglp-fast plot trace alone.csv -o trace.png --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34 --user u07 --steps 40
"""


def _place(text: str) -> tuple[float, float]:
    try:
        lat, lon = (float(v) for v in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAT,LON") from None
    return lat, lon


def add(commands: Commands) -> None:
    parser = command(commands, "plot", "draw a map, a policy, noise or a trace", _TEXT, _EXAMPLES)
    parser.add_argument("kind", choices=("map", "policy", "noise", "trace"), metavar="KIND", help="map, policy, noise or trace")
    parser.add_argument("table", metavar="TABLE", nargs="?", help="for map and trace")
    add_output(parser, "the picture: .png, .svg or .pdf")
    parser.add_argument("--at", type=_place, metavar="LAT,LON", help="noise: which place (default: the middle of the map)")
    parser.add_argument("--user", metavar="USER", help="trace: whose (default: the first)")
    parser.add_argument("--steps", type=count_from(1), metavar="N", help="trace: only the first N rows (default: all)")
    parser.add_argument("--prefix", default="released_", metavar="TEXT", help="how released columns start (default: released_)")
    parser.add_argument("--dpi", type=count_from(10), default=150, metavar="N", help="dots an inch of a PNG (default: 150)")
    add_mechanism(parser, optional=True)
    add_map(parser, from_table=True, from_model=True)
    parser.add_argument("--mobility", metavar="MODEL", help="take the map from a fitted model")
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import os

    os.environ.setdefault("MPLBACKEND", "Agg")
    from .. import plot
    from ..errors import InvalidParameter
    from .paths import atomic
    from .say import result

    out = Path(options.output)
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidParameter(f"{out}: name the picture .png, .svg or .pdf")
    wanted = {"map": ("table",), "policy": ("policy",), "noise": ("policy", "epsilon"), "trace": ("table",)}[options.kind]
    for name in wanted:
        if getattr(options, name) is None:
            raise InvalidParameter(f"plot {options.kind} needs {'TABLE' if name == 'table' else '--' + name}")
    _refuse_unused(options)
    plt = plot.pyplot()
    with atomic(out, options.force) as path:
        ax, what = {"map": _map, "policy": _policy, "noise": _noise, "trace": _trace}[options.kind](options, plot)
        try:
            ax.figure.savefig(path, dpi=options.dpi, format=out.suffix[1:].lower())
        finally:
            plt.close(ax.figure)
    result(options.json, {"picture": str(out), "kind": options.kind, **what}, f"{out}: {options.kind}")


_READING = ("columns", "names", "delimiter")
_USED = {
    "map": ("table", *_READING), "policy": ("policy", "labels"),
    "noise": ("policy", "labels", "epsilon", "mechanism", "calibration", "remap", "at"),
    "trace": ("table", "user", "steps", *_READING),
}  # fmt: skip
_DEFAULTS = {"mechanism": "ppim", "calibration": "component"}


def _refuse_unused(options: argparse.Namespace) -> None:
    from ..errors import InvalidParameter

    for name in sorted({name for names in _USED.values() for name in names} - set(_USED[options.kind])):
        if getattr(options, name) != _DEFAULTS.get(name):
            what = "TABLE" if name == "table" else f"--{name}"
            raise InvalidParameter(f"plot {options.kind} has no use for {what}: leave it out")


def _map(options: argparse.Namespace, plot: Any) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    from ..errors import InvalidParameter
    from ..tracks import iter_table
    from .world import Box, given_grid, grid_of, need_grid, reading

    def batches() -> Any:
        return iter_table(options.table, on_error="skip", **reading(options))

    grid = need_grid(options) if options.mobility else given_grid(options)
    if grid is None:
        if options.cell_km is None:
            raise InvalidParameter("which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34, or --mobility MODEL")
        box = Box()
        for tracks in batches():
            box.add(tracks)
        grid = grid_of(box.bounds(options.table), options.cell_km)
    counts = np.zeros(grid.size)
    rows = 0
    for tracks in batches():
        cells = grid.locate(tracks.lat, tracks.lon)
        counts += np.bincount(cells[cells >= 0], minlength=grid.size)
        rows += len(tracks)
    return plot.heat(grid, counts, label="rows"), {"rows": rows, "on_map": int(counts.sum())}


def _policy(options: argparse.Namespace, plot: Any) -> tuple[Any, dict[str, Any]]:
    from .world import make_policy, need_grid

    graph = make_policy(options, need_grid(options))
    return plot.policy(graph), {"policy": options.policy, "edges": graph.n_edges}


def _noise(options: argparse.Namespace, plot: Any) -> tuple[Any, dict[str, Any]]:
    from ..errors import InvalidParameter
    from .world import describe, make_mechanism, make_policy, need_grid

    grid = need_grid(options)
    middle = grid.rows // 2 * grid.cols + grid.cols // 2
    cell = middle if options.at is None else int(grid.locate(*options.at))
    if cell < 0:
        raise InvalidParameter(f"--at {options.at[0]:g},{options.at[1]:g} is off the map: {describe(grid)}")
    mechanism = make_mechanism(options, make_policy(options, grid))
    return plot.noise(mechanism, cell), {"cell": cell, "policy": options.policy, "epsilon": options.epsilon}


def _trace(options: argparse.Namespace, plot: Any) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    from ..errors import InvalidTable
    from .released import read_rows
    from .world import need_grid

    grid = need_grid(options)
    user, ms, cell, truth, labels = read_rows(options, grid)
    if truth is None:
        raise InvalidTable(f"{options.table} has no true places: plot trace needs a table released without --drop-true")
    who = labels[user[0]] if options.user is None else options.user
    if who not in labels or not (user == labels.index(who)).any():
        raise InvalidTable(f"{options.table} has no released row of user {who!r}; it has e.g. {labels[user[0]]!r}")
    rows = np.flatnonzero((user == labels.index(who)) & (truth >= 0))
    rows = rows[np.argsort(ms[rows], kind="stable")][: options.steps]
    return plot.trace(grid, truth[rows], cell[rows]), {"user": who, "rows": len(rows)}
