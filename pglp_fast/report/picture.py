"""The policy drawn as inline SVG: components as tinted cells within outlines, and edges where
they are few."""

import math
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.policy.outlines import colour_apart, touching

from . import limits
from .charts import short

TINTS = 5
_HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path class="hatch" d="M0 5L5 0"/></pattern></defs>'
)


def outline(graph: pf.PolicyGraph) -> list[list[int]] | None:
    """The policy as the map shows it, or None if that is too much.

    On a grid, ``[across, upwards]``: where neighbouring cells are of different components, as
    (line, from, to) end to end; line r across runs below row r, line c upwards runs west of column
    c. Elsewhere ``[edges]``, as pairs end to end."""
    grid = graph.locations
    if not isinstance(grid, pf.Grid):
        return [graph.edges().ravel().tolist()] if graph.n_edges <= limits.PICTURE_EDGES else None
    found = _both_strokes(_labels(graph).reshape(grid.rows, grid.cols))
    return found if sum(map(len, found)) <= 3 * limits.OUTLINE else None


def _labels(graph: pf.PolicyGraph) -> NDArray[np.int64]:
    """The component of each location; -1 for all that have no edges, which need no line between
    them."""
    return np.where(graph.degrees() > 0, graph.components.astype(np.int64), -1)


def _both_strokes(label: NDArray[Any]) -> list[list[int]]:
    return [_strokes(label[1:] != label[:-1]), _strokes((label[:, 1:] != label[:, :-1]).T)]


def _strokes(differs: NDArray[np.bool_]) -> list[int]:
    """Runs of True in each row, as (row + 1, first, after the last) end to end."""
    if not differs.size:
        return []
    padded = np.zeros((differs.shape[0], differs.shape[1] + 2), np.int8)
    padded[:, 1:-1] = differs
    change = np.diff(padded, axis=1)
    row, first = np.nonzero(change == 1)
    after = np.nonzero(change == -1)[1]
    return np.stack([row + 1, first, after], axis=1).ravel().tolist()


def policy_picture(graph: pf.PolicyGraph, near: int) -> tuple[str, str]:
    """(SVG, what it shows) of the policy around a location."""
    if isinstance(graph.locations, pf.Grid):
        return _grid_picture(graph, graph.locations, near)
    return _points_picture(graph, near)


def _window(grid: pf.Grid, near: int, side: int) -> tuple[int, int, int, int]:
    """(first row, rows, first column, columns) of a window of at most side x side cells around a
    cell."""
    rows, cols = min(side, grid.rows), min(side, grid.cols)
    r = min(max(near // grid.cols - rows // 2, 0), grid.rows - rows)
    c = min(max(near % grid.cols - cols // 2, 0), grid.cols - cols)
    return r, rows, c, cols


def _grid_picture(graph: pf.PolicyGraph, grid: pf.Grid, near: int) -> tuple[str, str]:
    side = limits.PICTURE_CELLS
    while True:
        r0, rows, c0, cols = _window(grid, near, side)
        cells = ((r0 + np.arange(rows))[:, None] * grid.cols + c0 + np.arange(cols)).astype(
            np.int32
        )
        part = graph.constrain(pf.Domain(grid, cells.ravel()))
        if part.n_edges <= limits.PICTURE_EDGES or len(graph.extra_indices) == 0 or side <= 8:
            break
        side -= 4
    dx, dy = grid.scale
    ux, uy = 10.0, 10.0 * dy / dx  # of the drawing, for a cell
    width, height = short(cols * ux), short(rows * uy)
    label = _labels(graph)[cells]
    lonely = label < 0
    parts = [
        _fills(np.where(lonely, -1, _tints(label)), ux, uy),
        f'<path class="outline" d="{_borders(label, ux, uy)}"/>',
    ]
    shown = part.edges() if part.n_edges <= limits.PICTURE_EDGES else np.empty((0, 2), np.int32)
    if len(shown):
        ends = np.stack(
            [(shown % grid.cols - c0 + 0.5) * ux, (rows - (shown // grid.cols - r0) - 0.5) * uy],
            axis=-1,
        )
        parts.append(_segments(ends))
    parts.append(f'<rect class="edge-of-map" x="0" y="0" width="{width}" height="{height}"/>')
    whole = rows == grid.rows and cols == grid.cols
    where = (
        "The whole map"
        if whole
        else f"{rows} x {cols} of {grid.rows} x {grid.cols} cells, {cols * dx:.3g} km across"
    )
    if len(shown):
        what = "lines are edges: the two cells may not be told apart"
    elif len(graph.extra_indices) == 0:
        what = "all cells within an outline are joined, each pair by an edge"
    else:
        what = "cells within an outline are joined, directly or through others"
    if lonely.any():
        what += "; hatched cells have no edges: the policy lets them be disclosed"
    return _picture(
        f"-1 -1 {short(cols * ux + 2)} {short(rows * uy + 2)}",
        f"{where}; {what}.",
        _HATCH + "".join(parts),
    )


def _picture(box: str, text: str, body: str) -> tuple[str, str]:
    said = escape(f"Picture of the policy. {text}")
    return f'<svg class="policy" viewBox="{box}" role="img" aria-label="{said}">{body}</svg>', text


def _segments(ends: NDArray[np.float64]) -> str:
    """Lines between the two points of each row, (m, 2, 2)."""
    lines = "".join(
        f"M{short(a[0])} {short(a[1])}L{short(b[0])} {short(b[1])}" for a, b in ends.tolist()
    )
    return f'<path class="edges" d="{lines}"/>'


def _fills(tint: NDArray[np.int64], ux: float, uy: float) -> str:
    """Cells filled by their tint, row by row in runs; -1 hatched."""
    runs: dict[int, list[str]] = {}
    for r, row in enumerate(tint):
        y = short((len(tint) - 1 - r) * uy)
        cuts = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
        for a, b in pairwise(cuts):
            wide = short((b - a) * ux)
            runs.setdefault(int(row[a]), []).append(
                f"M{short(a * ux)} {y}h{wide}v{short(uy)}h-{wide}z"
            )
    return "".join(
        f'<path class="{"lonely" if k < 0 else f"tint{k}"}" d="{"".join(d)}"/>'
        for k, d in sorted(runs.items())
    )


def _borders(label: NDArray[Any], ux: float, uy: float) -> str:
    across, upwards = _both_strokes(label)
    top = len(label)
    path = "".join(
        f"M{short(a * ux)} {short((top - r) * uy)}H{short(b * ux)}" for r, a, b in _triples(across)
    )
    return path + "".join(
        f"M{short(c * ux)} {short((top - a) * uy)}V{short((top - b) * uy)}"
        for c, a, b in _triples(upwards)
    )


def _triples(flat: list[int]) -> list[tuple[int, int, int]]:
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def _tints(label: NDArray[Any]) -> NDArray[np.int64]:
    """A colour for each component of a window, such that components that touch differ where few
    colours can do it."""
    codes = np.unique(label, return_inverse=True)[1].reshape(label.shape)
    chosen = colour_apart(int(codes.max(initial=0)) + 1, touching(codes))
    return np.asarray(np.where(chosen < TINTS, chosen, np.arange(len(chosen)) % TINTS)[codes])


def _points_picture(graph: pf.PolicyGraph, near: int) -> tuple[str, str]:
    locations = graph.locations
    xy = locations.lattice * np.asarray(locations.scale)
    order = np.argsort(((xy - xy[near]) ** 2).sum(axis=1), kind="stable")
    count = min(limits.POINTS, locations.size)
    while True:
        cells = np.sort(order[:count])
        part = graph.constrain(pf.Domain(locations, cells))
        if part.n_edges <= limits.PICTURE_EDGES or count <= 50:
            break
        count = max(50, count * 3 // 4)
    low, high = xy[cells].min(axis=0), xy[cells].max(axis=0)
    span = float(max(*(high - low), 1e-9))
    scale = 380 / span

    def at(cell: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((xy[cell] - low) * scale * [1, -1] + [0, (high - low)[1] * scale])

    shown = part.edges() if part.n_edges <= limits.PICTURE_EDGES else np.empty((0, 2), np.int32)
    lonely = graph.degrees()[cells] == 0
    radius = short(min(4.0, max(1.2, 120 / math.sqrt(len(cells)))))
    dots = "".join(
        f'<circle class="{"lonely-dot" if alone else "dot"}" cx="{short(x)}" cy="{short(y)}" '
        f'r="{radius}"/>'
        for (x, y), alone in zip(at(cells).tolist(), lonely.tolist(), strict=True)
    )
    width, height = ((high - low) * scale).tolist()
    where = "All locations"
    if count < locations.size:
        where = f"The {count:,} locations nearest to location {near}, of {locations.size:,}"
    what = (
        "lines are edges: the two may not be told apart"
        if len(shown) or not part.n_edges
        else "its edges are too many to draw"
    )
    if lonely.any():
        what += "; hollow dots have no edges: the policy lets them be disclosed"
    box = f"-8 -8 {short(width + 16)} {short(height + 16)}"
    return _picture(box, f"{where}, {span:.3g} km across; {what}.", _segments(at(shown)) + dots)
