"""``pglp-fast fit``: how people move, from a table."""

import argparse
from pathlib import Path
from typing import Any

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
    utc_offset,
)

_TEXT = """
Fit a mobility model (a Markov chain over the cells of a map) to a table of who was where when, and save it with its
map. The table is cleaned and brought to equal steps first; a report says what was left out.

The model is what the adversary is assumed to know: fit it on public data or on other people's traces, never on those
that you are going to release. (A second file, MODEL.users, remembers their fixes by number, so that 'release' can warn if
it meets them. It could be traced back to places: it is for you only. Share the model without it.)
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast fit history.csv -o day.npz --cell-km 0.34 --bounds 35.68,35.83,139.60,139.78 --periods 24 --utc-offset 9h
pglp-fast fit history.csv -o smooth.npz --cell-km 0.5 --step 10min --max-speed 150 --smoothing neighbours8
"""


def add(commands: Commands) -> None:
    parser = command(commands, "fit", "fit a mobility model to a table", _TEXT, _EXAMPLES)
    parser.add_argument("table", metavar="TABLE", help="CSV (or .gz), Parquet, a folder of such files, or a Geolife folder")
    add_output(parser, "the model's file, e.g. model.npz")
    parser.add_argument(
        "--format", choices=("auto", "table", "geolife", "gowalla", "foursquare"), default="auto",
        help="what TABLE is (default: found; gowalla and foursquare must be told)",
    )  # fmt: skip
    parser.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise", help="a row that cannot be read: stop, or leave it out"
    )
    add_map(parser, from_table=True)
    add_table(parser)
    cleaning = parser.add_argument_group("cleaning and steps")
    cleaning.add_argument("--step", type=duration, default=300_000, metavar="TIME", help="duration of a step (default: 5min)")
    cleaning.add_argument(
        "--rule", choices=("first", "last", "nearest"), default="first",
        help="which fix speaks for a step (default: first, as in 'release')",
    )  # fmt: skip
    cleaning.add_argument("--carry", type=duration, metavar="TIME", help="fill a step without a fix from at most so long ago")
    cleaning.add_argument(
        "--max-gap", type=duration, metavar="TIME", default=3_600_000, help="a longer silence ends a trace (default: 1h)"
    )
    cleaning.add_argument("--max-speed", type=positive, metavar="KMH", help="leave out fixes that can only be reached faster")
    cleaning.add_argument(
        "--window", metavar="FROM,TO", default="2001-01-01,2100-01-01", help="times outside are left out (default: %(default)s)"
    )
    model = parser.add_argument_group("model")
    model.add_argument("--periods", type=count_from(1), default=1, metavar="N", help="matrices, one for each Nth of the day")
    model.add_argument(
        "--utc-offset", type=utc_offset, default=0, metavar="TIME", help="local time ahead of UTC, e.g. 9h, for --periods"
    )
    model.add_argument(
        "--unseen", choices=("stay", "neighbours8"), default="stay",
        help="cells that nobody was seen to leave: people stay, or stay or go to the eight around evenly (default: stay)",
    )  # fmt: skip
    model.add_argument(
        "--smoothing", choices=("neighbours8",), help="make staying and the moves to the eight around possible everywhere"
    )
    model.add_argument("--pseudo-count", type=positive, metavar="X", help="how often smoothing counts each of them (default: 1)")
    model.add_argument("--minimum-count", type=count_from(1), default=1, metavar="N", help="moves seen less often are dropped")
    add_json(parser)
    add_progress(parser)
    parser.set_defaults(run=_run)


def _read(options: argparse.Namespace, progress: bool) -> Any:
    from ..errors import InvalidParameter
    from ..tracks import read_foursquare, read_geolife, read_gowalla, read_table
    from .world import reading

    path, kind = Path(options.table), options.format
    if kind == "auto":
        geolife = path.is_dir() and next(path.rglob("Trajectory/*.plt"), None) is not None
        kind = "geolife" if geolife else "table"
    if kind == "table":
        return read_table(path, on_error=options.on_error, progress=progress, **reading(options))
    given = [name for name in ("columns", "names", "delimiter") if getattr(options, name) is not None]
    if given or options.timezone != "UTC":
        raise InvalidParameter(f"--{(given or ['timezone'])[0]} is for tables: {kind} files have columns and times of their own")
    if kind == "geolife":
        return read_geolife(path, on_error=options.on_error, progress=progress)
    return (read_gowalla if kind == "gowalla" else read_foursquare)(path, on_error=options.on_error)


def _run(options: argparse.Namespace) -> None:
    import sys

    import numpy as np

    from ..errors import InvalidParameter, InvalidTable
    from ..mobility import MobilityModel
    from .fingerprint import Fingerprint
    from .paths import refuse_existing
    from .say import note, result
    from .world import DAY_MS, Box, describe, grid_of

    out = Path(options.output)
    refuse_existing(out, options.force)
    if options.cell_km is None:
        raise InvalidParameter("which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34")
    if options.periods > 1 and DAY_MS % options.step:
        raise InvalidParameter(f"--periods needs a --step that divides the day: {options.step / 1000:g} s does not")
    if options.pseudo_count is not None and options.smoothing is None:
        raise InvalidParameter("--pseudo-count is for --smoothing: give both, or leave it out")
    if options.utc_offset and options.periods == 1:
        raise InvalidParameter("--utc-offset is for --periods: a model of one period does not ask for the time of day")
    window = options.window.split(",")
    if len(window) != 2:
        raise InvalidParameter(f"--window must be FROM,TO, either may be empty, got {options.window!r}")
    tracks = _read(options, options.progress or sys.stderr.isatty())
    remembered = Fingerprint()
    remembered.add(tracks)
    if options.bounds is None:
        box = Box()
        box.add(tracks)
        options.bounds = box.bounds(options.table)
        south, north, west, east = options.bounds
        note(
            "the map is the box of the table, which tells where its outermost rows are; "
            f"choose your own, or this one again, with --bounds {south:g},{north:g},{west:g},{east:g}"
        )
    grid = grid_of(options.bounds, options.cell_km)
    cleaned = tracks.clean(grid, window=(window[0] or None, window[1] or None), max_speed_kmh=options.max_speed)
    ms = np.timedelta64(1, "ms")
    carry = None if options.carry is None else options.carry * ms
    traces = cleaned.resample(grid, options.step * ms, rule=options.rule, carry=carry, max_gap=options.max_gap * ms)
    seen = sum(int(((t[:-1] >= 0) & (t[1:] >= 0)).sum()) for t in traces)
    if not seen:
        raise InvalidTable(
            f"no user was seen in two steps in a row, so there are no moves to count ({len(cleaned):,} fixes are left after "
            "cleaning): is --step too short for this table, or are --bounds elsewhere?"
        )
    when: Any = None
    if options.periods > 1:
        ahead = options.utc_offset % DAY_MS
        when = traces.periods(options.periods, ahead=ahead * ms if ahead else None)
    model = MobilityModel.fit(
        grid, traces, minimum_count=options.minimum_count, unseen=options.unseen, smoothing=options.smoothing,  # type: ignore[arg-type]
        pseudo_count=options.pseudo_count or 1.0, periods=options.periods, period_of_step=when,
    )  # fmt: skip
    moves = sum(len(chain.data) for chain in model.chains)
    model.save(out, notes={"step_ms": options.step, "ahead_ms": options.utc_offset})
    users = remembered.keep(out)
    document = {
        "model": str(out), "users": str(users), "map": grid.to_dict(), "bounds": list(options.bounds),
        "step_seconds": options.step / 1000,
        "periods": options.periods, "cleaning": cleaned.report.to_dict(), "traces": traces.report.to_dict(),
        "moves_seen": seen, "moves_possible": moves,
    }  # fmt: skip
    text = "\n".join(
        (
            str(cleaned.report),
            str(traces.report),
            f"map: {describe(grid)}",
            f"{out}: {seen:,} moves seen, {moves:,} possible, steps of {options.step / 1000:g} s, periods: {options.periods}",
        )
    )
    result(options.json, document, text)
