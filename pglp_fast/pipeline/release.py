"""Batches of rows in, what is released for each row out.

Without a mobility model rows are released one by one: the draw of a row is a function of the key
and the row's number in the whole source. With one, a first pass reads who was where and when; then
persons are released; then each batch gets its rows' releases. (Files go through ``tasks``.)"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast.adversary.events import Events
from pglp_fast.errors import InvalidTable
from pglp_fast.traces.job_ledger import Spent
from pglp_fast.traces.ledger import Ledger, number_of
from pglp_fast.traces.releaser import TraceReleaser
from pglp_fast.traces.spending import Spending

from .account import Account, Certificate
from .booking import Booking, admitted, refuse_over_budget
from .choice import Choice
from .choosing import EventPolicies, choose_rows, followed
from .fingerprint import Fingerprint
from .persons import Persons
from .plan import Plan
from .released import (
    ALONE,
    BUDGET,
    EXPOSED,
    MALFORMED,
    MISSING,
    OUTSIDE,
    REPEAT,
    STEP,
    SURROGATE,
    Added,
    Outcome,
)
from .source import Batch
from .steps import Admit, lay_out

Release = Callable[[Batch], Added]
Ints = NDArray[np.int64]


class Drawn(NamedTuple):
    """Released cells and flags of the events of a part, and what there is to say of all of it."""

    cells: NDArray[np.int32]
    flags: NDArray[np.uint8]
    account: Account
    ledger: Ledger
    choice: Choice | None


def place(batch: Batch, plan: Plan) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(cell, status) of each row of a batch; the status is ALONE where there is a cell."""
    cells = np.full(batch.rows, -1, np.int32)
    status = np.full(batch.rows, MALFORMED, np.uint8)
    tracks = batch.tracks
    if len(tracks) < batch.rows and plan.on_error == "raise":
        raise InvalidTable(
            f"{batch.malformed[0]}; on_error='skip' keeps such rows, unreleased, and goes on"
        )
    found = plan.map.locate(tracks.lat, tracks.lon)
    cells[batch.at] = found
    nowhere = np.isnan(tracks.lat) | np.isnan(tracks.lon)
    status[batch.at] = np.where(found >= 0, ALONE, np.where(nowhere, MISSING, OUTSIDE))
    return cells, status


def check_places(outcome: Outcome, plan: Plan) -> None:
    """An error if most rows are off the map."""
    off = int(outcome.statuses[OUTSIDE])
    placed = outcome.rows - int(outcome.statuses[[MISSING, MALFORMED]].sum())
    if not plan.allow_outside and 2 * off > placed:
        raise InvalidTable(
            f"{off:,} of {placed:,} places are off the map: are latitude and longitude swapped, "
            "the map's bounds wrong, or the places not in degrees? allow_outside=True releases "
            "the others"
        )


def place_and_choose(
    batch: Batch, plan: Plan
) -> tuple[NDArray[np.int32], NDArray[np.uint8], Choice | None]:
    """The same, and the policy and epsilon of each row, where they are not the same for all."""
    cells, status = place(batch, plan)
    if not plan.chooses:
        return cells, status, None
    choice, odd = choose_rows(batch, plan)
    cells[odd], status[odd] = -1, MALFORMED
    return cells, status, choice


class Seen(NamedTuple):
    """What is kept of each row: 17 bytes."""

    person: NDArray[np.int32]  # a code, -1 for none
    ms: NDArray[np.int64]
    cell: NDArray[np.int32]  # -1 for none
    status: NDArray[np.uint8]


class AlongTraces:
    """Rows released as steps of their persons' traces.

    Parameters
    ----------
    plan, seed : Plan, int
        The seed keys the noise.
    batches : iterable of Batch
        The whole source, which is read here once.
    outcome : Outcome
        Where counts go.
    """

    def __init__(self, plan: Plan, seed: int, batches: Iterable[Batch], outcome: Outcome):
        seen, persons, choice = self._read(plan, seed, batches, outcome)
        self._seen, self._choice, self._outcome = seen, choice, outcome
        self._plan, self._persons = plan, persons
        at = self._at = np.flatnonzero(seen.cell >= 0)
        self._person = persons.numbers()[seen.person[at]] if len(persons) else seen.ms[at]
        booking = Booking(plan)
        booking.begin(self._count)
        steps, first = self._steps, self._at[self._steps.rows]
        events = Events(self._person[steps.rows], steps.step, seen.cell[first])
        drawn = release_part(plan, seed, events, None if choice is None else choice.take(first))
        booking.settle(_relabelled(drawn.ledger, self._person, self._label_numbers()))
        outcome.certificate = certified(plan, seed, drawn.account)
        outcome.bare = int(bare_of(plan, drawn.choice, seen.cell[first]).sum())
        rows, kept = len(seen.cell), ~steps.over
        self._cells, self._flags = np.full(rows, -1, np.int32), np.zeros(rows, np.uint8)
        self._cells[at[kept]] = drawn.cells[steps.follows[kept]]
        self._flags[first] = drawn.flags
        if drawn.choice is not None:
            self._choice = Choice.none(rows)
            held = drawn.choice.take(steps.follows[kept])
            self._choice.policy[at[kept]], self._choice.epsilon[at[kept]] = held

    def _label_numbers(self) -> NDArray[np.int64]:
        """Of each fix, its person's number in ledgers."""
        if self._plan.ledger is None:
            return self._person
        ids = np.array([number_of(label) for label in self._persons.labels], np.int64)
        return ids[self._seen.person[self._at]]

    def _count(self, past: Ledger | None) -> Spent:
        """Lay out the steps that the budget allows after what was released before."""
        plan, seen, at, ids = self._plan, self._seen, self._at, self._label_numbers()
        choice, outcome = self._choice, self._outcome
        epsilon = np.full(len(at), plan.epsilon) if choice is None else choice.epsilon[at]
        steps = self._steps = lay_out(
            self._person, seen.ms[at], plan.step_ms, plan.allowed,
            admit=admission(plan, past, ids, epsilon),
        )  # fmt: skip
        if steps.over.any():
            over = at[steps.over]
            refuse_over_budget(plan, len(over), self._persons.labels[seen.person[over[0]]])
        rows, first = steps.rows, at[steps.rows]
        outcome.persons = len(self._persons)
        counts = np.bincount(seen.person[first]) if first.size else np.zeros(0, np.int64)
        sums = np.bincount(seen.person[first], epsilon[rows]).astype(np.float64)
        outcome.spend(counts, sums if plan.many_epsilons else None)
        self._status = seen.status
        self._status[at] = np.where(steps.over, BUDGET, REPEAT)
        self._status[first] = STEP
        check_places(_counted(self._status), plan)
        return Spent.on_steps(ids[rows], steps.step, epsilon[rows], plan.limits.window)

    @staticmethod
    def _read(
        plan: Plan, seed: int, batches: Iterable[Batch], outcome: Outcome
    ) -> tuple[Seen, Persons, Choice | None]:
        none = np.empty(0, np.int32)
        read = [Seen(none, none.astype(np.int64), none, none.astype(np.uint8))]
        persons, fixes, choices = Persons(seed), Fingerprint(), list[Choice]()
        for batch in batches:
            cells, status, choice = place_and_choose(batch, plan)
            choices += [] if choice is None else [choice]
            untimed = batch.at[np.isnat(batch.tracks.time)]
            status[untimed], cells[untimed] = MISSING, -1
            who, ms = np.full(batch.rows, -1, np.int32), np.zeros(batch.rows, np.int64)
            who[batch.at], ms[batch.at] = persons.codes(batch.tracks.user), batch.tracks.ms
            read.append(Seen(who, ms, cells, status))
            fixes.add(batch.tracks)
        outcome.own = fixes.share_of(plan.mobility)
        chosen = Choice.joined(choices) if plan.chooses else None
        return Seen(*map(np.concatenate, zip(*read, strict=True))), persons, chosen

    def __call__(self, batch: Batch) -> Added:
        some = slice(batch.first, batch.first + batch.rows)
        if len(self._status[some]) != batch.rows:
            raise InvalidTable(f"{batch.source} changed while it was read: start again")
        choice = None if self._choice is None else self._choice.take(some)
        return Added(self._cells[some], self._status[some], self._flags[some], choice)


def _counted(status: NDArray[np.uint8]) -> Outcome:
    out = Outcome()
    out.add(Added(np.empty(0, np.int32), status, None))
    return out


def _relabelled(ledger: Ledger, person: Ints, number: Ints) -> Ledger:
    """A ledger of persons by their numbers in a job, by those in ledgers."""
    known, at = np.unique(person, return_index=True)
    ids = ledger.ids if not known.size else number[at][np.searchsorted(known, ledger.ids)]
    return replace(ledger, ids=ids)


def admission(
    plan: Plan, past: Ledger | Spending | None, person: Ints, epsilon: NDArray[np.float64]
) -> Admit | None:
    """What says which rows fit into the budgets; None where counting says it."""
    if plan.allowed is not None or not plan.limits:
        return None
    return lambda rows, steps: admitted(plan, past, person[rows], steps, epsilon[rows])


def bare_of(plan: Plan, choice: Choice | None, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which events are at cells that their policy does not ask to hide."""
    return np.asarray(plan.bare[0 if choice is None else choice.policy, cells])


def release_part(plan: Plan, seed: int, events: Events, choice: Choice | None = None) -> Drawn:
    """Release the events of some persons, by person and step, in any process: a function of its
    arguments."""
    how: dict[str, Any] = {}
    if choice is not None:
        how = {"policy": EventPolicies(plan, choice.policy), "epsilon": choice.epsilon}
    found = _releaser(plan, seed).run(events, cycle=plan.cycle, **how)
    flags = SURROGATE * found.surrogate + EXPOSED * found.exposed
    assert found.certificate is not None
    held = choice and followed(choice, plan.places, events.persons, found.released)
    return Drawn(
        found.released, flags.astype(np.uint8), Account.of(found.certificate),
        found.certificate.ledger, held,
    )  # fmt: skip


def certified(plan: Plan, seed: int, account: Account) -> Certificate:
    """What is proved of releases."""
    verdict = _releaser(plan, seed).engine.prove(account.proof)
    return Certificate.of_account(account, verdict, plan.epsilon)


@lru_cache(maxsize=1)
def _by_digest(digest: str, seed: int) -> list[TraceReleaser]:
    return []


def _releaser(plan: Plan, seed: int) -> TraceReleaser:
    """The releaser of a plan, made once in a process."""
    held = _by_digest(plan.digest, seed)
    if not held:
        held.append(plan.for_traces(seed))
    return held[0]
