"""Rows of a text table from Arrow columns: values as they came in, quoted only where they must be.

Arrow's own writer quotes every text or none; a table that had no quotes shall get none."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pglp_fast._util.packages import Later

pa, pc = Later("pyarrow"), Later("pyarrow.compute")


class TextFile:
    """A text table that is written bit by bit; zipped if its name says so."""

    def __init__(self, path: Path, name: str, delimiter: str, ending: str = "\n"):
        self._delimiter, self._ending = delimiter, ending
        self._plain = open(path, "wb")  # noqa: SIM115 - closed by close()
        self._file: Any = self._plain
        if name.lower().endswith(".gz"):
            # no time of writing in it: the same bytes tomorrow
            self._file = gzip.GzipFile("", "wb", 6, self._plain, mtime=0)

    def write_names(self, names: Sequence[str]) -> None:
        """The header line."""
        self.write([pa.array([name], pa.string()) for name in names])

    def write(self, columns: Sequence[Any], tails: Any = None) -> None:
        """Rows, as ``join_rows`` takes them."""
        self._file.write(join_rows(columns, self._delimiter, self._ending, tails))

    def close(self) -> None:
        self._file.close()
        self._plain.close()


def join_rows(columns: Sequence[Any], delimiter: str, ending: str, tails: Any = None) -> bytes:
    """The bytes of rows; columns are arrays of text without nulls.

    ``tails``: the ends of the rows, delimiters and all."""
    fields = [_quoted(column.cast(pa.large_string()), delimiter) for column in columns]
    fields += [] if tails is None else [tails]
    if not len(fields[0]):
        return b""
    lines = pc.binary_join_element_wise(*fields, _large(delimiter))
    return _octets(pc.binary_join_element_wise(lines, _large(""), _large(ending)))


def _quoted(column: Any, delimiter: str) -> Any:
    octets = _octets(column)
    if not any(sign.encode() in octets for sign in (delimiter, '"', "\n", "\r")):
        return column
    special = pc.match_substring_regex(column, f'["\n\r{_class_member(delimiter)}]')
    quote, doubled = _large('"'), pc.replace_substring(column, '"', '""')
    return pc.if_else(
        special, pc.binary_join_element_wise(quote, doubled, quote, _large("")), column
    )


def _large(text: str) -> Any:
    return pa.scalar(text, pa.large_string())


def _class_member(sign: str) -> str:
    """A character within the brackets of a regular expression."""
    return f"\\{sign}" if sign in "\\]^-|" else sign


def _octets(column: Any) -> bytes:
    """The values of a large_string array end to end."""
    offsets = memoryview(column.buffers()[1]).cast("q")
    low, high = offsets[column.offset], offsets[column.offset + len(column)]
    data = column.buffers()[2]
    return b"" if data is None else data.slice(low, high - low).to_pybytes()
