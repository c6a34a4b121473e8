"""A true trace against its release, and what the adversary thought possible on the way."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from ..domain import Domain
from ..errors import InvalidParameter, InvalidTransition
from ..locations import Grid, Locations
from ..policy import PolicyGraph, require_policy
from .maps import (
    Box,
    around,
    box_of,
    dot_area,
    draw_edges,
    km,
    new_map,
    paint,
    require_same_map,
    some_cells,
    whole,
    widen,
    within,
    zoom,
)
from .maps import basemap as draw_basemap
from .policies import colours_apart
from .style import COLOURS, FEW_EDGES, MAP_LAYOUT, MAX_EDGES, RELEASED, TRUE, fills, legend_below, pyplot

_PANELS = 12  # steps that can be shown side by side
_PANEL = 2.6  # inches


def trace(
    locations: Locations,
    true: ArrayLike,
    released: ArrayLike,
    *,
    surrogate: ArrayLike | None = None,
    domains: Mapping[int, Domain] | None = None,
    policies: Mapping[int, PolicyGraph] | None = None,
    basemap: ArrayLike | None = None,
    basemap_label: str = "",
    ax: Any = None,
) -> Any:
    """Where somebody was and what was released, step by step.

    Parameters
    ----------
    true, released : (T,) cells, -1 where there is none; a line joins what follows without a gap
    surrogate : (T,) booleans: the true location was not in C_t, and another one was released from
    domains : for some steps t (0, 1, ...), C_t: each is drawn on a map of its own, with the true and the released location at t.
        ``Stream.domain(u)`` gives it after each step.
    policies : for some of those steps, the policy on C_t, as ``Stream.policy(u)`` gives it: its components are told apart by
        colour, and edges outside cliques (such as repairs) are drawn
    basemap, basemap_label : one value for each location, drawn in greys below the traces
    ax : where to draw; with ``domains`` an array of 1 + len(domains) axes. A new figure unless told

    Returns
    -------
    The axes; with ``domains`` an array of them, the map of the traces first, then the steps in ascending order.

    Notes
    -----
    The picture shows true locations: it is for those who may know them.
    """
    a, b = (_trace(locations, cells, name) for cells, name in ((true, "true"), (released, "released")))
    if len(a) != len(b):
        raise InvalidTransition(f"true has {len(a)} steps, released {len(b)}: give one cell for each step, -1 for none")
    if not ((a >= 0) | (b >= 0)).any():
        raise InvalidTransition("both traces are empty: there is nothing to draw")
    flags = np.zeros(len(a), bool) if surrogate is None else np.asarray(surrogate)
    if flags.shape != a.shape or flags.dtype != bool:
        raise InvalidParameter(f"surrogate must be {len(a)} booleans, one for each step, got {flags.dtype}, shape {flags.shape}")
    steps = sorted(domains or {})
    known = policies or {}
    for t in steps:
        require_same_map(locations, (domains or {})[check.whole(t, "a step of domains", 0, len(a) - 1)])
    for t in known:
        require_policy(known[t])
        if t not in steps or not known[t].locations.same_map(locations):
            raise InvalidParameter(f"policies[{t}] is of a step that domains does not show, or over another map")
    box = _view(locations, np.concatenate([a, b]))
    axes = _axes(ax, len(steps), box)
    first = axes[0]
    if basemap is not None:
        draw_basemap(first, locations, some_cells(locations, None), basemap, basemap_label)
    _overview(first, locations, a, b, flags, steps)
    zoom(first, box)
    if steps:
        for style, label in ((TRUE, "true at step t"), (RELEASED, "released at step t")):
            first.plot([], [], **style, label=label)
    if any(0 < len(G.extra_indices) // 2 <= MAX_EDGES for G in known.values()):
        first.plot([], [], color="0.2", lw=1.4, label="edge outside cliques")
    legend_below(first)
    for panel, t in zip(axes[1:], steps):
        _step(panel, locations, int(a[t]), int(b[t]), bool(flags[t]), (domains or {})[t], known.get(t), t)
    if steps:
        return axes
    return first


def _trace(locations: Locations, cells: ArrayLike, name: str) -> NDArray[np.int64]:
    array = check.integers(cells, name, InvalidTransition).astype(np.int64)
    if array.ndim != 1:
        raise InvalidTransition(f"{name} must be one user's trace, shape (T,), got {array.shape}: pass {name}[u]")
    bad = np.flatnonzero((array < -1) | (array >= locations.size))
    if bad.size:
        raise InvalidTransition(f"{name}[{bad[0]}] = {array[bad[0]]}: cells are 0..{locations.size - 1}, and -1 for none")
    return array


def _axes(ax: Any, panels: int, box: Box) -> NDArray[Any]:
    if panels > _PANELS:
        raise InvalidParameter(f"{panels} steps would be too small to see: choose at most {_PANELS} of them")
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, object)).reshape(-1)
        if len(axes) != 1 + panels:
            raise InvalidParameter(f"ax has {len(axes)} axes: give {1 + panels}, one for the traces and one for each domain")
        return axes
    if not panels:
        return np.array([new_map(None, box)], object)
    rows = 1 if panels <= 1 else 2
    columns = -(-panels // rows)
    figure = pyplot().figure(figsize=(2 * _PANEL + _PANEL * columns, 2 * _PANEL + 0.4), layout=MAP_LAYOUT)
    grid = figure.add_gridspec(rows, columns + 2, width_ratios=[1] * (columns + 2))
    places = [grid[i // columns, 2 + i % columns] for i in range(panels)]
    return np.array([figure.add_subplot(place) for place in (grid[:, :2], *places)], object)


def _view(locations: Locations, cells: NDArray[np.int64]) -> Box:
    return within(widen(box_of(locations, np.unique(cells[cells >= 0])), 0.08), whole(locations))


def _path(locations: Locations, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Coordinates step by step, NaN where there is none: a line has a gap there."""
    out = np.full((len(cells), 2), np.nan)
    out[cells >= 0] = km(locations, cells[cells >= 0])
    return out


def _overview(
    ax: Any,
    locations: Locations,
    true: NDArray[np.int64],
    released: NDArray[np.int64],
    surrogate: NDArray[np.bool_],
    steps: list[int],
) -> None:
    from matplotlib.collections import LineCollection

    here, there = _path(locations, true), _path(locations, released)
    both = (true >= 0) & (released >= 0)
    links = np.stack([here[both], there[both]], axis=1)
    ax.add_collection(LineCollection(list(links), colors="0.75", linewidths=0.8, zorder=1, label="same step"))
    ax.plot(*there.T, color=COLOURS[1], lw=1.0, ls="--", marker="X", ms=6, mec="white", mew=0.5, zorder=2, label="released")
    ax.plot(*here.T, color=COLOURS[0], lw=1.6, marker="o", ms=4.5, zorder=3, label="true")
    marked = surrogate & (true >= 0)
    if marked.any():
        ax.plot(
            *here[marked].T, ls="none", marker="o", ms=11, mfc="none", mec="black", mew=1.3, zorder=4,
            label="surrogate released from",
        )  # fmt: skip
    seen = np.flatnonzero(true >= 0)
    wanted = sorted({*steps, *seen[[0, -1]].tolist()} if seen.size else set(steps))
    _number(ax, here, [t for t in wanted if true[t] >= 0])


def _number(ax: Any, xy: NDArray[np.float64], steps: list[int]) -> None:
    """Steps written beside their places; those at one place share a line."""
    at: dict[tuple[float, float], list[str]] = {}
    for t in steps:
        at.setdefault((float(xy[t, 0]), float(xy[t, 1])), []).append(str(t))
    for place, numbers in at.items():
        ax.annotate(
            "t = " + ", ".join(numbers), place, xytext=(8, 8), textcoords="offset points", fontsize="small", zorder=7,
            bbox=dict(boxstyle="round,pad=0.15", fc="white", ec="none", alpha=0.75),
        )  # fmt: skip


def _step(
    ax: Any,
    locations: Locations,
    true: int,
    released: int,
    surrogate: bool,
    domain: Domain,
    graph: PolicyGraph | None,
    t: int,
) -> None:
    """C_t with the true and the released location of one step."""
    missing = ""
    cells = domain.cells()
    marks = [s for s in (true, released) if s >= 0]
    rgb = np.tile(fills(6)[5], (len(cells), 1))
    if graph is not None:
        joined = cells[graph.degrees()[cells] > 0]
        colour = colours_apart(graph, joined, boxes=False)
        rgb[:] = 0.8
        rgb[np.searchsorted(cells, joined)] = fills(int(colour.max(initial=0)) + 1)[colour]
        extra = graph.extra_edges()
        if len(extra) <= MAX_EDGES:
            draw_edges(ax, locations, extra, colors="0.2", linewidths=1.4 if len(extra) <= FEW_EDGES else 0.5, zorder=3)
        else:
            missing = f"\n({len(extra):,} edges: too many to draw)"
    if len(cells):
        paint(ax, locations, cells, np.column_stack([rgb, np.full(len(cells), 0.6)]), area=max(12.0, dot_area(len(cells))))
    if released >= 0:
        ax.plot(*km(locations, released), **RELEASED)
    if true >= 0:
        ax.plot(*km(locations, true), **TRUE)
        if surrogate:
            ax.plot(*km(locations, true), marker="o", ms=20, mfc="none", mec="black", mew=1.3, zorder=6)
    boxes = [box_of(locations, group) for group in (cells, marks) if len(group)]
    box = widen(around(*boxes), 0.12) if boxes else whole(locations)
    zoom(ax, within(box, whole(locations)) if isinstance(locations, Grid) else box)
    ax.set_xlabel("east (km)", fontsize="small")
    ax.set_ylabel("north (km)", fontsize="small")
    ax.tick_params(labelsize="small")
    possible = f"{len(domain):,} location{'s' if len(domain) != 1 else ''} possible"
    ax.set_title(f"t = {t}: {possible}" + (", surrogate" if surrogate else "") + missing, fontsize="small")
