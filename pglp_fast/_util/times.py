"""Durations, moments, time zones and parts of the day, in milliseconds since 1970 UTC."""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter, InvalidTransition

NO_TIME = int(np.iinfo(np.int64).min)  # NaT
_UNITS = {
    "ms": 1,
    "s": 1000,
    "sec": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
DAY_MS, _MINUTE = 86_400_000, 60_000
MAX_PERIODS = 86_400  # of a day: one for each second


def duration(value: Any, name: str) -> int:
    """Milliseconds of "5min", "30s", "1.5h", "1d", a timedelta or a timedelta64; above 0."""
    found = _DURATION.fullmatch(value.lower()) if isinstance(value, str) else None
    ms = math.nan
    if found and found[2] in _UNITS:
        ms = float(found[1]) * _UNITS[found[2]]
    elif isinstance(value, timedelta):
        ms = value.total_seconds() * 1000
    elif isinstance(value, np.timedelta64) and not np.isnat(value):
        with suppress(TypeError):  # months have no length
            ms = float(value / np.timedelta64(1, "ms"))
    if math.isnan(ms):
        raise InvalidParameter(
            f'{name} must be a duration such as "5min", "30s", "2h" or "1d", or a timedelta, got '
            f"{check.brief(value)}"
        )
    if not 0.5 < ms <= 10**13:
        raise InvalidParameter(
            f"{name} must be longer than 0 and at most 300 years, got {check.brief(value)}"
        )
    return round(ms)


def shown(ms: int) -> str:
    """A duration in the largest unit that leaves no rest: 300000 is "5min"."""
    name, size = next(
        (n, s) for n, s in reversed(_UNITS.items()) if ms % s == 0 and n not in ("sec", "m")
    )
    return f"{ms // size}{name}"


def moment(value: Any, name: str) -> int:
    """Milliseconds since 1970 of a datetime, datetime64 or ISO text; UTC unless it says
    otherwise."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        stamp = np.datetime64(value, "ms")
        if not np.isnat(stamp):
            return int(stamp.astype(np.int64))
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidParameter(
        f'{name} must be a moment such as "2008-10-23" or "2008-10-23T02:53:04", got {value!r}'
    )


def zone_of(name: str) -> ZoneInfo | timezone:
    """A time zone by its name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidParameter(
            f'timezone must be a name such as "UTC" or "Asia/Tokyo", got {name!r}'
        ) from None


def to_utc(local_ms: NDArray[np.int64], zone: ZoneInfo | timezone) -> NDArray[np.int64]:
    """Clock readings of a zone as UTC; NaT stays. A reading that occurs twice in autumn is taken as
    the first.

    A zone is asked once for each day, and on the days that its clocks change once for each minute.
    """
    if zone is UTC or not len(local_ms):
        return local_ms
    days, which = np.unique(local_ms // DAY_MS, return_inverse=True)
    morning, evening = _shifts(days * DAY_MS, zone), _shifts((days + 1) * DAY_MS - _MINUTE, zone)
    shift = morning[which]
    rows = np.flatnonzero((morning != evening)[which])
    minutes, which = np.unique(local_ms[rows] // _MINUTE, return_inverse=True)
    shift[rows] = _shifts(minutes * _MINUTE, zone)[which]
    return np.where(local_ms == NO_TIME, NO_TIME, local_ms - shift)


def _shifts(local_ms: NDArray[np.int64], zone: ZoneInfo | timezone) -> NDArray[np.int64]:
    """How far the zone is ahead of UTC at each reading of its clocks, in ms."""
    start, out = datetime(1970, 1, 1), np.zeros(len(local_ms), np.int64)
    for k, ms in enumerate(local_ms.tolist()):
        try:
            ahead = zone.utcoffset(start + timedelta(milliseconds=ms))
        except OverflowError:  # NaT, and years that no calendar here has: cleaning tells them
            continue
        out[k] = 0 if ahead is None else round(ahead.total_seconds() * 1000)
    return out


def day_period(times: ArrayLike, periods: int) -> NDArray[np.int64]:
    """Which of ``periods`` equal parts of the day each moment is in: datetime64, or seconds
    since some midnight."""
    check.whole(periods, "periods", 1, MAX_PERIODS)
    array = check.as_array(times, "times", InvalidTransition)
    try:
        if array.dtype.kind in "OSU":
            array = array.astype("datetime64[s]")
    except (TypeError, ValueError, OverflowError):
        pass
    if array.dtype.kind not in "iufM":
        raise InvalidTransition("times must be datetime64 or seconds since midnight")
    if array.dtype.kind == "f":
        array = check.floats(array, "times", InvalidTransition)
    if np.isnat(array).any() if array.dtype.kind == "M" else not np.isfinite(array).all():
        raise InvalidTransition("times has an entry that is not a time: fill or drop it first")
    if array.dtype.kind == "M":
        array = array.astype("datetime64[s]").astype(np.int64)
    if array.dtype.kind in "iu":
        array = array.astype(f"{array.dtype.kind}8")  # small integers do not hold a day's seconds
    part = np.floor(np.mod(array, 86400) * periods / 86400).astype(np.int64)
    return np.asarray(np.minimum(part, periods - 1))  # a moment just before midnight rounds to it
