"""Whose traces a model was fitted on, remembered so that releasing those very traces can be warned of.

For each user, a sum of 64-bit mixes of (time, place) of all fixes: whoever has the same fixes gets the same number, in any
order and from any kind of file. Users with few fixes are left out, so that no number can be traced back by trying places.
"""

import numpy as np
from numpy.typing import NDArray

from .._kernels import lines as kernels
from ..tracks import Tracks

_FEWEST = 8  # fixes of a user that is remembered
_MOST = 4096  # users that are: those with the lowest numbers, which is as good as at random


class Fingerprint:
    """Of a table that comes in batches."""

    def __init__(self) -> None:
        self._sums, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def add(self, tracks: Tracks) -> None:
        if not len(tracks):
            return
        users = int(tracks.user.codes.max()) + 1
        if users > len(self._sums):
            more = max(users, 2 * len(self._sums)) - len(self._sums)
            self._sums = np.append(self._sums, np.zeros(more, np.uint64))
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
        whole = np.isfinite(tracks.lat) & np.isfinite(tracks.lon) & ~np.isnat(tracks.time)
        codes = np.where(whole, tracks.user.codes, -1).astype(np.int64)
        words = [np.ascontiguousarray(v).view(np.uint64).copy() for v in (tracks.ms, tracks.lat, tracks.lon)]
        kernels.add_hashes(codes, *words, self._sums, self._counts)

    def users(self) -> NDArray[np.uint64]:
        """The numbers of all users with enough fixes, ascending."""
        return np.unique(self._sums[self._counts >= _FEWEST])

    def kept(self) -> list[str]:
        """What a model remembers."""
        return [f"{v:016x}" for v in self.users()[:_MOST].tolist()]


def shared(now: Fingerprint, remembered: list[str]) -> tuple[int, int]:
    """(users of the table that the model was fitted on, users that could be compared)."""
    old = np.array([int(v, 16) for v in remembered], np.uint64)
    new = now.users()
    if len(old) == _MOST:  # only the lowest are known
        new = new[new <= old.max()]
    return len(np.intersect1d(old, new)), len(new)
