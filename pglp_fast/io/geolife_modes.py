"""Geolife's ``labels.txt``: how a user travelled, from when to when.

A line of names, then ``start time, end time, transportation mode`` between tabs; times are GMT."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.times import NO_TIME
from pglp_fast.errors import InvalidTable

from .text_lines import Source
from .values import read_times

pa = Later("pyarrow")


class Modes(NamedTuple):
    """Spells of a user, by their starts: ms since 1970, the last one included.

    Attributes
    ----------
    start, end : int array
    mode : list of str
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    mode: list[str]

    def at(self, ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """The spell that each moment is in; -1 for none. Of two, the one that began later."""
        spell = np.searchsorted(self.start, ms, side="right") - 1
        on = (spell >= 0) & (ms != NO_TIME)
        on[on] = ms[on] <= self.end[spell[on]]
        return np.where(on, spell, -1)

    def names(self, ms: NDArray[np.int64]) -> NDArray[np.object_]:
        """The mode at each moment; None for none."""
        return np.array([*self.mode, None], object)[self.at(ms)]


def read_modes(folder: Path) -> Modes:
    """What the folder of a user says; no spells where it has no ``labels.txt``."""
    path = folder / "labels.txt"
    if not path.is_file():
        return Modes(np.empty(0, np.int64), np.empty(0, np.int64), [])
    name, rows = f"{folder.name}/labels.txt", list[tuple[int, list[str]]]()
    with Source(path) as source:
        source.take_line()  # names
        while (line := source.take_line()) is not None:
            fields = [field.strip() for field in line.split("\t")]
            if not line.strip():
                continue
            if len(fields) != 3 or not fields[2]:
                raise InvalidTable(
                    f"{name}, line {source.line - 1}: must be start, end and mode between tabs"
                )
            rows.append((source.line - 1, fields))
    times = []
    for k in range(2):
        ms, bad = read_times(pa.array([fields[k] for _, fields in rows], pa.string()), "UTC")
        off = np.flatnonzero(bad | (ms == NO_TIME))
        if off.size:
            line, fields = rows[off[0]]
            raise InvalidTable(f"{name}, line {line}: {fields[k]!r} is not a time")
        times.append(ms)
    order = np.argsort(times[0], kind="stable")
    modes = [rows[k][1][2] for k in order.tolist()]
    return Modes(times[0][order], times[1][order], modes)
