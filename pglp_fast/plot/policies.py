"""A policy on the map: its components in colours that tell neighbours apart, its cliques by their hulls, its other edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from .._kernels import colouring
from .._kernels import graph as graph_kernels
from .._kernels import hull as hull_kernels
from ..domain import Domain
from ..errors import InvalidParameter, TooLarge
from ..locations import Grid, Locations
from ..policy import PolicyGraph, require_policy
from .maps import basemap as draw_basemap
from .maps import box_of, dot_area, draw_edges, km, new_map, paint, some_cells, zoom
from .style import FEW_EDGES, MAX_EDGES, fills, legend_below

MAX_OUTLINES = 2_500  # cliques that a picture can show one by one
_NEAR = 6  # points around a point whose components must not share its colour
_ALONE = (0.88, 0.88, 0.88)  # a location without edges
_NAMELESS = (0.65, 0.65, 0.65)  # one with edges and no category


def policy(
    graph: PolicyGraph,
    *,
    cells: Domain | ArrayLike | None = None,
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
    cells : the part to draw: a Domain or a list of locations; all unless told. Components are those of the whole policy.
    basemap : one value for each location, such as a density, drawn in greys below; ``basemap_label`` names it with its unit
    by : one integer for each location (its category, -1 for none) to colour by instead of the component; ``names`` are
        what 0, 1, ... stand for
    edges : True draws the hull of every clique and every other edge, and refuses where that would be a blot; False draws
        neither; None draws what can be seen, and the legend says what is not
    ax : where to draw; a new figure unless told

    Notes
    -----
    Two components that touch (cells side by side, or points among each other's nearest), or whose outlines' boxes overlap,
    never share a colour; the same colour elsewhere means nothing. A location without edges is grey: the policy lets it be
    disclosed.
    """
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
    dark = 0.65 * rgb
    if hulls:
        from matplotlib.collections import PolyCollection

        members = [hull[0] for hull in hulls]
        line = dark[colour[np.searchsorted(joined, members)]]
        outlines = [corners for _, corners in hulls]
        inside = np.column_stack([line, np.full(len(line), 0.0 if isinstance(locations, Grid) else 0.15)])
        ax.add_collection(PolyCollection(outlines, facecolors=inside, edgecolors=line, linewidths=1.1, zorder=2))
        _key(ax, color="0.3", lw=1.1, label="clique, by its hull")
    if len(pairs):
        line, width = dark[colour[np.searchsorted(joined, pairs[:, 0])]], 1.8 if len(pairs) <= FEW_EDGES else 0.8
        draw_edges(ax, locations, pairs, colors=line, linewidths=width, zorder=2.5)
        _key(ax, color="0.3", lw=width, label="edge")
    if by is not None and names is not None:
        for k, name in enumerate(names):
            _key(ax, marker="s", ms=8, ls="none", color=(*rgb[k], 0.7), mec="none", label=name)
    if by is not None and (colour == len(rgb) - 1).any():
        _key(ax, marker="s", ms=8, ls="none", color=_NAMELESS, mec="0.5", mew=0.5, label="no category")
    if len(joined) < len(shown):
        _key(
            ax,
            marker="s" if isinstance(locations, Grid) else "o",
            ms=8,
            ls="none",
            color=_ALONE,
            mec="0.6",
            mew=0.5,
            label="no edges",
        )
    for note in missing:
        _key(ax, ls="none", label=note)
    zoom(ax, box)
    legend_below(ax)
    return ax


def _key(ax: Any, **style: Any) -> None:
    """An entry of the legend that stands for many things drawn."""
    ax.plot([], [], **style)


def _paint_all(
    ax: Any, locations: Locations, shown: check.Cells, joined: check.Cells, rgb: NDArray[np.float64], alpha: float
) -> None:
    """All locations shown: those with edges in their colours, the others grey."""
    place = np.searchsorted(shown, joined)
    on_grid = isinstance(locations, Grid)
    rgba = np.empty((len(shown), 4))
    rgba[:] = (*_ALONE, alpha if on_grid else 1.0)
    rgba[place, :3] = rgb
    rgba[place, 3] = alpha if on_grid else 1.0
    paint(ax, locations, shown, rgba, area=None if on_grid else dot_area(len(shown)))


def _what_to_draw(
    graph: PolicyGraph, shown: check.Cells, wanted: bool | None
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
        raise TooLarge(
            f"{len(cliques)} cliques would be a blot: draw a part of the map (cells=...) with at most {MAX_OUTLINES}, "
            "or edges=False"
        )
    if wanted and len(pairs) > MAX_EDGES:
        raise TooLarge(
            f"{len(pairs)} edges would be a blot: draw a part of the map (cells=...) with at most {MAX_EDGES}, or edges=False"
        )
    missing = []
    if len(pairs) > MAX_EDGES:
        missing.append(f"({len(pairs):,} edges, too many to draw: choose cells=...)")
        pairs = none
    if len(cliques) > MAX_OUTLINES:
        missing.append(f"({len(cliques):,} cliques, too many to outline: choose cells=...)")
        return [], pairs, missing
    return _clique_hulls(graph, inside, cliques), pairs, missing


def _clique_hulls(
    graph: PolicyGraph, inside: NDArray[np.bool_], cliques: NDArray[np.int32]
) -> list[tuple[int, NDArray[np.float64]]]:
    """A member of each clique and the convex hull, in km, of its members that are drawn; two members make a segment."""
    locations = graph.locations
    members, starts = graph_kernels.group_by(np.where(inside, graph.cliques, np.int32(-1)), graph.n_cliques)
    scale, offset = np.asarray(locations.scale), np.asarray(locations.offset_km)
    found = []
    for c in cliques.tolist():
        some = members[starts[c] : starts[c + 1]]
        if len(some) > 1:
            corners = hull_kernels.chain(locations.lattice[some].astype(np.int64))
            found.append((int(some[0]), corners * scale + offset))
    return found


def _colours_by(
    locations: Locations, by: ArrayLike, joined: check.Cells, names: Sequence[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    label = check.integers(by, "by", InvalidParameter)
    if label.size != locations.size:
        raise InvalidParameter(f"by has shape {label.shape}: give one integer for each of the {locations.size} locations")
    label = label.reshape(-1)[joined].astype(np.int64)
    count = int(label.max(initial=-1)) + 1
    if names is not None and len(names) < count:
        raise InvalidParameter(f"names has {len(names)} entries, but categories go up to {count - 1}: name each of them")
    count = max(count, len(names or ()))
    return np.where(label >= 0, label, count), np.vstack([fills(count), [_NAMELESS]])


def colours_apart(graph: PolicyGraph, joined: check.Cells, *, boxes: bool) -> NDArray[np.int64]:
    """A colour for each location with edges: that of its component, so that neighbouring components differ."""
    if not len(joined):
        return np.empty(0, np.int64)
    label = np.unique(graph.components[joined], return_inverse=True)[1].astype(np.int32)
    count = int(label.max()) + 1
    pairs = _touching(graph.locations, joined, label)
    if boxes and count <= MAX_OUTLINES:
        pairs = np.concatenate([pairs, _overlapping(graph.locations.lattice[joined], label, count)])
    pairs = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.int32)
    colour = np.empty(count, np.int64)
    colouring.greedy(*graph_kernels.pairs_to_csr(count, pairs), colour)
    return np.asarray(colour[label])


def _touching(locations: Locations, cells: check.Cells, label: NDArray[np.int32]) -> NDArray[np.int32]:
    """Pairs of labels side by side: of the eight cells around on a grid, of the nearest few elsewhere."""
    if isinstance(locations, Grid):
        row, col = np.divmod(cells.astype(np.int64), locations.cols)
        top, left = row.min(), col.min()
        image = np.full((row.max() - top + 1, col.max() - left + 1), -1, np.int32)
        image[row - top, col - left] = label
        sides = (
            (image[:, :-1], image[:, 1:]),
            (image[:-1], image[1:]),
            (image[:-1, :-1], image[1:, 1:]),
            (image[:-1, 1:], image[1:, :-1]),
        )
        pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides])
        return np.asarray(pairs[(pairs >= 0).all(axis=1)])
    from scipy.spatial import cKDTree

    xy = km(locations, cells)
    near = cKDTree(xy).query(xy, k=min(_NEAR + 1, len(cells)))[1].reshape(len(cells), -1)
    return np.stack([np.repeat(label, near.shape[1]), label[near.ravel()]], axis=1)


def _overlapping(lattice: NDArray[np.int32], label: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Pairs of labels whose bounding boxes overlap: their outlines may cross."""
    low, high = np.full((count, 2), np.iinfo(np.int32).max), np.full((count, 2), -1)
    np.minimum.at(low, label, lattice)
    np.maximum.at(high, label, lattice)
    apart = np.zeros((count, count), bool)
    for axis in (0, 1):
        apart |= low[:, None, axis] > high[None, :, axis]
    i, j = np.nonzero(np.triu(~(apart | apart.T), 1))
    return np.stack([i, j], axis=1).astype(np.int32)
