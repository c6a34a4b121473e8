"""What became of the rows of a table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate

if TYPE_CHECKING:
    from .plan import Plan

STATUSES = ("alone", "step", "repeat", "outside", "missing", "budget", "malformed", "late")
ALONE, STEP, REPEAT, OUTSIDE, MISSING, BUDGET, MALFORMED, LATE = range(len(STATUSES))
SURROGATE, EXPOSED, REPAIRED = 1, 2, 4  # bits
_SHOWN = 5  # malformed rows that are named


def flags_of(
    surrogate: NDArray[np.bool_], exposed: NDArray[np.bool_], added: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The bits of some steps; ``added``: how many edges their repairs added."""
    flags = SURROGATE * surrogate + EXPOSED * exposed + REPAIRED * (added > 0)
    return np.asarray(flags, np.uint8)


class Choice(NamedTuple):
    """Number of the policy, -1 where there is none, and epsilon, of some rows or events."""

    policy: NDArray[np.int16]
    epsilon: NDArray[np.float64]

    def take(self, some: Any) -> "Choice":
        return Choice(self.policy[some], self.epsilon[some])

    def put(self, at: Any, other: "Choice") -> None:
        """Other values for some of them."""
        self.policy[at], self.epsilon[at] = other

    @classmethod
    def none(cls, n: int) -> "Choice":
        return cls(np.full(n, -1, np.int16), np.full(n, np.nan))

    @classmethod
    def joined(cls, parts: "list[Choice]") -> "Choice":
        return cls(*(np.concatenate(c) for c in zip(cls.none(0), *parts, strict=True)))


class Added(NamedTuple):
    """What a release adds to each row of a batch."""

    cells: NDArray[np.int32]  # -1 for none
    status: NDArray[np.uint8]
    flags: NDArray[np.uint8] | None  # the bits above; None for rows released one by one
    choice: Choice | None = None  # policy and epsilon; None where they are the same for all

    @classmethod
    def of_status(cls, status: NDArray[np.uint8], plan: "Plan") -> "Added":
        """Rows of which nothing is released yet."""
        n = len(status)
        flags = None if plan.model is None else np.zeros(n, np.uint8)
        choice = Choice.none(n) if plan.chooses else None
        return cls(np.full(n, -1, np.int32), status, flags, choice)

    @classmethod
    def joined(cls, parts: "list[Added]") -> "Added":
        """All rows of parts that are alike."""
        cells, status, flags, choices = zip(*parts, strict=True)
        return cls(
            np.concatenate(cells),
            np.concatenate(status),
            None if flags[0] is None else np.concatenate(flags),
            None if choices[0] is None else Choice.joined([*choices]),
        )

    def take(self, some: Any) -> "Added":
        flags = None if self.flags is None else self.flags[some]
        return Added(
            self.cells[some], self.status[some], flags, self.choice and self.choice.take(some)
        )

    def put(self, at: Any, other: "Added") -> None:
        """Other values for some of the rows."""
        self.cells[at], self.status[at] = other.cells, other.status
        if self.flags is not None and other.flags is not None:
            self.flags[at] = other.flags
        if self.choice is not None and other.choice is not None:
            self.choice.put(at, other.choice)


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
    surrogates, exposed, repaired, bare : steps released from another cell than the true one; steps
        whose domain was one cell; steps with edges that a repair added; releases from cells that
        the policy does not ask to hide. ``surrogates`` and ``bare`` tell of the truth
    own : share of the fixes compared that the model was fitted on; None where nobody can tell
    kept, left : columns of the input that stay, and that were left out
    truth : whether the true places stay
    outputs : files that were written
    certificate : what is proved of the releases of persons who move
    used : where policy or epsilon differ by row, the largest epsilon of a release under each policy
        that was used, by the policy's number
    """

    statuses: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(STATUSES), np.int64))
    malformed: list[str] = field(default_factory=list)
    persons: int = 0
    most: int = 0
    median: float = 0.0
    epsilons: tuple[float, float] | None = None
    surrogates: int = 0
    exposed: int = 0
    repaired: int = 0
    bare: int = 0
    own: float | None = None
    kept: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    truth: bool = False
    outputs: list[str] = field(default_factory=list)
    certificate: Certificate | None = None
    used: dict[int, float] = field(default_factory=dict)

    def add(self, added: Added) -> None:
        """Count the rows of a batch."""
        self.statuses += np.bincount(added.status, minlength=len(STATUSES))
        if added.flags is not None:
            told = added.flags[added.status == STEP]
            self.surrogates += int((told & SURROGATE > 0).sum())
            self.exposed += int((told & EXPOSED > 0).sum())
            self.repaired += int((told & REPAIRED > 0).sum())
        if added.choice is not None:
            policy, epsilon = added.choice.take(np.isin(added.status, (ALONE, STEP)))
            self.use((int(k), float(epsilon[policy == k].max())) for k in np.unique(policy))

    def use(self, largest: Iterable[tuple[int, float]]) -> None:
        """Note policies that were used, with the largest epsilon of each."""
        for policy, epsilon in largest:
            self.used[policy] = max(epsilon, self.used.get(policy, 0.0))

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
        """Rows in all."""
        return int(self.statuses.sum())

    @property
    def released(self) -> int:
        """Rows with a released place."""
        return int(self.statuses[[ALONE, STEP, REPEAT]].sum())

    @property
    def by_status(self) -> dict[str, int]:
        """Rows by status, of those that there are."""
        return {name: int(n) for name, n in zip(STATUSES, self.statuses, strict=True) if n}
