"""The order in which users are taken: those who are near each other, one after the other.

A user's step reads a few dozen places of the model and of the policy. Where the one before was at
the same places, they are still in the processor's cache."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import ranges_of, starts_of

_WORTH = 8  # events a user from which on an order pays: the draws of a user are made together

Ints = NDArray[np.int64]


def by_place(start: Ints, cells: NDArray[np.int32]) -> Ints:
    """Users by where they are first; nothing, where they have too few events for that to pay.

    Events of user u: start[u] .. start[u + 1] - 1."""
    users = len(start) - 1
    if users < 2 or len(cells) < _WORTH * users:
        return np.empty(0, np.int64)
    return np.argsort(cells[np.minimum(start[:-1], len(cells) - 1)], kind="stable")


def rows_of_users(order: Ints, lengths: Ints, *rows: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """(where the rows of each user begin, the rows one user after the other) of rows that lie end
    to end in this order; ``lengths``: how many rows each user has."""
    start = starts_of(lengths)
    if order.size:
        given = np.empty_like(order)
        given[order] = starts_of(lengths[order])[:-1]
        at = ranges_of(given, lengths)
        rows = tuple(some[at] for some in rows)
    return start, *rows
