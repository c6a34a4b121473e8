"""Series of measurements: their means, their confidence bands, and how each is told from the
others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.stats import column_means
from pglp_fast.errors import InvalidParameter

from .style import COLOURS, DASHES, MARKERS

Key = str | tuple[str, str]  # a mechanism, or (policy, mechanism)


@dataclass(frozen=True)
class Series:
    """A mean for each x, and between what bounds it lies (None: not known)."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


def name_of(key: Key) -> str:
    return key if isinstance(key, str) else ", ".join(key)


def read_series(
    given: Mapping[Any, ArrayLike],
    n: int,
    bands: Mapping[Any, Any] | None,
    confidence: float,
    what: str,
) -> dict[Any, Series]:
    """Every series, checked: n numbers, or (repeats, n) of which the mean and its confidence
    interval are taken."""
    if not given:
        raise InvalidParameter(f"{what} is empty: give at least one series, as {{name: numbers}}")
    if not 0 < check.positive(confidence, "confidence") < 1:
        raise InvalidParameter(
            f"confidence must be above 0 and below 1, got {confidence!r}: 0.95 is usual"
        )
    strange = set(bands or {}) - set(given)
    if strange:
        raise InvalidParameter(
            f"bands[{sorted(map(str, strange))[0]!r}] belongs to no series of {what}"
        )
    return {
        key: _read(values, n, (bands or {}).get(key), confidence, f"{what}[{key!r}]")
        for key, values in given.items()
    }


def _read(values: ArrayLike, n: int, band: Any, confidence: float, name: str) -> Series:
    array = _numbers(values, name)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise InvalidParameter(
            f"{name} has shape {array.shape}: give {n} numbers, or (repeats, {n})"
        )
    if band is not None:
        mean = array if array.ndim == 1 else column_means(array, confidence)[0]
        return Series(mean, *_bounds(band, mean, name))
    return Series(array) if array.ndim == 1 else confident(array, confidence)


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be numbers, NaN for missing ones") from None


def _bounds(
    band: Any, mean: NDArray[np.float64], name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    bounds = _numbers(band, f"the band of {name}")
    if bounds.shape == mean.shape:
        low, high = mean - bounds, mean + bounds
    elif bounds.shape == (2, *mean.shape):
        low, high = bounds
    else:
        raise InvalidParameter(
            f"the band of {name} has shape {bounds.shape}: give {len(mean)} half-widths, or (low, "
            "high)"
        )
    if (low > high).any():
        at = int(np.flatnonzero(low > high)[0])
        raise InvalidParameter(
            f"the band of {name} is upside down at {at}: {low[at]:g} > {high[at]:g}"
        )
    return low, high


def confident(array: NDArray[np.float64], confidence: float) -> Series:
    """Mean and Student's t interval of each column: mean +- t s / sqrt(m), rows taken as
    independent repeats.

    A column with fewer than two numbers has no interval.
    """
    mean, half, count = column_means(array, confidence)
    half = np.where(count > 1, half, np.nan)
    return Series(mean, mean - half, mean + half)


def looks(keys: Iterable[Key], colour: str = "policy") -> dict[Any, dict[str, Any]]:
    """Colour, dashes and marker for each key.

    Of (policy, mechanism), the one named by ``colour`` has the colour and the marker, the other the
    dashes. Plain names have a colour each; from the eighth on, dashes and markers tell those of one
    colour apart."""
    listed = list(keys)
    check.choice(colour, "colour", ("policy", "mechanism"))
    which = 0 if colour == "policy" else 1
    pairs = [(k, "") if isinstance(k, str) else (k[which], k[1 - which]) for k in listed]
    major, minor = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
    out = {}
    for key, pair in zip(listed, pairs):
        i, j = major.index(pair[0]), minor.index(pair[1])
        again = i // len(COLOURS)
        out[key] = dict(
            color=COLOURS[i % len(COLOURS)],
            ls=DASHES[(j + again) % len(DASHES)],
            marker=MARKERS[(i + again) % len(MARKERS)],
        )
    return out
