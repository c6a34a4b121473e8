"""From options to the map: a box and a cell's side, a table's box, or a model's map."""

import argparse
import math
from collections.abc import Callable, Iterable

import numpy as np

import pglp_fast as pf
from pglp_fast.pipeline.maps import Bounds, describe, open_model
from pglp_fast.pipeline.table_facts import released_facts
from pglp_fast.space.projection import KM_PER_DEGREE, MOST_LON

from .terminal import note

_MOST_CELLS = 50_000_000  # of a map that is meant: arrays over it take 400 MB each
_MARGIN = 0.01  # degrees: the map of a table is its box, outward to a multiple of this


def bounds_of(parts: Iterable[pf.Tracks], source: str) -> Bounds:
    """The box around all fixes on Earth, outward to a multiple of 0.01 degrees; across 180 degrees
    where that is the narrower one."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for tracks in parts:
        with np.errstate(invalid="ignore"):
            there = (np.abs(tracks.lat) <= 90) & (np.abs(tracks.lon) <= MOST_LON)
        lat, lon = tracks.lat[there], tracks.lon[there]
        lon = np.where(np.abs(lon) > 180, (lon + 180) % 360 - 180, lon)
        at = np.stack([lat, lon, lon % 360])
        low = np.minimum(low, at.min(axis=1, initial=np.inf))
        high = np.maximum(high, at.max(axis=1, initial=-np.inf))
    if not np.isfinite(low).all():
        raise pf.InvalidTable(
            f"{source} has no place on Earth: is --columns right? Else give the map with --bounds"
        )
    steps = 1 / _MARGIN
    south, west, wrapped = (math.floor(v * steps) / steps for v in low)
    north, east, end = (math.ceil(v * steps) / steps for v in high)
    if east - west > 180 and end - wrapped < 180:
        return south, max(north, south + _MARGIN), wrapped, end - 360
    return south, max(north, south + _MARGIN), west, max(east, west + _MARGIN)


def tell_bounds(bounds: Bounds) -> None:
    """Say which map was taken, and what that tells about the table."""
    south, north, west, east = bounds
    note(
        "the map is the box of the table, which tells where its outermost rows are; choose your "
        f"own, or this one again, with --bounds {south:g},{north:g},{west:g},{east:g}"
    )


def grid_of(bounds: Bounds, cell_km: tuple[float, float]) -> pf.Grid:
    """The grid over a box, unless it has too many cells to mean it."""
    south, north, west, east = bounds
    dx, dy = cell_km
    wide = (
        ((east - west) % 360 or 360)
        * KM_PER_DEGREE
        * math.cos(math.radians((south + north) / 2))
        / dx
    )
    high = (north - south) * KM_PER_DEGREE / dy
    if wide * high > _MOST_CELLS:
        raise pf.TooLarge(
            f"lat {south:g}..{north:g}, lon {west:g}..{east:g} is {high:,.0f} x {wide:,.0f} cells "
            f"of {dx:g} km: give the box you mean with --bounds, or a larger --cell-km"
        )
    return pf.Grid.from_bounds(lat=(south, north), lon=(west, east), cell_km=cell_km)


def given_grid(options: argparse.Namespace) -> pf.Grid | None:
    """The grid that --bounds and --cell-km say; None where one of them is missing."""
    return (
        None
        if options.bounds is None or options.cell_km is None
        else grid_of(options.bounds, options.cell_km)
    )


def need_cell(options: argparse.Namespace) -> tuple[float, float]:
    """The side of a cell."""
    if options.cell_km is None:
        model = ", or --mobility MODEL" if hasattr(options, "mobility") else ""
        raise pf.InvalidParameter(
            f"which map? Give --cell-km, the side of a cell, e.g. --cell-km 0.34{model}"
        )
    side: tuple[float, float] = options.cell_km
    return side


def table_grid(
    options: argparse.Namespace, read: Callable[[], Iterable[pf.Tracks]], *, tell: bool = False
) -> pf.Grid:
    """The grid over --bounds, or else over the box of a table, and ``tell`` of that."""
    side = need_cell(options)
    if options.bounds is None:
        options.bounds = bounds_of(read(), options.table)
        if tell:
            tell_bounds(options.bounds)
    return grid_of(options.bounds, side)


def need_grid(options: argparse.Namespace) -> pf.Grid:
    """The grid of --bounds and --cell-km, or that of the model; where both are given they must
    agree."""
    if getattr(options, "mobility", None):
        return agree(options, open_model(options.mobility))
    grid = given_grid(options)
    if grid is None:
        what = "--bounds and --cell-km" + (
            ", or --mobility MODEL to take its map" if hasattr(options, "mobility") else ""
        )
        raise pf.InvalidParameter(f"which map? Give {what}")
    return grid


def released_grid(options: argparse.Namespace) -> pf.Grid | None:
    """The grid that the options say, or else the one that TABLE says it was released on; None
    where neither does."""
    if options.mobility or options.bounds is not None:
        return need_grid(options)
    facts = released_facts(options.table)
    if facts is None or "map" not in facts:
        return None
    grid = pf.Grid.from_dict(facts["map"])
    return grid if options.cell_km in (None, grid.scale) else None


def agree(options: argparse.Namespace, model: pf.MobilityModel) -> pf.Grid:
    """The map of the model that --mobility names; --bounds and --cell-km must say the same."""
    own, cell, path = model.locations, options.cell_km, options.mobility
    assert isinstance(own, pf.Grid)
    if cell is not None and tuple(cell) != own.scale:
        raise pf.InvalidParameter(
            f"--cell-km {cell[0]:g},{cell[1]:g} is not the model's: {path} has {describe(own)}. "
            "Leave it out"
        )
    if options.bounds is not None:
        grid = grid_of(options.bounds, own.scale)
        if grid.to_dict() != own.to_dict():
            raise pf.InvalidParameter(
                f"--bounds are not the model's: {path} has {describe(own)}. Leave them out"
            )
    return own
