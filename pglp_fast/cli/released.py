"""A table that ``release`` wrote, read back: rows, or the traces that its users' rows make."""

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..locations import Grid
    from ..mobility import MobilityModel


class Rows(NamedTuple):
    """Rows that were released: user (a code), time in ms, released cell, true cell where the table still has it; users' names."""

    user: "NDArray[np.int32]"
    ms: "NDArray[np.int64]"
    cell: "NDArray[np.int32]"
    truth: "NDArray[np.int32] | None"
    labels: list[str]


class Laid(NamedTuple):
    """Traces (traces, T) of released and true cells, -1 where there is none, periods of the steps, whose each is, and of how
    many traces they were chosen."""

    released: "NDArray[np.int32]"
    truth: "NDArray[np.int32] | None"
    periods: "NDArray[np.int64] | None"
    labels: list[str]
    of: int


def check_options(options: argparse.Namespace, grid: "Grid", facts: dict[str, Any] | None) -> None:
    """Refuse options that a released table contradicts; a text table cannot, and that is said."""
    from ..errors import InvalidParameter
    from . import world
    from .say import note

    if facts is None:
        note(f"{options.table} does not say how it was released: what follows holds if it was with these very options")
        return
    told = {name: getattr(options, name) for name in ("epsilon", "policy", "mechanism", "calibration", "remap")}
    for name, value in told.items():
        if facts.get(name) != value:
            raise InvalidParameter(f"{options.table} was released with --{name} {facts.get(name)}, not {value}")
    if facts.get("map") != grid.to_dict():
        raise InvalidParameter(f"{options.table} was released on another map: give --bounds and --cell-km, or the model, of that")
    if facts.get("mobility") != (world.file_digest(options.mobility) if options.mobility else None):
        raise InvalidParameter(f"{options.table} was released with another --mobility model, or with none")


def _read(
    options: argparse.Namespace, grid: "Grid", columns: dict[str, Any], cell_column: str | None = None
) -> tuple[Any, Any, Any, Any, list[str]]:
    """(number, user, time in ms, cell, names of users) of all rows that can be read, whose ``cell_column`` must say the same."""
    import numpy as np

    from ..errors import InvalidParameter
    from ..tracks import iter_table
    from .world import reading

    parts, labels = [], []
    if cell_column is not None:
        columns = {**columns, "venue": cell_column}
    for tracks in iter_table(options.table, on_error="skip", **{**reading(options), "columns": columns}):
        assert tracks.number is not None
        cells = np.where(np.isnat(tracks.time), -1, grid.locate(tracks.lat, tracks.lon)).astype(np.int32)
        if cell_column is not None and "venue" in tracks.columns and len(tracks):
            said = tracks.columns["venue"].values().astype(str)
            off = np.flatnonzero((cells >= 0) & (said != cells.astype(str)))
            if off.size:
                raise InvalidParameter(
                    f"{options.table} has {cell_column} {said[off[0]]} where this map has cell {cells[off[0]]}: give the map "
                    "that it was released on"
                )
        parts.append((tracks.number, tracks.user.codes, tracks.ms, cells))
        labels = [str(label) for label in tracks.users.tolist()]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32), labels
    number, user, ms, cell = (np.concatenate(column) for column in zip(*parts, strict=True))
    return number, user, ms, cell, labels


def read_rows(options: argparse.Namespace, grid: "Grid") -> Rows:
    """The rows of a released table that were released."""
    import numpy as np

    from ..errors import InvalidTable
    from ..tracks.columns import match
    from .tables import open_table
    from .world import reading

    said = options.columns or {}
    released = {**said, "lat": f"{options.prefix}lat", "lon": f"{options.prefix}lon"}
    table = open_table(options.table, {**reading(options), "columns": released}, 1)
    if hasattr(options, "epsilon") and options.epsilon is not None:
        check_options(options, grid, table.facts())
    cell_column = f"{options.prefix}cell" if f"{options.prefix}cell" in table.columns else None
    number, user, ms, cell, labels = _read(options, grid, released, cell_column)
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
        known, _, _, true, _ = _read(options, grid, said)
        place = np.minimum(np.searchsorted(known, number[at]), max(0, len(known) - 1))
        truth = np.where(known[place] == number[at], true[place], -1).astype(np.int32) if len(known) else None
    return Rows(user[at], ms[at], cell[at], truth, labels)


def lay_out_traces(options: argparse.Namespace, model: "MobilityModel", grid: "Grid", most: int) -> Laid:
    """The traces of a table that was released with --mobility, at most so many, evenly picked."""
    import numpy as np

    from ..errors import InvalidTable
    from . import world
    from .steps import MAX_MISSING, lay_out
    from .tables import open_table

    step_ms = world.step_of(options, model)
    placed = {**(options.columns or {}), "lat": f"{options.prefix}lat", "lon": f"{options.prefix}lon"}
    names = open_table(options.table, {**world.reading(options), "columns": placed}, 1).columns
    if f"{options.prefix}exposed" not in names:
        how = "was not written by 'release'" if f"{options.prefix}cell" not in names else "was released one by one"
        raise InvalidTable(
            f"{options.table} {how} (no column {options.prefix}exposed): release it with --mobility to {options.command} it"
        )
    rows = read_rows(options, grid)
    steps = lay_out(rows.user, rows.ms, step_ms, MAX_MISSING if options.max_missing is None else options.max_missing)
    count = len(steps.lengths)
    chosen = np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.int64))
    # a trace ends at the last column; with periods, at the last column of its time of day
    day = world.DAY_MS // step_ms if model.periods > 1 else 1
    behind = (day - 1 - steps.last[chosen] % day) % day
    behind -= behind.min()
    width = int((steps.lengths[chosen] + behind).max())
    where = np.flatnonzero(np.isin(steps.trace, chosen))
    row = np.searchsorted(chosen, steps.trace[where])
    column = width - (steps.lengths[chosen] + behind)[row] + steps.at[where]

    def laid(cells: Any) -> Any:
        out = np.full((len(chosen), width), -1, np.int32)
        out[row, column] = cells[steps.rows[where]]
        return out

    periods = None
    if model.periods > 1:
        end = int(steps.last[chosen[0]] + behind[0])
        moment = ((end - width + 1 + np.arange(width)) * step_ms + int(model.notes.get("ahead_ms", 0))) % world.DAY_MS
        periods = moment * model.periods // world.DAY_MS
    whose = np.empty(len(chosen), np.int64)
    whose[row] = rows.user[steps.rows[where]]
    truth = None if rows.truth is None else laid(rows.truth)
    return Laid(laid(rows.cell), truth, periods, [rows.labels[code] for code in whose.tolist()], count)
