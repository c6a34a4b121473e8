"""What persons kept, row by row: of nobody yet, of some, and of several one behind the other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.records import NOT_STARTED, LedgerRows, words_for
from pglp_fast._util.arrays import ranges_of, starts_of

Ints = NDArray[np.int64]


def unstarted_rows(persons: int, policies: int) -> LedgerRows:
    """Of persons who have released nothing."""
    nothing = np.zeros(persons + 1, np.int64)
    return LedgerRows(
        np.full(persons, NOT_STARTED, np.int64), nothing, np.empty(0, np.int32), nothing,
        np.empty((0, 2), np.int32), np.zeros((persons, words_for(policies)), np.uint64),
    )  # fmt: skip


def take_rows(rows: LedgerRows, persons: Ints) -> LedgerRows:
    """Of these persons, in this order."""
    length, edges = np.diff(rows.start)[persons], np.diff(rows.edge_start)[persons]
    return LedgerRows(
        rows.kind[persons], starts_of(length), rows.cells[ranges_of(rows.start[persons], length)],
        starts_of(edges), rows.edges[ranges_of(rows.edge_start[persons], edges)],
        rows.used[persons],
    )  # fmt: skip


def join_rows(rows: Sequence[LedgerRows]) -> LedgerRows:
    """Of several groups of persons, one behind the other."""
    return LedgerRows(
        np.concatenate([r.kind for r in rows]),
        starts_of(np.concatenate([np.diff(r.start) for r in rows])),
        np.concatenate([r.cells for r in rows]),
        starts_of(np.concatenate([np.diff(r.edge_start) for r in rows])),
        np.concatenate([r.edges for r in rows]),
        np.concatenate([r.used for r in rows]),
    )
