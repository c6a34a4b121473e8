"""Evidence, a mobility model and a map as the attack kernels take them, checked on the way."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.attack import records
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import for_kernels
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidEvidence, InvalidParameter
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations

from .evidence import Evidence
from .mobility import MobilityModel
from .transitions import stack

_WORTH_A_THREAD = 1600  # rows
_FLAWS = (
    "",
    "a cell that is not on the map",
    "cells that do not ascend",
    "a logarithm that is NaN or +inf",
)


def _whole(values: Any, name: str) -> NDArray[np.int64]:
    """A 1-d array of integers."""
    array = check.integers(values, name, InvalidEvidence)
    if array.ndim != 1:
        raise InvalidEvidence(f"{name} must be a 1-d array, got shape {array.shape}")
    return for_kernels(array, np.int64)


def moves_of(model: MobilityModel, *, transposed: bool = False) -> records.Moves:
    """The matrices of all periods in one, with logarithms beside."""
    chains: list[Any] = list(model.chains)
    if transposed:
        chains = [model.matrix(period).T.tocsr() for period in range(model.periods)]
    indptr, indices, data = stack(chains)
    indptr, indices, data = (
        for_kernels(indptr, np.int64),
        for_kernels(indices, np.int32),
        for_kernels(data, np.float64),
    )
    logs = np.empty_like(data)
    run_ranges(lambda start, stop: np.log(data[start:stop], out=logs[start:stop]), len(data))
    return records.Moves(indptr, indices, data, logs)


def workspace_of(locations: Locations) -> records.Workspace:
    """Work space of one thread."""
    cols = locations.cols if isinstance(locations, Grid) else 0
    return records.make_workspace(locations.size, *locations.scale, cols)


def has_gaps(seen: records.Observations) -> bool:
    """Whether the chain ever moves more than once from a row to the next."""
    person = np.repeat(np.arange(len(seen.first) - 1), np.diff(seen.first))
    return bool(((np.diff(seen.steps) > 1) & (np.diff(person) == 0)).any())


def persons_worth_a_thread(seen: records.Observations) -> int:
    """How many persons are; a move through a gap counts as a row does."""
    moves = np.maximum(np.diff(seen.steps), 1).sum() + 1
    return int(max(1, _WORTH_A_THREAD * (len(seen.first) - 1) // moves))


def evidence_of(given: Any) -> Evidence:
    """Evidence, or that of a release."""
    if not isinstance(given, Evidence) and hasattr(given, "evidence"):
        if given.evidence is None:
            raise InvalidEvidence(
                "these traces were released without keeping evidence: use TraceReleaser.run(..., "
                "evidence=True)"
            )
        given = given.evidence
    if not isinstance(given, Evidence):
        raise InvalidEvidence(
            f"evidence must be an Evidence, got {type(given).__name__}: TraceReleaser.run(..., "
            "evidence=True)"
        )
    return given


def cells_beside(values: ArrayLike, evidence: Evidence, name: str) -> check.Cells:
    """Cells beside the releases, -1 for unknown."""
    array, shape = check.integers(values, name), evidence.result_shape
    if array.shape != shape:
        raise InvalidParameter(
            f"{name} must have shape {shape}, as the releases, got {array.shape}"
        )

    def where(cell: int, *at: int) -> str:
        place = f"event {at[0]}" if evidence.shape is None else f"user {at[0]} at step {at[1]}"
        return f"{name} has {cell} for {place}"

    return check.cells_or_missing(
        array,
        evidence.model.locations.size,
        name,
        error=InvalidParameter,
        where=where,
        missing="unknown",
    )


def observations_of(evidence: Evidence) -> records.Observations:
    """The evidence, after a look at whether it is one."""
    model, priors = evidence.model, evidence.priors
    cycle, first = _whole(evidence.cycle, "cycle"), _whole(evidence.first, "first")
    steps, released = _whole(evidence.steps, "steps"), _whole(evidence.released, "released")
    start, cells = (
        _whole(evidence.start, "start"),
        for_kernels(_whole(evidence.cells, "cells"), np.int32),
    )
    logs, n = for_kernels(evidence.logs, np.float64), len(released)
    if not cycle.size or cycle.min() < 0 or cycle.max() >= model.periods:
        raise InvalidEvidence(f"cycle must be numbers in 0..{model.periods - 1}, at least one")
    _check_starts(first, "first", n, "the number of rows, which start at each person's first")
    _check_steps(evidence, first, steps, n)
    if start.shape != (n + 1,):
        raise InvalidEvidence(f"start must have {n + 1} entries for {n} rows, got {len(start)}")
    if cells.shape != logs.shape:
        raise InvalidEvidence(f"there are {len(cells)} cells but {logs.shape} logs")
    _check_starts(start, "start", len(cells), "the number of cells and of logs")
    person = np.repeat(np.arange(len(first) - 1), np.diff(first))
    row, flaw = records.first_flaw(start, cells, logs, model.locations.size)
    if row >= 0:
        raise InvalidEvidence(
            f"the row of user {person[row]} at step {steps[row]} has {_FLAWS[flaw]}"
        )
    _check_releases(released, np.diff(start) > 0, first, person, steps, model.locations.size)
    _check_places(evidence, n)
    of, rows = _whole(priors.of, "priors.of"), priors.rows
    if len(of) != len(first) - 1 or (of.size and (of.min() < 0 or of.max() >= len(rows.start) - 1)):
        raise InvalidEvidence(
            f"priors.of must be {len(first) - 1} row numbers in 0..{len(rows.start) - 2}, one for "
            "each user"
        )
    prior = (
        for_kernels(rows.start, np.int64),
        for_kernels(rows.cells, np.int32),
        for_kernels(rows.values, np.float64),
    )
    return records.Observations(cycle, first, steps, start, cells, logs, of, *prior)


def _check_starts(start: NDArray[np.int64], name: str, n: int, what: str) -> None:
    if not start.size or start[0] != 0 or start[-1] != n or (np.diff(start) < 0).any():
        raise InvalidEvidence(f"{name} must ascend from 0 to {n}, {what}")


def _check_steps(
    evidence: Evidence, first: NDArray[np.int64], steps: NDArray[np.int64], n: int
) -> None:
    """One for each row, ascending within a person, and within the array of a run of arrays."""
    if len(steps) != n:
        raise InvalidEvidence(f"there are {len(steps)} steps but {n} rows released: one each")
    person = np.repeat(np.arange(len(first) - 1), np.diff(first))
    back = np.flatnonzero((np.diff(steps) <= 0) & (np.diff(person) == 0))
    if back.size:
        raise InvalidEvidence(
            f"steps of user {person[back[0]]} must ascend, but {steps[back[0] + 1]} comes after "
            f"{steps[back[0]]}"
        )
    limit = check.MAX_TIME
    if evidence.shape is not None:
        users, limit = evidence.shape
        if users != len(first) - 1:
            raise InvalidEvidence(f"shape says {users} users, there are {len(first) - 1}")
    bad = np.flatnonzero((steps < 0) | (steps >= limit))
    if bad.size:
        raise InvalidEvidence(
            f"user {person[bad[0]]} has step {steps[bad[0]]}: steps are 0..{limit - 1}"
        )


def _check_places(evidence: Evidence, n: int) -> None:
    """``order`` puts each row in a place of its own."""
    if evidence.order is None:
        return
    order = _whole(evidence.order, "order")
    if evidence.shape is not None or not np.array_equal(np.sort(order), np.arange(n)):
        raise InvalidEvidence(
            f"order must be a permutation of the {n} rows of events; arrays (users, T) have none"
        )


def _check_releases(
    released: NDArray[np.int64],
    rows: NDArray[np.bool_],
    first: NDArray[np.int64],
    person: NDArray[np.int64],
    steps: NDArray[np.int64],
    size: int,
) -> None:
    """A step has both a release and its likelihoods, or neither; the first has both."""
    check.cells_or_missing(
        released,
        size,
        "released",
        error=InvalidEvidence,
        where=lambda cell, r: f"user {person[r]} released {cell} at step {steps[r]}",
        missing="none",
    )
    odd = np.flatnonzero((released >= 0) != rows)
    if odd.size:
        r = odd[0]
        what = "a row of likelihoods, but no release"
        if released[r] >= 0:
            what = "no location that it is possible from"
        raise InvalidEvidence(
            f"user {person[r]} has {what} at step {steps[r]}: a step has both a release and its "
            "likelihoods, or neither"
        )
    begins = first[:-1][np.diff(first) > 0]
    silent = begins[released[begins] < 0]
    if silent.size:
        raise InvalidEvidence(
            f"the first row of user {person[silent[0]]} (step {steps[silent[0]]}) is silent: rows "
            "begin with a release"
        )
