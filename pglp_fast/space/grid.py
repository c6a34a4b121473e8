"""A grid of cells."""

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.geometry.hull import MAX_SPAN
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidLocation

from .locations import Locations
from .projection import KM_PER_DEGREE, Equirectangular, east_of


class Grid(Locations):
    """R rows x C columns of cells; cell ``row * C + col``, row 0 the southernmost.

    Parameters
    ----------
    rows, cols : size of the grid
    cell_km : side of a cell in km, or (dx, dy); 1e-6 to 1e6
    origin : (lat, lon) of the south-west corner of cell 0, for ``locate`` and ``latlon``

    Notes
    -----
    ``xy`` is f(s) = (col dx, row dy): km from the *middle* of cell 0. Latitude and longitude follow
    the local equirectangular projection at the box's middle latitude."""

    def __init__(
        self,
        rows: int,
        cols: int,
        *,
        cell_km: float | tuple[float, float] = 1.0,
        origin: tuple[float, float] | None = None,
    ):
        self.rows = check.whole(rows, "rows", 1)
        self.cols = check.whole(cols, "cols", 1)
        self.size = self.rows * self.cols
        if self.size > check.MAX_LOCATIONS or max(self.rows, self.cols) > MAX_SPAN:
            raise InvalidLocation(
                f"{check.brief(self.rows)} x {check.brief(self.cols)} cells are too many: at most "
                f"{check.MAX_LOCATIONS} in all and {MAX_SPAN} a side"
            )
        listed = isinstance(cell_km, tuple | list) and len(cell_km) == 2
        two = listed or getattr(cell_km, "shape", ()) == (2,)
        dx, dy = check.listed(cell_km, "cell_km") if two else (cell_km, cell_km)
        self.scale = (check.length_km(dx, "cell_km"), check.length_km(dy, "cell_km"))
        if not 1e-4 <= self.scale[1] / self.scale[0] <= 1e4:
            raise InvalidLocation(
                f"cells of {self.scale[0]} x {self.scale[1]} km are too elongated: at most 1 to "
                "10,000"
            )
        self.projection = None
        if origin is not None:
            lat, lon = check.pair(origin, "origin")
            self.projection = Equirectangular(
                lat, lon, lat + self.rows * self.scale[1] / KM_PER_DEGREE / 2
            )

    @classmethod
    def from_bounds(
        cls,
        *,
        lat: tuple[float, float],
        lon: tuple[float, float],
        cell_km: float | tuple[float, float],
    ) -> "Grid":
        """The smallest grid of such cells, from the south-west corner on, that covers a box of
        latitudes and longitudes.

        A box across 180 degrees goes from a west that is larger than its east: lon=(179, -178)."""
        (south, north), (west, east) = check.pair(lat, "lat"), check.pair(lon, "lon")
        # a box across 180 degrees is narrow; others were meant the other way round
        if not (south < north and (west < east or west - east > 180)):
            raise InvalidLocation(
                f"bounds must ascend: lat = ({south}, {north}), lon = ({west}, {east})"
            )
        Equirectangular(north, east, 0.0)  # in range?
        east = east if west < east else east + 360
        box = Equirectangular(south, west, (south + north) / 2)
        dx, dy = cls(1, 1, cell_km=cell_km).scale
        width, height = box.to_km(north, east)
        # a box that is a whole number of cells wide keeps that number, whatever the last bit says
        cols, rows = (
            max(1, math.ceil(extent / step - 1e-9)) for extent, step in ((width, dx), (height, dy))
        )
        grid = cls(rows, cols, cell_km=(dx, dy))
        grid.projection = box
        return grid

    def to_dict(self) -> dict[str, Any]:
        """All there is to say about the grid in plain numbers, for JSON; ``Grid.from_dict``
        gives the same grid back."""
        place = (
            None
            if self.projection is None
            else [self.projection.lat0, self.projection.lon0, self.projection.mid_lat]
        )
        return {
            "rows": self.rows,
            "cols": self.cols,
            "cell_km": list(self.scale),
            "projection": place,
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Grid":
        """The grid that ``to_dict`` told of."""
        try:
            rows, cols, place = facts["rows"], facts["cols"], facts["projection"]
            dx, dy = check.pair(facts["cell_km"], "cell_km")
            three = [] if place is None else check.listed(place, "projection")
        except (LookupError, TypeError, ValueError):
            three = [None]
        if len(three) not in (0, 3):
            raise InvalidLocation(
                "this does not tell of a grid: it must have rows, cols, cell_km (two numbers) and "
                f"projection (three, or None) as Grid.to_dict says them, got {check.brief(facts)}"
            )
        grid = cls(rows, cols, cell_km=(dx, dy))
        grid.projection = Equirectangular(*three) if three else None
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

    def _same_lattice(self, other: Locations) -> bool:
        if isinstance(other, Grid):  # no need to lay out the lattice
            return (self.rows, self.cols) == (other.rows, other.cols)
        return super()._same_lattice(other)

    def xy(self, cells: ArrayLike) -> NDArray[np.float64]:
        """f(s) = (col dx, row dy) in km: shape (n, 2), or (2,) for one cell."""
        return self._xy(check.cells(cells, self.size))

    def centres_km(self) -> NDArray[np.float64]:
        """(size, 2) km of every cell's middle: from the south-west corner on a map that has
        latitude and longitude, else as ``xy``."""
        shift = 0.5 if self.projection is not None else 0.0
        return np.asarray((self.lattice + shift) * np.asarray(self.scale))

    def latlon(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Latitude and longitude of each cell's middle: shape (n, 2)."""
        middle = self._xy(check.cells(cells, self.size)) + np.asarray(self.scale) / 2
        return self._projection().to_latlon(middle)

    def locate(self, lat: ArrayLike, lon: ArrayLike) -> check.Cells:
        """The cell that holds each point, -1 outside (and for NaN).

        A cell holds its south and west side, not its north and east. Longitudes are -180..180 or
        0..360: 359.5 is where -0.5 is.
        """
        place = self._projection()
        km = place.to_km(lat, east_of(lon, place.lon0))
        with np.errstate(invalid="ignore"):
            col, row = np.floor(km[..., 0] / self.scale[0]), np.floor(km[..., 1] / self.scale[1])
            inside = (col >= 0) & (col < self.cols) & (row >= 0) & (row < self.rows)
            cell = np.where(inside, row * self.cols + col, -1.0)
        return np.asarray(cell.astype(check.CELL))

    def nearest(self, xy_km: ArrayLike) -> check.Cells:
        at = np.ceil(self._to_lattice(xy_km) - 0.5)  # halves down: the lower index
        col, row = np.clip(at[:, 0], 0, self.cols - 1), np.clip(at[:, 1], 0, self.rows - 1)
        return np.asarray((row * self.cols + col).astype(check.CELL))
