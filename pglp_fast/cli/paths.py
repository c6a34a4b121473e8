"""Files that appear whole or not at all."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InvalidParameter


def target_of(out: Path) -> Path:
    """Where a link leads, be there a file or not; other paths as they are. So a link stays one when its file is replaced."""
    if not out.is_symlink():
        return out
    target = Path(os.path.realpath(out))
    if target.is_symlink():
        raise InvalidParameter(f"{out} is a link that leads in a circle: name another output")
    return target


def refuse_pipes(inputs: Iterable[str | None]) -> None:
    """Inputs are read to be used, and once more to tell a changed one by its digest."""
    for path in inputs:
        if path is not None and os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise InvalidParameter(f"{path} is a pipe or a device, and a file is needed: it is read more than once")


def refuse_inputs(paths: Iterable[Path], inputs: Iterable[str | None]) -> None:
    """None of the paths that will be written or removed may be a file that is read."""
    given = [path for path in inputs if path is not None and os.path.exists(path)]
    for path in paths:
        for one in given:
            with suppress(FileNotFoundError, NotADirectoryError):
                if os.path.samefile(path, one):
                    raise InvalidParameter(f"{path} would be written over, but {one} is the input: name another output")


def mode_for(out: Path, holds: str | None) -> int:
    """Permissions of a new ``out``: never more than a file has that it replaces; and if it holds what the file ``holds`` has,
    its owner's alone, and never more than that one has."""
    mask = os.umask(0o077)
    os.umask(mask)
    mode = 0o666 & ~mask
    if holds is not None:
        mode &= 0o600 & stat.S_IMODE(os.stat(holds).st_mode)
    with suppress(FileNotFoundError):
        mode &= stat.S_IMODE(out.stat().st_mode)
    return mode


def refuse_existing(out: Path, force: bool) -> None:
    if out.is_dir():
        raise InvalidParameter(f"{out} is a folder: name a file with -o")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: make it first")
    if out.exists() and not out.is_file():
        raise InvalidParameter(f"{out} is a pipe or a device: name a file with -o")
    if out.exists() and not force:
        raise InvalidParameter(f"{out} is there: --force overwrites it")


@contextmanager
def atomic(out: Path, force: bool) -> Iterator[Path]:
    """A path beside ``out`` to write to; it takes its place when all went well, else it is removed."""
    out = target_of(out)
    refuse_existing(out, force)
    beside = out.with_name(f".{out.stem}.{os.getpid()}.part{''.join(out.suffixes[-1:])}")
    try:
        yield beside
        os.replace(beside, out)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
