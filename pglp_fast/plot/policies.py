"""A policy on the map: its components in colours that tell neighbours apart, its cliques by
their hulls, its other edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check
from pglp_fast.policy.graph import require_policy
from pglp_fast.policy.outlines import clique_hulls, colour_apart, touching
from pglp_fast.space.locations import Locations

from .maps import (
    basemap as draw_basemap,
    box_of,
    dot_area,
    draw_edges,
    km,
    new_map,
    paint,
    some_cells,
    zoom,
)
from .style import FEW_EDGES, MAX_EDGES, fills, legend_below

MAX_OUTLINES = 2_500  # cliques that a picture can show one by one
_SEEN_EDGES = 2_500  # edges that can be told apart; more are drawn only where asked for
_NEAR = 6  # points around a point whose components must not share its colour
_ALONE = (0.88, 0.88, 0.88)  # a location without edges
_NAMELESS = (0.65, 0.65, 0.65)  # one with edges and no category


def policy(
    graph: pf.PolicyGraph,
    *,
    cells: pf.Domain | ArrayLike | None = None,
    basemap: ArrayLike | None = None,
    basemap_label: str = "",
    by: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    edges: bool | None = None,
    ax: Any = None,
) -> Any:
    """The policy's components on the map.

    Parameters
    ----------
    cells : the part to draw: a Domain or a list of locations; all unless told. Components are those
        of the whole policy.
    basemap : one value for each location, such as a density, drawn in greys below;
        ``basemap_label`` names it with its unit
    by : one integer for each location (its category, -1 for none) to colour by instead of the
        component; ``names`` are what 0, 1, ... stand for
    edges : True draws the hull of every clique and every other edge, and refuses where that would
        be a blot; False draws neither; None draws what can be seen, and the legend says what is not
    ax : where to draw; a new figure unless told

    Notes
    -----
    Two components that touch (cells side by side, or points among each other's nearest), or whose
    outlines' boxes overlap, never share a colour; the same colour elsewhere means nothing. A
    location without edges is grey: the policy lets it be disclosed."""
    require_policy(graph)
    locations = graph.locations
    shown = some_cells(locations, cells)
    joined = shown[graph.degrees()[shown] > 0]
    hulls, pairs, missing = _what_to_draw(graph, shown, edges)
    if by is None:
        colour = colours_apart(graph, joined, boxes=bool(hulls))
        rgb = fills(int(colour.max(initial=0)) + 1)
    else:
        colour, rgb = _colours_by(locations, by, joined, names)
    box = box_of(locations, shown)
    ax = new_map(ax, box)
    if basemap is not None:
        draw_basemap(ax, locations, shown, basemap, basemap_label)
    _paint_all(ax, locations, shown, joined, rgb[colour], 0.45 if basemap is not None else 0.6)
    line = np.zeros((locations.size, 3))
    line[joined] = 0.65 * rgb[colour]
    _draw_hulls(ax, locations, hulls, line)
    if len(pairs):
        width = 1.8 if len(pairs) <= FEW_EDGES else 0.8
        draw_edges(ax, locations, pairs, colors=line[pairs[:, 0]], linewidths=width, zorder=2.5)
        _key(ax, color="0.3", lw=width, label="edge")
    if by is not None:
        for k, name in enumerate(names or ()):
            _square(ax, (*rgb[k], 0.7), name, mec="none")
        if (colour == len(rgb) - 1).any():
            _square(ax, _NAMELESS, "no category", mec="0.5")
    if len(joined) < len(shown):
        mark = "s" if isinstance(locations, pf.Grid) else "o"
        _square(ax, _ALONE, "no edges", mec="0.6", marker=mark)
    for note in missing:
        _key(ax, ls="none", label=note)
    zoom(ax, box, locations)
    legend_below(ax)
    return ax


def _draw_hulls(
    ax: Any,
    locations: Locations,
    hulls: list[tuple[int, NDArray[np.float64]]],
    colour: NDArray[np.float64],
) -> None:
    """Outlines of cliques in the colour of their locations."""
    if not hulls:
        return
    from matplotlib.collections import PolyCollection

    line = colour[[member for member, _ in hulls]]
    alpha = 0.0 if isinstance(locations, pf.Grid) else 0.15
    ax.add_collection(
        PolyCollection(
            [corners for _, corners in hulls],
            facecolors=np.column_stack([line, np.full(len(line), alpha)]),
            edgecolors=line,
            linewidths=1.1,
            zorder=2,
        )
    )
    _key(ax, color="0.3", lw=1.1, label="clique, by its hull")


def _square(ax: Any, colour: Any, label: str, *, mec: str, marker: str = "s") -> None:
    """An entry of the legend for an area."""
    _key(ax, marker=marker, ms=8, ls="none", color=colour, mec=mec, mew=0.5, label=label)


def _key(ax: Any, **style: Any) -> None:
    """An entry of the legend that stands for many things drawn."""
    ax.plot([], [], **style)


def _paint_all(
    ax: Any,
    locations: Locations,
    shown: check.Cells,
    joined: check.Cells,
    rgb: NDArray[np.float64],
    alpha: float,
) -> None:
    """All locations shown: those with edges in their colours, the others grey."""
    place = np.searchsorted(shown, joined)
    on_grid = isinstance(locations, pf.Grid)
    rgba = np.empty((len(shown), 4))
    rgba[:] = (*_ALONE, alpha if on_grid else 1.0)
    rgba[place, :3] = rgb
    rgba[place, 3] = alpha if on_grid else 1.0
    paint(ax, locations, shown, rgba, area=None if on_grid else dot_area(len(shown)))


def _what_to_draw(
    graph: pf.PolicyGraph, shown: check.Cells, wanted: bool | None
) -> tuple[list[tuple[int, NDArray[np.float64]]], NDArray[np.int32], list[str]]:
    """(one member and the hull of each clique, other edges, what is left out and why)."""
    none: NDArray[np.int32] = np.empty((0, 2), np.int32)
    if wanted is False:
        return [], none, []
    inside = np.zeros(graph.locations.size, bool)
    inside[shown] = True
    pairs = graph.extra_edges()
    pairs = pairs[inside[pairs].all(axis=1)]
    cliques = np.unique(graph.cliques[shown])
    cliques = cliques[cliques >= 0]
    if wanted and len(cliques) > MAX_OUTLINES:
        raise pf.TooLarge(
            f"{len(cliques)} cliques would be a blot: draw a part of the map (cells=...) with at "
            f"most {MAX_OUTLINES}, or edges=False"
        )
    if wanted and len(pairs) > MAX_EDGES:
        raise pf.TooLarge(
            f"{len(pairs)} edges would be a blot: draw a part of the map (cells=...) with at most "
            f"{MAX_EDGES}, or edges=False"
        )
    missing = []
    if len(pairs) > (MAX_EDGES if wanted else _SEEN_EDGES):
        missing.append(f"({len(pairs):,} edges, too many to draw: choose cells=...)")
        pairs = none
    if len(cliques) > MAX_OUTLINES:
        missing.append(f"({len(cliques):,} cliques, too many to outline: choose cells=...)")
        return [], pairs, missing
    return clique_hulls(graph, inside), pairs, missing


def _colours_by(
    locations: Locations, by: ArrayLike, joined: check.Cells, names: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    label = check.integers(by, "by", pf.InvalidParameter)
    if label.size != locations.size:
        raise pf.InvalidParameter(
            f"by has shape {label.shape}: give one integer for each of the {locations.size} "
            "locations"
        )
    label = label.reshape(-1)[joined].astype(np.int64)
    count = int(label.max(initial=-1)) + 1
    if names is not None and len(names) < count:
        raise pf.InvalidParameter(
            f"names has {len(names)} entries, but categories go up to {count - 1}: name each of "
            "them"
        )
    count = max(count, len(names or ()))
    return np.where(label >= 0, label, count), np.vstack([fills(count), [_NAMELESS]])


def colours_apart(graph: pf.PolicyGraph, joined: check.Cells, *, boxes: bool) -> NDArray[np.int64]:
    """A colour for each location with edges: that of its component, so that neighbouring
    components differ."""
    if not len(joined):
        return np.empty(0, np.int64)
    label = np.unique(graph.components[joined], return_inverse=True)[1].astype(np.int32)
    count = int(label.max()) + 1
    pairs = _touching(graph.locations, joined, label)
    if boxes and count <= MAX_OUTLINES:
        pairs = np.concatenate([pairs, _overlapping(graph.locations.lattice[joined], label, count)])
    return np.asarray(colour_apart(count, pairs)[label])


def _touching(
    locations: Locations, cells: check.Cells, label: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Pairs of labels side by side: of the eight cells around on a grid, of the nearest few
    elsewhere."""
    if isinstance(locations, pf.Grid):
        row, col = np.divmod(cells.astype(np.int64), locations.cols)
        top, left = row.min(), col.min()
        image = np.full((row.max() - top + 1, col.max() - left + 1), -1, np.int32)
        image[row - top, col - left] = label
        pairs = touching(image)
        return np.asarray(pairs[(pairs >= 0).all(axis=1)])
    from scipy.spatial import cKDTree

    xy = km(locations, cells)
    near = cKDTree(xy).query(xy, k=min(_NEAR + 1, len(cells)))[1].reshape(len(cells), -1)
    return np.stack([np.repeat(label, near.shape[1]), label[near.ravel()]], axis=1)


def _overlapping(
    lattice: NDArray[np.int32], label: NDArray[np.int32], count: int
) -> NDArray[np.int32]:
    """Pairs of labels whose bounding boxes overlap: their outlines may cross."""
    low, high = np.full((count, 2), np.iinfo(np.int32).max), np.full((count, 2), -1)
    np.minimum.at(low, label, lattice)
    np.maximum.at(high, label, lattice)
    apart = np.zeros((count, count), bool)
    for axis in (0, 1):
        apart |= low[:, None, axis] > high[None, :, axis]
    i, j = np.nonzero(np.triu(~(apart | apart.T), 1))
    return np.stack([i, j], axis=1).astype(np.int32)
