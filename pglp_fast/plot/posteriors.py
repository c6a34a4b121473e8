"""What the adversary believes: a distribution over the map."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations

from .maps import (
    Box,
    box_of,
    dot_area,
    km,
    new_map,
    one_each,
    paint,
    show_values,
    whole,
    widen,
    within,
    zoom,
)
from .style import RELEASED, TRUE, colour_bar, legend_below

_DECADES = 1e-6  # a logarithmic scale starts at this share of the largest probability
_GREY = (0.86, 0.86, 0.86)
_SUM = 1e-6  # a distribution may be off by this much


def posterior(
    locations: Locations,
    p: ArrayLike,
    *,
    true: int | None = None,
    released: int | None = None,
    log: bool = False,
    share: float | None = 0.99,
    label: str = "probability",
    ax: Any = None,
) -> Any:
    """A distribution over the locations as colours; what is impossible is grey.

    Parameters
    ----------
    p : one probability for each location, such as ``Stream.posterior(u)``
    true, released : locations to mark
    log : logarithmic colours, over six decades at most; smaller probabilities take the lowest
        colour
    share : the picture is zoomed to the most likely locations that hold this share of the mass, and
        to the marks; None for the whole map
    label : of the colour bar
    ax : where to draw; a new figure unless told
    """
    from_map = one_each(locations, p, "p")
    bad = np.flatnonzero(~(np.isfinite(from_map) & (from_map >= 0)))
    if bad.size:
        raise InvalidParameter(f"p[{bad[0]}] = {from_map[bad[0]]} is not a probability")
    if abs(from_map.sum() - 1) > _SUM:
        raise InvalidParameter(
            f"p sums to {from_map.sum():.9g}: it must be a distribution; divide it by its sum"
        )
    if share is not None and not 0 < check.positive(share, "share") <= 1:
        raise InvalidParameter(
            f"share must be above 0 and at most 1, got {share!r}: 0.99 shows where 99 % of the "
            "mass is"
        )
    marks = {
        "true location": (true, TRUE, "true"),
        "released": (released, RELEASED, "released"),
    }
    at = {
        k: check.one_cell(s, locations.size, name)
        for k, (s, _, name) in marks.items()
        if s is not None
    }
    possible = np.flatnonzero(from_map > 0).astype(check.CELL)
    high = float(from_map.max())
    low = max(float(from_map[possible].min()), _DECADES * high)
    box = everything = whole(locations)
    if share is not None:
        box = within(
            widen(box_of(locations, [*_heaviest(from_map, share), *at.values()]), 0.1), everything
        )
    ax = new_map(ax, box)
    from matplotlib.colors import LogNorm, Normalize

    norm = LogNorm(low, high) if log and low < high else Normalize(0.0, high)
    values = (
        np.maximum(from_map[possible], low) if isinstance(norm, LogNorm) else from_map[possible]
    )
    shown = show_values(ax, locations, possible, values, cmap="YlGnBu", norm=norm)
    colour_bar(ax, shown, label)
    _impossible(ax, locations, from_map == 0, box)
    for name, s in at.items():
        ax.plot(*km(locations, s), **marks[name][1], label=name)
    zoom(ax, box, locations)
    legend_below(ax)
    return ax


def _impossible(ax: Any, locations: Locations, cells: NDArray[np.bool_], box: Box) -> None:
    """Grey where probability is 0, as far as it is seen."""
    where = np.flatnonzero(cells).astype(check.CELL)
    (x, y), half = km(locations, where).T, np.asarray(locations.scale) / 2
    seen = (
        (x + half[0] > box[0])
        & (x - half[0] < box[1])
        & (y + half[1] > box[2])
        & (y - half[1] < box[3])
    )
    where = where[seen]
    if len(where):
        paint(
            ax,
            locations,
            where,
            np.tile((*_GREY, 1.0), (len(where), 1)),
            area=dot_area(locations.size) / 2,
        )
        marker = "s" if isinstance(locations, Grid) else "o"
        ax.plot(
            [],
            [],
            marker=marker,
            ms=8,
            ls="none",
            color=_GREY,
            mec="0.6",
            mew=0.5,
            label="impossible",
        )


def _heaviest(p: NDArray[np.float64], share: float) -> list[int]:
    """The fewest locations that hold that share of the mass, or all that are possible."""
    order = np.argsort(-p, kind="stable")
    count = int(np.searchsorted(np.cumsum(p[order]), share * p.sum() * (1 - 1e-12))) + 1
    return list(order[:count][p[order[:count]] > 0].tolist())
