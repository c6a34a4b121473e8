"""Exact convex geometry on int64 lattice points: no tolerance anywhere.

A polygon is an (h, 2) array, counter-clockwise, strictly convex, from its lexicographically lowest
vertex. One vertex is a point (rank 0), two a segment (rank 1). With coordinates up to ``MAX_SPAN``
in absolute value every product here fits int64: an orientation test on differences of differences
is at most 8 * MAX_SPAN**2 = 2**61."""

import numpy as np

from pglp_fast._kernels.base.growing import append_rows, copy_rows
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.sorting import order_of_labels, sort_numbers

MAX_SPAN = 2**29
_BUFFER = 4096


@bare
def cross(ax, ay, bx, by):
    return ax * by - ay * bx


@bare
def turn(polygon, i, j, x, y):
    """Sign tells on which side of the line from vertex i to vertex j the point lies; > 0 is
    left."""
    ix, iy = polygon[i, 0], polygon[i, 1]
    return cross(polygon[j, 0] - ix, polygon[j, 1] - iy, x - ix, y - iy)


@kernel
def _sort_few(points):
    """Lexicographic order by insertion."""
    out = np.empty((points.shape[0], 2), np.int64)
    for i in range(points.shape[0]):
        x, y = points[i, 0], points[i, 1]
        k = i
        while k > 0 and (out[k - 1, 0] > x or (out[k - 1, 0] == x and out[k - 1, 1] > y)):
            out[k, 0], out[k, 1] = out[k - 1, 0], out[k - 1, 1]
            k -= 1
        out[k, 0], out[k, 1] = x, y
    return out


@kernel
def _sort_many(points):
    """Lexicographic order by one int64 key; spans up to 2**30 a side leave it room."""
    x0, y0, top = points[0, 0], points[0, 1], points[0, 1]
    for i in range(points.shape[0]):
        x0, y0, top = min(x0, points[i, 0]), min(y0, points[i, 1]), max(top, points[i, 1])
    height, keys = top - y0 + 1, np.empty(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        keys[i] = (points[i, 0] - x0) * height + (points[i, 1] - y0)
    sort_numbers(keys)
    out = np.empty((points.shape[0], 2), np.int64)
    for i in range(keys.shape[0]):
        out[i, 0], out[i, 1] = x0 + keys[i] // height, y0 + keys[i] % height
    return out


@kernel
def _sorted_unique(points):
    out = _sort_few(points) if points.shape[0] <= 24 else _sort_many(points)
    n = 0
    for i in range(out.shape[0]):
        if i == 0 or out[i, 0] != out[n - 1, 0] or out[i, 1] != out[n - 1, 1]:
            out[n, 0], out[n, 1] = out[i, 0], out[i, 1]
            n += 1
    return out[:n]


@bare
def _extend(out, h, keep, x, y):
    """Append a point, first dropping what would no longer turn left; the first ``keep`` points
    stay."""
    while h > keep and turn(out, h - 2, h - 1, x, y) <= 0:
        h -= 1
    out[h, 0], out[h, 1] = x, y
    return h + 1


@kernel
def chain(points):
    """Convex hull by Andrew's monotone chain, O(n log n)."""
    points = _sorted_unique(points)
    n = points.shape[0]
    if n < 3:
        return points.copy()
    out = np.empty((2 * n, 2), np.int64)
    h = 0
    for i in range(n):
        h = _extend(out, h, 1, points[i, 0], points[i, 1])
    lower = h
    for i in range(n - 2, -1, -1):
        h = _extend(out, h, lower, points[i, 0], points[i, 1])
    return out[: h - 1].copy()


@bare
def twice_area(polygon):
    """Shoelace formula: twice the area, an exact integer."""
    total = 0
    for i in range(polygon.shape[0]):
        j = i + 1 if i + 1 < polygon.shape[0] else 0
        total += cross(polygon[i, 0], polygon[i, 1], polygon[j, 0], polygon[j, 1])
    return total


@bare
def contains(polygon, x, y):
    """Whether the point lies in the polygon, boundary included. O(log h)."""
    h = polygon.shape[0]
    if h == 1:
        return x == polygon[0, 0] and y == polygon[0, 1]
    if h == 2:
        if turn(polygon, 0, 1, x, y) != 0:
            return False
        return (min(polygon[0, 0], polygon[1, 0]) <= x <= max(polygon[0, 0], polygon[1, 0])) and (
            min(polygon[0, 1], polygon[1, 1]) <= y <= max(polygon[0, 1], polygon[1, 1])
        )
    if turn(polygon, 0, 1, x, y) < 0 or turn(polygon, 0, h - 1, x, y) > 0:
        return False
    low, high = 1, h - 1  # the point is left of 0->low and not left of 0->high
    while high - low > 1:
        mid = (low + high) >> 1
        if turn(polygon, 0, mid, x, y) >= 0:
            low = mid
        else:
            high = mid
    return turn(polygon, low, low + 1, x, y) >= 0


@bare
def is_symmetric(polygon):
    """Whether the polygon is its own mirror image at 0: of the vertices in order, each is the
    negative of the one half a turn on."""
    h = polygon.shape[0]
    half = h >> 1
    if h == 1:
        return polygon[0, 0] == 0 and polygon[0, 1] == 0
    if 2 * half != h:
        return False
    for i in range(half):
        j = i + half
        if polygon[i, 0] != -polygon[j, 0] or polygon[i, 1] != -polygon[j, 1]:
            return False
    return True


@kernel
def contain(polygon, points, out):
    for k in range(points.shape[0]):
        out[k] = contains(polygon, points[k, 0], points[k, 1])


@kernel
def minkowski_difference(polygon):
    """{a - b : a, b in the polygon} by merging its edges with their negatives in order of angle,
    O(h)."""
    h = polygon.shape[0]
    top = 0  # the lexicographically highest vertex; its negative is where -polygon starts
    for i in range(h):
        if polygon[i, 0] > polygon[top, 0] or (
            polygon[i, 0] == polygon[top, 0] and polygon[i, 1] > polygon[top, 1]
        ):
            top = i
    out = np.empty((2 * h, 2), np.int64)
    i = j = n = 0
    while True:
        a, b = i % h, (top + j) % h
        out[n, 0], out[n, 1] = polygon[a, 0] - polygon[b, 0], polygon[a, 1] - polygon[b, 1]
        n += 1
        if h == 1:
            return out[:n].copy()
        a1, b1 = (a + 1) % h, (b + 1) % h
        c = cross(
            polygon[a1, 0] - polygon[a, 0], polygon[a1, 1] - polygon[a, 1],
            polygon[b, 0] - polygon[b1, 0], polygon[b, 1] - polygon[b1, 1],
        )  # fmt: skip
        forward, backward = i < h and (c >= 0 or j >= h), j < h and (c <= 0 or i >= h)
        i += forward
        j += backward
        if i >= h and j >= h:
            return out[:n].copy()


@bare
def ray_edge(polygon, x, y):
    """Index i of the edge (i, i+1) that the ray from the origin through (x, y) meets; the origin
    is inside. O(log h)."""
    h = polygon.shape[0]
    vx, vy = polygon[0, 0], polygon[0, 1]
    # Split at vertex 0 and its opposite, where the angle from vertex 0 passes pi: half 0 is left of
    # vertex 0.
    half = h >> 1
    side = cross(vx, vy, x, y)
    if side > 0 or (side == 0 and (vx * x + vy * y) > 0):
        low, high = 0, half
    else:
        low, high = half, h
    while high - low > 1:
        mid = (low + high) >> 1
        if cross(polygon[mid, 0], polygon[mid, 1], x, y) >= 0:
            low = mid
        else:
            high = mid
    return low


@bare
def _sees(polygon, edge, x, y):
    h = polygon.shape[0]
    edge %= h
    return turn(polygon, edge, (edge + 1) % h, x, y) < 0


@bare
def tangents(polygon, x, y):
    """Tangent vertices (i, j) of a symmetric rank-2 polygon from a point outside it; vertices
    i+1..j-1 are hidden by it.

    The point sees the edge its ray from the centre meets and never the opposite one, and what it
    sees is one run of edges: so two binary searches find both ends, O(log h). Indices run on past h
    - 1: take them modulo h."""
    h = polygon.shape[0]
    seen = ray_edge(polygon, x, y) + h
    low, high = seen, seen + (h >> 1)
    while high - low > 1:
        mid = (low + high) >> 1
        if _sees(polygon, mid, x, y):
            low = mid
        else:
            high = mid
    last = high
    low, high = seen - (h >> 1), seen
    while high - low > 1:
        mid = (low + high) >> 1
        if _sees(polygon, mid, x, y):
            high = mid
        else:
            low = mid
    return high - h, last - h


@kernel
def _symmetric_hull(buffer, n):
    both = np.empty((2 * n + 1, 2), np.int64)
    for i in range(n):
        both[i, 0], both[i, 1], both[n + i, 0], both[n + i, 1] = (
            buffer[i, 0],
            buffer[i, 1],
            -buffer[i, 0],
            -buffer[i, 1],
        )
    both[2 * n, 0] = both[2 * n, 1] = 0  # the hull of no difference at all is the origin
    return chain(both)


@kernel
def _push(buffer, n, x, y):
    """Add a difference; a full buffer is reduced to its hull first, so memory never grows with
    the number of edges."""
    if n == buffer.shape[0]:
        reduced = _symmetric_hull(buffer, n)
        n = reduced.shape[0]
        if 2 * n > buffer.shape[0]:
            buffer = np.empty((4 * n, 2), np.int64)
        copy_rows(reduced, n, buffer, 0)
    buffer[n, 0], buffer[n, 1] = x, y
    return buffer, n + 1


@kernel
def _points_of(members, lattice):
    out = np.empty((members.shape[0], 2), np.int64)
    for i in range(members.shape[0]):
        out[i, 0], out[i, 1] = lattice[members[i], 0], lattice[members[i], 1]
    return out


@kernel
def difference_hull(members, lattice, cliques, indptr, indices):
    """conv{+-(f(i) - f(j))} over the edges among ``members`` (a union of components, or a whole
    domain).

    A clique P costs the Minkowski difference of its own hull, O(|P| log |P|), never its |P|^2
    edges."""
    buffer = np.empty((min(_BUFFER, 4 * members.shape[0] + 16), 2), np.int64)
    n = 0
    labels = cliques[members]
    by_clique = order_of_labels(labels)
    start = 0
    while start < members.shape[0]:
        label = labels[by_clique[start]]
        stop = start + 1
        while stop < members.shape[0] and labels[by_clique[stop]] == label:
            stop += 1
        if label >= 0 and stop - start > 1:
            body = minkowski_difference(chain(_points_of(members[by_clique[start:stop]], lattice)))
            for i in range(body.shape[0]):
                buffer, n = _push(buffer, n, body[i, 0], body[i, 1])
        start = stop
    for i in members:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                dx = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0])
                dy = np.int64(lattice[j, 1]) - np.int64(lattice[i, 1])
                buffer, n = _push(buffer, n, dx, dy)
    return _symmetric_hull(buffer, n)


@kernel
def difference_hulls(members, starts, which, lattice, cliques, indptr, indices):
    """``difference_hull`` of each group in ``which``, laid end to end: (vertices, starts)."""
    ends = np.zeros(which.shape[0] + 1, np.int64)
    flat = np.empty((16 * which.shape[0] + 16, 2), np.int64)
    for k in range(which.shape[0]):
        g = which[k]
        polygon = difference_hull(
            members[starts[g] : starts[g + 1]], lattice, cliques, indptr, indices
        )
        flat, ends[k + 1] = append_rows(flat, ends[k], polygon, polygon.shape[0])
    return flat[: ends[-1]].copy(), ends


@kernel
def gauge(polygon, xy, out):
    """||x||_K for each row of ``xy`` (floats, any one unit), K a polygon of floats around the
    origin, rank 2.

    ||x||_K = max over edges (a, b) of (x cross (b - a)) / (a cross b): each quotient is the linear
    form that is 1 on that edge.
    """
    h = polygon.shape[0]
    for k in range(xy.shape[0]):
        best = 0.0
        for i in range(h):
            ax, ay = polygon[i, 0], polygon[i, 1]
            bx, by = polygon[(i + 1) % h, 0], polygon[(i + 1) % h, 1]
            value = cross(xy[k, 0], xy[k, 1], bx - ax, by - ay) / cross(ax, ay, bx, by)
            if not value <= best:  # NaN in, NaN out
                best = value
        out[k] = best
