"""A batch of rows as it comes out of a file, and how batches become one table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import Growing
from pglp_fast.errors import InvalidTable

from .columns import OPTIONAL
from .labels import Coded, Labeller
from .reading_report import MALFORMED, SHOWN, Malformed, Report
from .tracks import Tracks


@dataclass
class Reading:
    """What lasts from batch to batch, and from file to file: the labels known, and what to do
    about malformed rows."""

    on_error: str
    timezone: str
    time_format: str | None = None
    decimal: str = "."
    advance: Callable[[int], None] = lambda n: None  # told of bytes done
    labellers: dict[str, Labeller] = field(default_factory=dict)

    def labeller(self, role: str, kind: str, source: str) -> Labeller:
        known = self.labellers.setdefault(role, Labeller(kind))
        if known.kind != kind:
            raise InvalidTable(
                f"{source}: the {role} is {kind}, and {known.kind} in the files before: make them "
                "alike"
            )
        return known


class RawBatch(NamedTuple):
    """Rows of a table as they stand in it.

    Attributes
    ----------
    rows : pyarrow.RecordBatch. Of text tables, all columns are text, as it stands between the
        delimiters with its quotes undone; a broken line is a row that has the line's text in the
        first column, and nothing in the others
    columns : the Arrow column for each role
    first : number of the first row, from 0
    numbers : line of each row, from 1; None where rows have no lines
    broken : why rows are no rows (by their place in the batch), such as "3 fields where 4 are due"
    place : file and line by the number of a row, where rows are of many files
    """

    rows: Any
    columns: dict[str, Any]
    first: int
    numbers: NDArray[np.int64] | None = None
    broken: Mapping[int, str] = MappingProxyType({})
    place: Callable[[int], tuple[str, int]] | None = None

    def parts(self, rows: int) -> Iterator["RawBatch"]:
        """At most ``rows`` rows at a time."""
        n = len(self.rows)
        for start in range(0, n, rows):
            stop = min(n, start + rows)
            yield RawBatch(
                self.rows.slice(start, rows),
                {role: column.slice(start, rows) for role, column in self.columns.items()},
                self.first + start,
                None if self.numbers is None else self.numbers[start:stop],
                {row - start: why for row, why in self.broken.items() if start <= row < stop},
                self.place,
            )


@dataclass(frozen=True)
class Batch:
    """Rows that could be read, column by column, and a note of those that could not.

    ``rows`` counts both, ``at`` tells which of them could; ``malformed`` names at most the first
    100 of the others.
    """

    codes: dict[str, NDArray[np.int32]]
    numbers: dict[str, NDArray[np.float64]]
    time: NDArray[np.int64]
    number: NDArray[np.int64]
    at: NDArray[np.int64]
    rows: int
    malformed: list[Malformed]


def settle(
    reading: Reading,
    bad: NDArray[np.bool_],
    why: Callable[[int], Malformed],
) -> list[Malformed]:
    """Raise for the first malformed row, or name the first few, as the user chose."""
    rows = np.flatnonzero(bad)
    if rows.size and reading.on_error == "raise":
        raise InvalidTable(
            f"{why(int(rows[0]))}; on_error='skip' leaves such rows out and reports them"
        )
    return [why(int(row)) for row in rows[:SHOWN]]


def to_tracks(batch: Batch, reading: Reading) -> Tracks:
    """One batch as a table, with the numbers of its rows."""
    return replace(join([batch], reading), number=batch.number)


def join(batches: Iterable[Batch], reading: Reading) -> Tracks:
    """All batches as one table."""
    # a list of parts, joined at the end, would leave the heap full of holes that the system never
    # gets back: twice the memory
    columns = {
        "user": Growing(np.int32),
        "time": Growing(np.int64),
        "lat": Growing(np.float64),
        "lon": Growing(np.float64),
    }
    rows, n, malformed = 0, 0, list[Malformed]()
    for batch in batches:
        more = len(batch.time)
        for role in OPTIONAL:  # a file of a folder may lack a column that others have
            if role in batch.codes and role not in columns:
                columns[role] = Growing(np.int32)
                columns[role].extend(np.full(n, -1, np.int32))
            if role in columns:
                columns[role].extend(
                    batch.codes[role] if role in batch.codes else np.full(more, -1, np.int32)
                )
        columns["user"].extend(batch.codes["user"])
        columns["time"].extend(batch.time)
        columns["lat"].extend(batch.numbers["lat"])
        columns["lon"].extend(batch.numbers["lon"])
        n += more
        rows += batch.rows
        malformed += batch.malformed[: SHOWN - len(malformed)]

    def coded(role: str) -> Coded:
        return Coded(columns[role].array, reading.labellers.get(role) or Labeller("text"))

    further = {role: coded(role) for role in OPTIONAL if role in columns}
    time = columns["time"].array.view("datetime64[ms]")
    report = Report(rows, malformed=tuple(malformed)).then(MALFORMED, rows - n)
    return Tracks(coded("user"), time, columns["lat"].array, columns["lon"].array, further, report)
