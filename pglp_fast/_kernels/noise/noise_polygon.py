"""Noise polygons: the set K of the K-norm mechanism, made of a sensitivity hull.

K-norm noise has density eps^2 / (2 area K) exp(-eps ||z - f(s)||_K) (Hardt and Talwar, On the
Geometry of Differential Privacy, STOC 2010). Whatever K holds the sensitivity hull keeps the
promise; the smaller K, the less noise. A polygon is (h, 2) vertices in lattice units,
counter-clockwise: one vertex is no noise, two are a segment."""

import numpy as np

from pglp_fast._kernels.base.growing import append_rows, copy_rows
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.polygons import polygon_of

# What K is: the sensitivity hull itself (P-PIM), P-LM's diamond, planar Laplace's disc.
HULL, DIAMOND, DISC = 0, 1, 2
SIDES = 64  # of the polygon that stands for a disc: corners 0.12 % outside it


@kernel
def diamond(hull, dx, dy):
    """K of P-LM in lattice units: |x| dx + |y| dy <= S, S the largest over the hull's vertices.

    Its noise is independent Laplace(S / eps) on each axis. The origin if S = 0. S is taken a few
    units in the last place too large, so that rounding can never leave an edge outside."""
    S = 0.0
    for i in range(hull.shape[0]):
        S = max(S, abs(hull[i, 0]) * dx + abs(hull[i, 1]) * dy)
    if S == 0.0:
        return np.zeros((1, 2))
    S *= 1.0 + 2.0**-50
    out = np.zeros((4, 2))
    out[0, 0], out[1, 1], out[2, 0], out[3, 1] = -S / dx, -S / dy, S / dx, S / dy
    return out


@kernel
def disc(hull, dx, dy):
    """K of planar Laplace noise in lattice units: a regular polygon around the disc of radius R.

    R is the length in km of the hull's farthest vertex; the origin if R = 0 (Andres et al.,
    Geo-Indistinguishability, CCS 2013). The disc lies inside, so ||v||_K <= |v| / R: no pair is
    told apart more easily than by the disc itself. The polygon's own corners lie 1 / cos(pi /
    SIDES) farther out."""
    R = 0.0
    for i in range(hull.shape[0]):
        R = max(R, np.hypot(hull[i, 0] * dx, hull[i, 1] * dy))
    if R == 0.0:
        return np.zeros((1, 2))
    R *= (1.0 + 2.0**-48) / np.cos(np.pi / SIDES)
    out = np.empty((SIDES, 2))
    half = SIDES >> 1
    for i in range(half):
        angle = (2 * i + 1) * np.pi / SIDES - np.pi
        x, y = R * np.cos(angle) / dx, R * np.sin(angle) / dy
        out[i, 0], out[i, 1], out[i + half, 0], out[i + half, 1] = x, y, -x, -y
    return out


@kernel
def noise_polygon(hull, kind, dx, dy):
    """K of a mechanism for a sensitivity hull."""
    if kind == DIAMOND:
        return diamond(hull, dx, dy)
    if kind == DISC:
        return disc(hull, dx, dy)
    out = np.empty(hull.shape)
    copy_rows(hull, hull.shape[0], out, 0)
    return out


@kernel
def noise_polygons(hulls, kind, dx, dy):
    """K for each sensitivity hull, end to end: (vertices, starts)."""
    n = hulls.starts.shape[0] - 1
    ends = np.zeros(n + 1, np.int64)
    flat = np.empty((4 * n, 2))
    for k in range(n):
        polygon = noise_polygon(polygon_of(hulls, k), kind, dx, dy)
        flat, ends[k + 1] = append_rows(flat, ends[k], polygon, polygon.shape[0])
    return flat[: ends[-1]].copy(), ends
