"""``pglp-fast fit``: how people move, from a table."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pglp_fast as pf

from .options import (
    Commands,
    add_json,
    add_map,
    add_output,
    add_progress,
    add_table,
    command,
    count_from,
    duration,
    positive,
    users,
    utc_offset,
)

_TEXT = """
Fit a mobility model (a Markov chain over the cells of a map) to a table of who was where when, and
save it with its map. The table is cleaned and brought to equal steps first; a report says what was
left out.

The model is what the adversary is assumed to know: fit it on public data or on other people's
traces, never on those that you are going to release. (A second file, MODEL.users, remembers their
fixes by number, so that 'release' can warn if it meets them. It could be traced back to places: it
is for you only. Share the model without it.)
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast fit history.csv -o day.npz --cell-km 0.34 --bounds 35.68,35.83,139.60,139.78 \\
    --periods 24 --utc-offset 9h
pglp-fast fit history.csv -o some.npz --cell-km 0.34 --except-users u000,u001,u002
pglp-fast fit history.csv -o smooth.npz --cell-km 0.5 --step 10min --max-speed 150 \\
    --smoothing neighbours8
"""


def add(commands: Commands) -> None:
    parser = command(commands, "fit", "fit a mobility model to a table", _TEXT, _EXAMPLES)
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="CSV (or .gz), Parquet, a folder of such files, or a Geolife folder",
    )
    add_output(parser, "the model's file, e.g. model.npz")
    parser.add_argument(
        "--format",
        choices=("auto", "table", "geolife", "gowalla", "foursquare"),
        default="auto",
        help="what TABLE is (default: found; gowalla and foursquare must be told)",
    )
    parser.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        default="raise",
        help="a row that cannot be read: stop, or leave it out",
    )
    _add_users(parser)
    add_map(parser, from_table=True)
    add_table(parser)
    _add_cleaning(parser)
    _add_model(parser)
    add_json(parser)
    add_progress(parser)
    parser.set_defaults(run=_run)


def _add_users(parser: argparse.ArgumentParser) -> None:
    who = "names with commas, or @FILE with a name on each line"
    group = parser.add_argument_group("users")
    group.add_argument(
        "--users", type=users, metavar="NAME,...", help=f"fit these users alone: {who}"
    )
    group.add_argument(
        "--except-users",
        type=users,
        metavar="NAME,...",
        help=f"fit all but these, such as those that will be released: {who}",
    )


def _add_cleaning(parser: argparse.ArgumentParser) -> None:
    cleaning = parser.add_argument_group("cleaning and steps")
    cleaning.add_argument(
        "--step",
        type=duration,
        default=300_000,
        metavar="TIME",
        help="duration of a step (default: 5min)",
    )
    cleaning.add_argument(
        "--rule",
        choices=("first", "last", "nearest"),
        default="first",
        help="which fix speaks for a step (default: first, as in 'release')",
    )
    cleaning.add_argument(
        "--carry",
        type=duration,
        metavar="TIME",
        help="fill a step without a fix from at most so long ago",
    )
    cleaning.add_argument(
        "--max-gap",
        type=duration,
        metavar="TIME",
        default=3_600_000,
        help="a longer silence ends a trace (default: 1h)",
    )
    cleaning.add_argument(
        "--max-speed",
        type=positive,
        metavar="KMH",
        help="leave out fixes that can only be reached faster",
    )
    cleaning.add_argument(
        "--window",
        metavar="FROM,TO",
        default="2001-01-01,2100-01-01",
        help="times outside are left out (default: %(default)s)",
    )


def _add_model(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--periods",
        type=count_from(1),
        default=1,
        metavar="N",
        help="matrices, one for each Nth of the day",
    )
    model.add_argument(
        "--utc-offset",
        type=utc_offset,
        default=0,
        metavar="TIME",
        help="local time ahead of UTC, e.g. 9h, for --periods",
    )
    model.add_argument(
        "--unseen",
        choices=("stay", "neighbours8"),
        default="stay",
        help="cells that nobody was seen to leave: people stay, or stay or go to the eight around "
        "evenly (default: stay)",
    )
    model.add_argument(
        "--smoothing",
        choices=("neighbours8",),
        help="make staying and the moves to the eight around possible everywhere",
    )
    model.add_argument(
        "--pseudo-count",
        type=positive,
        metavar="X",
        help="how often smoothing counts each of them (default: 1)",
    )
    model.add_argument(
        "--minimum-count",
        type=count_from(1),
        default=1,
        metavar="N",
        help="moves seen less often are dropped",
    )

    model.add_argument(
        "--private",
        type=positive,
        metavar="E",
        help="add noise to the counts, so that the model may be published: E-differential privacy "
        "for every person. Needs --bounds; only staying and moves to the eight around are counted",
    )
    model.add_argument(
        "--contribution",
        type=count_from(1),
        metavar="N",
        help="with --private: moves that a person counts for (default: 20)",
    )


def _read(options: argparse.Namespace, progress: bool) -> Any:

    from .plans import reading

    path, kind = Path(options.table), options.format
    if kind == "auto":
        geolife = path.is_dir() and next(path.rglob("Trajectory/*.plt"), None) is not None
        kind = "geolife" if geolife else "table"
    if kind == "table":
        return pf.read_table(path, on_error=options.on_error, progress=progress, **reading(options))
    given = [
        name.replace("_", "-")
        for name in ("columns", "names", "delimiter", "time_format")
        if getattr(options, name) is not None
    ]
    given += ["decimal"] if options.decimal != "." else []
    if given or options.timezone != "UTC":
        raise pf.InvalidParameter(
            f"--{(given or ['timezone'])[0]} is for tables: {kind} files have columns and times of "
            "their own"
        )
    if kind == "geolife":
        return pf.read_geolife(path, on_error=options.on_error, progress=progress)
    return (pf.read_gowalla if kind == "gowalla" else pf.read_foursquare)(
        path, on_error=options.on_error
    )


def _check(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """Refuse options that do not go together; returns the window of times."""
    from pglp_fast._util.times import DAY_MS

    from .maps import need_cell

    need_cell(options)
    if options.periods > 1 and DAY_MS % options.step:
        raise pf.InvalidParameter(
            f"--periods needs a --step that divides the day: {options.step / 1000:g} s does not"
        )
    if options.pseudo_count is not None and options.smoothing is None:
        raise pf.InvalidParameter("--pseudo-count is for --smoothing: give both, or leave it out")
    if options.private is None and options.contribution is not None:
        raise pf.InvalidParameter("--contribution is for --private: give both, or leave it out")
    if options.private is not None and options.bounds is None:
        raise pf.InvalidParameter(
            "--private needs --bounds: the box of the table tells where its outermost rows are"
        )
    if options.utc_offset and options.periods == 1:
        raise pf.InvalidParameter(
            "--utc-offset is for --periods: a model of one period does not ask for the time of day"
        )
    window = options.window.split(",")
    if len(window) != 2:
        raise pf.InvalidParameter(
            f"--window must be FROM,TO, either may be empty, got {options.window!r}"
        )
    return window[0] or None, window[1] or None


def _run(options: argparse.Namespace) -> None:
    import sys

    from pglp_fast.pipeline import fingerprint, paths
    from pglp_fast.pipeline.maps import describe

    from . import maps, terminal

    out = Path(options.output)
    paths.refuse_existing(out, options.force)
    window = _check(options)
    tracks = _read(options, options.progress or sys.stderr.isatty())
    tracks = _chosen(options, tracks)
    remembered = fingerprint.Fingerprint()
    remembered.add(tracks)
    grid = maps.table_grid(options, lambda: [tracks], tell=True)
    cleaned = tracks.clean(grid, window=window, max_speed_kmh=options.max_speed)
    traces, model, seen = _fit(options, cleaned, grid)
    moves = sum(len(chain.data) for chain in model.chains)
    model.save(out, notes={**model.notes, "step_ms": options.step, "ahead_ms": options.utc_offset})
    document = {
        "model": str(out),
        "users": str(remembered.keep(out)),
        "map": grid.to_dict(),
        "bounds": list(options.bounds),
        "step_seconds": options.step / 1000,
        "periods": options.periods,
        "cleaning": cleaned.report.to_dict(),
        "traces": traces.report.to_dict(),
        "moves_seen": seen,
        "moves_possible": moves,
    }
    lines = (
        str(cleaned.report),
        str(traces.report),
        f"map: {describe(grid)}",
        f"{out}: {seen:,} moves seen, {moves:,} possible, steps of {options.step / 1000:g} s, "
        f"periods: {options.periods}",
        *_told(options),
    )
    terminal.result(options.json, document, "\n".join(lines))


def _chosen(options: argparse.Namespace, tracks: Any) -> Any:
    """The fixes of the users that are wanted."""
    import numpy as np

    from pglp_fast.io.labels import label_name

    given = options.users or options.except_users
    if given is None:
        return tracks
    wanted = [label_name(name) for name in given]
    if options.users and options.except_users:
        raise pf.InvalidParameter("give --users or --except-users, not both")
    labels = [str(label) for label in tracks.users]
    known = set(labels)
    strange = next((name for name in wanted if name not in known), None)
    if strange is not None:
        raise pf.InvalidTable(
            f"{options.table} has no user {strange!r}; it has e.g. {', '.join(labels[:3])}"
        )
    named = np.isin(np.array(labels), wanted)
    rows = tracks[(named if options.users else ~named)[tracks.user.codes]]
    if not len(rows):
        raise pf.InvalidTable(f"--except-users leaves no user of {options.table} to fit")
    report = rows.report.then("rows of users not chosen", len(tracks) - len(rows))
    return replace(rows, report=report)


def _told(options: argparse.Namespace) -> list[str]:
    """What a private model promises."""
    if options.private is None:
        return []
    return [
        f"private: epsilon {options.private:g} for a person, who counts for at most "
        f"{options.contribution or 20} moves. The figures above are of the true table: keep them"
    ]


def _fit(options: argparse.Namespace, cleaned: Any, grid: Any) -> tuple[Any, Any, int]:
    """(traces, model, moves seen)."""
    import numpy as np

    from pglp_fast._util.times import DAY_MS

    ms = np.timedelta64(1, "ms")
    carry = None if options.carry is None else options.carry * ms
    traces = cleaned.resample(
        grid, options.step * ms, rule=options.rule, carry=carry, max_gap=options.max_gap * ms
    )
    seen = sum(int(((t[:-1] >= 0) & (t[1:] >= 0)).sum()) for t in traces)
    if not seen:
        raise pf.InvalidTable(
            "no user was seen in two steps in a row, so there are no moves to count "
            f"({len(cleaned):,} fixes are left after cleaning): is --step too short for this "
            "table, or are --bounds elsewhere?"
        )
    when = None
    if options.periods > 1:
        ahead = options.utc_offset % DAY_MS
        when = traces.periods(options.periods, ahead=ahead * ms if ahead else None)
    model = pf.MobilityModel.fit(
        grid,
        traces,
        minimum_count=options.minimum_count,
        unseen=options.unseen,
        smoothing=options.smoothing,
        pseudo_count=options.pseudo_count or 1.0,
        periods=options.periods,
        period_of_step=when,
        private=options.private,
        contribution=options.contribution or 20,
    )
    return traces, model, seen
