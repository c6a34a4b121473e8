"""Where rows come from: files one after the other, or a table in memory, in batches.

A source can be read more than once. Rows are numbered through all of it."""

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidParameter, InvalidTable
from pglp_fast.io import Malformed, Tracks
from pglp_fast.io.fix_batches import RawBatch, Reading, to_tracks
from pglp_fast.io.geo import GEO_ENDS
from pglp_fast.io.geolife import files_of, user_folders
from pglp_fast.io.parse import is_text, parse
from pglp_fast.io.table_batches import open_batches

from .plan import Plan

parquet = Later("pyarrow.parquet")
_ROW_BYTES = 40  # of a row of text, about
BATCH_ROWS = 1 << 17
_ENDS = (".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", *GEO_ENDS)


class Batch(NamedTuple):
    """Some rows of a source.

    Attributes
    ----------
    source : name of the file
    first : number of the first row, in the whole source
    rows : how many, those that cannot be read included
    tracks : those that can be read
    at : which of the rows these are
    raw : all of them, as they stand in the file (pyarrow.RecordBatch)
    malformed : the first of those that cannot be read, and why
    """

    source: str
    first: int
    rows: int
    tracks: Tracks
    at: NDArray[np.int64]
    raw: Any
    malformed: tuple[Malformed, ...]

    def label(self, row: int) -> str:
        """The person of a row that can be read, by its place in the batch."""
        return str(self.tracks.user.values()[np.searchsorted(self.at, row)])


class FileSource:
    """A file of rows, as a plan reads it.

    Attributes
    ----------
    path : Path
    kind : "text", "parquet", "geo" or "geolife"
    columns : names of its columns
    at : number of the column for each role
    schema : pyarrow.Schema
    delimiter, ending : between the fields and the rows of a text file
    header : whether a text file has a line of names
    points : whether places are points of a geographic format
    size : bytes
    """

    def __init__(self, path: Path, plan: Plan, rows: int = BATCH_ROWS):
        self.path, self._plan, self._rows = path, plan, rows
        self.size = max(1, sum(part.stat().st_size for part in parts_of(path)))
        with self._open(lambda n: None) as table:
            self.kind, self.delimiter = table.kind, table.delimiter
            self.columns, self.at, self.schema = table.columns, table.at, table.schema
        self.ending = _line_end(path) if self.kind == "text" else ""
        self.header = plan.names is None
        self.points = are_points(self.schema, self.at)

    def _open(self, advance: Callable[[int], None], groups: range | None = None) -> Any:
        plan = self._plan
        return open_batches(
            self.path,
            columns=plan.columns,
            names=plan.names,
            delimiter=plan.delimiter,
            rows=self._rows,
            advance=advance,
            groups=groups,
        )

    def batches(
        self, first: int, advance: Callable[[int], None], groups: range | None = None
    ) -> Iterator[Batch]:
        """All rows, in order, or those of some row groups; they are numbered from ``first``."""
        reading = reading_of(self._plan)
        with self._open(advance, groups) as table:
            for raw in table:
                yield batch_of(raw, table.name, reading, first)

    def raw(self, advance: Callable[[int], None]) -> Iterator[RawBatch]:
        """All rows as they stand in the file."""
        with self._open(advance) as table:
            yield from table

    def groups(self, rows: int) -> list[range | None]:
        """Ranges of row groups that have at least so many rows, to be read one by one; of a text
        file, the whole."""
        if self.kind != "parquet":
            return [None]
        facts, found, first, n = parquet.read_metadata(self.path), [], 0, 0
        for k in range(facts.num_row_groups):
            n += facts.row_group(k).num_rows
            if n >= rows or k == facts.num_row_groups - 1:
                found.append(range(first, k + 1))
                first, n = k + 1, 0
        return [*found]

    @property
    def about(self) -> int:
        """How many rows there are, about."""
        if self.kind != "parquet":
            return self.size // _ROW_BYTES
        return int(parquet.read_metadata(self.path).num_rows)


def are_points(schema: Any, at: dict[str, int]) -> bool:
    """Whether a table's places are points of a geographic format, not text."""
    return "geometry" in at and not is_text(schema.field(at["geometry"]).type)


def parts_of(path: Path) -> list[Path]:
    """The files of a source: itself, or those of a Geolife user's folder."""
    labels = path / "labels.txt"
    return [*files_of(path), *([labels] if labels.exists() else [])] if path.is_dir() else [path]


def _line_end(path: Path) -> str:
    """How the first line of a text file ends."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as file:
        return "\r\n" if file.readline(1 << 20).endswith(b"\r\n") else "\n"


def batch_of(raw: RawBatch, source: str, reading: Reading, first: int = 0) -> Batch:
    """Rows and what is read from them, numbered from ``first`` on."""
    read = parse(raw, source, reading)
    tracks = to_tracks(read, reading)
    malformed = tracks.report.malformed
    return Batch(source, first + raw.first, len(raw.rows), tracks, read.at, raw.rows, malformed)


def reading_of(plan: Plan) -> Reading:
    """How a plan's tables are read: rows that cannot be are kept, and told of."""
    return Reading("skip", plan.timezone, plan.time_format, plan.decimal)


def files_at(source: Any) -> tuple[list[Path], bool]:
    """(files of a path, a folder, a pattern or a list of paths; whether they are many)."""
    if isinstance(source, Sequence) and not isinstance(source, str):
        paths, many = [Path(p) for p in source], True
        if not paths:
            raise InvalidTable("the list of files is empty: there is nothing to release")
    elif not isinstance(source, str | os.PathLike):
        raise InvalidParameter(
            f"a source is a path, a folder, a pattern or a list of paths, not "
            f"{type(source).__name__}: use release_table for tables in memory"
        )
    elif Path(source).is_dir():
        users = user_folders(source)
        if users:
            return users, True
        found = sorted(Path(source).iterdir())
        paths = [p for p in found if p.name.lower().endswith(_ENDS) and p.name[0] not in "._"]
        many = True
        if not paths:
            raise InvalidTable(
                f"{source} holds no tables ({', '.join(_ENDS)}), nor <user>/Trajectory/*.plt files"
            )
    elif not Path(source).exists() and any(sign in os.fspath(source) for sign in "*?["):
        paths, many = sorted(map(Path, glob(os.fspath(source)))), True
        if not paths:
            raise InvalidTable(f"{source} matches no file")
    else:
        paths, many = [Path(source)], False
    for path in paths:
        if os.fspath(path) == "-":
            raise InvalidTable(
                "- is standard input, and a file is needed: it is read more than once. Save it "
                "and name the file"
            )
        if not path.exists():
            raise InvalidTable(f"{path} is not there")
    return paths, many
