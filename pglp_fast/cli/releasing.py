"""What ``pglp-fast release`` does."""

import argparse
import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetExceeded, InvalidParameter, InvalidTable, PGLPError
from ..locations import Grid
from ..mechanisms import Mechanism
from ..mobility import MobilityModel
from ..policy import PolicyGraph
from . import world
from .fingerprint import Fingerprint, shared
from .journal import Journal, journal_of, look, part_of, refuse_strangers, steps_of
from .paths import mode_for, refuse_existing, refuse_inputs, refuse_pipes, target_of
from .say import Bar, note, result, warn_of_compiling
from .steps import MAX_MISSING, Steps, blocks, lay_out
from .tables import (
    ALONE,
    BUDGET,
    EXPOSED,
    MALFORMED,
    MISSING,
    OUTSIDE,
    REPEAT,
    STATUSES,
    STEP,
    SURROGATE,
    Added,
    Batch,
    Table,
    check_names,
    check_prefix,
    open_table,
)

_NAMES = ("lat", "lon", "cell", "status")
# flags of steps. Exposed follows from what the adversary knows; surrogate from where the user truly was, and so it breaks the
# promise where it is published: it is written only beside the true places themselves
_FLAGS = ("surrogate", "exposed")
_MEANING = {
    ALONE: "released one by one", STEP: "released as steps", REPEAT: "repeat the release of their step", OUTSIDE: "off the map",
    MISSING: "without a place or time", BUDGET: "beyond the budget", MALFORMED: "malformed",
}  # fmt: skip
_SLACK = 1 + 1e-12  # so that ten times 0.1 fits in 1
_SHOWN = 5
_OWN = 0.2  # share of fixes in common from which a model is of the very traces; on a coarse grid strangers have some in common


class Count:
    """What became of the rows."""

    def __init__(self, discreet: bool) -> None:
        self.discreet = discreet  # say where malformed rows are, and not what is in them
        self.statuses = np.zeros(len(STATUSES), np.int64)
        self.flags = {"surrogate": 0, "exposed": 0}
        self.malformed: list[str] = []
        self.most = 0  # releases of one user
        self.open = 0  # releases from cells that the policy does not ask to hide

    def add(self, batch: Batch, added: Added) -> None:
        self.statuses += np.bincount(added.status, minlength=len(STATUSES))
        shown = batch.malformed[: _SHOWN - len(self.malformed)]
        self.malformed += [f"{m.source}, {m.unit} {m.number}" if self.discreet else str(m) for m in shown]
        if added.flags is not None:
            told = added.flags[added.status == STEP]
            self.flags["surrogate"] += int((told & SURROGATE > 0).sum())
            self.flags["exposed"] += int((told & EXPOSED > 0).sum())

    def to_record(self) -> dict[str, Any]:
        """For the journal."""
        return {**vars(self), "statuses": self.statuses.tolist()}

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> "Count":
        count = cls(record["discreet"])
        vars(count).update(record, statuses=np.array(record["statuses"], np.int64))
        return count

    def to_dict(self) -> dict[str, int]:
        return {name: int(n) for name, n in zip(STATUSES, self.statuses, strict=True) if n}


def release(options: argparse.Namespace) -> None:
    """Release a table as the options say."""
    options.table = options.table or options.table_option
    if options.table is None:
        raise InvalidParameter("which table? Name it behind 'release', or as table in the --config file")
    if options.output == "-":
        raise InvalidParameter("-o - is standard output, and a file is needed, which appears whole or not at all: name one")
    out = target_of(Path(options.output))
    if not out.name or out.is_dir():
        raise InvalidParameter(f"{out} is a folder: name a file with -o")
    pending = look(out, anew=options.force and not options.resume)
    if options.resume and not pending and out.exists():
        raise InvalidParameter(
            f"{out} is there and no job is left to resume: it is complete. --force without --resume starts anew"
        )
    if pending and not (options.resume or options.force):
        raise InvalidParameter(f"a job for {out} was interrupted: --resume goes on with it, --force starts anew")
    refuse_inputs((out, part_of(out), steps_of(out), journal_of(out)), [*_files(options), options.config])
    refuse_pipes(_files(options))
    refuse_existing(out, options.force or pending)
    if not pending and not options.force:
        refuse_strangers(out)
    if not options.mobility:
        world.only_with_mobility(options)
    warn_of_compiling("trace.step_users" if options.mobility else "sampling.release_table")
    table = open_table(options.table, world.reading(options), options.batch_rows)
    flags = () if not options.mobility else _FLAGS[1:] if options.drop_true else _FLAGS
    names = [options.prefix + name for name in (*_NAMES, *flags)]
    check_prefix(options.prefix, table)
    check_names(table.columns, names, options.table)

    model = world.open_model(options.mobility) if options.mobility else None
    grid = _grid(options, table, model)
    graph = world.make_policy(options, grid)
    job = _job(options, grid)
    seed = secrets.randbits(256) if options.seed is None else options.seed
    if model is None:
        how: Any = world.make_mechanism(options, graph)
    else:
        world.step_of(options, model)
        how = world.make_releaser(options, graph, model, 0)  # options are refused before anything is made

    with _journal(out, options, job, seed) as journal:
        facts = _facts(options, grid, graph, model)
        if journal.told is not None:
            note(f"{out} is complete: the job had ended but for its journal, which is removed now")
            options.own_traces = journal.told["own_traces"]
            return _tell(options, out, facts, Count.of_record(journal.told["count"]), grid)
        written, start = journal.open_part()
        writer = table.writer(journal.part, out, start, names, grid, facts, options.drop_true)
        try:
            count = Count(options.drop_true)
            if model is None:
                passes = _alone(options, table, grid, how, journal, count)
            else:
                passes = _steps(options, table, grid, graph, model, journal, count)
            bar = Bar("writing" if model else "releasing", "rows", always=options.progress)
            rows = 0
            for number, (batch, added) in enumerate(passes):
                count.add(batch, added)
                if number >= written:
                    writer.write(batch, added)
                    journal.record(batch=number, bytes=writer.position)
                rows += batch.rows
                bar.show(table.done, rows)
            bar.show(1.0, rows, last=True)
        finally:
            writer.close()
        _sync(journal.part)
        journal.finish({"count": count.to_record(), "own_traces": getattr(options, "own_traces", None)})
        journal.part.chmod(mode_for(out, None if options.drop_true else options.table))
        os.replace(journal.part, out)
    _tell(options, out, facts, count, grid)


# -- what the job is


def _grid(options: argparse.Namespace, table: Table, model: MobilityModel | None) -> Grid:
    if model is not None:
        world.agree(options, model, options.mobility)
        return world.grid_on(model)
    if options.cell_km is None:
        raise InvalidParameter("which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34, or --mobility MODEL")
    if options.bounds is None:
        box = world.Box()
        for batch in table.batches():
            box.add(batch.tracks)
        options.bounds = box.bounds(options.table)
        south, north, west, east = options.bounds
        note(
            "the map is the box of the table, which tells where its outermost rows are; "
            f"choose your own, or this one again, with --bounds {south:g},{north:g},{west:g},{east:g}"
        )
    return world.grid_of(options.bounds, options.cell_km)


def _job(options: argparse.Namespace, grid: Grid) -> str:
    """Digest of everything that the output depends on but the key: a resumed job must have the same."""
    kept = (
        "epsilon", "policy", "mechanism", "calibration", "remap", "delta", "repair", "likelihood", "step", "max_missing",
        "budget", "on_error", "seed", "columns", "names", "delimiter", "timezone", "drop_true", "prefix", "batch_rows",
    )  # fmt: skip
    said = {name: getattr(options, name) for name in kept}
    digests = [None if path is None else world.file_digest(path) for path in _files(options)]
    text = json.dumps([said, grid.to_dict(), digests], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _files(options: argparse.Namespace) -> list[str | None]:
    """Files that the output depends on."""
    files = [options.table, options.mobility, options.labels]
    return files + ([options.policy.partition(":")[2]] if options.policy.startswith("edges:") else [])


def _facts(options: argparse.Namespace, grid: Grid, graph: PolicyGraph, model: MobilityModel | None) -> dict[str, Any]:
    """What the output says about itself."""
    return {
        "epsilon": options.epsilon,
        "policy": options.policy,
        "edges": graph.n_edges,
        "mechanism": options.mechanism,
        "calibration": options.calibration,
        "remap": options.remap,
        "map": grid.to_dict(),
        "adversary": "none: rows were released one by one" if model is None else "knows the mobility model",
        "mobility": None if options.mobility is None else world.file_digest(options.mobility),
        "budget": options.budget,
        "seeded": options.seed is not None,
    }


@contextmanager
def _journal(out: Path, options: argparse.Namespace, job: str, seed: int) -> Iterator[Journal]:
    """A job that leaves nothing behind when it is done or fails, and can be resumed when it is interrupted."""
    if options.resume and journal_of(out).exists():
        journal = Journal.resume(out, job)
    else:
        journal = Journal.start(out, job, seed, options.force)
    try:
        yield journal
    except PGLPError:
        journal.close(finished=True)
        raise
    except BaseException:
        journal.close(finished=False)
        note(f"what is done is kept beside {out}: the same command with --resume goes on, with --force starts anew")
        raise
    journal.close(finished=True)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _allowed(options: argparse.Namespace) -> int | None:
    """Releases that a user's budget is enough for."""
    return None if options.budget is None else int(options.budget * _SLACK / options.epsilon)


# -- one by one


def _placed(batch: Batch, grid: Grid, options: argparse.Namespace) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(cell, status) of each row of a batch; the status is ALONE where there is a cell."""
    cells = np.full(batch.rows, -1, np.int32)
    status = np.full(batch.rows, MALFORMED, np.uint8)
    tracks = batch.tracks
    if len(tracks) < batch.rows and options.on_error == "raise":
        raise InvalidTable(f"{batch.malformed[0]}; --on-error skip keeps such rows, unreleased, and goes on")
    found = grid.locate(tracks.lat, tracks.lon)
    cells[batch.at] = found
    nowhere = np.isnan(tracks.lat) | np.isnan(tracks.lon)
    status[batch.at] = np.where(found >= 0, ALONE, np.where(nowhere, MISSING, OUTSIDE))
    return cells, status


def _over_budget(options: argparse.Namespace, rows: int, who: Any) -> None:
    if rows and options.on_error == "raise":
        raise BudgetExceeded(
            f"{rows:,} rows are beyond the budget, the first of user {who}: {options.budget:g} is enough for {_allowed(options)} "
            "releases of each user; raise --budget, or keep such rows unreleased with --on-error skip"
        )


def _alone(
    options: argparse.Namespace, table: Table, grid: Grid, mechanism: Mechanism, journal: Journal, count: Count
) -> Iterator[tuple[Batch, Added]]:
    """Each row by itself: the draw for a row is a function of the key and the row's number."""
    allowed, spent, bare = _allowed(options), np.zeros(0, np.int64), mechanism.graph.degrees() == 0
    for batch in table.batches():
        cells, status = _placed(batch, grid, options)
        inside = status[batch.at] == ALONE
        users = batch.tracks.user.codes.astype(np.int64)
        spent = np.append(spent, np.zeros(max(0, int(users.max(initial=-1)) + 1 - len(spent)), np.int64))
        if allowed is not None:
            over = _beyond(users, inside, spent, allowed)
            _over_budget(options, int(over.sum()), batch.tracks.users[users[over.argmax()]] if over.any() else None)
            status[batch.at[over]] = BUDGET
            inside &= ~over
        spent += np.bincount(users[inside], minlength=len(spent))
        numbers = np.arange(batch.first, batch.first + batch.rows)
        drawn = mechanism.release(np.maximum(cells, 0), users=numbers, rng=journal.seed)  # draws of other rows are thrown away
        count.most = int(spent.max(initial=0))
        count.open += int(bare[cells[status == ALONE]].sum())
        yield batch, Added(np.where(status == ALONE, drawn, np.int32(-1)), status, None)


def _beyond(users: NDArray[np.int64], inside: NDArray[np.bool_], spent: NDArray[np.int64], allowed: int) -> NDArray[np.bool_]:
    """Which rows come after a user's last that the budget allows, in the order of the table."""
    rows = np.flatnonzero(inside)
    order = rows[np.argsort(users[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(users[order], prepend=-1))
    nth = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    out = np.zeros(len(users), np.bool_)
    out[order] = spent[users[order]] + nth >= allowed
    return out


# -- users who move


def _steps(
    options: argparse.Namespace,
    table: Table,
    grid: Grid,
    graph: PolicyGraph,
    model: MobilityModel,
    journal: Journal,
    count: Count,
) -> Iterator[tuple[Batch, Added]]:
    """A first pass over the table keeps 17 bytes a row; then all traces are released; a second pass writes."""
    parts: list[tuple[NDArray[Any], ...]] = []
    seen, bar, rows = Fingerprint(), Bar("reading", "rows", always=options.progress), 0
    labels: NDArray[Any] = np.empty(0)
    for batch in table.batches():
        cells, status = _placed(batch, grid, options)
        tracks = batch.tracks
        untimed = batch.at[np.isnat(tracks.time)]
        status[untimed], cells[untimed] = MISSING, -1
        users, times = np.full(batch.rows, -1, np.int32), np.zeros(batch.rows, np.int64)
        users[batch.at], times[batch.at] = tracks.user.codes, tracks.ms
        parts.append((users, times, cells, status))
        seen.add(tracks)
        labels = tracks.users
        rows += batch.rows
        bar.show(table.done, rows)
    bar.show(1.0, rows, last=True)
    _warn_of_own_traces(options, seen)
    empty = (np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8))
    user, ms, cell, all_status = (np.concatenate([first, *column]) for first, column in zip(empty, zip(*parts) or ((),) * 4))
    del parts
    placed = np.flatnonzero(cell >= 0)
    gap = MAX_MISSING if options.max_missing is None else options.max_missing
    step_ms = world.step_of(options, model)
    steps = lay_out(user[placed], ms[placed], step_ms, gap, _allowed(options))
    over = placed[steps.over]
    _over_budget(options, len(over), labels[user[over[0]]] if over.size else None)
    count.most = int(np.bincount(user[placed[steps.rows]]).max(initial=0)) if steps.rows.size else 0
    count.open = int((graph.degrees() == 0)[cell[placed[steps.rows]]].sum())

    drawn, flags = _release_traces(options, graph, model, journal, steps, cell[placed[steps.rows]], step_ms)
    released, all_flags = np.full(len(cell), -1, np.int32), np.zeros(len(cell), np.uint8)
    kept = ~steps.over
    released[placed[kept]] = drawn[steps.follows[kept]]
    all_status[placed] = np.where(steps.over, BUDGET, REPEAT)
    all_status[placed[steps.rows]] = STEP
    all_flags[placed[steps.rows]] = flags
    return _rows_with(table, released, all_status, all_flags)


def _rows_with(
    table: Table, cells: NDArray[np.int32], status: NDArray[np.uint8], flags: NDArray[np.uint8]
) -> Iterator[tuple[Batch, Added]]:
    """The table once more, with what was released."""
    for batch in table.batches():
        some = slice(batch.first, batch.first + batch.rows)
        if len(status[some]) != batch.rows:
            raise InvalidTable(f"{table.path} changed while it was read: start again")
        yield batch, Added(cells[some], status[some], flags[some])


def _release_traces(
    options: argparse.Namespace,
    graph: PolicyGraph,
    model: MobilityModel,
    journal: Journal,
    steps: Steps,
    cells: NDArray[np.int32],
    step_ms: int,
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(released cell, flags) of each row of ``steps.rows``. Blocks that are done are taken from disk."""
    drawn, flags = np.full(len(cells), -1, np.int32), np.zeros(len(cells), np.uint8)
    releaser = world.make_releaser(options, graph, model, journal.seed)
    sums = {record["block"]: record["crc"] for record in journal.done if "block" in record}
    done = len(sums)
    ahead = int(model.notes.get("ahead_ms", 0))
    bar, rows = Bar("releasing", "steps", always=options.progress), 0
    handle = os.open(journal.steps, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+b") as file:
        for number, block in enumerate(blocks(steps, step_ms, model.periods, ahead, options.batch_rows)):
            n = len(block.where)
            at_byte = file.tell()
            kept = file.read(5 * n) if number < done else b""
            if number < done and (len(kept) != 5 * n or zlib.crc32(kept) != sums[number]):
                done = number  # the file is not what was written: from here on by the key once more, which gives the same
                file.seek(at_byte)
                file.truncate()
            if number < done:
                drawn[block.where] = np.frombuffer(kept[: 4 * n], "<i4")
                flags[block.where] = np.frombuffer(kept[4 * n :], np.uint8)
            else:
                found = releaser.run(block.array(cells), users=block.traces, periods=block.periods)
                at = (block.row, block.column)
                drawn[block.where] = found.released[at]
                flags[block.where] = SURROGATE * found.surrogate[at] + EXPOSED * found.exposed[at]
                text = drawn[block.where].astype("<i4").tobytes() + flags[block.where].tobytes()
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                journal.record(block=number, crc=zlib.crc32(text))
            rows += n
            bar.show(rows / max(1, len(cells)), rows)
        bar.show(1.0, rows, last=True)
    return drawn, flags


def _warn_of_own_traces(options: argparse.Namespace, seen: Fingerprint) -> None:
    found = shared(seen, options.mobility)
    options.own_traces = None if found is None else found[0] / max(1, found[1])
    if found and found[0] > _OWN * found[1]:
        note(
            f"{options.mobility} was fitted on the very traces that are released here ({found[0]:,} of {found[1]:,} fixes "
            "compared): such a model is not public knowledge, and what it knows of these users leaks through it. Fit it "
            "on other people's."
        )


# -- what is said


def _tell(options: argparse.Namespace, out: Path, facts: dict[str, Any], count: Count, grid: Grid) -> None:
    rows = int(count.statuses.sum())
    done = int(count.statuses[[ALONE, STEP, REPEAT]].sum())
    spent = count.most * options.epsilon
    own = getattr(options, "own_traces", None)
    document = {
        "output": str(out), "rows": rows, "released": done, "status": count.to_dict(), "malformed": count.malformed,
        "from_cells_without_an_edge": count.open, "largest_epsilon_of_a_user": spent,
        "model_fitted_on_these_traces": own, **facts,
    }  # fmt: skip
    if options.mobility:
        document |= count.flags
    parts = [f"{n:,} {_MEANING[STATUSES.index(name)]}" for name, n in count.to_dict().items()]
    lines = [f"{out}: {rows:,} rows: {', '.join(parts) or 'none'}"]
    lines += [f"  malformed: {text}" for text in count.malformed]
    hidden = int(count.statuses[MALFORMED]) - len(count.malformed)
    lines += [f"  and {hidden:,} more"] if hidden > 0 and count.malformed else []
    lines.append(f"map: {world.describe(grid)}")
    lines.append(
        f"policy {options.policy} ({facts['edges']:,} edges), {options.mechanism}, epsilon {options.epsilon:g} a release"
    )
    lines.append(f"epsilon adds up: {spent:g} for the user with most releases ({count.most:,})")
    if options.mobility:
        lines.append(
            f"adversary: knows {options.mobility}; {count.flags['surrogate']:,} surrogates, {count.flags['exposed']:,} exposed"
        )
    else:
        lines.append("adversary: none. Rows were released one by one; who knows how people move may learn more (--mobility)")
    if count.open:
        note(
            f"{count.open:,} releases are from cells that have no edge in {options.policy}: the policy lets such cells be known, "
            "and they are released as they are"
        )
    if not options.drop_true:
        note(f"{out} still has the true places beside the released ones: leave them out with --drop-true before you share it")
    if options.seed is not None:
        note("seeded: whoever knows the seed can subtract the noise; leave --seed out to protect people")
    result(options.json, document, "\n".join(lines))
