"""Kernels compiled by one process of a machine, and read from disk by the others."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

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
    with _alone():
        small.for_traces(0).run(Events([0, 0], [0, 1], [0, 1]))


@contextmanager
def _alone() -> Iterator[None]:
    """A lock of this user's on this machine."""
    try:
        import fcntl
    except ImportError:  # no locks on this system
        yield
        return
    path = Path(tempfile.gettempdir()) / f"pglp_fast-{os.getuid()}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
