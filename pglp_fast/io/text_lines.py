"""The lines of a text file, gzipped or not, in blocks of whole lines."""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pglp_fast.errors import InvalidTable

_BLOCK = 1 << 20
_LONGEST = 1 << 20  # a line longer than this is no row of a table
_BOM = b"\xef\xbb\xbf"
# what is no text, by its first bytes
_OTHER = {
    b"PK\x03\x04": "a zip archive: unpack it",
    b"7z\xbc\xaf": "a 7z archive: unpack it",
    b"BZh91AY": "packed by bzip2: unpack it, or pack it with gzip",
    b"\xfd7zXZ": "packed by xz: unpack it, or pack it with gzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it, or pack it with gzip",
    b"PAR1": "Parquet inside of gzip: unpack it",
    b"\xff\xfe": "UTF-16: save it as UTF-8",
    b"\xfe\xff": "UTF-16: save it as UTF-8",
}


class Source:
    """Lines of a file, unzipped if need be. Memory holds one block of them."""

    def __init__(
        self, path: str | os.PathLike[str], advance: Callable[[int], None] = lambda n: None
    ):
        self.path, self.name, self._advance, self._told = path, os.path.basename(path), advance, 0
        try:
            self._raw = open(path, "rb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise InvalidTable(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
        zipped = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=self._raw) if zipped else self._raw
        self.line = 1  # number of the next
        self._held = b""  # read, and not yet taken
        try:
            self._more()
        except InvalidTable:
            self.close()
            raise
        self._held = self._held.removeprefix(_BOM)

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        if len(self._held) > _LONGEST and b"\n" not in self._held:
            raise InvalidTable(
                f"{self.name}, line {self.line}: longer than {_LONGEST:,} bytes: is this a text "
                "table?"
            )
        try:
            got = self._stream.read(_BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTable(
                f"{self.name} cannot be unzipped after line {self.line}: {error}"
            ) from None
        heads = () if self._told else _OTHER.items()
        kind = next((said for head, said in heads if got.startswith(head)), "")
        if kind:
            raise InvalidTable(f"{self.name} is {kind}")
        if b"\0" in got:
            raise InvalidTable(
                f"{self.name} has bytes that no text has, after line {self.line}: it is not a text "
                "table"
            )
        self._held += got
        position = self._raw.tell()
        self._advance(position - self._told)
        self._told = position
        return bool(got)

    def peek_line(self) -> str:
        """The next line, left where it is."""
        while b"\n" not in self._held and self._more():
            pass
        return utf8(self._held.partition(b"\n")[0].removesuffix(b"\r")).decode()

    def take_line(self) -> str | None:
        """The next line, without its end; None at the end of the file."""
        text = self.peek_line()
        if not self._held:
            return None
        self._held, self.line = self._held.partition(b"\n")[2], self.line + 1
        return text

    def skip(self, lines: int) -> bool:
        """Take so many lines; False where there are fewer."""
        return None not in [self.take_line() for _ in range(lines)]

    def skip_blank_lines(self) -> None:
        """Take lines up to one that has more than spaces."""
        more = True
        while more:
            text = self._held.lstrip()
            blank = self._held[: self._held.rfind(b"\n", 0, len(self._held) - len(text)) + 1]
            self._held, self.line = self._held[len(blank) :], self.line + blank.count(b"\n")
            more = not text and self._more()

    def blocks(self) -> Iterator[tuple[bytes, int, int]]:
        """(whole lines, number of the first, how many), to the end of the file."""
        more = True
        while more:
            more = self._more()
            end = self._held.rfind(b"\n") + 1 if more else len(self._held)
            block, self._held = self._held[:end], self._held[end:]
            if block:
                newlines = int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
                yield block, self.line, newlines + (not block.endswith(b"\n"))
                self.line += newlines

    def close(self) -> None:
        self._stream.close()
        self._raw.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def utf8(octets: bytes) -> bytes:
    """Lines that are not UTF-8 are Latin-1 (the Foursquare files)."""
    try:
        octets.decode()
        return octets
    except UnicodeDecodeError:
        lines = octets.split(b"\n")
    if len(lines) == 1:
        return octets.decode("latin-1").encode()
    return b"\n".join(map(utf8, lines))
