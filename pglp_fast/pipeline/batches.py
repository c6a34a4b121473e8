"""Record batches in, record batches out, for as long as they come: per-person state by id."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.packages import Later
from pglp_fast._util.process import OwnProcess
from pglp_fast._util.storage import alone_with
from pglp_fast.adversary.priors import make_priors
from pglp_fast.errors import InvalidParameter, InvalidTable
from pglp_fast.io.arrow import frame_batches
from pglp_fast.io.table_batches import refuse_text_options
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.traces.choices import Choices, numbered
from pglp_fast.traces.composition import compose
from pglp_fast.traces.engine import Trace, Users, first_state
from pglp_fast.traces.job_ledger import Spent, begin_job, settle_job
from pglp_fast.traces.layout import checked_cycle
from pglp_fast.traces.ledger import Ledger
from pglp_fast.traces.ledger_file import LedgerFile
from pglp_fast.traces.proof import Proof
from pglp_fast.traces.results import COUNTS
from pglp_fast.traces.state_rows import join_users, take_users

from .booking import refuse_over_budget
from .certificate import Account, Certificate
from .person_store import Known, PersonStore
from .persons import Numbers
from .places_and_choices import check_places, place_and_choose
from .plan import Plan
from .released import BUDGET, LATE, REPEAT, STEP, Added, Choice, Outcome, flags_of
from .single_releases import BookedRows
from .sink import Layout, released_schema, shape_of
from .source import Batch, batch_of, reading_of
from .steps import Steps, lay_out, step_numbers
from .trace_releases import admission, bare_of, followed
from .warm import compile_once

pa = Later("pyarrow")
_ADDED = COUNTS.index("added")
_BLOCK = 4096  # persons that go through their steps together


def release_batches(
    batches: Iterable[Any], plan: Plan, *, resident: int = 1 << 16
) -> "ReleasedBatches":
    """Release record batches as they come, with users in any order.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        All of one schema; such as a ``RecordBatchReader``. The rows of a person come in the order
        of time from batch to batch; within a batch, in any order.
    plan : Plan
    resident : int
        Persons (of a plan with a mobility model) whose state stays in memory between batches. The
        others wait on disk, in a temporary folder of yours, and come back exactly.

    Returns
    -------
    ReleasedBatches
        An iterator of record batches with the columns of ``release_table``; all of them together
        are what ``release_table`` makes of the whole, bit for bit. Its ``outcome`` counts what
        became of the rows; at the end it has the certificate, of persons who move. (Of rows
        that are released one by one, ``pf.certify(plan.for_rows())`` proves what is drawn from.)

    Notes
    -----
    A row that belongs to a step before the last one of its person comes too late: its noise is
    gone. It is refused, or with on_error="skip" kept unreleased, with status "late". A further row
    of the last step repeats its release, or is beyond the budget as its first row was. Without a
    mobility model, what is kept of a person is its label and a count.
    """
    return ReleasedBatches(batches, plan, resident)


class ReleasedBatches(Iterator[Any]):
    """Record batches with released places; see ``release_batches``.

    Attributes
    ----------
    outcome : Outcome
        What became of the rows so far.
    """

    def __init__(self, batches: Iterable[Any], plan: Plan, resident: int):
        refuse_text_options("these are record batches", plan.names, plan.delimiter)
        check.whole(resident, "resident", 1)
        self._plan, self.outcome = plan.check(), Outcome()
        seed = secrets.randbits(256) if plan.seed is None else plan.seed
        self._moving = None if plan.model is None else _Moving(plan, seed, self.outcome, resident)
        self._release: Callable[[Batch], Added] = self._moving or BookedRows(
            plan, seed, self.outcome
        )
        self._made = self._batches(iter(batches))
        self._process = OwnProcess("this release was begun", "Call release_batches in each process")

    def __next__(self) -> Any:
        self._process.require()
        return next(self._made)

    def _batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        plan, first, schema, layout = self._plan, 0, None, None
        try:
            for given in batches:
                if not isinstance(given, pa.RecordBatch):
                    raise InvalidParameter(
                        f"batches must be of pyarrow.RecordBatch, got {type(given).__name__}: use "
                        "table.to_batches(), or release_table"
                    )
                if layout is None:
                    schema, layout = (
                        given.schema,
                        Layout(shape_of(given.schema, plan, "RecordBatch"), plan, "RecordBatch"),
                    )
                    out = released_schema(schema, layout, {**plan.facts, "plan": plan.digest})
                elif not given.schema.equals(schema):
                    raise InvalidTable(
                        f"a batch from row {first} on has another schema than the first: make them "
                        "alike"
                    )
                added = self._of(given, first)
                self.outcome.add(added)
                first += len(given)
                columns = [*layout.old(given, added.status), *layout.added(added)]
                yield pa.RecordBatch.from_arrays(columns, schema=out)
            check_places(self.outcome, plan)
            if self._moving is not None:
                self._moving.finish()
        finally:
            if self._moving is not None:
                self._moving.store.close()

    def _of(self, given: Any, first: int) -> Added:
        """What is added to a batch whose first row has this number."""
        reading = reading_of(self._plan)
        for raw in frame_batches(given, self._plan.columns, max(1, len(given))):
            batch = batch_of(raw._replace(first=first), "RecordBatch", reading)
            return self._release(batch._replace(raw=given))
        return Added.of_status(np.empty(0, np.uint8), self._plan)  # no rows


class _Moving:
    """Rows as steps of their persons' traces, batch by batch."""

    def __init__(self, plan: Plan, seed: int, outcome: Outcome, resident: int):
        model = plan.model
        assert model is not None
        self._plan, self._outcome, self._key = plan, outcome, make_key(seed)
        self._numbers, self._name = Numbers(seed), secrets.token_hex(8)
        self._file: LedgerFile | None = None
        if plan.ledger is not None:
            self._file = LedgerFile(plan.ledger, plan.policy_set)
        compile_once(plan)  # engines such as Spark start many of these at once
        self._engine = plan.for_traces(seed).engine
        self._priors = make_priors(model, None, 1)
        self._cycle = checked_cycle(model.periods, plan.cycle, None)
        self._proof = Proof()
        self.store = PersonStore(first_state(self._priors, len(self._engine.policies)), resident)

    def __call__(self, batch: Batch) -> Added:
        plan = self._plan
        cells, status, choice = place_and_choose(batch, self._plan)
        flags, ms = np.zeros(batch.rows, np.uint8), np.zeros(batch.rows, np.int64)
        who, code = np.full(batch.rows, -1), np.zeros(batch.rows, np.int64)
        who[batch.at], code[batch.at] = self._numbers(batch.tracks.user)
        ms[batch.at] = batch.tracks.ms
        there = np.flatnonzero(who >= 0)
        number, one = np.unique(who[there], return_index=True)
        known = self.store.take(number, code[there][one])
        at = np.flatnonzero(cells >= 0)
        row = np.searchsorted(number, who[at])  # of each fix, its person
        out = np.full(batch.rows, -1, np.int32)
        at, row = self._repeated(known, at, row, ms, batch, out, status, choice)
        epsilon = np.full(len(at), plan.epsilon) if choice is None else choice.epsilon[at]
        with self._booked(known, row, ms[at], epsilon) as steps:
            if steps.over.any():
                over = at[steps.over]
                refuse_over_budget(plan, len(over), batch.label(int(over[0])))
        leads, kept, whose = at[steps.rows], ~steps.over, row[steps.rows]
        status[at] = np.where(steps.over, BUDGET, REPEAT)
        status[leads] = STEP
        own = None if choice is None else choice.take(leads)
        if own is not None:  # the first of a batch follows what was released before it
            own = followed(own, plan.places, np.arange(len(own.policy)), cells[leads],
                           np.where(np.diff(whose, prepend=-1) != 0, known.cell[whose], -1),
                           )  # fmt: skip
        known, drawn, marks = self._drawn(known, whose, steps.step, cells[leads], own)
        decided = step_numbers(ms[at], plan.step_ms)
        order = np.lexsort((decided, row))
        last = order[np.flatnonzero(np.diff(row[order], append=-1) != 0)]
        known.step[row[last]], known.over[row[last]] = decided[last], steps.over[last]
        if own is not None and choice is not None:
            own = followed(own, plan.places, whose, drawn)
            ends = np.flatnonzero(np.diff(whose, append=-1) != 0)
            known.policy[whose[ends]], known.epsilon[whose[ends]] = own.take(ends)
            choice.policy[at[kept]], choice.epsilon[at[kept]] = own.take(steps.follows[kept])
        self.store.put(known)
        out[at[kept]], flags[leads] = drawn[steps.follows[kept]], marks
        if choice is not None:
            choice.policy[out < 0], choice.epsilon[out < 0] = -1, np.nan
        self._outcome.bare += int(bare_of(plan, own, cells[leads]).sum())
        return Added(out, status, flags, choice)

    @contextmanager
    def _booked(
        self,
        known: Known,
        row: NDArray[np.int64],
        ms: NDArray[np.int64],
        epsilon: NDArray[np.float64],
    ) -> Iterator[Steps]:
        """The steps that the budget allows; written down in the ledger file, if there is one, when
        nobody has anything against it."""
        plan, spent = self._plan, known.state.spending
        if self._file is None:
            admit = admission(plan, spent, row, epsilon)
            yield lay_out(row, ms, plan.step_ms, plan.allowed, spent.releases[row], admit)
            return
        with alone_with(self._file.path):
            before, person = self._file.read_after(known.check, spent.total), known.check[row]
            admit = admission(plan, before, person, epsilon)
            steps = lay_out(row, ms, plan.step_ms, None, admit=admit)
            yield steps
            some, limits = steps.rows, plan.limits
            if some.size:
                more = Spent.on_steps(person[some], steps.step, epsilon[some], limits.window)
                fresh = np.isin(more.ids, known.check[spent.releases == 0])
                begin_job(self._file, self._name, before, more, limits, fresh)

    def _repeated(
        self,
        known: Known,
        at: NDArray[np.int64],
        row: NDArray[np.int64],
        ms: NDArray[np.int64],
        batch: Batch,
        out: NDArray[np.int32],
        status: NDArray[np.uint8],
        choice: Choice | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The fixes of new steps. Those of a person's last step repeat it, or what was decided on
        it; others are late."""
        step, last = step_numbers(ms[at], self._plan.step_ms), known.step[row]
        late, same = at[step < last], at[step == last]
        if late.size and self._plan.on_error == "raise":
            raise InvalidTable(
                f"row {batch.first + int(late[0])} comes too late: its person has had a later step "
                "already. Sort the batches by time, or keep such rows unreleased with "
                "on_error='skip'"
            )
        again = row[step == last]
        over = known.over[again] == 1
        status[late], status[same] = LATE, np.where(over, BUDGET, REPEAT)
        out[same] = np.where(over, -1, known.cell[again])
        if choice is not None:
            choice.policy[same], choice.epsilon[same] = known.policy[again], known.epsilon[again]
        new = step > last
        return at[new], row[new]

    def _drawn(
        self,
        known: Known,
        row: NDArray[np.int64],
        step: NDArray[np.int64],
        cells: NDArray[np.int32],
        choice: Choice | None,
    ) -> tuple[Known, NDArray[np.int32], NDArray[np.uint8]]:
        """(persons after their events; released cells and flags of the events, by person)."""
        start = starts_of(np.bincount(row, minlength=len(known.facts)))
        whole, states = Trace(start, step, cells), [take_users(known.state, row[:0])]
        drawn, flags = np.full(len(row), -1, np.int32), np.zeros(len(row), np.uint8)
        for first in range(0, len(known.facts), _BLOCK):
            block = slice(first, min(first + _BLOCK, len(known.facts)))
            trace, some = whole.part(block)
            users = Users(known.number[block], self._key, self._priors.rows, False)
            before = take_users(known.state, np.arange(block.start, block.stop))
            choices = self._choices(len(trace.cells), choice and choice.take(some))
            done = self._engine.release(users, before, trace, self._cycle, choices)
            self._proof |= done.proof
            states.append(done.state)
            drawn[some] = done.out.released
            out = done.out
            flags[some] = flags_of(out.surrogate, out.exposed, out.counts[:, _ADDED])
        ends = start[1:][np.diff(start) > 0] - 1
        known = Known(known.facts.copy(), join_users(states))
        known.cell[row[ends]] = drawn[ends]
        return known, drawn, flags

    def _choices(self, events: int, choice: Choice | None) -> Choices:
        """Policies and epsilons as the engine takes them."""
        if choice is None:
            return self._engine.default_choices(events)
        engine, policy = self._engine, choice.policy.astype(np.int64)
        made = numbered(engine.policies, engine.epsilons, policy, choice.epsilon)
        return made._replace(places=self._plan.places.astype(np.int32))

    def finish(self) -> None:
        """Count persons, prove what was drawn from, and settle what was written down."""
        account, all_releases = Account(self._proof), [np.zeros(0, np.int64)]
        all_sums, ledgers = [np.zeros(0)], list[Ledger]()
        for known in self.store.all():
            releases = known.state.spending.releases
            some = releases > 0
            users = Users(known.number, self._key, self._priors.rows, False)
            ledger = self._engine.ledger(users, known.state)
            kept, sums = ledger.kept_edges()[some], ledger.epsilons()
            all_releases.append(releases)
            all_sums.append(sums)
            ledgers += [replace(ledger, ids=known.check)] if len(releases) else []
            most = float(sums.max(initial=0.0))
            account |= Account(Proof(), int(some.sum()), most, int((kept == 0).sum()))
        releases, many = np.concatenate(all_releases), self._plan.many_epsilons
        self._outcome.persons = len(releases)
        self._outcome.spend(releases, np.concatenate(all_sums) if many else None)
        if self._file is not None and ledgers:
            with alone_with(self._file.path):
                settle_job(self._file, self._name, compose(*ledgers))
        verdict = self._engine.prove(account.proof)
        self._outcome.certificate = Certificate.of_account(account, verdict, self._plan.epsilon)
