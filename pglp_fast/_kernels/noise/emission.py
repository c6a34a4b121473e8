"""Pr(z|s) in closed form: the K-norm density integrated over the Voronoi region of z.

In the cone from s over one edge of K the density is exp of a linear function, and cone and region
meet in a convex polygon, maybe unbounded. The polygon is cut into triangles, one strip and one
wedge, whose integrals are all positive closed forms: nothing ever cancels, so that even a
probability of e^-700 has full relative precision. Sums are kept as (exponent, mantissa) and come
out as logarithms.

Everything is affine-invariant, so the unit is the lattice unit; only "nearest" sees the cell's
proportions, through ``stretch`` = (dy/dx)^2, which makes the metric |x|^2 = col^2 + stretch *
row^2. Coordinates are centred on z, or on s where noise is so small that its own place matters
more than z's region. See spec section 5."""

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.geometry.polygons import polygon_of
from pglp_fast._kernels.policy.shapes import members_of, sites_of

from .line_emission import linear
from .voronoi_regions import (
    between_rays,
    bisectors,
    clip,
    cone_region,
    cones_that_meet,
    find_cutting,
    from_source,
    ray_ends,
    voronoi_neighbours,
)

# e^-50 of a piece's mass lies further out than this; vertices out there would cost precision.
_FAR = 50.0
# Rounding to add eps ||s - z||_K units to a logarithm may be as large as this: 1e-13.
_UNITS = 1e3
# Terms of a series between 0.3 and 0.5 that are smaller change nothing in float64.
_NEGLIGIBLE = 2.0**-56
_TERMS = 16
# (-1)^n / (n + 2)!
_SERIES = np.divide.accumulate(np.append(0.5, -np.arange(3.0, _TERMS + 2)))


@bare
def mean_exp(x):
    """(1 - exp(-x)) / x, the mean of exp(-u) over u in [0, x], for x >= 0."""
    return -np.expm1(-x) / x if x > 0.0 else 1.0


@bare
def simplex_exp(a, b):
    """Integral of exp(-(a s + b t)) over s, t >= 0, s + t <= 1, for a, b >= 0.

    It is the divided difference of exp(-x) at 0, a, b. For a <= b and b not small, (mean_exp(a) -
    exp(-a) mean_exp(b-a)) / b loses nothing; for small b the series sum (-1)^n h_n(a, b) / (n+2)!,
    h_n the complete homogeneous polynomial, does."""
    if a > b:
        a, b = b, a
    if b > 0.5:
        return (mean_exp(a) - np.exp(-a) * mean_exp(b - a)) / b
    total, power, homogeneous = 0.5, 1.0, 1.0
    for n in range(1, _TERMS):
        power *= b
        homogeneous = a * homogeneous + power
        term = _SERIES[n] * homogeneous
        if abs(term) < _NEGLIGIBLE:
            break
        total += term
    return total


@bare
def _add(total, exponent, value):
    """total = (exponent e, mantissa m) stands for m * exp(-e); add value * exp(-exponent)."""
    if value <= 0.0:
        return
    if exponent < total[0]:
        total[1] *= np.exp(exponent - total[0]) if total[1] > 0.0 else 0.0
        total[0] = exponent
    total[1] += value * np.exp(total[0] - exponent)


@bare
def _integrate(points, m, rays, open_, gx, gy, sx, sy, total):
    """Add the integral of exp(-g . (x - s)) over the polygon: triangles, then a strip and a wedge
    to infinity."""
    px, py, level = points[0], points[1], points[2]
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
        ax, ay, bx, by = rays[0, 0], rays[0, 1], rays[1, 0], rays[1, 1]
        climb_a, climb_b = gx * ax + gy * ay, gx * bx + gy * by
        first, last = level[0], level[m - 1]
        width = (px[m - 1] - px[0]) * ay - (py[m - 1] - py[0]) * ax
        _add(total, min(first, last), width * mean_exp(abs(last - first)) / climb_a)
        _add(total, last, (bx * ay - by * ax) / (climb_a * climb_b))


@kernel
def reduced_frame(polygon):
    """A unimodular integer map T, and T K, in which K is round but for a scale on each axis.

    Lagrange's reduction under the form (t, u) -> sum of (t.v)(u.v) over K's vertices v: at its
    end |ab| <= bb / 2 with bb <= aa, so the ellipse of K's moments has axes that lean by 30
    degrees at most. Steps are taken on T K itself. For hulls on the lattice these are integers
    below 2**53: every step is exact, so that rounding in a step's quotient costs another step,
    never precision. Returns (T row by row, T K).
    """
    h = polygon.shape[0]
    K = polygon.copy()
    a0, a1, b0, b1 = 1, 0, 0, 1
    for _ in range(200):  # each step but the last at least halves the longer axis
        aa = ab = bb = 0.0
        for i in range(h):
            aa += K[i, 0] * K[i, 0]
            ab += K[i, 0] * K[i, 1]
            bb += K[i, 1] * K[i, 1]
        if bb > aa:  # the first axis stays the longer one
            a0, a1, b0, b1 = b0, b1, -a0, -a1
            for i in range(h):
                K[i, 0], K[i, 1] = K[i, 1], -K[i, 0]
            ab, bb = -ab, aa
        q = np.int64(np.rint(ab / bb))
        if q == 0:
            break
        a0, a1 = a0 - q * b0, a1 - q * b1
        for i in range(h):
            K[i, 0] -= q * K[i, 1]
    return a0, a1, b0, b1, K


@kernel
def _gradients(K, epsilon):
    """Rows g with eps ||x||_K = max over K's edges of g . x: that of an edge is eps on it."""
    h = K.shape[0]
    out = np.empty((h, 2))
    for i in range(h):
        j = (i + 1) % h
        ux, uy, vx, vy = K[i, 0], K[i, 1], K[j, 0], K[j, 1]
        unit = epsilon / (ux * vy - uy * vx)
        out[i, 0], out[i, 1] = (vy - uy) * unit, (ux - vx) * unit
    return out


@bare
def _centred_on_source(fx, fy, sx, sy, gradients, nearest):
    """Whether coordinates of regions are better taken from the source at f (s in the frame T).

    Centred on z, rounding moves a level by eps ||f||_K units; centred on s it moves the edges of
    z's region, whose nearest site is so far, by |f| / nearest units of its size."""
    level = 0.0
    for i in range(gradients.shape[0]):
        level = max(level, gradients[i, 0] * sx + gradients[i, 1] * sy)
    return level > _UNITS and level > np.hypot(fx, fy) / nearest


@bare
def _add_cone(points, m, rays, open_, gx, gy, sx, sy, total):
    """Add the integral of exp(-g . (x - s)) over a piece of a cone, but for what is far out."""
    low, high = np.inf, -np.inf
    for a in range(m):
        level = gx * (points[0, a] - sx) + gy * (points[1, a] - sy)
        low, high = min(low, level), max(high, level)
    if high > low + _FAR:
        climb_a = gx * rays[0, 0] + gy * rays[0, 1]
        climb_b = gx * rays[1, 0] + gy * rays[1, 1]
        limit = gx * sx + gy * sy + low + _FAR
        m, open_ = clip(points, m, rays, open_, gx, gy, limit, climb_a, climb_b, 0, 0)
    _integrate(points, m, rays, open_, gx, gy, sx, sy, total)


@kernel
def planar(z, sources, sites, near, stretch, polygon, epsilon, out):
    """out[s] = ln Pr(z|s) for each source s: K of rank 2; ``near``: see ``voronoi_neighbours``."""
    h, n_near = polygon.shape[0], near.shape[0]
    t00, t01, t10, t11, K = reduced_frame(polygon)
    area2 = 0.0
    for i in range(h):
        j = (i + 1) % h
        area2 += K[i, 0] * K[j, 1] - K[i, 1] * K[j, 0]
    scale = 2.0 * np.log(epsilon) - np.log(area2)  # density eps^2 / (2 area K)
    points, rays, total = np.empty((4, n_near + 10)), np.empty((2, 5)), np.empty(2)
    around = bisectors(z, sites, near, stretch, polygon, t00, t01, t10, t11)
    gradients, nearest = (
        _gradients(K, epsilon),
        np.hypot(around.offsets[0, 0], around.offsets[0, 1]),
    )
    c, beyond, ends = np.empty(n_near), np.empty(n_near), np.empty((h, 4))
    cutting = np.empty(n_near, np.int64)
    for k in range(sources.shape[0]):
        s = sources[k]
        fx, fy = sites[s, 0] - sites[z, 0], sites[s, 1] - sites[z, 1]
        sx, sy = np.float64(t00 * fx + t01 * fy), np.float64(t10 * fx + t11 * fy)
        total[0], total[1] = np.inf, 0.0
        for b in range(n_near):
            c[b] = around.lines[b, 2]
        if _centred_on_source(fx, fy, sx, sy, gradients, nearest):
            sx = sy = 0.0
            from_source(around, fx, fy, c)
        for b in range(n_near):
            beyond[b] = around.lines[b, 0] * sx + around.lines[b, 1] * sy - c[b]
        ray_ends(around.climbs, beyond, ends)
        first, n_cones = cones_that_meet(ends)
        wrapped = max(0, first + n_cones - h)  # in ascending order, whatever s is: one sum
        for turn in range(n_cones):
            i = turn if turn < wrapped else first + turn - wrapped
            j = i + 1 if i + 1 < h else 0
            m, open_ = between_rays(ends, i, j, K, sx, sy, points, rays)
            if m < 0:
                n = find_cutting(around.climbs, beyond, i, j, cutting)
                if n < 0:
                    continue
                m, open_ = cone_region(
                    around, c, cutting, n, K, polygon, i, j, sx, sy, points, rays
                )
            if m > 0:
                gx, gy = gradients[i, 0], gradients[i, 1]
                _add_cone(points, m, rays, open_, gx, gy, sx, sy, total)
        out[k] = np.log(total[1]) - total[0] + scale if total[1] > 0.0 else -np.inf


@kernel
def log_column(sites, stretch, polygon, epsilon, sources, z, near, out):
    """out[k] = ln Pr(z|sources[k]); ``near`` is room for as many places as there are sites."""
    if polygon.shape[0] == 1:
        for k in range(sources.shape[0]):
            out[k] = 0.0 if sources[k] == z else -np.inf
    elif polygon.shape[0] == 2:
        linear(z, sources, sites, stretch, polygon[1, 0], polygon[1, 1], epsilon, out)
    else:
        n_near = voronoi_neighbours(sites, z, stretch, near)
        planar(z, sources, sites, near[:n_near], stretch, polygon, epsilon, out)


@kernel
def fill_columns(sites, stretch, polygon, epsilon, sources, first, last, out):
    """out[k, z] = ln Pr(z|sources[k]) for z in first..last-1.

    ``sites`` (n, 2) int64 offsets of the output set; ``polygon`` (h, 2) vertices of K in lattice
    units, counter-clockwise."""
    near = np.empty(sites.shape[0], np.int64)
    column = np.empty(sources.shape[0])
    for z in range(first, last):
        log_column(sites, stretch, polygon, epsilon, sources, z, near, column)
        for k in range(sources.shape[0]):
            out[k, z] = column[k]


@kernel
def fill_matrices(which, start, stop, groups, polygons, stretch, epsilon, at, out):
    """ln Pr(z|s) of shapes ``which[start:stop]``, that of ``which[w]`` row by row from
    ``out[at[w]]`` on."""
    for w in range(start, stop):
        members = members_of(groups, which[w])
        k = members.shape[0]
        sites, polygon = sites_of(members, groups.lattice), polygon_of(polygons, which[w])
        rows = out[at[w] : at[w] + k * k].reshape(k, k)
        fill_columns(sites, stretch, polygon, epsilon, np.arange(k), 0, k, rows)


@bare
def exponentiate(values):
    """exp of each, in place."""
    for i in range(values.shape[0]):
        values[i] = np.exp(values[i])
