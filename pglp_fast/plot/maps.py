"""Maps in km: axes, cells as areas or dots, values as colours."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check
from pglp_fast.space.locations import Locations

from .geography import latlon_axes
from .style import MAP_LAYOUT, MAX_EDGES, colour_bar, new_axes

_SKEWED = 20.0  # times the median that the largest value is on a logarithmic scale
_RIMS = 2_000  # dots that have a rim
Box = tuple[float, float, float, float]  # west, east, south, north


def km(locations: Locations, cells: Any) -> NDArray[np.float64]:
    """Coordinates in km, in the frame of ``locations.xy``."""
    return np.asarray(locations.xy(np.asarray(cells)))  # type: ignore[attr-defined]


def some_cells(locations: Locations, cells: pf.Domain | ArrayLike | None) -> check.Cells:
    """Which locations to draw: those of a domain, a list, or all; ascending."""
    if cells is None:
        return np.arange(locations.size, dtype=check.CELL)
    if isinstance(cells, pf.Domain):
        require_same_map(locations, cells)
        chosen = cells.cells()
    else:
        chosen = np.unique(check.cells(cells, locations.size))
    if not len(chosen):
        raise pf.InvalidParameter("there is no location to draw: the set of cells is empty")
    return chosen


def require_same_map(locations: Locations, domain: Any) -> None:
    if not isinstance(domain, pf.Domain) or not domain.locations.same_map(locations):
        raise pf.InvalidDomain(
            f"{domain!r} is not a Domain over {locations!r}: make one with pf.Domain(locations, "
            "cells)"
        )


def box_of(locations: Locations, cells: Any) -> Box:
    """The box around locations: on a grid around their cells, else with a margin of 5 % of the
    span."""
    xy = km(locations, np.atleast_1d(cells))
    low, high = xy.min(axis=0), xy.max(axis=0)
    margin = (
        np.asarray(locations.scale) / 2
        if isinstance(locations, pf.Grid)
        else 0.05 * ((high - low).max() or 1.0)
    )
    return (low - margin)[0], (high + margin)[0], (low - margin)[1], (high + margin)[1]


def around(*boxes: Box) -> Box:
    """The smallest box around boxes."""
    west, east, south, north = zip(*boxes)
    return min(west), max(east), min(south), max(north)


def widen(box: Box, share: float) -> Box:
    """A box with a margin of that share of its longer side; one that is much longer than wide is
    made less so."""
    west, east, south, north = box
    side = max(east - west, north - south)
    dx, dy = (
        share * side + max(0.0, side / 3 - width) / 2 for width in (east - west, north - south)
    )
    return west - dx, east + dx, south - dy, north + dy


def within(box: Box, limits: Box) -> Box:
    """The part of a box inside limits."""
    return (
        max(box[0], limits[0]),
        min(box[1], limits[1]),
        max(box[2], limits[2]),
        min(box[3], limits[3]),
    )


def zoom(ax: Any, box: Box, locations: Locations | None = None) -> None:
    """Limits in km, equal aspect; with ``locations`` also the names of the axes, by latitude and
    longitude where the map knows them."""
    ax.set_xlim(box[0], box[1])
    ax.set_ylim(box[2], box[3])
    ax.set_aspect("equal")
    if locations is not None:
        latlon_axes(ax, locations)


def whole(locations: Locations) -> Box:
    """The box around the map."""
    corners = (
        np.array([0, locations.size - 1])
        if isinstance(locations, pf.Grid)
        else np.arange(locations.size)
    )
    return box_of(locations, corners)


def new_map(ax: Any, box: Box) -> Any:
    """``ax``, or axes of a new figure in which a map of that box fits without much space around."""
    height = 4.4 * (box[3] - box[2]) / (box[1] - box[0])
    return new_axes(ax, (5.6, float(np.clip(height + 1.2, 2.4, 7.5))), layout=MAP_LAYOUT)


def map_axes(locations: Locations, ax: Any = None) -> Any:
    """Axes for a map, in km: equal aspect, limits at the map's edge.

    Ticks are degrees, with a scale bar, where the map knows its latitude and longitude."""
    box = whole(locations)
    ax = new_map(ax, box)
    zoom(ax, box, locations)
    return ax


def dot_area(count: int) -> float:
    """Area in square points at which so many dots can be told apart on a picture of common size."""
    return float(np.clip(12_000 / max(count, 1), 1.5, 60.0))


def _raster(
    grid: pf.Grid, cells: check.Cells
) -> tuple[tuple[int, int], NDArray[np.int64], NDArray[np.int64], Box]:
    """The rectangle of the grid around cells: its shape, the row and column of each cell in it,
    and its box in km."""
    row, col = np.divmod(cells.astype(np.int64), grid.cols)
    top, left = row.min(), col.min()
    shape = int(row.max() - top) + 1, int(col.max() - left) + 1
    (dx, dy), corner = grid.scale, (float(left), float(top))
    west, south = (corner[0] - 0.5) * dx, (corner[1] - 0.5) * dy
    return shape, row - top, col - left, (west, west + shape[1] * dx, south, south + shape[0] * dy)


def paint(
    ax: Any,
    locations: Locations,
    cells: check.Cells,
    rgba: NDArray[np.float64],
    *,
    area: float | None = None,
) -> Any:
    """Locations in colours of their own, (n, 4): cells as areas, points as dots of so many
    square points."""
    if isinstance(locations, pf.Grid):
        shape, row, col, box = _raster(locations, cells)
        picture = np.zeros((*shape, 4), np.uint8)  # clear where nothing is painted
        picture[row, col] = np.rint(rgba * 255)
        return ax.imshow(
            picture, origin="lower", extent=box, interpolation="nearest", aspect="equal", zorder=1
        )
    size = dot_area(len(cells)) if area is None else area
    return ax.scatter(*km(locations, cells).T, s=size, c=rgba, linewidths=0, zorder=3)


def show_values(
    ax: Any,
    locations: Locations,
    cells: check.Cells,
    values: NDArray[np.float64],
    *,
    cmap: str,
    norm: Any = None,
    area: float | None = None,
    zorder: float = 0.5,
) -> Any:
    """One value for each of the cells as a colour; NaN is left blank."""
    if isinstance(locations, pf.Grid):
        shape, row, col, box = _raster(locations, cells)
        picture = np.full(shape, np.nan)
        picture[row, col] = values
        return ax.imshow(
            picture,
            origin="lower",
            extent=box,
            cmap=cmap,
            norm=norm,
            interpolation="nearest",
            aspect="equal",
            zorder=zorder,
        )
    there = ~np.isnan(values)
    size = dot_area(len(cells)) if area is None else area
    xy = km(locations, cells[there])
    rim = (
        dict(edgecolors="0.5", linewidths=0.4) if len(xy) <= _RIMS else dict(linewidths=0)
    )  # pale dots are seen on white
    return ax.scatter(*xy.T, s=size, c=values[there], cmap=cmap, norm=norm, zorder=zorder, **rim)


def one_each(locations: Locations, values: ArrayLike, name: str) -> NDArray[np.float64]:
    """One number for each location, in any shape of that size."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise pf.InvalidParameter(
            f"{name} must be numbers, one for each of the {locations.size} locations"
        ) from None
    if array.size != locations.size:
        raise pf.InvalidParameter(
            f"{name} has shape {array.shape}: give one number for each of the {locations.size} "
            "locations"
        )
    return array.reshape(-1)


def heat(
    locations: Locations,
    values: ArrayLike,
    *,
    ax: Any = None,
    label: str = "",
    cmap: str = "cividis",
    log: bool | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """One value for each location as a colour map, with a colour bar if it has a label; NaN is
    left blank.

    ``limits``: the values at both ends of the colours, so that maps beside each other have one
    scale; the smallest and the largest value unless given.

    ``log``: colours on a logarithmic scale, on which 0 is left blank too. Unless told, where no
    value is negative and the largest is more than 20 times the median of those above 0: on a linear
    scale such a map is dark but for a few cells."""
    array = one_each(locations, values, "values")
    ax = map_axes(locations, ax)
    box = (*ax.get_xlim(), *ax.get_ylim())
    norm = _log_norm(array, log)
    if norm is not None:
        array = np.where(array > 0, array, np.nan)
    if limits is not None:
        norm = _set_norm(limits, norm is not None)
    shown = show_values(ax, locations, some_cells(locations, None), array, cmap=cmap, norm=norm)
    zoom(ax, box)
    if label:
        colour_bar(ax, shown, label)
    return ax


def _set_norm(limits: tuple[float, float], log: bool) -> Any:
    """From one value to another."""
    from matplotlib.colors import LogNorm, Normalize

    low, high = (float(v) for v in np.asarray(limits, np.float64))
    if not (-np.inf < low < high < np.inf) or (log and low <= 0):
        least = ", above 0 on a logarithmic scale" if log else ""
        raise pf.InvalidParameter(f"limits must be two ascending numbers{least}, got {limits!r}")
    return (LogNorm if log else Normalize)(low, high)


def is_skewed(known: NDArray[np.float64]) -> bool:
    """Whether finite values are told apart on a logarithmic scale only."""
    above = known[known > 0]
    return bool(above.size and known.min() >= 0 and above.max() > _SKEWED * float(np.median(above)))


def _log_norm(values: NDArray[np.float64], wanted: bool | None) -> Any:
    """A logarithmic norm, or None for a linear scale."""
    from matplotlib.colors import LogNorm

    known = values[np.isfinite(values)]
    above = known[known > 0]
    if wanted is None:
        wanted = is_skewed(known)
    elif wanted and (not above.size or known.min() < 0):
        raise pf.InvalidParameter(
            "a logarithmic scale needs values above 0 and none below: use log=False"
        )
    return LogNorm(above.min(), above.max()) if wanted and above.min() < above.max() else None


def basemap(
    ax: Any, locations: Locations, cells: check.Cells, values: ArrayLike, label: str
) -> None:
    """Values in greys, for other things to be drawn upon."""
    array = one_each(locations, values, "basemap")[cells]
    shown = show_values(
        ax, locations, cells, array, cmap="Greys", area=4 * dot_area(len(cells)), zorder=0.2
    )
    if label:
        colour_bar(ax, shown, label)


def draw_edges(ax: Any, locations: Locations, pairs: NDArray[Any], **style: Any) -> None:
    """Edges as lines; more than a picture can show are refused."""
    from matplotlib.collections import LineCollection

    if len(pairs) > MAX_EDGES:
        raise pf.TooLarge(
            f"{len(pairs)} edges would be a blot: draw a part of the map with at most {MAX_EDGES}"
        )
    if len(pairs):
        ax.add_collection(
            LineCollection(list(km(locations, pairs.reshape(-1)).reshape(-1, 2, 2)), **style)
        )
