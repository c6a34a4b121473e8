"""What persons have spent, and limits to it: in total, and over any window of steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace import spending as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast.errors import BudgetExceeded, InvalidParameter

if TYPE_CHECKING:
    from .policies import PolicySet

_BY_ROW = ("releases", "high", "low", "since", "steps", "epsilons")
SLACK = 1 + 1e-12  # so that ten times 0.1 fits in 1
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Spending(NamedTuple):
    """Sums of epsilon by person, and the latest of what they are made of.

    Attributes
    ----------
    releases : how many
    high, low : the sum, as two floats
    since : of what was spent below this step it is not known when
    start, steps, epsilons : the releases from that step on, in rows by person, ascending by step
    shares : (persons, policies) the part of the sum that was spent under each policy, which tells
        what edges with weights have cost; without columns where no policy has weights
    """

    releases: Ints
    high: Floats
    low: Floats
    since: Ints
    start: Ints
    steps: Ints
    epsilons: Floats
    shares: Floats

    @property
    def total(self) -> Floats:
        return self.high + self.low

    @property
    def forgotten(self) -> Floats:
        """What was spent at steps that are not known."""
        high, low = self.high.copy(), self.low.copy()
        kernels.add_events(self.start, -self.epsilons, high, low)
        return np.maximum(high + low, 0.0)

    def select(self, persons: Ints) -> "Spending":
        """Of these persons, in this order."""
        lengths = np.diff(self.start)[persons]
        some = ranges_of(self.start[persons], lengths)
        return Spending(
            self.releases[persons], self.high[persons], self.low[persons], self.since[persons],
            starts_of(lengths), self.steps[some], self.epsilons[some], self.shares[persons],
        )  # fmt: skip

    @property
    def dated(self) -> bool:
        """Whether of anything that was spent a step is told."""
        told = (self.since > 0) & (self.since < check.MAX_TIME)
        return bool(len(self.steps) or told.any())

    def undated(self) -> "Spending":
        """The same, of which nobody knows when it was: it counts in every window."""
        some = (self.since > 0) | (np.diff(self.start) > 0)
        return self.cut(np.where(some, check.MAX_TIME, 0).astype(np.int64))

    def with_shares(self, more: Floats) -> "Spending":
        """With more of what was spent under each policy, see ``shares_of``."""
        return self._replace(shares=added_shares(self.shares, more))

    def after(self, start: Ints, steps: Ints, epsilons: Floats, window: int) -> "Spending":
        """With more events, in rows by person; those of the last ``window`` steps are
        remembered."""
        high, low = self.high.copy(), self.low.copy()
        kernels.add_events(start, epsilons, high, low)
        counts = np.diff(start)
        new = self._replace(releases=self.releases + counts, high=high, low=low)
        if window:
            rows = _merged(self.start, self.steps, self.epsilons, start, steps, epsilons)
            return new._replace(start=rows[0], steps=rows[1], epsilons=rows[2]).remembering(window)
        since, some = self.since.copy(), counts > 0
        since[some] = np.maximum(since[some], steps[start[1:][some] - 1] + 1)
        return new.cut(since)

    def __add__(self, other: "Spending") -> "Spending":  # type: ignore[override]
        """Of the same persons, from two sources."""
        high, low = self.high.copy(), self.low.copy()
        each = np.arange(len(high) + 1)
        for part in (other.high, other.low):
            kernels.add_events(each, part, high, low)
        rows = _merged(
            self.start, self.steps, self.epsilons, other.start, other.steps, other.epsilons
        )
        since = np.maximum(self.since, other.since)
        shares = added_shares(self.shares, other.shares)
        both = Spending(self.releases + other.releases, high, low, since, *rows[:3], shares)
        return both.cut(since)

    def remembering(self, window: int) -> "Spending":
        """With the events of the last ``window`` steps of each person alone; 0: none."""
        last = self.since - 1
        some = np.diff(self.start) > 0
        last[some] = np.maximum(last[some], self.steps[self.start[1:][some] - 1])
        return self.cut(np.maximum(self.since, last + 1 - window))

    def cut(self, since: Ints) -> "Spending":
        """With the events from a step of each person on alone."""
        if not len(self.steps):
            return self._replace(since=since)
        person = np.repeat(np.arange(len(since)), np.diff(self.start))
        kept = self.steps >= since[person]
        start = starts_of(np.bincount(person[kept], minlength=len(since)))
        return self._replace(
            since=since, start=start, steps=self.steps[kept], epsilons=self.epsilons[kept]
        )


def nothing_spent(persons: int) -> Spending:
    """Before the first release."""
    zero = np.zeros(persons, np.int64)
    none = np.zeros(0, np.int64)
    return Spending(
        zero, np.zeros(persons), np.zeros(persons), zero, np.zeros(persons + 1, np.int64), none,
        np.zeros(0), np.zeros((persons, 0)),
    )  # fmt: skip


def join_spending(parts: Sequence[Spending]) -> Spending:
    """Of several groups of persons, one behind the other."""
    each = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _BY_ROW}
    start = starts_of(np.concatenate([np.diff(p.start) for p in parts]))
    return Spending(start=start, shares=join_shares([p.shares for p in parts]), **each)


def join_shares(parts: Sequence[Floats]) -> Floats:
    """One behind the other; who released nothing may have no columns yet."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [part if part.shape[1] else np.zeros((len(part), width)) for part in parts]
    )


def shares_of(policies: "PolicySet", start: Ints, number: NDArray[Any], epsilons: Floats) -> Floats:
    """(persons, policies) what events, in rows by person, spend under each policy; no columns where
    no policy has weights. ``number``: the choice of each, see ``_kernels.trace.choices``."""
    out = np.zeros((len(start) - 1, len(policies) if policies.weighted else 0))
    if policies.weighted:
        person = np.repeat(np.arange(len(out)), np.diff(start))
        np.add.at(out, (person, number % len(policies)), epsilons)
    return out


def added_shares(a: Floats, b: Floats) -> Floats:
    """The sum of two; one may have no columns yet."""
    if a.shape[1] == b.shape[1]:
        return a + b
    return a.copy() if a.shape[1] else b.copy()


def _merged(
    start: Ints, steps: Ints, epsilons: Floats, more_start: Ints, more_steps: Ints, more: Floats
) -> tuple[Ints, Ints, Floats, NDArray[np.bool_]]:
    """Events of two sources in rows by person, ascending by step; and which are of the second."""
    n = len(start) - 1
    lengths = np.diff(start), np.diff(more_start)
    person = np.concatenate([np.repeat(np.arange(n), length) for length in lengths])
    step = np.concatenate([steps, more_steps])
    order = np.lexsort((step, person))
    fresh = np.repeat([False, True], [len(steps), len(more_steps)])
    values = np.concatenate([epsilons, more])
    return starts_of(lengths[0] + lengths[1]), step[order], values[order], fresh[order]


class Limits:
    """Budgets: so much epsilon over any so many steps, or in total.

    Parameters
    ----------
    budget : float, mapping or None
        One, in total or over any ``window`` steps. Or several: a mapping from windows, None for the
        total, to budgets.
    window : int, optional
    step_ms : int, optional
        Duration of a step, where it is known.
    """

    def __init__(self, budget: Any, window: Any = None, step_ms: int | None = None):
        if window is not None and (budget is None or isinstance(budget, Mapping)):
            raise InvalidParameter("window= goes with a budget=: give the epsilon that it allows")
        limits = budget if isinstance(budget, Mapping) else {window: budget}
        self.limits: dict[int | None, float] = {}
        self.step_ms = step_ms
        if budget is not None:
            for key, value in limits.items():
                steps = None if key is None else check.whole(key, "window", 1, check.MAX_TIME)
                self.limits[steps] = check.positive(value, "budget")

    def __bool__(self) -> bool:
        return bool(self.limits)

    def in_steps_of(self, step_ms: int | None) -> "Limits":
        """The same for steps of this duration."""
        return Limits(self.limits or None, step_ms=step_ms)

    @property
    def window(self) -> int:
        """Steps of the longest window; 0 where there is none."""
        return max((w for w in self.limits if w is not None), default=0)

    def check(self, ids: Ints, past: Spending, start: Ints, steps: Ints, epsilons: Floats) -> None:
        """Refuse events, in rows by person, that exceed a budget."""
        total = self.limits.get(None)
        if total is not None:
            self._check_total(total, ids, past, start, epsilons)
        windows = {w: limit for w, limit in self.limits.items() if w is not None}
        if not windows:
            return
        rows = _merged(past.start, past.steps, past.epsilons, start, steps, epsilons)
        for window, limit in windows.items():
            forgotten = past.forgotten
            u, e = kernels.first_over(*rows, window, limit * SLACK, forgotten, past.since)
            if u >= 0:
                raise BudgetExceeded(
                    f"user {ids[u]} would spend more than {limit:g} within the {window} steps up "
                    f"to step {rows[1][e]}: nothing was released; leave those events out (-1), "
                    "release more rarely, or raise the budget"
                )

    @staticmethod
    def _check_total(
        limit: float, ids: Ints, past: Spending, start: Ints, epsilons: Floats
    ) -> None:
        high, low = past.high.copy(), past.low.copy()
        kernels.add_events(start, epsilons, high, low)
        after = high + low
        over = np.flatnonzero((np.diff(start) > 0) & (after > limit * SLACK))
        if over.size:
            u = over[0]
            raise BudgetExceeded(
                f"user {ids[u]} has spent {past.total[u]:g} of {limit:g} and asks for "
                f"{after[u] - past.total[u]:g} more ({over.size} users are over): nothing was "
                "released; leave those users out (-1) or raise the budget"
            )
