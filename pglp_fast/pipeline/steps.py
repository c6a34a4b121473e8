"""Rows of a table as steps of their persons' traces: the rule that release and attack share.

Steps have the model's duration and are counted alike for everybody, from a fixed day in the past. A
person's first row in a step is released; further rows in the same step repeat that release, which
costs nothing and tells nothing new. Steps without a row are silence: the adversary's belief moves
on through them, however many they are, and nothing is released."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import place_in_run
from pglp_fast._util.times import DAY_MS
from pglp_fast.errors import InvalidTable

Ints = NDArray[np.int64]
Admit = Callable[[Ints, Ints], NDArray[np.bool_]]
_ORIGIN_MS = -((1 << 47) // DAY_MS) * DAY_MS  # a midnight (UTC) before every time that is read


class Steps(NamedTuple):
    """Rows laid out as steps.

    Attributes
    ----------
    rows : the rows that are released, by person and step
    step : number of the step of each of them
    follows : of every row given, the place in ``rows`` of the one that speaks for its step; -1 for
        rows left out
    over : of every row given, whether it is left out because the person's budget is spent
    """

    rows: Ints
    step: Ints
    follows: Ints
    over: NDArray[np.bool_]


def step_numbers(ms: Ints, step_ms: int) -> Ints:
    """The step that each time (ms since 1970, UTC) is in."""
    steps = ms // step_ms - _ORIGIN_MS // step_ms
    if steps.size and steps.min() < 0:
        raise InvalidTable(
            f"a time is {int(ms.min()):,} ms before 1970, which no calendar has: is the time "
            "column right?"
        )
    return steps


def lay_out(
    person: NDArray[np.integer],
    ms: Ints,
    step_ms: int,
    allowed: int | None,
    spent: Ints | None = None,
    admit: Admit | None = None,
) -> Steps:
    """Steps of rows that all have a person, a time and a cell.

    Each person may release ``allowed`` times; ``spent``: of each row's person, the releases that
    were made before. Or ``admit`` says which rows are released, given those that would be, by
    person and time, and their steps."""
    n = len(person)
    order = np.lexsort((ms, person))  # stable: rows of one moment in the order of the table
    who, step = person[order], step_numbers(ms[order], step_ms)
    leads = np.ones(n, np.bool_)
    leads[1:] = (who[1:] != who[:-1]) | (step[1:] != step[:-1])
    number = np.cumsum(leads) - 1  # of the lead of each row
    at = np.flatnonzero(leads)
    kept = np.ones(len(at), np.bool_)
    if admit is not None:
        kept = admit(order[at], step[at])
    elif allowed is not None:
        before = 0 if spent is None else spent[order[at]]
        kept = place_in_run(who[at]) + before < allowed
    new = np.where(kept, np.cumsum(kept) - 1, -1)
    follows = np.empty(n, np.int64)
    follows[order] = new[number] if n else number
    return Steps(order[at][kept], step[at][kept], follows, follows < 0)
