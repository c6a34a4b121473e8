"""Any finite set of locations, on a fine lattice."""

import os
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.geometry import kdtree as kd
from pglp_fast._kernels.geometry.hull import MAX_SPAN
from pglp_fast._util import validate as check
from pglp_fast._util.storage import read_arrays, write_arrays
from pglp_fast.errors import InvalidLocation

from .locations import Locations
from .map_files import pack_map, unpack_map
from .projection import Equirectangular

_KIND = "points"
_FARTHEST = 2.0**43  # steps: a coordinate in float64 is then off by a thousandth of a step at most


class _Coordinates(np.ndarray):
    """All coordinates as an array; called with cells, those of the cells."""

    def __call__(self, cells: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self)[check.cells(cells, len(self))]


class Points(Locations):
    """Any finite set of locations (POIs, hexagon centres, road nodes), quantised to a lattice.

    Parameters
    ----------
    xy_km : (n, 2) coordinates in km
    resolution_km : the lattice's step, 1 m unless told, 1e-6 to 1e6. Coordinates are within 2^43
        steps of (0, 0), so that float64 holds them exactly enough.
    twins : what two points on one lattice site are: "error", which names them, or "merge", one
        location

    Attributes
    ----------
    location_of : the location of each point that was given: 0, 1, ... unless twins were merged;
        locations are numbered in the order in which they first appear
    """

    def __init__(self, xy_km: ArrayLike, *, resolution_km: float = 0.001, twins: str = "error"):
        xy = check.points(xy_km, "xy_km")
        step = check.length_km(resolution_km, "resolution_km")
        check.choice(twins, "twins", ("error", "merge"))
        if len(xy) == 0:
            raise InvalidLocation("xy_km is empty: a map needs at least one location")
        if len(xy) > check.MAX_LOCATIONS:
            raise InvalidLocation(
                f"{len(xy)} locations are too many: at most {check.MAX_LOCATIONS}"
            )
        if np.abs(xy).max() / step > _FARTHEST:
            raise InvalidLocation(
                f"a coordinate of {np.abs(xy).max():g} km is more than 2^43 steps of "
                f"resolution_km = {step} from (0, 0): move the points nearer, or use a coarser "
                "resolution_km"
            )
        low = xy.min(axis=0)
        sites = np.rint((xy - low) / step)
        if not (sites.max() <= MAX_SPAN):
            raise InvalidLocation(
                f"the points span {sites.max():.0f} steps of resolution_km = {step}, exact "
                f"arithmetic takes {MAX_SPAN}: "
                "use a coarser resolution_km"
            )
        self.scale = (step, step)
        self.projection = None
        self._offset = (float(low[0]), float(low[1]))
        first, self.location_of = _merge_twins(sites.astype(np.int32))
        self.size = len(first)
        if self.size < len(xy) and twins == "error":
            j = int(np.flatnonzero(first[self.location_of] != np.arange(len(xy)))[0])
            i = first[self.location_of[j]]
            same = bool((xy[i] == xy[j]).all())
            raise InvalidLocation(
                f"points {i} and {j} ({xy[i].tolist()} and {xy[j].tolist()} km) "
                + (
                    "are the same place: merge them with twins='merge'"
                    if same
                    else "fall on one lattice site: merge them (twins='merge') or use a finer "
                    "resolution_km"
                )
            )
        self._lattice: NDArray[np.int32] = sites[first].astype(np.int32)

    @classmethod
    def from_latlon(
        cls,
        lat: ArrayLike,
        lon: ArrayLike,
        *,
        resolution_km: float = 0.001,
        twins: str = "error",
    ) -> "Points":
        """Points from latitudes and longitudes, projected at the middle latitude of their box.

        Points on both sides of 180 degrees are near each other, if that makes the box narrower.
        """
        lat = check.floats(lat, "lat", InvalidLocation).reshape(-1)
        lon = check.floats(lon, "lon", InvalidLocation).reshape(-1)
        if lat.shape != lon.shape or lat.size == 0:
            raise InvalidLocation(
                f"lat and lon must be equally long and not empty, got {lat.size} and {lon.size}"
            )
        Equirectangular(float(lat.max()), float(lon.max()), 0.0)  # in range?
        west = float(lon.min())
        Equirectangular(float(lat.min()), west, 0.0)
        across = np.where(lon < 0, lon + 360, lon)  # the box around 180 degrees
        if np.ptp(lon) > 180 and np.ptp(across) < np.ptp(lon):
            lon, west = across, float(across.min())
        projection = Equirectangular(float(lat.min()), west, float(lat.min() + lat.max()) / 2)
        out = cls(projection.to_km(lat, lon), resolution_km=resolution_km, twins=twins)
        out.projection = projection
        return out

    @classmethod
    def of_lattice(
        cls,
        lattice: NDArray[np.int32],
        step: float,
        offset_km: tuple[float, float],
        projection: Equirectangular | None,
    ) -> "Points":
        """For the package's own use: points as they were kept, to the last bit."""
        first, location_of = _merge_twins(lattice)
        if not len(lattice) or len(first) != len(lattice):
            raise InvalidLocation("points must be there, each on a lattice site of its own")
        out = cls.__new__(cls)
        out.size, out.scale, out.projection = len(lattice), (step, step), projection
        out._offset, out._lattice, out.location_of = offset_km, lattice, location_of
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the locations to one file, atomically: where they lie, to the last bit."""
        write_arrays(path, _KIND, *pack_map(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Points":
        """The locations that ``save`` wrote: the same map, and the same numbers."""
        found = unpack_map(os.fspath(path), *read_arrays(path, _KIND))
        assert isinstance(found, Points)
        return found

    def __repr__(self) -> str:
        return f"Points({self.size} locations, resolution_km={self.scale[0]})"

    @property
    def lattice(self) -> NDArray[np.int32]:
        return self._lattice

    @property
    def offset_km(self) -> tuple[float, float]:
        return self._offset

    @cached_property
    def xy(self) -> _Coordinates:
        """(size, 2) km; ``points.xy(cells)`` picks some, as on a Grid."""
        return self._xy(np.arange(self.size)).view(_Coordinates)

    @cached_property
    def _tree(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        sites, order = self._lattice.astype(np.int64), np.arange(self.size)
        boxes = np.empty((kd.tree_nodes(self.size), 4), np.int64)
        kd.build_tree(sites, self.stretch, order, boxes)
        return sites, order, boxes

    @cached_property
    def _middle_km(self) -> float:
        """East-west middle of all points."""
        return float(self._offset[0] + self._lattice[:, 0].max() * self.scale[0] / 2)

    def nearest(self, xy_km: ArrayLike) -> check.Cells:
        at = self._to_lattice(xy_km)
        out = np.empty(len(at), check.CELL)
        kd.nearest_sites(*self._tree, self.stretch, at, out)
        return out

    def locate(
        self, lat: ArrayLike, lon: ArrayLike, *, within_km: float | None = None
    ) -> check.Cells:
        """The location nearest to each latitude and longitude.

        -1 for NaN, and for what is further away than ``within_km``."""
        place = self._projection()
        degrees = check.floats(lon, "lon", InvalidLocation)
        with np.errstate(invalid="ignore"):  # the shorter way round to the middle of the map
            away = degrees - (place.lon0 + self._middle_km / place.km_per_lon_degree)
            turns = np.where(away < -180, 360.0, np.where(away > 180, -360.0, 0.0))
        km = place.to_km(lat, degrees + turns)
        flat = km.reshape(-1, 2)
        out = np.full(len(flat), -1, check.CELL)
        there = np.flatnonzero((np.abs(flat) <= check.MOST_KM_AWAY).all(axis=1))
        near = self.nearest(flat[there])
        if within_km is not None:
            apart = flat[there] - self._xy(near)
            far = np.hypot(apart[:, 0], apart[:, 1]) > check.positive(within_km, "within_km")
            near = np.where(far, np.int32(-1), near)
        out[there] = near
        return out.reshape(km.shape[:-1])[()]


def _merge_twins(sites: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(the first point of each distinct site, in order; the number of each point's site)."""
    keys = sites[:, 0].astype(np.int64) * (MAX_SPAN + 1) + sites[:, 1]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return first[order], rank[which.reshape(-1)]
