"""Geolife 1.3: a folder for each user, with a PLT file for each trajectory.

Six lines of header, then ``lat,lon,0,altitude in feet,days since 1899-12-30,date,time``; times are GMT.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from .. import _validate as check
from ..errors import InvalidTable
from ..progress import Progress
from .batch import Batch, Reading, join, settle
from .labels import Coded
from .report import Malformed
from .text import Layout, Source, batches
from .tracks import Tracks

_HEADER_LINES = 6
_PLT = Layout({"lat": 0, "lon": 1, "time": 5, "clock": 6}, fields=7, quoted=False)
_ROWS = 1 << 13  # most files are shorter


def read_geolife(
    folder: str | os.PathLike[str], *, users: Iterable[str] | None = None, on_error: str = "raise", progress: bool = False
) -> Tracks:
    """Fixes from the PLT files of Geolife, ``<user>/Trajectory/*.plt`` anywhere below the folder.

    Parameters
    ----------
    folder : such as "Geolife Trajectories 1.3", its "Data", or one user's folder
    users : names of user folders, such as ["000", "010"]; None for all
    on_error : a row that cannot be read: "raise" an error that says which file and line, or "skip" it and report it
    progress : show a line with the rate and the time left on standard error

    Returns
    -------
    Tracks with a trajectory column. Labels are the names of folders and files: user "000", trajectory "20081023025304".
    """
    check.choice(on_error, "on_error", ("raise", "skip"))
    found = {file: file.absolute().parent.parent.name for file in sorted(Path(folder).rglob("Trajectory/*.plt"))}
    wanted = set(found.values()) if users is None else set(users)
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


def _batches(files: dict[Path, str], reading: Reading, bar: Progress | None) -> Iterator[Batch]:
    labels = {"user": Coded.of(list(files.values())), "trajectory": Coded.of([file.stem for file in files])}
    reading.labellers |= {role: coded.source for role, coded in labels.items()}
    for k, (file, user) in enumerate(files.items()):
        with Source(file) as source:
            source.name = f"{user}/Trajectory/{file.name}"
            for batch in _rows(source, reading):
                codes = {role: np.full(len(batch.time), coded.codes[k], np.int32) for role, coded in labels.items()}
                yield replace(batch, codes=codes)
        if bar:
            bar.advance(1)


def _rows(source: Source, reading: Reading) -> Iterator[Batch]:
    header = [source.take_line() for _ in range(_HEADER_LINES)]
    if None not in header:
        yield from batches(source, _PLT, reading, _ROWS)
        return
    cut = Malformed(source.name, "line", source.line, "the file ends within its six lines of header")
    named = settle(reading, np.ones(1, np.bool_), lambda row: cut)
    nothing = np.empty(0, np.int64)
    yield Batch({}, {"lat": np.empty(0), "lon": np.empty(0)}, nothing, nothing, 1, named)
