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


def refuse_inputs(paths: Iterable[Path], inputs: Iterable[str | None]) -> None:
    """None of the paths that will be written or removed may be a file that is read."""
    given = [path for path in inputs if path is not None and os.path.exists(path)]
    for path in paths:
        for one in given:
            with suppress(FileNotFoundError):
                if os.path.samefile(path, one):
                    raise InvalidParameter(f"{path} would be written over, but {one} is the input: name another output")


def mode_for(out: Path, secret: bool) -> int:
    """Permissions of a new ``out``: its owner's alone if it is secret, and never more than a file has that it replaces."""
    mask = os.umask(0o077)
    os.umask(mask)
    mode = (0o600 if secret else 0o666) & ~mask
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
