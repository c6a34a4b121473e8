"""Regions on the map as a policy: within a district nobody is told apart from anybody."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry.raster import points_inside
from pglp_fast._util.arrays import starts_of
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.geojson import Region, read_regions
from pglp_fast.space.locations import Locations, require_locations

from .graph import PolicyGraph, from_labels


def regions(locations: Locations, polygons: Any, *, by: str | None = None) -> PolicyGraph:
    """Each region one clique: a release tells the district, and hides the place within it.

    Parameters
    ----------
    locations : the map; a location is in a region if it (a cell's middle) lies inside
    polygons : GeoJSON (a path, or its content as a dict), a GeoDataFrame or GeoSeries, Shapely
        polygons, or rings (n, 2). Coordinates are (longitude, latitude) on a map that has latitude
        and longitude, and km in the frame of ``xy`` on one that has not. A GeoDataFrame is
        converted from its own coordinate system. Holes and parts are known.
    by : a property of GeoJSON features or a column of the frame: features that agree in it make one
        region

    Notes
    -----
    A location in no region has no edges: it may be disclosed (``describe`` counts them). A point
    on a common side belongs to the region to the east or north of it. Regions that overlap share
    locations: the policy has the edges of both. ``locate`` in each polygon is by the even-odd rule
    in float64, after the map's own projection; no package is needed for it.
    """
    require_locations(locations)
    given = read_regions(polygons)
    inside = _finder(locations, polygons)
    none = np.empty(0, np.int64)
    members = [
        np.unique(np.concatenate([none, *(inside(part) for part in region.parts)]))
        for region in given
    ]
    if by is not None:
        members = _merged(given, members, by)
    if not any(len(found) for found in members):
        raise InvalidPolicy(
            f"no location of the map lies in any of the {len(members)} regions: coordinates must "
            f"be {_frame(locations)}, in this order"
        )
    return _joined(locations, members)


def _frame(locations: Locations) -> str:
    if locations.projection is None:
        return "(x, y) in km as in locations.xy: the map has no latitude and longitude"
    return "(longitude, latitude)"


def _finder(
    locations: Locations, polygons: Any
) -> Callable[[NDArray[np.float64]], NDArray[np.int64]]:
    """Which locations lie in a polygon, given by its sides."""
    projection = locations.projection
    if projection is None and getattr(polygons, "crs", None) is not None:
        raise InvalidPolicy(
            "the polygons have a coordinate system, the map has no latitude and longitude: build "
            "the map with origin=(lat, lon), from_bounds or from_latlon"
        )
    centres = locations.centres_km()
    order = np.lexsort((centres[:, 0], centres[:, 1]))
    rows, counts = np.unique(centres[order, 1], return_counts=True)
    starts, xs = starts_of(counts), np.ascontiguousarray(centres[order, 0])

    def inside(sides: NDArray[np.float64]) -> NDArray[np.int64]:
        if projection is not None:
            ends = projection.to_km(sides[:, 1::2], sides[:, ::2])
            sides = ends.reshape(-1, 4)
        return np.asarray(order[points_inside(sides, rows, starts, xs)])

    return inside


def _merged(
    given: list[Region], members: list[NDArray[np.int64]], by: str
) -> list[NDArray[np.int64]]:
    """Members of the regions that agree in a property, together."""
    together: dict[str, list[NDArray[np.int64]]] = {}
    for k, (region, found) in enumerate(zip(given, members, strict=True)):
        if by not in region.facts:
            known = ", ".join(map(str, region.facts)) or "none"
            raise InvalidPolicy(f"region {k} has no property {by!r}: it has {known}")
        together.setdefault(repr(region.facts[by]), []).append(found)
    return [np.unique(np.concatenate(found)) for found in together.values()]


def _joined(locations: Locations, members: list[NDArray[np.int64]]) -> PolicyGraph:
    """The cliques of all regions: labels for regions that are disjoint, in as many layers as it
    takes where they overlap."""
    layers: list[NDArray[np.int32]] = []
    for k, found in enumerate(members):
        free = next((labels for labels in layers if (labels[found] < 0).all()), None)
        if free is None:
            free = np.full(locations.size, -1, np.int32)
            layers.append(free)
        free[found] = k
    policy = from_labels(locations, layers[0])
    for labels in layers[1:]:
        policy = policy | from_labels(locations, labels)
    return policy
