"""Charts as inline SVG: text and lines take their colours from the page, so one drawing serves
light, dark and paper."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

_W, _H = 400, 250  # about the width of a phone: text stays legible there
_MOST = 0.99  # share at which the axis of distances ends
_TALL = 2.0  # times the largest mean that bands may take
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 26, 42


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


def _frame(
    x: tuple[float, float], y: tuple[float, float], x_label: str, y_label: str, percent: bool
) -> tuple[Any, Any, list[str]]:
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
        parts.append(
            f'<line class="axis" x1="{at}" x2="{at}" y1="{_H - _BOTTOM}" y2="{_H - _BOTTOM + 4}"/>'
        )
        parts.append(f'<text x="{at}" y="{_H - _BOTTOM + 17}" text-anchor="middle">{v:g}</text>')
    parts.append(
        f'<line class="axis" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{_H - _BOTTOM}" '
        f'y2="{_H - _BOTTOM}"/>'
    )
    middle = (_LEFT + _W - _RIGHT) / 2
    parts.append(
        f'<text class="label" x="{short(middle)}" y="{_H - 6}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    parts.append(f'<text class="label" x="4" y="13">{escape(y_label)}</text>')
    return px, py, parts


def _whole(kind: str, description: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {_W} {_H}" role="img" '
        f'aria-label="{escape(description)}">{body}</svg>'
    )


def time_chart(series: dict[str, dict[str, Any]], y_label: str, description: str) -> str:
    """Mean of each series at each step, with a band where its interval is. For people the first
    step is number 1."""
    series = {name: s | {"step": [t + 1 for t in s["step"]]} for name, s in series.items()}
    tallest = max(v for s in series.values() for v in s["mean"])
    highs = [h for s in series.values() for h in s["high"] if math.isfinite(h)]
    # of few users an interval is wider than all there is to see
    top = min(max([tallest, *highs]), _TALL * tallest)
    steps = [v for s in series.values() for v in s["step"]]
    span = (
        (min(steps), max(steps))
        if max(steps) > min(steps)
        else (min(steps) - 0.5, max(steps) + 0.5)
    )
    px, py, parts = _frame(span, (0.0, (top or 1.0) * 1.05), "step", y_label, False)
    for name, s in series.items():
        band = [
            (px(t), py(min(a, top)), py(min(b, top)))
            for t, a, b in zip(s["step"], s["low"], s["high"], strict=True)
            if math.isfinite(b)
        ]
        if len(band) > 1:
            there = " ".join(f"{short(x)},{short(b)}" for x, _, b in band)
            back = " ".join(f"{short(x)},{short(a)}" for x, a, _ in reversed(band))
            parts.append(f'<polygon class="band {name}" points="{there} {back}"/>')
    for name, s in series.items():
        points = " ".join(
            f"{short(px(t))},{short(py(v))}" for t, v in zip(s["step"], s["mean"], strict=True)
        )
        if len(s["step"]) == 1:
            parts.append(
                f'<circle class="dot {name}" cx="{points.split(",")[0]}" '
                f'cy="{points.split(",")[1]}" r="4"/>'
            )
        else:
            parts.append(f'<polyline class="line {name}" points="{points}"/>')
    return _whole("time", description, parts)


def share_chart(series: dict[str, dict[str, Any]], x_label: str, description: str) -> str:
    """Share of releases within a distance, a staircase for each series.

    The axis ends where ``_MOST`` of every series are: a few far ones would squeeze the others."""
    widest = max(_reach(s) for s in series.values()) or 1.0
    px, py, parts = _frame((0.0, widest * 1.02), (0.0, 1.0), x_label, "share of releases", True)
    for name, s in series.items():
        path = f"M{short(px(0))} {short(py(0))}"
        for x, y in zip(s["km"], s["share"], strict=True):
            if x > widest * 1.02:
                break
            path += f"H{short(px(x))}V{short(py(y))}"
        parts.append(f'<path class="line {name}" d="{path}H{short(px(widest * 1.02))}"/>')
    return _whole("share", description, parts)


def _reach(s: dict[str, Any]) -> float:
    """The distance within which ``_MOST`` of a series are."""
    return float(next(x for x, y in zip(s["km"], s["share"], strict=True) if y >= _MOST))


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
        parts.append(
            f'<text class="label" x="{left}" y="{y + 11}">{escape(label)}: {value:.3f} km</text>'
        )
        parts.append(
            f'<rect class="bar {name}" x="{left}" y="{y + 16}" width="{short(px(value) - left)}" '
            'height="14"/>'
        )
    parts.append(
        f'<text class="label" x="{_W / 2:g}" y="{height - 6}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    body = "".join(parts)
    return (
        f'<svg class="chart bars" viewBox="0 0 {_W} {height}" role="img" '
        f'aria-label="{escape(description)}">{body}</svg>'
    )
