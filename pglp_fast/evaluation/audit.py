"""The statistical audit: a lower bound on the epsilon that is delivered, from releases alone.

The certificate proves what is drawn from; the audit asks what comes out. It calls ``release``, or
``start`` and ``step``, and looks at nothing else of a mechanism: a bug anywhere below that shows in
what is released is a bug that it can find. It is no proof: it passes what it cannot refute."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.locations import Locations

from .audit_events import Along, Pairs, Sample, Trial, bounds
from .audit_pairs import audited_pairs
from .audit_traces import Numbers, releaser_trials

DRAWS = 1_000_000  # from each location of a mechanism
USERS = 100_000  # at each location of a releaser of traces
PAIRS = 40  # of a mechanism's locations, at most; of traces one
TESTS = 8  # events that are bounded, of all that were looked at
_LEAST = 400  # draws below which not even certainty would be seen
# two users whose numbers are that far apart must have independent draws
_LAGS = (1, 1 << 16, 1 << 32)


@dataclass(frozen=True)
class Audit:
    """What ``audit`` found.

    Attributes
    ----------
    passed : bool
        Whether the releases are compatible with the promise: ``epsilon_lower <= epsilon``.
    epsilon : float
        What was promised.
    epsilon_lower : float
        The delivered epsilon is at least this, at the stated confidence.
    pair : tuple or None
        The two inputs that were told apart best: two locations, or two traces. None where nothing
        is promised, so that nothing was compared.
    output : int, tuple or None
        The output that told most of it; the released cells of a trace, or of two users, as a tuple.
    event : tuple
        All outputs of the event that was bounded.
    kind : str
        What was compared: "release", "two users", "two times", "step 1", "silence", ...
    confidence : float
        That no bound of the whole audit is wrong.
    trials, draws : int
        Pairs of inputs that were compared; releases that were made.
    resolution : float
        The power of the audit: a delivered epsilon of ``epsilon + resolution`` or more, in the
        event that was bounded, is found with probability 0.99 at least. More draws make it smaller.
    """

    passed: bool
    epsilon: float
    epsilon_lower: float
    pair: tuple[Hashable, Hashable] | None
    output: Hashable
    event: tuple[Hashable, ...]
    kind: str
    confidence: float
    trials: int
    draws: int
    resolution: float = np.inf

    def __str__(self) -> str:
        if self.pair is None:
            return f"epsilon = {self.epsilon} promised: no two locations are joined, nothing to see"
        verdict = "the promise is BROKEN"
        if self.passed:
            found = self.epsilon + self.resolution
            verdict = f"no violation found, one of {found:.4f} would have been"
        return (
            f"epsilon = {self.epsilon} promised, at least {self.epsilon_lower:.4f} delivered "
            f"between {self.pair[0]} and {self.pair[1]} ({self.kind}, output {self.output}): "
            f"{verdict} ({100 * self.confidence:g} % confidence, {self.trials} comparisons, "
            f"{self.draws} releases)"
        )


def audit(
    mechanism: Any,
    *,
    draws: int | None = None,
    confidence: float = 0.99,
    pairs: int | None = None,
    seed: int = 0,
    rng: int | None = None,
) -> Audit:
    """Bound the delivered epsilon from below, by releases alone.

    Parameters
    ----------
    mechanism : Mechanism or TraceReleaser
        Or any object with their public face: ``release``, ``graph`` and ``epsilon``; or ``start``
        (of streams with ``step`` and ``policy``), ``graph``, ``model`` and ``epsilon``.
    draws : int, optional
        Releases from each location (1,000,000); of traces, users at each location (100,000).
    confidence : float
        Of the whole audit: a correct mechanism fails with probability 1 - confidence at most.
    pairs : int, optional
        How many pairs of locations are compared (40; of traces 1). All edges of the policy if they
        are so few; else some of each shape of component, the longest ones and some at random.
    seed : int
        Of the choice of pairs.
    rng : int, optional
        Handed to ``release``: None for fresh keys. A releaser of traces has its own.

    Notes
    -----
    For each pair, 30 % of the draws choose the event that tells the two best apart: a set of
    outputs of high likelihood ratio, a half-plane or a quadrant. The 8 events that look worst are
    tested on the other draws, by the exact interval of Clopper and Pearson, corrected for the 8.
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence must be between 0 and 1, got {confidence!r}")
    check.whole(seed, "seed", 0)
    single = hasattr(mechanism, "release")
    wanted = ("graph", "epsilon") if single else ("start", "graph", "model", "epsilon")
    lacking = [name for name in wanted if not hasattr(mechanism, name)]
    if lacking:
        raise InvalidParameter(
            f"audit takes a mechanism or a releaser of traces, got {type(mechanism).__name__} "
            f"without {lacking[0]!r}: pass pf.PPIM(...) or pf.TraceReleaser(...)"
        )
    n = check.whole((DRAWS if single else USERS) if draws is None else draws, "draws", _LEAST)
    most = check.whole((PAIRS if single else 1) if pairs is None else pairs, "pairs", 1)
    numbers = Numbers()
    found = (_mechanism_trials if single else releaser_trials)(
        mechanism, n, most, seed, numbers, rng
    )
    trials = list(found)
    tested = bounds(trials, confidence, TESTS)
    epsilon = float(mechanism.epsilon)
    if not tested:
        return Audit(True, epsilon, 0.0, None, None, (), "", confidence, 0, numbers.used)
    worst, event = tested[0], tested[0].event
    a, b = event.trial.inputs
    likely = event.trial.samples[event.way].testing.at(event.codes)
    outputs = tuple(event.trial.decode(int(code)) for code in event.codes[np.argsort(-likely)])
    return Audit(
        passed=worst.epsilon <= epsilon,
        epsilon=epsilon,
        epsilon_lower=worst.epsilon,
        pair=(b, a) if event.way else (a, b),
        output=outputs[0] if outputs else None,
        event=outputs,
        kind=event.trial.kind,
        confidence=confidence,
        trials=len(trials),
        draws=numbers.used,
        resolution=worst.resolution,
    )


def _mechanism_trials(
    m: Any, draws: int, limit: int, seed: int, numbers: Numbers, rng: int | None
) -> Iterator[Trial]:
    """Each pair of locations; then two users, and two times, at the longest pair."""
    domain, locations = getattr(m, "domain", None), m.graph.locations
    calibration = getattr(m, "calibration", "component")
    pairs = audited_pairs(m.graph, domain, calibration, limit, seed)
    if not len(pairs):
        return

    def released(cells: Any, **how: Any) -> Any:
        out = m.release(cells, rng=rng, **how)
        return check.cells_or_missing(out, locations.size, "release")

    def sample(s: int) -> Sample:
        return Sample.of(released(np.full(draws, s), users=numbers.take(draws)))

    samples = {int(s): sample(int(s)) for s in np.unique(pairs)}
    hops = m.graph.distance(pairs[:, 0], pairs[:, 1])
    # a pair that only the hull of the graph calibration protects has no path of edges
    hops = np.where(np.isfinite(hops), hops, 1.0)
    for (s, r), far in zip(pairs.tolist(), hops.tolist()):
        beyond = _towards(locations, s, r), _towards(locations, r, s)
        yield Trial("release", (s, r), far, (samples[s], samples[r]), int, beyond)
    s, r, coded = int(pairs[0, 0]), int(pairs[0, 1]), Pairs(locations.size)
    n = draws // 4

    def twice(first: int, users: Any, t: Any) -> Sample:
        cells = np.repeat([first, s], n)
        both = released(cells, users=users, t=t).reshape(2, n)
        return Sample.of(coded.code(both[0], both[1]))

    for lag in _LAGS:
        two = tuple(twice(first, numbers.apart(n, lag), 0) for first in (s, r))
        yield Trial("two users", ((s, s), (r, s)), float(hops[0]), (two[0], two[1]), coded.decode)
    when = np.repeat([0, 1], n)
    two = tuple(twice(first, np.tile(numbers.take(n), 2), when) for first in (s, r))
    yield Trial("two times", ((s, s), (r, s)), float(hops[0]), (two[0], two[1]), coded.decode)


def _towards(locations: Locations, s: int, r: int) -> list[Along]:
    """How far cells lie beyond s, seen from r: by half-planes, and by quadrants.

    Noise of a polygon has its full ratio in a cone behind s; a quadrant lies within more of them
    than a half-plane does."""
    at = locations.lattice * np.asarray(locations.scale)
    direction = at[s] - at[r]
    axes = np.flatnonzero(direction)
    sign = np.sign(direction[axes])

    def beyond(far: Callable[[Any], Any]) -> Along:
        return lambda cells: np.where(
            cells >= 0, far(at[cells] - at[s]), -np.inf
        )  # -1 lies nowhere

    return [
        beyond(lambda away: away @ direction),
        beyond(lambda away: (away[:, axes] * sign).min(axis=1)),
    ]
