"""What the tasks of a job know of each other: the plan and the chunks, as files in the work folder.

A process that works for a job reads each of them once. A worker may be told the plan ahead, to
read what it stands for while the job is still being made."""

import json
import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pglp_fast._util.storage import SECRET, replacing
from pglp_fast._util.threads import ForkLock
from pglp_fast.errors import InvalidState

from .plan import Plan
from .plan_policies import absolute
from .source import FileSource
from .warm import compile_once


@dataclass(frozen=True)
class Context:
    """What all tasks of a job know.

    Attributes
    ----------
    plan, seed : what decides the release
    paths : files of the source
    digest : of the job, with how it is cut up
    parts : of the persons
    batch_rows : rows read at a time
    remember : whether to hash fixes, to compare with those of the model
    pooled : whether tasks run in processes that may all have to compile
    plan_digest : of the plan, which to work out means to read all that it stands for
    """

    plan: Plan
    seed: int
    paths: list[Path]
    digest: str
    parts: int
    batch_rows: int
    remember: bool
    pooled: bool
    plan_digest: str

    def source(self, file: int) -> FileSource:
        return FileSource(self.paths[file], self.plan, self.batch_rows)

    def name(self, kind: str, *numbers: int) -> str:
        """Of a file in the folder: of this number of parts, and of this size of batches."""
        return "-".join(map(str, (kind, *numbers, "of", self.parts, "by", self.batch_rows)))


_context: dict[tuple[Path, str], Context] = {}  # of the job that this process works for
_prepared: list[Plan] = []  # of the job that it will work for
_lock = ForkLock()


def settled(plan: Plan) -> Plan:
    """The plan with absolute paths, for processes that run elsewhere."""
    given: dict[str, Any] = {"policy": absolute(plan.policy)}
    if plan.policies:
        given["policies"] = {name: absolute(policy) for name, policy in plan.policies.items()}
    for name in ("mobility", "labels", "ledger"):
        path = getattr(plan, name)
        given |= {name: Path(path).absolute()} if isinstance(path, str | Path) else {}
    return replace(plan, **given)


def prepare(pickled: bytes) -> None:
    """Read what a plan stands for. One that cannot be read is refused where the job is made.

    It comes as bytes, as in the folder: Dask hands over arrays that are not aligned."""
    with _lock:
        _prepared.clear()
        with suppress(Exception):
            plan = pickle.loads(pickled)
            compile_once(plan)
            plan.check().digest  # noqa: B018 (worked out, and kept)
            if plan.model is not None:
                plan.model.stationary()
            _prepared.append(plan)


def put_context(folder: Path, context: Context) -> None:
    """Leave the plan where tasks find it, for its owner only: the key is in it. Tasks that run here
    find the very plan, with all that was made from it."""
    with replacing(folder / "plan", SECRET) as part:
        part.write_bytes(pickle.dumps(replace(context, plan=settled(context.plan))))
    _context.clear()
    _context[folder, context.digest] = context


def context_of(folder: Path, digest: str) -> Context:
    """Read once in a process; ``digest``: of the job."""
    with _lock:
        known = _context.get((folder, digest))
        if known is not None:
            return known
        found = pickle.loads((folder / "plan").read_bytes())
        if not isinstance(found, Context) or found.digest != digest:
            raise InvalidState(f"{folder} is of another job: start it again")
        _context.clear()
        ready = [plan for plan in _prepared if plan.digest == found.plan_digest]
        _prepared.clear()
        if ready:
            found = replace(found, plan=ready[0])
        else:
            vars(found.plan)["digest"] = found.plan_digest
        _context[folder, digest] = found
        return found


class Chunk(NamedTuple):
    """Fixes of some rows: number ``part`` of what piece ``piece`` of the source left, and
    ``number`` of all."""

    piece: int
    part: int
    rows: int
    number: int


def put_chunks(folder: Path, digest: str, chunks: list[Chunk]) -> None:
    """Leave the list of chunks where tasks find it."""
    with replacing(folder / "chunks", SECRET) as part:
        part.write_text(json.dumps([digest, chunks]))


@lru_cache(maxsize=1)
def chunks_of(folder: Path, digest: str) -> list[Chunk]:
    """Read once in a process."""
    job, chunks = json.loads((folder / "chunks").read_text())
    if job != digest:
        raise InvalidState(f"{folder} is of another job: start it again")
    return [Chunk(*chunk) for chunk in chunks]
