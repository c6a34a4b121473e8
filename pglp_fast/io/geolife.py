"""Geolife 1.3: a folder for each user, with a PLT file for each trajectory.

Six lines of header, then ``lat,lon,0,altitude in feet,days since 1899-12-30,date,time``; times are
GMT."""

import os
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.progress import Progress
from pglp_fast.errors import InvalidTable

from .fix_batches import Batch, RawBatch, Reading, join, settle
from .geolife_modes import read_modes
from .labels import Coded, Labeller, canonical
from .parse import parse
from .reading_report import Malformed
from .text import Layout
from .text_lines import Source
from .tracks import Tracks

HEADER_LINES = 6
CUT_OFF = "the file ends within its six lines of header"
_PLT = Layout.of_roles(("lat", "lon", "zero", "altitude", "days", "time", "clock"), quoted=False)
_WITH_HEIGHT = replace(_PLT, at={**_PLT.at, "altitude": 3})
_AT_ONCE = 1 << 20  # bytes


def read_geolife(
    folder: str | os.PathLike[str],
    *,
    users: Iterable[str | int] | None = None,
    modes: bool = False,
    on_error: str = "raise",
    progress: bool = False,
) -> Tracks:
    """Fixes from the PLT files of Geolife, ``<user>/Trajectory/*.plt`` anywhere below the folder.

    Parameters
    ----------
    folder : such as "Geolife Trajectories 1.3", its "Data", or one user's folder
    users : names of user folders, such as ["000", "010"], or their numbers, [0, 10]; None for all
    modes : read how people travelled from ``<user>/labels.txt``, as the column "category": "walk",
        "bus", ...; nothing where the file does not say, or there is none
    on_error : a row that cannot be read: "raise" an error that says which file and line, or "skip"
        it and report it
    progress : show a line with the rate and the time left on standard error

    Returns
    -------
    Tracks with a trajectory column. Labels are the names of folders and files: user "000",
    trajectory "20081023025304"."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    found = {file: user.name for user in user_folders(folder) for file in files_of(user)}
    wanted = set(found.values()) if users is None else {_folder(user) for user in users}
    missing = wanted - set(found.values())
    if missing:
        raise InvalidTable(f"{os.fspath(folder)} has no trajectories of user {min(missing)!r}")
    files = {file: user for file, user in found.items() if user in wanted}
    if not files:
        raise InvalidTable(f"{os.fspath(folder)} holds no <user>/Trajectory/*.plt files")
    reading = Reading(on_error, "UTC")
    bar = Progress(len(files), "files", shown=progress)
    tracks = join(_batches(files, reading, bar), reading)
    bar.close()
    return _with_modes(tracks, files) if modes else tracks


def user_folders(folder: str | os.PathLike[str]) -> list[Path]:
    """Folders of users below a folder, or itself."""
    return sorted(
        {file.absolute().parent.parent for file in Path(folder).rglob("Trajectory/*.plt")}
    )


def files_of(user: Path) -> list[Path]:
    """The trajectories of a user's folder."""
    return sorted(user.glob("Trajectory/*.plt"))


def _with_modes(tracks: Tracks, files: dict[Path, str]) -> Tracks:
    """With the column of how people travelled."""
    labeller, user = Labeller("text"), tracks.user.codes
    mode = np.full(len(tracks), -1, np.int32)
    for folder in sorted({file.parent.parent for file in files}):
        known = read_modes(folder)
        if known.mode:
            at = np.flatnonzero(
                user == int(np.flatnonzero(tracks.users == canonical(folder.name))[0])
            )
            spell = known.at(tracks.ms[at])
            mode[at] = labeller.number(known.mode, spell)
    return replace(tracks, columns={**tracks.columns, "category": Coded(mode, labeller)})


def _folder(user: str | int) -> str:
    """The folder of a user: numbers have three digits there."""
    return user if isinstance(user, str) else f"{check.whole(user, 'a user', 0):03d}"


def _batches(files: dict[Path, str], reading: Reading, bar: Progress) -> Iterator[Batch]:
    labels = {
        "user": Coded.of(list(files.values())),
        "trajectory": Coded.of([file.stem for file in files]),
    }
    reading.labellers |= {role: coded.source for role, coded in labels.items()}
    for found in read_bodies(files, done=bar.advance):
        yield (
            _cut_off(found, reading)
            if isinstance(found, Malformed)
            else found.parse(labels, reading)
        )


def read_bodies(
    files: Iterable[Path],
    advance: Callable[[int], None] = lambda n: None,
    done: Callable[[int], None] = lambda n: None,
) -> Iterator["Bodies | Malformed"]:
    """Lines of some files at a time; of one that ends within its header, what to say of it.

    ``advance``, ``done``: told of bytes and of files that were read."""
    bodies = Bodies()
    for k, file in enumerate(files):
        with Source(file, advance) as source:
            source.name = f"{file.parent.parent.name}/Trajectory/{file.name}"
            if not source.skip(HEADER_LINES):
                yield bodies
                yield Malformed(source.name, "line", source.line, CUT_OFF)
                bodies = Bodies()
            for block in source.blocks():
                bodies.add(k, source.name, *block)
                if bodies.full:
                    yield bodies
                    bodies = Bodies()
        done(1)
    yield bodies


class Bodies:
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

    @property
    def full(self) -> bool:
        """Whether these are enough to be read."""
        return self.size > _AT_ONCE

    def raw(self, layout: Layout = _WITH_HEIGHT) -> RawBatch:
        """All rows, numbered from 1."""
        block = b"".join(self._blocks)
        kinds = layout.kinds(block.partition(b"\n")[0].decode("utf-8", "replace"))
        return layout.read(block, 1, self._firsts[-1] - 1, kinds)

    def files(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The file of each row."""
        which = np.searchsorted(self._firsts, numbers, side="right") - 1
        return np.array([file for file, _, _ in self._files], np.int64)[which]

    def parse(self, labels: dict[str, Coded], reading: Reading) -> Batch:
        """All rows, labelled by their files."""
        batch = parse(self.raw(_PLT), "", reading, self.place)
        files = self.files(batch.number)
        codes = {role: coded.codes[files] for role, coded in labels.items()}
        return replace(batch, codes=codes)

    def place(self, line: int) -> tuple[str, int]:
        """File, and line there."""
        block = bisect(self._firsts, line) - 1
        _, name, first = self._files[block]
        return name, first + line - self._firsts[block]


def _cut_off(file: Malformed, reading: Reading) -> Batch:
    """A file that ends within its header counts as one row, malformed."""
    named = settle(reading, np.ones(1, np.bool_), lambda row: file)
    nothing, nowhere = np.empty(0, np.int64), np.empty(0)
    codes = {role: np.empty(0, np.int32) for role in ("user", "trajectory")}
    return Batch(codes, {"lat": nowhere, "lon": nowhere}, nothing, nothing, nothing, 1, named)
