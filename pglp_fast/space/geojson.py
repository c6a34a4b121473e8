"""Polygons from outside: GeoJSON, whatever has a ``__geo_interface__`` (Shapely, GeoPandas), and
plain rings of coordinates."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidPolicy

_HOW = (
    "give GeoJSON (a path, its text as a dict), a GeoDataFrame, Shapely polygons, or rings of "
    "coordinates (n, 2)"
)


class Region(NamedTuple):
    """Sides (m, 4) of each polygon that a region is made of, in the file's own coordinates; and
    what the file says of the region."""

    parts: list[NDArray[np.float64]]
    facts: Mapping[str, Any]


def read_regions(polygons: Any) -> list[Region]:
    """The regions that were given, one for each feature, geometry or ring."""
    if isinstance(polygons, str | os.PathLike):
        polygons = _read(Path(polygons))
    polygons = _in_degrees(polygons)
    given = getattr(polygons, "__geo_interface__", polygons)
    if isinstance(given, Mapping):
        kind = given.get("type")
        if kind == "FeatureCollection":
            given = given.get("features")
        elif kind == "GeometryCollection":
            given = given.get("geometries")
        else:
            given = [given]
    elif _is_ring(given):
        given = [given]
    out = []
    for k, entry in enumerate(check.listed(given, "polygons", InvalidPolicy)):
        entry = getattr(entry, "__geo_interface__", entry)
        facts: Mapping[str, Any] = {}
        if isinstance(entry, Mapping) and entry.get("type") == "Feature":
            facts = entry.get("properties") or {}
            entry = entry.get("geometry")
        out.append(Region(_parts(entry, f"region {k}"), facts))
    if not out:
        raise InvalidPolicy(f"polygons is empty: {_HOW}")
    return out


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        why = getattr(problem, "strerror", None) or "it is not JSON"
        raise InvalidPolicy(f"{path} cannot be read as GeoJSON ({why})") from None


def _in_degrees(polygons: Any) -> Any:
    """A GeoDataFrame or GeoSeries in longitude and latitude, whatever projection it came in."""
    if getattr(polygons, "crs", None) is None or not hasattr(polygons, "to_crs"):
        return polygons
    return polygons.to_crs(4326)


def _is_ring(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2


def _parts(geometry: Any, name: str) -> list[NDArray[np.float64]]:
    """The polygons of one geometry; none for one that is empty."""
    if geometry is None:
        return []
    if not isinstance(geometry, Mapping):
        return [_sides([geometry], name)]
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind == "Polygon":
        polygons: Iterable[Any] = [coordinates]
    elif kind == "MultiPolygon":
        polygons = check.listed(coordinates, f"coordinates of {name}", InvalidPolicy)
    elif kind == "GeometryCollection":
        inner = check.listed(geometry.get("geometries"), f"geometries of {name}", InvalidPolicy)
        return [part for one in inner for part in _parts(one, name)]
    else:
        raise InvalidPolicy(
            f"{name} is a {check.brief(kind)}: a region is a Polygon or a MultiPolygon; {_HOW}"
        )
    rings = [check.listed(p, f"coordinates of {name}", InvalidPolicy) for p in polygons]
    return [_sides(each, name) for each in rings if each]


def _sides(rings: list[Any], name: str) -> NDArray[np.float64]:
    """Both ends of every side of the rings; a ring that does not end where it began is closed."""
    out = []
    for ring in rings:
        corners = check.floats(check.listed(ring, name, InvalidPolicy), name, InvalidPolicy)
        if corners.ndim != 2 or corners.shape[1] not in (2, 3, 4) or len(corners) < 3:
            raise InvalidPolicy(
                f"a ring of {name} has shape {corners.shape}: it must be three corners or more, "
                f"each (x, y) or (longitude, latitude); {_HOW}"
            )
        corners = corners[:, :2]  # heights do not matter
        bad = np.flatnonzero(~np.isfinite(corners).all(axis=1))
        if bad.size:
            raise InvalidPolicy(
                f"corner {bad[0]} of {name} is {corners[bad[0]].tolist()}: it must be finite"
            )
        out.append(np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1))
    return np.concatenate(out)
