"""Maps in words, and models with their maps."""

import os

import numpy as np

from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.errors import InvalidLocation, InvalidParameter
from pglp_fast.space.grid import Grid

Bounds = tuple[float, float, float, float]  # south, north, west, east


def describe(grid: Grid) -> str:
    """The map in one line."""
    dx, dy = grid.scale
    side = f"{dx:g} km" if dx == dy else f"{dx:g} x {dy:g} km"
    cells = f"{grid.rows} x {grid.cols} cells of {side}"
    if grid.projection is None:
        return cells
    south, north, west, east = box_of(grid)
    return f"{cells}, lat {south:.4f}..{north:.4f}, lon {west:.4f}..{east:.4f}"


def box_of(grid: Grid) -> Bounds:
    """The box that the cells cover: at least the bounds asked for."""
    assert grid.projection is not None
    far = np.array([grid.cols * grid.scale[0], grid.rows * grid.scale[1]])
    (south, west), (north, east) = grid.projection.to_latlon(np.stack([np.zeros(2), far]))
    return float(south), float(north), float(west), float(east)


def open_model(path: str | os.PathLike[str]) -> MobilityModel:
    """A model that was saved with its map, which has latitude and longitude."""
    try:
        model = MobilityModel.open(path)
    except OSError as error:
        raise InvalidParameter(
            f"{os.fspath(path)}: {error.strerror}: make a model with 'pglp-fast fit'"
        ) from None
    if not isinstance(model.locations, Grid) or model.locations.projection is None:
        raise InvalidLocation(
            f"{os.fspath(path)}: the model's grid has no latitude and longitude: fit it on "
            "Grid.from_bounds"
        )
    return model
