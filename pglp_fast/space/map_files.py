"""Maps as arrays and plain facts, to be kept in a file and read back to the last bit."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry.hull import MAX_SPAN
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidState, PGLPError

from .locations import Locations
from .projection import Equirectangular

Kept = tuple[dict[str, NDArray[Any]], dict[str, Any]]


def pack_map(locations: Locations) -> Kept:
    """(arrays, facts) of a map."""
    from .grid import Grid

    if isinstance(locations, Grid):
        return {}, {"grid": locations.to_dict()}
    offset, projection = place(locations)
    facts = {
        "resolution_km": locations.scale[0],
        "offset_km": offset,
        "projection": projection,
    }
    return {"lattice": locations.lattice}, {"points": facts}


def unpack_map(name: str, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> Locations:
    """The map of (arrays, facts); ``name`` is the file that they come from."""
    from .grid import Grid

    try:
        if facts.get("grid") is not None:
            return Grid.from_dict(facts["grid"])
        return _points(arrays["lattice"], facts["points"])
    except (PGLPError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise InvalidState(
            f"{name} does not hold a map ({problem}): restore it from a copy"
        ) from None


def _points(lattice: NDArray[Any], facts: dict[str, Any]) -> Locations:
    from .points import Points

    if lattice.dtype != np.int32 or lattice.ndim != 2 or lattice.shape[1] != 2:
        raise ValueError("the lattice must be pairs of 32-bit integers")
    if lattice.size and (lattice.min() < 0 or lattice.max() > MAX_SPAN):
        raise ValueError(f"lattice sites must be in 0..{MAX_SPAN}")
    projection = facts["projection"]
    return Points.of_lattice(
        lattice,
        check.length_km(facts["resolution_km"], "resolution_km"),
        check.pair(facts["offset_km"], "offset_km"),
        None if projection is None else Equirectangular(*projection),
    )


def map_digest(locations: Locations) -> str:
    """Tells the shapes of maps apart."""
    digest = hashlib.sha256(repr(locations.scale).encode())
    digest.update(np.ascontiguousarray(locations.lattice).tobytes())
    return digest.hexdigest()


def place(locations: Locations) -> list[Any]:
    """Where a map lies, for JSON: the digest of its shape does not tell."""
    p = locations.projection
    return [[*locations.offset_km], None if p is None else [p.lat0, p.lon0, p.mid_lat]]


def told_place(facts: dict[str, Any]) -> Any:
    """The place that a file tells; None where it tells none (Points, before there was "place")."""
    grid = facts.get("grid")
    if "place" in facts or not isinstance(grid, dict):
        return facts.get("place")
    return [[0.0, 0.0], grid.get("projection")]
