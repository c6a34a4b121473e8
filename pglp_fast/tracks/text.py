"""Text tables (CSV and its kin), gzipped or not, in batches of rows, with the line of every row.

The file's bytes go through a buffer; kernels find the fields and read numbers and times in place. A newline always ends
a row: quoted text may hold delimiters and doubled quotes, but no line end. So a broken row spoils one line only.
"""

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import fields as kernels
from ..errors import InvalidTable
from ..threads import run_ranges
from . import columns as roles
from .batch import Batch, Reading, settle
from .labels import Octets, Spans
from .report import Malformed
from .times import NO_TIME, to_utc, zone_of

POWERS = 10.0 ** np.arange(23)
_BLOCK = 1 << 22
_LONGEST = 1 << 20  # a line longer than this is no row of a table
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Layout:
    """How rows of a text file are made: which field is what, how many there are, and what stands between them."""

    at: Mapping[str, int]
    fields: int
    delimiter: str = ","
    quoted: bool = True

    @property
    def slots(self) -> list[str]:
        return list(self.at)

    def wanted(self) -> NDArray[np.int32]:
        """Slot of each field, -1 for those nobody asks for."""
        out = np.full(self.fields, -1, np.int32)
        for slot, field in enumerate(self.at.values()):
            out[field] = slot
        return out


class Source:
    """Bytes of a file, unzipped if need be, read into a buffer that keeps what is still needed."""

    def __init__(self, path: str | os.PathLike[str], advance: Callable[[int], None] = lambda n: None):
        self.path, self.name, self._advance, self._told = path, os.path.basename(path), advance, 0
        try:
            self._raw = open(path, "rb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise InvalidTable(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
        zipped = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=self._raw) if zipped else self._raw
        self.data: Octets = np.empty(_BLOCK, np.uint8)
        self.at = self.filled = 0
        self.line, self.final = 1, False
        try:
            self.more()
            head = self.data[: min(self.filled, 3)].tobytes()
            if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise InvalidTable(f"{self.name} is UTF-16: save it as UTF-8")
        except InvalidTable:
            self.close()
            raise
        self.at = len(_BOM) if head == _BOM else 0

    def more(self) -> None:
        """Read on, behind what is there: the begin of one line, or nothing."""
        if self.filled - self.at > _LONGEST:
            raise InvalidTable(f"{self.name}, line {self.line}: longer than {_LONGEST:,} bytes: is this a text table?")
        if self.filled == len(self.data):
            self.data = np.concatenate([self.data, np.empty(len(self.data), np.uint8)])
        try:
            got = self._stream.readinto(self.data.data[self.filled :])
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTable(f"{self.name} cannot be unzipped after line {self.line}: {error}") from None
        self.filled += got
        self.final = got == 0
        position = self._raw.tell()
        self._advance(position - self._told)
        self._told = position

    def forget(self) -> None:
        """Move what is not yet used to the front."""
        left = self.filled - self.at
        self.data[:left] = self.data[self.at : self.filled].copy()
        self.at, self.filled = 0, left

    def peek_line(self) -> str:
        """The next line, left where it is."""
        at, line = self.at, self.line
        text = self.take_line()
        self.at, self.line = at, line
        return text or ""

    def take_line(self) -> str | None:
        """The next line, without its end; None at the end of the file."""
        look = 1 << 10
        while True:
            seen = self.data[self.at : min(self.at + look, self.filled)].tobytes()
            end = seen.find(b"\n")
            if end >= 0 or (self.final and self.at + len(seen) == self.filled):
                break
            if self.at + len(seen) == self.filled:
                self.more()
            look *= 2
        if not seen:
            return None
        octets = (seen[:end] if end >= 0 else seen).rstrip(b"\r")
        self.at, self.line = self.at + (end + 1 if end >= 0 else len(seen)), self.line + 1
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError:
            return octets.decode("latin-1")

    def close(self) -> None:
        self._stream.close()
        self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def layout_of(source: Source, columns: Mapping[str, Any] | None, names: Sequence[str] | None, delimiter: str | None) -> Layout:
    """From the header line, or from the names of the columns of a file without one."""
    while not source.peek_line().strip() and source.take_line() is not None:
        pass  # blank lines before the table
    head = source.peek_line()
    if names is None and not head.strip():
        raise InvalidTable(f"{source.name} is empty: a table has a header line (or give names=[...] of its columns)")
    delimiter = delimiter or max(",\t;|", key=head.count)
    if names is None:
        source.take_line()
        if "\r" in head:
            raise InvalidTable(f"{source.name}: lines end with CR alone, or the header has one in it: save it with LF or CR LF")
        names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter))]
    return Layout(roles.match(names, columns, source.name), len(names), delimiter)


def batches(source: Source, layout: Layout, reading: Reading, rows: int) -> Iterator[Batch]:
    """Batches of at most ``rows`` rows, to the end of the file."""
    wanted = layout.wanted()
    spans = np.zeros((len(layout.at), rows, 2), np.int64)
    lines, faults = np.zeros(rows, np.int64), np.zeros(rows, np.int32)
    done = False
    while not done:
        row = 0
        while True:
            source.at, source.line, row = kernels.split_rows(
                source.data, source.at, source.filled, source.final, ord(layout.delimiter), layout.quoted, wanted,
                source.line, row, spans, lines, faults,
            )  # fmt: skip
            done = source.final and source.at == source.filled
            if row == rows or done:
                break
            source.more()
        if row:
            yield _parse(source, layout, reading, spans[:, :row], lines[:row], faults[:row])
        source.forget()


def _parse(
    source: Source,
    layout: Layout,
    reading: Reading,
    spans: NDArray[np.int64],
    lines: NDArray[np.int64],
    faults: NDArray[np.int32],
) -> Batch:
    data, n = source.data, len(lines)
    slot = {role: k for k, role in enumerate(layout.slots)}
    spans[:, faults != 0] = 0  # nothing is read from broken rows
    numbers, faulty = {}, {}
    for role in (role for role in slot if role in roles.NUMBERS):
        numbers[role], faulty[role] = read_numbers(data, spans[slot[role]])
    clock = spans[slot["clock"]] if "clock" in slot else None
    if "time" in slot:
        time, faulty["time"] = read_times(data, spans[slot["time"]], clock, reading.timezone)
    else:
        time = np.full(n, NO_TIME, np.int64)
    if "user" in slot:
        faulty["user"] = spans[slot["user"], :, 0] == spans[slot["user"], :, 1]
    bad = np.any([faults != 0, *faulty.values()], axis=0)

    def why(row: int) -> Malformed:
        def text(role: str) -> str:
            start, stop = spans[slot[role], row]
            return repr(data[start:stop].tobytes().decode("utf-8", "replace")[:60])

        if faults[row] == kernels.UNCLOSED:
            reason = "a quote is not closed on its line"
        elif faults[row] == kernels.STRAY:
            reason = "text after a closing quote"
        elif faults[row]:
            reason = f"{faults[row]} fields where {layout.fields} are due"
        else:
            role = next(role for role in faulty if faulty[role][row])
            written = text(role) + (f" {text('clock')}" if role == "time" and clock is not None else "")
            reason = "no user" if role == "user" else f"{role} {written} is not a {'time' if role == 'time' else 'number'}"
        return Malformed(source.name, "line", int(lines[row]), reason)

    malformed = settle(reading, bad, why)
    good = slice(None) if not bad.any() else ~bad
    codes = {}
    for role in (role for role in slot if role in roles.LABELS):
        kept = np.array(spans[slot[role]][good])
        kept[kept[:, 0] == kept[:, 1]] = -1  # an empty label is none
        codes[role] = reading.labeller(role, "field", source.name).number(data, kept)
    return Batch(codes, {role: column[good] for role, column in numbers.items()}, time[good], lines[good].copy(), n, malformed)


def read_numbers(data: Octets, spans: Spans) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers of spans (NaN for nothing), and which are none."""
    out, marks = np.empty(len(spans)), np.empty(len(spans), np.uint8)
    run_ranges(lambda a, b: kernels.numbers(data, spans[a:b], POWERS, out[a:b], marks[a:b]), len(spans))
    rows = np.flatnonzero(marks == kernels.LONG)
    if rows.size:  # more digits than a double holds: by NumPy, to the nearest
        octets = np.empty((rows.size, max(1, int((spans[rows, 1] - spans[rows, 0]).max()))), np.uint8)
        kernels.copy_spans(data, spans, rows, octets)
        out[rows] = octets.view(f"S{octets.shape[1]}").reshape(-1).astype(np.float64)
    return out, marks == kernels.BAD


def read_times(data: Octets, spans: Spans, clocks: Spans | None, timezone: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Milliseconds since 1970 UTC of spans (NaT for nothing), and which are no times."""
    out, marks = np.empty(len(spans), np.int64), np.empty(len(spans), np.uint8)
    zoned = np.zeros(len(spans), np.bool_)
    if clocks is None:
        run_ranges(lambda a, b: kernels.times(data, spans[a:b], POWERS, NO_TIME, out[a:b], zoned[a:b], marks[a:b]), len(spans))
    else:
        run_ranges(lambda a, b: kernels.dates_and_clocks(data, spans[a:b], clocks[a:b], out[a:b], marks[a:b]), len(spans))
    if timezone != "UTC":
        out = np.where(zoned, out, to_utc(out, zone_of(timezone)))
    return out, marks == kernels.BAD
