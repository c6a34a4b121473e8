"""Files of rows in batches: the rows as they stand in the file, and the fixes read from them.

Both come from one reading, so that row k of a raw batch is row k of what was parsed from it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pglp_fast._util import validate as check
from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidParameter, InvalidTable, PGLPError

from .arrow import ParquetTable
from .fix_batches import Batch, RawBatch, Reading
from .geo import GEO_ENDS, GeoTable
from .geolife_table import GeolifeTable
from .parse import parse
from .text import Layout, layout_of, read_text
from .text_lines import Source

pa = Later("pyarrow")

BATCH_ROWS = 1 << 17


class TextTable:
    """The rows of a text file."""

    kind = "text"

    def __init__(self, source: Source, layout: Layout):
        self._source, self._layout, self.close = source, layout, source.close
        self.name, self.delimiter = source.name, layout.delimiter
        self.columns, self.at = list(layout.columns), dict(layout.at)
        self.schema = pa.schema([(name, pa.string()) for name in self.columns])

    def batches(self, rows: int) -> Iterator[RawBatch]:
        return read_text(self._source, self._layout, rows)


class TableBatches:
    """An open file of rows. Iterate over it once, for a ``RawBatch`` at a time.

    Attributes
    ----------
    name : of the file, without its folder
    kind : "text", "parquet", "geo" or "geolife"
    delimiter : between the fields of a text file, "" for others
    columns : names of all columns of the file
    schema : pyarrow.Schema of all columns; those of a text file are strings
    at : number of the column for each role: user, time, (clock,) lat and lon or geometry, and
        those of trajectory, venue, category that there are
    """

    def __init__(self, table: TextTable | ParquetTable | GeoTable | GeolifeTable, rows: int):
        self._table, self._rows = table, rows
        self.name, self.kind, self.delimiter = table.name, table.kind, table.delimiter
        self.columns, self.schema, self.at = table.columns, table.schema, table.at

    def __iter__(self) -> Iterator[RawBatch]:
        return self._table.batches(self._rows)

    def parse(self, raw: RawBatch, reading: Reading) -> Batch:
        """The rows that can be read, and which these are."""
        return parse(raw, self.name, reading)

    def close(self) -> None:
        self._table.close()

    def __enter__(self) -> "TableBatches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_batches(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    rows: int = BATCH_ROWS,
    every_column: bool = True,
    typed: bool = True,
    advance: Callable[[int], None] = lambda n: None,
    groups: range | None = None,
) -> TableBatches:
    """Open a text or Parquet file, told apart by its first bytes, one that GDAL reads, or the
    folder of a Geolife user.

    Parameters
    ----------
    columns, names, delimiter : as for ``read_table``
    rows : at most so many in a batch
    every_column : raw batches have all columns, or only those that have a role
    typed : numbers and times of text may be read on the way, as Arrow knows them
    advance : told of bytes that were read
    groups : row groups of a Parquet file; all, unless given
    """
    check.whole(rows, "rows", 1)
    check_delimiter(delimiter)
    name = os.path.basename(path)
    if os.path.isdir(path):
        for option, value in (("columns", columns), ("names", names), ("delimiter", delimiter)):
            if value is not None:
                raise InvalidParameter(f"{option} is for tables, and {name} is a Geolife folder")
        return TableBatches(GeolifeTable(Path(path), advance), rows)
    try:
        with open(path, "rb") as file:
            is_parquet = file.read(4) == b"PAR1"
    except OSError as error:
        raise InvalidTable(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
    if is_parquet:
        refuse_text_options(f"{name} is Parquet", names, delimiter)
        return TableBatches(
            ParquetTable(path, columns, every_column=every_column, advance=advance, groups=groups),
            rows,
        )
    if name.lower().endswith(GEO_ENDS):
        refuse_text_options(f"{name} is none", names, delimiter)
        return TableBatches(
            GeoTable(path, columns, every_column=every_column, advance=advance), rows
        )
    if name.lower().endswith((".parquet", ".pq")):
        raise InvalidTable(
            f"{name} is not Parquet, which starts with the letters PAR1: if it is a text table, "
            "rename it to .csv"
        )
    source = Source(path, advance)
    try:
        layout = layout_of(
            source, columns, names, delimiter, every_column=every_column, typed=typed
        )
        return TableBatches(TextTable(source, layout), rows)
    except PGLPError:
        source.close()
        raise


def check_delimiter(delimiter: str | None) -> None:
    """One ASCII character, or none."""
    sound = delimiter is None or (
        isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    )
    if not sound or delimiter in ('"', "\n", "\r", "."):
        raise InvalidParameter(
            "delimiter must be one ASCII character that no number or line end has, got "
            f"{delimiter!r}"
        )


def refuse_text_options(what: str, names: Any, delimiter: Any) -> None:
    """An error where options for text files are given for something else."""
    for option, value in (("names", names), ("delimiter", delimiter)):
        if value is not None:
            raise InvalidParameter(f"{option} is for text files, and {what}")
