"""From Arrow columns of any type to users, times and degrees: the one way for every table."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.times import NO_TIME, to_utc, zone_of
from pglp_fast.errors import InvalidTable

from . import columns as roles
from .fix_batches import Batch, RawBatch, Reading, settle
from .labels import EXACT, label_name
from .reading_report import Malformed
from .values import (
    null_for_no_label,
    read_numbers,
    read_times,
    read_times_as,
    read_wkt,
    seconds_to_ms,
    to_numpy,
    whole_times,
)

pa, pc = Later("pyarrow"), Later("pyarrow.compute")

Bad = NDArray[np.bool_]
_PER_MS = {"us": 1000, "ns": 10**6}
# of well-known binary: byte order 1 (little endian) and type 1 (point), then x and y
_DAY_FIRST = re.compile(r"'\d{1,2}[-./]\d{1,2}[-./]\d{2,4}\b")
_POINT = np.dtype([("head", "u1", 5), ("xy", "<f8", 2)])


def parse(
    raw: RawBatch,
    source: str,
    reading: Reading,
    place: Callable[[int], tuple[str, int]] | None = None,
) -> Batch:
    """The rows that can be read, and which; ``raw`` has lines if it comes from a text file.

    ``place``: file and line by the number of a row, where those of ``source`` are of many files."""
    n, columns, textual = len(raw.rows), raw.columns, raw.numbers is not None
    place = place or raw.place
    time, numbers, faulty = np.full(n, NO_TIME), {}, {}
    if "time" in columns:
        when = _joined(columns["time"], columns["clock"]) if "clock" in columns else columns["time"]
        time, faulty["time"] = _times(when, source, reading)
    if "geometry" in columns and is_text(columns["geometry"].type):
        numbers["lat"], numbers["lon"], faulty["geometry"] = read_wkt(columns["geometry"])
    elif "geometry" in columns:
        numbers["lat"], numbers["lon"] = read_points(columns["geometry"], source)
    for role in (role for role in roles.NUMBERS if role in columns):
        numbers[role], faulty[role] = _numbers(columns[role], role, source, reading.decimal)
    labels = {
        role: _labels(columns[role], role, source, textual)
        for role in roles.LABELS
        if role in columns
    }
    if "user" in labels:
        faulty["user"] = to_numpy(labels["user"].is_null())
    broken = np.isin(np.arange(n), list(raw.broken)) if raw.broken else np.zeros(n, np.bool_)
    bad = np.any([broken, *faulty.values()], axis=0)
    lines = np.arange(raw.first, raw.first + n) if raw.numbers is None else raw.numbers

    def why(row: int) -> Malformed:
        role = next((role for role in faulty if faulty[role][row]), "")
        fields = [columns[r] for r in (role, "clock" if role == "time" else "") if r in columns]
        written = " ".join(repr(str(field[row])[:60]) for field in fields)
        what = {"time": "time", "geometry": "point in WKT"}.get(role, "number")
        reason = "no user" if role == "user" else f"{role} {written} is not a {what}"
        if role == "time" and "clock" not in columns:
            reason += ": write the column as 2024-12-25 10:00, or as seconds since 1970"
            if _DAY_FIRST.match(written) and reading.time_format is None:
                reason += "; or say how it is written with time_format='%d/%m/%Y %H:%M' or the like"
        name, number = place(int(lines[row])) if place else (source, int(lines[row]))
        unit = "line" if textual else "row"
        return Malformed(name, unit, number, raw.broken.get(row, reason))

    malformed = settle(reading, bad, why)
    at = np.flatnonzero(~bad)
    good: Any = slice(None)
    if len(at) < n:
        good, labels = at, {role: column.take(pa.array(at)) for role, column in labels.items()}
    codes = {
        role: _codes(column, reading, role, "field" if textual else "", source)
        for role, column in labels.items()
    }
    numbers = {role: column[good] for role, column in numbers.items()}
    return Batch(codes, numbers, time[good], lines[good], at, n, malformed)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text of any kind."""
    is_a = pa.types
    return bool(is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind))


def _plain(column: Any) -> Any:
    """Dictionaries spelt out, extension types as they are stored, and text of any kind as
    string."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        values = column.dictionary
        if pa.types.is_string_view(values.type):  # which Arrow does not decode
            column = pa.DictionaryArray.from_arrays(column.indices, values.cast(pa.large_string()))
        column = column.dictionary_decode()
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def _joined(date: Any, clock: Any) -> Any:
    """Dates and times of day as one text; nothing where both are empty."""
    both = pc.binary_join_element_wise(date, clock, "T")
    return pc.if_else(pc.equal(both, "T"), "", both)


def _numbers(column: Any, role: str, source: str, decimal: str) -> tuple[NDArray[np.float64], Bad]:
    column = _plain(column)
    if is_text(column.type):
        comma = decimal == ","
        return read_numbers(pc.replace_substring(column, ",", ".") if comma else column)
    if not (
        pa.types.is_floating(column.type)
        or pa.types.is_integer(column.type)
        or pa.types.is_decimal(column.type)
    ):
        raise InvalidTable(f"{source}: {role} must be numbers, got {column.type}")
    values = np.array(to_numpy(column.cast(pa.float64())), np.float64)
    return values, np.zeros(len(column), np.bool_)


def _times(column: Any, source: str, reading: Reading) -> tuple[NDArray[np.int64], Bad]:
    column, timezone = _plain(column), reading.timezone
    kind = column.type
    if is_text(kind):
        if reading.time_format is not None:
            return read_times_as(column, timezone, reading.time_format)
        return read_times(column, timezone)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # times with a zone are UTC already; what is smaller than a ms is cut off
        zone, per_ms = getattr(kind, "tz", None), _PER_MS.get(getattr(kind, "unit", ""))
        stamps = (column if per_ms else column.cast(pa.timestamp("ms", zone))).cast(pa.int64())
        ms = to_numpy(stamps.fill_null(0)) // (per_ms or 1)
        ms[to_numpy(column.is_null())] = NO_TIME
        return (ms if zone else to_utc(ms, zone_of(timezone))), np.zeros(len(column), np.bool_)
    if pa.types.is_integer(kind):
        out, bad = whole_times(to_numpy(column.cast(pa.int64()).fill_null(0)))
        out[to_numpy(column.is_null())] = NO_TIME
        return out, bad
    if pa.types.is_floating(kind):
        return seconds_to_ms(np.array(to_numpy(column.cast(pa.float64())), np.float64))
    raise InvalidTable(f"{source}: time must be timestamps, text or numbers since 1970, got {kind}")


def _labels(column: Any, role: str, source: str, textual: bool) -> Any:
    """A column of int64 or of text, null where there is no label, or a blank one."""
    named = column if textual else _named(column, role, source)
    return null_for_no_label(named) if is_text(named.type) else named


def _named(column: Any, role: str, source: str) -> Any:
    """A column of int64 or of text, from one of any type."""
    uuid = getattr(column.type, "extension_name", "") == "arrow.uuid"
    column = column.storage if uuid else _plain(column)
    kind, is_a = column.type, pa.types
    try:
        if is_text(kind):
            return column
        if is_a.is_integer(kind):
            return column.cast(pa.int64())
        if is_a.is_floating(kind):  # whole numbers with a gap, as pandas keeps them
            return _whole_numbers(column)
        if not uuid and not is_a.is_decimal(kind):
            return column.cast(pa.string())
        coded = column.dictionary_encode()
        known = coded.dictionary.to_pylist()
        names = [label_name(UUID(bytes=value) if uuid else value) for value in known]
        return pa.array(names, pa.string()).take(coded.indices)
    except (pa.ArrowException, ValueError):
        raise InvalidTable(
            f"{source}: the {role} must be whole numbers or text, got {column.type}"
        ) from None


def _whole_numbers(column: Any) -> Any:
    """Floats as int64, null for NaN; a ValueError where there are others between, or where a float
    no longer tells whole numbers apart."""
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    bits = {16: 11, 32: 24}.get(column.type.bit_width, EXACT)
    far = pc.max(pc.abs(column)).as_py()
    if far is not None and far > 2.0**bits:
        raise ValueError(f"{far} is too large for its type to tell it from its neighbours")
    return column.cast(pa.int64())


def _codes(column: Any, reading: Reading, role: str, kind: str, source: str) -> NDArray[np.int32]:
    coded = column.dictionary_encode()
    kind = kind or ("text" if is_text(column.type) else "integer")
    labeller = reading.labeller(role, kind, source)
    return labeller.number(coded.dictionary.to_pylist(), to_numpy(coded.indices.fill_null(-1)))


def read_points(column: Any, source: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitude and longitude of points as GeoParquet has them: WKB, or a struct of x and y."""
    column = _plain(column)
    if pa.types.is_struct(column.type) and {"x", "y"} <= {field.name for field in column.type}:
        x, y = (to_numpy(pc.struct_field(column, axis).cast(pa.float64())) for axis in "xy")
        return np.array(y, np.float64), np.array(x, np.float64)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InvalidTable(
            f"{source}: the geometry must be points (WKB, or a struct of x and y), got "
            f"{column.type}"
        )
    there = column.drop_null().cast(pa.large_binary())
    _, offsets, octets = there.buffers()
    bounds = np.frombuffer(offsets, np.int64)[there.offset : there.offset + len(there) + 1]
    fixed = bool((np.diff(bounds) == _POINT.itemsize).all())
    points = np.frombuffer(octets or b"", _POINT, len(there) if fixed else 0, int(bounds[0]))
    if not fixed or (points["head"] != np.array([1, 1, 0, 0, 0], np.uint8)).any():
        raise InvalidTable(
            f"{source}: the geometry must be plain 2-d points: give lat and lon columns instead"
        )
    xy = np.full((len(column), 2), np.nan)
    xy[to_numpy(column.is_valid())] = points["xy"]
    return xy[:, 1].copy(), xy[:, 0].copy()
