"""Pr(z|s) in closed form: the K-norm density integrated over the Voronoi region of z (spec section 5).

In the cone from s over one edge of K the density is exp of a linear function, and cone and region meet in a convex polygon,
maybe unbounded. The polygon is cut into triangles, one strip and one wedge, whose integrals are all positive closed
forms: nothing ever cancels, so that even a probability of e^-700 has full relative precision. Sums are kept as
(exponent, mantissa) and come out as logarithms.

Everything is affine-invariant, so the unit is the lattice unit; only "nearest" sees the cell's proportions, through
``stretch`` = (dy/dx)^2, which makes the metric |x|^2 = col^2 + stretch * row^2. Coordinates are centred on z.
"""

import numpy as np

from .jit import kernel

_TIE = 1e-12  # of a line along a boundary, relative to the terms compared: cells' proportions are floats
_FAR = 50.0  # e^-50 of a piece's mass lies further out than this; vertices out there would cost precision


@kernel
def mean_exp(x):
    """(1 - exp(-x)) / x, the mean of exp(-u) over u in [0, x], for x >= 0."""
    return -np.expm1(-x) / x if x > 0.0 else 1.0


@kernel
def simplex_exp(a, b):
    """Integral of exp(-(a s + b t)) over s, t >= 0, s + t <= 1, for a, b >= 0.

    It is the divided difference of exp(-x) at 0, a, b. For a <= b and b not small, (mean_exp(a) - exp(-a) mean_exp(b-a)) / b
    loses nothing; for small b the series sum (-1)^n h_n(a, b) / (n+2)!, h_n the complete homogeneous polynomial, does.
    """
    if a > b:
        a, b = b, a
    if b > 0.5:
        return (mean_exp(a) - np.exp(-a) * mean_exp(b - a)) / b
    total, coefficient, power, homogeneous = 0.5, 0.5, 1.0, 1.0
    for n in range(1, 16):
        power *= b
        homogeneous = a * homogeneous + power
        coefficient /= -(n + 2.0)
        total += coefficient * homogeneous
    return total


@kernel
def voronoi_neighbours(sites, z, stretch, out):
    """Sites whose bisector with site z carries part of its region's boundary; returns how many were written to ``out``.

    On each bisector the other half-planes leave an interval. Sites are tried from the nearest on, so far ones fail at once.
    """
    k = sites.shape[0]
    distance = np.empty(k)
    for i in range(k):
        dx, dy = sites[i, 0] - sites[z, 0], sites[i, 1] - sites[z, 1]
        distance[i] = dx * dx + stretch * dy * dy
    order = np.argsort(distance)
    n = 0
    for a in order:
        if a == z:
            continue
        dx, dy = sites[a, 0] - sites[z, 0], sites[a, 1] - sites[z, 1]
        ux, uy = -stretch * dy, dx  # along the bisector, from its middle (dx/2, dy/2)
        low, high = -np.inf, np.inf
        for b in order:
            if b == z or b == a:
                continue
            ex, ey = sites[b, 0] - sites[z, 0], sites[b, 1] - sites[z, 1]
            slope = ex * ux + stretch * ey * uy
            room = 0.5 * (distance[b] - (ex * dx + stretch * ey * dy))
            if slope > 0.0:
                high = min(high, room / slope)
            elif slope < 0.0:
                low = max(low, room / slope)
            elif room < 0.0:
                high = -np.inf
            if low >= high:
                break
        if low < high:
            out[n] = a
            n += 1
    return n


@kernel
def _clip(px, py, m, rays, open_, nx, ny, c):
    """Intersect a convex polygon with nx x + ny y <= c, in place; returns (vertices, whether it is still unbounded).

    Vertices run counter-clockwise. An unbounded polygon comes in along a ray from infinity to its first vertex and leaves
    from its last: ``rays`` = (ax, ay, bx, by) holds both directions, away from the vertices.
    """
    in_a = in_b = False
    if open_:
        slope_a = nx * rays[0] + ny * rays[1]
        slope_b = nx * rays[2] + ny * rays[3]
        # a ray along the plane's edge, but for rounding, would be cut somewhere near infinity
        if abs(slope_a) <= _TIE * (abs(nx * rays[0]) + abs(ny * rays[1])):
            slope_a = 0.0
        if abs(slope_b) <= _TIE * (abs(nx * rays[2]) + abs(ny * rays[3])):
            slope_b = 0.0
        in_a = slope_a < 0.0 or (slope_a == 0.0 and nx * px[0] + ny * py[0] <= c)
        in_b = slope_b < 0.0 or (slope_b == 0.0 and nx * px[m - 1] + ny * py[m - 1] <= c)
    qx, qy = np.empty(m + 2), np.empty(m + 2)
    n = 0
    previous = nx * px[m - 1] + ny * py[m - 1] - c
    for i in range(m):
        j = i - 1 if i > 0 else m - 1
        here = nx * px[i] + ny * py[i] - c
        if i == 0 and open_:
            if in_a != (here <= 0.0):  # the plane's edge crosses the incoming ray
                t = -here / slope_a
                qx[n], qy[n] = px[0] + t * rays[0], py[0] + t * rays[1]
                n += 1
        elif (previous <= 0.0) != (here <= 0.0):
            t = previous / (previous - here)
            qx[n], qy[n] = px[j] + t * (px[i] - px[j]), py[j] + t * (py[i] - py[j])
            n += 1
        if here <= 0.0:
            qx[n], qy[n] = px[i], py[i]
            n += 1
        previous = here
    if open_ and in_b != (previous <= 0.0):
        t = -previous / slope_b
        qx[n], qy[n] = px[m - 1] + t * rays[2], py[m - 1] + t * rays[3]
        n += 1
    if open_ and in_a and not in_b:
        rays[2], rays[3] = -ny, nx  # from the last crossing on, the boundary follows the plane's edge
    elif open_ and in_b and not in_a:
        rays[0], rays[1] = ny, -nx
    for i in range(n):
        px[i], py[i] = qx[i], qy[i]
    return n, open_ and (in_a or in_b)


@kernel
def _add(total, exponent, value):
    """total = (exponent e, mantissa m) stands for m * exp(-e); add value * exp(-exponent)."""
    if value <= 0.0:
        return
    if exponent < total[0]:
        total[1] *= np.exp(exponent - total[0]) if total[1] > 0.0 else 0.0
        total[0] = exponent
    total[1] += value * np.exp(total[0] - exponent)


@kernel
def _integrate(px, py, m, rays, open_, gx, gy, sx, sy, total):
    """Add the integral of exp(-g . (x - s)) over the polygon: triangles, then a strip and a wedge to infinity."""
    level = np.empty(m)
    for i in range(m):
        level[i] = gx * (px[i] - sx) + gy * (py[i] - sy)
    for i in range(1, m - 1):
        area2 = (px[i] - px[0]) * (py[i + 1] - py[0]) - (py[i] - py[0]) * (px[i + 1] - px[0])
        a, b, c = level[0], level[i], level[i + 1]
        low = min(a, b, c)
        if low == a:
            _add(total, low, area2 * simplex_exp(b - low, c - low))
        elif low == b:
            _add(total, low, area2 * simplex_exp(a - low, c - low))
        else:
            _add(total, low, area2 * simplex_exp(a - low, b - low))
    if open_:
        ax, ay, bx, by = rays
        climb_a, climb_b = gx * ax + gy * ay, gx * bx + gy * by
        first, last = level[0], level[m - 1]
        width = (px[m - 1] - px[0]) * ay - (py[m - 1] - py[0]) * ax
        _add(total, min(first, last), width * mean_exp(abs(last - first)) / climb_a)
        _add(total, last, (bx * ay - by * ax) / (climb_a * climb_b))


@kernel
def reduced_frame(body):
    """Integer covectors (rows, determinant 1) in whose coordinates K is as little oblique as a unimodular map can make it.

    Lagrange's reduction under the form sum of (t.v)^2 over K's vertices v. A thin oblique K becomes thin along an axis.
    """
    a0, a1, b0, b1 = 1, 0, 0, 1
    for _ in range(200):
        aa = ab = bb = 0.0
        for i in range(body.shape[0]):
            x, y = a0 * body[i, 0] + a1 * body[i, 1], b0 * body[i, 0] + b1 * body[i, 1]
            aa += x * x
            ab += x * y
            bb += y * y
        if bb > aa:  # a stays the longer one
            a0, a1, b0, b1 = b0, b1, -a0, -a1
            aa, ab, bb = bb, -ab, aa
        q = np.int64(np.rint(ab / bb))
        if q == 0:
            break
        a0, a1 = a0 - q * b0, a1 - q * b1
    # b is the direction K is thinnest in; complete it by small numbers (Euclid): a0 * b1 - a1 * b0 = 1
    r, r1, x, x1, y, y1 = b1, -b0, 1, 0, 0, 1
    while r1 != 0:
        q = r // r1
        r, r1 = r1, r - q * r1
        x, x1 = x1, x - q * x1
        y, y1 = y1, y - q * y1
    return x * r, y * r, b0, b1


@kernel
def _planar(z, sources, sites, near, n_near, stretch, body, epsilon, out):
    """out[s] = ln Pr(z|s) for each source s: K of rank 2."""
    h = body.shape[0]
    t00, t01, t10, t11 = reduced_frame(body)
    K = np.empty((h, 2))
    for i in range(h):
        K[i, 0], K[i, 1] = t00 * body[i, 0] + t01 * body[i, 1], t10 * body[i, 0] + t11 * body[i, 1]
    area2 = 0.0
    for i in range(h):
        j = (i + 1) % h
        area2 += K[i, 0] * K[j, 1] - K[i, 1] * K[j, 0]
    scale = 2.0 * np.log(epsilon) - np.log(area2)  # density eps^2 / (2 area K)
    px, py = np.empty(n_near + 8), np.empty(n_near + 8)
    rays, total = np.empty(4), np.empty(2)
    for k in range(sources.shape[0]):
        s = sources[k]
        fx, fy = sites[s, 0] - sites[z, 0], sites[s, 1] - sites[z, 1]
        sx, sy = np.float64(t00 * fx + t01 * fy), np.float64(t10 * fx + t11 * fy)
        total[0], total[1] = np.inf, 0.0
        for i in range(h):
            j = (i + 1) % h
            ux, uy, vx, vy = K[i, 0], K[i, 1], K[j, 0], K[j, 1]
            px[0], py[0], m, open_ = sx, sy, 1, True
            rays[0], rays[1], rays[2], rays[3] = vx, vy, ux, uy
            for b in near[:n_near]:
                ex, ey = sites[b, 0] - sites[z, 0], sites[b, 1] - sites[z, 1]
                nx, ny = t11 * ex - stretch * (t10 * ey), stretch * (t00 * ey) - t01 * ex
                m, open_ = _clip(px, py, m, rays, open_, nx, ny, 0.5 * (ex * ex + stretch * ey * ey))
                if m == 0:
                    break
            if m == 0:
                continue
            unit = epsilon / (ux * vy - uy * vx)
            gx, gy = (vy - uy) * unit, (ux - vx) * unit  # the linear form that is epsilon on the edge (u, v)
            low, high = np.inf, -np.inf
            for a in range(m):
                level = gx * (px[a] - sx) + gy * (py[a] - sy)
                low, high = min(low, level), max(high, level)
            if high > low + _FAR:
                m, open_ = _clip(px, py, m, rays, open_, gx, gy, gx * sx + gy * sy + low + _FAR)
            _integrate(px, py, m, rays, open_, gx, gy, sx, sy, total)
        out[k] = np.log(total[1]) - total[0] + scale if total[1] > 0.0 else -np.inf


@kernel
def _line_span(z, anchor, sites, stretch, wx, wy):
    """The (low, high) of t where anchor + t w is nearest to site z; low >= high if nowhere.

    A line that runs along the boundary of two regions is a tie all the way: it belongs to the lower index. Cells' proportions are
    floats, so "along" and "on" mean within rounding, as in the sampler's search tree.
    """
    sx, sy = sites[anchor, 0] - sites[z, 0], sites[anchor, 1] - sites[z, 1]
    low, high = -np.inf, np.inf
    for b in range(sites.shape[0]):
        if b == z:
            continue
        ex, ey = sites[b, 0] - sites[z, 0], sites[b, 1] - sites[z, 1]
        slope = ex * wx + stretch * ey * wy
        if abs(slope) <= _TIE * (abs(ex * wx) + abs(stretch * ey * wy)):
            slope = 0.0
        square = 0.5 * (ex * ex + stretch * ey * ey)
        room = square - (ex * sx + stretch * ey * sy)
        if abs(room) <= _TIE * (square + abs(ex * sx) + abs(stretch * ey * sy)):
            room = 0.0
        if slope > 0.0:
            high = min(high, room / slope)
        elif slope < 0.0:
            low = max(low, room / slope)
        elif room < 0.0 or (room == 0.0 and b < z):
            return 0.0, 0.0
    if high - low <= _TIE * max(abs(low), abs(high), 1.0) and high < np.inf and low > -np.inf:
        return 0.0, 0.0  # the line only touches a corner of the region
    return low, high


@kernel
def _linear(z, sources, sites, stretch, wx, wy, epsilon, out):
    """out[s] = ln Pr(z|s) for each source s: K the segment +-w, so the noise is w times a Laplace(1/eps) number.

    All sites on one line along w use the spans of the first of them, so that what is a tie for one is a tie for all.
    """
    for k in range(sources.shape[0]):
        s = sources[k]
        side = sites[s, 0] * wy - sites[s, 1] * wx
        anchor = 0
        while sites[anchor, 0] * wy - sites[anchor, 1] * wx != side:
            anchor += 1
        low, high = _line_span(z, anchor, sites, stretch, wx, wy)
        if low >= high:
            out[k] = -np.inf
            continue
        ahead = (sites[s, 0] - sites[anchor, 0]) / wx if abs(wx) >= abs(wy) else (sites[s, 1] - sites[anchor, 1]) / wy
        low, high = low - ahead, high - ahead
        if low < 0.0 < high:
            out[k] = np.log(0.5 * (-np.expm1(epsilon * low) - np.expm1(-epsilon * high)))
        else:
            start, end = min(abs(low), abs(high)), max(abs(low), abs(high))
            out[k] = np.log(-0.5 * np.expm1(epsilon * (start - end))) - epsilon * start


@kernel
def log_column(sites, stretch, body, epsilon, sources, z, near, out):
    """out[k] = ln Pr(z|sources[k]); ``near`` is room for as many places as there are sites."""
    if body.shape[0] == 1:
        for k in range(sources.shape[0]):
            out[k] = 0.0 if sources[k] == z else -np.inf
    elif body.shape[0] == 2:
        _linear(z, sources, sites, stretch, body[1, 0], body[1, 1], epsilon, out)
    else:
        n_near = voronoi_neighbours(sites, z, stretch, near)
        _planar(z, sources, sites, near, n_near, stretch, body, epsilon, out)


@kernel
def log_probabilities(sites, stretch, body, epsilon, sources, first, last, out):
    """out[k, z] = ln Pr(z|sources[k]) for z in first..last-1.

    ``sites`` (n, 2) int64 offsets of the output set; ``body`` (h, 2) vertices of K in lattice units, counter-clockwise.
    """
    near = np.empty(sites.shape[0], np.int64)
    column = np.empty(sources.shape[0])
    for z in range(first, last):
        log_column(sites, stretch, body, epsilon, sources, z, near, column)
        for k in range(sources.shape[0]):
            out[k, z] = column[k]
