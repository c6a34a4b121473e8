"""Rows of a table as steps of traces: the rule that ``release`` and ``attack`` share.

Steps are counted from 1970-01-01 UTC in the model's duration. The first row of a user in a step is released; further rows in
the same step repeat that release, which costs nothing and tells nothing new. Steps without a row in between are missing: the
adversary's belief moves on, nothing is released. After more than ``max_missing`` of them the belief starts again from the prior,
which rules out nothing that the steps in between would have allowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .world import DAY_MS

Ints = NDArray[np.int64]
MAX_MISSING = 12


@dataclass(frozen=True)
class Steps:
    """Rows laid out as traces.

    Attributes
    ----------
    rows : the rows that are released, by user and time
    trace : number of the trace of each, ascending
    at : which step of its trace each is
    follows : of every row given, the number in ``rows`` of the one that speaks for its step; -1 for rows left out
    over : of every row given, whether it is left out because the user's budget is spent
    lengths, last : steps of each trace, and the absolute number of its last step
    user : of each trace
    """

    rows: Ints
    trace: Ints
    at: Ints
    follows: Ints
    over: NDArray[np.bool_]
    lengths: Ints
    last: Ints
    user: Ints


def lay_out(user: NDArray[np.int32], ms: Ints, step_ms: int, max_missing: int, allowed: int | None = None) -> Steps:
    """Traces of rows that all have a user, a time and a cell; each user may release ``allowed`` times."""
    n = len(user)
    order = np.lexsort((ms, user))  # stable: rows of one moment in the order of the table
    who, step = user[order].astype(np.int64), ms[order] // step_ms
    leads = np.ones(n, np.bool_)
    leads[1:] = (who[1:] != who[:-1]) | (step[1:] != step[:-1])
    number = np.cumsum(leads) - 1  # of the lead of each row
    lead_at = np.flatnonzero(leads)
    who, step = who[lead_at], step[lead_at]
    kept = np.ones(len(lead_at), np.bool_)
    if allowed is not None and len(lead_at):
        begins = np.flatnonzero(np.diff(who, prepend=-1))
        kept = np.arange(len(who)) - np.repeat(begins, np.diff(np.append(begins, len(who)))) < allowed
    new_number = np.where(kept, np.cumsum(kept) - 1, -1)
    follows = np.empty(n, np.int64)
    follows[order] = new_number[number] if n else number
    over = follows < 0
    rows, who, step = order[lead_at][kept], who[kept], step[kept]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (who[1:] != who[:-1]) | (step[1:] - step[:-1] - 1 > max_missing)
    begin = np.flatnonzero(fresh)
    end = np.append(begin[1:], len(rows)) - 1 if begin.size else begin
    trace = np.cumsum(fresh) - 1
    lengths = step[end] - step[begin] + 1
    return Steps(rows, trace, step - step[begin][trace], follows, over, lengths, step[end], who[begin])


@dataclass(frozen=True)
class Block:
    """Traces released together: an array flush right, -1 in front (before a user's first row nothing happens).

    ``where``: which rows of ``Steps.rows`` the entries (row, column) are.
    """

    traces: Ints
    width: int
    where: Ints
    row: Ints
    column: Ints
    periods: Ints | None

    def array(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        """(traces, width) with the cell of each row of ``Steps.rows``, -1 for missing."""
        out = np.full((len(self.traces), self.width), -1, np.int32)
        out[self.row, self.column] = cells[self.where]
        return out


def blocks(steps: Steps, step_ms: int, periods: int, ahead_ms: int, most: int) -> Iterator[Block]:
    """All traces, in blocks of about ``most`` entries.

    A trace of L steps ends an array of 2^k >= L columns: the step that a row has there, which numbers its draw, is a
    function of the trace alone, not of the block it is in. With several periods, traces that end at the same time of day go
    together.
    """
    width = 1 << np.ceil(np.log2(np.maximum(steps.lengths, 1))).astype(np.int64)
    width = np.where(width < steps.lengths, 2 * width, width)
    day = DAY_MS // step_ms if periods > 1 else 1
    phase = steps.last % day
    order = np.lexsort((phase, width))
    starts = np.append(np.searchsorted(steps.trace, np.arange(len(steps.lengths))), len(steps.rows))
    changes = np.flatnonzero((np.diff(width[order]) != 0) | (np.diff(phase[order]) != 0)) + 1
    alike = np.concatenate([[0], changes, [len(order)]]).tolist()
    pieces = [
        (a, min(a + most // int(width[order[low]]) + 1, high))
        for low, high in pairwise(alike)
        if high > low
        for a in range(low, high, most // int(width[order[low]]) + 1)
    ]
    for a, b in pieces:
        w, p = int(width[order[a]]), int(phase[order[a]])
        traces = order[a:b]
        count = starts[traces + 1] - starts[traces]
        offset = np.concatenate([[0], np.cumsum(count)])
        where = np.repeat(starts[traces] - offset[:-1], count) + np.arange(offset[-1])
        row = np.repeat(np.arange(len(traces)), count)
        column = w - np.repeat(steps.lengths[traces], count) + steps.at[where]
        when = None
        if periods > 1:
            moment = ((p - (w - 1) + np.arange(w)) * step_ms + ahead_ms) % DAY_MS
            when = moment * periods // DAY_MS
        yield Block(traces, w, where, row, column, when)
