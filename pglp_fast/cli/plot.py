"""``pglp-fast plot``: pictures of maps, policies, noise and traces."""

import argparse
from pathlib import Path
from typing import Any

import pglp_fast as pf

from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_output,
    add_prefix,
    add_table,
    command,
    count_from,
    duration,
)

_MAX_GAP = 1_800_000  # ms
_TEXT = f"""
Draw a picture, PNG, SVG or PDF by the name of OUT. A map, a policy or a trace may be .html: to move
and zoom in, offline too.
  map      how many rows of TABLE are in each cell, by their released places where it has any
  policy   the components of a policy
  noise    what a mechanism makes of one cell: the exact probabilities of what is released
  trace    where a user of TABLE (written by 'release', true places not dropped) was, and what was
           released

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 --keep all \\
    --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
pglp-fast plot map trips.csv -o map.png --cell-km 0.34
pglp-fast plot map alone.csv -o map.html
pglp-fast plot policy -o policy.png --policy blocks:5 --bounds 35.68,35.72,139.60,139.65 \\
    --cell-km 0.34
pglp-fast plot noise -o noise.svg --policy blocks:5 --epsilon 1 \\
    --bounds 35.68,35.72,139.60,139.65 --cell-km 0.34
pglp-fast plot trace alone.csv -o trace.png --user u07 --steps 40
"""


def _place(text: str) -> tuple[float, float]:
    try:
        lat, lon = (float(v) for v in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAT,LON") from None
    return lat, lon


def add(commands: Commands) -> None:
    parser = command(commands, "plot", "draw a map, a policy, noise or a trace", _TEXT, _EXAMPLES)
    parser.add_argument(
        "kind",
        choices=("map", "policy", "noise", "trace"),
        metavar="KIND",
        help="map, policy, noise or trace",
    )
    parser.add_argument("table", metavar="TABLE", nargs="?", help="for map and trace")
    add_output(parser, "the picture: .png, .svg or .pdf, or .html to zoom in")
    parser.add_argument(
        "--tiles",
        action="store_true",
        help=".html: streets from OpenStreetMap behind it, where the reader is online; that server "
        "then learns where one looks",
    )
    parser.add_argument(
        "--at",
        type=_place,
        metavar="LAT,LON",
        help="noise: which place (default: the middle of the map)",
    )
    parser.add_argument("--user", metavar="USER", help="trace: whose (default: the first)")
    parser.add_argument(
        "--steps",
        type=count_from(1),
        metavar="N",
        help="trace: only the first N rows (default: all)",
    )
    parser.add_argument(
        "--max-gap",
        type=duration,
        default=_MAX_GAP,
        metavar="TIME",
        help="trace: no line joins rows further apart than this (default: 30min)",
    )
    parser.add_argument(
        "--places",
        choices=("released", "given"),
        help="map: which places are counted, the released ones of a table written by 'release', or "
        "the others (default: the released ones where there are any)",
    )
    add_prefix(parser)
    parser.add_argument(
        "--dpi",
        type=count_from(10),
        default=150,
        metavar="N",
        help="dots an inch of a PNG (default: 150)",
    )
    add_mechanism(parser, optional=True)
    add_map(parser, from_table=True, from_model=True)
    parser.add_argument("--mobility", metavar="MODEL", help="take the map from a fitted model")
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import os

    os.environ.setdefault("MPLBACKEND", "Agg")
    from pglp_fast import plot
    from pglp_fast.pipeline import paths

    from . import terminal

    out = Path(options.output)
    zooms = _zooms(options, out)
    wanted = {
        "map": ("table",),
        "policy": ("policy",),
        "noise": ("policy", "epsilon"),
        "trace": ("table",),
    }[options.kind]
    for name in wanted:
        if getattr(options, name) is None:
            raise pf.InvalidParameter(
                f"plot {options.kind} needs {'TABLE' if name == 'table' else '--' + name}"
            )
    _refuse_unused(options)
    if not zooms:
        plot.pyplot()  # or an error, before the work, that says how to get it
    with paths.atomic(out, options.force) as path:
        draw = {"map": _map, "policy": _policy, "noise": _noise, "trace": _trace}[options.kind]
        drawn, what = draw(options, plot, zooms)
        if zooms:
            Path(path).write_text(drawn.html, encoding="utf-8")
        else:
            _save(drawn.figure, path, options.dpi, out.suffix[1:].lower())
    terminal.result(
        options.json, {"picture": str(out), "kind": options.kind, **what}, f"{out}: {options.kind}"
    )


def _zooms(options: argparse.Namespace, out: Path) -> bool:
    """Whether a map to zoom in is wanted; the end of the name is one that can be drawn."""
    end = out.suffix.lower()
    zooms = end in (".html", ".htm")
    if not zooms and end not in (".png", ".svg", ".pdf"):
        raise pf.InvalidParameter(f"{out}: name the picture .png, .svg, .pdf or .html")
    if zooms and options.kind == "noise":
        raise pf.InvalidParameter("plot noise draws .png, .svg or .pdf")
    if options.tiles and not zooms:
        raise pf.InvalidParameter("--tiles is for .html: leave it out, or name the picture so")
    return zooms


def _save(figure: Any, path: Path, dpi: int, kind: str) -> None:
    from pglp_fast import plot

    try:
        figure.savefig(path, dpi=dpi, format=kind)
    finally:
        plot.pyplot().close(figure)


_READING = ("columns", "names", "delimiter")
_USED = {
    "map": ("table", "places", *_READING),
    "policy": ("policy", "labels"),
    "noise": ("policy", "labels", "epsilon", "mechanism", "calibration", "remap", "at"),
    "trace": ("table", "user", "steps", "max_gap", *_READING),
}
_DEFAULTS = {"mechanism": "ppim", "calibration": "component", "max_gap": _MAX_GAP}
_EDGES_SEEN = 2_500  # edges outside cliques that a picture can show
_SIDE = 16  # cells a side of the part that is drawn of a policy with more


def _refuse_unused(options: argparse.Namespace) -> None:

    for name in sorted(
        {name for names in _USED.values() for name in names} - set(_USED[options.kind])
    ):
        if getattr(options, name) != _DEFAULTS.get(name):
            what = "TABLE" if name == "table" else f"--{name.replace('_', '-')}"
            raise pf.InvalidParameter(f"plot {options.kind} has no use for {what}: leave it out")


def _map(options: argparse.Namespace, plot: Any, zooms: bool) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    from . import maps, plans, read_back

    reading, which = plans.reading(options), options.places
    released = {role: f"{options.prefix}{role}" for role in ("lat", "lon")}
    has_released = read_back.has_columns(options, list(released.values()))
    if which is None:
        which = "released" if has_released else "given"
    if which == "released":
        reading["columns"] = {**(reading["columns"] or {}), **released}

    def batches() -> Any:
        return pf.iter_table(options.table, on_error="skip", **reading)

    grid = maps.released_grid(options) if which == "released" else maps.given_grid(options)
    if grid is None and options.mobility:
        grid = maps.need_grid(options)
    if grid is None:
        grid = maps.table_grid(options, batches)
    counts = np.zeros(grid.size)
    rows = 0
    for tracks in batches():
        cells = grid.locate(tracks.lat, tracks.lon)
        counts += np.bincount(cells[cells >= 0], minlength=grid.size)
        rows += len(tracks)
    title = f"{Path(options.table).name}: rows by {which} place"
    said = {"rows": rows, "on_map": int(counts.sum()), "places": which}
    if zooms:
        shown = plot.interactive_map(
            grid, values={"rows": counts}, tiles=options.tiles, title=title
        )
        return shown, said
    # cells without a row are left blank: they are not the darkest of a scale
    ax = plot.heat(grid, np.where(counts > 0, counts, np.nan), label="rows", cmap="viridis_r")
    ax.set_facecolor("0.95")
    ax.set_title(title, fontsize="medium")
    return ax, said


def _policy(options: argparse.Namespace, plot: Any, zooms: bool) -> tuple[Any, dict[str, Any]]:
    from pglp_fast.pipeline.plan_policies import spelt_policy

    from . import maps

    graph = spelt_policy(options.policy, maps.need_grid(options), options.labels)
    said = {"policy": options.policy, "edges": graph.n_edges}
    if zooms:
        title = f"policy {options.policy}: {graph.n_edges:,} edges"
        return plot.interactive_map(
            graph.locations, policy=graph, tiles=options.tiles, title=title
        ), said
    cells, part = _part(graph)
    ax = plot.policy(graph, cells=cells)
    ax.set_title(
        f"policy {options.policy}: {part}{graph.n_edges:,} edges in all", fontsize="medium"
    )
    return ax, said


def _part(graph: Any) -> tuple[Any, str]:
    """A part of the map whose edges can be seen, and its name; all of it where they can be."""
    import numpy as np

    grid = graph.locations
    assert isinstance(grid, pf.Grid)
    if len(graph.extra_edges()) <= _EDGES_SEEN:
        return None, ""
    high, wide = min(_SIDE, grid.rows), min(_SIDE, grid.cols)
    row = (grid.rows - high) // 2 + np.arange(high)
    col = (grid.cols - wide) // 2 + np.arange(wide)
    return (row[:, None] * grid.cols + col).ravel(), f"the middle {high} x {wide} cells, "


def _noise(options: argparse.Namespace, plot: Any, _: bool) -> tuple[Any, dict[str, Any]]:

    from pglp_fast.pipeline.maps import describe

    from . import maps, plans

    grid = maps.need_grid(options)
    middle = grid.rows // 2 * grid.cols + grid.cols // 2
    cell = middle if options.at is None else int(grid.locate(*options.at))
    if cell < 0:
        raise pf.InvalidParameter(
            f"--at {options.at[0]:g},{options.at[1]:g} is off the map: {describe(grid)}"
        )
    mechanism = plans.plan_of(options, None if options.mobility else grid).for_rows()
    ax = plot.noise(mechanism, cell)
    ax.set_title(f"{ax.get_title()}, policy {options.policy}", fontsize="medium")
    return ax, {
        "cell": cell,
        "policy": options.policy,
        "epsilon": options.epsilon,
    }


def _trace(options: argparse.Namespace, plot: Any, zooms: bool) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    from . import maps, read_back

    grid = maps.released_grid(options) or maps.need_grid(options)
    user, ms, cell, truth, labels, _ = read_back.read_rows(options, grid)
    if truth is None:
        raise pf.InvalidTable(
            f"{options.table} has no true places: plot trace needs a table released with --keep all"
        )
    who = labels[user[0]] if options.user is None else options.user
    if who not in labels or not (user == labels.index(who)).any():
        raise pf.InvalidTable(
            f"{options.table} has no released row of user {who!r}; it has e.g. {labels[user[0]]!r}"
        )
    rows = np.flatnonzero((user == labels.index(who)) & (truth >= 0))
    of = len(rows)
    rows = rows[np.argsort(ms[rows], kind="stable")][: options.steps]
    # no line where nothing is known of the way
    gaps = np.diff(ms[rows], prepend=ms[rows[:1]]) > options.max_gap
    first, last = (
        str(np.datetime64(int(ms[k]), "ms").astype("datetime64[m]")).replace("T", " ")
        for k in rows[[0, -1]]
    )
    some = "" if len(rows) == of else f" of {of:,}"
    title = f"user {who}: {len(rows):,}{some} rows\n{first} to {last} UTC"
    said = {"user": who, "rows": len(rows), "of_rows": of, "gaps": int(gaps.sum())}
    if zooms:
        cuts = np.flatnonzero(gaps)
        both = {"released": cell, "true": truth}
        lines = {name: np.insert(cells[rows], cuts, -1) for name, cells in both.items()}
        flat = title.replace("\n", ", ")
        return plot.interactive_map(grid, traces=lines, tiles=options.tiles, title=flat), said
    ax = plot.trace(grid, truth[rows], cell[rows], gaps=gaps)
    ax.set_title(title, fontsize="medium")
    return ax, said
