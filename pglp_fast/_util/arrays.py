"""Arrays as kernels take them; rows of different lengths laid end to end; runs of equal entries."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def for_kernels(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The array in rows, aligned, writeable and of this dtype; a copy only where it is not.

    Kernels are compiled for one layout. Read-only arrays (columns of pandas), strided ones and
    those of the other byte order would compile them again, or be refused."""
    return np.require(np.asarray(array), dtype, ["C", "A", "W"])


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row starts, and where the last one ends."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.add.accumulate(lengths, dtype=np.int64, out=out[1:])
    return out


def end_to_end(parts: Collection[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """Arrays of several parts, those of a kind end to end."""
    if len(parts) == 1:
        return next(iter(parts))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def place_in_run(values: NDArray[Any]) -> NDArray[np.int64]:
    """How many equal entries stand right before each entry."""
    begins = np.flatnonzero(np.diff(values, prepend=values[:1] - 1))
    return np.arange(len(values)) - np.repeat(begins, np.diff(np.append(begins, len(values))))


def ranges_of(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... of each range, end to end."""
    ends = starts_of(lengths)
    return np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])


class Growing:
    """A one-dimensional array that grows at its end, by doubling.

    ``room`` is the array with what is free behind: who holds it reads on, whatever is added."""

    def __init__(self, dtype: Any):
        self.room: NDArray[Any] = np.empty(64, dtype)
        self.used = 0

    @property
    def array(self) -> NDArray[Any]:
        """What was added."""
        return self.room[: self.used]

    def extend(self, part: NDArray[Any]) -> None:
        n = self.used + len(part)
        if n > len(self.room):
            larger = np.empty(max(n, 2 * len(self.room)), self.room.dtype)
            larger[: self.used] = self.array
            self.room = larger
        self.room[self.used : n] = part
        self.used = n
