"""From fixes at any time to one cell for each step."""

from dataclasses import replace
from typing import Any

import numpy as np

from pglp_fast._kernels.io import fixes as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.times import duration, moment
from pglp_fast.errors import InvalidLocation, InvalidTable, TooLarge
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations
from pglp_fast.space.points import Points

from .clean import located
from .labels import Coded
from .traces import ResampleReport, Traces
from .tracks import Tracks

RULES = {"first": kernels.FIRST, "last": kernels.LAST, "nearest": kernels.NEAREST}
_MOST_STEPS = 1 << 28  # 3 GiB on the way
_NEVER = 1 << 62


def resample(
    tracks: Tracks,
    locations: Locations,
    step: Any,
    *,
    rule: str,
    carry: Any,
    max_gap: Any,
    split_trajectories: bool,
    min_steps: int,
    origin: Any,
) -> Traces:
    """``Tracks.resample``, which says what it does."""
    width, start = duration(step, "step"), moment(origin, "origin")
    gap = _NEVER if max_gap is None else duration(max_gap, "max_gap")
    reach = 0 if carry is None else duration(carry, "carry") // width
    check.choice(rule, "rule", RULES)
    check.whole(min_steps, "min_steps", 1)
    _check(tracks, locations, split_trajectories)
    tracks = tracks.sorted()
    part = tracks.columns["trajectory"].codes if split_trajectories else np.empty(0, np.int32)
    fresh = np.empty(len(tracks), np.bool_)
    n = int(kernels.mark_breaks(tracks.user.codes, tracks.ms, part, gap, fresh))
    frame = (tracks.ms, fresh, start, width, width // 2 if rule == "nearest" else 0)
    lengths, firsts, rows = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    kernels.measure_segments(*frame, lengths, firsts, rows)
    owners = tracks.user.codes[rows]
    if lengths.sum() > _MOST_STEPS:
        raise TooLarge(
            f"{lengths.sum():,} steps are too many (at most {_MOST_STEPS:,}): give max_gap, so "
            "that long silences take no steps, or a longer step"
        )
    starts = starts_of(lengths)
    picked = np.full(starts[-1], -1, np.int64)
    kernels.pick_fixes(*frame, RULES[rule], starts, firsts, picked)
    cells = np.full(starts[-1], -1, check.CELL)
    at = np.flatnonzero(picked >= 0)
    chosen = picked[at]
    found = _cells(locations, tracks.lat[chosen], tracks.lon[chosen])
    cells[at] = np.where(found < 0, np.int32(kernels.OUTSIDE), found)
    carried = kernels.carry_forward(starts, reach, cells)
    report = ResampleReport(
        len(tracks),
        n,
        int(starts[-1]),
        int((found >= 0).sum()),
        int((found < 0).sum()),
        int(carried),
        0,
    )
    traces = Traces(
        cells,
        starts,
        Coded(owners, tracks.user.source),
        (start + firsts * width).view("datetime64[ms]"),
        np.timedelta64(width, "ms"),
        locations,
        report,
    )
    long = traces if min_steps == 1 else traces.at_least(min_steps)
    return replace(long, report=replace(report, short=n - len(long)))


def _check(tracks: Tracks, locations: Locations, split_trajectories: bool) -> None:
    """The map has degrees, and every fix has what resampling asks for."""
    if not isinstance(locations, Locations) or locations.projection is None:
        raise InvalidLocation(
            "resampling needs a map with latitude and longitude: Grid.from_bounds, or "
            "Points.from_latlon"
        )
    if split_trajectories and "trajectory" not in tracks.columns:
        raise InvalidTable(
            "split_trajectories needs a trajectory column: read the table with "
            "columns={'trajectory': ...}"
        )
    if np.isnat(tracks.time).any() or np.isnan(tracks.lat).any() or np.isnan(tracks.lon).any():
        raise InvalidTable(
            "some fixes have no time or no place: leave them out with .clean() first"
        )


def _cells(locations: Locations, lat: Any, lon: Any) -> check.Cells:
    if isinstance(locations, Grid):
        return located(locations, lat, lon)
    if isinstance(locations, Points) and locations.projection is not None:
        return locations.nearest(locations.projection.to_km(lat, lon))
    raise InvalidLocation(
        f"fixes are placed on a Grid or on Points, not on {type(locations).__name__}"
    )
