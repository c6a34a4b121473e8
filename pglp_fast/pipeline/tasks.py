"""A release of persons who move, in three rounds of tasks that run anywhere.

1. ``scatter``: rows of a piece of the source become fixes, laid out by part; a part has the persons
   whose number leaves its remainder.
2. ``release``: the persons of a part are released, and each row gets its answer.
3. ``write``: an output, with the answers of all parts.

Tasks share the work folder and nothing else. Each writes its files whole, and a file that is there
is not made again. What they make is a function of the key, the plan and the source, whoever runs
which task how often. The plan is in the folder too.
"""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.arrays import starts_of
from pglp_fast._util.storage import SECRET, read_arrays, replacing, write_arrays
from pglp_fast.errors import InvalidState, InvalidTable
from pglp_fast.traces.job_ledger import Spent

from .booking import read_before, write_ledger
from .fingerprint import Fingerprint
from .persons import Numbers, ledger_numbers, tell_apart
from .places_and_choices import place_and_choose
from .released import Added, Choice, Outcome
from .sink import Layout, writing
from .spill import read_spill, spill_facts, write_spill
from .steps import Steps
from .task_context import Chunk, Context, chunks_of, context_of
from .trace_releases import Fixes, bare_of, release_fixes
from .warm import compile_once

CHUNK_ROWS = 1 << 20  # of a file of fixes on their way
_KIND = "pglp_fast release rows"
Ints = NDArray[np.int64]


# -- 1


def scatter(
    folder: Path,
    digest: str,
    piece: int,
    file: int,
    groups: range | None,
    advance: Callable[[int], None] = lambda n: None,
) -> dict[str, Any]:
    """Fixes of a piece of a file, by part; what there is to say of its rows."""
    context = context_of(folder, digest)
    mark = folder / (context.name("piece", piece) + ".json")
    known = _told(mark, context, folder)
    if known is not None:
        return known
    outcome, fixes, numbers = Outcome(), Fingerprint(), Numbers(context.seed)
    chunks, held, malformed = list[int](), list[_Rows](), list[list[str]]()

    def flush() -> None:
        _write_chunk(context, folder, (piece, len(chunks)), held)
        chunks.append(sum(len(rows.status) for rows in held))
        held.clear()

    for batch in context.source(file).batches(0, advance, groups):
        cells, status, choice = place_and_choose(batch, context.plan)
        outcome.add(Added(cells, status, None))
        malformed += [[str(m), f"{m.source}, {m.unit} {m.number}"] for m in batch.malformed]
        if context.remember:
            fixes.add(batch.tracks)
        who, persons = numbers.listed(batch.tracks.user)
        own = Choice.none(len(batch.at)) if choice is None else choice.take(batch.at)
        held.append(_Rows(status, batch.at, who, persons, batch.tracks.ms, cells[batch.at], *own))
        if sum(len(rows.status) for rows in held) >= CHUNK_ROWS:
            flush()
    flush()
    said = {
        "job": digest, "chunks": chunks, "statuses": outcome.statuses.tolist(),
        "malformed": malformed[:5], "fixes": [int(v) for v in fixes.numbers],
    }  # fmt: skip
    with replacing(mark, SECRET) as part:
        part.write_text(json.dumps(said))
    return said


def _told(mark: Path, context: Context, folder: Path) -> dict[str, Any] | None:
    """What a piece that was done before said; None where anything of it is not there."""
    try:
        said = json.loads(mark.read_text())
        piece = int(mark.name.split("-")[1])
        if said["job"] != context.digest:
            return None
        for k, rows in enumerate(said["chunks"]):
            _status_of(context, folder, Chunk(piece, k, rows, -1))
            name = context.name("rows", piece, k)
            if spill_facts(folder / name, name=name, job=context.digest) is None:
                return None
    except (OSError, ValueError, LookupError, TypeError, InvalidState):
        return None
    return dict(said)


def _status_of(context: Context, folder: Path, chunk: Chunk) -> NDArray[np.uint8]:
    arrays, facts = read_arrays(folder / context.name("status", chunk.piece, chunk.part), _KIND)
    status = arrays["status"]
    if facts.get("job") != context.digest or status.shape != (chunk.rows,):
        raise InvalidState("of another job")
    return status.astype(np.uint8)


class _Rows(NamedTuple):
    """Rows of a batch: the status of all; of those ``at``, which could be read, the person's
    number, the time, the cell, the policy and epsilon; and of all persons, number and check."""

    status: NDArray[np.uint8]
    at: Ints
    person: Ints
    persons: Ints
    ms: Ints
    cell: NDArray[np.int32]
    policy: NDArray[np.int16]
    epsilon: NDArray[np.float64]


def _write_chunk(context: Context, folder: Path, at: tuple[int, int], held: list[_Rows]) -> None:
    """Of each fix its person, time, cell and row. Each person is also listed once, with its check
    for a time and no cell: two persons must not share a number."""
    none, nobody = np.empty(0, np.int64), np.empty((0, 2), np.int64)
    empty = _Rows(
        none.astype(np.uint8), none, none, nobody, none, none.astype(np.int32), *Choice.none(0)
    )
    whole = _Rows(*map(np.concatenate, zip(empty, *held, strict=True)))
    first = np.cumsum([0, *(len(rows.status) for rows in held)])
    row = np.concatenate([none, *(rows.at + k for rows, k in zip(held, first))]).astype(np.int32)
    who, check = np.unique(whole.persons, axis=0).T
    blank, on = np.full(len(who), -1, np.int32), whole.cell >= 0
    given: list[NDArray[Any]] = [whole.person, whole.ms, whole.cell, row]
    listed: list[NDArray[Any]] = [who, check, blank, blank]
    if context.plan.chooses:
        given, listed = [*given, whole.policy, whole.epsilon], [*listed, *Choice.none(len(who))]
    columns = [np.concatenate([some[on], more]) for some, more in zip(given, listed, strict=True)]
    batches = _by_part(columns, context.parts)
    facts = {"job": context.digest}
    write_arrays(folder / context.name("status", *at), _KIND, {"status": whole.status}, facts)
    name = context.name("rows", *at)
    write_spill(folder / name, batches, facts | {"name": name})


def _by_part(columns: list[NDArray[Any]], parts: int) -> list[list[NDArray[Any]]]:
    """The rows of each part, in the order given; the first column has their persons."""
    part = columns[0] % parts
    ends = starts_of(np.bincount(part, minlength=parts)).tolist()
    short = part.astype(np.uint16) if parts <= 1 << 16 else part  # NumPy counts what is short
    order = np.argsort(short, kind="stable")
    return [[c[order[a:b]] for c in columns] for a, b in pairwise(ends)]


# -- 2


class _Part(NamedTuple):
    """Fixes of some persons, in the order of the source; how many persons there are, fixes or
    not."""

    fixes: Fixes
    row: NDArray[np.int32]
    chunk: Ints
    persons: int


def _part(context: Context, folder: Path, part: int) -> tuple[_Part, Steps]:
    """A part, and the steps that the budget allows after what was spent before the job."""
    plan = context.plan
    found = [
        read_spill(folder / context.name("rows", chunk.piece, chunk.part), part)
        for chunk in chunks_of(folder, context.digest)
    ]
    person, value, cell, row, *more = (np.concatenate(c) for c in zip(*found, strict=True))
    chunk = np.repeat(np.arange(len(found)), [len(columns[0]) for columns in found])
    lists, on = cell < 0, cell >= 0
    known, who = tell_apart(np.stack([person[lists], value[lists]], axis=1)), person[on]
    label = who if plan.ledger is None else ledger_numbers(who, known)
    fixes = Fixes(who, label, value[on], cell[on], Choice(*more).take(on) if more else None)
    past = read_before(folder, plan) if plan.limits else None
    return _Part(fixes, row[on], chunk[on], len(known)), fixes.steps(plan, past)


def count_over(folder: Path, digest: str, part: int) -> tuple[int, int, int, Spent]:
    """(rows beyond the budget, chunk and row of the first, what a ledger is told) of a part."""
    context = context_of(folder, digest)
    own, steps = _part(context, folder, part)
    over = np.flatnonzero(steps.over)
    first = (int(own.chunk[over[0]]), int(own.row[over[0]])) if over.size else (-1, -1)
    told = context.plan.ledger is not None
    return len(over), *first, own.fixes.spent(context.plan, steps) if told else Spent.joined([])


def release_persons(folder: Path, digest: str, part: int) -> dict[str, Any]:
    """Release the persons of a part; what there is to say of it."""
    context = context_of(folder, digest)
    plan, name = context.plan, context.name("part", part)
    known = spill_facts(folder / name, name=name, job=digest)
    kept = folder / context.name("kept", part)
    if known is not None and (plan.ledger is None or kept.exists()):
        return known
    if context.pooled:
        compile_once(plan)
    own, steps = _part(context, folder, part)
    added, drawn = release_fixes(plan, context.seed, own.fixes, steps)
    if plan.ledger is not None:
        write_ledger(kept, drawn.ledger)
    outcome, first = Outcome(), steps.rows
    outcome.add(added)
    counts = np.unique(own.fixes.person[first], return_counts=True)[1]
    said = {
        "name": name, "job": digest, "account": drawn.account.to_dict(), "persons": own.persons,
        "by_releases": np.bincount(counts).tolist(), "rows": len(added.status),
        "bare": int(bare_of(plan, drawn.choice, own.fixes.cell[first]).sum()),
        "sums": drawn.ledger.epsilons().tolist() if plan.many_epsilons else [],
        "statuses": outcome.statuses.tolist(), "surrogates": outcome.surrogates,
        "exposed": outcome.exposed, "repaired": outcome.repaired,
        "used": list(outcome.used.items()),
    }  # fmt: skip
    chunks = len(chunks_of(folder, digest))
    ends = np.searchsorted(own.chunk, np.arange(chunks + 1)).tolist()
    columns = (own.row, *added[:3], *(added.choice or ()))
    batches = [[c[a:b] for c in columns] for a, b in pairwise(ends)]
    write_spill(folder / name, batches, said)
    return said


# -- 3


def write(
    folder: Path,
    digest: str,
    file: int,
    names: tuple[Path, Path],
    facts: dict[str, Any],
    pieces: range,
    advance: Callable[[int], None] = lambda n: None,
) -> None:
    """An output of these pieces, unless it is there; ``names``: where it is written, and where it
    will be."""
    context = context_of(folder, digest)
    if names[0].exists():
        return
    chunks = [chunk for chunk in chunks_of(folder, digest) if chunk.piece in pieces]
    source = context.source(file)
    layout = Layout(source, context.plan, os.fspath(source.path))
    rows, added = 0, _answers(context, folder, chunks)
    with writing(*names, source, layout, facts) as sink:
        for raw in source.raw(advance):
            some = slice(rows, rows + len(raw.rows))
            part = added.take(some)
            if len(part.status) != len(raw.rows):
                raise InvalidTable(f"{source.path} changed while it was read: start again")
            sink.write(raw.rows, part)
            rows = some.stop


def _answers(context: Context, folder: Path, chunks: list[Chunk]) -> Added:
    """What was released for all rows of some chunks."""
    whole = []
    for chunk in chunks:
        added = Added.of_status(_status_of(context, folder, chunk), context.plan)
        for part in range(context.parts):
            row, cells, status, flags, *held = read_spill(
                folder / context.name("part", part), chunk.number
            )
            added.put(row, Added(cells, status, flags, Choice(*held) if held else None))
        whole.append(added)
    return Added.joined(whole)


def label_at(context: Context, piece: tuple[int, range | None], row: int) -> str:
    """The person of a row of a piece."""
    (file, groups), first = piece, 0
    for batch in context.source(file).batches(0, lambda n: None, groups):
        if first + batch.rows > row:
            return batch.label(row - first)
        first += batch.rows
    raise InvalidTable(f"{context.paths[file]} changed while it was read: start again")
