"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InvalidParameter


def refuse_existing(out: Path, force: bool) -> None:
    if out.is_dir():
        raise InvalidParameter(f"{out} is a folder: name a file with -o")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: make it first")
    if out.exists() and not force:
        raise InvalidParameter(f"{out} is there: --force overwrites it")


@contextmanager
def atomic(out: Path, force: bool) -> Iterator[Path]:
    """A path beside ``out`` to write to; it takes its place when all went well, else it is removed."""
    refuse_existing(out, force)
    beside = out.with_name(f".{out.stem}.{os.getpid()}.part{''.join(out.suffixes[-1:])}")
    try:
        yield beside
        os.replace(beside, out)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
