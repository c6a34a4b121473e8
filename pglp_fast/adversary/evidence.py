"""Evidence: the likelihoods of released traces, kept to be attacked later."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast.errors import InvalidEvidence

from .events import Events
from .mobility import MobilityModel
from .priors import Priors

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Evidence:
    """ln Pr(z_t | s) of every release, for every location s that was thought possible then.

    A row is a step of a person. Row r has the locations ``cells[start[r] : start[r + 1]]``,
    ascending, with ``logs`` beside; none of them where nothing was released. A location that is not
    listed has likelihood 0, or was ruled out before (by the model, or by delta). Between two rows
    of a person the chain makes as many moves as steps have passed.

    Attributes
    ----------
    model : MobilityModel
        How people move.
    priors : Priors
        What the adversary thought at each person's first row; before that, nothing moves.
    cycle : int64 array
        The move from step t to step t + 1 is made by the model's matrix number
        ``cycle[t % len(cycle)]``.
    first : int64 array (persons + 1,)
        Rows of person u are ``first[u] .. first[u + 1] - 1``.
    steps : int64 array (rows,)
        The step of each row, ascending within a person.
    released : int32 array (rows,)
        Released cells, -1 for a silent row; a person's first row is a release.
    start, cells, logs : int64, int32, float64 arrays
        The likelihoods; logs may be short of a constant in each row (``likelihood="density"``).
    shape : tuple of int, optional
        (users, T) of a run of arrays: results of an attack are then arrays of this shape.
    order : int64 array, optional
        Else the place of each row among the events as given: results are 1-d, in that order.
    policy, epsilon : int64 and float64 arrays (rows,), optional
        Number of the policy, and epsilon, of each release: public facts, which the adversary knows.
        None where a releaser has one policy and one epsilon.
    """

    model: MobilityModel
    priors: Priors
    cycle: Whole
    first: Whole
    steps: Whole
    released: check.Cells
    start: Whole
    cells: NDArray[np.int32]
    logs: NDArray[np.float64]
    shape: tuple[int, int] | None = None
    order: Whole | None = None
    policy: Whole | None = None
    epsilon: NDArray[np.float64] | None = None

    @classmethod
    def of_events(
        cls,
        events: Events,
        model: MobilityModel,
        priors: Priors,
        cycle: ArrayLike,
        released: NDArray[Any],
        lengths: Whole,
        cells: NDArray[np.int32],
        logs: NDArray[np.float64],
    ) -> "Evidence":
        """Evidence of an events run, a row for each event.

        Parameters
        ----------
        events : Events
            Who released, and at which step. ``priors`` has a row for each of ``events.ids``.
        model, priors, cycle : see the attributes
        released, lengths : arrays (events,)
            What was released, and how many locations are listed, in the order of ``events.order``.
        cells, logs : arrays
            The locations and ln Pr(z | s) of all events end to end, in that order.
        """
        return cls(
            model,
            priors,
            np.asarray(cycle, np.int64),
            events.start,
            events.steps[events.order],
            np.asarray(released, check.CELL),
            starts_of(lengths),
            cells,
            logs,
            order=events.order,
        )

    @classmethod
    def of_array(
        cls,
        model: MobilityModel,
        priors: Priors,
        cycle: ArrayLike,
        released: NDArray[Any],
        lengths: Whole,
        cells: NDArray[np.int32],
        logs: NDArray[np.float64],
    ) -> "Evidence":
        """Evidence of a run of arrays: a row for every step from each user's first release on.

        Parameters
        ----------
        model, priors, cycle : see the attributes
        released : array (users, T)
            -1 where nothing was released.
        lengths : array (users, T)
            How many locations are listed, 0 where nothing was released.
        cells, logs : arrays
            The locations and ln Pr(z | s), user by user, step by step.
        """
        if released.ndim != 2 or released.shape != np.shape(lengths):
            raise InvalidEvidence(
                f"released and lengths must have one shape (users, T), got {released.shape} and "
                f"{np.shape(lengths)}"
            )
        since = np.maximum.accumulate(released >= 0, axis=1)
        odd = np.argwhere((lengths > 0) & ~since)
        if len(odd):
            u, t = odd[0]
            raise InvalidEvidence(
                f"user {u} has a row of likelihoods, but no release at step {t}: a step has both "
                "a release and its likelihoods, or neither"
            )
        return cls(
            model,
            priors,
            np.asarray(cycle, np.int64),
            starts_of(since.sum(axis=1)),
            np.nonzero(since)[1],
            np.asarray(released[since], check.CELL),
            starts_of(lengths[since]),
            cells,
            logs,
            shape=(released.shape[0], released.shape[1]),
        )

    @property
    def persons(self) -> int:
        """How many persons there are."""
        return len(self.first) - 1

    @property
    def person(self) -> Whole:
        """The person of each row."""
        return np.repeat(np.arange(self.persons), np.diff(self.first))

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of what an attack gives: (users, T), or one for each event."""
        return (len(self.released),) if self.shape is None else self.shape

    def _places(self) -> tuple[Any, ...]:
        """Where each row stands in an array of ``result_shape``."""
        if self.shape is not None:
            return self.person, self.steps
        return (slice(None) if self.order is None else self.order,)

    def as_given(self, values: NDArray[Any], missing: Any) -> NDArray[Any]:
        """Values (..., rows) as an array (..., *result_shape), ``missing`` where no row is."""
        out = np.full(values.shape[:-1] + self.result_shape, missing, values.dtype)
        out[(..., *self._places())] = values
        return out

    def at_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """The reverse: an array of ``result_shape`` as one value for each row."""
        return np.ascontiguousarray(values[self._places()])

    def ruled_out(self, truth: check.Cells) -> NDArray[np.bool_]:
        """Whether each row's true location, -1 for unknown, was impossible at its release.

        Then it is not listed: another location, a surrogate, was released from. False where
        nothing was released, or the truth is unknown."""
        lengths = np.diff(self.start)
        row = np.repeat(np.arange(len(lengths)), lengths)
        listed = np.zeros(len(lengths), np.bool_)
        listed[row[self.cells == truth[row]]] = True
        return np.asarray((lengths > 0) & (truth >= 0) & ~listed)

    def by_step(self, persons: Whole) -> Iterator[tuple[int, check.Cells, Whole]]:
        """(step, what each of these persons released, -1 for nothing, and the row of it), step by
        step: all T of a run of arrays, else those at which one of them released."""
        rows = ranges_of(self.first[persons], np.diff(self.first)[persons])
        who = np.repeat(np.arange(len(persons)), np.diff(self.first)[persons])
        order = np.argsort(self.steps[rows], kind="stable")
        steps = self.steps[rows[order]]
        wanted = np.unique(steps) if self.shape is None else np.arange(self.shape[1])
        bounds = np.searchsorted(steps, np.append(wanted, wanted[-1:] + 1))
        for step, low, high in zip(wanted.tolist(), bounds[:-1], bounds[1:], strict=True):
            cells, at = np.full(len(persons), -1, check.CELL), np.full(len(persons), -1)
            some = order[low:high]
            cells[who[some]], at[who[some]] = self.released[rows[some]], rows[some]
            yield step, cells, at
