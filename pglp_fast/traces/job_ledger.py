"""What one job writes in a ledger file: all of it at once, before anything is drawn, and once."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast.errors import InvalidState

from .composition import compose
from .ledger import Ledger
from .ledger_file import LedgerFile, empty_ledger
from .spending import Floats, Ints, Limits, Spending, join_spending, nothing_spent

BEGUN, SETTLED = "begun", "settled"


class Spent(NamedTuple):
    """What a job is going to spend.

    Attributes
    ----------
    ids : numbers of the persons
    spending : how much, and when
    under : (persons, policies) which policies hold as they are, for rows that are released one by
        one; None for steps of traces, of which it is told when they are settled
    """

    ids: Ints
    spending: Spending
    under: NDArray[np.bool_] | None = None

    @classmethod
    def on_steps(cls, person: Ints, steps: Ints, epsilons: Floats, window: int) -> "Spent":
        """Of events in any order, those of a person ascending by step; those of the last ``window``
        steps are remembered one by one."""
        order = np.argsort(person, kind="stable")
        ids, counts = np.unique(person, return_counts=True)
        start = starts_of(counts)
        nothing = nothing_spent(len(ids))
        return cls(ids, nothing.after(start, steps[order], epsilons[order], window))

    @classmethod
    def on_rows(
        cls, ids: Ints, releases: Ints, shares: Floats, under: NDArray[np.bool_], *, weighted: bool
    ) -> "Spent":
        """Of rows that are released one by one: nothing is known of steps. ``shares``: (persons,
        policies) what was spent under each, which is kept where policies have weights."""
        since = np.where(releases > 0, check.MAX_TIME, 0).astype(np.int64)
        spent = nothing_spent(len(ids))._replace(
            releases=releases, high=shares.sum(axis=1), since=since
        )
        return cls(ids, spent.with_shares(shares) if weighted else spent, under)

    @classmethod
    def joined(cls, parts: "list[Spent]") -> "Spent":
        """Of steps, from several parts with different persons."""
        spent = join_spending([nothing_spent(0), *(part.spending for part in parts)])
        ids = np.concatenate([np.zeros(0, np.int64), *(part.ids for part in parts)])
        # what was spent under each policy is told when steps are settled
        return cls(ids, spent._replace(shares=np.zeros((len(ids), 0))))


def begin_job(
    file: LedgerFile,
    job: str,
    before: Ledger,
    spent: Spent,
    limits: Limits,
    begins: NDArray[np.bool_] | None = None,
) -> None:
    """Write down what a job is going to release. The caller is alone with the file.

    ``before``: what the file holds; ``begins``: for whom the job writes the first time; everybody,
    unless given."""
    more = replace(
        empty_ledger(spent.ids, file.policies), spending=spent.spending, step_ms=limits.step_ms
    )
    if spent.under is None:
        busy = spent.spending.releases > 0
        busy &= True if begins is None else begins
        more = replace(more, unsettled=busy.astype(np.int64))
    else:
        used = more.rows.used.copy()
        for k, under in enumerate(spent.under.T):
            used[under] |= file.policies.words([k])
        more = replace(more, rows=more.rows._replace(used=used))
    after = compose(before, more)
    after = replace(after, spending=after.spending.remembering(limits.window))
    file.write(after, {**file.jobs(), job: BEGUN if spent.under is None else SETTLED})


def lost_from(file: LedgerFile) -> InvalidState:
    """What to say where a job is no longer in the file."""
    return InvalidState(
        f"{file.path} no longer holds what this job wrote to it: it was deleted, or an older one "
        "was put back; restore the latest one"
    )


def settle_job(file: LedgerFile, job: str, own: Ledger) -> None:
    """Write down which edges a job's releases kept, once. The caller is alone with the file."""
    jobs, busy = file.jobs(), (own.releases > 0).astype(np.int64)
    if job not in jobs and busy.any():
        raise lost_from(file)
    if jobs.get(job) != BEGUN:
        return
    nothing = nothing_spent(len(own)).with_shares(own.spending.shares)
    done = replace(own, spending=nothing, unsettled=-busy)
    after = compose(file.read(), done)
    assert after.unsettled is not None
    # below 0 where somebody put an older file back in between
    after = replace(after, unsettled=np.maximum(after.unsettled, 0))
    file.write(after, {**jobs, job: SETTLED})
