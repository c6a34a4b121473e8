"""Where outputs may go, and what is refused."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pglp_fast._util.storage import SECRET, replacing
from pglp_fast.errors import InvalidParameter, InvalidTable, PGLPError


def target_of(out: Path) -> Path:
    """Where a link leads, be there a file or not; other paths as they are.

    So a link stays one when its file is replaced.
    """
    if not out.is_symlink():
        return out
    target = Path(os.path.realpath(out))
    if target.is_symlink():
        raise InvalidParameter(f"{out} is a link that leads in a circle: name another output")
    return target


def refuse_pipes(inputs: Iterable[str | None]) -> None:
    """Inputs are read to be used, and once more to tell a changed one by its digest."""
    for path in inputs:
        if path is None or os.path.isfile(path) or os.path.isdir(path):
            continue
        if os.path.exists(path):
            raise InvalidParameter(
                f"{path} is a pipe or a device, and a file is needed: it is read more than once"
            )


def refuse_inputs(paths: Iterable[Path], inputs: Iterable[str | None]) -> None:
    """None of the paths that will be written or removed may be a file that is read."""
    given = [path for path in inputs if path is not None and os.path.exists(path)]
    for path in paths:
        for one in given:
            with suppress(FileNotFoundError, NotADirectoryError):
                if os.path.samefile(path, one):
                    raise InvalidParameter(
                        f"{path} would be written over, but {one} is the input: name another output"
                    )


@contextmanager
def reading(path: str, what: str, error: type[PGLPError] = InvalidTable) -> Iterator[None]:
    """Say of whatever goes wrong with the contents of a file that the file is damaged."""
    try:
        yield
    except (PGLPError, MemoryError):
        raise
    except Exception as problem:  # each format has its own: zlib, csv, zip, Arrow, TOML, ...
        if isinstance(problem, OSError) and problem.errno is not None:
            raise
        raise error(
            f"{path} is not {what} ({problem or type(problem).__name__}): is it whole, "
            "and is it the right file?"
        ) from None


def mode_for(out: Path, holds: str | None) -> int:
    """Permissions of a new ``out``: never more than a file has that it replaces; and if it holds
    what the file ``holds`` has, its owner's alone, and never more than that one has."""
    mask = os.umask(0o077)
    os.umask(mask)
    mode = 0o666 & ~mask
    if holds is not None:
        mode &= SECRET & stat.S_IMODE(os.stat(holds).st_mode)
    with suppress(FileNotFoundError):
        mode &= stat.S_IMODE(out.stat().st_mode)
    return mode


def refuse_existing(out: Path, force: bool, *, folder: bool = False) -> None:
    """A file (or ``folder``) may be written there: the folder above is there, and it is not, unless
    forced."""
    if out.is_dir() and not folder:
        raise InvalidParameter(f"{out} is a folder: name a file with -o")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: make it first")
    if out.exists() and not out.is_file():
        if folder and out.is_dir():
            return
        raise InvalidParameter(f"{out} is a pipe or a device: name a file with -o")
    refuse_overwriting(out, force)


def refuse_overwriting(out: Path, force: bool) -> None:
    """An error if a result is there already, unless forced."""
    if out.exists() and not force:
        raise InvalidParameter(f"{out} is there: force=True overwrites it")


def refuse_full_folder(out: Path, force: bool, how: str, forced: str) -> None:
    """A folder may be filled: it is not there or is empty, unless forced. ``how``, ``forced``: what
    to do about a file in its place, and what --force does."""
    if out.exists() and not out.is_dir():
        raise InvalidParameter(f"{out} is a file: {how}")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: make it first")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise InvalidParameter(f"{out} is there and is not empty: --force {forced}")


@contextmanager
def atomic(out: Path, force: bool) -> Iterator[Path]:
    """A path beside ``out`` to write to; it takes its place when all went well, else it is
    removed."""
    out = target_of(out)
    refuse_existing(out, force)
    with replacing(out) as beside:
        yield beside
