"""Tables that come out as they went in, with columns added: the same rows, in the same order, byte for byte or type for type.

A table is read twice side by side: parsed (``iter_table``), and raw, as what is to be written again. Memory holds one batch.
"""

import csv
import gzip
import json
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import lines as kernels
from ..errors import InvalidParameter, InvalidTable
from ..locations import Grid
from ..tracks import Malformed, Tracks, iter_table
from ..tracks.columns import match, place_columns
from ..tracks.optional import need

STATUSES = ("alone", "step", "repeat", "outside", "missing", "budget", "malformed")
ALONE, STEP, REPEAT, OUTSIDE, MISSING, BUDGET, MALFORMED = range(len(STATUSES))
SURROGATE, EXPOSED = 1, 2  # bits
_BLOCK = 1 << 22
_LONGEST = 1 << 24


class Batch(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    first : number of the first, counted from 0
    rows : how many, those that cannot be read included
    tracks : those that can be read
    at : which of the rows these are
    raw : all of them, as they will be written
    malformed : the first of those that cannot be read, and why
    """

    first: int
    rows: int
    tracks: Tracks
    at: NDArray[np.int64]
    raw: Any
    malformed: tuple[Malformed, ...]


@dataclass(frozen=True)
class Added:
    """What a release adds to each row of a batch."""

    cells: NDArray[np.int32]  # -1 for none
    status: NDArray[np.uint8]
    flags: NDArray[np.uint8] | None  # surrogate and exposed; None for rows released one by one


class Table(ABC):
    """A file of rows."""

    columns: list[str]  # of the file
    places: list[int]  # which of them say where somebody truly was
    kind: str

    def __init__(self, path: str, reading: dict[str, Any], rows: int):
        self.path, self.reading, self.batch_rows = path, reading, rows
        self.size = max(1, os.path.getsize(path))

    def batches(self) -> Iterator[Batch]:
        """All rows, in order."""
        first = 0
        raw = self._raw()
        try:
            next(raw)
            for tracks in iter_table(self.path, batch_rows=self.batch_rows, on_error="skip", **self.reading):
                rows = tracks.report.rows
                payload, numbers = raw.send(rows)
                assert tracks.number is not None
                at = np.arange(rows) if len(tracks) == rows else np.searchsorted(numbers, tracks.number)
                yield Batch(first, rows, tracks, at, payload, tracks.report.malformed)
                first += rows
        finally:
            raw.close()

    @abstractmethod
    def _raw(self) -> Any:
        """A generator: sent n, it gives (the next n rows raw, their numbers as ``Tracks.number`` has them)."""

    @property
    @abstractmethod
    def done(self) -> float:
        """Share of the file that has been read."""

    def facts(self) -> dict[str, Any] | None:
        """What a released table says about itself, if it can."""
        return None

    @abstractmethod
    def writer(self, path: Path, out: Path, at: int, names: list[str], grid: Grid, facts: dict[str, Any], drop: bool) -> "Writer":
        """Writes rows to ``path``, which will be ``out``; ``at`` bytes of it are there already."""


class Writer(ABC):
    """Writes batches with what was added. ``position``: bytes that are safely there."""

    position: int

    @abstractmethod
    def write(self, batch: Batch, added: Added) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def open_table(path: str, reading: dict[str, Any], rows: int) -> Table:
    """A text or Parquet file, by its first bytes."""
    at = Path(path)
    if path == "-":
        raise InvalidTable("- is standard input, and a file is needed: it is read more than once. Save it and name the file")
    if not at.exists():
        raise InvalidTable(f"{path} is not there")
    if at.is_dir():
        raise InvalidTable(f"{path} is a folder: release one file at a time (.csv, .csv.gz, .parquet)")
    with at.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    return ParquetTable(path, reading, rows) if is_parquet else TextTable(path, reading, rows)


def check_prefix(prefix: str, table: "Table") -> None:
    """New names must not break the header line."""
    bad = next((c for c in prefix if c in '"\r\n\0' or (isinstance(table, TextTable) and c == table.delimiter)), None)
    if bad is not None:
        raise InvalidParameter(f"--prefix {prefix!r} has {bad!r} in it, which a name in the header line cannot have")


def check_names(columns: list[str], names: list[str], path: str) -> None:
    taken = [name for name in names if name in columns]
    if taken:
        raise InvalidParameter(f"{path} has a column {taken[0]!r} already: choose another start of the new names with --prefix")


# -- text


class Lines:
    """A text file line by line, many at a time, unzipped if need be."""

    def __init__(self, path: str):
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
        zipped = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=self._file) if zipped else self._file
        self._data = np.empty(_BLOCK, np.uint8)
        self._at = self._filled = self._seen = 0  # first byte not yet taken, end of what was read, end of what was searched
        self._ends = np.empty(0, np.int64)  # of lines, from ``_at`` on
        self._final = self._returns = False  # the end was read; the last line end was CR LF
        self.line = 1  # number of the next

    def tell(self) -> int:
        return self._file.tell()

    def _more(self) -> None:
        if self._at:
            left = self._filled - self._at
            self._data[:left] = self._data[self._at : self._filled].copy()
            self._ends -= self._at
            self._at, self._filled, self._seen = 0, left, self._seen - self._at
        if self._filled == len(self._data):
            if not self._ends.size and self._filled > _LONGEST:
                raise InvalidTable(f"{self._path}, line {self.line} is longer than {_LONGEST:,} bytes: is this a text table?")
            self._data = np.concatenate([self._data, np.empty(len(self._data), np.uint8)])
        try:
            got = self._stream.readinto(self._data.data[self._filled :])
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTable(f"{self._path} cannot be read after line {self.line}: {error}") from None
        self._filled += got
        self._final = got == 0
        fresh = np.flatnonzero(self._data[self._seen : self._filled] == 10) + self._seen
        self._seen = self._filled
        if fresh.size:
            self._returns = bool(fresh[-1] > self._at and self._data[fresh[-1] - 1] == 13)
        if self._final and self._filled > self._at and (self._filled == 0 or self._data[self._filled - 1] != 10):
            if self._returns and self._data[self._filled - 1] != 13:  # the last line has no end: it gets that of the one before
                self._data[self._filled] = 13
                self._filled += 1
            fresh = np.append(fresh, self._filled)
        self._ends = np.concatenate([self._ends, fresh])

    def take(self, n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(bytes, where lines start, where they end, their numbers) of the next n lines that are not blank, or all that are left.

        The bytes are valid until the next call.
        """
        while True:
            starts = np.concatenate([[self._at], self._ends[:-1] + 1]) if self._ends.size else self._ends
            length = self._ends - starts
            blank = (length == 0) | ((length == 1) & (self._data[np.minimum(starts, len(self._data) - 1)] == 13))
            full = np.flatnonzero(~blank)
            if len(full) >= n or self._final:
                break
            self._more()
        full = full[:n]
        if not full.size:
            return self._data, full, full, full
        starts, stops, numbers = starts[full], self._ends[full], self.line + full
        used = int(full[-1]) + 1
        self._at, self.line = min(int(self._ends[used - 1]) + 1, self._filled), self.line + used
        self._ends = self._ends[used:]
        return self._data, starts, stops, numbers

    def close(self) -> None:
        self._stream.close()
        self._file.close()


class TextTable(Table):
    """CSV and its kin."""

    kind = "text"

    def __init__(self, path: str, reading: dict[str, Any], rows: int):
        super().__init__(path, reading, rows)
        self._lines: Lines | None = None
        lines = Lines(path)
        try:
            names, self.delimiter = reading["names"], reading["delimiter"] or ","
            self.header = b""
            self.ending = b"\n"
            if names is None:
                data, starts, stops, _ = lines.take(1)
                if not starts.size:
                    raise InvalidTable(
                        f"{path} is empty: a table has a header line (or give the names of its columns with --names)"
                    )
                self.header = data[starts[0] : stops[0]].tobytes()
                self.ending = b"\r\n" if self.header.endswith(b"\r") else b"\n"
                self.header = self.header.rstrip(b"\r")
                text = self.header.decode("utf-8-sig", "replace")
                if "\r" in text:
                    raise InvalidTable(f"{path}: lines end with CR alone, or the header has one in it: save it with LF or CR LF")
                self.delimiter = reading["delimiter"] or max(",\t;|", key=text.count)
                names = [name.strip() for name in next(csv.reader([text], delimiter=self.delimiter))]
        finally:
            lines.close()
        self.columns = list(names)
        at = match(self.columns, reading["columns"], os.path.basename(path))
        self.places = sorted({at["lat"], at["lon"], *place_columns(self.columns)})

    @property
    def done(self) -> float:
        return self._lines.tell() / self.size if self._lines else 0.0

    def _raw(self) -> Any:
        lines = self._lines = Lines(self.path)
        try:
            if self.reading["names"] is None:
                lines.take(1)
            n = yield None
            while True:
                data, starts, stops, numbers = lines.take(n)
                if len(starts) != n:
                    raise InvalidTable(f"{self.path} changed while it was read: start again")
                n = yield (data, starts, stops), numbers
        finally:
            lines.close()

    def writer(self, path: Path, out: Path, at: int, names: list[str], grid: Grid, facts: dict[str, Any], drop: bool) -> Writer:
        if out.name.lower().endswith((".parquet", ".pq")):
            raise InvalidParameter(f"{self.path} is a text file, and so is what is released: name it .csv, not {out.name}")
        return TextWriter(self, path, out.name.lower().endswith(".gz"), at, names, grid, drop)


class TextWriter(Writer):
    """Each line as it was, then the new fields."""

    def __init__(self, table: TextTable, path: Path, zipped: bool, at: int, names: list[str], grid: Grid, drop: bool):
        self._table, self._grid, self._zipped = table, grid, zipped
        self._bits = (EXPOSED,) if drop else (SURROGATE, EXPOSED)
        self._dropped = np.zeros(len(table.columns), np.bool_)
        if drop:
            self._dropped[table.places] = True
        self._places: dict[int, bytes] = {}  # cell: its fields
        self._file = open(path, "r+b" if at else "wb")  # noqa: SIM115 - closed by close()
        self._file.truncate(at)
        self._file.seek(at)
        self.position = at
        if not at and table.reading["names"] is None:
            header = np.frombuffer(table.header, np.uint8).copy()
            tail = (table.delimiter + table.delimiter.join(names)).encode()
            line = self._join(header, np.zeros(1, np.int64), np.array([len(header)]), [tail], np.zeros(1, np.int64))
            self._put(line[:-1] + table.ending)

    def _join(self, data: Any, starts: Any, stops: Any, tails: list[bytes], which: Any) -> bytes:
        arena = np.frombuffer(b"".join(tails) or b"\0", np.uint8).copy()
        tail_starts = np.concatenate([[0], np.cumsum([len(tail) for tail in tails])]).astype(np.int64)
        longest = int((stops - starts).sum() + (tail_starts[1:] - tail_starts[:-1])[which].sum() + 2 * len(starts))
        out = np.empty(longest, np.uint8)
        size = kernels.join_lines(
            data, starts, stops, ord(self._table.delimiter), self._dropped, arena, tail_starts, which, out
        )  # fmt: skip
        return out[:size].tobytes()

    def write(self, batch: Batch, added: Added) -> None:
        data, starts, stops = batch.raw
        starts, stops = starts.astype(np.int64), stops.astype(np.int64)
        bad = np.flatnonzero(added.status == MALFORMED)
        if bad.size:
            data, starts, stops = self._mended(data, starts, stops, bad)
        flags = np.zeros(batch.rows, np.uint8) if added.flags is None else added.flags
        key = ((added.cells.astype(np.int64) + 1) * 16 + added.status) * 4 + flags
        distinct, which = np.unique(key, return_inverse=True)
        tails = [self._tail(k, added.flags is not None) for k in distinct.tolist()]
        self._put(self._join(data, starts, stops, tails, which.reshape(-1).astype(np.int64)))

    def _tail(self, key: int, flagged: bool) -> bytes:
        cell, status, flags = key // 64 - 1, key // 4 % 16, key % 4
        d = self._table.delimiter.encode()
        if cell not in self._places:
            if cell < 0:
                self._places[cell] = d * 3
            else:
                lat, lon = self._grid.latlon(cell).tolist()
                self._places[cell] = d + d.join(f"{v}".encode() for v in (f"{lat:.6f}", f"{lon:.6f}", cell))
        tail = self._places[cell] + d + STATUSES[status].encode()
        if flagged:
            told = cell >= 0 and status == STEP
            tail += b"".join(d + (b"" if not told else b"true" if flags & bit else b"false") for bit in self._bits)
        return tail

    def _mended(self, data: Any, starts: Any, stops: Any, bad: Any) -> tuple[Any, Any, Any]:
        """Rows that could not be read, so that the table stays one: a line that does not fall into the right number of fields
        is kept whole as the text of the first. Where true places are dropped, nothing of such a row is kept."""
        parts, at = [data], len(data)
        fields = len(self._table.columns)
        d = self._table.delimiter.encode()
        starts, stops = starts.copy(), stops.copy()
        for k in bad.tolist():
            stop = int(stops[k])
            returns = stop > starts[k] and data[stop - 1] == 13
            end = stop - 1 if returns else stop
            if self._dropped.any():
                text = d * (fields - 1)
            elif kernels.count_fields(data, int(starts[k]), end, ord(self._table.delimiter)) == fields:
                continue
            else:
                text = b'"' + data[starts[k] : end].tobytes().replace(b'"', b'""') + b'"' + d * (fields - 1)
            text += b"\r" if returns else b""
            parts.append(np.frombuffer(text, np.uint8))
            starts[k], stops[k] = at, at + len(text)
            at += len(text)
        return (np.concatenate(parts) if len(parts) > 1 else data), starts, stops

    def _put(self, text: bytes) -> None:
        if self._zipped:  # a member of its own, so that what is there is whole
            text = gzip.compress(text, compresslevel=6, mtime=0)
        self._file.write(text)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.position = self._file.tell()

    def close(self) -> None:
        self._file.close()


# -- Parquet


class ParquetTable(Table):
    """Parquet, row group by row group."""

    kind = "parquet"

    def __init__(self, path: str, reading: dict[str, Any], rows: int):
        super().__init__(path, reading, rows)
        for name in ("names", "delimiter"):
            if reading[name] is not None:
                raise InvalidParameter(f"--{name} is for text files, and {os.path.basename(path)} is Parquet")
        need("pyarrow")
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(path) as file:
                self.schema, self.rows = file.schema_arrow, file.metadata.num_rows
        except pa.ArrowException as error:
            raise InvalidTable(f"{path} cannot be read as Parquet: {error}") from None
        self.columns = list(self.schema.names)
        at = match(self.columns, reading["columns"], os.path.basename(path), geometry=True)
        self.places = sorted({*(at[role] for role in ("lat", "lon", "geometry") if role in at), *place_columns(self.columns)})
        self._read = 0

    def batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        try:
            yield from super().batches()
        except (OSError, pa.ArrowException) as error:
            raise InvalidTable(f"{self.path} cannot be read as Parquet: {' '.join(str(error).split())}") from None

    @property
    def done(self) -> float:
        return float(self._read / max(1, self.rows))

    def facts(self) -> dict[str, Any] | None:
        said = (self.schema.metadata or {}).get(b"pglp_fast")
        try:
            found = None if said is None else json.loads(said)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _raw(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        self._read = 0
        with parquet.ParquetFile(self.path, pre_buffer=False) as file:
            source = file.iter_batches(batch_size=self.batch_rows)
            held: list[Any] = []
            n = yield None
            while True:
                while sum(len(part) for part in held) < n:
                    part = next(source, None)
                    if part is None:
                        raise InvalidTable(f"{self.path} changed while it was read: start again")
                    held.append(part)
                taken = []
                missing = n
                while missing:
                    part = held.pop(0)
                    taken.append(part.slice(0, missing))
                    if len(part) > missing:
                        held.insert(0, part.slice(missing))
                    missing -= len(taken[-1])
                numbers = np.arange(self._read, self._read + n)
                self._read += n
                n = yield pa.Table.from_batches(taken, self.schema), numbers

    def writer(self, path: Path, out: Path, at: int, names: list[str], grid: Grid, facts: dict[str, Any], drop: bool) -> Writer:
        if out.name.lower().endswith((".csv", ".tsv", ".txt", ".gz")):
            raise InvalidParameter(f"{self.path} is Parquet, and so is what is released: name it .parquet, not {out.name}")
        return ParquetWriter(self, path, names, grid, facts, drop)


class ParquetWriter(Writer):
    """Columns as they were, with their types, then the new ones."""

    def __init__(self, table: ParquetTable, path: Path, names: list[str], grid: Grid, facts: dict[str, Any], drop: bool):
        import pyarrow as pa
        from pyarrow import parquet

        self._grid, self._dropped = grid, [table.columns[k] for k in table.places] if drop else []
        kept = [field for field in table.schema if field.name not in self._dropped]
        self._bits = (EXPOSED,) if drop else (SURROGATE, EXPOSED)
        self._status = pa.array(STATUSES)
        kinds = [pa.float64(), pa.float64(), pa.int32(), pa.dictionary(pa.int8(), pa.string()), pa.bool_(), pa.bool_()]
        new = [pa.field(name, kind) for name, kind in zip(names, kinds)]
        metadata = {**(table.schema.metadata or {}), b"pglp_fast": json.dumps(facts).encode()}
        if drop:
            metadata.pop(b"geo", None)  # it has the box of the true places
        self._schema = pa.schema(kept + new, metadata=metadata)
        self._flagged = len(names) > 4
        self._writer = parquet.ParquetWriter(path, self._schema)
        self.position = 0

    def write(self, batch: Batch, added: Added) -> None:
        import pyarrow as pa

        table = batch.raw.drop_columns(self._dropped) if self._dropped else batch.raw
        none = added.cells < 0
        distinct, which = np.unique(np.where(none, 0, added.cells), return_inverse=True)
        place = self._grid.latlon(distinct).T[:, which.reshape(-1)]
        new = [pa.array(axis, mask=none) for axis in place]
        new.append(pa.array(added.cells, mask=none))
        new.append(pa.DictionaryArray.from_arrays(pa.array(added.status.astype(np.int8)), self._status))
        if self._flagged:
            assert added.flags is not None
            silent = none | (added.status != STEP)
            new += [pa.array((added.flags & bit) > 0, mask=silent) for bit in self._bits]
        columns = [*table.columns, *new]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
