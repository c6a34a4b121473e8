"""Files in, files out: the same rows in the same order, with released places."""

import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pglp_fast._util.progress import Progress
from pglp_fast._util.storage import file_digest
from pglp_fast.errors import InvalidParameter, InvalidTable, PGLPError
from pglp_fast.io.geo import GEO_ENDS

from .booking import Booking
from .executors import check_executor, on_every_worker
from .paths import mode_for, refuse_inputs, refuse_pipes, target_of
from .places_and_choices import check_places
from .plan import Plan
from .plan_policies import files_of
from .released import Outcome
from .single_releases import Alone, book_all
from .sink import Layout, writing
from .source import BATCH_ROWS, Batch, FileSource, files_at, parts_of
from .task_context import prepare, settled
from .trace_files import MovingFiles
from .work_folder import Job, sidecar_of, work_of


def release_files(
    source: Any,
    sink: str | os.PathLike[str],
    plan: Plan,
    executor: Any = None,
    *,
    resume: bool = False,
    force: bool = False,
    batch_rows: int = BATCH_ROWS,
    progress: bool | None = False,
) -> Outcome:
    """Release files of rows (CSV and its kin, gzipped or not; Parquet and GeoParquet; with the
    ``geo`` extra GeoJSON, GeoPackage and FlatGeobuf, which become Parquet; Geolife folders, one
    Parquet file a user) by a plan.

    Parameters
    ----------
    source : path, folder, pattern or list of paths
        Persons, budgets and row numbers go through all of it.
    sink : path
        A file for one file; a folder for many, where each keeps its name. Outputs appear when all
        of them are whole.
    plan : Plan
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Runs the tasks of a plan with a mobility model: each reads and writes its own files in the
        work folder, which all workers must see. Results do not depend on it, bit for bit; what a
        killed worker did is done again. (Rows that are released one by one are drawn here, as fast
        as they are read.)
    resume : bool
        Go on with the job for this sink that was interrupted.
    force : bool
        Overwrite what is there, and start anew.
    batch_rows : int
        Rows held at a time, and events of a part. Results do not depend on it.
    progress : bool or None
        Show bars on standard error; None: if it is a terminal.

    Returns
    -------
    Outcome
        What became of the rows.

    Notes
    -----
    While a job runs, a folder SINK.work stands beside the sink, with the key of the noise and, with
    a mobility model, true cells on their way: only you can read it. A text
    output has a sidecar OUT.json that says how it was released; Parquet says so itself.
    """
    check_executor(executor)
    paths, many = files_at(source)
    refuse_pipes([*map(os.fspath, paths), *files_read(plan)])
    out = target_of(Path(sink))
    targets = [out / _name_of(path) for path in paths] if many else [out]
    _check_targets(out, targets, paths, plan)
    ahead = _told_ahead(executor, plan)
    files = [FileSource(path, plan, batch_rows) for path in paths]
    plan.check()
    layouts = [Layout(file, plan, os.fspath(file.path)) for file in files]
    sidecars = [sidecar_of(t) for t, f in zip(targets, files, strict=True) if f.kind == "text"]
    inputs = _digests(paths)
    with _job(out, targets, sidecars, plan, inputs, resume=resume, force=force) as job:
        run = _Run(plan, job, files, layouts, progress)
        run.release(executor, batch_rows)
        check_places(run.outcome, plan)
        if _digests(paths) != inputs:
            job.forget_results()
            raise InvalidTable("an input changed while it was released: start again")
        if many:
            out.mkdir(exist_ok=True)
        job.finish(run.sidecars, run.modes)
    del ahead  # wanted until here
    return run.outcome


def _told_ahead(executor: Any, plan: Plan) -> list[Any]:
    """Workers of a cluster read the plan's files while the job is made here."""
    by_path = isinstance(plan.mobility, str | os.PathLike)
    return on_every_worker(executor, prepare, pickle.dumps(settled(plan))) if by_path else []


class _Run:
    """What happens between the start of a job and its end."""

    def __init__(
        self,
        plan: Plan,
        job: Job,
        files: list[FileSource],
        layouts: list[Layout],
        progress: bool | None,
    ):
        self.plan, self.job, self.files, self.progress = plan, job, files, progress
        self.layouts = layouts
        self.outcome = Outcome(
            kept=[files[0].columns[k] for k in layouts[0].kept],
            left=layouts[0].left,
            truth=any(layout.truth for layout in layouts),
            outputs=[os.fspath(t) for t in job.targets],
        )
        self.sidecars: dict[str, bytes] = {}
        self.modes: dict[str, int] = {}
        for file, layout, target in zip(files, layouts, job.targets, strict=True):
            like = os.fspath(file.path) if layout.truth else None
            self.modes[target.name] = mode_for(target, like)

    def release(self, executor: Any, batch_rows: int) -> None:
        """All outputs, whole, in the work folder."""
        if self.plan.model is None:
            self._one_by_one()
        else:
            along = MovingFiles(
                self.plan, self.job, self.files, executor, batch_rows, self.progress
            )
            along.release(self.outcome, every_word=self.layouts[0].all)
            along.write([self._facts(k) for k in range(len(self.files))])
        for k, (file, target) in enumerate(zip(self.files, self.job.targets, strict=True)):
            written = self.job.written(target)
            if file.kind == "text" and written.exists():
                facts = self._facts(k)
                said = {"kind": "pglp_fast release", **facts, "sha256": file_digest(written)}
                self.sidecars[target.name] = json.dumps(said, indent=2).encode() + b"\n"

    def _facts(self, k: int) -> dict[str, Any]:
        """What output k says of itself."""
        facts = {
            **self.plan.facts,
            "plan": self.plan.digest,
            "kept": [self.files[k].columns[c] for c in self.layouts[k].kept],
        }
        if self.outcome.certificate is not None:
            facts["certificate"] = asdict(self.outcome.certificate)
        return facts

    def _one_by_one(self) -> None:
        """Rows are released as they are written; counted even where an output is there already."""
        booking = Booking(self.plan, self.job)
        past = book_all(self.plan, self._all_batches(), booking)
        release, first = Alone(self.plan, self.job.seed, self.outcome, past), 0
        for k, (file, target) in enumerate(zip(self.files, self.job.targets, strict=True)):
            written, layout = self.job.written(target), self.layouts[k]
            if written.exists() or self.job.is_done(target):
                first = self._through(file, layout, release, first, None)
            else:
                with writing(written, target, file, layout, self._facts(k)) as sink:
                    first = self._through(file, layout, release, first, sink)

    def _all_batches(self) -> Iterator[Batch]:
        first = 0
        for file in self.files:
            for batch in file.batches(first, lambda n: None):
                first = batch.first + batch.rows
                yield batch

    def _through(
        self, file: FileSource, layout: Layout, release: Alone, first: int, sink: Any
    ) -> int:
        """A file whose first row has this number; the number of the next one's."""
        bar = Progress(file.size, "bytes", "releasing ", shown=self.progress)
        for batch in file.batches(first, bar.advance):
            added = release(batch)
            self.outcome.add(added)
            for m in batch.malformed:
                self.outcome.name(str(m) if layout.all else f"{m.source}, {m.unit} {m.number}")
            if sink is not None:
                sink.write(batch.raw, added)
            first = batch.first + batch.rows
        bar.close()
        return first


def _name_of(path: Path) -> str:
    """Of an output: that of its input; what GDAL reads, and the folder of a Geolife user, is
    released as Parquet."""
    if path.is_dir():
        return f"{path.name}.parquet"
    return path.with_suffix(".parquet").name if path.name.lower().endswith(GEO_ENDS) else path.name


def files_read(plan: Plan) -> list[str]:
    """Files that a plan stands on."""
    model = [os.fspath(plan.mobility)] if isinstance(plan.mobility, str | os.PathLike) else []
    named = [path for one in (plan.policies or {}).values() for path in files_of(one, None)]
    return [*model, *files_of(plan.policy, plan.labels), *named]


def _check_targets(out: Path, targets: list[Path], paths: list[Path], plan: Plan) -> None:
    """Nothing that is read may be written or removed, and no two outputs may be one."""
    names = [target.name for target in targets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidParameter(f"two files are called {twice}: release their folders one by one")
    if out.name in ("", ".", "..") or (out in targets and out.is_dir()):
        raise InvalidParameter(f"{out} is a folder: name a file with -o")
    if out not in targets and out.suffix.lower() in (".csv", ".gz", ".tsv", ".txt", ".parquet"):
        raise InvalidParameter(f"the source is a folder, and {out} is no name for one: name one")
    written = [*targets, *map(sidecar_of, targets), out, work_of(out)]
    refuse_inputs(written, [*map(os.fspath, paths), *files_read(plan)])


@contextmanager
def _job(
    out: Path,
    targets: list[Path],
    sidecars: list[Path],
    plan: Plan,
    inputs: list[list[str]],
    **how: bool,
) -> Iterator[Job]:
    """A job that leaves nothing behind when it is done, and can be resumed when it is interrupted.
    It is bound to its ledger file too: what is left of a budget is known there alone."""
    said: list[Any] = [plan.digest, inputs, [target.name for target in targets]]
    if plan.ledger is not None:
        said.append(os.path.realpath(plan.ledger))
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    job = Job(out, targets, sidecars, digest, seed=plan.seed, **how)
    try:
        yield job
    except PGLPError:
        job.close(finished=not job.matters)
        raise
    except BaseException:
        job.close(finished=False)
        raise


def _digests(paths: list[Path]) -> list[list[str]]:
    return [[path.name, *map(file_digest, parts_of(path))] for path in paths]
