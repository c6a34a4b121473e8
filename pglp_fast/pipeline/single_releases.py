"""Rows that are released one by one."""

import secrets
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import place_in_run, starts_of
from pglp_fast._util.storage import alone_with
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.traces.admission import admit
from pglp_fast.traces.job_ledger import Spent, begin_job
from pglp_fast.traces.ledger import Ledger, number_of
from pglp_fast.traces.ledger_file import LedgerFile
from pglp_fast.traces.spending import nothing_spent

from .booking import Booking, refuse_over_budget
from .persons import Persons
from .places_and_choices import check_places, place_and_choose
from .plan import Plan
from .released import ALONE, BUDGET, Added, Choice, Outcome
from .source import Batch

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class Alone:
    """Rows released one by one, in the order they come.

    ``past``: what was released before; with ``draw=False`` rows are only counted."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        outcome: Outcome,
        past: Ledger | None = None,
        *,
        draw: bool = True,
    ):
        self._plan, self._seed, self._outcome, self._draw = plan, seed, outcome, draw
        self._mechanisms: dict[tuple[int, float], Mechanism] = {}
        self._persons, self._past = Persons(), past
        self._spent, self._sums = np.zeros(0, np.int64), np.zeros(0)
        self._ids, self._before = np.zeros(0, np.int64), np.zeros(0)
        # what each person spent under each policy, for a ledger
        self._shares = np.zeros((0, len(plan.policy_names)))

    def __call__(self, batch: Batch) -> Added:
        plan = self._plan
        cells, status, choice = place_and_choose(batch, plan)
        users = self._persons.codes(batch.tracks.user)
        self._meet()
        epsilons = np.full(len(users), plan.epsilon) if choice is None else choice.epsilon[batch.at]
        inside = status[batch.at] == ALONE
        if plan.limits:
            over = self._beyond(users, inside, epsilons)
            if over.any():
                who = self._persons.labels[users[over.argmax()]]
                refuse_over_budget(plan, int(over.sum()), who)
            status[batch.at[over]] = BUDGET
            inside &= ~over
        self._spent += np.bincount(users[inside], minlength=len(self._spent))
        self._sums += np.bincount(users[inside], epsilons[inside], minlength=len(self._spent))
        if self._plan.ledger is not None:
            policy = 0 if choice is None else choice.policy[batch.at[inside]]
            np.add.at(self._shares, (users[inside], policy), epsilons[inside])
        self._outcome.persons = len(self._persons)
        self._outcome.spend(self._spent, self._sums if plan.many_epsilons else None)
        out = np.full(batch.rows, -1, np.int32)
        if self._draw:
            self._release(batch, cells, status, choice, out)
        none = status != ALONE
        if choice is not None:
            choice.policy[none], choice.epsilon[none] = -1, np.nan
        return Added(out, status, None, choice)

    def _meet(self) -> None:
        """Make room for persons who are met for the first time."""
        new = self._persons.labels[len(self._spent) :]
        self._spent = np.concatenate([self._spent, np.zeros(len(new), np.int64)])
        self._sums = np.concatenate([self._sums, np.zeros(len(new))])
        if self._plan.ledger is not None:
            ids = np.array([number_of(label) for label in new], np.int64)
            before = np.zeros(len(ids)) if self._past is None else self._past.select(ids).epsilons()
            self._ids = np.concatenate([self._ids, ids])
            self._before = np.concatenate([self._before, before])
            more = np.zeros((len(new), self._shares.shape[1]))
            self._shares = np.concatenate([self._shares, more])

    def _release(
        self,
        batch: Batch,
        cells: NDArray[np.int32],
        status: NDArray[np.uint8],
        choice: Choice | None,
        out: NDArray[np.int32],
    ) -> None:
        """Draw the rows of each choice; a draw depends on the key and the row's number alone."""
        plan, rows = self._plan, np.flatnonzero(status == ALONE)
        numbers = np.arange(batch.first, batch.first + batch.rows)
        if choice is None:
            parts = [((0, plan.epsilon), rows)]
        else:
            keys = np.stack([choice.policy[rows].astype(np.float64), choice.epsilon[rows]], 1)
            distinct, which = np.unique(keys, axis=0, return_inverse=True)
            parts = [((int(p), float(e)), rows[which.reshape(-1) == k])
                     for k, (p, e) in enumerate(distinct)]  # fmt: skip
        for key, some in parts:
            if key not in self._mechanisms:
                self._mechanisms[key] = plan.for_rows(*key)
            drawn = self._mechanisms[key].release(cells[some], users=numbers[some], rng=self._seed)
            out[some] = drawn
            self._outcome.bare += int(plan.bare[key[0]][cells[some]].sum())

    def _beyond(
        self,
        users: NDArray[np.int64],
        inside: NDArray[np.bool_],
        epsilons: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Which rows do not fit into what is left of a person's budget, in the order they come."""
        rows = np.flatnonzero(inside)
        order = rows[np.argsort(users[rows], kind="stable")]
        out = np.zeros(len(users), np.bool_)
        if self._plan.allowed is not None:
            out[order] = (
                self._spent[users[order]] + place_in_run(users[order]) >= self._plan.allowed
            )
            return out
        spent = nothing_spent(len(self._sums))._replace(high=self._sums + (
            self._before if len(self._before) else 0.0))  # fmt: skip
        start = starts_of(np.bincount(users[order], minlength=len(self._sums)))
        steps = np.zeros(len(order), np.int64)
        out[order] = ~admit(self._plan.limits, spent, start, steps, epsilons[order])
        return out

    def spent(self, since: tuple[Counts, Floats] | None = None) -> Spent:
        """What was counted for the ledger; ``since``: after it was ``counted`` before."""
        releases, shares = self.counted()
        if since is not None:
            known = len(since[0])
            releases[:known] -= since[0]
            shares[:known] = np.maximum(shares[:known] - since[1], 0.0)
        weighted = self._plan.policy_set.weighted
        return Spent.on_rows(self._ids, releases, shares, self._shares > 0, weighted=weighted)

    def counted(self) -> tuple[Counts, Floats]:
        """How many releases each person made, and what they spent under each policy."""
        return self._spent.copy(), self._shares.copy()

    def totals(self) -> tuple[Counts, Floats]:
        """Numbers of the persons in ledgers, and what each spent."""
        return self._ids, self._sums

    def renew(self, past: Ledger) -> None:
        """Take over what was released before, this object's own releases among it."""
        self._past = past
        self._before = past.select(self._ids).epsilons() - self._sums


class BookedRows:
    """Rows released one by one, batch by batch; what a batch spends is written down in the ledger
    file of the plan, if it has one, before anybody sees it."""

    def __init__(self, plan: Plan, seed: int, outcome: Outcome):
        self._plan, self._alone = plan, Alone(plan, seed, outcome)
        self._name = secrets.token_hex(8)

    def __call__(self, batch: Batch) -> Added:
        plan = self._plan
        if plan.ledger is None:
            return self._alone(batch)
        file = LedgerFile(plan.ledger, plan.policy_set)
        with alone_with(file.path):
            before, old = file.read_after(*self._alone.totals()), self._alone.counted()
            self._alone.renew(before)
            added = self._alone(batch)
            begin_job(file, self._name, before, self._alone.spent(old), plan.limits)
        return added


def book_all(plan: Plan, batches: Iterable[Batch], booking: Booking) -> Ledger | None:
    """What was released before; where a ledger file is kept, all rows are counted and written down
    there before any is drawn."""
    if plan.ledger is None:
        return None
    outcome = Outcome()
    with booking.begun() as past:
        counting = Alone(plan, 0, outcome, past, draw=False)
        for batch in batches:
            outcome.add(counting(batch))
        check_places(outcome, plan)
        booking.spent = counting.spent()
    return past
