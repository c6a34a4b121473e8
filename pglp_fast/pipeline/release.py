"""Batches of rows in, what is released for each row out.

Without a mobility model rows are released one by one: the draw of a row is a function of the key
and the row's number in the whole source. With one, a first pass reads who was where and when; then
persons are released; then each batch gets its rows' releases. (Files go through ``tasks``.)"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import place_in_run
from pglp_fast.adversary.events import Events
from pglp_fast.errors import BudgetExceeded, InvalidTable
from pglp_fast.traces.releaser import TraceReleaser

from .account import Account, Certificate
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
from .steps import lay_out

Release = Callable[[Batch], Added]


class Drawn(NamedTuple):
    """Released cells and flags of the events of a part, and what there is to say of all of it."""

    cells: NDArray[np.int32]
    flags: NDArray[np.uint8]
    account: Account


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


def refuse_over_budget(plan: Plan, rows: int, who: str) -> None:
    """An error, unless rows beyond the budget are to be kept unreleased."""
    if plan.on_error == "raise":
        raise BudgetExceeded(
            f"{rows:,} rows are beyond the budget, the first of user {who}: {plan.budget:g} is "
            f"enough for {plan.allowed} releases of each user; raise the budget, or keep such "
            "rows unreleased with on_error='skip'"
        )


class Alone:
    """Rows released one by one, in the order they come."""

    def __init__(self, plan: Plan, seed: int, outcome: Outcome):
        self._plan, self._seed, self._outcome = plan, seed, outcome
        self._mechanism, self._persons = plan.for_rows(), Persons(seed)
        self._bare, self._spent = plan.graph.degrees() == 0, np.zeros(0, np.int64)

    def __call__(self, batch: Batch) -> Added:
        cells, status = place(batch, self._plan)
        users = self._persons.codes(batch.tracks.user)
        more = np.zeros(len(self._persons) - len(self._spent), np.int64)
        self._spent = np.concatenate([self._spent, more])
        inside = status[batch.at] == ALONE
        if self._plan.allowed is not None:
            over = self._beyond(users, inside, self._plan.allowed)
            if over.any():
                who = self._persons.labels[users[over.argmax()]]
                refuse_over_budget(self._plan, int(over.sum()), who)
            status[batch.at[over]] = BUDGET
            inside &= ~over
        self._spent += np.bincount(users[inside], minlength=len(self._spent))
        numbers = np.arange(batch.first, batch.first + batch.rows)
        drawn = self._mechanism.release(cells, users=numbers, rng=self._seed)
        self._outcome.persons = len(self._persons)
        self._outcome.spend(self._spent)
        self._outcome.bare += int(self._bare[cells[status == ALONE]].sum())
        return Added(np.where(status == ALONE, drawn, np.int32(-1)), status, None)

    def _beyond(
        self, users: NDArray[np.int64], inside: NDArray[np.bool_], most: int
    ) -> NDArray[np.bool_]:
        """Which rows come after a person's last that the budget allows, in the order they come."""
        rows = np.flatnonzero(inside)
        order = rows[np.argsort(users[rows], kind="stable")]
        out = np.zeros(len(users), np.bool_)
        out[order] = self._spent[users[order]] + place_in_run(users[order]) >= most
        return out


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
        seen, persons = self._read(plan, seed, batches, outcome)
        at = np.flatnonzero(seen.cell >= 0)
        person = persons.numbers()[seen.person[at]] if len(persons) else seen.ms[at]
        steps = lay_out(person, seen.ms[at], plan.step_ms, plan.allowed)
        if steps.over.any():
            over = at[steps.over]
            who = persons.labels[seen.person[over[0]]]
            refuse_over_budget(plan, len(over), who)
        first = at[steps.rows]
        outcome.persons = len(persons)
        outcome.spend(np.bincount(seen.person[first]) if first.size else np.zeros(0, np.int64))
        outcome.bare = int((plan.graph.degrees() == 0)[seen.cell[first]].sum())
        self._status = seen.status
        self._status[at] = np.where(steps.over, BUDGET, REPEAT)
        self._status[first] = STEP
        check_places(_counted(self._status), plan)
        drawn = release_part(plan, seed, Events(person[steps.rows], steps.step, seen.cell[first]))
        outcome.certificate = certified(plan, seed, drawn.account)
        rows, kept = len(seen.cell), ~steps.over
        self._cells, self._flags = np.full(rows, -1, np.int32), np.zeros(rows, np.uint8)
        self._cells[at[kept]] = drawn.cells[steps.follows[kept]]
        self._flags[first] = drawn.flags

    @staticmethod
    def _read(
        plan: Plan, seed: int, batches: Iterable[Batch], outcome: Outcome
    ) -> tuple[Seen, Persons]:
        none = np.empty(0, np.int32)
        read = [Seen(none, none.astype(np.int64), none, none.astype(np.uint8))]
        persons, fixes = Persons(seed), Fingerprint()
        for batch in batches:
            cells, status = place(batch, plan)
            untimed = batch.at[np.isnat(batch.tracks.time)]
            status[untimed], cells[untimed] = MISSING, -1
            who, ms = np.full(batch.rows, -1, np.int32), np.zeros(batch.rows, np.int64)
            who[batch.at], ms[batch.at] = persons.codes(batch.tracks.user), batch.tracks.ms
            read.append(Seen(who, ms, cells, status))
            fixes.add(batch.tracks)
        outcome.own = fixes.share_of(plan.mobility)
        return Seen(*map(np.concatenate, zip(*read, strict=True))), persons

    def __call__(self, batch: Batch) -> Added:
        some = slice(batch.first, batch.first + batch.rows)
        if len(self._status[some]) != batch.rows:
            raise InvalidTable(f"{batch.source} changed while it was read: start again")
        return Added(self._cells[some], self._status[some], self._flags[some])


def _counted(status: NDArray[np.uint8]) -> Outcome:
    out = Outcome()
    out.add(Added(np.empty(0, np.int32), status, None))
    return out


def release_part(plan: Plan, seed: int, events: Events) -> Drawn:
    """Release the events of some persons, in any process: a function of its arguments."""
    found = _releaser(plan, seed).run(events, cycle=plan.cycle)
    flags = SURROGATE * found.surrogate + EXPOSED * found.exposed
    assert found.certificate is not None
    return Drawn(found.released, flags.astype(np.uint8), Account.of(found.certificate))


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
