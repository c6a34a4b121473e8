"""Traces as they are given, laid out user by user, and results put back in the form given."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.trace.records import Outputs
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.times import DAY_MS, day_period
from pglp_fast.adversary.events import Events
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.adversary.priors import Priors
from pglp_fast.errors import InvalidParameter, InvalidTransition
from pglp_fast.io import Traces

from .choices import Asked
from .engine import Ints, LikelihoodRows, Trace
from .results import spread
from .schedule import Moment


class Chosen(NamedTuple):
    """Number of the policy, and epsilon, of each event."""

    policy: Ints
    epsilon: NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Events by user and step.

    Attributes
    ----------
    ids : numbers of the users, which key the noise
    trace : the events, end to end
    shape : of the results
    where : where each event belongs in these
    steps : how many steps there are; None for events, which have no last one
    events : as given; None for an array
    step_ms : duration of a step, where it is known
    """

    ids: Ints
    trace: Trace
    shape: tuple[int, ...]
    where: Any
    steps: int | None
    events: Events | None = None
    step_ms: int | None = None

    def asked(self, cycle: Ints) -> Asked:
        """Where choices are asked for; ``cycle``: the period of each step."""
        moment = Moment(self.trace.steps, cycle[self.trace.steps % len(cycle)], self.step_ms)
        user = np.repeat(np.arange(len(self.ids)), np.diff(self.trace.start))
        return Asked(self.shape, self.where, self.ids, user, moment)

    def arrange(self, out: Outputs) -> dict[str, NDArray[Any]]:
        """The fields of a TraceResult."""
        return spread(out, self.shape, self.where)

    def evidence(
        self,
        model: MobilityModel,
        priors: Priors,
        cycle: Ints,
        released: NDArray[np.int32],
        rows: list[LikelihoodRows],
        chosen: Chosen | None = None,
    ) -> Evidence:
        """What was released, with its likelihoods; ``chosen``: policy and epsilon of each event."""
        if priors.point:
            first = np.zeros(len(self.ids), np.int64)
            some = np.diff(self.trace.start) > 0
            first[some] = self.trace.cells[self.trace.start[:-1][some]]
            priors = Priors(priors.rows, first, True)
        lengths = np.concatenate([[0][:0], *(np.diff(r.start) for r in rows)])
        cells = np.concatenate([np.empty(0, np.int32), *(r.cells for r in rows)])
        logs = np.concatenate([np.empty(0), *(r.logs for r in rows)])
        if self.events is not None:
            found = Evidence.of_events(
                self.events, model, priors, cycle, released, lengths, cells, logs
            )
            return found if chosen is None else replace(found, **chosen._asdict())
        dense, all_lengths = np.full(self.shape, -1, np.int32), np.zeros(self.shape, np.int64)
        dense[self.where], all_lengths[self.where] = released, lengths
        found = Evidence.of_array(model, priors, cycle, dense, all_lengths, cells, logs)
        if chosen is None:
            return found
        policy, epsilon = np.zeros(self.shape, np.int64), np.zeros(self.shape)
        policy[self.where], epsilon[self.where] = chosen
        return replace(found, policy=found.at_rows(policy), epsilon=found.at_rows(epsilon))


def layout_of_array(traces: Any, size: int, users: ArrayLike | None) -> Layout:
    """Of an array (users, T) of cells, -1 for missing."""
    array = check.integers(traces, "traces", InvalidTransition)
    if array.ndim != 2:
        raise InvalidTransition(
            f"traces must have shape (users, T), got {array.shape}: one user's trace is "
            "trace[None, :]"
        )
    cells = check.cells_or_missing(
        array,
        size,
        error=InvalidTransition,
        where=lambda cell, u, t: f"user {u} has {cell} at step {t}",
    )
    n, T = cells.shape
    ids = np.arange(n) if users is None else check.user_numbers(np.asarray(users))
    if len(ids) != n:
        raise InvalidParameter(f"users has {len(ids)} numbers for {n} traces")
    seen = cells >= 0
    if seen.all():
        start = np.arange(n + 1) * T
        steps, flat = np.tile(np.arange(T), n), cells.reshape(-1)
    else:
        # NumPy gives a strided view, for which kernels would be compiled once more
        steps = np.ascontiguousarray(np.nonzero(seen)[1])
        start, flat = starts_of(seen.sum(axis=1)), cells[seen]
    return Layout(ids, Trace(start, steps, flat), (n, T), seen, T)


def layout_of_events(events: Events, size: int) -> Layout:
    """Of events in any order."""
    order = events.order
    cells = events.cells[order]
    if cells.size and cells.max() >= size:
        e = int(np.argmax(events.cells >= size))
        raise InvalidTransition(
            f"person {events.persons[e]} is at {events.cells[e]} at step {events.steps[e]}: cells "
            f"are 0..{size - 1}"
        )
    trace = Trace(events.start, events.steps[order], cells)
    return Layout(events.ids, trace, (len(events),), order, None, events)


def layout_of_traces(traces: Traces) -> Layout:
    """Of rows at equal steps, of which several may be of one person; results are (rows, longest).

    Steps are counted from 1970 in the duration of one step."""
    lengths = traces.lengths
    row = np.repeat(np.arange(len(traces)), lengths)
    column = np.arange(len(traces.cells)) - np.repeat(traces.starts[:-1], lengths)
    unit = traces.step.astype("timedelta64[ms]").astype(np.int64)
    begin = traces.start.astype("datetime64[ms]").astype(np.int64) // unit
    seen = traces.cells >= 0
    row, column = row[seen], column[seen]
    events = Events(
        traces.user.codes[row].astype(np.int64), begin[row] + column, traces.cells[seen]
    )
    order = events.order
    trace = Trace(events.start, events.steps[order], events.cells[order])
    shape = (len(traces), int(lengths.max(initial=0)))
    return Layout(events.ids, trace, shape, (row[order], column[order]), None, events, int(unit))


def day_cycle(step: np.timedelta64, periods: int) -> Ints | None:
    """The period of each step of a day, counted from midnight UTC."""
    unit = int(step.astype("timedelta64[ms]").astype(np.int64))
    if periods == 1:
        return None
    if DAY_MS % unit:
        raise InvalidParameter(
            f"steps of {step} do not divide a day, so that periods of the day do not follow: give "
            "cycle="
        )
    return day_period(np.arange(DAY_MS // unit) * (unit / 1000), periods)


def checked_cycle(periods: int, cycle: Any, steps: int | None) -> Ints:
    """The period of each step: of so many steps, or of a cycle."""
    if cycle is None:
        return np.arange(periods)
    name = "cycle" if steps is None else "periods"
    array = check.integers(cycle, name, InvalidTransition).astype(np.int64)
    wrong = array.ndim != 1 or (array.size == 0 if steps is None else array.size != steps)
    if wrong or (array.size and (array.min() < 0 or array.max() >= periods)):
        many = "at least one number" if steps is None else f"{steps} numbers"
        raise InvalidTransition(f"{name} must be {many} in 0..{periods - 1}, one for each step")
    return array if array.size else np.arange(periods)
