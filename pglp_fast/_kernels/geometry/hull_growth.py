"""Sensitivity hulls that a new edge may enlarge: what the hull would become, without making it.

Here a hull is an (h, 3) array (x, y, prefix): symmetric, with prefix sums of the cross products
along its boundary; ``moments`` has the same sums weighted by each side's mean length in km. Adding
+-v replaces what lies between two tangents, so the new area and the new expected noise are
differences of prefixes, O(log h)."""

import numpy as np

from pglp_fast._kernels.base.growing import copy_rows
from pglp_fast._kernels.base.jit import kernel

from .hull import chain, contains, cross, minkowski_difference, tangents


@kernel
def grow(polygon, x, y):
    """conv(K and +-(x, y)) of a symmetric K."""
    if contains(polygon, x, y):
        return polygon
    h = polygon.shape[0]
    both = np.empty((h + 2, 2), np.int64)
    copy_rows(polygon, h, both, 0)
    both[h, 0], both[h, 1], both[h + 1, 0], both[h + 1, 1] = x, y, -x, -y
    return chain(both)


@kernel
def grow_by_clique(polygon, points):
    """conv(K and all differences of the points) of a symmetric K."""
    hull = minkowski_difference(chain(points))
    if polygon.shape[0] == 1:
        return hull
    for i in range(hull.shape[0]):
        polygon = grow(polygon, hull[i, 0], hull[i, 1])
    return polygon


@kernel
def _arc(s, p):
    """Antiderivative of sqrt(s^2 + p^2)."""
    if p == 0.0:
        return 0.5 * s * abs(s)
    return 0.5 * (s * np.hypot(s, p) + p * p * np.arcsinh(s / p))


@kernel
def side_length(ax, ay, bx, by):
    """Mean of |x| over the segment from a to b."""
    dx, dy = bx - ax, by - ay
    length = np.hypot(dx, dy)
    s = (ax * dx + ay * dy) / length
    p = abs(cross(ax, ay, dx, dy)) / length
    return (_arc(s + length, p) - _arc(s, p)) / length


@kernel
def with_prefixes(polygon, dx, dy, weighted=True):
    """(hull, moments, twice the area, the whole moment) of a symmetric polygon; moments are only
    made if ``weighted``."""
    h = polygon.shape[0]
    hull, moments = np.empty((h, 3), np.int64), np.empty((h, 1))
    area, moment = 0, 0.0
    for i in range(h):
        j = i + 1 if i + 1 < h else 0
        ax, ay, bx, by = polygon[i, 0], polygon[i, 1], polygon[j, 0], polygon[j, 1]
        hull[i, 0], hull[i, 1], hull[i, 2], moments[i, 0] = ax, ay, area, moment
        wedge = cross(ax, ay, bx, by)
        area += wedge
        if weighted and wedge > 0:
            moment += wedge * side_length(ax * dx, ay * dy, bx * dx, by * dy)
    return hull, moments, area, moment


@kernel
def _between(first, last, total, wraps):
    return last - first + (total if wraps else 0)


@kernel
def area_with(hull, area, x, y):
    """Twice the area of conv(K and +-(x, y)), exact."""
    h = hull.shape[0]
    if h == 1:
        return 0
    if h == 2:
        return 4 * abs(cross(hull[1, 0], hull[1, 1], x, y))
    if contains(hull, x, y):
        return area
    i, j = tangents(hull, x, y)
    a, b = i % h, j % h
    hidden = _between(hull[a, 2], hull[b, 2], area, b <= a)
    return area + 2 * (
        cross(hull[a, 0], hull[a, 1], x, y) + cross(x, y, hull[b, 0], hull[b, 1]) - hidden
    )


@kernel
def error_of(hull, area, moment, dx, dy):
    """E|Y| in km at eps = 1: twice the mean of |p| over K's boundary by cone measure; a
    segment's half length."""
    if hull.shape[0] == 1:
        return 0.0
    if hull.shape[0] == 2:
        return np.hypot(hull[1, 0] * dx, hull[1, 1] * dy)
    return 2.0 * moment / area


@kernel
def error_with(hull, moments, area, moment, x, y, dx, dy):
    """E|Y| in km at eps = 1 of conv(K and +-(x, y))."""
    h = hull.shape[0]
    px, py = x * dx, y * dy
    if h == 1:
        return np.hypot(px, py)
    if h == 2:
        wx, wy = hull[1, 0] * dx, hull[1, 1] * dy
        if cross(hull[1, 0], hull[1, 1], x, y) == 0:
            return max(np.hypot(px, py), np.hypot(wx, wy))
        return side_length(wx, wy, px, py) + side_length(
            px, py, -wx, -wy
        )  # a parallelogram: its four triangles are equal
    if contains(hull, x, y):
        return 2.0 * moment / area
    i, j = tangents(hull, x, y)
    a, b = i % h, j % h
    first, second = cross(hull[a, 0], hull[a, 1], x, y), cross(x, y, hull[b, 0], hull[b, 1])
    arms = first * side_length(hull[a, 0] * dx, hull[a, 1] * dy, px, py)
    arms += second * side_length(px, py, hull[b, 0] * dx, hull[b, 1] * dy)
    new_area = area + 2 * (first + second - _between(hull[a, 2], hull[b, 2], area, b <= a))
    new_moment = moment + 2.0 * (arms - _between(moments[a, 0], moments[b, 0], moment, b <= a))
    return 2.0 * new_moment / new_area


@kernel
def perpendicular_reach(polygon):
    """min over u with max(|u_x|, |u_y|) = 1 of max over p in K of |u x p|.

    conv(K and +-v) holds the quadrilateral +-v, +-p, so twice its area is at least 4 max(|v_x|,
    |v_y|) times this. On each side of the unit square the maximum is convex and piecewise linear in
    the position: its least value is at an end or where two pieces meet."""
    h = polygon.shape[0]
    best = np.inf
    for side in range(2):
        for a in range(h):
            for b in range(h + 2):
                t = 1.0 if b == h else -1.0
                if b < h:
                    if polygon[a, 1 - side] == polygon[b, 1 - side]:
                        continue
                    t = -(polygon[a, side] - polygon[b, side]) / (
                        polygon[a, 1 - side] - polygon[b, 1 - side]
                    )
                    if not -1.0 <= t <= 1.0:
                        continue
                reach = 0.0
                for p in range(h):
                    reach = max(reach, abs(polygon[p, side] + t * polygon[p, 1 - side]))
                best = min(best, reach)
    return best * (1.0 - 1e-12)
