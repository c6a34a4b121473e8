"""Which of many events fit into budgets, taken one after the other."""

from collections import deque
from math import fsum

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import place_in_run

from .spending import SLACK, Floats, Ints, Limits, Spending


def admit(
    limits: Limits, past: Spending, start: Ints, steps: Ints, epsilons: Floats
) -> NDArray[np.bool_]:
    """Of events in rows by person, ascending by step: which are released if each is that fits.

    Parameters
    ----------
    limits : Limits
    past : Spending
        What each person has spent.
    start, steps, epsilons : array
        Events of person u are start[u] .. start[u + 1] - 1.

    Notes
    -----
    An event that does not fit is left out, and later ones may fit again. An event fits if no window
    that it lies in, of those that end at an event, is above its budget: releases that are known
    already may be later than it.
    """
    kept = np.ones(len(steps), np.bool_)
    windows = {w: limit * SLACK for w, limit in limits.limits.items() if w is not None}
    total = limits.limits.get(None)
    if windows:
        forgotten = past.forgotten
        for u in np.flatnonzero(np.diff(start) > 0).tolist():
            own, some = slice(past.start[u], past.start[u + 1]), slice(start[u], start[u + 1])
            known = list(zip(past.steps[own].tolist(), past.epsilons[own].tolist()))
            person = _Person(known, float(forgotten[u]), int(past.since[u]), float(past.total[u]))
            kept[some] = [
                person.takes(step, epsilon, windows, total)
                for step, epsilon in zip(steps[some].tolist(), epsilons[some].tolist())
            ]
    elif total is not None:
        kept = _within_total(total * SLACK, past.total, start, epsilons)
    return kept


def _within_total(limit: float, spent: Floats, start: Ints, epsilons: Floats) -> NDArray[np.bool_]:
    """The same, of a budget in total."""
    counts = np.diff(start)
    person = np.repeat(np.arange(len(counts)), counts)
    if not len(epsilons):
        return np.ones(0, np.bool_)
    if (epsilons == epsilons[0]).all():
        most = np.floor((limit - spent) / epsilons[0])
        return np.asarray(place_in_run(person) < most[person])
    kept, sums = np.zeros(len(epsilons), np.bool_), spent.copy()
    for k in range(int(counts.max())):  # everybody's event number k at once
        who = np.flatnonzero(counts > k)
        e = start[who] + k
        fits = sums[who] + epsilons[e] <= limit
        kept[e] = fits
        sums[who[fits]] += epsilons[e[fits]]
    return kept


class _Person:
    """What a person has spent, event by event; ``known`` ascends by step."""

    def __init__(self, known: list[tuple[int, float]], forgotten: float, since: int, total: float):
        self._before, self._later = deque[tuple[int, float]](), deque(known)
        self._forgotten, self._since, self._total = forgotten, since, total

    def takes(
        self, step: int, epsilon: float, windows: dict[int, float], total: float | None
    ) -> bool:
        """Whether an event fits; it is spent then. Steps ascend."""
        while self._later and self._later[0][0] <= step:
            self._before.append(self._later.popleft())
        longest = max(windows)
        while self._before and self._before[0][0] <= step - longest:
            self._before.popleft()
        fits = total is None or self._total + epsilon <= total * SLACK
        for window, limit in windows.items():
            fits = fits and self._fits(step, epsilon, window, limit)
        if fits:
            self._before.append((step, epsilon))
            self._total += epsilon
        return fits

    def _fits(self, step: int, epsilon: float, window: int, limit: float) -> bool:
        """Whether every window with the event in it stays within its limit."""
        ends = [step, *(s for s, _ in self._later if s < step + window)]
        for end in ends:
            first = end - window
            parts = [e for s, e in self._before if s > first]
            parts += [e for s, e in self._later if s <= end]
            if self._since - 1 > first:
                parts.append(self._forgotten)
            if fsum(parts) + epsilon > limit:
                return False
        return True
