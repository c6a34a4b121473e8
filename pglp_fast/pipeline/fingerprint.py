"""Which fixes a model was fitted on, remembered to warn of a release of those very traces.

For each fix a 64-bit mix of time and place, of which the lowest are kept, as good as a sample at
random: whoever has the same fixes, all or some of them, in any order and from any kind of file,
gets the same numbers. Such a number can be traced back by trying places, so it is no part of the
model, which is public: it is kept in a file beside it that only its owner can read. Share the model
without it."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.storage import SECRET, replacing
from pglp_fast.io import Tracks
from pglp_fast.io.fix_hashes import hash_fixes

_MOST = 1 << 16  # numbers that are kept
# share of fixes in common from which a model counts as fitted on the very traces: on a coarse grid
# strangers have some in common
OWN = 0.2


def beside(model: str | os.PathLike[str]) -> Path:
    """Where a model's users are remembered."""
    return Path(f"{os.fspath(model)}.users")


class Fingerprint:
    """Of a table that comes in batches."""

    def __init__(self) -> None:
        self.numbers: NDArray[np.uint64] = np.zeros(0, np.uint64)  # the lowest, ascending

    def add(self, tracks: Tracks) -> None:
        self.merge(hash_fixes(tracks))

    def merge(self, each: NDArray[np.uint64]) -> None:
        """More numbers, such as those of another part of the table."""
        if len(self.numbers) == _MOST:
            each = each[each < self.numbers[-1]]
        found = np.sort(np.concatenate([self.numbers, each]))  # np.unique hashes, and is slower
        new = np.ones(len(found), np.bool_)
        new[1:] = found[1:] != found[:-1]
        self.numbers = found[new][:_MOST]

    def keep(self, model: str | os.PathLike[str]) -> Path:
        """Remember beside a model, for its owner only."""
        path = beside(model)
        with replacing(path, SECRET) as part:
            part.write_text(json.dumps([f"{v:016x}" for v in self.numbers.tolist()]))
        return path

    def share_of(self, model: Any) -> float | None:
        """Share of these fixes that the model at a path was fitted on, of those compared; None
        where nobody can tell."""
        try:
            old = np.array([int(v, 16) for v in json.loads(beside(model).read_text())], np.uint64)
        except (OSError, ValueError, TypeError, OverflowError):
            return None
        new = self.numbers
        for known in (old, new):  # above the highest that is kept, nothing is known
            if len(known) == _MOST:
                new = new[new <= known[-1]]
        return len(np.intersect1d(old, new)) / max(1, len(new))
