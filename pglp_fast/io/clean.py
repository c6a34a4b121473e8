"""Leaving out what cannot be true, step by step, each counted."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.io import fixes as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.threads import run_ranges
from pglp_fast._util.times import moment
from pglp_fast.errors import InvalidLocation, InvalidParameter
from pglp_fast.space.grid import Grid
from pglp_fast.space.projection import EARTH_RADIUS_KM, MOST_LON

from .tracks import Tracks

_CHUNK = 1 << 18  # points located at a time: the rest of the memory is for the tracks


def clean(
    tracks: Tracks,
    grid: Grid | None,
    *,
    window: tuple[Any, Any] | None,
    duplicates: str,
    max_speed_kmh: float | None,
) -> Tracks:
    """``Tracks.clean``, which says what it does."""
    if grid is not None and not isinstance(grid, Grid):
        raise InvalidLocation(
            f"grid must be a Grid, got {type(grid).__name__}: Points have no outside"
        )
    check.choice(duplicates, "duplicates", ("first", "last", "all"))
    first, after = _window(window)
    speed = None if max_speed_kmh is None else check.positive(max_speed_kmh, "max_speed_kmh")

    tracks = tracks.sorted()
    keep = np.ones(len(tracks), np.bool_)
    report = tracks.report

    with np.errstate(invalid="ignore"):
        keep &= (np.abs(tracks.lat) <= 90) & (np.abs(tracks.lon) <= MOST_LON)
    left = int(keep.sum())
    report = report.then("coordinates missing or not on Earth", len(tracks) - left)

    time = tracks.time
    keep &= ~np.isnat(time)
    name = "times missing"
    if first is not None or after is not None:
        keep &= (time >= first) if first is not None else True
        keep &= (time < after) if after is not None else True
        name += f" or outside {_shown(first)}..{_shown(after)}"
    left, before = int(keep.sum()), left
    report = report.then(name, before - left)

    if grid is not None:
        keep &= located(grid, tracks.lat, tracks.lon) >= 0
        left, before = int(keep.sum()), left
        report = report.then("points outside the map", before - left)
    if duplicates != "all":
        dropped = kernels.mark_duplicates(tracks.user.codes, tracks.ms, duplicates == "last", keep)
        report = report.then(f"duplicates of a user and time ({duplicates} kept)", dropped)
    if speed is not None:
        dropped = kernels.mark_fast(
            tracks.user.codes,
            tracks.ms,
            tracks.lat,
            tracks.lon,
            speed / 3_600_000,
            EARTH_RADIUS_KM,
            keep,
        )
        report = report.then(f"faster than {speed:g} km/h from the fix before", dropped)
    return replace(tracks if keep.all() else tracks[keep], report=report)


def _window(window: tuple[Any, Any] | None) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    if window is None:
        return None, None
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise InvalidParameter(
            f"window must be (first moment, first moment after), either may be None, got {window!r}"
        )
    first, after = (
        None if end is None else np.datetime64(moment(end, "window"), "ms") for end in window
    )
    if first is not None and after is not None and not first < after:
        raise InvalidParameter(f"window must ascend, got {window!r}")
    return first, after


def _shown(moment: np.datetime64 | None) -> str:
    if moment is None:
        return ""
    day = moment.astype("datetime64[D]")
    return str(day if day == moment else moment.astype("datetime64[s]"))


def located(grid: Grid, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> check.Cells:
    """``grid.locate`` in pieces, side by side, so that scratch space stays small."""
    out = np.empty(len(lat), check.CELL)

    def part(start: int, stop: int) -> None:
        for a in range(start, stop, _CHUNK):
            b = min(a + _CHUNK, stop)
            out[a:b] = grid.locate(lat[a:b], lon[a:b])

    run_ranges(part, len(lat))
    return out
