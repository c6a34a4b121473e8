"""Files that are whole or not there: written beside their place, synced to disk, and renamed.

Files of arrays are versioned, carry a checksum, and are readable by their owner only: a saved
stream contains the key of its generator, and whoever reads it can subtract the noise. A checksum
tells damage from a whole file, not who wrote it: whoever reads arrays checks them."""

import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast.errors import InvalidParameter, InvalidState

from .validate import brief

try:
    import fcntl
except ImportError:  # Windows: what a killed save leaves stays there
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"pglp_fast\n"
_VERSION = 1
SECRET = 0o600  # permissions of what its owner alone may read
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_LONGEST = 180  # of a name, in characters, that is repeated in the name of the file beside it
_own: set[int] = set()  # handles of files that this process has locked, or is about to


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[Path]:
    """A new file beside ``path`` to write to; it takes the place of ``path`` if all goes well.

    Else it is removed, and what was at ``path`` stays. What earlier saves to ``path`` left behind
    when they were killed is removed too. ``mode``: permissions, less the umask.
    """
    target = file_at(path)
    _sweep(target)
    beside, handle = _make_beside(target, mode)
    try:
        yield beside
        if not os.path.samestat(os.fstat(handle), os.lstat(beside)):
            raise InvalidState(f"{beside} was replaced while it was written: save again")
        publish(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)  # and with it the lock


def file_at(path: Any) -> Path:
    """A place for a file: there is none yet, or one that may be replaced."""
    try:
        target = Path(path)
        there = os.stat(target)
    except TypeError:
        raise InvalidParameter(f"the path must be a name, got {brief(path)}") from None
    except ValueError as problem:
        raise InvalidParameter(f"{brief(path)} is not a name of a file: {problem}") from None
    except OSError:  # nothing there, or nothing that could be looked at: opening says more
        return target
    if stat.S_ISDIR(there.st_mode):
        raise InvalidParameter(f"{target} is a folder: give the name of a file in it")
    if not stat.S_ISREG(there.st_mode):
        raise InvalidParameter(
            f"{target} is a device, a pipe or a socket, which would be replaced: name a file"
        )
    return target


def _label(target: Path) -> str:
    """What names of files beside a target begin with."""
    short = len(target.name) <= _LONGEST
    return f".{target.stem if short else hashlib.sha256(target.name.encode()).hexdigest()}"


def _make_beside(target: Path, mode: int) -> tuple[Path, int]:
    """(a new file, its handle, which holds a lock as long as this process lives)."""
    while True:
        beside = target.with_name(f"{_label(target)}.{secrets.token_hex(8)}.part{target.suffix}")
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINKS, mode)
        locked = True
        with suppress(OSError):  # a file system without locks: nothing is swept up there
            locked = _locked(handle)
        if locked and os.fstat(handle).st_nlink:
            return beside, handle
        os.close(handle)  # somebody swept it up before it was locked


def _locked(handle: int) -> bool:
    """Take the lock of an open file; False where a living process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep(handle: int) -> int:
    """An open file whose lock is this process's alone. A fork has it open too, and would keep the
    lock for as long as it lives: it lets go of it at once."""
    _own.add(handle)
    return handle


def let_go(handle: int) -> None:
    """Close a file that this process keeps, and with it the lock; in a fork it is closed."""
    if handle in _own:
        _own.discard(handle)
        os.close(handle)


def _let_go_of_all() -> None:
    for handle in list(_own):
        with suppress(OSError):
            let_go(handle)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_let_go_of_all)


def _sweep(target: Path) -> None:
    """Remove what killed saves to the same target left: files of ours that nobody has locked."""
    if fcntl is None:
        return
    name = re.escape(_label(target)) + r"\.[0-9a-f]{8,16}\.part" + re.escape(target.suffix)
    with suppress(OSError):
        for entry in [e.path for e in os.scandir(target.parent) if re.fullmatch(name, e.name)]:
            with suppress(OSError):
                _sweep_one(entry)


def _sweep_one(path: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | _NO_LINKS)
    try:
        found = os.fstat(handle)
        mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if mine and _locked(handle) and os.path.samestat(found, os.lstat(path)):
            os.unlink(path)
    finally:
        os.close(handle)


def publish(part: Path, target: Path) -> None:
    """Rename a file that is whole, once its bytes are on disk, and sync the folder."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    os.replace(part, target)
    with suppress(OSError):  # not every system opens and syncs folders
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Alone with a file that is there: who else wants to be waits. (Not on Windows.)"""
    with _alone(os.open(file_at(path), os.O_RDONLY)):
        yield


@contextmanager
def alone_with(path: str | os.PathLike[str]) -> Iterator[None]:
    """Alone with a place for a file, whether one is there or not: who else wants to be waits.

    The lock is on an empty file beside it, which stays, for the file itself is replaced. (Not on
    Windows.)"""
    target = file_at(path)
    beside = target.with_name(f"{_label(target)}.lock")
    with _alone(os.open(beside, os.O_RDWR | os.O_CREAT | _NO_LINKS, SECRET)):
        yield


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """Hold the lock of an open file, however long that takes to get; then close it."""
    keep(handle)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        let_go(handle)


def write_arrays(
    path: str | os.PathLike[str], kind: str, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]
) -> None:
    """Write arrays and facts (anything JSON takes) to ``path``; an earlier file there stays
    whole until the new one is."""
    buffer = io.BytesIO()
    try:
        header = json.dumps({"kind": kind, "version": _VERSION, **facts}).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidParameter(f"only what JSON takes can be saved: {problem}") from None
    everything: dict[str, Any] = {"facts": np.frombuffer(header, np.uint8), **arrays}
    np.savez(buffer, **everything)
    body = buffer.getvalue()
    with replacing(path, SECRET) as beside:
        beside.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)


def read_arrays(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """(arrays, facts) of a file written with the same kind; anything else is refused whole."""
    name = file_at(path)
    raw = name.read_bytes()
    if not raw.startswith(_MAGIC):
        raise InvalidState(f"{name} was not written by pglp_fast: give the path that was saved to")
    digest, body = raw[len(_MAGIC) : len(_MAGIC) + 32], raw[len(_MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != digest:
        raise InvalidState(
            f"{name} is damaged (its checksum does not match): restore it from a copy"
        )
    try:
        arrays = _unpacked(body)
        facts = json.loads(arrays.pop("facts").tobytes())
        version, found = facts["version"], facts["kind"]
    except Exception as problem:  # whatever a forged archive makes its readers raise
        raise InvalidState(
            f"{name} is damaged ({type(problem).__name__}: {problem}): restore it from a copy"
        ) from None
    if version != _VERSION:
        raise InvalidState(
            f"{name} has format version {brief(version)}, this release reads {_VERSION}: use the "
            "release that wrote it"
        )
    if found != kind:
        raise InvalidState(f"{name} holds a {found}, not a {kind}")
    return arrays, facts


def _unpacked(body: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an archive as ``np.savez`` writes it. No header can ask for more memory than
    the file has bytes."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
            raw = archive.read(member)
            start = io.BytesIO(raw)
            if np.lib.format.read_magic(start) != (1, 0):
                raise ValueError(f"{member.filename} is of another format")
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(start)
            flat = np.frombuffer(raw, dtype, offset=start.tell())
            if flat.size != math.prod(shape):
                raise ValueError(f"{member.filename} is cut off")
            array = flat.reshape(shape[::-1]).T if by_column else flat.reshape(shape)
            arrays[member.filename.removesuffix(".npy")] = array.copy()
    return arrays
