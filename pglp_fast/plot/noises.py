"""The noise at a location: the body K, how far it reaches, and the exact probabilities of what is released."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from ..errors import InvalidParameter, TooLarge
from ..locations import Grid, Locations
from ..mechanisms.base import Mechanism
from ..mechanisms.knorm import PPIM, KNorm
from ..mechanisms.remapped import Remapped
from ..sensitivity import sensitivity_hull
from .maps import around, box_of, km, new_map, show_values, widen, zoom
from .style import COLOURS, DASHES, MAP_LAYOUT, TRUE, colour_bar, legend_below, new_axes

_NAMES = {"PPIM": "P-PIM", "PLM": "P-LM", "PlanarLaplace": "planar Laplace", "GraphExponential": "graph-exponential"}
_ALL = 64  # outputs that are all shown; of more, those that hold nearly all of the probability
_NEARLY = 0.999
_SHARES = (0.5, 0.9, 0.99)  # contours that are drawn unless told, those that fit
_LOG_RANGE = 1e3  # probabilities further apart than this are shown on a logarithmic scale ...
_LOG_FLOOR = 1e-6  # ... that starts at this share of the largest
_FEW_DOTS = 20  # points that have their probability written above them
_ROOM = (20.0, 10.0)  # width and height in points that a number takes


def noise(
    mechanism: Mechanism,
    s: int,
    *,
    shares: tuple[float, ...] | None = None,
    log: bool | None = None,
    numbers: bool | None = None,
    ax: Any = None,
) -> Any:
    """What a mechanism makes of location s.

    The exact Pr(z|s) of every output as a colour. For mechanisms that add noise (P-PIM, P-LM, planar Laplace) also the noise
    body K around s, the sensitivity hull where it is another one, and contours within which the given shares of the noise
    fall, before it is snapped to a location: copies of K, since the density depends on ||z - f(s)||_K alone.

    Parameters
    ----------
    shares : of the noise, each above 0 and below 1; unless told 0.5, and 0.9 and 0.99 where they fit
    log : logarithmic colours; unless told, where probabilities that matter are more than 1,000 apart
    numbers : write the probabilities into the map; unless told, where there is room
    ax : where to draw; a new figure unless told

    Notes
    -----
    Where the output set is too large for exact probabilities, K and the contours are drawn alone.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"the first argument must be a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...), ...")
    for share in shares or ():
        if not 0 < check.positive(share, "shares") < 1:
            raise InvalidParameter(f"shares must be above 0 and below 1, got {share!r}: 0.5 is half of the noise")
    locations, s = mechanism.locations, mechanism._check_inside(s)
    try:
        outputs, p = mechanism.pmf(s)
    except TooLarge:
        if not isinstance(mechanism, KNorm):
            raise
        outputs, p = np.array([s], check.CELL), None
    here = km(locations, s)
    outlines: list[tuple[NDArray[np.float64], dict[str, Any]]] = []
    box = box_of(locations, outputs if p is None or len(outputs) <= _ALL else _likely(outputs, p))
    if isinstance(mechanism, KNorm):
        outlines = _outlines(mechanism, s, here)
        box = around(box, *(_box(corners) for corners, _ in outlines))
        contours = _contours(mechanism, s, here, shares or _SHARES)
        for i, (corners, style) in enumerate(contours):
            if shares is not None or i == 0:
                box = around(box, _box(corners))
            if around(box, _box(corners)) == box:
                outlines.append((corners, style))
    box = widen(box, 0.05)
    ax = new_map(ax, box)
    zoom(ax, box)
    if p is not None:
        _probabilities(ax, locations, s, outputs, p, log, numbers)
    for corners, style in outlines:
        ax.plot(*np.vstack([corners, corners[:1]]).T, zorder=4, **style)
    own = "" if p is None else f", Pr(s | s) = {_short(float(p[outputs == s][0]))}"
    ax.plot(*here, **TRUE, label=f"true location {s}{own}")
    zoom(ax, box)  # pictures of cells reset it
    name = type(mechanism.mechanism if isinstance(mechanism, Remapped) else mechanism).__name__
    remapped = ", remapped" if isinstance(mechanism, Remapped) else ""
    ax.set_title(f"{_NAMES.get(name, name)}{remapped}, epsilon = {mechanism.epsilon:.4g}", fontsize="medium")
    legend_below(ax)
    return ax


def _outlines(mechanism: KNorm, s: int, here: NDArray[np.float64]) -> list[tuple[NDArray[np.float64], dict[str, Any]]]:
    """The noise body K around s, and the sensitivity hull if K is another body; nothing where there is no noise."""
    body = mechanism.body(mechanism.groups.shape(s)) * np.asarray(mechanism.locations.scale)
    if len(body) < 2:
        return []
    out = [(body + here, dict(lw=1.8, color=COLOURS[1], label="noise body K"))]
    if not isinstance(mechanism, PPIM):
        hull = sensitivity_hull(mechanism.graph, None if mechanism.calibration == "graph" else s).vertices_km
        out.append((hull + here, dict(lw=1.3, color=COLOURS[2], ls="-.", label="sensitivity hull")))
    return out


def _contours(
    mechanism: KNorm, s: int, here: NDArray[np.float64], shares: tuple[float, ...]
) -> list[tuple[NDArray[np.float64], dict[str, Any]]]:
    """Copies of K that hold given shares of the noise, the smallest first."""
    body = mechanism.body(mechanism.groups.shape(s)) * np.asarray(mechanism.locations.scale)
    if len(body) < 2:
        return []
    return [
        (
            _radius(share, len(body), mechanism.epsilon) * body + here,
            dict(lw=1.2, color="0.25", ls=DASHES[1 + i % 3], label=f"{100 * share:.3g} % of the noise"),
        )
        for i, share in enumerate(sorted(shares))
    ]


def _box(corners: NDArray[np.float64]) -> tuple[float, float, float, float]:
    (west, south), (east, north) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
    return west, east, south, north


def _likely(outputs: check.Cells, p: NDArray[np.float64]) -> check.Cells:
    """The outputs that hold nearly all of the probability."""
    order = np.argsort(-p, kind="stable")
    return outputs[order[: int(np.searchsorted(np.cumsum(p[order]), _NEARLY)) + 1]]


def _short(p: float) -> str:
    """A probability in four signs."""
    if p == 0 or p > 0.9995:
        return f"{p:.0f}"
    return "<.001" if p < 0.0005 else f"{p:.3f}".lstrip("0")


def _radius(share: float, corners: int, epsilon: float) -> float:
    """r such that r K holds that share of the noise: ||noise||_K is Gamma(2, 1/eps), on a segment Gamma(1, 1/eps)."""
    from scipy.special import gammaincinv

    return float(gammaincinv(1 if corners == 2 else 2, share)) / epsilon


def _probabilities(
    ax: Any,
    locations: Locations,
    s: int,
    outputs: check.Cells,
    p: NDArray[np.float64],
    log: bool | None,
    numbers: bool | None,
) -> None:
    from matplotlib.colors import LogNorm, Normalize

    said, high = p > 0, float(p.max())
    low = float(p[p >= _LOG_FLOOR * high].min())
    logarithmic = high > _LOG_RANGE * low if log is None else log
    norm = LogNorm(low, high) if logarithmic and low < high else Normalize(0.0, high)
    colours = np.where(said, np.maximum(p, low) if isinstance(norm, LogNorm) else p, np.nan)
    shown = show_values(ax, locations, outputs, colours, cmap="Blues", norm=norm, area=_area(len(outputs)))
    if not isinstance(locations, Grid):
        shown.set(edgecolor="0.4", linewidth=0.5)
    colour_bar(ax, shown, f"Pr(z | s = {s})")
    if not said.all():
        ax.plot(*km(locations, outputs[~said]).T, marker="x", ms=5, color="0.6", ls="none", label="never released", zorder=3)
    written = said & (outputs != s)  # there stands the star: the legend has its number
    if numbers or (numbers is None and _room(ax, locations, len(outputs))):
        from matplotlib.patheffects import withStroke

        inside = isinstance(locations, Grid)
        for xy, value in zip(km(locations, outputs[written]).tolist(), p[written].tolist()):
            dark = inside and norm(value) > 0.6
            halo = [] if inside else [withStroke(linewidth=1.5, foreground="white", alpha=0.7)]
            ax.annotate(
                _short(value), xy, xytext=(0, 0 if inside else 12), textcoords="offset points", ha="center", va="center",
                fontsize="x-small", color="white" if dark else "black", zorder=5, path_effects=halo,
            )  # fmt: skip


def _room(ax: Any, locations: Locations, count: int) -> bool:
    """Whether there are few numbers, and each fits in its cell."""
    if not isinstance(locations, Grid) or count > _ALL:
        return count <= _FEW_DOTS
    width, height = ax.get_position().size * ax.figure.get_size_inches() * 72
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    scale = min(width / (east - west), height / (north - south))  # points for a km
    return all(scale * side >= room for side, room in zip(locations.scale, _ROOM))


def _area(count: int) -> float:
    return float(np.clip(9_000 / max(count, 1), 12.0, 260.0))


def releases(mechanism: Mechanism, s: int, n: int = 200, *, ax: Any = None, colour: str = COLOURS[1], seed: int = 0) -> Any:
    """Where n releases from s fall (the area of a dot is its count), and the noise body K around s if there is one.

    Made to be drawn upon a map: with an ``ax`` of yours, limits and legend are yours too.
    """
    locations, s = mechanism.locations, check.one_cell(s, mechanism.locations.size)
    here = km(locations, s)
    cells, counts = np.unique(mechanism.release(np.full(n, s), rng=seed), return_counts=True)
    axes = new_axes(ax, layout=MAP_LAYOUT)
    axes.scatter(*km(locations, cells).T, s=400 * counts / n + 4, color=colour, alpha=0.8, linewidths=0, label="released")
    if isinstance(mechanism, KNorm):
        body = mechanism.body(mechanism.groups.shape(s)) * np.asarray(locations.scale) + here
        name = "sensitivity hull K" if isinstance(mechanism, PPIM) else "noise body K"
        axes.plot(*np.vstack([body, body[:1]]).T, color=colour, lw=1.2, ls="--", label=name)
    axes.plot(*here, marker="*", ms=13, color="white", mec="black", ls="none", label="true location")
    axes.set_aspect("equal")
    axes.set_xlabel("east (km)")
    axes.set_ylabel("north (km)")
    if ax is None:
        legend_below(axes)
    return axes
