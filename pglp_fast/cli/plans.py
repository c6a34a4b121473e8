"""From options to a plan."""

import argparse
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


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``read_table`` and ``iter_table``."""
    names = ("columns", "names", "delimiter", "timezone", "time_format", "decimal")
    return {name: getattr(options, name) for name in names}
