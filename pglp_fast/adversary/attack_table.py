"""Privacy and utility side by side: how each of the adversary's estimators does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.stats import Clusters, Interval, signed_mean_interval

OFTEN = 0.05  # share of true locations that the model rules out, above which it needs a warning
NOTHING = (np.nan, (np.nan, np.nan))  # a mean and its interval where there is no truth


@dataclass(frozen=True)
class AttackRow:
    """How one estimator does, over the steps that the table counts.

    Attributes
    ----------
    expected_km : float
        Mean over the steps of E d(guess, s_t) under Pr(s_t | all z).
    expected_interval : tuple of float
        Its confidence interval, persons being drawn at random.
    error_km, error_interval : float, tuple of float
        Mean distance from the truth; NaN without truth.
    hit_rate, hit_interval : float, tuple of float
        How often the guess is the very location; NaN without truth.
    """

    estimator: str
    expected_km: float
    expected_interval: Interval
    error_km: float
    error_interval: Interval
    hit_rate: float
    hit_interval: Interval


@dataclass(frozen=True)
class AttackTable:
    """Privacy and utility side by side.

    Attributes
    ----------
    rows : tuple of AttackRow
        One for each estimator; ``table["bayes"]`` picks one.
    utility_km : float
        How far the release is from where the user was: from the truth if there is one, else
        expected under the adversary's posterior. What privacy costs.
    utility_interval : tuple of float
        Its confidence interval.
    privacy_km : float
        Expected error of the best guess (Bayes), under the model. What privacy buys.
    ruled_out : float
        Share of the releases counted whose true location the model called impossible; NaN without
        truth. Where it is above ``OFTEN``, what the model expects says little about what is so.
    entropy_bits : float
        Mean conditional entropy of a location given all releases.
    lift, median_lift : float
        The largest and the median ln p_t^+ / p_t^- of the steps with a release: how much one
        release raised the belief in a place.
    users, steps : int
        How many persons and steps are counted.
    confidence : float
        Of all intervals.
    """

    rows: tuple[AttackRow, ...]
    utility_km: float
    utility_interval: Interval
    privacy_km: float
    ruled_out: float
    entropy_bits: float
    lift: float
    median_lift: float
    users: int
    steps: int
    confidence: float

    def __iter__(self) -> Iterator[AttackRow]:
        return iter(self.rows)

    def __getitem__(self, estimator: str) -> AttackRow:
        names = [row.estimator for row in self.rows]
        return self.rows[names.index(check.choice(estimator, "estimator", names))]

    def __str__(self) -> str:
        def span(value: float, interval: Interval) -> str:
            if np.isnan(value):
                return "-"
            if np.isnan(interval[0]):
                return f"{value:.3f}"
            return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"

        lines = [("estimator", "expected km", "error km", "hit rate")]
        for r in self.rows:
            expected = span(r.expected_km, r.expected_interval)
            error, hit = span(r.error_km, r.error_interval), span(r.hit_rate, r.hit_interval)
            lines.append((r.estimator, expected, error, hit))
        widths = [max(len(line[k]) for line in lines) for k in range(4)]
        body = "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        tail = (
            f"{self.entropy_bits:.2f} bits left of a location; "
            f"{lifts(self.median_lift, self.lift)}; {self.users} users, {self.steps} steps, "
            f"{self.confidence:.0%} intervals"
        )
        return "\n".join([body, *self._headlines(span), tail])

    def _headlines(self, span: Callable[[float, Interval], str]) -> list[str]:
        """Release and best guess: what the model expects beside what was measured."""
        known = bool(np.isfinite(self.ruled_out))
        release, guess = self["released"], self["bayes"]
        lines = []
        for what, row, measured in (
            ("utility: the release", release, (self.utility_km, self.utility_interval)),
            ("privacy: the best guess", guess, (guess.error_km, guess.error_interval)),
        ):
            fact = f"measured {span(*measured)} km" if known else "not measured: no true places"
            lines.append(f"{what} is off by: expected {row.expected_km:.3f} km; {fact}")
        if known and self.ruled_out > OFTEN:
            lines.append(f"WARNING: {warning(self.ruled_out)}")
        if not known:
            lines.append(f"expected: {UNMEASURED}")
        return lines


UNMEASURED = (
    "if people move as the model says. Where they do not, it may be far from what is so; "
    "true places would tell"
)


_MANY = 1e6  # times as likely, above which a number tells nothing


def lifts(median: float, most: float) -> str:
    """By how much a release raises the belief in a place; of logarithms."""

    def times(lift: float) -> str:
        if lift > np.log(_MANY):
            return "over a million times"
        return f"{float(f'{np.exp(lift):.3g}'):,.12g} times"

    if np.isnan(most):
        return "no release"
    text = f"the median release makes some place {times(median)} as likely as before"
    if most <= np.log(_MANY):
        return f"{text}, none more than {times(most)}"
    return f"{text}; some make a place likely that the model had called all but impossible"


def warning(share: float) -> str:
    """What to think of figures where the model is often wrong."""
    return (
        f"the model called {share:.0%} of the true locations impossible. Its expectations do not "
        "hold here, and an adversary with a better model does better: fit it on more people, or "
        "smooth it"
    )


def clustered_mean(
    values: NDArray[np.float64], person: NDArray[np.int64], confidence: float
) -> tuple[float, Interval]:
    """Mean and confidence interval where the sample is persons: ``person`` has one for each value.

    The ratio of two sums over persons, linearised (Cochran, Sampling Techniques, 1977, chapter 6),
    with Student's t. Nothing is claimed of one person: the interval is NaN."""
    if not len(values):
        return NOTHING
    clusters = Clusters.of(person)
    if len(clusters.sizes) < 2:
        return float(values.mean()), NOTHING[1]
    low, high = signed_mean_interval(values, confidence, clusters)
    if values.min() >= 0:  # a mean distance is not below 0 either
        low = max(low, 0.0)
    return float(values.mean()), (low, high)
