"""Latitude and longitude to kilometres, near one place."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidLocation

EARTH_RADIUS_KM = 6371.0088
KM_PER_DEGREE = math.radians(1.0) * EARTH_RADIUS_KM


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
            if not (math.isfinite(value) and abs(value) <= limit):
                raise InvalidLocation(f"{name} {value} is not in -{limit}..{limit} degrees")

    @property
    def km_per_lon_degree(self) -> float:
        return KM_PER_DEGREE * math.cos(math.radians(self.mid_lat))

    def to_km(self, lat: ArrayLike, lon: ArrayLike) -> NDArray[np.float64]:
        try:
            lat, lon = np.broadcast_arrays(np.asarray(lat, np.float64), np.asarray(lon, np.float64))
        except (TypeError, ValueError):
            raise InvalidLocation("lat and lon must be numbers, equally long (or one of them a single number)") from None
        return np.stack([(lon - self.lon0) * self.km_per_lon_degree, (lat - self.lat0) * KM_PER_DEGREE], axis=-1)

    def to_latlon(self, xy_km: NDArray[np.float64]) -> NDArray[np.float64]:
        lat = self.lat0 + xy_km[..., 1] / KM_PER_DEGREE
        return np.stack([lat, self.lon0 + xy_km[..., 0] / self.km_per_lon_degree], axis=-1)
