"""A table that ``release`` wrote, read back: rows, or the traces that its users' rows make."""

import argparse
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.io.columns import match
from pglp_fast.io.table_batches import TableBatches, open_batches
from pglp_fast.pipeline.steps import lay_out
from pglp_fast.pipeline.table_facts import check_facts, released_facts

from .plans import reading
from .terminal import note

UNCHECKED = "does not say how it was released: what follows holds if it was with these very options"


class Rows(NamedTuple):
    """Rows that were released: user (a code), time in ms, released cell, true cell where the
    table still has it; users' names; policy and epsilon, where they differ."""

    user: NDArray[np.int32]
    ms: NDArray[np.int64]
    cell: NDArray[np.int32]
    truth: NDArray[np.int32] | None
    labels: list[str]
    chosen: dict[str, Any]


class Traces(NamedTuple):
    """Released and true cells and times of persons, event by event; who they are; of how many;
    policy and epsilon of each event, where they differ."""

    events: pf.Events
    times: NDArray[np.datetime64]
    truth: NDArray[np.int32] | None
    labels: list[str]
    of: int
    chosen: dict[str, Any]


def check_options(table: str, plan: pf.Plan) -> dict[str, Any] | None:
    """Refuse options that a released table contradicts; returns what it says about itself: None,
    and said, if that is nothing. That it was seeded is said, too."""
    facts = released_facts(table)
    if facts is None:
        note(f"{table} {UNCHECKED}")
        return None
    check_facts(table, facts, plan)
    if facts.get("seeded"):
        note(f"{table} was released with a seed: whoever knows it can subtract the noise")
    return facts


def sample_in_words(some: int, of: int) -> str | None:
    """That only some persons are counted; None where all are."""
    if some == of:
        return None
    return f"{some:,} of {of:,} persons, evenly picked; nothing here is about the others"


def _released(options: argparse.Namespace) -> dict[str, Any]:
    """The columns of the roles, with released places."""
    places = {role: f"{options.prefix}{role}" for role in ("lat", "lon")}
    return {**(options.columns or {}), **places}


def _open(options: argparse.Namespace, columns: dict[str, Any]) -> TableBatches:
    """The table; an error if a column that is needed is not there."""
    return open_batches(
        options.table, columns=columns, names=options.names, delimiter=options.delimiter
    )


def has_columns(options: argparse.Namespace, wanted: list[str]) -> bool:
    """Whether the table has all these columns."""
    try:
        table = _open(options, options.columns or {})
    except pf.InvalidTable:  # a released table may have no other places
        places = dict(zip(("lat", "lon"), wanted, strict=True))
        table = _open(options, {**(options.columns or {}), **places})
    with table:
        return set(wanted) <= set(table.columns)


def _read(
    options: argparse.Namespace,
    grid: pf.Grid,
    columns: dict[str, Any],
    cell_column: str | None = None,
) -> tuple[Any, Any, Any, Any, list[str]]:
    """(number, user, time in ms, cell, names of users) of all rows that can be read, whose
    ``cell_column`` must say the same."""
    kinds = (np.int64, np.int32, np.int64, np.int32)
    parts, labels = [tuple(np.empty(0, kind) for kind in kinds)], []
    if cell_column is not None:
        columns = {**columns, "venue": cell_column}
    for tracks in pf.iter_table(
        options.table, on_error="skip", **{**reading(options), "columns": columns}
    ):
        assert tracks.number is not None
        cells = np.where(np.isnat(tracks.time), -1, grid.locate(tracks.lat, tracks.lon)).astype(
            np.int32
        )
        if cell_column is not None and "venue" in tracks.columns and len(tracks):
            said = tracks.columns["venue"].values().astype(str)
            off = np.flatnonzero((cells >= 0) & (said != cells.astype(str)))
            if off.size:
                raise pf.InvalidParameter(
                    f"{options.table} has {cell_column} {said[off[0]]} where this map has cell "
                    f"{cells[off[0]]}: give the map that it was released on"
                )
        parts.append((tracks.number, tracks.user.codes, tracks.ms, cells))
        labels = [str(label) for label in tracks.users.tolist()]
    number, user, ms, cell = (np.concatenate(column) for column in zip(*parts, strict=True))
    return number, user, ms, cell, labels


def read_rows(options: argparse.Namespace, grid: pf.Grid) -> Rows:
    """The rows of a released table that were released."""
    said, released = options.columns or {}, _released(options)
    with _open(options, released) as table:
        names, kind = table.columns, table.kind
    cell_column = f"{options.prefix}cell" if f"{options.prefix}cell" in names else None
    number, user, ms, cell, labels = _read(options, grid, released, cell_column)
    at = np.flatnonzero(cell >= 0)
    if not at.size:
        raise pf.InvalidTable(f"{options.table} has no released row on this map")
    truth = None
    try:
        match(names, said, options.table, geometry=kind == "parquet")
    except pf.InvalidTable:
        if {"lat", "lon"} & set(said):
            raise
    else:
        known, _, _, true, _ = _read(options, grid, said)
        place_of = np.minimum(np.searchsorted(known, number[at]), max(0, len(known) - 1))
        truth = (
            np.where(known[place_of] == number[at], true[place_of], -1).astype(np.int32)
            if len(known)
            else None
        )
    return Rows(user[at], ms[at], cell[at], truth, labels, _chosen(options, names, number[at]))


def _chosen(
    options: argparse.Namespace, names: list[str], number: NDArray[np.int64]
) -> dict[str, Any]:
    """Policies and epsilons of some rows, as the released table tells them."""
    wanted = {name: f"{options.prefix}{name}" for name in ("policy", "epsilon")}
    wanted = {name: column for name, column in wanted.items() if column in names}
    if not wanted:
        return {}
    parts: dict[str, list[Any]] = {name: [] for name in wanted}
    lines: list[NDArray[np.int64]] = []
    with _open(options, _released(options)) as table:
        for raw in table:
            rows = np.arange(raw.first, raw.first + len(raw.rows))
            lines.append(rows if raw.numbers is None else raw.numbers)
            for name, column in wanted.items():
                parts[name] += raw.rows.column(column).to_pylist()
    at = np.searchsorted(np.concatenate(lines), number)
    found = {name: np.array(values, object)[at] for name, values in parts.items()}
    try:
        return {k: v.astype(float) if k == "epsilon" else v.astype(str) for k, v in found.items()}
    except (TypeError, ValueError):
        raise pf.InvalidTable(
            f"{options.table}: {wanted['epsilon']} must be numbers where a place was released"
        ) from None


def evenly(n: int, most: int) -> NDArray[np.int64]:
    """At most so many of the numbers 0..n-1, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))


def read_traces(options: argparse.Namespace, plan: pf.Plan) -> Traces:
    """One trace for each person of a table that was released with --mobility, at most
    ``--traces`` of them, evenly picked; steps without a row are silence."""
    step_ms = plan.step_ms
    _need_traces(options)
    rows = read_rows(options, plan.map)
    steps = lay_out(rows.user, rows.ms, step_ms, None)
    persons = np.unique(rows.user)
    chosen = persons[evenly(len(persons), options.traces)]
    at = np.isin(rows.user[steps.rows], chosen)
    which = steps.rows[at]
    events = pf.Events(rows.user[which], steps.step[at], rows.cell[which])
    if len(chosen) < len(persons):
        note(f"{len(chosen):,} of {len(persons):,} persons are counted: --traces takes more")
    return Traces(
        events,
        rows.ms[which].astype("datetime64[ms]").astype("datetime64[s]"),
        None if rows.truth is None else rows.truth[which],
        [rows.labels[code] for code in chosen.tolist()],
        len(persons),
        {name: values[which] for name, values in rows.chosen.items()},
    )


def _need_traces(options: argparse.Namespace) -> None:
    """An error unless the table was released with --mobility."""
    with _open(options, _released(options)) as table:
        names = table.columns
    if f"{options.prefix}exposed" in names:
        return
    how = (
        "was not written by 'release'"
        if f"{options.prefix}cell" not in names
        else "was released one by one"
    )
    raise pf.InvalidTable(
        f"{options.table} {how} (no column {options.prefix}exposed): release it with --mobility to "
        f"{options.command} it"
    )
