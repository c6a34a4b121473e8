"""What was found of traces as arrays (traces, columns), which the page follows column by column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf

from . import limits


@dataclass(frozen=True)
class Laid:
    """Where each row of evidence stands.

    Of a run of arrays a column is a step. Of events each trace has columns of its own, that end
    together: its events, and the steps of short silence between them. Long silence takes none: a
    year of minutes between two events costs nothing, here and in the attack.

    Attributes
    ----------
    evidence : Evidence
    row, column : of each row of the evidence
    steps : (traces, columns) the step of each column, -1 where a trace has none
    silent : steps without a release: of a run of arrays all, of events those between the first
        and the last of a trace
    closed : whether long silence was left out
    """

    evidence: pf.Evidence
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    steps: NDArray[np.int64]
    silent: int
    closed: bool

    @classmethod
    def out(cls, evidence: pf.Evidence) -> "Laid":
        """Lay out evidence."""
        row, released = evidence.person, int((evidence.released >= 0).sum())
        if evidence.shape is not None:
            n, T = evidence.shape
            steps = np.broadcast_to(np.arange(T), (n, T))
            return cls(evidence, row, evidence.steps, steps, n * T - released, False)
        gap = np.diff(evidence.steps, prepend=evidence.steps[:1])
        gap[evidence.first[:-1]] = 0
        on = np.where(gap > limits.SILENCE + 1, 1, gap)
        column = np.cumsum(on)
        ends = column[evidence.first[1:] - 1]
        length = ends - column[evidence.first[:-1]] + 1
        width = int(length.max(initial=0))
        if len(length) * width > limits.ENTRIES:
            raise pf.TooLarge(
                f"{len(length):,} traces of up to {width:,} steps are too many for one report: "
                "report on fewer of them"
            )
        column += width - 1 - ends[row]
        silent = int(gap.sum()) + len(length) - released
        steps = _steps(evidence, row, column, (len(length), width))
        return cls(evidence, row, column, steps, silent, bool((on < gap).any()))

    def of(self, values: NDArray[Any], missing: Any) -> NDArray[Any]:
        """Results, in the shape that an attack gives them, as an array (traces, columns)."""
        if self.evidence.shape is not None:
            return values
        return self.of_rows(self.evidence.at_rows(values), missing)

    def of_rows(self, values: NDArray[Any], missing: Any) -> NDArray[Any]:
        """One value for each row of the evidence as such an array."""
        out = np.full(self.steps.shape, missing, values.dtype)
        out[self.row, self.column] = values
        return out


def _steps(
    evidence: pf.Evidence,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """The step of each column; those of short silence count on from the event before."""
    steps = np.full(shape, -1, np.int64)
    steps[row, column] = evidence.steps
    before, after = steps[:, :-1], steps[:, 1:]
    for _ in range(limits.SILENCE):
        empty = (after < 0) & (before >= 0)
        after[empty] = before[empty] + 1
    return steps


@dataclass(frozen=True)
class Followed:
    """An attack, laid out: each array is (traces, columns), -1 or NaN where there is nothing."""

    attack: pf.Attack
    laid: Laid
    released: NDArray[np.int32]
    truth: NDArray[np.int32] | None
    bayes: NDArray[np.int32]
    expected_error: NDArray[np.float64]
    release_error: NDArray[np.float64]
    online_bayes: NDArray[np.int32]
    online_error: NDArray[np.float64]
    online_entropy: NDArray[np.float64]

    @classmethod
    def of(cls, attack: pf.Attack) -> "Followed":
        laid, true = Laid.out(attack.evidence), attack.truth
        return cls(
            attack,
            laid,
            released=laid.of(attack.released, -1),
            truth=None if true is None else laid.of(true, -1),
            bayes=laid.of(attack.bayes, -1),
            expected_error=laid.of(attack.expected_error, np.nan),
            release_error=laid.of(attack.errors["released"], np.nan),
            online_bayes=laid.of(attack.online_bayes, -1),
            online_error=laid.of(attack.online_error, np.nan),
            online_entropy=laid.of(attack.online_entropy, np.nan),
        )

    @property
    def surrogate(self) -> NDArray[np.bool_] | None:
        """Where the true location was ruled out; None where it is not known."""
        evidence, true = self.attack.evidence, self.attack.truth
        if true is None:
            return None
        return self.laid.of_rows(evidence.ruled_out(evidence.at_rows(true)), False)
