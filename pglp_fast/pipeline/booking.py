"""Budgets of a job: which releases fit, and the ledger file where they are written down first."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import starts_of
from pglp_fast._util.storage import alone_with, read_arrays, write_arrays
from pglp_fast.errors import BudgetExceeded, InvalidState
from pglp_fast.traces.admission import admit
from pglp_fast.traces.job_ledger import Spent, begin_job, lost_from, settle_job
from pglp_fast.traces.ledger import Ledger
from pglp_fast.traces.ledger_file import KIND, LedgerFile, pack, unpack
from pglp_fast.traces.spending import Spending, nothing_spent

from .plan import Plan
from .work_folder import BEFORE, Job

Ints = NDArray[np.int64]


def admitted(
    plan: Plan,
    past: Ledger | Spending | None,
    person: Ints,
    steps: Ints,
    epsilons: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Of events, those of a person ascending: which fit into the budgets after ``past``, in which
    persons have these numbers."""
    order = np.argsort(person, kind="stable")
    ids, counts = np.unique(person, return_counts=True)
    if isinstance(past, Ledger):
        spent = past.past_of(ids, plan.limits)
    else:
        spent = nothing_spent(len(ids)) if past is None else past.select(ids)
    out = np.empty(len(person), np.bool_)
    out[order] = admit(plan.limits, spent, starts_of(counts), steps[order], epsilons[order])
    return out


def refuse_over_budget(plan: Plan, rows: int, who: str) -> None:
    """An error, unless rows beyond the budget are to be kept unreleased."""
    if plan.on_error != "raise":
        return
    enough = "the budget, and what was spent before, do not allow them"
    if plan.allowed is not None:
        total = plan.limits.limits[None]
        enough = f"{total:g} is enough for {plan.allowed} releases of each user"
    raise BudgetExceeded(
        f"{rows:,} rows are beyond the budget, the first of user {who}: {enough}; raise the "
        "budget, or keep such rows unreleased with on_error='skip'"
    )


class Booking:
    """What a job writes in the ledger file of its plan, if that has one.

    Parameters
    ----------
    plan : Plan
    job : Job, optional
        One that may be interrupted and resumed.

    Attributes
    ----------
    spent : Spent
        What the job is going to release.
    """

    def __init__(self, plan: Plan, job: Job | None = None):
        self._plan, self._job, self.spent = plan, job, Spent.joined([])
        self._name = secrets.token_hex(8) if job is None else job.name
        self.file = None if plan.ledger is None else LedgerFile(plan.ledger, plan.policy_set)

    @contextmanager
    def begun(self) -> Iterator[Ledger | None]:
        """What was released before; at the end, what ``spent`` says is written down, unless the job
        has done so, and was interrupted. An error in between leaves no trace.

        The job notes that it is in the file before it draws anything. One that did, and is there no
        more, is refused: what it drew was drawn after what the file held then."""
        if self.file is None:
            yield None
            return
        with alone_with(self.file.path):
            job = self._job
            if self._name in self.file.jobs():
                assert job is not None
                yield read_before(job.folder, self._plan)
                job.note_booked()
                return
            if job is not None and job.booked:
                raise lost_from(self.file)
            before = self.file.read()
            if job is not None:
                write_ledger(job.folder / BEFORE, before)
            yield before
            begin_job(self.file, self._name, before, self.spent, self._plan.limits)
            if job is not None:
                job.note_booked()

    def settle(self, own: Ledger | None) -> None:
        """Write down which edges were kept, by persons as they are numbered in ledgers."""
        if self.file is None or own is None:
            return
        with alone_with(self.file.path):
            settle_job(self.file, self._name, own)


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Write what a part left, for ``read_ledger``."""
    write_arrays(path, KIND, *pack(ledger))


def read_ledger(path: Path, plan: Plan) -> Ledger:
    return unpack(*read_arrays(path, KIND), os.fspath(path), plan.map)


def read_before(folder: Path, plan: Plan) -> Ledger | None:
    """The ledger as it was when the job of a work folder began; None for a plan without one."""
    if plan.ledger is None:
        return None
    path = folder / BEFORE
    if not path.exists():
        raise InvalidState(
            f"{os.fspath(path)} is gone, so nobody knows what the budget was: start the job again "
            "with force=True"
        )
    return read_ledger(path, plan)
