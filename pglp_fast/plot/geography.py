"""Latitude, longitude and a scale bar, for maps that know where they lie."""

import math
from typing import Any

import numpy as np

import pglp_fast as pf
from pglp_fast.space.locations import Locations

_TICKS = 4  # intervals of an axis, about
_LETTER = 0.115  # inches of a letter of a tick's name
_BAR = 0.3  # of the width that a scale bar takes at most


def latlon_axes(ax: Any, locations: Locations, *, bar: bool = True) -> Any:
    """Name the axes of a map by latitude and longitude, with a scale bar; the limits stay.

    A map without a projection keeps its axes in km.

    Parameters
    ----------
    ax : matplotlib Axes, in the frame of ``locations.xy``, with its limits set
    locations : Grid or Points
    bar : whether to draw the scale bar
    """
    if locations.projection is None:
        ax.set_xlabel("east (km)")
        ax.set_ylabel("north (km)")
        return ax
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    # xy of a grid counts from the middle of its first cell, the projection from its corner
    middle = np.asarray(locations.scale) / 2 if isinstance(locations, pf.Grid) else np.zeros(2)
    (lat0, lon0), (lat1, lon1) = locations.projection.to_latlon(
        np.array([middle, middle + 1.0])
    ).tolist()
    for axis, limits, at_0, a_km, marks, name in (
        (ax.xaxis, ax.get_xlim(), lon0, lon1 - lon0, "EW", "longitude"),
        (ax.yaxis, ax.get_ylim(), lat0, lat1 - lat0, "NS", "latitude"),
    ):
        ends = [at_0 + a_km * v for v in limits]
        inside, digits = _ticks(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]), ends)
        # fewer along x where their names would run into each other
        while axis is ax.xaxis and len(inside) > max(1.0, _room(ax) / _width(ends[0], digits)):
            inside = inside[::2]
        while digits and all(abs(round(d, digits - 1) - d) < 1e-9 for d in inside):
            digits -= 1
        axis.set_major_locator(FixedLocator([(d - at_0) / a_km for d in inside]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(
            FuncFormatter(
                lambda v, _, at_0=at_0, a_km=a_km, marks=marks, digits=digits: _degrees(
                    at_0 + a_km * v, marks, digits
                )
            )
        )
        axis.set_label_text(name)
    if bar:
        _draw_bar(ax)
    return ax


def _ticks(locator: Any, ends: list[float]) -> tuple[list[float], int]:
    """Round degrees between two ends, and how many digits tell them apart."""
    degrees = locator.tick_values(*ends)
    step = float(degrees[1] - degrees[0]) if len(degrees) > 1 else 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + (f"{step:e}"[2] == "5")
    return [float(d) for d in degrees if min(ends) <= d <= max(ends)], digits


def _width(value: float, digits: int) -> float:
    """Inches that the name of a tick takes, and the space after it."""
    return _LETTER * (len(_degrees(value, "EW", digits)) + 1)


def _room(ax: Any) -> float:
    """Inches that the axis of x has, drawn with equal aspect."""
    box, figure = ax.get_position(original=True), ax.figure.get_size_inches()
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    high = float(box.height * figure[1])
    shape = float(abs(east - west)) / max(float(abs(north - south)), 1e-9)
    return min(float(box.width * figure[0]), high * shape)


def _degrees(value: float, marks: str, digits: int) -> str:
    """Such as 116.35° E."""
    rounded = round(value, digits)
    side = "" if rounded == 0 else f" {marks[0] if rounded > 0 else marks[1]}"
    return f"{abs(rounded):.{digits}f}°{side}"


def _draw_bar(ax: Any) -> None:
    """A bar of a round length in the lower left corner."""
    from matplotlib.patheffects import withStroke

    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    longest = _BAR * abs(east - west)
    power = 10.0 ** math.floor(math.log10(longest))
    length = next(power * k for k in (5, 2, 1) if power * k <= longest)
    x, y = west + 0.04 * (east - west), south + 0.05 * (north - south)
    halo = [withStroke(linewidth=5, foreground="white")]
    ax.plot(
        [x, x + length], [y, y], color="black", lw=2.2, solid_capstyle="butt", zorder=8,
        path_effects=halo, scalex=False, scaley=False,
    )  # fmt: skip
    text = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    ax.annotate(
        text, (x + length / 2, y), xytext=(0, 4), textcoords="offset points", ha="center",
        fontsize="small", zorder=8, path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )  # fmt: skip
