"""Small multiples of curves with confidence bands.

Drawn without a screen, and the same every time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pglp_fast._util.storage import replacing
from pglp_fast.plot import COLOURS, MARKERS, pyplot

from .rows import Row, select

_STYLES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Line:
    """A series to draw; ``look`` numbers its colour, marker and dashes.

    ``use``: "mean" with its band, or "exact".
    """

    label: str
    rows: Sequence[Row]
    look: int
    use: str = "mean"
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture of a row of pictures."""

    title: str
    lines: Sequence[Line]
    xlabel: str
    ylabel: str
    logx: bool = False
    logy: bool = False
    markers: bool = True


def lines_of(
    rows: Iterable[Row], field: str, values: Iterable[str], *, use: str = "mean", **wanted: str
) -> list[Line]:
    """A line for each value of a field, of the rows that are as wanted."""
    return [
        Line(value, select(rows, **{field: value}, **wanted), i, use)
        for i, value in enumerate(values)
    ]


def draw(
    panels: Sequence[Panel], *, columns: int = 3, same_y: bool = False, height: float = 2.9
) -> Any:
    """A figure of panels, row by row, with one legend below for all.

    ``same_y``: panels of a row share their scale.
    """
    pyplot()  # or an error that says how to get it
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.3 * columns, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey="row" if same_y else False)
    handles: dict[str, Any] = {}
    for ax, panel in zip(axes.flat, panels, strict=False):
        _panel(ax, panel, handles)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, panel in zip(axes.flat, panels, strict=False):
        if not panel.logy:
            ax.set_ylim(bottom=0)  # last, for axes that are shared
        if same_y:
            ax.label_outer(remove_inner_ticks=False)
            ax.xaxis.set_tick_params(labelbottom=True)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(len(handles), 2 * columns),
        fontsize="small",
        frameon=False,
    )
    return figure


def save(figure: Any, path: Path) -> Path:
    """As PNG or SVG, by the ending; without dates or random names: the same figure gives the
    same file."""
    import matplotlib

    metadata = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "pglp_fast"}), replacing(path) as beside:
        figure.savefig(beside, dpi=110, metadata=metadata)
    return path


def _panel(ax: Any, panel: Panel, handles: dict[str, Any]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for line in panel.lines:
        if not line.rows:
            continue
        rows = sorted(line.rows, key=lambda row: row.x)
        x = np.array([row.x for row in rows])
        y = np.array(
            [np.nan if (v := getattr(row, line.use)) is None else v for row in rows], float
        )
        colour = COLOURS[line.look % len(COLOURS)]
        style = "--" if line.dashed else _STYLES[(line.look // len(COLOURS)) % len(_STYLES)]
        marker = MARKERS[line.look % len(MARKERS)] if panel.markers else None
        (drawn,) = ax.plot(x, y, color=colour, ls=style, marker=marker, ms=4.5, lw=1.4)
        handles.setdefault(line.label, drawn)
        if line.use == "mean":
            low, high = np.array([[row.low, row.high] for row in rows], float).T
            if np.isfinite(high).all():
                ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    ticks = sorted({row.x for line in panel.lines for row in line.rows})
    if panel.logx:
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{v:g}" for v in ticks])
        ax.minorticks_off()
    if panel.logy:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
    ax.set_title(panel.title, fontsize="medium")
    ax.set_xlabel(panel.xlabel, fontsize="small")
    ax.set_ylabel(panel.ylabel, fontsize="small")
    ax.tick_params(labelsize="small")
    ax.grid(alpha=0.3)
