"""Tables of any kind, whole or in batches."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pglp_fast._util import validate as check
from pglp_fast._util.progress import Progress
from pglp_fast._util.times import zone_of
from pglp_fast.errors import InvalidParameter, InvalidTable

from .arrow import frame_batches
from .fix_batches import Batch, Reading, join, to_tracks
from .geo import GEO_ENDS
from .geolife import user_folders
from .parse import parse
from .table_batches import BATCH_ROWS, check_delimiter, open_batches, refuse_text_options
from .tracks import Tracks

_TEXT_ENDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")


def read_table(
    table: Any,
    *,
    columns: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    timezone: str = "UTC",
    time_format: str | None = None,
    decimal: str = ".",
    on_error: str = "raise",
    progress: bool = False,
) -> Tracks:
    """Fixes from a CSV or Parquet file, a folder of such files, or a table in memory.

    Parameters
    ----------
    table : path of a text file (any delimiter, gzipped or not), of a Parquet file, or of a folder
        of them, read in the order of their names; or a pandas DataFrame, GeoDataFrame, pyarrow
        table, or anything that speaks Arrow, such as polars
    columns : name (or number, from 0) of the column for "user", "time", "lat", "lon", and
        "trajectory", "venue", "category" if wanted; those not given are found by the names that
        mobility libraries use. None leaves an optional one out. In text files the time may be two
        columns, ("date", "clock")
    names : names of the columns of a text file that has no header line
    delimiter : of a text file; unless told, the one of comma, tab, semicolon and bar that the
        header has most of
    timezone : of times that do not say theirs, such as "Asia/Shanghai"
    time_format : how times that are text are written, as ``datetime.strptime`` has it, such as
        "%d.%m.%Y %H:%M"; each distinct text takes some 10 us
    decimal : "," where numbers that are text have a comma for a point
    on_error : a row that cannot be read (see Notes): "raise" an error that says which line, or
        "skip" it and report it
    progress : show a line with the rate and the time left on standard error

    Notes
    -----
    Malformed is a row with too few or too many fields or an unclosed quote, without a user, or
    whose time or place is written but is none. A time or place that is not there at all (empty,
    NaN, null) is read as NaT or NaN; ``clean`` leaves those out. Times: ISO 8601 (with "T" or a
    space, "-" or "/", a zone or none), "Tue Apr 03 18:17:18 +0000 2012", or a number since 1970,
    whose size says whether it counts seconds, ms, us or ns. Kept to the millisecond.

    A file that is not what its name says (Parquet that is none, an archive, bytes that are no text)
    is refused, and so is a line of more than 1 MiB, unzipped: memory is bounded by the rows that
    are kept. Points of GeoParquet must be in degrees. Needs pyarrow (``pglp-fast[tables]``)."""
    total = sum(os.path.getsize(path) for path in _files(table)) if _is_path(table) else 0
    bar = Progress(total, "bytes", shown=progress and total > 0)
    reading = reading_of(on_error, timezone, time_format, decimal)
    reading.advance = bar.advance
    tracks = join(_batches(table, columns, names, delimiter, reading, BATCH_ROWS), reading)
    bar.close()
    return tracks


def iter_table(
    table: Any,
    *,
    batch_rows: int = BATCH_ROWS,
    columns: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    timezone: str = "UTC",
    time_format: str | None = None,
    decimal: str = ".",
    on_error: str = "raise",
) -> Iterator[Tracks]:
    """The same as ``read_table``, in batches of at most ``batch_rows`` rows.

    Memory does not grow with the table, but for its labels. A user keeps its code from batch to
    batch. Each batch has its own report, and ``number``: the line of each row."""
    check.whole(batch_rows, "batch_rows", 1)
    reading = reading_of(on_error, timezone, time_format, decimal)
    batches = _batches(table, columns, names, delimiter, reading, batch_rows)
    return (to_tracks(batch, reading) for batch in batches)


def reading_of(
    on_error: str, timezone: str, time_format: str | None = None, decimal: str = "."
) -> Reading:
    """How rows are read, checked."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    check_forms(timezone, time_format, decimal)
    return Reading(on_error, timezone, time_format, decimal)


def check_forms(timezone: str, time_format: str | None, decimal: str) -> None:
    """Refuse forms of times and numbers that there are not."""
    zone_of(timezone)
    check.choice(decimal, "decimal", (".", ","))
    if time_format is not None and (not isinstance(time_format, str) or "%" not in time_format):
        raise InvalidParameter(
            "time_format must be as datetime.strptime takes it, such as '%d.%m.%Y %H:%M', got "
            f"{time_format!r}"
        )


def _is_path(table: Any) -> bool:
    return isinstance(table, str | os.PathLike)


def _files(path: str | os.PathLike[str]) -> list[Path]:
    """The file, or the tables of a folder by name."""
    at = Path(path)
    if not at.exists():
        raise InvalidTable(f"{at} is not there")
    if not at.is_dir():
        return [at]
    found = sorted(
        f
        for f in at.iterdir()
        if f.name.lower().endswith((".parquet", *GEO_ENDS, *_TEXT_ENDS)) and f.name[0] not in "._"
    )
    found = found or user_folders(at)  # of Geolife
    if not found:
        raise InvalidTable(
            f"{at} holds no tables (.parquet, {', '.join(_TEXT_ENDS)}), nor the folders "
            "<user>/Trajectory of Geolife"
        )
    return found


def _batches(
    table: Any,
    columns: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    delimiter: str | None,
    reading: Reading,
    rows: int,
) -> Iterator[Batch]:
    check_delimiter(delimiter)

    def of_file(path: Path) -> Iterator[Batch]:
        with open_batches(
            path,
            columns=columns,
            names=names,
            delimiter=delimiter,
            rows=rows,
            every_column=False,
            typed=reading.time_format is None and reading.decimal == ".",
            advance=reading.advance,
        ) as opened:
            for raw in opened:
                yield opened.parse(raw, reading)

    if _is_path(table):
        return chain.from_iterable(map(of_file, _files(table)))
    name = type(table).__name__
    refuse_text_options(f"this is a {name}", names, delimiter)
    return (parse(raw, name, reading) for raw in frame_batches(table, columns, rows))
