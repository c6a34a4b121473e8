"""Rows of persons who move, released as steps of their traces: a function of plan, key and rows.

A table in memory is released at once, files part by part (``tasks``). Batches that come one after
the other keep what the adversary knows of each person in between (``batches``)."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.threads import ForkLock
from pglp_fast.adversary.events import Events
from pglp_fast.traces.job_ledger import Spent
from pglp_fast.traces.ledger import Ledger
from pglp_fast.traces.releaser import TraceReleaser
from pglp_fast.traces.schedule import Moment, Schedule
from pglp_fast.traces.spending import Spending

from .booking import Booking, admitted, refuse_over_budget
from .certificate import Account, Certificate
from .persons import Numbers, ledger_numbers, tell_apart
from .places_and_choices import check_places, place_and_choose
from .plan import Plan
from .released import BUDGET, REPEAT, STEP, Added, Choice, Outcome, flags_of
from .source import Batch
from .steps import Admit, Steps, lay_out

Ints = NDArray[np.int64]


class Fixes(NamedTuple):
    """Rows that have a person, a time and a cell.

    Attributes
    ----------
    person : the person's number, which keys the noise
    label : the person's number in ledgers
    ms, cell : when, and where
    choice : policy and epsilon; None where they are the same for all
    """

    person: Ints
    label: Ints
    ms: Ints
    cell: NDArray[np.int32]
    choice: Choice | None

    def epsilons(self, plan: Plan) -> NDArray[np.float64]:
        return self.choice.epsilon if self.choice else np.full(len(self.person), plan.epsilon)

    def steps(self, plan: Plan, past: Ledger | None) -> Steps:
        """The steps that the budget allows after what was released before."""
        admit = admission(plan, past, self.label, self.epsilons(plan))
        return lay_out(self.person, self.ms, plan.step_ms, plan.allowed, admit=admit)

    def spent(self, plan: Plan, steps: Steps) -> Spent:
        """What a ledger is told of them."""
        some = steps.rows
        return Spent.on_steps(
            self.label[some], steps.step, self.epsilons(plan)[some], plan.limits.window
        )


class Drawn(NamedTuple):
    """Released cells and flags of the events of a part, and what there is to say of all of it."""

    cells: NDArray[np.int32]
    flags: NDArray[np.uint8]
    account: Account
    ledger: Ledger
    choice: Choice | None


def release_moving(batches: list[Batch], plan: Plan, seed: int) -> Added:
    """What is added to all rows of a table in memory; the seed keys the noise."""
    whole, rows, fixes = _read(batches, plan, seed)
    booking = Booking(plan)
    with booking.begun() as past:
        steps = fixes.steps(plan, past)
        if steps.over.any():
            first = int(rows[steps.over.argmax()])
            batch = next(b for b in batches if first < b.first + b.rows)
            refuse_over_budget(plan, int(steps.over.sum()), batch.label(first - batch.first))
        booking.spent = fixes.spent(plan, steps)
    added, drawn = release_fixes(plan, seed, fixes, steps)
    booking.settle(drawn.ledger)
    whole.put(rows, added)
    return whole


def _read(batches: list[Batch], plan: Plan, seed: int) -> tuple[Added, Ints, Fixes]:
    """(the status of each row; which rows are fixes, and these)."""
    numbers, status, listed = Numbers(seed), [np.empty(0, np.uint8)], [np.empty((0, 2), np.int64)]
    rows, cells = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    person, ms, choices = [rows[0]], [rows[0]], list[Choice]()
    for batch in batches:
        place, state, choice = place_and_choose(batch, plan)
        on = place[batch.at] >= 0
        at, (who, known) = batch.at[on], numbers.listed(batch.tracks.user)
        status.append(state)
        rows.append(batch.first + at)
        cells.append(place[at])
        person.append(who[on])
        listed.append(known)
        ms.append(batch.tracks.ms[on])
        choices += [] if choice is None else [choice.take(at)]
    whole = Added.of_status(np.concatenate(status), plan)
    outcome = Outcome()
    outcome.add(whole)
    check_places(outcome, plan)
    who, known = np.concatenate(person), tell_apart(np.concatenate(listed))
    label = who if plan.ledger is None else ledger_numbers(who, known)
    chosen = Choice.joined(choices) if plan.chooses else None
    fixes = Fixes(who, label, np.concatenate(ms), np.concatenate(cells), chosen)
    return whole, np.concatenate(rows), fixes


def release_fixes(plan: Plan, seed: int, fixes: Fixes, steps: Steps) -> tuple[Added, Drawn]:
    """(what is added to each fix, what was drawn for those that lead a step)."""
    first, kept = steps.rows, ~steps.over
    status = np.where(steps.over, BUDGET, REPEAT).astype(np.uint8)
    status[first] = STEP
    added = Added.of_status(status, plan)
    events = Events(fixes.person[first], steps.step, fixes.cell[first])
    drawn = release_part(plan, seed, events, fixes.choice and fixes.choice.take(first))
    assert added.flags is not None
    added.cells[kept], added.flags[first] = drawn.cells[steps.follows[kept]], drawn.flags
    if added.choice is not None and drawn.choice is not None:
        added.choice.put(kept, drawn.choice.take(steps.follows[kept]))
    if plan.ledger is not None:
        known, at = np.unique(fixes.person[first], return_index=True)
        ids = fixes.label[first[at]][np.searchsorted(known, drawn.ledger.ids)]
        drawn = drawn._replace(ledger=replace(drawn.ledger, ids=ids))
    return added, drawn


def release_part(plan: Plan, seed: int, events: Events, choice: Choice | None = None) -> Drawn:
    """Release the events of some persons, by person and step, in any process: a function of its
    arguments."""
    how: dict[str, Any] = {}
    if choice is not None:
        how = {"policy": _EventPolicies(plan, choice.policy), "epsilon": choice.epsilon}
    found = _releaser(plan, seed).run(events, cycle=plan.cycle, **how)
    assert found.certificate is not None
    held = choice and followed(choice, plan.places, events.persons, found.released)
    return Drawn(
        found.released, flags_of(found.surrogate, found.exposed, found.added),
        Account.of(found.certificate), found.certificate.ledger, held,
    )  # fmt: skip


def certified(plan: Plan, seed: int, account: Account) -> Certificate:
    """What is proved of releases."""
    verdict = _releaser(plan, seed).engine.prove(account.proof)
    return Certificate.of_account(account, verdict, plan.epsilon)


_making = ForkLock()


@lru_cache(maxsize=1)
def _by_digest(digest: str, seed: int) -> list[TraceReleaser]:
    return []


def _releaser(plan: Plan, seed: int) -> TraceReleaser:
    """The releaser of a plan, made once in a process, with the prior that it begins with."""
    with _making:
        held = _by_digest(plan.digest, seed)
        if not held:
            made = plan.for_traces(seed)
            made.model.stationary()  # worked out, and kept
            held.append(made)
        return held[0]


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


class _EventPolicies(Schedule):
    """Policies of events that are known one by one, with those by released place."""

    def __init__(self, plan: Plan, policy: NDArray[np.int16]):
        super().__init__(plan.policy_names[0])
        self.names, self._policy = list(plan.policy_names), policy.astype(np.int64)
        self.released = {} if plan.places.size else None
        self._places = plan.places

    def at(self, moment: Moment) -> Ints:
        return self._policy

    def by_place(self, size: int) -> Ints:
        return self._places


def followed(
    choice: Choice,
    places: Ints,
    person: NDArray[np.integer[Any]],
    released: NDArray[np.int32],
    last: NDArray[np.integer[Any]] | None = None,
) -> Choice:
    """What held in the end for events by person and step: the policy of the place released before,
    where that has one. ``last``: what each event's person released before all of them, -1."""
    if not places.size:
        return choice
    n = len(released)
    before = np.full(n, -1) if last is None else np.array(last)
    same = person[1:] == person[:-1]
    before[1:][same] = released[:-1][same]
    place = np.where(before >= 0, places[before], -1)
    return choice._replace(policy=np.where(place >= 0, place, choice.policy).astype(np.int16))
