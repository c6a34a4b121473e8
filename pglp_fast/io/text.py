"""Text tables (CSV and its kin), gzipped or not: blocks of whole lines, which Arrow takes apart.

A newline always ends a row: quoted text may hold delimiters and doubled quotes, but no line end. So
a broken row spoils one line only. Arrow knows no such rule and would read on to the next quote:
lines whose quotes are out of order are found beforehand."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.threads import map_ahead
from pglp_fast.errors import InvalidTable

from . import columns as roles
from .fix_batches import RawBatch
from .text_lines import Source, utf8
from .values import usual_kind

pa, pa_csv, pc = Later("pyarrow"), Later("pyarrow.csv"), Later("pyarrow.compute")

_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True)
class Layout:
    """How lines make rows. All columns are text, but for numbers and times in ``kinds``.

    Attributes
    ----------
    columns : names; a row has so many fields
    at : number of the column for each role
    delimiter : between fields
    quoted : whether quotes mean anything
    every_column : whether all columns are read, or only those that have a role
    typed : whether numbers and times may be read on the way, as Arrow knows them
    """

    columns: Sequence[str]
    at: Mapping[str, int]
    delimiter: str = ","
    quoted: bool = True
    every_column: bool = False
    typed: bool = True

    @classmethod
    def of_roles(
        cls, columns: Sequence[str], delimiter: str = ",", *, quoted: bool = True
    ) -> "Layout":
        """Of a known format: a column that is called like a role has it."""
        known = (*roles.LABELS, *roles.NUMBERS, "time", "clock")
        at = {name: k for k, name in enumerate(columns) if name in known}
        return cls(columns, at, delimiter, quoted)

    def kinds(self, line: str) -> dict[str, Any]:
        """Types that a line suggests for columns of numbers and times: to read them on the way is
        faster than to make text of them first."""
        fields = [field.strip(' "') for field in line.split(self.delimiter)]
        if self.every_column or not self.typed or len(fields) != len(self.columns):
            return {}
        kinds = {role: pa.float64() for role in roles.NUMBERS}
        if "clock" not in self.at and "time" in self.at:
            kinds["time"] = usual_kind(fields[self.at["time"]])
        known = {role: kind for role, kind in kinds.items() if role in self.at and kind}
        return {str(self.at[role]): kind for role, kind in known.items()}

    def read(self, block: bytes, line: int, lines: int, kinds: Mapping[str, Any]) -> RawBatch:
        """All rows of some lines.

        A broken line is a row as well: its text stands in the first column."""
        block = utf8(block)
        table, faults = None, dict[bytes, str]()
        more = _find_returns(block)
        if self.quoted and b'"' in block:
            more |= _find_open_quotes(block, self.delimiter)
        while table is None or more.keys() - faults.keys():
            faults |= more
            table, more = self._split(self._mend(block, faults), kinds)
        full = np.arange(lines) if len(table) == lines else _find_full(block, len(table))
        broken: dict[int, str] = {}
        if faults:
            texts = _lines(block)
            each = ((row, texts[k]) for row, k in enumerate(full.tolist()))
            broken = {row: faults[text] for row, text in each if text in faults}
        columns = {role: table.column(str(at)) for role, at in self.at.items()}
        names = [self.columns[int(name)] for name in table.schema.names]
        rows = pa.RecordBatch.from_arrays(table.columns, names)
        return RawBatch(rows, columns, 0, line + full, broken)

    def _mend(self, block: bytes, faults: Mapping[bytes, str]) -> bytes:
        """Each broken line as a row: its text, and empty fields."""
        if not faults:
            return block
        tail = self.delimiter.encode() * (len(self.columns) - 1)

        def row(text: bytes) -> bytes:
            return b'"' + text.replace(b'"', b'""') + b'"' + tail if self.quoted else tail

        return b"\n".join(row(text) if text in faults else text for text in _lines(block))

    def _split(self, block: bytes, kinds: Mapping[str, Any]) -> tuple[Any, dict[bytes, str]]:
        """(rows; lines that have another number of fields than they should).

        Where columns are not all of the kinds given, they are text."""
        faults: dict[bytes, str] = {}

        def note(row: Any) -> str:
            faults[row.text.encode()] = (
                f"{row.actual_columns} fields where {row.expected_columns} are due"
            )
            return "skip"

        names = [str(k) for k in range(len(self.columns))]
        wanted = names if self.every_column else [str(k) for k in sorted(set(self.at.values()))]
        if block.isspace() and not block.strip(b"\r\n"):  # Arrow refuses to read nothing
            return pa.RecordBatch.from_pydict({name: pa.array([], "string") for name in wanted}), {}
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(block),
                pa_csv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=names
                ),
                pa_csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if self.quoted and b'"' in block else False,
                    invalid_row_handler=note,
                ),
                pa_csv.ConvertOptions(
                    column_types={name: kinds.get(name, pa.string()) for name in wanted},
                    include_columns=wanted,
                    null_values=[""],
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            if not kinds:
                raise
            return self._split(block, {})
        floats = (table[name] for name, kind in kinds.items() if kind == pa.float64())
        if not all(pc.all(pc.is_finite(column)).as_py() for column in floats):  # such as "inf"
            return self._split(block, {})
        found = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        return found[0], faults  # a block of Arrow is one batch


def read_text(source: Source, layout: Layout, rows: int) -> Iterator[RawBatch]:
    """Rows of a source from where it stands, at most so many at a time."""
    first, kinds = 0, layout.kinds(source.peek_line())

    def read(lines: tuple[bytes, int, int]) -> RawBatch:
        return layout.read(*lines, kinds)

    for raw in map_ahead(read, source.blocks()):
        yield from raw._replace(first=first).parts(rows)
        first += len(raw.rows)


def layout_of(
    source: Source,
    columns: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    delimiter: str | None,
    *,
    every_column: bool,
    typed: bool = True,
) -> Layout:
    """From the header line, or from the names of the columns of a file without one."""
    source.skip_blank_lines()
    head = source.peek_line()
    if names is None and not head.strip():
        raise InvalidTable(
            f"{source.name} is empty: a table has a header line (or give names=[...] of its "
            "columns)"
        )
    delimiter = delimiter or max(",\t;|", key=head.count)
    if names is None:
        source.take_line()
        if "\r" in head:
            raise InvalidTable(
                f"{source.name}: lines end with CR alone, or the header has one in it: save it "
                "with LF or CR LF"
            )
        try:
            names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter))]
        except csv.Error as error:
            raise InvalidTable(f"{source.name}: the header line cannot be read: {error}") from None
    at = roles.match(names, columns, source.name, geometry=True)
    return Layout(list(names), at, delimiter, every_column=every_column, typed=typed)


def _lines(block: bytes) -> list[bytes]:
    """Without their ends; a blank line is empty."""
    return [text.removesuffix(b"\r") for text in block.split(b"\n")]


def _find_full(block: bytes, n: int) -> NDArray[np.int64]:
    """Numbers of the n lines that are not blank, from 0."""
    if not n:
        return np.empty(0, np.int64)
    data = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    newline = data == _NEWLINE
    blank = newline[1:].copy()  # the line that would start here
    blank[:-1] |= (data[1:-1] == _RETURN) & newline[2:]
    starts = np.flatnonzero(newline[:-1] & ~blank)
    return np.cumsum(newline, dtype=np.int32)[starts].astype(np.int64) - 1


def _find_returns(block: bytes) -> dict[bytes, str]:
    """Lines with a CR in them, which Arrow takes for the end of a row."""
    if b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"):
        return {}
    return {text: "a carriage return within the line" for text in _lines(block) if b"\r" in text}


def _find_open_quotes(block: bytes, delimiter: str) -> dict[bytes, str]:
    """Lines whose quotes are out of order.

    On nearly all lines, quotes stand where fields start and where they end, in turns. The others
    are matched one by one."""
    data = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    ends, at = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _QUOTE)
    line = np.searchsorted(ends, at) - 1
    first = np.searchsorted(line, line)  # of the quotes on the same line
    closes = (np.arange(len(at)) - first) % 2 == 1
    bounds = (_NEWLINE, _RETURN, ord(delimiter))
    plain = np.isin(data[np.where(closes, at + 1, at - 1)], bounds)
    odd = np.bincount(line, minlength=len(ends)) % 2 == 1
    odd[line[~plain]] = True
    fields, faults = _fields(delimiter), dict[bytes, str]()
    for k in np.flatnonzero(odd).tolist():
        text = block[ends[k] : ends[k + 1] - 1].removesuffix(b"\r")
        found = fields.match(text)
        rest = text[found.end() :] if found else text
        if rest:
            open_end = found is None or rest.startswith(delimiter.encode())
            faults[text] = (
                "a quote is not closed on its line" if open_end else "text after a closing quote"
            )
    return faults


@cache
def _fields(delimiter: str) -> re.Pattern[bytes]:
    """Fields from the start of a line, up to one that is not in order."""
    d = re.escape(delimiter)
    spaces = "" if delimiter == " " else " *+"
    field = rf'(?:"(?:[^"]|"")*+"{spaces}|(?!")[^{d}]*+)'
    return re.compile(f"{field}(?:{d}{field})*+".encode())
