"""What the rows of a batch say: where somebody was, and which policy and epsilon hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidTable
from pglp_fast.io.values import read_numbers

from .plan import Plan
from .released import ALONE, MALFORMED, MISSING, OUTSIDE, Choice, Outcome
from .source import Batch
from .steps import step_numbers

pa = Later("pyarrow")


def check_places(outcome: Outcome, plan: Plan) -> None:
    """An error if most rows are off the map."""
    off = int(outcome.statuses[OUTSIDE])
    placed = outcome.rows - int(outcome.statuses[[MISSING, MALFORMED]].sum())
    if not plan.allow_outside and 2 * off > placed:
        raise InvalidTable(
            f"{off:,} of {placed:,} places are off the map: are latitude and longitude swapped, "
            "the map's bounds wrong, or the places not in degrees? allow_outside=True releases "
            "the others"
        )


def place_and_choose(
    batch: Batch, plan: Plan
) -> tuple[NDArray[np.int32], NDArray[np.uint8], Choice | None]:
    """(cell, status; policy and epsilon, where they are not the same for all) of each row of a
    batch; the status is ALONE where there is a cell."""
    cells, status = np.full(batch.rows, -1, np.int32), np.full(batch.rows, MALFORMED, np.uint8)
    tracks, choice = batch.tracks, None
    if len(tracks) < batch.rows and plan.on_error == "raise":
        raise InvalidTable(
            f"{batch.malformed[0]}; on_error='skip' keeps such rows, unreleased, and goes on"
        )
    found = plan.map.locate(tracks.lat, tracks.lon)
    cells[batch.at] = found
    nowhere = np.isnan(tracks.lat) | np.isnan(tracks.lon)
    status[batch.at] = np.where(found >= 0, ALONE, np.where(nowhere, MISSING, OUTSIDE))
    if plan.chooses:
        choice, odd = _choose(batch, plan)
        cells[odd], status[odd] = -1, MALFORMED
    if plan.model is not None:
        untimed = batch.at[np.isnat(tracks.time)]
        cells[untimed], status[untimed] = -1, MISSING
    return cells, status, choice


def _choose(batch: Batch, plan: Plan) -> tuple[Choice, NDArray[np.bool_]]:
    """(what a plan says of each row of a batch; rows of which the table says nonsense)."""
    n = batch.rows
    policy, epsilon = np.zeros(n, np.int16), np.full(n, plan.epsilon)
    odd = np.zeros(n, np.bool_)
    if plan.rules is not None:
        policy, epsilon = _by_rules(batch, plan)
    if plan.policy_column is not None:
        policy, bad = _named(batch.raw, plan)
        odd |= bad
    if plan.epsilon_column is not None:
        epsilon, bad = _numbers(batch.raw, plan)
        odd |= bad
    if odd.any() and plan.on_error == "raise":
        _refuse(batch, plan, int(np.flatnonzero(odd)[0]))
    return Choice(policy, epsilon), odd


def _by_rules(batch: Batch, plan: Plan) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    assert plan.rules is not None
    rules, tracks, n = plan.rules, batch.tracks, batch.rows
    policy, epsilon = np.zeros(n, np.int16), np.full(n, plan.epsilon)
    timed = ~np.isnat(tracks.time)
    ms, at = tracks.ms[timed], batch.at[timed]
    periods = np.zeros(len(ms), np.int64)
    if plan.model is not None:  # of its step: one choice for all rows of a step
        ms = ms // plan.step_ms * plan.step_ms
        if plan.cycle is not None:
            periods = plan.cycle[step_numbers(ms, plan.step_ms) % len(plan.cycle)]
    policy[at] = rules.policy_at(ms, periods)
    epsilon[at] = rules.epsilon_at(ms, periods, plan.epsilon)
    if rules.persons and len(tracks):
        said = [rules.persons.get(str(label)) for label in tracks.user.labels.tolist()]
        names = plan.policy_names
        own = np.array([-1 if s is None or s.policy is None else names.index(s.policy)
                        for s in said])  # fmt: skip
        number = own[tracks.user.codes]
        policy[batch.at] = np.where(number >= 0, number, policy[batch.at])
        own = np.array([np.nan if s is None or s.epsilon is None else s.epsilon for s in said])
        value = own[tracks.user.codes]
        epsilon[batch.at] = np.where(np.isnan(value), epsilon[batch.at], value)
    return policy, epsilon


def _column(raw: Any, name: str, what: str) -> Any:
    if name not in raw.schema.names:
        raise InvalidTable(
            f"there is no column {name!r} for the {what} among "
            f"{', '.join(map(repr, raw.schema.names))}"
        )
    column = raw.column(name)
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _named(raw: Any, plan: Plan) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """(policies by name; which rows name none that there is). Nothing is the default."""
    assert plan.policy_column is not None
    coded = _column(raw, plan.policy_column, "policy").cast(pa.string()).fill_null("")
    coded = coded.dictionary_encode()
    names = ("", *plan.policy_names)
    found = [names.index(s.strip()) if s.strip() in names else -2
             for s in coded.dictionary.to_pylist()]  # fmt: skip
    number = np.array([max(k - 1, 0) if k >= 0 else -1 for k in found], np.int16)
    policy = number[np.asarray(coded.indices)] if len(coded) else np.zeros(0, np.int16)
    return np.maximum(policy, 0).astype(np.int16), policy < 0


def _numbers(raw: Any, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(epsilons; which rows have none that can be). Nothing is the plan's own."""
    assert plan.epsilon_column is not None
    column = _column(raw, plan.epsilon_column, "epsilon")
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values, bad = read_numbers(column)
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        values = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        bad = np.zeros(len(values), np.bool_)
    else:
        raise InvalidTable(f"column {plan.epsilon_column!r} must be numbers, got {kind}")
    values = np.where(np.isnan(values) & ~bad, plan.epsilon, values)
    with np.errstate(invalid="ignore"):
        bad |= ~((values >= check.LEAST_EPSILON) & (values <= check.MOST_EPSILON))
    return np.where(bad, plan.epsilon, values), bad


def _refuse(batch: Batch, plan: Plan, row: int) -> None:
    """Name the first row of which the table says nonsense."""
    told = [name for name in (plan.policy_column, plan.epsilon_column) if name is not None]
    said = ", ".join(f"{name} {str(batch.raw.column(name)[row])[:60]!r}" for name in told)
    raise InvalidTable(
        f"{batch.source}, row {batch.first + row}: {said}: policies are "
        f"{', '.join(plan.policy_names)}, epsilons are {check.LEAST_EPSILON:g}.."
        f"{check.MOST_EPSILON:g}; on_error='skip' keeps such rows, unreleased, and goes on"
    )
