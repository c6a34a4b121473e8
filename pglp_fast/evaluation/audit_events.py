"""The statistics of an audit: events chosen on some draws, and bounded on the others.

A trial compares the outcomes of two inputs whose probabilities may differ by e^(hops epsilon). The
event that tells the two apart best is a set of outputs whose likelihood ratio is above a threshold
(Neyman and Pearson). Some draws put the outputs in order, others find the threshold, and the rest
never saw the choice: the interval of Clopper and Pearson holds on them as it stands."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.stats import clopper_pearson

Codes = NDArray[np.int64]
Along = Callable[[Codes], NDArray[np.float64]]

_PARTS = (0.15, 0.15, 0.7)  # shares of the draws that order outputs, choose events, and test them
_FOUND = 0.995  # of each of two counts, so that both are within their bounds with probability 0.99
_CAUTION = 4.0  # standard errors that a count is taken to be off before events are compared


class Counts(NamedTuple):
    """How often each outcome occurred: distinct codes ascending, counts, and all draws."""

    codes: Codes
    counts: Codes
    draws: int

    @classmethod
    def of(cls, codes: Codes) -> "Counts":
        if len(codes) and codes.min() >= 0 and codes.max() < 4 * len(codes):  # no need to sort
            all_counts = np.bincount(codes)
            distinct = np.flatnonzero(all_counts)
            return cls(distinct, all_counts[distinct], len(codes))
        distinct, counts = np.unique(codes, return_counts=True)
        return cls(distinct, counts.astype(np.int64), len(codes))

    def at(self, codes: Codes) -> Codes:
        """Counts of these codes."""
        if not len(self.codes):
            return np.zeros(len(codes), np.int64)
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.counts[place], 0)


class Pairs(NamedTuple):
    """Codes of two outputs together, each a location or -1, of so many locations."""

    size: int

    def code(self, first: Codes, second: Codes) -> Codes:
        return np.asarray((np.asarray(first, np.int64) + 1) * (self.size + 1) + second + 1)

    def decode(self, code: int) -> tuple[int, int]:
        first, second = divmod(code, self.size + 1)
        return first - 1, second - 1


class Sample(NamedTuple):
    """Outcomes of one input: those that order, those that choose, and those that test."""

    ordering: Counts
    choosing: Counts
    testing: Counts

    @classmethod
    def of(cls, codes: NDArray[Any]) -> "Sample":
        """Draws are independent, so that any split will do."""
        codes = np.asarray(codes, np.int64)
        cuts = (np.cumsum(_PARTS[:2]) * len(codes)).astype(np.int64)
        ordering, choosing, testing = (Counts.of(part) for part in np.split(codes, cuts))
        return cls(ordering, choosing, testing)


class Trial(NamedTuple):
    """Two inputs that are protected from each other, and what was released from them.

    Attributes
    ----------
    kind : what is compared, in words
    inputs : the two
    hops : the promise is Pr(z|first) <= e^(hops epsilon) Pr(z|second), and back
    samples : outcomes of the two, coded
    decode : the output that a code stands for
    beyond : for each input, how far a code lies beyond it, seen from the other
    """

    kind: str
    inputs: tuple[Hashable, Hashable]
    hops: float
    samples: tuple[Sample, Sample]
    decode: Callable[[int], Hashable]
    beyond: tuple[Sequence[Along], Sequence[Along]] = ((), ())


class Event(NamedTuple):
    """A set of outcomes that is likelier from one input (``way``: 0 the first, 1 the second).

    ``score``: a cautious estimate of ln(P/Q) on the draws that chose it."""

    trial: Trial
    way: int
    codes: Codes
    score: float


class Bound(NamedTuple):
    """ln(P/Q) of an event is above ``value``, at the confidence that was asked for; it is above
    ``value`` + ``width`` in one of a hundred audits only."""

    event: Event
    value: float
    width: float

    @property
    def epsilon(self) -> float:
        """What that says of epsilon: the promise of a trial is a multiple of it."""
        return max(0.0, self.value / self.event.trial.hops)

    @property
    def resolution(self) -> float:
        """By so much must epsilon be exceeded in this event to be found with probability 0.99."""
        return self.width / self.event.trial.hops


def best_event(trial: Trial, way: int) -> Event:
    """The set of outcomes with the largest cautious estimate of ln(P/Q).

    Outcomes are put in order of their likelihood ratio; and, for outputs too many to be seen often,
    of how far they lie beyond one input. The sets are the beginnings of these orders."""
    P, Q = trial.samples[way], trial.samples[1 - way]
    codes = np.union1d(P.ordering.codes, Q.ordering.codes)
    ratios = _cautious(P.ordering.at(codes), Q.ordering.at(codes), P.ordering, Q.ordering)
    keys = [ratios, *(along(codes) for along in trial.beyond[way])]
    best = Event(trial, way, codes[:0], -np.inf)
    for key in keys if len(codes) else []:
        order = np.argsort(-key, kind="stable")
        hits, others = (side.choosing.at(codes[order]).cumsum() for side in (P, Q))
        scores = _cautious(hits, others, P.choosing, Q.choosing, _PARTS[2] / _PARTS[1])
        top = int(np.argmax(scores))
        if scores[top] > best.score:
            best = Event(trial, way, codes[order[: top + 1]], float(scores[top]))
    return best


def _cautious(
    hits: Codes, others: Codes, P: Counts, Q: Counts, more: float = 1.0
) -> NDArray[np.float64]:
    """Low estimates of ln(P/Q), as if there were so many more draws of the same shares.

    A count is taken to be ``_CAUTION`` standard errors off, by the score interval of a Poisson
    number: it stays sharp where nothing was seen at all."""
    half = _CAUTION**2 / 2
    a, b = more * hits + half, more * others + half
    low = a - np.sqrt(a * a - (more * hits) ** 2)
    high = b + np.sqrt(b * b - (more * others) ** 2)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(low / max(P.draws, 1)) - np.log(high / max(Q.draws, 1)))


def bounds(trials: Sequence[Trial], confidence: float, tests: int) -> list[Bound]:
    """Lower bounds on ln(P/Q), which hold together with this confidence; the worst one first.

    The ``tests`` events that look worst are bounded on the draws that did not choose them. Each is
    right but for a probability of (1 - confidence) / tests, half for P and half for Q."""
    events = [best_event(trial, way) for trial in trials for way in (0, 1)]
    events.sort(key=lambda event: -event.score / event.trial.hops)
    events = events[:tests]
    level = 1 - (1 - confidence) / (2 * max(len(events), 1))
    found = [Bound(event, *_log_ratio(event, level)) for event in events]
    return sorted(found, key=lambda bound: -bound.epsilon)


def _log_ratio(event: Event, level: float) -> tuple[float, float]:
    """(a bound from below on ln(P/Q), how far above it ln(P/Q) is at most, but for 1 %)."""
    P, Q = (event.trial.samples[w].testing for w in (event.way, 1 - event.way))
    hits, others = int(P.at(event.codes).sum()), int(Q.at(event.codes).sum())
    low = clopper_pearson(hits, P.draws, level)[0]
    high = clopper_pearson(others, Q.draws, level)[1]
    if low <= 0:
        return -np.inf, np.inf
    most = clopper_pearson(hits, P.draws, _FOUND)[1]
    least = clopper_pearson(others, Q.draws, _FOUND)[0]
    bound = float(np.log(low) - np.log(high))
    return bound, float(np.log(most) - np.log(least)) - bound if least > 0 else np.inf
