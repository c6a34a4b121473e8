"""Locations: a finite set of sites on an integer lattice with a scale in km (spec section 1)."""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import nearest as kd
from ._kernels.hull import MAX_SPAN
from .errors import InvalidLocation
from .projection import KM_PER_DEGREE, Equirectangular


class Locations(ABC):
    """What the rest of the package needs of a map: lattice coordinates, the scale, and who is nearest.

    Attributes
    ----------
    size : number of locations, numbered 0..size-1
    scale : (dx, dy), km per lattice unit
    projection : how km relate to latitude and longitude, or None
    """

    size: int
    scale: tuple[float, float]
    projection: Equirectangular | None

    @property
    @abstractmethod
    def lattice(self) -> NDArray[np.int32]:
        """(size, 2) integer coordinates (col, row)."""

    @property
    @abstractmethod
    def offset_km(self) -> tuple[float, float]:
        """Where the lattice's origin lies, in km, in the frame of ``xy``."""

    @property
    def stretch(self) -> float:
        """(dy/dx)^2: distances squared are dx^2 (col^2 + stretch row^2). Exactly 1 for square cells."""
        return (self.scale[1] / self.scale[0]) ** 2

    def same_map(self, other: "Locations") -> bool:
        """Whether location i is the same place on both: the same lattice and scale."""
        if self is other:
            return True
        if self.size != other.size or self.scale != other.scale:
            return False
        if isinstance(self, Grid) and isinstance(other, Grid):
            return self.cols == other.cols
        return bool(np.array_equal(self.lattice, other.lattice))

    def _xy(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.lattice[cells] * np.asarray(self.scale) + np.asarray(self.offset_km))

    def _to_lattice(self, xy_km: ArrayLike) -> NDArray[np.float64]:
        return np.asarray((check.points(xy_km, "xy_km") - np.asarray(self.offset_km)) / np.asarray(self.scale))

    def _projection(self) -> Equirectangular:
        if self.projection is None:
            raise InvalidLocation(
                "this map has no latitude and longitude: build it with origin=(lat, lon), from_bounds or from_latlon"
            )
        return self.projection

    def latlon(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Latitude and longitude of each location (a cell's middle): shape (n, 2)."""
        return self._projection().to_latlon(self._xy(check.cells(cells, self.size)))

    def distance(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Euclidean distance in km between a[i] and b[i]."""
        a, b = check.cells(a, self.size, "a"), check.cells(b, self.size, "b")
        if a.ndim and b.ndim and a.size != b.size and 1 not in (a.size, b.size):
            raise InvalidLocation(f"a and b must be equally long, got {a.size} and {b.size}")
        d = (self.lattice[a] - self.lattice[b]) * np.asarray(self.scale)
        return np.asarray(np.hypot(d[..., 0], d[..., 1]))

    @abstractmethod
    def nearest(self, xy_km: ArrayLike) -> check.Cells:
        """The location nearest to each point (Euclidean in km, ties to the lower index)."""


class Grid(Locations):
    """R rows x C columns of cells; cell ``row * C + col``, row 0 the southernmost.

    Parameters
    ----------
    rows, cols : size of the grid
    cell_km : side of a cell in km, or (dx, dy)
    origin : (lat, lon) of the south-west corner of cell 0, for ``locate`` and ``latlon``

    Notes
    -----
    ``xy`` is f(s) = (col dx, row dy): km from the *middle* of cell 0. Latitude and longitude follow the local
    equirectangular projection at the box's middle latitude.
    """

    def __init__(
        self, rows: int, cols: int, *, cell_km: float | tuple[float, float] = 1.0, origin: tuple[float, float] | None = None
    ):
        self.rows = check.whole(rows, "rows", 1)
        self.cols = check.whole(cols, "cols", 1)
        self.size = self.rows * self.cols
        if self.size > check.MAX_LOCATIONS or max(self.rows, self.cols) > MAX_SPAN:
            raise InvalidLocation(
                f"{self.rows} x {self.cols} cells are too many: at most {check.MAX_LOCATIONS} in all and {MAX_SPAN} a side"
            )
        dx, dy = cell_km if isinstance(cell_km, tuple | list | np.ndarray) and len(cell_km) == 2 else (cell_km, cell_km)
        self.scale = (check.positive(dx, "cell_km"), check.positive(dy, "cell_km"))
        if not 1e-4 <= self.scale[1] / self.scale[0] <= 1e4:
            raise InvalidLocation(f"cells of {self.scale[0]} x {self.scale[1]} km are too elongated: at most 1 to 10,000")
        self.projection = None
        if origin is not None:
            lat, lon = check.pair(origin, "origin")
            self.projection = Equirectangular(lat, lon, lat + self.rows * self.scale[1] / KM_PER_DEGREE / 2)

    @classmethod
    def from_bounds(cls, *, lat: tuple[float, float], lon: tuple[float, float], cell_km: float | tuple[float, float]) -> "Grid":
        """The smallest grid of such cells, from the south-west corner on, that covers a box of latitudes and longitudes."""
        (south, north), (west, east) = check.pair(lat, "lat"), check.pair(lon, "lon")
        if not (south < north and west < east):
            raise InvalidLocation(f"bounds must ascend: lat = ({south}, {north}), lon = ({west}, {east})")
        Equirectangular(north, east, 0.0)  # in range?
        box = Equirectangular(south, west, (south + north) / 2)
        dx, dy = cls(1, 1, cell_km=cell_km).scale
        width, height = box.to_km(north, east)
        # a box that is a whole number of cells wide keeps that number, whatever the last bit says
        cols, rows = (max(1, math.ceil(extent / step - 1e-9)) for extent, step in ((width, dx), (height, dy)))
        grid = cls(rows, cols, cell_km=(dx, dy))
        grid.projection = box
        return grid

    def to_dict(self) -> dict[str, Any]:
        """All there is to say about the grid in plain numbers, for JSON; ``Grid.from_dict`` gives the same grid back."""
        place = None if self.projection is None else [self.projection.lat0, self.projection.lon0, self.projection.mid_lat]
        return {"rows": self.rows, "cols": self.cols, "cell_km": list(self.scale), "projection": place}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Grid":
        """The grid that ``to_dict`` told of."""
        dx, dy = facts["cell_km"]
        grid = cls(facts["rows"], facts["cols"], cell_km=(dx, dy))
        if facts["projection"] is not None:
            grid.projection = Equirectangular(*facts["projection"])
        return grid

    def __repr__(self) -> str:
        dx, dy = self.scale
        return f"Grid({self.rows}, {self.cols}, cell_km={dx if dx == dy else (dx, dy)})"

    @cached_property
    def lattice(self) -> NDArray[np.int32]:
        out = np.empty((self.rows, self.cols, 2), np.int32)
        out[:, :, 0] = np.arange(self.cols)
        out[:, :, 1] = np.arange(self.rows)[:, None]
        return out.reshape(-1, 2)

    @property
    def offset_km(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def xy(self, cells: ArrayLike) -> NDArray[np.float64]:
        """f(s) = (col dx, row dy) in km: shape (n, 2), or (2,) for one cell."""
        return self._xy(check.cells(cells, self.size))

    def latlon(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Latitude and longitude of each cell's middle: shape (n, 2)."""
        middle = self._xy(check.cells(cells, self.size)) + np.asarray(self.scale) / 2
        return self._projection().to_latlon(middle)

    def locate(self, lat: ArrayLike, lon: ArrayLike) -> check.Cells:
        """The cell that holds each point, -1 outside (and for NaN).

        A cell holds its south and west side, not its north and east.
        """
        km = self._projection().to_km(lat, lon)
        with np.errstate(invalid="ignore"):
            col, row = np.floor(km[..., 0] / self.scale[0]), np.floor(km[..., 1] / self.scale[1])
            inside = (col >= 0) & (col < self.cols) & (row >= 0) & (row < self.rows)
            cell = np.where(inside, row * self.cols + col, -1.0)
        return np.asarray(cell.astype(check.CELL))

    def nearest(self, xy_km: ArrayLike) -> check.Cells:
        at = np.ceil(self._to_lattice(xy_km) - 0.5)  # halves down: the lower index
        col, row = np.clip(at[:, 0], 0, self.cols - 1), np.clip(at[:, 1], 0, self.rows - 1)
        return np.asarray((row * self.cols + col).astype(check.CELL))


class _Coordinates(np.ndarray):
    """All coordinates as an array; called with cells, those of the cells."""

    def __call__(self, cells: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self)[check.cells(cells, len(self))]


class Points(Locations):
    """Any finite set of locations (POIs, hexagon centres, road nodes), quantised to a lattice.

    Parameters
    ----------
    xy_km : (n, 2) coordinates in km
    resolution_km : the lattice's step, 1 m unless told. Two points on one site are an error that names them.
    """

    def __init__(self, xy_km: ArrayLike, *, resolution_km: float = 0.001):
        xy = check.points(xy_km, "xy_km")
        step = check.positive(resolution_km, "resolution_km")
        if len(xy) == 0:
            raise InvalidLocation("xy_km is empty: a map needs at least one location")
        if len(xy) > check.MAX_LOCATIONS:
            raise InvalidLocation(f"{len(xy)} locations are too many: at most {check.MAX_LOCATIONS}")
        low = xy.min(axis=0)
        sites = np.rint((xy - low) / step)
        if not (sites.max() <= MAX_SPAN):
            raise InvalidLocation(
                f"the points span {sites.max():.0f} steps of resolution_km = {step}, exact arithmetic takes {MAX_SPAN}: "
                "use a coarser resolution_km"
            )
        self.size = len(xy)
        self.scale = (step, step)
        self.projection = None
        self._offset = (float(low[0]), float(low[1]))
        self._lattice: NDArray[np.int32] = sites.astype(np.int32)
        keys = sites[:, 0].astype(np.int64) * (MAX_SPAN + 1) + sites[:, 1].astype(np.int64)
        order = np.argsort(keys, kind="stable")
        twin = np.flatnonzero(np.diff(keys[order]) == 0)
        if twin.size:
            i, j = order[twin[0]], order[twin[0] + 1]
            raise InvalidLocation(
                f"points {i} and {j} ({xy[i].tolist()} and {xy[j].tolist()} km) fall on one lattice site: "
                "merge them or use a finer resolution_km"
            )

    @classmethod
    def from_latlon(cls, lat: ArrayLike, lon: ArrayLike, *, resolution_km: float = 0.001) -> "Points":
        """Points from latitudes and longitudes, projected at the middle latitude of their box."""
        lat, lon = np.asarray(lat, np.float64).reshape(-1), np.asarray(lon, np.float64).reshape(-1)
        if lat.shape != lon.shape or lat.size == 0:
            raise InvalidLocation(f"lat and lon must be equally long and not empty, got {lat.size} and {lon.size}")
        projection = Equirectangular(float(lat.min()), float(lon.min()), float(lat.min() + lat.max()) / 2)
        out = cls(projection.to_km(lat, lon), resolution_km=resolution_km)
        out.projection = projection
        return out

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

    def nearest(self, xy_km: ArrayLike) -> check.Cells:
        at = self._to_lattice(xy_km)
        out = np.empty(len(at), check.CELL)
        kd.nearest_sites(*self._tree, self.stretch, at, out)
        return out
