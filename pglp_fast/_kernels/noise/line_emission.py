"""Pr(z|s) of noise along a line: the Laplace mass of z's span of the line (spec section 5)."""

import numpy as np

from pglp_fast._kernels.base.jit import bare

# A line runs along a boundary if it does within this share of the terms compared: cells'
# proportions are floats.
_TIE = 1e-12


@bare
def dot(ex, ey, x, y, stretch):
    """Inner product of a lattice vector and (x, y); exact where cells are square and (x, y) is on
    the lattice, 0 where only the rounding of the cells' proportions keeps it from 0."""
    if stretch == 1.0 and x == np.rint(x) and y == np.rint(y):
        return np.float64(ex * np.int64(x) + ey * np.int64(y))
    a, b = ex * x, stretch * (ey * y)
    return 0.0 if abs(a + b) <= _TIE * (abs(a) + abs(b)) else a + b


@bare
def _along(x, y, wx, wy):
    """Whether the lattice vector (x, y) is parallel to w; exact where w is on the lattice."""
    if wx == np.rint(wx) and wy == np.rint(wy):
        return x * np.int64(wy) == y * np.int64(wx)
    return x * wy == y * wx


@bare
def _line_span(z, anchor, sites, stretch, wx, wy):
    """The (low, high) of t where anchor + t w is nearest to site z; low >= high if nowhere.

    A line that runs along the boundary of two regions is a tie all the way: it belongs to the lower
    index. Cells' proportions are floats, so "along" and "on" mean within rounding, as in the
    sampler's search tree."""
    sx, sy = sites[anchor, 0] - sites[z, 0], sites[anchor, 1] - sites[z, 1]
    low, high = -np.inf, np.inf
    for b in range(sites.shape[0]):
        if b == z:
            continue
        ex, ey = sites[b, 0] - sites[z, 0], sites[b, 1] - sites[z, 1]
        slope = dot(ex, ey, wx, wy, stretch)
        room = 0.5 * dot(ex, ey, np.float64(ex - 2 * sx), np.float64(ey - 2 * sy), stretch)
        if slope > 0.0:
            high = min(high, room / slope)
        elif slope < 0.0:
            low = max(low, room / slope)
        elif room < 0.0 or (room == 0.0 and b < z):
            return 0.0, 0.0
    if high - low <= _TIE * max(abs(low), abs(high), 1.0) and high < np.inf and low > -np.inf:
        return 0.0, 0.0  # the line only touches a corner of the region
    return low, high


@bare
def _anchor_of(s, sites, wx, wy):
    """(the first site on the line from site s along w, how many w it is from there to s).

    All sites on one line use the spans of the first of them, so that what is a tie for one is a tie
    for all."""
    anchor = 0
    while not _along(sites[s, 0] - sites[anchor, 0], sites[s, 1] - sites[anchor, 1], wx, wy):
        anchor += 1
    if abs(wx) >= abs(wy):
        return anchor, (sites[s, 0] - sites[anchor, 0]) / wx
    return anchor, (sites[s, 1] - sites[anchor, 1]) / wy


@bare
def linear(z, sources, sites, stretch, wx, wy, epsilon, out):
    """out[s] = ln Pr(z|s) for each source s: K the segment +-w, so the noise is w times a
    Laplace(1/eps) number."""
    for k in range(sources.shape[0]):
        anchor, ahead = _anchor_of(sources[k], sites, wx, wy)
        low, high = _line_span(z, anchor, sites, stretch, wx, wy)
        if low >= high:
            out[k] = -np.inf
            continue
        low, high = low - ahead, high - ahead
        if low < 0.0 < high:
            out[k] = np.log(0.5 * (-np.expm1(epsilon * low) - np.expm1(-epsilon * high)))
        else:
            start, end = min(abs(low), abs(high)), max(abs(low), abs(high))
            out[k] = np.log(-0.5 * np.expm1(epsilon * (start - end))) - epsilon * start


@bare
def nearest_along(s, t, sites, stretch, wx, wy):
    """The site in whose span the point s + t w lies: of those that the line from site s meets, the
    nearest along it, ties to the lower index.

    These are the very spans that ``linear`` integrates over: what is snapped so is possible."""
    anchor, ahead = _anchor_of(s, sites, wx, wy)
    best, least = np.int64(s), np.inf
    for z in range(sites.shape[0]):
        low, high = _line_span(z, anchor, sites, stretch, wx, wy)
        if low < high:
            off = max(low - ahead - t, t - (high - ahead), 0.0)
            if off < least:
                best, least = np.int64(z), off
    return best
