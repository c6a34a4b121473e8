"""Maps, policies and tables as GeoJSON, GeoParquet, GeoPackage or FlatGeobuf."""

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import replacing
from pglp_fast.errors import InvalidParameter, InvalidTable
from pglp_fast.io.geo_write import Shapes, geo_writer
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations

from .paths import refuse_existing, target_of

pa = Later("pyarrow")
_ROWS = 1 << 16
_RING = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) / 2


def write_geo(
    path: str | os.PathLike[str],
    what: Any,
    *,
    values: Mapping[str, ArrayLike] | None = None,
    edges: bool = False,
    prefix: str = "released_",
    overwrite: bool = False,
) -> Path:
    """Write a policy, a map or a table for programs that show maps.

    Parameters
    ----------
    path : ends in .geojson, .parquet (GeoParquet), .gpkg or .fgb (these two need the ``geo`` extra)
    what : PolicyGraph
            Each location (cells as squares, points as points) with its number, component and
            number of edges; with ``edges=True`` each edge as a line.
        Grid or Points
            Each location with its number.
        a table in memory (pandas, polars, Arrow)
            Each row as a point: the released place, where the table has one, else its own.
    values : of a policy or a map: further columns, one value for each location
    prefix : how columns of released places start
    overwrite : replace a file that is there

    Notes
    -----
    Coordinates are longitude and latitude (WGS 84). ``pf.regions(g, path, by="component")`` reads
    a policy of cliques back. Who is given a table gets all of its columns: leave the true places
    out first.
    """
    out = target_of(Path(path))
    refuse_existing(out, overwrite)
    if isinstance(what, PolicyGraph) and edges:
        if values is not None:
            raise InvalidParameter("values are of locations: leave out edges=True, or them")
        table, shapes = _edges(what)
    elif isinstance(what, PolicyGraph):
        about: dict[str, ArrayLike] = {"component": what.components, "edges": what.degrees()}
        table, shapes = _locations(what.locations, {**about, **(values or {})})
    elif isinstance(what, Locations):
        table, shapes = _locations(what, values or {})
    else:
        if values is not None or edges:
            raise InvalidParameter("values and edges are for policies and maps, not for tables")
        table, shapes = _rows(what, prefix)
    with (
        replacing(out) as beside,
        closing(geo_writer(beside, out.name, table.schema, shapes.kind)) as writer,
    ):
        for first in range(0, max(1, len(table)), _ROWS):
            part = Shapes(shapes.kind, shapes.corners[first : first + _ROWS])
            writer.write(_batch(table.slice(first, _ROWS)), part)
    return out


def _batch(table: Any) -> Any:
    """A part of a table as one record batch."""
    columns = [column.combine_chunks() for column in table.columns]
    arrays = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _degrees(locations: Locations) -> Any:
    if locations.projection is None:
        raise InvalidParameter(
            "this map has no latitude and longitude: build it with origin=(lat, lon), from_bounds "
            "or from_latlon"
        )
    return locations.projection


def _locations(locations: Locations, values: Mapping[str, ArrayLike]) -> tuple[Any, Shapes]:
    """All locations with one value each of the columns."""
    columns: dict[str, Any] = {"cell": np.arange(locations.size, dtype=np.int32)}
    for name, given in values.items():
        array = np.asarray(given).reshape(-1)
        if len(array) != locations.size or name in columns:
            raise InvalidParameter(
                f"values[{name!r}] has {len(array)} values: give one for each of the "
                f"{locations.size} locations, under a name that is free"
            )
        columns[name] = array
    projection = _degrees(locations)
    centres = locations.centres_km()
    if isinstance(locations, Grid):
        corners = centres[:, None] + _RING * np.asarray(locations.scale)
        shapes = Shapes("Polygon", projection.to_latlon(corners)[..., ::-1])
    else:
        shapes = Shapes("Point", projection.to_latlon(centres)[:, None, ::-1])
    return pa.table({name: pa.array(column) for name, column in columns.items()}), shapes


def _edges(graph: PolicyGraph) -> tuple[Any, Shapes]:
    """Each edge as a line from one location to the other."""
    pairs = graph.edges()
    projection = _degrees(graph.locations)
    ends = projection.to_latlon(graph.locations.centres_km()[pairs])[..., ::-1]
    columns = {"from": pairs[:, 0], "to": pairs[:, 1]}
    if graph.weights is not None:
        above, below = graph.edge_weights(pairs).T
        columns["weight"] = above / below
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    return table, Shapes("LineString", ends)


def _rows(frame: Any, prefix: str) -> tuple[Any, Shapes]:
    """The rows of a table without the columns that their points are made of."""
    if hasattr(frame, "iloc"):
        table = pa.Table.from_pandas(frame, preserve_index=False)
    elif isinstance(frame, pa.Table) or hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
    else:
        raise InvalidTable(
            f"give a policy, a map or a table (pandas, polars, Arrow), not "
            f"{type(frame).__name__}; files are converted by pglp-fast convert"
        )
    names = next(
        (
            pair
            for pair in ((f"{prefix}lat", f"{prefix}lon"), ("lat", "lon"))
            if set(pair) <= set(table.column_names)
        ),
        None,
    )
    if names is None:
        raise InvalidTable(
            f"the table has neither {prefix}lat and {prefix}lon nor lat and lon, among "
            f"{', '.join(map(repr, table.column_names))}"
        )
    lat, lon = (_floats(table.column(name), name) for name in names)
    return table.drop_columns(list(names)), Shapes.points(lat, lon)


def _floats(column: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    except pa.ArrowException as error:
        raise InvalidTable(f"column {name!r} must be numbers: {error}") from None
