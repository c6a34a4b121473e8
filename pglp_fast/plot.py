"""Pictures, with matplotlib (the ``plot`` extra). Every function takes an ``ax`` and returns it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from .domain import Domain
from .errors import PGLPError, TooLarge
from .exposure import disconnected, isolated, repair
from .locations import Grid, Locations
from .mechanisms.knorm import KNorm
from .policy import PolicyGraph
from .sensitivity import sensitivity_hull

# Okabe and Ito's palette: told apart by all common kinds of colour vision
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAX_EDGES = 20_000  # that a picture can show
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise PGLPError('pictures need matplotlib: install it with  pip install "pglp-fast[plot]"') from None
    return plt


def new_axes(ax: Any) -> Any:
    return pyplot().subplots(figsize=(5, 5), layout="constrained")[1] if ax is None else ax


def map_axes(grid: Grid, ax: Any = None) -> Any:
    """Axes for a map in km: equal aspect, limits at the map's edge."""
    ax = new_axes(ax)
    dx, dy = grid.scale
    ax.set_xlim(-dx / 2, (grid.cols - 0.5) * dx)
    ax.set_ylim(-dy / 2, (grid.rows - 0.5) * dy)
    ax.set_aspect("equal")
    ax.set_xlabel("east (km)")
    ax.set_ylabel("north (km)")
    return ax


def heat(grid: Grid, values: ArrayLike, *, ax: Any = None, label: str = "", cmap: str = "cividis") -> Any:
    """One value for each cell as a colour map."""
    ax = map_axes(grid, ax)
    extent = (*ax.get_xlim(), *ax.get_ylim())
    picture = np.asarray(values, float).reshape(grid.rows, grid.cols)
    image = ax.imshow(picture, origin="lower", extent=extent, cmap=cmap, interpolation="nearest")
    if label:
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.8)
    return ax


def _km(locations: Locations, cells: Any) -> NDArray[np.float64]:
    """Coordinates in km from the lattice's origin."""
    return np.asarray(locations.lattice[cells] * np.asarray(locations.scale))


def _edges(ax: Any, locations: Locations, pairs: NDArray[np.int32], **style: Any) -> None:
    from matplotlib.collections import LineCollection

    if len(pairs) > MAX_EDGES:
        raise TooLarge(f"{len(pairs)} edges would be a blot: draw a part of the map with at most {MAX_EDGES}")
    if len(pairs):
        ax.add_collection(LineCollection(list(_km(locations, pairs)), **style))


def exposure(
    graph: PolicyGraph,
    domain: Domain,
    *,
    at: int | None = None,
    calibration: str = "graph",
    strategy: str = "min-area",
    ax: Any = None,
) -> Any:
    """Why a location is exposed under a domain, and how the policy is repaired.

    Locations by what the domain makes of them; edges that are left, lost and added; and, for the graph calibration, the
    sensitivity hull K of G^C around location ``at`` (the first isolated or disconnected one unless told): who has nobody
    else in that hull is isolated. Under the component calibration whoever is disconnected is.
    """
    ax = new_axes(ax)
    locations = graph.locations
    fixed = repair(graph, domain, strategy=strategy, calibration=calibration)
    alone, bare = disconnected(graph, domain), isolated(graph, domain, calibration=calibration)
    constrained = graph.constrain(domain)
    edges = graph.edges()
    kept = constrained.has_edges(edges)
    _edges(ax, locations, edges[~kept], colors="0.85", linewidths=0.8, linestyles=":", label="edge lost", zorder=1)
    _edges(ax, locations, edges[kept], colors="0.55", linewidths=0.9, label="edge of $G^C$", zorder=1)
    _edges(ax, locations, fixed.added, colors=COLOURS[2], linewidths=2.6, label="edge added", zorder=2)
    kinds = {
        "excluded": (~domain, dict(marker="x", s=18, color="0.75", linewidths=1)),
        "in the domain": (domain - Domain(locations, alone), dict(marker="o", s=34, color=COLOURS[0])),
        "disconnected": (Domain(locations, np.setdiff1d(alone, bare)), dict(marker="D", s=44, color=COLOURS[4])),
        "isolated": (Domain(locations, bare), dict(marker="s", s=52, color=COLOURS[1])),
    }
    for label, (group, style) in kinds.items():
        if len(group):
            ax.scatter(*_km(locations, group.cells()).T, label=label, zorder=3, **style)
    if at is None and len(alone):
        at = int((bare if len(bare) else alone)[0])
    if at is not None and calibration == "graph":
        K = sensitivity_hull(constrained).vertices_km + _km(locations, check.one_cell(at, locations.size, "at"))
        ax.fill(*K.T, facecolor=COLOURS[5], alpha=0.25, edgecolor=COLOURS[5], lw=1.5, label=f"K at location {at}", zorder=0)
    ax.set_aspect("equal")
    ax.margins(0.06)
    ax.set_xlabel("east (km)")
    ax.set_ylabel("north (km)")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small", frameon=False)
    return ax


def releases(mechanism: KNorm, s: int, n: int = 200, *, ax: Any = None, colour: str = COLOURS[1], seed: int = 0) -> Any:
    """Where n releases from s fall (the area of a dot is its count), and the noise body K around s."""
    ax = new_axes(ax)
    locations, s = mechanism.locations, check.one_cell(s, mechanism.locations.size)
    here = _km(locations, s)
    cells, counts = np.unique(mechanism.release(np.full(n, s), rng=seed), return_counts=True)
    ax.scatter(*_km(locations, cells).T, s=400 * counts / n + 4, color=colour, alpha=0.8, linewidths=0, label="released")
    body = mechanism.body(mechanism.groups.shape(s)) * np.asarray(locations.scale) + here
    ax.plot(*np.vstack([body, body[:1]]).T, color=colour, lw=1.2, ls="--", label="sensitivity hull K")
    ax.plot(*here, marker="*", ms=13, color="white", mec="black", ls="none", label="true location")
    return ax


def error_curves(
    epsilons: Sequence[float], errors: Mapping[tuple[str, str], Sequence[float]], *, ax: Any = None, unit: str = "km"
) -> Any:
    """Mean error against epsilon. Keys are (policy, mechanism): a policy has a colour, a mechanism a line style."""
    ax = new_axes(ax)
    policies, mechanisms = (list(dict.fromkeys(key[i] for key in errors)) for i in (0, 1))
    for (policy, mechanism), values in errors.items():
        i, j = policies.index(policy), mechanisms.index(mechanism)
        ax.plot(
            epsilons, values, color=COLOURS[i % len(COLOURS)], ls=("-", "--", ":", "-.")[j % 4],
            marker=MARKERS[i % len(MARKERS)], ms=5, label=f"{policy}, {mechanism}",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(list(epsilons), [f"{e:g}" for e in epsilons])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.set_xlabel("epsilon (less noise to the right)")
    ax.set_ylabel(f"mean error ({unit})")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", ncols=2)
    return ax
