"""GeoJSON, GeoPackage and their kin, read by GDAL (the ``geo`` extra) in batches of rows."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pglp_fast._util.packages import Later
from pglp_fast.errors import InvalidTable

from .arrow import match_columns
from .fix_batches import RawBatch

pa, pyogrio = Later("pyarrow"), Later("pyogrio", "geo")
GEO_ENDS = (".geojson", ".gpkg", ".fgb")
_POINTS = ("Point",)


class GeoTable:
    """The rows of the first layer of a file.

    Attributes
    ----------
    columns, schema : names and types of its columns, the points among them as WKB
    at : number of the column for each role
    """

    kind, delimiter = "geo", ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, Any] | None,
        *,
        every_column: bool,
        advance: Callable[[int], None] = lambda n: None,
    ):
        self.name, self.every_column = os.path.basename(path), every_column
        self._advance, self._size = advance, os.path.getsize(path)
        self._opened = pyogrio.raw.open_arrow(os.fspath(path), use_pyarrow=True)
        try:
            facts, self._reader = self._opened.__enter__()
        except (pyogrio.errors.DataSourceError, OSError, RuntimeError) as error:
            said = " ".join(str(error).split())
            raise InvalidTable(f"{self.name} cannot be read: {said}") from None
        if facts["geometry_type"] not in _POINTS:
            self.close()
            raise InvalidTable(
                f"{self.name} must hold points, one for each fix, got {facts['geometry_type']}"
            )
        if facts["crs"] not in (None, "EPSG:4326", "OGC:CRS84"):
            self.close()
            raise InvalidTable(
                f"{self.name}: its points are in {facts['crs'][:60]}, not in degrees: bring them "
                "to EPSG:4326 (geopandas: .to_crs(4326))"
            )
        self.schema = self._reader.schema.remove_metadata()
        self.columns = list(self.schema.names)
        points = facts["geometry_name"] or "wkb_geometry"
        if points in self.columns and "geometry" not in self.columns:
            self.columns[self.columns.index(points)] = "geometry"
            fields = [f.with_name(n) for f, n in zip(self.schema, self.columns, strict=True)]
            self.schema = pa.schema(fields)
        try:
            self.at = match_columns(self.columns, columns, self.name)
        except InvalidTable:
            self.close()
            raise

    def batches(self, rows: int) -> Iterator[RawBatch]:
        """At most ``rows`` rows at a time."""
        first = 0
        for batch in self._reader:
            whole = pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
            columns = {role: whole.column(k) for role, k in self.at.items()}
            yield from RawBatch(whole, columns, first).parts(rows)
            first += len(whole)
        self._advance(self._size)

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
