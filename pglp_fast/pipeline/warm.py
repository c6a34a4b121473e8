"""Kernels compiled by one process of a machine, and read from disk by the others."""

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pglp_fast._util.storage import alone_with
from pglp_fast.adversary.events import Events
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.space.grid import Grid

from .plan import Plan


def compile_once(plan: Plan) -> None:
    """Compile what a plan needs, while no other process of this machine does; once in a process."""
    _compile(plan.mechanism, plan.calibration, plan.remap, *plan.moving.values())


@cache
def _compile(mechanism: str, calibration: str, remap: str | None, *moving: Any) -> None:
    grid = Grid.from_bounds(lat=(0, 0.02), lon=(0, 0.02), cell_km=1)
    model = MobilityModel(grid, np.full((grid.size, grid.size), 1 / grid.size))
    repair, delta, likelihood = moving
    small = Plan(
        grid=grid, policy="complete", epsilon=1.0, mechanism=mechanism, calibration=calibration,
        remap=remap, mobility=model, step="1min", repair=repair, delta=delta,
        likelihood=likelihood,
    )  # fmt: skip
    user = getattr(os, "getuid", int)()  # Windows has none, and no locks either
    with alone_with(Path(tempfile.gettempdir()) / f"pglp_fast-{user}"):
        small.for_traces(0).run(Events([0, 0], [0, 1], [0, 1]))
