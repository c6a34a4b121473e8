"""Latitude and longitude to kilometres, near one place."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidLocation

EARTH_RADIUS_KM = 6371.0088
MOST_LON = 360.0  # degrees: some count from -180 to 180, some from 0 to 360
KM_PER_DEGREE = math.radians(1.0) * EARTH_RADIUS_KM


def east_of(lon: ArrayLike, west: float) -> NDArray[np.float64]:
    """Longitudes as they are counted from a west on, west..west + 360; those that are none, beyond
    360 degrees, as they are."""
    east = check.floats(lon, "lon", InvalidLocation)
    with np.errstate(invalid="ignore"):
        turned = (np.abs(east) <= MOST_LON) & ~((east >= west) & (east < west + 360))
        if not turned.any():
            return east
        return np.where(turned, east - 360 * np.floor((east - west) / 360), east)


@dataclass(frozen=True)
class Equirectangular:
    """x = (lon - lon0) cos(mid_lat), y = lat - lat0, in km from (lat0, lon0)."""

    lat0: float
    lon0: float
    mid_lat: float

    def __post_init__(self) -> None:
        for name, value, limit in (
            ("latitude", self.lat0, 90.0),
            ("longitude", self.lon0, 180.0),
            ("latitude", self.mid_lat, 89.9),
        ):
            if not abs(check.real(value, name, InvalidLocation)) <= limit:
                raise InvalidLocation(f"{name} {value} is not in -{limit}..{limit} degrees")

    @property
    def km_per_lon_degree(self) -> float:
        return KM_PER_DEGREE * math.cos(math.radians(self.mid_lat))

    def to_km(self, lat: ArrayLike, lon: ArrayLike) -> NDArray[np.float64]:
        """(..., 2) km; NaN and infinities stay what they are."""
        try:
            lat, lon = np.broadcast_arrays(
                check.floats(lat, "lat", InvalidLocation), check.floats(lon, "lon", InvalidLocation)
            )
        except ValueError:  # an InvalidLocation is one too
            raise InvalidLocation(
                "lat and lon must be numbers, equally long (or one of them a single number)"
            ) from None
        with np.errstate(over="ignore"):
            x, y = (lon - self.lon0) * self.km_per_lon_degree, (lat - self.lat0) * KM_PER_DEGREE
        return np.stack([x, y], axis=-1)

    def to_latlon(self, xy_km: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., 2) degrees; longitudes beyond 180 go on from -180."""
        lat = self.lat0 + xy_km[..., 1] / KM_PER_DEGREE
        lon = self.lon0 + xy_km[..., 0] / self.km_per_lon_degree
        return np.stack([lat, np.where(lon > 180 + 1e-9, lon - 360, lon)], axis=-1)
