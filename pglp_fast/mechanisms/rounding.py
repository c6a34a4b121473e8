"""How far noise that is drawn in float64 may be from the K-norm theorem's, and K's premises.

Everything but the bound itself is in rational numbers, for the very floats that are K's vertices.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry.kdtree import ALONG_A_LINE
from pglp_fast._kernels.noise.alias_rows import TOTAL

from .contract import Floats

MAX_ROUNDING = 1e-6  # total variation that float64 may add for a promise to count as proved


class Noise(NamedTuple):
    """A noise polygon and the output set that its noise is snapped to.

    Attributes
    ----------
    K : vertices, counter-clockwise, in lattice units
    extent : columns and rows that the output set spans
    size : locations of the output set
    boxed : whether they fill that, on a grid
    in_line : whether they all lie on one line along K, where K is a segment
    """

    K: Floats
    extent: NDArray[np.float64]
    size: int
    boxed: bool
    in_line: bool


def noise_over(K: Floats, sites: NDArray[Any], is_grid: bool) -> Noise:
    """The noise of K over an output set of these lattice points."""
    extent = (sites.max(axis=0) - sites.min(axis=0) + 1).astype(float)
    offsets = (sites - sites[0]).astype(np.float64)
    in_line = not (offsets[:, 0] * K[-1, 1] != offsets[:, 1] * K[-1, 0]).any()
    boxed = is_grid and bool(np.prod(extent) == len(sites))
    return Noise(K, extent, len(sites), boxed, in_line)


def drawn_off(noise: Noise, cones: NDArray[np.uint64], epsilon: float, stretch: float) -> float:
    """At most so far, in total variation, is what is drawn from the theorem's distribution: by
    rounding, and by the weights ``cones`` with which cones over K's edges are drawn."""
    bound = rounding_bound(noise, epsilon, stretch)
    if len(noise.K) < 3:
        return bound
    return min(1.0, bound + _cones_off(noise.K.tobytes(), cones.tobytes()))


class _Whole(NamedTuple):
    """A polygon whose vertices are floats, exactly: integers over ``unit``, a power of two."""

    corners: tuple[tuple[int, int], ...]
    unit: int


# Shapes of a map share few polygons: each is looked at once. What is kept follows from its key, the
# octets of K's vertices.
_once = lru_cache(maxsize=4096)


@_once
def _whole(K: bytes) -> _Whole:
    ratios = [value.as_integer_ratio() for value in np.frombuffer(K, np.float64).tolist()]
    unit = max(below for _, below in ratios)  # of powers of two the largest is a multiple of all
    values = [above * (unit // below) for above, below in ratios]
    return _Whole(tuple(zip(values[::2], values[1::2])), unit)


@_once
def _wedges(K: bytes) -> tuple[int, ...]:
    """Twice the area of each triangle from the centre over an edge of K, times ``unit`` squared."""
    corners = _whole(K).corners
    return tuple(a[0] * b[1] - a[1] * b[0] for a, b in pairwise([*corners, corners[0]]))


@_once
def _cones_off(K: bytes, cones: bytes) -> float:
    """The total variation distance of the cones that are drawn from those of K's areas."""
    areas, drawn = _wedges(K), np.frombuffer(cones, np.uint64).tolist()
    if min(areas) <= 0 or sum(drawn) != TOTAL or len(drawn) < len(areas):
        return 1.0
    wanted, whole = areas + (0,) * (len(drawn) - len(areas)), sum(areas)
    off = sum(abs(w * whole - a * TOTAL) for w, a in zip(drawn, wanted, strict=True))
    return float(Fraction(off, 2 * whole * TOTAL))


def gauges_of(K: Floats, hull: NDArray[np.int64]) -> list[Fraction | float]:
    """||v||_K of each vertex v of a sensitivity hull, in rational arithmetic, for the very floats
    that are K's vertices."""
    return _gauges(K.tobytes(), hull.tobytes())


@_once
def _gauges(K: bytes, hull: bytes) -> list[Fraction | float]:
    return [_gauge(K, x, y) for x, y in np.frombuffer(hull, np.int64).reshape(-1, 2).tolist()]


def _gauge(K: bytes, x: int, y: int) -> Fraction | float:
    """The largest over K's edges ab of v x (b - a) / (a x b), which is 1 on the edge."""
    corners, unit = _whole(K)
    if len(corners) <= 2:
        (ax, ay), (bx, by) = corners[0], corners[-1]
        if (ax, ay) != (-bx, -by) or x * by != y * bx or not (bx or by):
            return np.inf  # v is not on the segment's line, or there is none
        return abs(Fraction(x * unit, bx) if bx else Fraction(y * unit, by))
    best, below = 0, 1
    sides = pairwise([*corners, corners[0]])
    for ((ax, ay), (bx, by)), area in zip(sides, _wedges(K), strict=True):
        if area <= 0:
            return np.inf  # K does not go round the origin
        value = x * (by - ay) - y * (bx - ax)
        if value * below > best * area:
            best, below = value, area
    return Fraction(best * unit, below)


def rounding_bound(noise: Noise, epsilon: float, stretch: float) -> float:
    """At most so much is the total variation distance between the geometric sampler in float64 and
    in real arithmetic.

    Uniforms are the middles of 2^53 steps: an off-by-2^-54 in u moves the radius by 2^-54 / (u
    eps), 2^-54 * 54 ln 2 / eps on average. With the other roundings (fewer than 16 of 2^-53 each,
    relative to radius, K and coordinates, ties among them) the noise moves by at most 2^-46 (W + X)
    (1 + 1/eps) lattice units on average, W the half width of K and X the extent of the output set.
    A release changes only if that carries it across a boundary of two regions. Given direction and
    one exponential, the radius has a decreasing density of at most eps: across a line the noise has
    density at most eps / (2 w), w the least half width of K, and a comb of unit spacing is met with
    density at most 1 + eps. So a boundary is that near with at most twice the move times the
    density; 40 = ln 2^58 covers directions almost along it. Regions on a full box of a grid are
    bounded by two combs, k scattered sites by at most 3 k lines."""
    K, extent = noise.K, noise.extent
    if len(K) == 1:
        return 0.0
    move = 2.0**-46 * float((np.abs(K).max(axis=0) + extent).sum()) * (1 + 1 / epsilon)
    along = 40.0  # ln 2^58: directions almost along a boundary
    if noise.boxed:
        half = np.abs(K).max(axis=0)
        lines = (extent - 1)[half > 0] / (
            2 * half[half > 0]
        )  # of each comb, over its noise's width
        density = min(2.0 * (1 + epsilon), epsilon * float(lines.sum()))
    elif len(K) == 2:
        move *= ALONG_A_LINE * 2.0**46 + 1.0
        if noise.in_line:
            along = 1.0  # all sites on the line of the noise: it crosses every boundary squarely
        density = 2.0 * (noise.size - 1) * epsilon
    else:
        octets = K.tobytes()
        area2 = sum(_wedges(octets)) / _whole(octets).unit ** 2
        thinnest = area2 / (8 * float(np.hypot(*K.T).max()))
        density = 3.0 * noise.size * epsilon / (2 * thinnest)
    # no boundary is nearer than half a lattice unit: there the radius has density eps x e^-x
    x = 0.5 * epsilon * min(1.0, stretch**0.5) / float(np.hypot(*K.T).max())
    density *= min(1.0, x * np.exp(1.0 - x)) if x > 1 else 1.0
    return min(1.0, 2 * along * move * density + len(K) * 2.0**-63)
