"""How pictures look: colours, markers, and where a legend goes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import need

# Okabe and Ito's palette: told apart by all common kinds of colour vision
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)
# makes room around axes of equal aspect, where "constrained" may clip a title
MAP_LAYOUT = "compressed"
MAX_EDGES = 20_000  # that a picture can show
FEW_EDGES = 300  # that are drawn bold
_LONG = 26  # letters of a label of which two stand side by side, not three

# what is released may be what is true: the smaller mark is on top
TRUE: dict[str, Any] = dict(
    marker="*", ms=17, color="white", mec="black", mew=1.1, ls="none", zorder=6
)
RELEASED: dict[str, Any] = dict(
    marker="X", ms=8, color=COLOURS[1], mec="white", mew=0.9, ls="none", zorder=7
)


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    return need("matplotlib.pyplot", "plot", "pictures need")


def new_axes(
    ax: Any = None, size: tuple[float, float] = (5.0, 5.0), *, layout: str = "constrained"
) -> Any:
    """``ax``, or axes of a new figure of so many inches."""
    return pyplot().subplots(figsize=size, layout=layout)[1] if ax is None else ax


def fills(count: int) -> NDArray[np.float64]:
    """So many colours for areas, (count, 3), all different: the palette without black, then
    lighter and lighter shades of it."""
    base = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS[:-1]])
    shades = -(-count // len(base))
    white = np.arange(shades)[:, None, None] / shades
    return np.asarray((base * (1 - white) + white).reshape(-1, 3)[:count])


def makes_room(ax: Any) -> bool:
    """Whether the figure has a layout (constrained, tight) that makes room for what stands
    outside the axes."""
    return ax.figure.get_layout_engine() is not None


def legend_below(ax: Any) -> None:
    """A legend under the axis label, where no data is; inside where the figure makes no room for
    it."""
    from matplotlib.transforms import ScaledTranslation

    labels = ax.get_legend_handles_labels()[1]
    if not labels:
        return
    if makes_room(ax):
        # in points: for maps of any height
        below = ax.transAxes + ScaledTranslation(0, -38 / 72, ax.figure.dpi_scale_trans)
        columns = 2 if len(labels) in (2, 4) or max(map(len, labels)) > _LONG else 3
        place: dict[str, Any] = dict(
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=below,
            ncols=columns,
            frameon=False,
            columnspacing=1.2,
            handletextpad=0.5,
            borderaxespad=0.0,
        )
    else:
        place = dict(loc="best")
    ax.legend(**place, fontsize="small")


def legend_beside(ax: Any, **options: Any) -> None:
    """A legend to the right; inside, where least data is, where the figure makes no room for it."""
    if ax.get_legend_handles_labels()[0]:
        outside = dict(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, alignment="left"
        )
        ax.legend(**(outside if makes_room(ax) else dict(loc="best")), fontsize="small", **options)


def colour_bar(ax: Any, shown: Any, label: str) -> Any:
    """A colour bar, as high as the map is drawn where the figure makes room for it."""
    place = dict(cax=ax.inset_axes((1.02, 0.0, 0.04, 1.0))) if makes_room(ax) else dict(ax=ax)
    return ax.figure.colorbar(shown, label=label, **place)
