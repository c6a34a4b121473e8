"""Durations, moments and time zones, as milliseconds since 1970 UTC."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidParameter

NO_TIME = int(np.iinfo(np.int64).min)  # NaT
_UNITS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_DAY, _MINUTE = 86_400_000, 60_000


def duration(value: Any, name: str) -> int:
    """Milliseconds of "5min", "30s", "1.5h", "1d", a timedelta or a timedelta64; above 0."""
    found = _DURATION.fullmatch(value.lower()) if isinstance(value, str) else None
    if found and found[2] in _UNITS:
        ms = round(float(found[1]) * _UNITS[found[2]])
    elif isinstance(value, np.timedelta64) and not np.isnat(value):
        ms = int(value.astype("timedelta64[ms]").astype(np.int64))
    elif isinstance(value, timedelta):
        ms = round(value.total_seconds() * 1000)
    else:
        raise InvalidParameter(f'{name} must be a duration such as "5min", "30s", "2h" or "1d", or a timedelta, got {value!r}')
    if ms <= 0 or ms > 10**13:
        raise InvalidParameter(f"{name} must be longer than 0 and at most 300 years, got {value!r}")
    return ms


def shown(ms: int) -> str:
    """A duration in the largest unit that leaves no rest: 300000 is "5min"."""
    name, size = next((n, s) for n, s in reversed(_UNITS.items()) if ms % s == 0 and n not in ("sec", "m"))
    return f"{ms // size}{name}"


def moment(value: Any, name: str) -> int:
    """Milliseconds since 1970 of a datetime, datetime64 or ISO text; UTC unless it says otherwise."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        stamp = np.datetime64(value, "ms")
        if not np.isnat(stamp):
            return int(stamp.astype(np.int64))
    except (TypeError, ValueError):
        pass
    raise InvalidParameter(f'{name} must be a moment such as "2008-10-23" or "2008-10-23T02:53:04", got {value!r}')


def zone_of(name: str) -> ZoneInfo | timezone:
    """A time zone by its name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidParameter(f'timezone must be a name such as "UTC" or "Asia/Tokyo", got {name!r}') from None


def to_utc(local_ms: NDArray[np.int64], zone: ZoneInfo | timezone) -> NDArray[np.int64]:
    """Clock readings of a zone as UTC; NaT stays. A reading that occurs twice in autumn is taken as the first.

    A zone is asked once for each day, and on the days that its clocks change once for each minute.
    """
    if zone is UTC or not len(local_ms):
        return local_ms
    days, which = np.unique(local_ms // _DAY, return_inverse=True)
    morning, evening = _shifts(days * _DAY, zone), _shifts((days + 1) * _DAY - _MINUTE, zone)
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
