"""Pictures as inline SVG: text and lines take their colours from the page, so one drawing serves light, dark and paper."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..locations import Grid
from ..policy import PolicyGraph
from . import limits

_W, _H = 400, 250  # about the width of a phone: text stays legible there
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 26, 42
TINTS = 5


def short(x: float) -> str:
    """A coordinate, in as few characters as a picture needs."""
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within low..high, at most ``most`` steps apart."""
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _frame(x: tuple[float, float], y: tuple[float, float], x_label: str, y_label: str, percent: bool) -> tuple[Any, Any, list[str]]:
    """Scales and axes."""

    def px(v: float) -> float:
        return _LEFT + (v - x[0]) / ((x[1] - x[0]) or 1) * (_W - _LEFT - _RIGHT)

    def py(v: float) -> float:
        return _H - _BOTTOM - (v - y[0]) / ((y[1] - y[0]) or 1) * (_H - _TOP - _BOTTOM)

    parts = []
    for v in ticks(*y):
        at = short(py(v))
        text = f"{100 * v:g} %" if percent else f"{v:g}"
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at}" dy="0.35em" text-anchor="end">{text}</text>')
    for v in ticks(*x, most=6):
        at = short(px(v))
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{_H - _BOTTOM}" y2="{_H - _BOTTOM + 4}"/>')
        parts.append(f'<text x="{at}" y="{_H - _BOTTOM + 17}" text-anchor="middle">{v:g}</text>')
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{_H - _BOTTOM}" y2="{_H - _BOTTOM}"/>')
    middle = (_LEFT + _W - _RIGHT) / 2
    parts.append(f'<text class="label" x="{short(middle)}" y="{_H - 6}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text class="label" x="4" y="13">{escape(y_label)}</text>')
    return px, py, parts


def _whole(kind: str, description: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return f'<svg class="chart {kind}" viewBox="0 0 {_W} {_H}" role="img" aria-label="{escape(description)}">{body}</svg>'


def time_chart(series: dict[str, dict[str, Any]], y_label: str, description: str) -> str:
    """Mean of each series at each step, with a band where its interval is."""
    top = max(v for s in series.values() for v in [*s["mean"], *(h for h in s["high"] if math.isfinite(h))])
    steps = [v for s in series.values() for v in s["step"]]
    span = (min(steps), max(steps)) if max(steps) > min(steps) else (min(steps) - 0.5, max(steps) + 0.5)
    px, py, parts = _frame(span, (0.0, (top or 1.0) * 1.05), "step", y_label, False)
    for name, s in series.items():
        band = [(px(t), py(a), py(b)) for t, a, b in zip(s["step"], s["low"], s["high"], strict=True) if math.isfinite(b)]
        if len(band) > 1:
            there = " ".join(f"{short(x)},{short(b)}" for x, _, b in band)
            back = " ".join(f"{short(x)},{short(a)}" for x, a, _ in reversed(band))
            parts.append(f'<polygon class="band {name}" points="{there} {back}"/>')
    for name, s in series.items():
        points = " ".join(f"{short(px(t))},{short(py(v))}" for t, v in zip(s["step"], s["mean"], strict=True))
        if len(s["step"]) == 1:
            parts.append(f'<circle class="dot {name}" cx="{points.split(",")[0]}" cy="{points.split(",")[1]}" r="4"/>')
        else:
            parts.append(f'<polyline class="line {name}" points="{points}"/>')
    return _whole("time", description, parts)


def share_chart(series: dict[str, dict[str, Any]], x_label: str, description: str) -> str:
    """Share of releases within a distance, a staircase for each series."""
    widest = max(s["km"][-1] for s in series.values()) or 1.0
    px, py, parts = _frame((0.0, widest * 1.02), (0.0, 1.0), x_label, "share of releases", True)
    for name, s in series.items():
        path = f"M{short(px(0))} {short(py(0))}"
        for x, y in zip(s["km"], s["share"], strict=True):
            path += f"H{short(px(x))}V{short(py(y))}"
        parts.append(f'<path class="line {name}" d="{path}V{short(py(1))}H{short(px(widest * 1.02))}"/>')
    return _whole("share", description, parts)


def bar_chart(bars: Sequence[tuple[str, str, float]], x_label: str, description: str) -> str:
    """(class, label, value) one under the other."""
    top = max(v for _, _, v in bars) or 1.0
    height = 40 * len(bars) + 46
    parts = []
    left, right = 10, 10

    def px(v: float) -> float:
        return left + v / (top * 1.05) * (_W - left - right)

    for v in ticks(0.0, top * 1.05, most=6):
        at = short(px(v))
        parts.append(f'<line class="rule" x1="{at}" x2="{at}" y1="4" y2="{height - 42}"/>')
        parts.append(f'<text x="{at}" y="{height - 26}" text-anchor="middle">{v:g}</text>')
    for k, (name, label, value) in enumerate(bars):
        y = 6 + 40 * k
        parts.append(f'<text class="label" x="{left}" y="{y + 11}">{escape(label)}: {value:.3f} km</text>')
        parts.append(f'<rect class="bar {name}" x="{left}" y="{y + 16}" width="{short(px(value) - left)}" height="14"/>')
    parts.append(f'<text class="label" x="{_W / 2:g}" y="{height - 6}" text-anchor="middle">{escape(x_label)}</text>')
    body = "".join(parts)
    return f'<svg class="chart bars" viewBox="0 0 {_W} {height}" role="img" aria-label="{escape(description)}">{body}</svg>'


# -- the policy


def outline(graph: PolicyGraph) -> list[list[int]] | None:
    """The policy as the map shows it, or None if that is too much.

    On a grid, ``[across, upwards]``: where neighbouring cells are of different components, as (line, from, to) end to end; line r
    across runs below row r, line c upwards runs west of column c. Elsewhere ``[edges]``, as pairs end to end.
    """
    grid = graph.locations
    if not isinstance(grid, Grid):
        return [graph.edges().ravel().tolist()] if graph.n_edges <= limits.PICTURE_EDGES else None
    label = _labels(graph).reshape(grid.rows, grid.cols)
    found = [_strokes(label[1:] != label[:-1]), _strokes((label[:, 1:] != label[:, :-1]).T)]
    return found if sum(map(len, found)) <= 3 * limits.OUTLINE else None


def _labels(graph: PolicyGraph) -> NDArray[np.int64]:
    """The component of each location; -1 for all that have no edges, which need no line between them."""
    return np.where(graph.degrees() > 0, graph.components.astype(np.int64), -1)


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


def policy_picture(graph: PolicyGraph, near: int) -> tuple[str, str]:
    """(SVG, what it shows) of the policy around a location."""
    if isinstance(graph.locations, Grid):
        return _grid_picture(graph, graph.locations, near)
    return _points_picture(graph, near)


def _window(grid: Grid, near: int, side: int) -> tuple[int, int, int, int]:
    """(first row, rows, first column, columns) of a window of at most side x side cells around a cell."""
    rows, cols = min(side, grid.rows), min(side, grid.cols)
    r = min(max(near // grid.cols - rows // 2, 0), grid.rows - rows)
    c = min(max(near % grid.cols - cols // 2, 0), grid.cols - cols)
    return r, rows, c, cols


def _grid_picture(graph: PolicyGraph, grid: Grid, near: int) -> tuple[str, str]:
    side = limits.PICTURE_CELLS
    while True:
        r0, rows, c0, cols = _window(grid, near, side)
        cells = ((r0 + np.arange(rows))[:, None] * grid.cols + c0 + np.arange(cols)).astype(np.int32)
        part = graph.constrain(Domain(grid, cells.ravel()))
        if part.n_edges <= limits.PICTURE_EDGES or len(graph.extra_indices) == 0 or side <= 8:
            break
        side -= 4
    dx, dy = grid.scale
    ux, uy = 10.0, 10.0 * dy / dx
    width, height = cols * ux, rows * uy
    label = _labels(graph)[cells]
    lonely = label < 0
    tint = np.where(lonely, -1, _tints(label))
    runs: dict[int, list[str]] = {}
    for r in range(rows):
        row = tint[r]
        edges = np.flatnonzero(np.diff(row, prepend=row[0] - 9, append=row[-1] + 9))
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            y = short((rows - 1 - r) * uy)
            runs.setdefault(int(row[a]), []).append(f"M{short(a * ux)} {y}h{short((b - a) * ux)}v{short(uy)}h-{short((b - a) * ux)}z")
    parts = [f'<path class="{"lonely" if k < 0 else f"tint{k}"}" d="{"".join(d)}"/>' for k, d in sorted(runs.items())]
    across, upwards = _strokes(label[1:] != label[:-1]), _strokes((label[:, 1:] != label[:, :-1]).T)
    lines = "".join(
        f"M{short(a * ux)} {short((rows - r) * uy)}H{short(b * ux)}" for r, a, b in zip(*[iter(across)] * 3, strict=True)
    ) + "".join(
        f"M{short(c * ux)} {short((rows - a) * uy)}V{short((rows - b) * uy)}" for c, a, b in zip(*[iter(upwards)] * 3, strict=True)
    )
    parts.append(f'<path class="outline" d="{lines}"/>')
    shown = part.edges() if part.n_edges <= limits.PICTURE_EDGES else np.empty((0, 2), np.int32)
    if len(shown):
        r, c = shown // grid.cols - r0, shown % grid.cols - c0
        x, y = (c + 0.5) * ux, (rows - r - 0.5) * uy
        path = "".join(
            f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}" for (x1, x2), (y1, y2) in zip(x.tolist(), y.tolist(), strict=True)
        )
        parts.append(f'<path class="edges" d="{path}"/>')
    parts.append(f'<rect class="edge-of-map" x="0" y="0" width="{short(width)}" height="{short(height)}"/>')
    whole = rows == grid.rows and cols == grid.cols
    where = "The whole map" if whole else f"{rows} x {cols} of {grid.rows} x {grid.cols} cells, {cols * dx:.3g} km across"
    if len(shown):
        what = "lines are edges: the two cells may not be told apart"
    elif len(graph.extra_indices) == 0:
        what = "all cells within an outline are joined, each pair by an edge"
    else:
        what = "cells within an outline are joined, directly or through others"
    if lonely.any():
        what += "; hatched cells have no edges: the policy lets them be disclosed"
    box = f'viewBox="-1 -1 {short(width + 2)} {short(height + 2)}"'
    hatch = '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"><path class="hatch" d="M0 5L5 0"/></pattern></defs>'
    text = f"{where}; {what}."
    return f'<svg class="policy" {box} role="img" aria-label="Picture of the policy. {escape(text)}">{hatch}{"".join(parts)}</svg>', text


def _tints(label: NDArray[Any]) -> NDArray[np.int64]:
    """A colour for each component of a window, such that components that touch differ where few colours can do it."""
    codes = np.unique(label, return_inverse=True)[1].reshape(label.shape)
    pairs = [
        np.stack([codes[a], codes[b]], axis=-1).reshape(-1, 2)
        for a, b in (
            (np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1]), (np.s_[1:, 1:], np.s_[:-1, :-1]), (np.s_[1:, :-1], np.s_[:-1, 1:]),
        )
    ]  # fmt: skip
    touching = np.unique(np.concatenate(pairs), axis=0)
    around: dict[int, set[int]] = {}
    for a, b in touching.tolist():
        if a != b:
            around.setdefault(a, set()).add(b)
            around.setdefault(b, set()).add(a)
    chosen = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    done: set[int] = set()
    for k in range(len(chosen)):
        taken = {int(chosen[j]) for j in around.get(k, ()) if j in done}
        chosen[k] = next((c for c in range(TINTS) if c not in taken), k % TINTS)
        done.add(k)
    return np.asarray(chosen[codes])


def _points_picture(graph: PolicyGraph, near: int) -> tuple[str, str]:
    locations = graph.locations
    xy = locations.lattice * np.asarray(locations.scale)
    order = np.argsort(((xy - xy[near]) ** 2).sum(axis=1), kind="stable")
    count = min(limits.POINTS, locations.size)
    while True:
        cells = np.sort(order[:count])
        part = graph.constrain(Domain(locations, cells))
        if part.n_edges <= limits.PICTURE_EDGES or count <= 50:
            break
        count = max(50, count * 3 // 4)
    low, high = xy[cells].min(axis=0), xy[cells].max(axis=0)
    span = float(max(*(high - low), 1e-9))
    scale = 380 / span

    def at(cell: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((xy[cell] - low) * scale * [1, -1] + [0, (high - low)[1] * scale])

    shown = part.edges() if part.n_edges <= limits.PICTURE_EDGES else np.empty((0, 2), np.int32)
    ends = at(shown)
    path = "".join(f"M{short(a[0])} {short(a[1])}L{short(b[0])} {short(b[1])}" for a, b in ends.tolist())
    lonely = graph.degrees()[cells] == 0
    radius = short(min(4.0, max(1.2, 120 / math.sqrt(len(cells)))))
    dots = "".join(
        f'<circle class="{"lonely-dot" if alone else "dot"}" cx="{short(x)}" cy="{short(y)}" r="{radius}"/>'
        for (x, y), alone in zip(at(cells).tolist(), lonely.tolist(), strict=True)
    )
    width, height = ((high - low) * scale).tolist()
    where = "All locations" if count == locations.size else f"The {count:,} locations nearest to location {near}, of {locations.size:,}"
    what = "lines are edges: the two may not be told apart" if len(shown) or not part.n_edges else "its edges are too many to draw"
    if lonely.any():
        what += "; hollow dots have no edges: the policy lets them be disclosed"
    text = f"{where}, {span:.3g} km across; {what}."
    box = f'viewBox="-8 -8 {short(width + 16)} {short(height + 16)}"'
    parts = f'<path class="edges" d="{path}"/>{dots}'
    return f'<svg class="policy" {box} role="img" aria-label="Picture of the policy. {escape(text)}">{parts}</svg>', text
