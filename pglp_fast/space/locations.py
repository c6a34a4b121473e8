"""What every map is: sites on an integer lattice, with a scale in km."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidLocation, InvalidParameter, PGLPError

from .projection import Equirectangular


class Locations(ABC):
    """A finite set of locations: f(s) = (col dx, row dy) km, plus an offset.

    Attributes
    ----------
    size : int
        Number of locations, numbered 0..size-1.
    scale : tuple of float
        (dx, dy), km per lattice unit.
    projection : Equirectangular or None
        How km relate to latitude and longitude.
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
        """(dy/dx)^2: distances squared are dx^2 (col^2 + stretch row^2).

        Exactly 1 for square cells.
        """
        return (self.scale[1] / self.scale[0]) ** 2

    def same_map(self, other: "Locations") -> bool:
        """Whether location i is the same place on both: the same lattice, scale and position.

        Latitude, longitude and offset say where a map lies. Two maps without latitude and longitude
        lie in one frame of km. A map that has them is never the same as one that has not, though
        the shapes be equal: nobody has said where the latter lies."""
        return self is other or not self.difference(other)

    def difference(self, other: "Locations") -> str:
        """What tells two maps apart, in words; empty where nothing does."""
        if self.size != other.size:
            return f"{self.size} and {other.size} locations"
        if self.scale != other.scale:
            return f"{self.scale} and {other.scale} km a lattice unit"
        if self.projection != other.projection:
            return f"one lies {_position(self)}, the other {_position(other)}"
        if self.offset_km != other.offset_km:
            return f"they start at {self.offset_km} and {other.offset_km} km"
        return "" if self._same_lattice(other) else "their locations lie or are numbered otherwise"

    def _same_lattice(self, other: "Locations") -> bool:
        return bool(np.array_equal(self.lattice, other.lattice))

    def _xy(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.lattice[cells] * np.asarray(self.scale) + np.asarray(self.offset_km))

    def _to_lattice(self, xy_km: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(
            (check.points(xy_km, "xy_km") - np.asarray(self.offset_km)) / np.asarray(self.scale)
        )

    def _projection(self) -> Equirectangular:
        if self.projection is None:
            raise InvalidLocation(
                "this map has no latitude and longitude: build it with origin=(lat, lon), "
                "from_bounds or from_latlon"
            )
        return self.projection

    def centres_km(self) -> NDArray[np.float64]:
        """(size, 2) km of every location in the frame of ``projection``, or of ``xy`` where there
        is none."""
        return self._xy(np.arange(self.size))

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


def _position(locations: Locations) -> str:
    p = locations.projection
    if p is None:
        return "at no latitude and longitude (no origin was given)"
    return f"at latitude {p.lat0:.6g}, longitude {p.lon0:.6g} (projected at {p.mid_lat:.6g})"


def require_locations(value: Any) -> Locations:
    """Refuse what is not a map."""
    what, how = "locations must be a Grid or Points", "make one with pf.Grid"
    return check.instance(value, Locations, what, how)  # type: ignore[type-abstract]


def require_same_map(
    a: Locations, b: Locations, what: str, error: type[PGLPError] = InvalidParameter
) -> None:
    """Refuse to combine two things over different maps; ``what`` names both."""
    if not a.same_map(b):
        raise error(f"{what} are over different maps: {a.difference(b)}")


def require_on_map(traces: Any, locations: Locations, error: type[PGLPError]) -> None:
    """Refuse traces that know their map (``Traces`` do) and are of another one."""
    own = getattr(traces, "locations", None)
    if isinstance(own, Locations):
        require_same_map(own, locations, "the traces and what they are given to", error)
