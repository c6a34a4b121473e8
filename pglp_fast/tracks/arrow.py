"""Parquet files and tables in memory (pyarrow, pandas, polars, anything that speaks Arrow), in batches of rows."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import fields as kernels
from ..errors import InvalidTable
from . import columns as roles
from .batch import Batch, Reading, settle
from .labels import Octets, Spans
from .optional import need
from .report import Malformed
from .text import read_numbers, read_times
from .times import NO_TIME, to_utc, zone_of


def parquet_batches(
    path: str | os.PathLike[str], columns: Mapping[str, Any] | None, reading: Reading, rows: int
) -> Iterator[Batch]:
    """Rows of a Parquet file; of its columns only those that are needed are read."""
    need("pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    name, size = os.path.basename(path), os.path.getsize(path)
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            names = file.schema_arrow.names
            at = _match(names, columns, name)
            total = max(1, file.metadata.num_rows)
            record_batches = file.iter_batches(batch_size=rows, columns=[names[k] for k in at.values()])
            for batch in _batches(record_batches, {role: names[k] for role, k in at.items()}, name, reading):
                yield batch
                reading.advance(size * batch.rows // total)
    except pa.ArrowException as error:
        raise InvalidTable(f"{name} cannot be read as Parquet: {error}") from None


def frame_batches(frame: Any, columns: Mapping[str, Any] | None, reading: Reading, rows: int) -> Iterator[Batch]:
    """Rows of a table in memory."""
    need("pyarrow")
    import pyarrow as pa

    name = type(frame).__name__
    try:
        table, at = _from_pandas(frame, columns, name) if hasattr(frame, "iloc") else _from_arrow(frame, columns, name)
        record_batches = table.to_batches(max_chunksize=rows)
    except pa.ArrowException as error:
        raise InvalidTable(f"{name} cannot be read as a table: {error}") from None
    yield from _batches(record_batches, at, name, reading)


def _match(names: list[str], columns: Mapping[str, Any] | None, source: str) -> dict[str, int]:
    at = roles.match(names, columns, source, geometry=True)
    if "clock" in at:
        raise InvalidTable(f"{source}: join date and time of day into one column: two are read from text files only")
    return at


def _from_arrow(table: Any, columns: Mapping[str, Any] | None, source: str) -> tuple[Any, dict[str, str]]:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        if not hasattr(table, "__arrow_c_stream__"):
            raise InvalidTable(f"a table is a path, a DataFrame or an Arrow table, not {source}: make arrays one with Tracks.of")
        table = pa.table(table)
    at = {role: table.column_names[k] for role, k in _match(table.column_names, columns, source).items()}
    return table.select(list(at.values())), at


def _from_pandas(frame: Any, columns: Mapping[str, Any] | None, source: str) -> tuple[Any, dict[str, str]]:
    """Index levels with names count as columns. A GeoDataFrame's points become lat and lon."""
    import pyarrow as pa

    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    at = _match(names, columns, source)
    picked = {role: frame.iloc[:, k] for role, k in at.items()}
    points = picked.pop("geometry", None)
    if points is not None:
        crs = getattr(points, "crs", None)
        if crs is not None and not crs.is_geographic:
            raise InvalidTable(f"{source}: its points are in {crs.name}, not in degrees: use .to_crs(4326) first")
        if not hasattr(points, "x"):
            raise InvalidTable(f"{source}: column {names[at['geometry']]!r} is not a GeoSeries of points: give lat and lon")
        try:
            picked["lat"], picked["lon"] = points.y, points.x
        except (ValueError, AttributeError) as error:
            raise InvalidTable(f"{source}: column {names[at['geometry']]!r} must hold points: {error}") from None
    arrays = {role: pa.Array.from_pandas(column) for role, column in picked.items()}
    return pa.table(arrays), {role: role for role in picked}


def _batches(batches: Iterable[Any], at: dict[str, str], source: str, reading: Reading) -> Iterator[Batch]:
    row = 0
    for batch in batches:
        yield _parse({role: batch.column(name) for role, name in at.items()}, row, source, reading)
        row += batch.num_rows


def _parse(columns: dict[str, Any], first: int, source: str, reading: Reading) -> Batch:
    n = len(columns["time"])
    if "geometry" in columns:
        lat, lon = _points(columns.pop("geometry"), source)
        lat_bad = lon_bad = np.zeros(n, np.bool_)
    else:
        lat, lat_bad = _numbers(columns["lat"], "lat", source)
        lon, lon_bad = _numbers(columns["lon"], "lon", source)
    time, time_bad = _times(columns["time"], source, reading.timezone)
    user_bad = np.asarray(columns["user"].is_null())
    bad = lat_bad | lon_bad | time_bad | user_bad

    def why(row: int) -> Malformed:
        for role, fault in (("time", time_bad), ("lat", lat_bad), ("lon", lon_bad)):
            if fault[row]:
                what = "time" if role == "time" else "number"
                reason = f"{role} {str(columns[role][row])[:60]!r} is not a {what}"
                return Malformed(source, "row", first + row, reason)
        return Malformed(source, "row", first + row, "no user")

    malformed = settle(reading, bad, why)
    good = slice(None) if not bad.any() else ~bad
    codes = {role: _codes(columns[role], role, bad, source, reading)[good] for role in roles.LABELS if role in columns}
    return Batch(codes, {"lat": lat[good], "lon": lon[good]}, time[good], first + np.arange(n)[good], n, malformed)


def _plain(column: Any) -> Any:
    """Dictionaries spelt out, and text of any kind as large_string."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kinds = pa.types
    if kinds.is_string(column.type) or kinds.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column


def _spans(column: Any) -> tuple[Octets, Spans]:
    """Bytes of a large_string (or large_binary) column and where each value lies in them; -1 for null."""
    offsets, octets = column.buffers()[1:]
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    low, high = int(bounds[0]), int(bounds[-1])
    data = np.frombuffer(octets, np.uint8)[low:high].copy() if octets is not None else np.empty(0, np.uint8)
    spans = np.stack([bounds[:-1], bounds[1:]], axis=1) - low
    spans[np.asarray(column.is_null())] = -1
    return data, spans


def _numbers(column: Any, role: str, source: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    import pyarrow as pa

    column = _plain(column)
    if pa.types.is_large_string(column.type):
        data, spans = _spans(column)
        return read_numbers(data, np.maximum(spans, 0))
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)):
        raise InvalidTable(f"{source}: {role} must be numbers, got {column.type}")
    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.array(values, np.float64), np.zeros(len(column), np.bool_)


def _times(column: Any, source: str, timezone: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    import pyarrow as pa

    column = _plain(column)
    kind, n = column.type, len(column)
    fine = np.zeros(n, np.bool_)
    missing = np.asarray(column.is_null())
    if pa.types.is_large_string(kind):
        data, spans = _spans(column)
        return read_times(data, np.maximum(spans, 0), None, timezone)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # the cast to ms may cut off smaller parts, and for zones that is all there is to do: instants are UTC already
        stamps = column.cast(pa.timestamp("ms", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        ms = np.array(stamps.fill_null(NO_TIME).to_numpy(zero_copy_only=False), np.int64)
        return (ms if getattr(kind, "tz", None) else to_utc(ms, zone_of(timezone))), fine
    if pa.types.is_integer(kind):
        values = np.array(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        out, marks = np.empty(n, np.int64), np.empty(n, np.uint8)
        kernels.epochs(values, out, marks)
        out[missing] = NO_TIME
        return out, marks == kernels.BAD
    if pa.types.is_floating(kind):
        seconds = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        missing = np.isnan(seconds)
        bad = ~missing & ~(np.abs(seconds) < 1e11)
        out = np.floor(np.where(missing | bad, 0.0, seconds) * 1000 + 0.5).astype(np.int64)
        out[missing] = NO_TIME
        return out, bad
    raise InvalidTable(f"{source}: time must be timestamps, text or numbers since 1970, got {kind}")


def _codes(column: Any, role: str, bad: NDArray[np.bool_], source: str, reading: Reading) -> NDArray[np.int32]:
    import pyarrow as pa

    column = _plain(column)
    if pa.types.is_floating(column.type):  # whole numbers with a gap, as pandas keeps them
        column = _null_for_nan(column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        try:
            values = column.fill_null(0).cast(pa.int64())
        except pa.ArrowInvalid:
            raise InvalidTable(f"{source}: the {role} must be whole numbers or text, got {column.type}") from None
        missing = np.asarray(column.is_null()) | bad
        integers = np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
        return reading.labeller(role, "integer", source).number_integers(integers, missing)
    if not pa.types.is_large_string(column.type):
        try:
            column = column.cast(pa.large_string())
        except pa.ArrowException:
            raise InvalidTable(f"{source}: the {role} must be whole numbers or text, got {column.type}") from None
    data, spans = _spans(column)
    spans[bad] = -1
    return reading.labeller(role, "text", source).number(data, spans)


def _null_for_nan(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _points(column: Any, source: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitude and longitude of points as GeoParquet has them: WKB, or a struct of x and y."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type) and {"x", "y"} <= {field.name for field in column.type}:
        x, y = (pc.struct_field(column, axis).cast(pa.float64()).to_numpy(zero_copy_only=False) for axis in "xy")
        return np.array(y, np.float64), np.array(x, np.float64)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InvalidTable(f"{source}: the geometry must be points (WKB, or a struct of x and y), got {column.type}")
    data, spans = _spans(column.cast(pa.large_binary()))
    there = np.flatnonzero(spans[:, 0] >= 0)
    xy = np.full((len(column), 2), np.nan)
    if there.size:
        wkb = data.reshape(-1, 21) if data.size == 21 * there.size and (np.diff(spans[there], axis=1) == 21).all() else None
        # byte order 1 (little endian), type 1 (point), then x and y
        if wkb is None or (wkb[:, :5] != np.array([1, 1, 0, 0, 0], np.uint8)).any():
            raise InvalidTable(f"{source}: the geometry must be plain 2-d points: give lat and lon columns instead")
        xy[there] = np.ascontiguousarray(wkb[:, 5:]).view("<f8")
    return xy[:, 1].copy(), xy[:, 0].copy()
