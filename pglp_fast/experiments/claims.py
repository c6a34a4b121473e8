"""Claims, each decided by a criterion that is written down before the numbers are looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.stats import difference_interval, signed_mean_interval

SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"
LEVEL = 0.95  # of all the intervals of a claim together


class Difference(NamedTuple):
    """What a claim says is not above 0: its estimate and its confidence interval (of no width
    where it is exact)."""

    where: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """What the paper says, how it is decided, and what the numbers say.

    Attributes
    ----------
    text : the claim
    criterion : what decides it
    verdict : "supported", "not supported" or "undecided"
    evidence : the numbers, in words
    why : what explains them
    size : by how much it fails at worst, and in how many comparisons; empty if it does not
    """

    text: str
    criterion: str
    verdict: str
    evidence: str
    why: str = ""
    size: str = ""

    @property
    def told(self) -> str:
        """The verdict with its size."""
        return f"{self.verdict} ({self.size})" if self.size else self.verdict

    def __str__(self) -> str:
        lines = [
            f"- **{self.text}**: **{self.verdict}**{f' ({self.size})' if self.size else ''}.",
            f"  Criterion: {self.criterion}",
            f"  Numbers: {self.evidence}",
        ]
        return "\n".join([*lines, f"  {self.why}"] if self.why else lines)


def joint_level(comparisons: int) -> float:
    """The level of each of so many intervals that makes all of them hold together with
    probability ``LEVEL`` (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(comparisons, 1)


def exact(where: str, value: float) -> Difference:
    """A difference that is computed without drawing."""
    return Difference(where, value, value, value)


def paired(where: str, gap: NDArray[np.float64], comparisons: int) -> Difference:
    """The mean of differences of pairs, one of so many that are judged together."""
    interval = signed_mean_interval(gap, joint_level(comparisons))
    return Difference(where, float(gap.mean()), *interval)


def unpaired(
    where: str, a: NDArray[np.float64], b: NDArray[np.float64], comparisons: int
) -> Difference:
    """The mean of a less that of b, independent samples; one of so many judged together."""
    interval = difference_interval(a, b, joint_level(comparisons))
    return Difference(where, float(a.mean() - b.mean()), *interval)


def judge(
    text: str, criterion: str, differences: Sequence[Difference], *, unit: str = "km", why: str = ""
) -> Claim:
    """Not supported if any difference is above 0 beyond doubt, supported if all are at most 0
    beyond doubt, else undecided.

    "Beyond doubt": the whole interval. ``why`` is told unless the claim is supported.
    """
    if not differences:
        return Claim(text, criterion, UNDECIDED, "there is nothing to compare in this data.")
    against = [d for d in differences if d.low > 0]
    open_ = [d for d in differences if d.low <= 0 < d.high]
    verdict = NOT_SUPPORTED if against else UNDECIDED if open_ else SUPPORTED
    order = sorted(differences, key=lambda d: d.value)
    told = (
        f"{len(differences)} comparisons: {len(differences) - len(against) - len(open_)} for, "
        f"{len(against)} against"
    )
    told += f", {len(open_)} open" if open_ else ""
    if len(differences) == 1:
        evidence = _shown(order[0], unit)
    elif order[0].value == order[-1].value:
        evidence = f"{told}; all of them {order[0].value:g} {unit}".rstrip()
    else:
        evidence = f"{told}; from {_shown(order[0], unit)} to {_shown(order[-1], unit)}"
        others = [d for d in against if d is not order[-1]]
        if others:
            evidence += "; also against: " + ", ".join(_shown(d, unit) for d in others[:8])
    size = _size(against, len(differences), unit)
    return Claim(
        text, criterion, verdict, evidence + ".", "" if verdict == SUPPORTED else why, size
    )


def _size(against: Sequence[Difference], comparisons: int, unit: str) -> str:
    """By how much a claim fails at worst, and how often: "by 2 m in 1 of 16"."""
    if not against:
        return ""
    worst = max(d.value for d in against)
    if unit == "km":
        metres = f"{1000 * worst:.0f} m" if worst >= 0.01 else f"{1000 * worst:.2g} m"
        much = f"{worst:.2f} km" if worst >= 1 else metres
    elif unit == "ln":  # of a ratio
        much = f"a factor {np.exp(worst):.2f}"
    else:
        much = f"{worst:.2g} {unit}".rstrip()
    return f"by {much} at worst, in {len(against)} of {comparisons}"


def _shown(d: Difference, unit: str) -> str:
    value = f"{d.value:+.4g} {unit}".rstrip()
    interval = "" if d.low == d.high else f" [{d.low:+.4g}, {d.high:+.4g}]"
    return f"{value}{interval} ({d.where})"
