"""``pglp-fast attack``: what an adversary makes of a released table."""

import argparse
from typing import Any

from .options import POLICY_HELP, Commands, add_json, add_map, add_mechanism, add_mobility, add_table, command, count_from, share

_TEXT = f"""
Attack a table that was released with --mobility, as an adversary would who knows the model, the policy, the mechanism and
everything released: guess where users were, and tell how far off the guesses are. Give the options that the table was
released with. If the true places are still in the table, guesses are compared with them too, and the release's own
error (utility) stands beside the adversary's (privacy).

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast attack private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
"""


def add(commands: Commands) -> None:
    parser = command(commands, "attack", "what an adversary makes of a released table", _TEXT, _EXAMPLES)
    parser.add_argument("table", metavar="TABLE", help="what 'release --mobility' wrote")
    add_mechanism(parser)
    add_map(parser, from_model=True)
    add_mobility(parser, required=True)
    attack = parser.add_argument_group("attack")
    attack.add_argument(
        "--traces", type=count_from(1), default=500, metavar="N", help="attack at most N traces, evenly picked (default: 500)"
    )
    attack.add_argument("--confidence", type=share, default=0.95, metavar="C", help="of the intervals (default: 0.95)")
    attack.add_argument("--prefix", default="released_", metavar="TEXT", help="how released columns start (default: released_)")
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _read(options: argparse.Namespace, grid: Any, columns: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """(number, user, time in ms, cell) of all rows that can be read."""
    import numpy as np

    from ..tracks import iter_table
    from .world import reading

    parts = []
    for tracks in iter_table(options.table, on_error="skip", **{**reading(options), "columns": columns}):
        assert tracks.number is not None
        cells = np.where(np.isnat(tracks.time), -1, grid.locate(tracks.lat, tracks.lon)).astype(np.int32)
        parts.append((tracks.number, tracks.user.codes, tracks.ms, cells))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32)
    number, user, ms, cell = (np.concatenate(column) for column in zip(*parts, strict=True))
    return number, user, ms, cell


def read_released(options: argparse.Namespace, grid: Any) -> tuple[Any, Any, Any, Any]:
    """(user, time in ms, released cell, true cell or None) of the rows of a released table that were released."""
    import numpy as np

    from ..errors import InvalidTable
    from ..tracks.columns import match
    from .tables import open_table
    from .world import reading

    said = options.columns or {}
    released = {**said, "lat": f"{options.prefix}lat", "lon": f"{options.prefix}lon"}
    table = open_table(options.table, {**reading(options), "columns": released}, 1)
    number, user, ms, cell = _read(options, grid, released)
    at = np.flatnonzero(cell >= 0)
    if not at.size:
        raise InvalidTable(f"{options.table} has no released row on this map")
    truth = None
    try:
        match(table.columns, said, options.table, geometry=table.kind == "parquet")
    except InvalidTable:
        if {"lat", "lon"} & set(said):
            raise
    else:
        known, _, _, true = _read(options, grid, said)
        place = np.minimum(np.searchsorted(known, number[at]), max(0, len(known) - 1))
        truth = np.where(known[place] == number[at], true[place], -1).astype(np.int32) if len(known) else None
    return user[at], ms[at], cell[at], truth


def _run(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    import numpy as np

    from ..attacks import attack
    from ..errors import InvalidTable
    from . import world
    from .say import note, result
    from .steps import MAX_MISSING, lay_out
    from .tables import open_table

    model = world.open_model(options.mobility)
    world.agree(options, model, options.mobility)
    grid = world.grid_on(model)
    step_ms = world.step_of(options, model)
    names = open_table(options.table, {**world.reading(options), "columns": _placeless(options)}, 1).columns
    if f"{options.prefix}surrogate" not in names:
        how = "was not written by 'release'" if f"{options.prefix}cell" not in names else "was released one by one"
        raise InvalidTable(
            f"{options.table} {how} (no column {options.prefix}surrogate): release it with --mobility to attack it"
        )
    user, ms, cell, truth = read_released(options, grid)
    steps = lay_out(user, ms, step_ms, MAX_MISSING if options.max_missing is None else options.max_missing)
    count = len(steps.lengths)
    chosen = np.unique(np.linspace(0, count - 1, min(options.traces, count)).astype(np.int64))
    # a trace ends at the last column; with periods, at the last column of its time of day
    day = world.DAY_MS // step_ms if model.periods > 1 else 1
    behind = (day - 1 - steps.last[chosen] % day) % day
    behind -= behind.min()
    width = int((steps.lengths[chosen] + behind).max())
    where = np.flatnonzero(np.isin(steps.trace, chosen))
    row = np.searchsorted(chosen, steps.trace[where])
    column = width - (steps.lengths[chosen] + behind)[row] + steps.at[where]
    released = np.full((len(chosen), width), -1, np.int32)
    released[row, column] = cell[steps.rows[where]]
    true: Any = None
    if truth is not None:
        true = np.full((len(chosen), width), -1, np.int32)
        true[row, column] = truth[steps.rows[where]]
    periods = None
    if model.periods > 1:
        end = int(steps.last[chosen[0]] + behind[0])
        moment = ((end - width + 1 + np.arange(width)) * step_ms + int(model.notes.get("ahead_ms", 0))) % world.DAY_MS
        periods = moment * model.periods // world.DAY_MS
    releaser = world.make_releaser(options, world.make_policy(options, grid), model, 0)
    found = attack(releaser.observe(released, periods=periods), truth=true)
    table = found.table(confidence=options.confidence or 0.95)
    if count > len(chosen):
        note(f"{len(chosen):,} of {count:,} traces were attacked: --traces takes more")
    document = {**asdict(table), "traces": len(chosen), "of_traces": count, "truth": truth is not None}
    result(options.json, document, str(table))


def _placeless(options: argparse.Namespace) -> dict[str, Any]:
    """Columns that need not be there are named by one that must be: only the header is looked at."""
    said = dict(options.columns or {})
    return {**said, "lat": f"{options.prefix}lat", "lon": f"{options.prefix}lon"}
