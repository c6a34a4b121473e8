"""A true trace against its release, and what the adversary thought possible on the way."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check
from pglp_fast.policy.graph import require_policy
from pglp_fast.space.locations import Locations

from .geography import latlon_axes
from .maps import (
    Box,
    around,
    basemap as draw_basemap,
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
from .policies import colours_apart
from .style import (
    COLOURS,
    FEW_EDGES,
    MAP_LAYOUT,
    MAX_EDGES,
    RELEASED,
    TRUE,
    fills,
    legend_below,
    pyplot,
)

_FEW_STEPS = 60  # of a trace that are linked one by one
_PANELS = 12  # steps that can be shown side by side
_PANEL = 2.6  # inches


def trace(
    locations: Locations,
    true: ArrayLike,
    released: ArrayLike,
    *,
    surrogate: ArrayLike | None = None,
    gaps: ArrayLike | None = None,
    domains: Mapping[int, pf.Domain] | None = None,
    policies: Mapping[int, pf.PolicyGraph] | None = None,
    basemap: ArrayLike | None = None,
    basemap_label: str = "",
    ax: Any = None,
) -> Any:
    """Where somebody was and what was released, step by step.

    Parameters
    ----------
    true, released : (T,) cells, -1 where there is none; a line joins what follows without a gap
    surrogate : (T,) booleans: the true location was not in C_t, and another one was released from
    gaps : (T,) booleans: no line joins step t with the one before, such as after a long silence
    domains : for some steps t (0, 1, ...), C_t: each is drawn on a map of its own, with the true
        and the released location at t. ``Stream.domain(u)`` gives it after each step.
    policies : for some of those steps, the policy on C_t, as ``Stream.policy(u)`` gives it: its
        components are told apart by colour, and edges outside cliques (such as repairs) are drawn
    basemap, basemap_label : one value for each location, drawn in greys below the traces
    ax : where to draw; with ``domains`` an array of 1 + len(domains) axes. A new figure unless told

    Returns
    -------
    The axes; with ``domains`` an array of them, the map of the traces first, then the steps in
    ascending order.

    Notes
    -----
    The picture shows true locations: it is for those who may know them. Of more than 60 steps,
    lines are thin, steps are not linked, and releases are dots."""
    a, b = (
        _trace(locations, cells, name) for cells, name in ((true, "true"), (released, "released"))
    )
    if len(a) != len(b):
        raise pf.InvalidTransition(
            f"true has {len(a)} steps, released {len(b)}: give one cell for each step, -1 for none"
        )
    if not ((a >= 0) | (b >= 0)).any():
        raise pf.InvalidTransition("both traces are empty: there is nothing to draw")
    flags = _flags(surrogate, len(a), "surrogate")
    cuts = np.flatnonzero(_flags(gaps, len(a), "gaps"))
    possible, known = domains or {}, policies or {}
    _check_steps(locations, len(a), possible, known)
    steps = sorted(possible)
    box = _view(locations, np.concatenate([a, b]))
    axes = _axes(ax, len(steps), box)
    first = axes[0]
    if basemap is not None:
        draw_basemap(first, locations, some_cells(locations, None), basemap, basemap_label)
    _overview(first, locations, a, b, flags, steps, cuts)
    zoom(first, box, locations)
    if steps:
        for style, label in ((TRUE, "true at step t"), (RELEASED, "released at step t")):
            first.plot([], [], **style, label=label)
    if any(0 < len(G.extra_indices) // 2 <= MAX_EDGES for G in known.values()):
        first.plot([], [], color="0.2", lw=1.4, label="edge outside cliques")
    legend_below(first)
    for panel, t in zip(axes[1:], steps):
        at = int(a[t]), int(b[t]), bool(flags[t])
        _step(panel, locations, *at, possible[t], known.get(t), t)
    return axes if steps else first


def _check_steps(
    locations: Locations,
    steps: int,
    domains: Mapping[int, pf.Domain],
    policies: Mapping[int, pf.PolicyGraph],
) -> None:
    """Domains are of steps of the trace, and policies of steps with a domain, over this map."""
    for t in sorted(domains):
        require_same_map(locations, domains[check.whole(t, "a step of domains", 0, steps - 1)])
    for t, graph in policies.items():
        require_policy(graph)
        if t not in domains or not graph.locations.same_map(locations):
            raise pf.InvalidParameter(
                f"policies[{t}] is of a step that domains does not show, or over another map"
            )


def _flags(values: ArrayLike | None, count: int, name: str) -> NDArray[np.bool_]:
    """One boolean for each step; none are set unless given."""
    flags = np.zeros(count, bool) if values is None else np.asarray(values)
    if flags.shape != (count,) or flags.dtype != bool:
        raise pf.InvalidParameter(
            f"{name} must be {count} booleans, one for each step, got {flags.dtype}, shape "
            f"{flags.shape}"
        )
    return flags


def _trace(locations: Locations, cells: ArrayLike, name: str) -> NDArray[np.int64]:
    array = check.integers(cells, name, pf.InvalidTransition)
    if array.ndim != 1:
        raise pf.InvalidTransition(
            f"{name} must be one user's trace, shape (T,), got {array.shape}: pass {name}[u]"
        )
    return check.cells_or_missing(
        array,
        locations.size,
        error=pf.InvalidTransition,
        where=lambda cell, t: f"{name}[{t}] = {cell}",
        missing="none",
    ).astype(np.int64)


def _axes(ax: Any, panels: int, box: Box) -> NDArray[Any]:
    if panels > _PANELS:
        raise pf.InvalidParameter(
            f"{panels} steps would be too small to see: choose at most {_PANELS} of them"
        )
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, object)).reshape(-1)
        if len(axes) != 1 + panels:
            raise pf.InvalidParameter(
                f"ax has {len(axes)} axes: give {1 + panels}, one for the traces and one for each "
                "domain"
            )
        return axes
    if not panels:
        return np.array([new_map(None, box)], object)
    rows = 1 if panels <= 1 else 2
    columns = -(-panels // rows)
    figure = pyplot().figure(
        figsize=(2 * _PANEL + _PANEL * columns, 2 * _PANEL + 0.4), layout=MAP_LAYOUT
    )
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
    cuts: NDArray[np.intp],
) -> None:
    here, there = _path(locations, true), _path(locations, released)
    many = int((true >= 0).sum()) > _FEW_STEPS
    both = (true >= 0) & (released >= 0)
    if many:
        _draw_many(ax, np.insert(here, cuts, np.nan, axis=0), there)
    else:
        _draw_few(ax, here, there, both, cuts)
    marked = surrogate & (true >= 0)
    if marked.any():
        ax.plot(
            *here[marked].T,
            ls="none",
            marker="o",
            ms=6 if many else 14,
            mfc="none",
            mec="black",
            mew=0.6 if many else 1.3,
            zorder=4,
            label="surrogate released from",
        )
    seen = np.flatnonzero(true >= 0)
    wanted = sorted({*steps, *seen[[0, -1]].tolist()} if seen.size else set(steps))
    if not many or steps:
        ends = {} if steps else {int(seen[-1]): "last", int(seen[0]): "first"} if seen.size else {}
        _number(ax, here, [t for t in wanted if true[t] >= 0], ends)


def _draw_many(ax: Any, here: NDArray[np.float64], there: NDArray[np.float64]) -> None:
    """A long trace: where somebody was as a thin line, releases as dots, larger where there are
    more."""
    places, counts = np.unique(there[~np.isnan(there[:, 0])], axis=0, return_counts=True)
    if len(places):
        ax.scatter(
            *places.T,
            s=6 + 60 * np.sqrt(counts / counts.max()),
            color=COLOURS[1],
            alpha=0.55,
            linewidths=0,
            zorder=2,
            label="released (larger: more often)",
        )
    ax.plot(*here.T, color=COLOURS[0], lw=0.9, marker=".", ms=2, zorder=3, label="true")


def _draw_few(
    ax: Any,
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    both: NDArray[np.bool_],
    cuts: NDArray[np.intp],
) -> None:
    """Both traces, and what was released of each step."""
    from matplotlib.collections import LineCollection

    lines = [np.insert(path, cuts, np.nan, axis=0) for path in (here, there)]
    links = np.stack([here[both], there[both]], axis=1)
    ax.add_collection(
        LineCollection(list(links), colors="0.75", linewidths=0.8, zorder=1, label="same step")
    )
    ax.plot(
        *lines[1].T,
        color=COLOURS[1],
        lw=1.0,
        ls="--",
        marker="X",
        ms=6,
        mec="white",
        mew=0.5,
        zorder=4,  # within the ring, where the release is the true place
        label="released",
    )
    ring: dict[str, Any] = dict(marker="o", ms=9, mfc="white", mew=1.6)
    ax.plot(*lines[0].T, color=COLOURS[0], lw=1.6, **ring, zorder=3, label="true")


def _number(ax: Any, xy: NDArray[np.float64], steps: list[int], names: Mapping[int, str]) -> None:
    """Steps written beside their places, by name or number; those at one place share a line."""
    at: dict[tuple[float, float], list[str]] = {}
    for t in steps:
        at.setdefault((float(xy[t, 0]), float(xy[t, 1])), []).append(names.get(t, str(t)))
    highest = np.nanmax(xy[:, 1])  # what stands above it would run into the title
    for place, numbers in at.items():
        ax.annotate(
            ("" if names else "t = ") + ", ".join(numbers),
            place,
            xytext=(8, -14 if place[1] == highest else 8),
            textcoords="offset points",
            fontsize="small",
            zorder=7,
            bbox=dict(boxstyle="round,pad=0.15", fc="white", ec="none", alpha=0.75),
        )


def _step(
    ax: Any,
    locations: Locations,
    true: int,
    released: int,
    surrogate: bool,
    domain: pf.Domain,
    graph: pf.PolicyGraph | None,
    t: int,
) -> None:
    """C_t with the true and the released location of one step."""
    cells = domain.cells()
    left_out = "" if graph is None else _draw_extra(ax, locations, graph)
    _paint_domain(ax, locations, cells, graph)
    _mark_places(ax, locations, true, released, surrogate)
    _zoom_to(ax, locations, cells, [s for s in (true, released) if s >= 0])
    _small_axes(ax, locations)
    possible = f"{len(domain):,} location{'s' if len(domain) != 1 else ''} possible"
    flag = ", surrogate" if surrogate else ""
    ax.set_title(f"t = {t}: {possible}{flag}{left_out}", fontsize="small")


def _draw_extra(ax: Any, locations: Locations, graph: pf.PolicyGraph) -> str:
    """The edges outside cliques; what to say where they are too many."""
    extra = graph.extra_edges()
    if len(extra) > MAX_EDGES:
        return f"\n({len(extra):,} edges: too many to draw)"
    width = 1.4 if len(extra) <= FEW_EDGES else 0.5
    draw_edges(ax, locations, extra, colors="0.2", linewidths=width, zorder=3)
    return ""


def _paint_domain(
    ax: Any, locations: Locations, cells: check.Cells, graph: pf.PolicyGraph | None
) -> None:
    """What is possible; components told apart by colour where the policy is known, grey for
    locations without an edge."""
    if not len(cells):
        return
    rgb = np.tile(fills(6)[5], (len(cells), 1))
    if graph is not None:
        joined = cells[graph.degrees()[cells] > 0]
        colour = colours_apart(graph, joined, boxes=False)
        rgb[:] = 0.8
        rgb[np.searchsorted(cells, joined)] = fills(int(colour.max(initial=0)) + 1)[colour]
    rgba = np.column_stack([rgb, np.full(len(cells), 0.6)])
    paint(ax, locations, cells, rgba, area=max(12.0, dot_area(len(cells))))


def _mark_places(ax: Any, locations: Locations, true: int, released: int, surrogate: bool) -> None:
    """Where somebody was, ringed if a surrogate stood for it, and what was released."""
    if released >= 0:
        ax.plot(*km(locations, released), **RELEASED)
    if true >= 0:
        here = km(locations, true)
        ax.plot(*here, **TRUE)
        if surrogate:
            ax.plot(*here, marker="o", ms=20, mfc="none", mec="black", mew=1.3, zorder=6)


def _zoom_to(ax: Any, locations: Locations, cells: check.Cells, marks: list[int]) -> None:
    """What is possible and what is marked, with a margin."""
    boxes = [box_of(locations, group) for group in (cells, marks) if len(group)]
    box = widen(around(*boxes), 0.12) if boxes else whole(locations)
    zoom(ax, within(box, whole(locations)) if isinstance(locations, pf.Grid) else box)


def _small_axes(ax: Any, locations: Locations) -> None:
    """Degrees in small print; the map beside it names the axes and has the scale bar, which would
    lie on the places here."""
    latlon_axes(ax, locations, bar=False)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(labelsize="small")
