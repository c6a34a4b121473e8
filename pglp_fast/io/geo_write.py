"""Points, lines and polygons with their columns, written as GeoJSON or GeoParquet without further
packages, or as GeoPackage and FlatGeobuf by GDAL (the ``geo`` extra)."""

import datetime
import json
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidParameter

pa, pc = Later("pyarrow"), Later("pyarrow.compute")
parquet, pyogrio = Later("pyarrow.parquet"), Later("pyogrio", "geo")

GEOPARQUET_ENDS = (".parquet", ".pq", ".geoparquet")
GEO_OUTPUTS = (".geojson", *GEOPARQUET_ENDS, ".gpkg", ".fgb")
GEOMETRY = "geometry"
_WKB = {"Point": 1, "LineString": 2, "Polygon": 3}


class Shapes(NamedTuple):
    """Shapes of one kind, equally many corners each.

    Attributes
    ----------
    kind : "Point" (one corner), "LineString", or "Polygon" (one ring, closed)
    corners : (n, k, 2) longitude and latitude; NaN for no shape
    """

    kind: str
    corners: NDArray[np.float64]

    @classmethod
    def points(cls, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> "Shapes":
        """A point for each row."""
        return cls("Point", np.stack([lon, lat], axis=-1)[:, None])

    def _there(self) -> NDArray[np.bool_]:
        """Which shapes there are."""
        return np.asarray(np.isfinite(self.corners).all(axis=(1, 2)))

    def geojson(self) -> list[dict[str, Any] | None]:
        """One geometry for each shape."""
        # seven digits are a centimetre
        corners = np.round(self.corners, 7).tolist()
        return [
            {"type": self.kind, "coordinates": self._nested(c)} if there else None
            for c, there in zip(corners, self._there(), strict=True)
        ]

    def _nested(self, corners: list[list[float]]) -> Any:
        """As deep in lists as GeoJSON wants it."""
        if self.kind == "Point":
            return corners[0]
        return [corners] if self.kind == "Polygon" else corners

    def wkb(self) -> Any:
        """A pyarrow array of well-known binary."""
        n, k, _ = self.corners.shape
        counts = {"Point": 0, "LineString": 1, "Polygon": 2}[self.kind]
        row = np.dtype(
            [("order", "u1"), ("kind", "<u4"), ("counts", "<u4", counts), ("xy", "<f8", (k, 2))]
        )
        packed = np.zeros(n, row)
        packed["order"], packed["kind"] = 1, _WKB[self.kind]
        packed["counts"] = np.array([1, k][2 - counts :], np.uint32)
        packed["xy"] = self.corners
        kind, octets = pa.binary(row.itemsize), pa.py_buffer(packed.tobytes())
        whole = pa.FixedSizeBinaryArray.from_buffers(kind, n, [None, octets]).cast(pa.binary())
        return pc.if_else(pa.array(self._there()), whole, pa.scalar(None, pa.binary()))


class GeoWriter(Protocol):
    """Where rows with a shape each go."""

    def write(self, rows: Any, shapes: Shapes) -> None: ...

    def close(self) -> None: ...


def geo_writer(path: Path, name: str, schema: Any, kind: str) -> GeoWriter:
    """A writer to ``path`` in the format that ``name`` ends in, for rows of a pyarrow schema."""
    if GEOMETRY in schema.names:
        raise InvalidParameter(f"a column {GEOMETRY!r} is there already: rename it")
    end = name.lower()
    if end.endswith(".geojson"):
        return _GeoJSON(path)
    if end.endswith(GEOPARQUET_ENDS):
        return _GeoParquet(path, schema, kind)
    if end.endswith((".gpkg", ".fgb")):
        return _Gdal(path, schema, kind, "GPKG" if end.endswith(".gpkg") else "FlatGeobuf")
    raise InvalidParameter(f"{name}: name it {', '.join(GEO_OUTPUTS)}")


class _GeoJSON:
    """RFC 7946, a feature on each line."""

    def __init__(self, path: Path):
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
        self._file.write('{"type": "FeatureCollection", "features": [')
        self._between = "\n"

    def write(self, rows: Any, shapes: Shapes) -> None:
        for facts, shape in zip(rows.to_pylist(), shapes.geojson(), strict=True):
            plain = {name: _plain(value) for name, value in facts.items()}
            feature = {"type": "Feature", "geometry": shape, "properties": plain}
            self._file.write(self._between + json.dumps(feature, allow_nan=False))
            self._between = ",\n"

    def close(self) -> None:
        self._file.write("\n]}\n")
        self._file.close()


def _plain(value: Any) -> Any:
    """A value that JSON has: times as ISO 8601, NaN as null."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class _GeoParquet:
    """GeoParquet 1.1: well-known binary, in longitude and latitude (OGC:CRS84)."""

    def __init__(self, path: Path, schema: Any, kind: str):
        about = {"encoding": "WKB", "geometry_types": [kind]}
        geo = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: about}}
        noted = {**(schema.metadata or {}), b"geo": json.dumps(geo).encode()}
        fields = [*schema, pa.field(GEOMETRY, pa.binary())]
        self._schema = pa.schema(fields, metadata=noted)
        self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, rows: Any, shapes: Shapes) -> None:
        columns = [*rows.columns, shapes.wkb()]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class _Gdal:
    """What GDAL writes takes all rows at once."""

    def __init__(self, path: Path, schema: Any, kind: str, driver: str):
        pyogrio.raw.write_arrow  # noqa: B018 - an error before the work, where it is missing
        fields = [*schema.remove_metadata(), pa.field(GEOMETRY, pa.binary())]
        self._how = {"geometry_type": kind, "driver": driver, "crs": "EPSG:4326"}
        self._path, self._schema, self._parts = path, pa.schema(fields), list[Any]()

    def write(self, rows: Any, shapes: Shapes) -> None:
        columns = [*rows.columns, shapes.wkb()]
        self._parts.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        table = pa.Table.from_batches(self._parts, schema=self._schema)
        with tempfile.TemporaryDirectory(dir=self._path.parent) as folder:
            made = Path(folder, "made." + self._path.suffix.lstrip("."))  # GDAL replaces the file
            pyogrio.raw.write_arrow(table, made, geometry_name=GEOMETRY, layer="rows", **self._how)
            shutil.copyfile(made, self._path)
