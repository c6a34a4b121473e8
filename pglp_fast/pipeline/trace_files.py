"""Files of persons who move: rounds of tasks, here or elsewhere, and what they say put together."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from pglp_fast._util.progress import Progress
from pglp_fast.traces.composition import compose
from pglp_fast.traces.job_ledger import Spent

from . import tasks
from .booking import Booking, read_ledger, refuse_over_budget
from .certificate import Account
from .executors import run_tasks
from .fingerprint import Fingerprint, beside
from .places_and_choices import check_places
from .plan import Plan
from .released import ALONE, Outcome
from .source import FileSource
from .task_context import Chunk, Context, put_chunks, put_context
from .trace_releases import certified
from .work_folder import Job


class MovingFiles:
    """Rows of files released as steps of their persons' traces.

    Parameters
    ----------
    plan, job, files : Plan, Job, list of FileSource
    executor : Executor or Client or None
    batch_rows : int
        Rows read at a time, and rows of a part, about.
    progress : bool or None
        As in ``release_files``.
    """

    def __init__(
        self,
        plan: Plan,
        job: Job,
        files: list[FileSource],
        executor: Any,
        batch_rows: int,
        progress: bool | None,
    ):
        self._plan, self._job, self._files = plan, job, files
        self._executor, self._progress = executor, progress
        self._folder = job.folder.absolute()
        parts = max(1, -(-sum(file.about for file in files) // batch_rows))
        # processes that outlive a job know plans and chunks by this name
        digest = f"{job.digest} of {parts} by {batch_rows}"
        self._context = Context(
            plan, job.seed, [file.path.absolute() for file in files], digest,
            parts, batch_rows, _is_remembered(plan), executor is not None, plan.digest,
        )  # fmt: skip
        self._parts = range(parts)
        put_context(self._folder, self._context)
        self._pieces = [
            (f, groups) for f, file in enumerate(files) for groups in file.groups(tasks.CHUNK_ROWS)
        ]

    def release(self, outcome: Outcome, *, every_word: bool) -> None:
        """Read everything and release everybody; ``every_word``: name bad rows by their text."""
        said = self._scattered()
        statuses = np.sum([s["statuses"] for s in said], axis=0)
        read = Outcome(statuses=statuses)
        for one in said:
            for text, place in one["malformed"]:
                outcome.name(text if every_word else place)
        check_places(read, self._plan)
        if self._context.remember:
            fixes = Fingerprint()
            for one in said:
                fixes.merge(np.array(one["fixes"], np.uint64))
            outcome.own = fixes.share_of(self._plan.mobility)
        each = [(i, j, rows) for i, s in enumerate(said) for j, rows in enumerate(s["chunks"])]
        self._chunks = [Chunk(*chunk, number) for number, chunk in enumerate(each)]
        put_chunks(self._folder, self._context.digest, self._chunks)
        booking = Booking(self._plan, self._job)
        if self._plan.ledger is not None or (self._plan.limits and self._plan.on_error == "raise"):
            with booking.begun():  # tasks know the past from the work folder
                booking.spent = self._count()
        account = Account()
        outcome.statuses += statuses
        outcome.statuses[ALONE] = 0
        releases, sums = [np.zeros(0, np.int64)], [np.zeros(0)]  # of every person
        for one in self._released(int(statuses[ALONE])):
            account |= Account.from_dict(one["account"])
            outcome.statuses += np.array(one["statuses"])
            releases.append(np.repeat(np.arange(len(one["by_releases"])), one["by_releases"]))
            sums.append(np.array(one["sums"], np.float64))
            outcome.use(one["used"])
            for name in ("persons", "bare", "surrogates", "exposed", "repaired"):
                setattr(outcome, name, getattr(outcome, name) + one[name])
        many = self._plan.many_epsilons
        outcome.spend(np.concatenate(releases), np.concatenate(sums) if many else None)
        if self._plan.ledger is not None:
            kept = (self._folder / self._context.name("kept", k) for k in self._parts)
            booking.settle(compose(*(read_ledger(path, self._plan) for path in kept)))
        outcome.certificate = certified(self._plan, self._job.seed, account)

    def write(self, facts: list[dict[str, Any]]) -> None:
        """All outputs, in the work folder."""
        todo = []
        for f, target in enumerate(self._job.targets):
            if self._job.is_done(target) and not self._job.written(target).exists():
                continue
            own = [k for k, (file, _) in enumerate(self._pieces) if file == f]
            names = (self._job.written(target).absolute(), target)
            todo.append((f, names, facts[f], range(own[0], own[-1] + 1) if own else range(0)))
        sizes = [self._files[f].size for f, *_ in todo]
        self._run(tasks.write, todo, sizes, "bytes", "writing ", within=True)

    def _scattered(self) -> list[dict[str, Any]]:
        of_file = np.bincount([f for f, _ in self._pieces], minlength=len(self._files))
        sizes = [self._files[f].size // int(of_file[f]) for f, _ in self._pieces]
        todo = [(piece, *which) for piece, which in enumerate(self._pieces)]
        return self._run(tasks.scatter, todo, sizes, "bytes", "reading ", within=True)

    def _released(self, rows: int) -> list[dict[str, Any]]:
        sizes = np.diff(np.arange(len(self._parts) + 1) * rows // len(self._parts)).tolist()
        todo = [(part,) for part in self._parts]
        return self._run(tasks.release_persons, todo, sizes, "rows", "releasing ", beside=True)

    def _count(self) -> Spent:
        """What all parts will spend; an error where rows are beyond the budget."""
        todo = [(part,) for part in self._parts]
        found = self._run(tasks.count_over, todo, [0] * len(todo), "rows", "counting ")
        over = sum(f[0] for f in found)
        if over and self._plan.on_error == "raise":
            _, chunk, row, _ = min((f for f in found if f[0]), key=lambda f: f[1:3])
            at = self._chunks[chunk]
            before = sum(c.rows for c in self._chunks if c.piece == at.piece and c.part < at.part)
            who = tasks.label_at(self._context, self._pieces[at.piece], before + row)
            refuse_over_budget(self._plan, over, who)
        return Spent.joined([f[3] for f in found])

    def _run(
        self,
        function: Callable[..., Any],
        todo: list[tuple[Any, ...]],
        sizes: list[int],
        unit: str,
        what: str,
        *,
        within: bool = False,
        beside: bool = False,
    ) -> list[Any]:
        """Tasks with a bar. ``within``: they tell how far they are, where they run here;
        ``beside``: there, some of them run side by side."""
        bar = Progress(sum(sizes), unit, what, shown=self._progress)
        tell = within and self._executor is None
        shared = (self._folder, self._context.digest)
        made = [(*shared, *task, *((bar.advance,) if tell else ())) for task in todo]
        out = run_tasks(
            self._executor, function, made, lambda k: None if tell else bar.advance(sizes[k]),
            beside=beside,
        )  # fmt: skip
        bar.close()
        return out


def _is_remembered(plan: Plan) -> bool:
    """Whether it can be told that a model was fitted on these fixes."""
    path = plan.mobility
    return isinstance(path, str | os.PathLike) and beside(path).exists()
