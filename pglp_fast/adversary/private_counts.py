"""Counts of moves that tell little of any one person: a model fitted on people is a release.

Each person counts for at most ``contribution`` moves, so adding or removing a person changes the
counts by at most that much in all (their L1 sensitivity). Two-sided geometric noise of ratio
exp(-epsilon / contribution) is added to the count of *every* candidate move, seen or not: which
moves were seen must not show. Candidates are public: staying, and the eight cells around. What is
done afterwards (negative counts to 0, pseudo counts, division by row sums) costs nothing.

References
----------
A. Ghosh, T. Roughgarden and M. Sundararajan, Universally Utility-Maximizing Privacy Mechanisms,
SIAM Journal on Computing 41 (2012), for the geometric mechanism."""

import hashlib
import math
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter

Whole = NDArray[np.int64]
# of noise: its draws, at most some 45 times that, are then whole numbers that float64 tells apart
_MOST_SCALE = 2.0**40


@dataclass(frozen=True)
class Private:
    """How counts are made private.

    Attributes
    ----------
    epsilon : float
        The counts, and so the model, satisfy epsilon-differential privacy for persons who are
        added or removed.
    contribution : int
        Moves that a person counts for, the first ones.
    rng : int, optional
        For counts that repeat; whoever knows it can subtract the noise.
    """

    epsilon: float
    contribution: int
    rng: int | None = None

    def __post_init__(self) -> None:
        check.epsilon(self.epsilon)
        check.whole(self.contribution, "contribution", 1, 1 << 31)
        if self.contribution / self.epsilon > _MOST_SCALE:
            raise InvalidParameter(
                f"contribution / epsilon is {self.contribution / self.epsilon:.3g}: noise of that "
                "scale is beyond what floats count exactly (2^40), and hides every count anyway. "
                "Raise private, or lower contribution"
            )
        if self.rng is not None:
            check.whole(self.rng, "rng", 0)

    def bounded(self, person: Whole) -> NDArray[np.bool_]:
        """Which moves count: the first ``contribution`` of each person, in the order given."""
        order = np.argsort(person, kind="stable")
        who = person[order]
        first = np.searchsorted(who, who)
        out = np.zeros(len(person), np.bool_)
        out[order] = np.arange(len(who)) - first < self.contribution
        return out

    def noise(self, count: int) -> Whole:
        """Independent draws k with Pr(k) proportional to exp(-epsilon |k| / contribution)."""
        words = self._words(2 * count)
        # ln U of U in (0, 1]: floor(ln U / ln ratio) is geometric, the difference of two is
        # two-sided
        uniform = (words.astype(np.float64) + 1.0) / 2.0**64
        scale = self.contribution / check.epsilon(self.epsilon)
        draws = np.floor(-np.log(np.minimum(uniform, 1.0)) * scale)
        return (draws[:count] - draws[count:]).astype(np.int64)

    def _words(self, count: int) -> NDArray[np.uint64]:
        """From the operating system, or from the seed by SHAKE-256."""
        if self.rng is None:
            raw = os.urandom(8 * count)
        else:
            raw = hashlib.shake_256(b"pglp_fast private counts %d" % self.rng).digest(8 * count)
        return np.frombuffer(raw, np.uint64)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of a count."""
        ratio = math.exp(-self.epsilon / self.contribution)
        return math.sqrt(2 * ratio) / (1 - ratio)
