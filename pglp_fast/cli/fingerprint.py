"""Whose traces a model was fitted on, remembered so that releasing those very traces can be warned of.

For each fix a 64-bit mix of time and place, of which the lowest are kept, as good as a sample at random: whoever has the same
fixes, all or some of them, in any order and from any kind of file, gets the same numbers. Such a number can be traced
back by trying places, so it is no part of the model, which is public: it is kept in a file beside it that only its owner
can read. Share the model without it.
"""

import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._kernels import lines as kernels
from ..tracks import Tracks

_MOST = 1 << 16  # numbers that are kept


def beside(model: str | os.PathLike[str]) -> Path:
    """Where a model's users are remembered."""
    return Path(f"{os.fspath(model)}.users")


class Fingerprint:
    """Of a table that comes in batches."""

    def __init__(self) -> None:
        self.numbers: NDArray[np.uint64] = np.zeros(0, np.uint64)  # the lowest, ascending

    def add(self, tracks: Tracks) -> None:
        whole = np.isfinite(tracks.lat) & np.isfinite(tracks.lon) & ~np.isnat(tracks.time)
        words = [np.ascontiguousarray(v[whole]).view(np.uint64).copy() for v in (tracks.ms, tracks.lat, tracks.lon)]
        n = len(words[0])
        each, counts = np.zeros(n, np.uint64), np.zeros(n, np.int64)
        kernels.add_hashes(np.arange(n), *words, each, counts)
        if len(self.numbers) == _MOST:
            each = each[each < self.numbers[-1]]
        self.numbers = np.unique(np.concatenate([self.numbers, each]))[:_MOST]

    def keep(self, model: str | os.PathLike[str]) -> Path:
        """Remember beside a model, for its owner only."""
        path = beside(model)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump([f"{v:016x}" for v in self.numbers.tolist()], file)
        os.replace(part, path)
        return path


def shared(now: Fingerprint, model: str | os.PathLike[str]) -> tuple[int, int] | None:
    """(fixes of the table that the model was fitted on, fixes compared); None where nothing is remembered."""
    try:
        old = np.array([int(v, 16) for v in json.loads(beside(model).read_text())], np.uint64)
    except (OSError, ValueError, TypeError, OverflowError):
        return None
    new = now.numbers
    for known in (old, new):  # above the highest that is kept, nothing is known
        if len(known) == _MOST:
            new = new[new <= known[-1]]
    return len(np.intersect1d(old, new)), len(new)
