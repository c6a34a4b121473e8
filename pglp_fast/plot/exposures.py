"""Why a location is exposed under a domain, and how the policy is repaired."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check

from .geography import latlon_axes
from .maps import draw_edges, km
from .style import COLOURS, MAP_LAYOUT, new_axes


def exposure(
    graph: pf.PolicyGraph,
    domain: pf.Domain,
    *,
    at: int | None = None,
    calibration: str = "graph",
    strategy: str = "min-area",
    ax: Any = None,
) -> Any:
    """Why a location is exposed under a domain, and how the policy is repaired.

    Locations by what the domain makes of them; edges that are left, lost and added; and, for the
    graph calibration, the sensitivity hull K of G^C around location ``at`` (the first isolated or
    disconnected one unless told): who has nobody else in that hull is isolated. Under the component
    calibration whoever is disconnected is."""
    locations = graph.locations
    fixed = pf.repair(graph, domain, strategy=strategy, calibration=calibration)
    alone, bare = (
        pf.disconnected(graph, domain),
        pf.isolated(graph, domain, calibration=calibration),
    )
    constrained = graph.constrain(domain)
    ax = new_axes(ax, (7.0, 4.6), layout=MAP_LAYOUT)
    _draw_edges(ax, graph, constrained, fixed.added)
    kinds = {
        "excluded": (~domain, dict(marker="x", s=18, color="0.75", linewidths=1)),
        "in the domain": (
            domain - pf.Domain(locations, alone),
            dict(marker="o", s=34, color=COLOURS[0]),
        ),
        "disconnected": (
            pf.Domain(locations, np.setdiff1d(alone, bare)),
            dict(marker="D", s=44, color=COLOURS[4]),
        ),
        "isolated": (pf.Domain(locations, bare), dict(marker="s", s=52, color=COLOURS[1])),
    }
    for label, (group, style) in kinds.items():
        if len(group):
            ax.scatter(*km(locations, group.cells()).T, label=label, zorder=3, **style)
    if at is None and len(alone):
        at = int((bare if len(bare) else alone)[0])
    if at is not None and calibration == "graph":
        here = km(locations, check.one_cell(at, locations.size, "at"))
        K = pf.sensitivity_hull(constrained).vertices_km + here
        ax.fill(
            *K.T,
            facecolor=COLOURS[5],
            alpha=0.25,
            edgecolor=COLOURS[5],
            lw=1.5,
            label=f"K at location {at}",
            zorder=0,
        )
    ax.set_aspect("equal")
    ax.margins(0.06)
    latlon_axes(ax, locations, bar=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small", frameon=False)
    return ax


def _draw_edges(
    ax: Any, graph: pf.PolicyGraph, constrained: pf.PolicyGraph, added: NDArray[np.int32]
) -> None:
    """Edges that the domain takes away, edges that it leaves, and edges of the repair."""
    edges = graph.edges()
    kept = constrained.has_edges(edges)
    lost = dict(colors="0.85", linewidths=0.8, linestyles=":", label="edge lost", zorder=1)
    left = dict(colors="0.55", linewidths=0.9, label="edge of $G^C$", zorder=1)
    new = dict(colors=COLOURS[2], linewidths=2.6, label="edge added", zorder=2)
    for some, style in ((edges[~kept], lost), (edges[kept], left), (added, new)):
        draw_edges(ax, graph.locations, some, **style)
