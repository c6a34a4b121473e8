"""What became of the rows of a table."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .account import Certificate
from .choice import Choice

STATUSES = ("alone", "step", "repeat", "outside", "missing", "budget", "malformed", "late")
ALONE, STEP, REPEAT, OUTSIDE, MISSING, BUDGET, MALFORMED, LATE = range(len(STATUSES))
SURROGATE, EXPOSED = 1, 2  # bits
_SHOWN = 5  # malformed rows that are named


@dataclass(frozen=True)
class Added:
    """What a release adds to each row of a batch."""

    cells: NDArray[np.int32]  # -1 for none
    status: NDArray[np.uint8]
    flags: NDArray[np.uint8] | None  # surrogate and exposed; None for rows released one by one
    choice: Choice | None = None  # policy and epsilon; None where they are the same for all


@dataclass
class Outcome:
    """What became of the rows, counted.

    Attributes
    ----------
    statuses : rows by status, in the order of ``STATUSES``
    malformed : the first rows that could not be read
    persons : how many have a row
    most, median : releases of the person with most, and of the median person with any
    epsilons : the same of their sums of epsilon; None where each release has the plan's
    surrogates, exposed, bare : steps released from another cell than the true one; steps whose
        domain was one cell; releases from cells that the policy does not ask to hide. All but
        ``exposed`` tell of the truth
    own : share of the fixes compared that the model was fitted on; None where nobody can tell
    kept, left : columns of the input that stay, and that were left out
    truth : whether the true places stay
    outputs : files that were written
    certificate : what is proved of the releases of persons who move
    """

    statuses: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(STATUSES), np.int64))
    malformed: list[str] = field(default_factory=list)
    persons: int = 0
    most: int = 0
    median: float = 0.0
    epsilons: tuple[float, float] | None = None
    surrogates: int = 0
    exposed: int = 0
    bare: int = 0
    own: float | None = None
    kept: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    truth: bool = False
    outputs: list[str] = field(default_factory=list)
    certificate: Certificate | None = None

    def add(self, added: Added) -> None:
        """Count the rows of a batch."""
        self.statuses += np.bincount(added.status, minlength=len(STATUSES))
        if added.flags is not None:
            told = added.flags[added.status == STEP]
            self.surrogates += int((told & SURROGATE > 0).sum())
            self.exposed += int((told & EXPOSED > 0).sum())

    def spend(
        self, releases: NDArray[np.int64], epsilons: NDArray[np.float64] | None = None
    ) -> None:
        """Note how many releases each person has, and the sum of their epsilons."""
        if epsilons is not None:
            sums = epsilons[epsilons > 0]
            middle = float(np.median(sums)) if sums.size else 0.0
            self.epsilons = float(sums.max(initial=0.0)), middle
        some = releases[releases > 0]
        self.most = int(some.max(initial=0))
        self.median = float(np.median(some)) if some.size else 0.0

    def name(self, malformed: str) -> None:
        """Name a row that cannot be read; the first few are kept."""
        self.malformed += [malformed] if len(self.malformed) < _SHOWN else []

    @property
    def rows(self) -> int:
        return int(self.statuses.sum())

    @property
    def released(self) -> int:
        return int(self.statuses[[ALONE, STEP, REPEAT]].sum())

    @property
    def by_status(self) -> dict[str, int]:
        """Rows by status, of those that there are."""
        return {name: int(n) for name, n in zip(STATUSES, self.statuses, strict=True) if n}
