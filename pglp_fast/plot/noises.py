"""The noise at a location: the noise polygon K, how far it reaches, and the exact probabilities of
what is released."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check
from pglp_fast.space.locations import Locations

from .geography import latlon_axes
from .maps import around, box_of, km, new_map, show_values, widen, zoom
from .style import COLOURS, DASHES, MAP_LAYOUT, TRUE, colour_bar, legend_below, new_axes

_ALL = 64  # outputs that are all shown; of more, those that hold nearly all of the probability
_NEARLY = 0.999
_SHARES = (0.5, 0.9, 0.99)  # contours that are drawn unless told, those that fit
_LOG_RANGE = 1e3  # probabilities further apart than this are shown on a logarithmic scale ...
_LOG_FLOOR = 1e-6  # ... that starts at this share of the largest
_FEW_DOTS = 20  # points that have their probability written above them
_ROOM = (20.0, 10.0)  # width and height in points that a number takes


def noise(
    mechanism: pf.Mechanism,
    s: int,
    *,
    shares: tuple[float, ...] | None = None,
    log: bool | None = None,
    numbers: bool | None = None,
    ax: Any = None,
) -> Any:
    """What a mechanism makes of location s.

    The exact Pr(z|s) of every output as a colour. For mechanisms that add noise (P-PIM, P-LM,
    planar Laplace) also the noise polygon K around s, the sensitivity hull where it is another one,
    and contours within which the given shares of the noise fall, before it is snapped to a
    location: copies of K, since the density depends on ||z - f(s)||_K alone.

    Parameters
    ----------
    shares : of the noise, each above 0 and below 1; unless told 0.5, and 0.9 and 0.99 where they
        fit
    log : logarithmic colours; unless told, where probabilities that matter are more than 1,000
        apart
    numbers : write the probabilities into the map; unless told, where there is room
    ax : where to draw; a new figure unless told

    Notes
    -----
    Where the output set is too large for exact probabilities, K and the contours are drawn alone.
    """
    if not isinstance(mechanism, pf.Mechanism):
        raise pf.InvalidParameter(
            f"the first argument must be a mechanism, got {type(mechanism).__name__}: pass "
            "pf.PPIM(...), ..."
        )
    for share in shares or ():
        if not 0 < check.positive(share, "shares") < 1:
            raise pf.InvalidParameter(
                f"shares must be above 0 and below 1, got {share!r}: 0.5 is half of the noise"
            )
    locations, s = mechanism.locations, mechanism.check_inside(s)
    here, K = km(locations, s), _polygon_km(mechanism, s)
    try:
        outputs, p = mechanism.pmf(s)
    except pf.TooLarge:
        if K is None:
            raise
        outputs, p = np.array([s], check.CELL), None
    outlines: list[tuple[NDArray[np.float64], dict[str, Any]]] = []
    box = box_of(locations, outputs if p is None or len(outputs) <= _ALL else _likely(outputs, p))
    if K is not None and len(K) > 1:
        outlines = _outlines(mechanism, s, K, here)
        box = around(box, *(_box(corners) for corners, _ in outlines))
        contours = _contours(K, mechanism.epsilon, here, shares or _SHARES)
        for i, (corners, style) in enumerate(contours):
            if shares is not None or i == 0:
                box = around(box, _box(corners))
            if around(box, _box(corners)) == box:
                outlines.append((corners, style))
    box = widen(box, 0.05)
    ax = new_map(ax, box)
    zoom(ax, box)  # for what depends on the size of a cell
    if p is not None:
        _probabilities(ax, locations, s, outputs, p, log, numbers)
    for corners, style in outlines:
        ax.plot(*np.vstack([corners, corners[:1]]).T, zorder=4, **style)
    own = "" if p is None else f", Pr(s | s) = {_short(float(p[outputs == s][0]))}"
    ax.plot(*here, **TRUE, label=f"true location {s}{own}")
    zoom(ax, box, locations)  # pictures of cells reset it
    remapped = ", remapped" if mechanism.source is not mechanism else ""
    ax.set_title(
        f"{mechanism.source.label}{remapped}, epsilon = {mechanism.epsilon:.4g}", fontsize="medium"
    )
    legend_below(ax)
    return ax


def _polygon_km(mechanism: pf.Mechanism, s: int) -> NDArray[np.float64] | None:
    """The noise polygon K of the group of s, in km; None where no noise is added."""
    K = mechanism.polygon(mechanism.noise_groups.shape(s))
    scale = np.asarray(mechanism.locations.scale) / mechanism.graph.denominator
    return None if K is None else K * scale


def _hull_km(mechanism: pf.Mechanism, s: int) -> NDArray[np.float64]:
    """The sensitivity hull of the group of s, in km."""
    whole = mechanism.calibration == "graph"
    return pf.sensitivity_hull(mechanism.graph, None if whole else s).vertices_km


def _outlines(
    mechanism: pf.Mechanism, s: int, K: NDArray[np.float64], here: NDArray[np.float64]
) -> list[tuple[NDArray[np.float64], dict[str, Any]]]:
    """The noise polygon K around s, and the sensitivity hull if that is another one."""
    out = [(K + here, dict(lw=1.8, color=COLOURS[1], label="noise polygon K"))]
    hull = _hull_km(mechanism, s)
    if not np.array_equal(hull, K):
        out.append((hull + here, dict(lw=1.3, color=COLOURS[2], ls="-.", label="sensitivity hull")))
    return out


def _contours(
    K: NDArray[np.float64], epsilon: float, here: NDArray[np.float64], shares: tuple[float, ...]
) -> list[tuple[NDArray[np.float64], dict[str, Any]]]:
    """Copies of K that hold given shares of the noise, the smallest first."""
    style = dict(lw=1.2, color="0.25")
    return [
        (
            _radius(share, len(K), epsilon) * K + here,
            style | dict(ls=DASHES[1 + i % 3], label=f"{100 * share:.3g} % of the noise"),
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
    """r such that r K holds that share of the noise: ||noise||_K is Gamma(2, 1/eps), on a
    segment Gamma(1, 1/eps)."""
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
    shown = show_values(
        ax, locations, outputs, colours, cmap="Blues", norm=norm, area=_area(len(outputs))
    )
    if not isinstance(locations, pf.Grid):
        shown.set(edgecolor="0.4", linewidth=0.5)
    colour_bar(ax, shown, f"Pr(z | s = {s})")
    if not said.all():
        ax.plot(
            *km(locations, outputs[~said]).T,
            marker="x",
            ms=5,
            color="0.6",
            ls="none",
            label="never released",
            zorder=3,
        )
    written = said & (outputs != s)  # there stands the star: the legend has its number
    if numbers or (numbers is None and _room(ax, locations, len(outputs))):
        from matplotlib.patheffects import withStroke

        inside = isinstance(locations, pf.Grid)
        for xy, value in zip(km(locations, outputs[written]).tolist(), p[written].tolist()):
            dark = inside and norm(value) > 0.6
            # in the colour of the cell: the outline of K must not run through a number
            behind = shown.cmap(norm(value)) if inside else "white"
            halo = [withStroke(linewidth=4 if inside else 1.5, foreground=behind)]
            ax.annotate(
                _short(value), xy, xytext=(0, 0 if inside else 12), textcoords="offset points",
                ha="center", va="center",
                fontsize="x-small", color="white" if dark else "black", zorder=5, path_effects=halo,
            )  # fmt: skip


def _room(ax: Any, locations: Locations, count: int) -> bool:
    """Whether there are few numbers, and each fits in its cell."""
    if not isinstance(locations, pf.Grid) or count > _ALL:
        return count <= _FEW_DOTS
    width, height = ax.get_position().size * ax.figure.get_size_inches() * 72
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    scale = min(width / (east - west), height / (north - south))  # points for a km
    return all(scale * side >= room for side, room in zip(locations.scale, _ROOM))


def _area(count: int) -> float:
    return float(np.clip(9_000 / max(count, 1), 12.0, 260.0))


def releases(
    mechanism: pf.Mechanism,
    s: int,
    n: int = 200,
    *,
    ax: Any = None,
    colour: str = COLOURS[1],
    seed: int = 0,
) -> Any:
    """Where n releases from s fall, and the noise polygon K around s if there is one.

    The area of a dot is its count. Made to be drawn upon a map: with an ``ax`` of yours, limits and
    legend are yours too."""
    locations, s = mechanism.locations, check.one_cell(s, mechanism.locations.size)
    here = km(locations, s)
    cells, counts = np.unique(mechanism.release(np.full(n, s), rng=seed), return_counts=True)
    axes = new_axes(ax, layout=MAP_LAYOUT)
    axes.scatter(
        *km(locations, cells).T,
        s=400 * counts / n + 4,
        color=colour,
        alpha=0.8,
        linewidths=0,
        label="released",
    )
    K = _polygon_km(mechanism, s)
    if K is not None:
        same = np.array_equal(K, _hull_km(mechanism, s))
        name = "sensitivity hull K" if same else "noise polygon K"
        axes.plot(*(np.vstack([K, K[:1]]) + here).T, color=colour, lw=1.2, ls="--", label=name)
    axes.plot(
        *here, marker="*", ms=13, color="white", mec="black", ls="none", label="true location"
    )
    axes.set_aspect("equal")
    if not axes.get_xlabel():
        latlon_axes(axes, locations, bar=False)
    if ax is None:
        legend_below(axes)
    return axes
