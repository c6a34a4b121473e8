"""Events as arrays, for what follows persons step by step."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast.adversary.events import Events
from pglp_fast.errors import TooLarge

_MOST = 20_000_000  # entries of an array of traces


class Laid(NamedTuple):
    """Events as arrays (persons, T), -1 where there is none, and the period of each column."""

    cells: NDArray[np.int32]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    periods: NDArray[np.int64] | None

    def array(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        """Other cells of the same events."""
        out = np.full(self.cells.shape, -1, np.int32)
        out[self.row, self.column] = cells
        return out

    def spread(self, chosen: dict[str, Any]) -> dict[str, Any]:
        """Policies and epsilons of the events, in the same places; elsewhere they are not asked
        for."""
        out = {}
        for name, values in chosen.items():
            out[name] = np.full(self.cells.shape, values[0], values.dtype)
            out[name][self.row, self.column] = values
        return out


def as_array(events: Events, cycle: NDArray[np.int64] | None = None) -> Laid:
    """Traces flush right; with periods, each person's days are those of the columns."""
    day = 1 if cycle is None else len(cycle)
    last = events.steps[events.order[events.start[1:] - 1]]
    first = events.steps[events.order[events.start[:-1]]]
    behind = (day - 1 - last % day) % day  # columns behind a trace's end
    behind -= behind.min()
    width = int((last - first + 1 + behind).max())
    if width * len(last) > _MOST:
        raise TooLarge(
            f"{len(last):,} traces of up to {width:,} steps, silence counted, are too many for "
            "one array: take fewer with --traces"
        )
    row = np.searchsorted(events.ids, events.persons)
    column = width - 1 - behind[row] - (last[row] - events.steps)
    periods = None
    if cycle is not None:
        end = int(last[0] + behind[0])
        periods = cycle[(end - (width - 1) + np.arange(width)) % day]
    empty = np.full((len(last), width), -1, np.int32)
    laid = Laid(empty, row, column, periods)
    return laid._replace(cells=laid.array(events.cells))
