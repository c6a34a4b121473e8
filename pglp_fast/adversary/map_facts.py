"""What a file of a model says about its map, to tell maps apart."""

import hashlib
from typing import Any

import numpy as np

from pglp_fast.space.locations import Locations


def map_digest(locations: Locations) -> str:
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
