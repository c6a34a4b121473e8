"""Tables from one format to another: text, Parquet, GeoJSON, GeoParquet, GeoPackage."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import replacing
from pglp_fast.errors import InvalidParameter, InvalidTable
from pglp_fast.io.fix_batches import Reading, to_tracks
from pglp_fast.io.geo_write import GEOMETRY, Shapes, geo_writer
from pglp_fast.io.parse import read_points
from pglp_fast.io.table_batches import TableBatches, open_batches

from .paths import refuse_existing, refuse_inputs, target_of
from .text_rows import TextFile

pa, pc, parquet = Later("pyarrow"), Later("pyarrow.compute"), Later("pyarrow.parquet")

_TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_GEO = (".geojson", ".geoparquet", ".gpkg", ".fgb")
OUTPUTS = (*_TEXT, ".parquet", *_GEO)
_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"  # "007" is a name, not a number
_REAL = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


@dataclass(frozen=True)
class Converted:
    """How many rows went where, by which columns."""

    path: Path
    rows: int
    columns: list[str]
    places: str


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    places: str | None = None,
    prefix: str = "released_",
    overwrite: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Converted:
    """Write a table in the format that the target's name ends in.

    Parameters
    ----------
    source : text, Parquet, or what GDAL reads
    target : .csv, .tsv or .txt (with .gz zipped), .parquet, .geojson, .geoparquet, .gpkg, .fgb
    places : "released" or "given": which of its places are the points of a geographic format; the
        released ones where there are any, unless told
    prefix : how columns of released places start
    overwrite : replace a file that is there
    reading : columns, names, delimiter, timezone, time_format, decimal, as for ``read_table``

    Notes
    -----
    All columns stay, the true places too if they are there. Times become UTC. Columns of text in
    which every value is a whole number, a number, or true or false become that; users stay as they
    are. Points become two columns, and two columns points."""
    at, out = Path(source), target_of(Path(target))
    name = out.name.lower()
    if not name.endswith(OUTPUTS):
        raise InvalidParameter(f"{out}: name it {', '.join(OUTPUTS)}")
    refuse_inputs([out], [os.fspath(source)])
    refuse_existing(out, overwrite)
    how = dict(reading or {})
    zone = how.pop("timezone", "UTC"), how.pop("time_format", None), how.pop("decimal", ".")
    which, roles = _places(at, how, places, prefix)
    how["columns"] = roles
    kinds = _kinds(at, how)
    columns = _Columns(kinds, prefix, name.endswith(_GEO))
    rows, names = 0, list[str]()
    with replacing(out) as beside:
        sink: Any = None
        for table, raw in _batches(at, how):
            made = columns.of(table, raw, Reading("raise", *zone))
            if sink is None:
                sink = _sink(beside, name, made[0].schema)
                names = [*made[0].schema.names, *([GEOMETRY] if made[1] is not None else [])]
            sink.write(*(part for part in made if part is not None))
            rows += len(raw.rows)
        if sink is None:
            raise InvalidTable(f"{at} has no rows to convert")
        sink.close()
    return Converted(out, rows, names, which)


def _batches(path: Path, how: Mapping[str, Any]) -> Iterator[tuple[TableBatches, Any]]:
    with open_batches(path, **how) as table:
        for raw in table:
            yield table, raw


def _places(
    path: Path, how: Mapping[str, Any], wanted: str | None, prefix: str
) -> tuple[str, dict[str, Any]]:
    """(which places are read, the columns of the roles)."""
    roles = dict(how.get("columns") or {})
    released = {role: f"{prefix}{role}" for role in ("lat", "lon")}
    try:
        with open_batches(path, **{**how, "columns": {**roles, **released}}):
            there = True
    except InvalidTable:
        there = False
    if wanted == "released" and not there:
        raise InvalidTable(f"{path} has no columns {' and '.join(released.values())}")
    which = wanted or ("released" if there else "given")
    return which, {**roles, **released} if which == "released" else roles


def _kinds(path: Path, how: Mapping[str, Any]) -> dict[str, Any]:
    """Of a text table: the type that every value of a column can have; of others, nothing."""
    found: dict[str, Any] = {}
    for table, raw in _batches(path, how):
        if table.kind != "text":
            return {}
        fixed = set(table.at.values())
        for k, name in enumerate(table.columns):
            if k in fixed:
                continue
            column = raw.rows.column(k)
            text = column.filter(pc.not_equal(column, ""))
            if not len(text) or found.get(name) == pa.string():
                continue
            kind = _kind(text)
            found[name] = kind if found.setdefault(name, kind) == kind else _both(found[name], kind)
    return found


def _kind(text: Any) -> Any:
    """The type of all values."""
    if pc.all(pc.match_substring_regex(text, _WHOLE)).as_py():
        return pa.int64()
    if pc.all(pc.match_substring_regex(text, _REAL)).as_py():
        names = pc.any(pc.match_substring_regex(text, r"^-?0[0-9]")).as_py()
        return pa.string() if names else pa.float64()
    if pc.all(pc.is_in(text, pa.array(["true", "false"]))).as_py():
        return pa.bool_()
    return pa.string()


def _both(a: Any, b: Any) -> Any:
    """The type that values of two types can have."""
    return pa.float64() if {a, b} == {pa.int64(), pa.float64()} else pa.string()


class _Columns:
    """What the columns of a table become: times as such, places as two columns or as points."""

    def __init__(self, kinds: dict[str, Any], prefix: str, geo: bool):
        self._kinds, self._prefix, self._geo = kinds, prefix, geo

    def of(self, table: TableBatches, raw: Any, reading: Reading) -> tuple[Any, Any]:
        """(record batch, points or None)."""
        fixes = to_tracks(table.parse(raw, reading), reading)
        at, columns = table.at, dict[str, Any]()
        time = pa.array(fixes.time, pa.timestamp("ms"), mask=np.isnat(fixes.time))
        given = {"time": time.cast(pa.timestamp("ms", "UTC")), "clock": None}
        given |= {"lat": None, "lon": None, "geometry": None} if self._geo else {}
        given |= {} if self._geo else {"lat": _number(fixes.lat), "lon": _number(fixes.lon)}
        by_number = {k: role for role, k in at.items()}
        for k, name in enumerate(table.columns):
            role = by_number.get(k, "")
            if role == "geometry" and not self._geo:
                columns |= self._apart(table.columns, fixes.lat, fixes.lon)
            elif name == GEOMETRY and not role:  # points beside the places that were read
                columns |= self._apart(table.columns, *read_points(raw.rows.column(k), table.name))
            elif role in given:
                columns |= {} if given[role] is None else {name: given[role]}
            else:
                columns[name] = self._cast(raw.rows.column(k), name)
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        noted = {k: v for k, v in (table.schema.metadata or {}).items() if k == b"pglp_fast"}
        rows = rows.replace_schema_metadata(noted)
        return rows, Shapes.points(fixes.lat, fixes.lon) if self._geo else None

    def _apart(
        self, columns: list[str], lat: NDArray[np.float64], lon: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Points as two columns. Those of a table that was released, and has its released places
        nowhere else, are these."""
        p = self._prefix
        released = f"{p}status" in columns and f"{p}lat" not in columns
        names = (f"{p}lat", f"{p}lon") if released else ("lat", "lon")
        taken = next((name for name in names if name in columns), None)
        if taken is not None:
            raise InvalidTable(
                f"the table has points, and a column {taken!r} besides: rename that first"
            )
        return {names[0]: _number(lat), names[1]: _number(lon)}

    def _cast(self, column: Any, name: str) -> Any:
        kind = self._kinds.get(name)
        if kind is None or kind == pa.string():
            return column
        empty = pc.equal(column, "")
        return pc.if_else(empty, pa.scalar(None, column.type), column).cast(kind)


def _number(values: NDArray[np.float64]) -> Any:
    return pa.array(values, mask=np.isnan(values))


def _sink(path: Path, name: str, schema: Any) -> Any:
    if name.endswith(_GEO):
        return geo_writer(path, name, schema, "Point")
    if name.endswith(".parquet"):
        return parquet.ParquetWriter(path, schema)
    return _Text(path, name, schema)


class _Text:
    """Text with a header line; commas, but tabs in .tsv."""

    def __init__(self, path: Path, name: str, schema: Any):
        self._file = TextFile(path, name, "\t" if re.search(r"\.tsv(\.gz)?$", name) else ",")
        self._file.write_names(schema.names)
        self.close = self._file.close

    def write(self, rows: Any) -> None:
        self._file.write([_text(column) for column in rows.columns])


def _text(column: Any) -> Any:
    """Values as text: times as ISO 8601, empty for none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        # "...:05.000Z" is "...:05Z" where nothing is lost
        text = pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ")
        column = pc.replace_substring_regex(text, r"\.0+Z$", "Z")
    try:
        return column.cast(pa.string()).fill_null("")
    except pa.ArrowException:
        raise InvalidTable(
            f"a column of {column.type} cannot be written as text: leave it out, or choose .parquet"
        ) from None
