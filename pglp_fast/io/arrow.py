"""Parquet files and tables in memory (pyarrow, pandas, polars, anything that speaks Arrow), in
batches of rows."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidTable

from . import columns as roles
from .fix_batches import RawBatch
from .labels import label_name

pa, parquet = Later("pyarrow"), Later("pyarrow.parquet")


class ParquetTable:
    """The rows of a Parquet file.

    Attributes
    ----------
    columns, schema : names and types of the file's columns
    at : number of the column for each role
    every_column : whether all columns are read, or only those that have a role
    groups : row groups that are read; all, unless given
    """

    kind, delimiter = "parquet", ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, Any] | None,
        *,
        every_column: bool,
        advance: Callable[[int], None] = lambda n: None,
        groups: range | None = None,
    ):
        self.name, self._advance, self._size = (
            os.path.basename(path),
            advance,
            os.path.getsize(path),
        )
        self.every_column, self._groups = every_column, groups
        try:
            self._file = parquet.ParquetFile(path, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            raise self._refusal(error) from None
        self.schema = self._file.schema_arrow
        self.columns = list(self.schema.names)
        try:
            self.at = match_columns(self.columns, columns, self.name)
            _check_degrees(self.schema, self.columns, self.at, self.name)
        except InvalidTable:
            self.close()
            raise

    def batches(self, rows: int) -> Iterator[RawBatch]:
        """At most ``rows`` rows at a time, to the end of the file or of the row groups."""
        names = {role: self.columns[k] for role, k in self.at.items()}
        facts = self._file.metadata
        total = max(1, facts.num_rows)
        wanted = None if self.every_column else list(names.values())
        groups = range(facts.num_row_groups) if self._groups is None else self._groups
        try:
            first = sum(facts.row_group(k).num_rows for k in range(groups.start))
            for batch in self._file.iter_batches(rows, list(groups), wanted):
                columns = {role: batch.column(name) for role, name in names.items()}
                yield RawBatch(batch, columns, first)
                first += len(batch)
                self._advance(self._size * len(batch) // total)
        except (OSError, pa.ArrowException) as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> InvalidTable:
        said = " ".join(str(error).split())
        return InvalidTable(f"{self.name} cannot be read as Parquet: {said}")

    def close(self) -> None:
        self._file.close()


def frame_batches(frame: Any, columns: Mapping[str, Any] | None, rows: int) -> Iterator[RawBatch]:
    """Rows of a table in memory."""
    name = type(frame).__name__
    try:
        table = (
            _from_pandas(frame, columns, name)
            if hasattr(frame, "iloc")
            else _from_arrow(frame, columns, name)
        )
        batches = table.to_batches(max_chunksize=rows)
    except pa.ArrowException as error:
        raise InvalidTable(f"{name} cannot be read as a table: {error}") from None
    first = 0
    for batch in batches:
        yield RawBatch(batch, dict(zip(batch.schema.names, batch.columns)), first)
        first += len(batch)


def match_columns(
    names: list[str], columns: Mapping[str, Any] | None, source: str
) -> dict[str, int]:
    """Number of the column for each role; a column of points may stand for both lat and lon."""
    at = roles.match(names, columns, source, geometry=True)
    if "clock" in at:
        raise InvalidTable(
            f"{source}: join date and time of day into one column: two are read from text files "
            "only"
        )
    return at


def _from_arrow(table: Any, columns: Mapping[str, Any] | None, source: str) -> Any:
    """The columns that have a role, named by it."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        if not hasattr(table, "__arrow_c_stream__"):
            raise InvalidTable(
                f"a table is a path, a DataFrame or an Arrow table, not {source}: make arrays one "
                "with Tracks.of"
            )
        _refuse_objects(table, source)
        table = pa.table(table)
    at = match_columns(table.column_names, columns, source)
    _check_degrees(table.schema, table.column_names, at, source)
    return table.select(list(at.values())).rename_columns(list(at))


def _refuse_objects(table: Any, source: str) -> None:
    """Refuse polars' columns of objects: as Arrow they are addresses in memory, not values."""
    for name, kind in dict(getattr(table, "schema", None) or {}).items():
        if str(kind) == "Object":
            raise InvalidTable(
                f"{source}: column {name!r} has objects of any type: make it whole numbers or text"
            )


def _from_pandas(frame: Any, columns: Mapping[str, Any] | None, source: str) -> Any:
    """The same. Index levels with names count as columns; a GeoDataFrame's points become lat and
    lon."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    at = match_columns(names, columns, source)
    picked = {role: frame.iloc[:, k] for role, k in at.items()}
    points = picked.pop("geometry", None)
    if points is not None:
        crs = getattr(points, "crs", None)
        if crs is not None and not crs.is_geographic:
            raise InvalidTable(
                f"{source}: its points are in {crs.name}, not in degrees: use .to_crs(4326) first"
            )
        if isinstance(next(iter(points.dropna()), None), str):  # well-known text
            picked["geometry"] = points
            return pa.table({role: _from_series(column, role) for role, column in picked.items()})
        if not hasattr(points, "x"):
            raise InvalidTable(
                f"{source}: column {names[at['geometry']]!r} is not a GeoSeries of points: give "
                "lat and lon"
            )
        try:
            picked["lat"], picked["lon"] = points.y, points.x
        except (ValueError, AttributeError) as error:
            raise InvalidTable(
                f"{source}: column {names[at['geometry']]!r} must hold points: {error}"
            ) from None
    return pa.table({role: _from_series(column, role) for role, column in picked.items()})


def _from_series(column: Any, role: str) -> Any:
    """Labels that are objects of some kind (UUIDs, numbers among text) become text."""
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError):
        if role not in roles.LABELS:
            raise
    try:
        named = column.astype(object).map(label_name, na_action="ignore")
    except ValueError as error:
        raise InvalidTable(f"the {role} must be whole numbers or text: {error}") from None
    return pa.Array.from_pandas(named, type=pa.large_string())


def _check_degrees(schema: Any, names: list[str], at: Mapping[str, int], source: str) -> None:
    """Refuse points whose coordinate system, as GeoParquet or GeoArrow tell it, is not one of
    degrees."""
    if "geometry" not in at:
        return
    name = names[at["geometry"]]
    geo = _facts(schema.metadata, b"geo").get("columns", {}).get(name, {})
    extension = _facts(schema.field(at["geometry"]).metadata, b"ARROW:extension:metadata")
    for crs in (geo.get("crs"), extension.get("crs")):
        if crs and not _in_degrees(crs):
            said = crs.get("name", crs) if isinstance(crs, dict) else crs
            raise InvalidTable(
                f"{source}: the points of column {name!r} are in {said}, not in degrees: bring "
                "them to EPSG:4326 (geopandas: .to_crs(4326)), or give lat and lon columns"
            )


def _facts(metadata: Mapping[bytes, bytes] | None, key: bytes) -> dict[str, Any]:
    """JSON of a table's metadata; nothing where there is none."""
    try:
        found = json.loads((metadata or {}).get(key, b"{}"))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _in_degrees(crs: Any) -> bool:
    """Of PROJJSON, or a name such as "OGC:CRS84"."""
    if isinstance(crs, str):
        return crs.upper() in ("OGC:CRS84", "EPSG:4326")
    if crs.get("type") == "CompoundCRS":  # with a height
        return _in_degrees(crs["components"][0])
    return bool(crs.get("type") == "GeographicCRS")
