"""Curves and bars as papers show them: error against epsilon, privacy against utility, error over
time, with bands.

A series is n numbers, one for each x, or an array (repeats, n) (users, seeds; NaN for missing), of
which the mean and a confidence interval are drawn. A band that was computed elsewhere comes in
``bands``: n half-widths, or (low, high)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter

from .series import Key, Series, looks, name_of, read_series
from .style import COLOURS, legend_beside, new_axes

_SIZE = (6.4, 4.2)  # inches
_TICKS = 10  # on the axis of epsilon, of equal spacing at most
_NUMBERED = 3  # curves that have epsilon written beside them; of more, the first only
_HATCHES = ("", "//", "\\\\", "xx", "..", "++")


def lines(
    x: ArrayLike,
    series: Mapping[Key, ArrayLike],
    *,
    bands: Mapping[Key, Any] | None = None,
    confidence: float = 0.95,
    colour: str = "policy",
    markers: bool = True,
    xlabel: str = "",
    ylabel: str = "",
    from_zero: bool = True,
    ax: Any = None,
) -> Any:
    """Lines with confidence bands.

    Parameters
    ----------
    x : (n,) numbers or times
    series : {name: values} or {(policy, mechanism): values}; values as at the top of this module
    bands : for some of them, n half-widths or (low, high), instead of an interval computed here
    confidence : of the intervals (Student's t over the repeats, taken as independent)
    colour : of (policy, mechanism), which one has the colour; the other has the dashes
    markers : a marker at each x
    xlabel, ylabel : names of the axes, with their units
    from_zero : the y axis starts at 0
    ax : where to draw; a new figure unless told
    """
    at = np.asarray(x)
    if at.ndim != 1 or not at.size:
        raise InvalidParameter(f"x must be a list of numbers or times, got shape {at.shape}")
    read = read_series(series, len(at), bands, confidence, "series")
    style = looks(read, colour)
    ax = new_axes(ax, _SIZE)
    for key, values in read.items():
        look = style[key] if markers else {**style[key], "marker": ""}
        ax.plot(at, values.mean, ms=5, label=name_of(key), zorder=3, **look)
        if values.low is not None:
            ax.fill_between(
                at, values.low, values.high, color=look["color"], alpha=0.18, lw=0, zorder=2
            )
    if at.dtype.kind == "M":
        _dates(ax)
    if from_zero:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(alpha=0.3)
    ax.margins(x=0.03)
    if len(read) > 1 or not isinstance(next(iter(read)), str):
        legend_beside(ax)
    return ax


def _dates(ax: Any) -> None:
    """Ticks that say of a time only what the ones before do not."""
    from matplotlib import dates

    untyped: Any = dates
    ticks = untyped.AutoDateLocator()
    ax.xaxis.set_major_locator(ticks)
    ax.xaxis.set_major_formatter(untyped.ConciseDateFormatter(ticks))


def _against_epsilon(
    epsilons: Sequence[float], errors: Mapping[Any, ArrayLike], ylabel: str, ax: Any, options: Any
) -> Any:
    eps = _epsilons(epsilons)
    ax = lines(
        eps, errors, xlabel="epsilon (less noise to the right)", ylabel=ylabel, ax=ax, **options
    )
    ax.set_xscale("log")
    shown = _apart(eps)
    ax.set_xticks(shown, [f"{e:.3g}" for e in shown])
    ax.minorticks_off()
    if len(errors) == 1:
        legend_beside(ax)
    return ax


def _epsilons(epsilons: Sequence[float]) -> NDArray[np.float64]:
    eps = np.asarray([check.epsilon(e) for e in epsilons])
    if not eps.size or (np.diff(eps) <= 0).any():
        raise InvalidParameter(f"epsilons must ascend and not be empty, got {list(epsilons)}")
    return eps


def _apart(eps: NDArray[np.float64]) -> list[float]:
    """Those of ascending values that can be written below a logarithmic axis without touching."""
    gap = np.log(eps[-1] / eps[0]) / _TICKS
    kept = [float(eps[0])]
    for e in eps[1:].tolist():
        if np.log(e / kept[-1]) >= gap:
            kept.append(e)
    return kept


def error_curves(
    epsilons: Sequence[float],
    errors: Mapping[Any, ArrayLike],
    *,
    bands: Mapping[Any, Any] | None = None,
    confidence: float = 0.95,
    colour: str = "policy",
    unit: str = "km",
    ax: Any = None,
) -> Any:
    """Mean error against epsilon, on a logarithmic axis.

    Keys are (policy, mechanism) or mechanisms alone; ``colour`` says which of the two has the
    colour, the other has the dashes. ``bands`` and ``confidence`` are those of ``lines``."""
    options = dict(bands=bands, confidence=confidence, colour=colour)
    return _against_epsilon(epsilons, errors, f"mean error ({unit})", ax, options)


def adversary_curves(
    epsilons: Sequence[float],
    errors: Mapping[Any, ArrayLike],
    *,
    bands: Mapping[Any, Any] | None = None,
    confidence: float = 0.95,
    colour: str = "policy",
    unit: str = "km",
    ax: Any = None,
) -> Any:
    """The adversary's expected error against epsilon: how far off the best guess is.

    Arguments are those of ``error_curves``.
    """
    options = dict(bands=bands, confidence=confidence, colour=colour)
    return _against_epsilon(epsilons, errors, f"adversary's expected error ({unit})", ax, options)


def over_time(
    series: Mapping[Key, ArrayLike],
    *,
    times: ArrayLike | None = None,
    bands: Mapping[Key, Any] | None = None,
    confidence: float = 0.95,
    colour: str = "policy",
    unit: str = "km",
    xlabel: str = "timestamp",
    ylabel: str | None = None,
    ax: Any = None,
) -> Any:
    """Mean error at each timestamp, with a confidence band.

    Parameters
    ----------
    series : {name: (users, T) errors, NaN where there is none}, or (T,) means
    times : (T,) numbers or ``datetime64``; 0, 1, ... unless told
    bands, confidence, colour : as in ``lines``
    unit : of the error
    ylabel : "mean error" with the unit unless told
    """
    if times is None:
        if not series:
            raise InvalidParameter(
                "series is empty: give at least one, as {name: (users, T) errors}"
            )
        times = np.arange(np.shape(next(iter(series.values())))[-1])
    return lines(
        times,
        series,
        bands=bands,
        confidence=confidence,
        colour=colour,
        markers=False,
        xlabel=xlabel,
        ylabel=f"mean error ({unit})" if ylabel is None else ylabel,
        ax=ax,
    )


def bars(
    groups: Sequence[str],
    series: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    xlabel: str = "",
    ylabel: str = "mean error (km)",
    ax: Any = None,
) -> Any:
    """A group of bars for each name in ``groups`` (such as policies), in it a bar for each series
    (such as mechanisms).

    Values, bands and confidence are those of ``lines``; a whisker shows the band.
    """
    read = read_series(series, len(groups), bands, confidence, "series")
    ax = new_axes(ax, _SIZE)
    width = 0.82 / len(read)
    middle = np.arange(len(groups))
    for i, (name, values) in enumerate(read.items()):
        at = middle + (i - (len(read) - 1) / 2) * width
        colour, hatch = COLOURS[i % len(COLOURS)], _HATCHES[i // len(COLOURS) % len(_HATCHES)]
        ax.bar(
            at,
            values.mean,
            width * 0.94,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            lw=0,
            label=name_of(name),
            zorder=2,
        )
        if values.low is not None:
            ax.errorbar(
                at,
                values.mean,
                yerr=_whiskers(values),
                fmt="none",
                ecolor="0.15",
                elinewidth=1.1,
                capsize=2.5,
                zorder=3,
            )
    ax.set_xticks(middle, list(groups))
    ax.tick_params(axis="x", length=0)
    if sum(map(len, groups)) > 60:
        ax.tick_params(axis="x", rotation=30)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(axis="y", alpha=0.3)
    if len(read) > 1:
        legend_beside(ax)
    return ax


def _whiskers(values: Series) -> NDArray[np.float64] | None:
    """Lengths below and above the mean; 0 where there is no interval."""
    if values.low is None or values.high is None:
        return None
    return np.nan_to_num(np.maximum([values.mean - values.low, values.high - values.mean], 0.0))


def privacy_utility(
    epsilons: Sequence[float],
    utility: Mapping[Key, ArrayLike],
    privacy: Mapping[Key, ArrayLike],
    *,
    confidence: float = 0.95,
    colour: str = "mechanism",
    unit: str = "km",
    ax: Any = None,
) -> Any:
    """What a user pays against what the adversary is left with: one curve for each mechanism,
    epsilon along it.

    Parameters
    ----------
    epsilons : (n,) ascending; written beside the points of up to three curves, beside the first of
        more
    utility : for each mechanism, or (policy, mechanism), the mean distance between what is true and
        what is released; n numbers, or (repeats, n) for whiskers
    privacy : for the same ones, the adversary's expected error
    confidence, colour : as in ``lines``
    unit : of both

    Notes
    -----
    Up and to the left is better. On the dotted diagonal, the adversary's best guess is as far off
    as the release itself; below it, the adversary knows better than what is released."""
    eps = _epsilons(epsilons)
    if set(utility) != set(privacy):
        odd = sorted(map(str, set(utility) ^ set(privacy)))
        raise InvalidParameter(
            f"utility and privacy must have the same keys, {odd[0]!r} is in one of them only"
        )
    x = read_series(utility, len(eps), None, confidence, "utility")
    y = read_series(privacy, len(eps), None, confidence, "privacy")
    style = looks(x, colour)
    ax = new_axes(ax, _SIZE)
    for k, key in enumerate(x):
        ax.errorbar(
            x[key].mean,
            y[key].mean,
            xerr=_whiskers(x[key]),
            yerr=_whiskers(y[key]),
            ms=6,
            lw=1.5,
            elinewidth=0.9,
            capsize=2,
            label=name_of(key),
            zorder=3,
            **style[key],
        )
        if k == 0 or len(x) <= _NUMBERED:
            aside = dict(xytext=(6, -11)) if k % 2 == 0 else dict(xytext=(-6, 5), ha="right")
            _write_beside(ax, eps, x[key].mean, y[key].mean, color=style[key]["color"], **aside)
    ax.margins(0.1)  # for the numbers
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    reach = min(ax.get_xlim()[1], ax.get_ylim()[1])
    ax.plot(
        [0, reach],
        [0, reach],
        color="0.6",
        lw=1.0,
        ls=":",
        zorder=1,
        scalex=False,
        scaley=False,
        label="equal errors",
    )
    ax.set_xlabel(f"mean error of the release ({unit}), less is more useful")
    ax.set_ylabel(f"adversary's expected error ({unit})\nmore is more private")
    ax.grid(alpha=0.3)
    where = "the points" if len(x) <= _NUMBERED else "the first curve"
    legend_beside(ax, title_fontsize="small", title=f"epsilon is written beside\n{where}")
    return ax


def _write_beside(
    ax: Any,
    eps: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    **style: Any,
) -> None:
    """Each epsilon beside its point."""
    from matplotlib.patheffects import withStroke

    for e, *at in zip(eps.tolist(), x.tolist(), y.tolist()):
        ax.annotate(
            f"{e:.3g}",
            at,
            textcoords="offset points",
            fontsize="small",
            zorder=4,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            **style,
        )
