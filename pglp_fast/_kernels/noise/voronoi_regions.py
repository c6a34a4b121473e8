"""The Voronoi region of a site within a cone: what noise from s over one edge of K is snapped to z.

Coordinates are those of a unimodular frame T, centred on z or on the source; bisectors keep their
lattice offsets beside, so that the sign of a slope is exact. See spec section 5."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.sorting import order_by

from .line_emission import dot

# The bisectors of z with the sites around it: rows (nx, ny, c), the side n.x <= c of each that z is
# on, in the frame T; the sites' lattice offsets from z; how n.x grows along each vertex of K, with
# an exact sign; and the cells' proportions.
Bisectors = namedtuple("Bisectors", "lines offsets climbs stretch")


@kernel
def voronoi_neighbours(sites, z, stretch, out):
    """Sites whose bisector with site z carries part of its region's boundary; returns how many were
    written to ``out``.

    On each bisector the other half-planes leave an interval. Sites are tried from the nearest on,
    so far ones fail at once; those at one distance by index."""
    k = sites.shape[0]
    distance = np.empty(k)
    for i in range(k):
        dx, dy = sites[i, 0] - sites[z, 0], sites[i, 1] - sites[z, 1]
        distance[i] = dx * dx + stretch * dy * dy
    order, room = np.empty(k, np.int64), np.empty(k, np.int64)
    order_by(distance, order, room)
    n = 0
    for a in order:
        if a == z:
            continue
        dx, dy = sites[a, 0] - sites[z, 0], sites[a, 1] - sites[z, 1]
        # positions along the bisector: (dx/2, dy/2) + t (-stretch dy, dx)
        low, high = -np.inf, np.inf
        for b in order:
            if b == z or b == a:
                continue
            ex, ey = sites[b, 0] - sites[z, 0], sites[b, 1] - sites[z, 1]
            slope = stretch * (dx * ey - dy * ex)  # the sign is exact: an int64 cross product
            room = 0.5 * (ex * (ex - dx) + stretch * (ey * (ey - dy)))
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


@bare
def climb(rays, end, ex, ey, stretch):
    """How n.x grows along a ray, n the normal of the bisector with offset e; its sign is exact.

    A ray (x, y, side, ox, oy) has direction (x, y) in the frame T. With ``side`` 0 it is K's
    vertex o on the lattice; else it runs along the bisector with offset o, whose direction is
    side * (-stretch oy, ox).
    """
    if rays[end, 2] == 0.0:
        return dot(ex, ey, rays[end, 3], rays[end, 4], stretch)
    return rays[end, 2] * stretch * (np.int64(rays[end, 3]) * ey - np.int64(rays[end, 4]) * ex)


@bare
def set_ray(rays, end, x, y, side, ox, oy):
    rays[end, 0], rays[end, 1], rays[end, 2] = x, y, side
    rays[end, 3], rays[end, 4] = ox, oy


@bare
def clip(points, m, rays, open_, nx, ny, c, climb_a, climb_b, ex, ey):
    """Intersect a convex polygon with nx x + ny y <= c, in place.

    Vertices ``points[0, :m], points[1, :m]`` run counter-clockwise; the other two rows are work
    space. An unbounded polygon comes in along ``rays[0]`` from infinity to its first vertex and
    leaves along ``rays[1]`` from its last; both directions point away from the vertices. ``climb``:
    how n.x grows along each. Returns (vertices, whether it is still unbounded).

    A crossing is placed from the end of its side that is nearer to the line: the other end may be
    so far out that its coordinates are known to no better than the size of K.
    """
    px, py, qx, qy = points[0], points[1], points[2], points[3]
    in_a = open_ and (climb_a < 0.0 or (climb_a == 0.0 and nx * px[0] + ny * py[0] <= c))
    in_b = open_ and (climb_b < 0.0 or (climb_b == 0.0 and nx * px[m - 1] + ny * py[m - 1] <= c))
    n = 0
    previous = nx * px[m - 1] + ny * py[m - 1] - c
    for i in range(m):
        j = i - 1 if i > 0 else m - 1
        here = nx * px[i] + ny * py[i] - c
        if i == 0 and open_:
            if in_a != (here <= 0.0):  # the line crosses the incoming ray
                t = -here / climb_a
                qx[n], qy[n] = px[0] + t * rays[0, 0], py[0] + t * rays[0, 1]
                n += 1
        elif (previous <= 0.0) != (here <= 0.0):
            near, far = abs(previous), abs(here)
            a, b = (j, i) if near <= far else (i, j)
            t = min(near, far) / (near + far)
            qx[n], qy[n] = px[a] + t * (px[b] - px[a]), py[a] + t * (py[b] - py[a])
            n += 1
        if here <= 0.0:
            qx[n], qy[n] = px[i], py[i]
            n += 1
        previous = here
    if open_ and in_b != (previous <= 0.0):
        t = -previous / climb_b
        qx[n], qy[n] = px[m - 1] + t * rays[1, 0], py[m - 1] + t * rays[1, 1]
        n += 1
    if in_a and not in_b:  # from the last crossing on, the boundary follows the line
        set_ray(rays, 1, -ny, nx, 1.0, ex, ey)
    elif in_b and not in_a:
        set_ray(rays, 0, ny, -nx, -1.0, ex, ey)
    for i in range(n):
        px[i], py[i] = qx[i], qy[i]
    return n, in_a or in_b


@kernel
def bisectors(z, sites, near, stretch, polygon, t00, t01, t10, t11):
    """The bisectors of z with the sites ``near``, in the frame T, against the vertices of K."""
    n, h = near.shape[0], polygon.shape[0]
    lines, offsets, climbs = np.empty((n, 3)), np.empty((n, 2), np.int64), np.empty((n, h))
    for b in range(n):
        ex, ey = sites[near[b], 0] - sites[z, 0], sites[near[b], 1] - sites[z, 1]
        offsets[b, 0], offsets[b, 1] = ex, ey
        if stretch == 1.0:  # products of lattice numbers: exact in int64
            lines[b, 0], lines[b, 1] = t11 * ex - t10 * ey, t00 * ey - t01 * ex
            lines[b, 2] = 0.5 * (ex * ex + ey * ey)
        else:
            lines[b, 0] = t11 * ex - stretch * (t10 * ey)
            lines[b, 1] = stretch * (t00 * ey) - t01 * ex
            lines[b, 2] = 0.5 * (ex * ex + stretch * (ey * ey))
        for i in range(h):
            climbs[b, i] = dot(ex, ey, polygon[i, 0], polygon[i, 1], stretch)
    return Bisectors(lines, offsets, climbs, stretch)


@bare
def from_source(around, fx, fy, out):
    """The constants c of the bisectors, for coordinates that are centred on the source at f."""
    for b in range(out.shape[0]):
        ex, ey = around.offsets[b, 0], around.offsets[b, 1]
        if around.stretch == 1.0:
            out[b] = 0.5 * (ex * (ex - 2 * fx) + ey * (ey - 2 * fy))
        else:
            out[b] = 0.5 * (ex * (ex - 2 * fx) + around.stretch * (ey * (ey - 2 * fy)))


@bare
def find_cutting(climbs, beyond, i, j, out):
    """The bisectors that cut the cone from s over K's edge (i, j); ``beyond``: how far s is beyond
    each. Returns how many were written to ``out``, -1 where one has the whole cone beyond it."""
    n = 0
    for b in range(beyond.shape[0]):
        if beyond[b] > 0.0:
            if climbs[b, i] >= 0.0 and climbs[b, j] >= 0.0:
                return -1
        elif climbs[b, i] <= 0.0 and climbs[b, j] <= 0.0:
            continue
        out[n] = b
        n += 1
    return n


@bare
def ray_ends(climbs, beyond, ends):
    """Where the rays from s along K's vertices enter and leave z's region.

    ``climbs``, ``beyond``: see ``find_cutting``. ends[i] = (t in, its bisector, t out, its
    bisector) of s + t * vertex i; -1 for a bisector where s is inside, and where the ray never
    leaves. A ray that misses the region, or meets it in a point, is told by t in >= t out."""
    for i in range(ends.shape[0]):
        t_in, t_out, enters, leaves = 0.0, np.inf, -1, -1
        for b in range(beyond.shape[0]):
            slope = climbs[b, i]
            if beyond[b] > 0.0:
                if slope >= 0.0:
                    t_out = -1.0
                    break
                t = -beyond[b] / slope
                if t > t_in:
                    t_in, enters = t, b
            elif slope > 0.0:
                t = -beyond[b] / slope
                if t < t_out:
                    t_out, leaves = t, b
            if t_in >= t_out:
                break
        ends[i, 0], ends[i, 1], ends[i, 2], ends[i, 3] = t_in, enters, t_out, leaves


@kernel
def cones_that_meet(ends):
    """(first, count) of the cones, counter-clockwise, that may meet z's region; ``ends``: see
    ``ray_ends``. Cone i lies between the rays i and i + 1.

    A point sees a convex region under one angle: the rays that meet it follow each other, and the
    cones on either side of them are all. Where no ray does, the region lies in any one cone."""
    h = ends.shape[0]
    first, met, runs = 0, 0, 0
    previous = ends[h - 1, 0] < ends[h - 1, 2]
    for i in range(h):
        meets = ends[i, 0] < ends[i, 2]
        met += meets
        if meets and not previous:
            first, runs = i, runs + 1
        previous = meets
    if runs != 1:
        return 0, h
    return (first + h - 1) % h, min(met + 1, h)


@bare
def between_rays(ends, i, j, K, sx, sy, points, rays):
    """The part of z's region in the cone over K's edge (i, j), where both of its rays enter the
    region through one side and leave it through one: see ``cone_region``; -1 vertices where they do
    not.

    Regions are convex: the part has no corner but where the rays cross its sides."""
    if ends[i, 1] != ends[j, 1] or ends[i, 3] != ends[j, 3]:
        return -1, False
    if not (ends[i, 0] < ends[i, 2] and ends[j, 0] < ends[j, 2]):
        return -1, False
    px, py = points[0], points[1]
    m, open_ = 1, ends[i, 3] < 0.0
    px[0], py[0] = sx + ends[j, 0] * K[j, 0], sy + ends[j, 0] * K[j, 1]
    if ends[i, 1] >= 0.0:
        px[1], py[1], m = sx + ends[i, 0] * K[i, 0], sy + ends[i, 0] * K[i, 1], 2
    if open_:
        rays[0, 0], rays[0, 1], rays[1, 0], rays[1, 1] = K[j, 0], K[j, 1], K[i, 0], K[i, 1]
    else:
        px[m], py[m] = sx + ends[i, 2] * K[i, 0], sy + ends[i, 2] * K[i, 1]
        px[m + 1], py[m + 1] = sx + ends[j, 2] * K[j, 0], sy + ends[j, 2] * K[j, 1]
        m += 2
    return m, open_


@bare
def cone_region(around, c, cutting, n, K, polygon, i, j, sx, sy, points, rays):
    """The part of z's region in the cone from s over K's edge (i, j), to ``points`` and ``rays``:
    see ``clip``. Returns (vertices, whether it is unbounded)."""
    points[0, 0], points[1, 0], m, open_ = sx, sy, 1, True
    set_ray(rays, 0, K[j, 0], K[j, 1], 0.0, polygon[j, 0], polygon[j, 1])
    set_ray(rays, 1, K[i, 0], K[i, 1], 0.0, polygon[i, 0], polygon[i, 1])
    for k in range(n):
        b = cutting[k]
        ex, ey = around.offsets[b, 0], around.offsets[b, 1]
        climb_a = climb(rays, 0, ex, ey, around.stretch) if open_ else 0.0
        climb_b = climb(rays, 1, ex, ey, around.stretch) if open_ else 0.0
        m, open_ = clip(
            points, m, rays, open_, around.lines[b, 0], around.lines[b, 1], c[b],
            climb_a, climb_b, ex, ey,
        )  # fmt: skip
        if m == 0:
            break
    return m, open_
