"""Geolife 1.3: a folder for each user, with a PLT file for each trajectory.

Six lines of header, then ``lat,lon,0,altitude in feet,days since 1899-12-30,date,time``; times are
GMT."""

import os
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from pglp_fast._util import validate as check
from pglp_fast._util.progress import Progress
from pglp_fast.errors import InvalidTable

from .batch import Batch, Reading, join, settle
from .labels import Coded
from .parse import parse
from .report import Malformed
from .source import Source
from .text import Layout
from .tracks import Tracks

_HEADER_LINES = 6
_PLT = Layout.of_roles(("lat", "lon", "zero", "altitude", "days", "time", "clock"), quoted=False)
_AT_ONCE = 1 << 20  # bytes


def read_geolife(
    folder: str | os.PathLike[str],
    *,
    users: Iterable[str | int] | None = None,
    on_error: str = "raise",
    progress: bool = False,
) -> Tracks:
    """Fixes from the PLT files of Geolife, ``<user>/Trajectory/*.plt`` anywhere below the folder.

    Parameters
    ----------
    folder : such as "Geolife Trajectories 1.3", its "Data", or one user's folder
    users : names of user folders, such as ["000", "010"], or their numbers, [0, 10]; None for all
    on_error : a row that cannot be read: "raise" an error that says which file and line, or "skip"
        it and report it
    progress : show a line with the rate and the time left on standard error

    Returns
    -------
    Tracks with a trajectory column. Labels are the names of folders and files: user "000",
    trajectory "20081023025304"."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    found = {
        file: file.absolute().parent.parent.name
        for file in sorted(Path(folder).rglob("Trajectory/*.plt"))
    }
    wanted = set(found.values()) if users is None else {_folder(user) for user in users}
    missing = wanted - set(found.values())
    if missing:
        raise InvalidTable(f"{os.fspath(folder)} has no trajectories of user {min(missing)!r}")
    files = {file: user for file, user in found.items() if user in wanted}
    if not files:
        raise InvalidTable(f"{os.fspath(folder)} holds no <user>/Trajectory/*.plt files")
    reading = Reading(on_error, "UTC")
    bar = Progress(len(files), "files") if progress else None
    tracks = join(_batches(files, reading, bar), reading)
    if bar:
        bar.close()
    return tracks


def _folder(user: str | int) -> str:
    """The folder of a user: numbers have three digits there."""
    return user if isinstance(user, str) else f"{check.whole(user, 'a user', 0):03d}"


def _batches(files: dict[Path, str], reading: Reading, bar: Progress | None) -> Iterator[Batch]:
    labels = {
        "user": Coded.of(list(files.values())),
        "trajectory": Coded.of([file.stem for file in files]),
    }
    reading.labellers |= {role: coded.source for role, coded in labels.items()}
    bodies = _Bodies()
    for k, (file, user) in enumerate(files.items()):
        with Source(file) as source:
            source.name = f"{user}/Trajectory/{file.name}"
            cut = None in [source.take_line() for _ in range(_HEADER_LINES)]
            for block in () if cut else source.blocks():
                bodies.add(k, source.name, *block)
                if bodies.size > _AT_ONCE:
                    yield bodies.parse(labels, reading)
                    bodies = _Bodies()
        if cut:
            yield bodies.parse(labels, reading)
            bodies = _Bodies()
            yield _cut_off(source, reading)
        if bar:
            bar.advance(1)
    yield bodies.parse(labels, reading)


class _Bodies:
    """Lines of several files, which are read at once: most files are short."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._firsts = [1]  # line at which each block starts, and at which the next will
        self._files: list[tuple[int, str, int]] = []  # of each block: file, its name, line there
        self.size = 0

    def add(self, file: int, name: str, block: bytes, line: int, lines: int) -> None:
        self._blocks.append(block if block.endswith(b"\n") else block + b"\n")
        self._firsts.append(self._firsts[-1] + lines)
        self._files.append((file, name, line))
        self.size += len(block)

    def parse(self, labels: dict[str, Coded], reading: Reading) -> Batch:
        """All rows, labelled by their files."""
        block = b"".join(self._blocks)
        kinds = _PLT.kinds(block.partition(b"\n")[0].decode("utf-8", "replace"))
        raw = _PLT.read(block, 1, self._firsts[-1] - 1, kinds)
        batch = parse(raw, "", reading, self._place)
        which = np.searchsorted(self._firsts, batch.number, side="right") - 1
        files = np.array([file for file, _, _ in self._files], np.int64)[which]
        codes = {role: coded.codes[files] for role, coded in labels.items()}
        return replace(batch, codes=codes)

    def _place(self, line: int) -> tuple[str, int]:
        """File, and line there."""
        block = bisect(self._firsts, line) - 1
        _, name, first = self._files[block]
        return name, first + line - self._firsts[block]


def _cut_off(source: Source, reading: Reading) -> Batch:
    """A file that ends within its header counts as one row, malformed."""
    reason = "the file ends within its six lines of header"
    cut = Malformed(source.name, "line", source.line, reason)
    named = settle(reading, np.ones(1, np.bool_), lambda row: cut)
    nothing, nowhere = np.empty(0, np.int64), np.empty(0)
    codes = {role: np.empty(0, np.int32) for role in ("user", "trajectory")}
    return Batch(codes, {"lat": nowhere, "lon": nowhere}, nothing, nothing, nothing, 1, named)
