"""How kernels are compiled, and where compiled kernels are kept: said once, here.

``nogil``: the facade runs kernels side by side in plain threads. ``error_model="numpy"``: a
division by zero gives inf, as the geometry expects, and no hidden branch. No fastmath: infinities
and the order of sums mean something in this package.

A second process compiles nothing: compiled kernels are kept on disk. Numba's own cache follows
only the file that a kernel is in, so it serves a stale kernel after a change in one that it calls.
Here every kernel file has a folder named by a digest of its source and of all kernel sources that
it imports. Each kernel and signature has a file of its own, written whole and renamed: there is no
index that two processes could both change, and a damaged file is compiled again. Of several
processes that need a kernel at the same time one compiles it, and the others wait and read it. The
folders lie in ``NUMBA_CACHE_DIR`` where that is set, else beside this package, else in the user's
cache folder.
"""

import contextlib
import hashlib
import os
import pickle
import re
import shutil
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from .linking import Kernel

# _nrt: said aloud, else a kernel would take it from whichever kernel was the first to call it
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": True}
_SOURCES = Path(__file__).parents[1]
# Folders of other digests go when nobody used them for a month, or when these many of the same
# kernel file are newer: every edit makes another.
_KEPT_SECONDS = 30 * 86400
_KEPT_FOLDERS = 4
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b[^(\n]*(?:\([^)]*\))?", re.MULTILINE)


def source_digests(sources: Path = _SOURCES) -> dict[Path, str]:
    """For each kernel file, a digest of what its compiled code depends on: its source and those it
    imports, the compiler, whether that checks bounds, and how much it optimises.

    Any word of an import that names a kernel file counts as importing it: rather one too many.
    """
    texts = {path: path.read_bytes() for path in sorted(sources.rglob("*.py"))}
    named: dict[bytes, set[Path]] = {}
    for path in texts:
        name = path.parent.name if path.stem == "__init__" else path.stem
        named.setdefault(name.encode(), set()).add(path)
    imported = {
        path: set().union(
            *(named.get(w, ()) for line in _IMPORT.findall(text) for w in re.findall(rb"\w+", line))
        )
        for path, text in texts.items()
    }
    how = bool(numba.config.BOUNDSCHECK), int(numba.config.OPT)
    made_by = repr((numba.__version__, llvmlite.__version__, *how))
    each = {path: hashlib.sha256(text).digest() for path, text in texts.items()}
    found = {}
    for path in texts:
        needed, new = {path}, {path}
        while new:
            new = set().union(*(imported[p] for p in new)) - needed
            needed |= new
        whole = hashlib.sha256(made_by.encode())
        for other in sorted(needed):
            whole.update(other.relative_to(sources).as_posix().encode() + each[other])
        found[path] = whole.hexdigest()[:16]
    return found


def _find_parent() -> Path | None:
    """The folder that holds the folders of all kernel files; None where none can be written to."""
    if numba.config.DISABLE_JIT:
        return None
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR) / "pglp_fast"]
    else:
        own = Path(AppDirs(appname="pglp_fast", appauthor=False).user_cache_dir)
        # without a home folder, "~" stays as it is: no folder of that name in the current one
        places = [_SOURCES / "__pycache__"] + [own] * own.is_absolute()
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
        except OSError:
            continue
        return place
    with contextlib.suppress(RuntimeWarning):  # where warnings are errors, importing still works
        warnings.warn(
            "no folder for compiled kernels can be written to, so every process compiles them "
            "again: set NUMBA_CACHE_DIR",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _make_folder(path: Path) -> Path | None:
    """The folder of a kernel file, made if need be and marked as used; the oldest ones go.

    A process that still uses one of those compiles again: a missing file is as good as one never
    written.
    """
    folder = FOLDERS.get(path)
    with contextlib.suppress(OSError):
        if folder is not None and not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            same = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*")
            used = sorted(((f.stat().st_mtime, f) for f in same if f != folder), reverse=True)
            for rank, (when, other) in enumerate(used):
                if rank >= _KEPT_FOLDERS - 1 or time.time() - when > _KEPT_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)
        elif folder is not None and time.time() - folder.stat().st_mtime > 86400:
            os.utime(folder)
    return folder


_PARENT = _find_parent()
# the folder of each kernel file; empty where nothing is kept
FOLDERS = {
    path: _PARENT / f"kernels-{path.parent.name}-{path.stem}-{digest}"
    for path, digest in (source_digests() if _PARENT else {}).items()
}

# A fork waits until nothing is being compiled: a child would inherit a lock that nobody opens, and
# a compiler in the middle of its work.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def is_compiled(name: str) -> bool:
    """Whether a kernel, such as "run.run_users" (its file and its name), needs no compiling:
    it was compiled before on this machine, or is never compiled."""
    if numba.config.DISABLE_JIT:
        return True
    return any(f for folder in FOLDERS.values() for f in folder.glob(f"{name}-*"))


class _Locator:
    """Tells Numba where the files of one kernel lie."""

    def __init__(self, function: Any, file: str):
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self._folder = _make_folder(Path(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_Locator":
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)


def _layout(given: Any) -> Any:
    """A type with the names of its fields: two named tuples of the same types differ in those."""
    inner = tuple(_layout(t) for t in getattr(given, "types", ()))
    return str(given), getattr(given, "fields", ()), inner


class _Files:
    """Compiled code of one kernel: a file for each signature, which begins with its checksum."""

    def __init__(self, stem: Path):
        self.stem = stem

    def _path(self, key: Any) -> Path:
        signature, target, code = key
        whole = repr(([_layout(t) for t in signature], target, code))
        return Path(f"{self.stem}-{hashlib.sha256(whole.encode()).hexdigest()[:32]}")

    def load(self, key: Any) -> Any:
        text = self._path(key).read_bytes()
        whole = hashlib.sha256(text[32:]).digest() == text[:32]
        return pickle.loads(text[32:]) if whole else None

    def save(self, key: Any, data: Any) -> None:
        path, text = self._path(key), dumps(data)
        beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
        try:
            beside.write_bytes(hashlib.sha256(text).digest() + text)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self.stem.parent.glob(f"{self.stem.name}-*"):
            path.unlink(missing_ok=True)


class _Kept(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own attribute)


class _Cache(FunctionCache):
    """Numba's cache of a kernel, with our files. What cannot be read or written is compiled."""

    _impl_class = _Kept

    def __init__(self, function: Any):
        super().__init__(function)
        self._cache_file = _Files(Path(self.cache_path, self._impl.filename_base))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Whatever is wrong with the file (gone, cut off, of an older Numba), compiling helps.
        with contextlib.suppress(Exception):
            return super().load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other process reads or compiles this kernel meanwhile, where files can be locked.

        A process holds one such lock at a time, because kernels that Python calls do not call each
        other; whoever dies lets go of it."""
        stem = self._cache_file.stem
        handle = None
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            path = stem.with_name(f".{stem.name}.lock")
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call with each signature, and keep on disk what Python calls.

    Only kernels of this package are kept: the digests do not know the sources of others.
    """
    return _kernel(function, _OPTIONS)


def bare(function: Callable[..., Any]) -> Any:
    """A ``kernel`` that makes no array and returns none, for the loops that take most of the time.

    It does not count references to arrays, which its caller holds anyway: counting them at every
    call took a third of the time of a step, as a work space has some forty of them.
    """
    return _kernel(function, {**_OPTIONS, "_nrt": False})


def _kernel(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    if numba.config.DISABLE_JIT:
        # compiled integers wrap silently, as ChaCha20 and hashes want; NumPy's scalars would warn
        return np.errstate(over="ignore")(function)
    kept = Path(function.__code__.co_filename) in FOLDERS
    return Kernel(function, options, _Cache(function) if kept else None)
