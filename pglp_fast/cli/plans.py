"""From options to a plan."""

import argparse
from collections.abc import Mapping
from typing import Any

import pglp_fast as pf

from . import maps

_SAME = (
    *("epsilon", "policy", "labels", "mechanism", "calibration", "remap", "mobility", "repair"),
    *("delta", "likelihood", "budget", "columns", "names", "delimiter", "timezone", "prefix"),
    *("policies", "schedule", "policy_column", "epsilon_column", "window", "ledger"),
    *("time_format", "decimal", "keep", "on_error", "allow_outside", "seed"),
)


def plan_of(options: argparse.Namespace, grid: pf.Grid | None = None) -> pf.Plan:
    """What the options say; ``grid``: the map, where there is no model."""
    import datetime

    given = {name: getattr(options, name) for name in _SAME if hasattr(options, name)}
    if given.get("policies") and not (given.get("schedule") or hasattr(options, "policy_column")):
        given["policy_column"] = f"{options.prefix}policy"  # a released table tells it
    step = getattr(options, "step", None)
    if step is not None and options.mobility is None:
        raise pf.InvalidParameter(
            "--step is for users who move: give --mobility MODEL, or leave it out"
        )
    given["step"] = None if step is None else datetime.timedelta(milliseconds=step)
    plan = pf.Plan(grid=grid, **given)
    if plan.model is not None:
        maps.agree(options, plan.model)
    return plan


def headline_of(plan: pf.Plan, used: Mapping[int, float] | None = None) -> list[str]:
    """What releases by a plan give away, and what they hide; of traces, with what is meant.

    ``used``: the policies that held, by number, with the largest epsilon of each; else all of them
    at the plan's epsilon."""
    from pglp_fast.evaluation.headline import explained, headlines

    policies = plan.policy_set
    held = used or dict.fromkeys(range(len(policies.names)), plan.epsilon)
    repair = None if plan.model is None else plan.moving["repair"]
    delta = 0.0 if plan.model is None else plan.moving["delta"]
    told = headlines(
        {policies.names[k]: (policies.graphs[k], held[k]) for k in sorted(held)},
        calibration=plan.calibration,
        repair=repair,
        delta=delta,
    )
    if plan.many_epsilons and not used:
        told += f" That is at epsilon {plan.epsilon:g}; where another holds, so does its factor."
    return [told] if repair is None else [told, explained(repair, delta)]


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``read_table`` and ``iter_table``."""
    names = ("columns", "names", "delimiter", "timezone", "time_format", "decimal")
    return {name: getattr(options, name) for name in names}
