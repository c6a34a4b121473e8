"""Traces as they come: who was where at which step, in any order, with gaps of any length."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast.errors import InvalidTransition


@dataclass(frozen=True, eq=False)
class Events:
    """Observations of persons at steps. A step without one is silence: the belief moves on.

    Parameters
    ----------
    persons : array_like of int
        Number of the person of each event, which keys the noise: a person must keep its number.
    steps : array_like of int
        Number of the step, counted alike for all persons, such as from a common midnight.
    cells : array_like of int
        The location.

    Attributes
    ----------
    persons, steps : int64 array
    cells : int32 array
        As given.
    ids : int64 array
        The distinct persons, ascending.
    order : int64 array
        The events by person and step: ``cells[order]`` are the traces end to end.
    start : int64 array
        Trace of person ``ids[k]``: ``order[start[k] : start[k + 1]]``.
    """

    persons: NDArray[np.int64]
    steps: NDArray[np.int64]
    cells: check.Cells
    ids: NDArray[np.int64]
    order: NDArray[np.int64]
    start: NDArray[np.int64]

    def __init__(self, persons: ArrayLike, steps: ArrayLike, cells: ArrayLike):
        who = _numbers(persons, "persons", check.MAX_USER)
        when = _numbers(steps, "steps", check.MAX_TIME)
        where = _numbers(cells, "cells", check.MAX_LOCATIONS).astype(check.CELL)
        if not len(who) == len(when) == len(where):
            raise InvalidTransition(
                f"persons, steps and cells must be of one length, got {len(who)}, {len(when)} "
                f"and {len(where)}"
            )
        order = np.lexsort((when, who))
        same = (np.diff(who[order]) == 0) & (np.diff(when[order]) == 0)
        if same.any():
            e = order[1:][same][0]
            raise InvalidTransition(
                f"person {who[e]} has two events at step {when[e]} (one is event {e}): a person "
                "releases once a step, keep one of them"
            )
        ids, counts = np.unique(who, return_counts=True)
        fields = (who, when, where, ids, order, starts_of(counts))
        for name, values in zip(self.__dataclass_fields__, fields, strict=True):
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def of_array(cls, traces: NDArray[np.int32]) -> "Events":
        """The events of an array (users, T) of cells, -1 for missing; persons are its rows."""
        users, steps = np.nonzero(traces >= 0)
        return cls(users, steps, traces[users, steps])


def _numbers(values: ArrayLike, name: str, limit: int) -> NDArray[np.int64]:
    array = check.integers(values, name, InvalidTransition)
    if array.ndim != 1:
        raise InvalidTransition(f"{name} must be a 1-d array, got shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= limit):
        at = int(np.flatnonzero((array < 0) | (array >= limit))[0])
        raise InvalidTransition(f"{name}[{at}] = {array[at]} is not in 0..{limit - 1}")
    return np.array(array, np.int64)
