"""Slow, literal oracles for `pglp_fast`, written from the specification and the paper, never from a
kernel.

Plain data only: `lattice` is an (N, 2) integer array of (col, row), `scale` is (dx, dy) in km per
lattice unit, a graph is a set of pairs (i, j) with i < j, a domain is a set of ints. Scales are
taken as the exact values of their floats."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

NEGLIGIBLE = 800.0  # exp(-800) is 0.0 in float64
TIE = 1e-12  # relative, only for min-error: the one strategy whose costs are not rational


# Geometry (spec 1, 4)


def cross(a, b):
    """z component of a x b."""
    return a[0] * b[1] - a[1] * b[0]


def _minus(a, b):
    return (a[0] - b[0], a[1] - b[1])


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1]


def hull(points):
    """Convex hull by gift wrapping on Python ints: ccw, strictly convex, from the smallest
    point."""
    points = sorted({(int(x), int(y)) for x, y in points})
    start = here = points[0]
    vertices = []
    while True:
        vertices.append(here)
        ahead = here
        for p in points:
            if p == here:
                continue
            turn = cross(_minus(ahead, here), _minus(p, here))
            step, best = _minus(p, here), _minus(ahead, here)
            if ahead == here or turn < 0 or (turn == 0 and _dot(step, step) > _dot(best, best)):
                ahead = p
        if ahead in (here, start):
            return vertices
        here = ahead


def twice_area(vertices):
    """Twice the area, by the determinant sum of Graph Repair; 0 for a point or a segment."""
    return sum(cross(a, b) for a, b in _sides(vertices))


def _sides(vertices):
    vertices = [tuple(v) for v in vertices]
    return list(zip(vertices, vertices[1:] + vertices[:1], strict=True))


def contains(vertices, p):
    """Whether p lies in the hull, boundary included (spec 4, isolated)."""
    p = (int(p[0]), int(p[1]))
    if len(vertices) == 1:
        return p == tuple(vertices[0])
    if len(vertices) == 2:
        a, b = vertices
        return cross(_minus(b, a), _minus(p, a)) == 0 and _dot(_minus(p, a), _minus(p, b)) <= 0
    return all(cross(_minus(b, a), _minus(p, a)) >= 0 for a, b in _sides(vertices))


def gauge(vertices, p):
    """||p||_K (K-norm Mechanism) for a rank-2 K: the largest of the edge functionals; p is (...,
    2)."""
    x, y = np.moveaxis(np.asarray(p, float), -1, 0)
    functionals = []
    for a, b in _sides(vertices):
        ex, ey = b[0] - a[0], b[1] - a[1]
        functionals.append((x * ey - y * ex) / cross(a, b))
    return np.max(functionals, axis=0)


def position(lattice, scale, s):
    """f(s) in km as exact fractions (spec 1)."""
    col, row = lattice[s]
    return (int(col) * Fraction(scale[0]), int(row) * Fraction(scale[1]))


def squared_length(lattice, scale, i, j):
    """|f(i) - f(j)|^2 in km^2 as an exact fraction."""
    d = _minus(position(lattice, scale, i), position(lattice, scale, j))
    return _dot(d, d)


def nearest(lattice, scale, cells, xy_km):
    """The cell at the lowest Euclidean distance in km, ties to the lower index (spec 4)."""
    xy = (Fraction(xy_km[0]), Fraction(xy_km[1]))

    def key(s):
        d = _minus(position(lattice, scale, s), xy)
        return (_dot(d, d), s)

    return min((int(s) for s in cells), key=key)


def surrogate(lattice, scale, domain, s):
    """The location that stands for s: itself in C_t, else the nearest of C_t (spec 7)."""
    return s if s in domain else nearest(lattice, scale, domain, position(lattice, scale, s))


# Policy graphs (spec 2, 3)


def neighbours(edges, s):
    """N(s) (paper: Neighbors)."""
    return {j if i == s else i for i, j in edges if s in (i, j)}


def _hops_from(edges, s):
    hops, frontier = {s: 0}, [s]
    while frontier:
        frontier = sorted({b for a in frontier for b in neighbours(edges, a)} - hops.keys())
        depth = max(hops.values()) + 1
        hops.update(dict.fromkeys(frontier, depth))
    return hops


def component(n, edges, s):
    """N^P(s) as a sorted list (spec 2; paper, section 3.1)."""
    return sorted(_hops_from(edges, s))


def hop_distance(n, edges, a, b):
    """d_G(a, b), inf across components (spec 2; paper: Distance in Policy Graph)."""
    return float(_hops_from(edges, a).get(b, math.inf))


def constrain(edges, domain):
    """The edges of G^C, both ends in C (spec 3; paper: Constrained Location Policy Graph)."""
    return {(i, j) for i, j in edges if i in domain and j in domain}


def _within(edges, cells):
    return constrain(edges, set(cells))


def complete(cells):
    """G_2: every pair of the cells (spec 2)."""
    return set(combinations(sorted(int(c) for c in cells), 2))


def _block_of(cols, k, s):
    row, col = divmod(s, cols)
    return (row // k, col // k)


def _same_key(keys):
    pairs = combinations(range(len(keys)), 2)
    return {(i, j) for i, j in pairs if keys[i] is not None and keys[i] == keys[j]}


def blocks(rows, cols, k):
    """G_k9 and its kin: k x k blocks fully connected, cut off at the map's edge (spec 2)."""
    return _same_key([_block_of(cols, k, s) for s in range(rows * cols)])


def categories(rows, cols, labels, k):
    """G_poi: same category (>= 0) within the same block (spec 2)."""
    keys = [
        (int(labels[s]), _block_of(cols, k, s)) if labels[s] >= 0 else None
        for s in range(rows * cols)
    ]
    return _same_key(keys)


def neighbours8(rows, cols):
    """G_1: every cell with its eight neighbours (spec 2)."""

    def adjacent(a, b):
        return abs(a // cols - b // cols) <= 1 and abs(a % cols - b % cols) <= 1

    return {(a, b) for a, b in combinations(range(rows * cols), 2) if adjacent(a, b)}


def in_polygon(rings, x, y):
    """Even-odd rule in fractions: how often a ray to the east meets the rings. A side is met by the
    rows from its south end on, and a point on it is inside: west and south sides belong to it."""
    x, y = Fraction(x), Fraction(y)
    inside = False
    for ring in rings:
        for a, b in zip(ring, [*ring[1:], ring[0]]):
            (ax, ay), (bx, by) = sorted(
                [tuple(map(Fraction, a)), tuple(map(Fraction, b))], key=lambda p: (p[1], p[0])
            )
            if ay <= y < by and ax + (y - ay) / (by - ay) * (bx - ax) > x:
                inside = not inside
    return inside


def nearest_others(lattice, scale, s, k, among):
    """The k of ``among`` nearest to s, itself left out; ties to the lower index."""
    others = [i for i in among if i != s]
    return sorted(others, key=lambda i: (squared_length(lattice, scale, s, i), i))[:k]


def sensitivity_hull(lattice, edges):
    """K = conv of +-(f(i) - f(j)) over these edges, in lattice units (spec 4; paper: Sensitivity
    Hull)."""
    differences = []
    for i, j in edges:
        d = (int(lattice[i][0]) - int(lattice[j][0]), int(lattice[i][1]) - int(lattice[j][1]))
        differences += [d, (-d[0], -d[1])]
    return hull(differences or [(0, 0)])


def l1_sensitivity(lattice, scale, edges):
    """S = max |dx| + |dy| over these edges, in km (spec 4; paper: l1-norm Sensitivity)."""
    dx, dy = scale
    lengths = [
        abs(int(lattice[i][0]) - int(lattice[j][0])) * dx
        + abs(int(lattice[i][1]) - int(lattice[j][1])) * dy
        for i, j in edges
    ]
    return float(max(lengths, default=0.0))


def noise_body(lattice, scale, edges, mechanism):
    """K in km (spec 4): the sensitivity hull ("ppim") or the diamond of radius S ("plm")."""
    if mechanism == "ppim":
        return np.array(sensitivity_hull(lattice, edges), float) * np.asarray(scale, float)
    if mechanism != "plm":
        raise ValueError(f"unknown mechanism {mechanism!r}")
    radius = l1_sensitivity(lattice, scale, edges)
    if radius == 0:
        return np.zeros((1, 2))
    return radius * np.array([(-1.0, 0.0), (0.0, -1.0), (1.0, 0.0), (0.0, 1.0)])


def weighted_hull(lattice, weights):
    """conv of +-(f(i) - f(j)) / w over the edges (i, j) of weight w, as fractions (spec 10)."""
    differences = [(Fraction(0), Fraction(0))]
    for (i, j), w in weights.items():
        d = [(int(lattice[i][k]) - int(lattice[j][k])) / Fraction(w) for k in (0, 1)]
        differences += [tuple(d), (-d[0], -d[1])]
    common = math.lcm(*(x.denominator for d in differences for x in d))
    corners = hull([(x * common, y * common) for x, y in differences])
    return [(Fraction(x, common), Fraction(y, common)) for x, y in corners]


def weighted_body(lattice, scale, weights, mechanism):
    """K in km of weighted edges: the hull, or the diamond around it (spec 10)."""
    corners = weighted_hull(lattice, weights)
    if mechanism == "ppim":
        return np.array(corners, float) * np.asarray(scale, float)
    radius = max(
        float(abs(x) * Fraction(scale[0]) + abs(y) * Fraction(scale[1])) for x, y in corners
    )
    return radius * np.array([(-1.0, 0.0), (0.0, -1.0), (1.0, 0.0), (0.0, 1.0)])


def weighted_distance(n, weights, a):
    """The least sum of weights from a to every location, by relaxing every edge n times."""
    least = {a: Fraction(0)}
    for _ in range(n):
        for (i, j), w in weights.items():
            for u, v in ((i, j), (j, i)):
                if u in least and least[u] + Fraction(w) < least.get(v, math.inf):
                    least[v] = least[u] + Fraction(w)
    return [least.get(s, math.inf) for s in range(n)]


def weighted_pmf(lattice, scale, outputs, weights, epsilon, mechanism):
    """Pr(z|s) of weighted edges within the outputs: K times a whole number that makes it a hull of
    lattice points, and epsilon times the same, is the same noise (spec 10)."""
    inside = {e: w for e, w in weights.items() if set(e) <= set(outputs)}
    common = math.lcm(*(x.denominator for v in weighted_hull(lattice, inside) for x in v))
    body = weighted_body(lattice, scale, inside, mechanism) if inside else np.zeros((1, 2))
    return pmf_matrix(lattice, scale, outputs, body * common, epsilon * common)


def graph_exponential(n, weights, outputs, epsilon):
    """Pr(z|s) proportional to exp(-eps d_G(s, z) / 2), d_G the least sum of weights."""
    far = [weighted_distance(n, weights, s) for s in outputs]
    P = np.array([[math.exp(-epsilon * float(row[z]) / 2) for z in outputs] for row in far])
    return P / P.sum(axis=1, keepdims=True)


# Pr(z|s) (spec 5)
#
# The noise is w * r with w on the boundary of K by cone measure and r ~ Gamma(2, 1/eps). Along a
# side of K, w
# is linear in tau, and on a line of the plane 1/r is linear in w. So with x = 1/r a region is
# lo(tau) <= x <= hi(tau), both piecewise linear; the r-integral is closed and the tau-integral is a
# Gauss-Legendre sum.


def _exact_units(lattice, scale):
    """Exact integer coordinates and how many of their units make a km."""
    dx, dy = Fraction(scale[0]), Fraction(scale[1])
    per_km = math.lcm(dx.denominator, dy.denominator)
    ux, uy = int(dx * per_km), int(dy * per_km)
    return [(int(c) * ux, int(r) * uy) for c, r in lattice], per_km


def _snap_to_lattice(vector_km, scale):
    """The exact lattice multiple that a rounded km vector stands for, else the vector's own
    exact value."""
    out = []
    for value, step in zip(vector_km, scale, strict=True):
        given = Fraction(float(value))
        multiple = round(given / Fraction(step)) * Fraction(step)
        out.append(multiple if abs(multiple - given) <= 1e-14 * abs(multiple) else given)
    return tuple(out)


def _clip_bisector(z, y, others):
    """The part (lo, hi) of the bisector of z and y that bounds z's Voronoi region, or None.

    A point of it is (z + y) / 2 + t * rot90(y - z).
    """
    n = _minus(y, z)
    along = (-n[1], n[0])
    lo, hi = -math.inf, math.inf
    for w in others:
        m = _minus(w, z)
        slope = 2 * _dot(m, along)
        room = _dot(m, _minus(w, y))
        if slope == 0:
            if room < 0:
                return None
        elif slope > 0:
            hi = min(hi, Fraction(room, slope))
        else:
            lo = max(lo, Fraction(room, slope))
        if lo >= hi:
            return None
    return lo, hi


def _voronoi_region(points, z):
    """z's region, exact: the points whose bisectors bound it, its corners, its directions at
    infinity."""
    centre = points[z]
    others = [p for i, p in enumerate(points) if i != z]
    others.sort(key=lambda p: _dot(_minus(p, centre), _minus(p, centre)))
    bounding, corners, directions = [], set(), set()
    for y in others:
        part = _clip_bisector(centre, y, [w for w in others if w != y])
        if part is None:
            continue
        bounding.append(y)
        along = (centre[1] - y[1], y[0] - centre[0])
        for sign, t in zip((-1, 1), part, strict=True):
            if math.isinf(t):
                directions.add((sign * along[0], sign * along[1]))
            else:
                corners.add(tuple(Fraction(centre[k] + y[k], 2) + t * along[k] for k in (0, 1)))
    return bounding, corners, directions


def _seen_from(s, z, region):
    """The region from s, in floats: n and c of its n.x <= c, and the directions of its corners."""
    bounding, corners, directions = region
    normals, offsets = [], []
    for y in bounding:
        n = _minus(y, z)
        twice = _dot(n, _minus(_minus(z, s), _minus(s, y)))
        normals.append((float(n[0]), float(n[1])))
        offsets.append(float(Fraction(twice, 2)))
    view = [_minus(c, s) for c in corners] + list(directions)
    view = np.array([(float(x), float(y)) for x, y in view]).reshape(-1, 2)
    return np.array(normals).reshape(-1, 2), np.array(offsets), view


def _split_sides(body, view):
    """K's boundary cut at its vertices and along `view`: ends (n, 2, 2), cone measures (n,)."""
    a, b = np.array(body), np.roll(body, -1, axis=0)
    left = np.outer(a[:, 0], view[:, 1]) - np.outer(a[:, 1], view[:, 0])
    right = np.outer(b[:, 1], view[:, 0]) - np.outer(b[:, 0], view[:, 1])
    side, which = np.nonzero((left > 0) & (right > 0))
    tau = left[side, which] / (left[side, which] + right[side, which])

    sides = np.arange(len(a))
    side = np.concatenate([sides, sides, side])
    tau = np.concatenate([np.zeros(len(a)), np.ones(len(a)), tau])
    order = np.lexsort((tau, side))
    side, tau = side[order], tau[order]
    strip = (side[1:] == side[:-1]) & (tau[1:] > tau[:-1])

    w = a[side] + tau[:, None] * (b - a)[side]
    shares = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    weights = np.diff(tau)[strip] * (shares / shares.sum())[side[1:][strip]]
    return np.stack([w[:-1][strip], w[1:][strip]], axis=1), weights


def _strips(body, normals, offsets, view):
    """(weight, hi at both ends, lo at both ends) of every strip of K's boundary that sees the
    region."""
    ends, weights = _split_sides(body, view)
    sees = np.all(ends.mean(axis=1) @ normals[offsets == 0].T < 0, axis=1)
    lo_middle, lo = _envelope(ends, normals[offsets > 0], offsets[offsets > 0], max, 0.0)
    hi_middle, hi = _envelope(ends, normals[offsets < 0], offsets[offsets < 0], min, np.inf)
    sees &= lo_middle < hi_middle
    return weights[sees], hi[sees], lo[sees]


def _envelope(ends, normals, offsets, choose, default):
    """The max or min of n.w/c on each strip, chosen at its middle: its value there and at the
    ends."""
    pick = {max: np.argmax, min: np.argmin}[choose]
    n = len(ends)
    values = np.concatenate(
        [np.full((n, 2, 1), default), ends @ (normals / offsets[:, None]).T], axis=2
    )
    middles = np.concatenate([np.full((n, 1), default), values[:, :, 1:].mean(axis=1)], axis=1)
    which = pick(middles, axis=1)
    rows = np.arange(n)
    return middles[rows, which], np.maximum(values[rows, :, which], 0.0)


def _radial_mass(near, far):
    """The integral of t exp(-t) from near to far, kept accurate when they are close."""
    gap = far - near
    finite = np.where(np.isfinite(gap), gap, 0.0)
    bracket = np.where(
        np.isfinite(gap), -(1 + near) * np.expm1(-finite) - finite * np.exp(-finite), 1 + near
    )
    return np.exp(-near) * bracket


def _gently_varying(ends, epsilon):
    """Whether t = eps/x varies by at most a factor of 2 and at most 8 over the strip, or is out
    of sight."""
    small, large = ends.min(axis=1), ends.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        out_of_sight = epsilon / large > NEGLIGIBLE
        gentle = (large <= 2 * small) & (epsilon / small - epsilon / large <= 8)
    return out_of_sight | gentle | np.isinf(large)


def _integrate_strips(owner, weights, hi, lo, count, epsilon, nodes):
    """For each owner, the sum over its strips of weight * mean radial mass between eps/hi and
    eps/lo."""
    x, gauss = np.polynomial.legendre.leggauss(nodes)
    x, gauss = (x + 1) / 2, gauss / 2
    total = np.zeros(count)
    while len(owner):
        done = _gently_varying(hi, epsilon) & _gently_varying(lo, epsilon)
        masses = _gauss_sum(weights[done], hi[done], lo[done], epsilon, x, gauss)
        total += np.bincount(owner[done], masses, count)
        owner, weights = np.tile(owner[~done], 2), np.tile(weights[~done] / 2, 2)
        hi, lo = _halve(hi[~done]), _halve(lo[~done])
    return total


def _halve(ends):
    middle = ends.mean(axis=1)
    return np.concatenate(
        [np.stack([ends[:, 0], middle], axis=1), np.stack([middle, ends[:, 1]], axis=1)]
    )


def _gauss_sum(weights, hi, lo, epsilon, x, gauss):
    with np.errstate(divide="ignore"):
        near = np.minimum(epsilon / (hi[:, :1] * (1 - x) + hi[:, 1:] * x), NEGLIGIBLE)
        far = epsilon / (lo[:, :1] * (1 - x) + lo[:, 1:] * x)
    return weights * (_radial_mass(near, np.maximum(near, far)) @ gauss)


def _pmf_planar(points, body, epsilon, nodes):
    count = len(points)
    regions = [_voronoi_region(points, z) for z in range(count)]
    out = np.empty((count, count))
    for i, s in enumerate(points):
        strips = [
            _strips(body, *_seen_from(s, z, region))
            for z, region in zip(points, regions, strict=True)
        ]
        owner = np.repeat(np.arange(count), [len(weights) for weights, _, _ in strips])
        weights, hi, lo = (np.concatenate(parts) for parts in zip(*strips, strict=True))
        out[i] = _integrate_strips(owner, weights, hi, lo, count, epsilon, nodes)
    return out


def _line_intervals(points, s, w, labels):
    """The exact (lo, hi) of tau where s + tau w snaps to each point, else None; ties to the
    lower label."""
    offsets = [_minus(p, s) for p in points]
    lines = [(_dot(d, d), -2 * _dot(w, d)) for d in offsets]
    out = []
    for j, (height, slope) in enumerate(lines):
        lo, hi = -math.inf, math.inf
        for k, (other_height, other_slope) in enumerate(lines):
            room, steeper = other_height - height, slope - other_slope
            if steeper > 0:
                hi = min(hi, Fraction(room) / steeper)
            elif steeper < 0:
                lo = max(lo, Fraction(room) / steeper)
            elif room < 0 or (room == 0 and labels[k] < labels[j]):
                lo, hi = 0, 0
                break
        out.append((lo, hi) if lo < hi else None)
    return out


def _laplace_mass(lo, hi, epsilon):
    """Mass of [lo, hi] under the density eps/2 exp(-eps |tau|)."""
    if hi <= 0:
        lo, hi = -hi, -lo
    if lo >= 0:
        return 0.5 * math.exp(-epsilon * float(lo)) * -math.expm1(-epsilon * float(hi - lo))
    return -0.5 * math.expm1(epsilon * float(lo)) - 0.5 * math.expm1(-epsilon * float(hi))


def _segment_intervals(lattice, scale, outputs, body_km):
    points, per_km = _exact_units([lattice[s] for s in outputs], scale)
    half = (np.asarray(body_km[1], float) - np.asarray(body_km[0], float)) / 2
    w = tuple(per_km * c for c in _snap_to_lattice(half, scale))
    return [_line_intervals(points, s, w, outputs) for s in points]


def pmf_matrix(lattice, scale, outputs, body_km, epsilon, nodes=24):
    """P[i, j] = Pr(outputs[j] | outputs[i]): K-norm noise snapped to the nearest output (spec 5).

    `body_km` has 1 vertex (no noise), 2 (Laplace along the segment) or more (ccw, the origin
    inside)."""
    outputs = [int(s) for s in outputs]
    if len(body_km) == 1:
        return np.eye(len(outputs))
    if len(body_km) == 2:
        rows = _segment_intervals(lattice, scale, outputs, body_km)
        return np.array(
            [[_laplace_mass(*span, epsilon) if span else 0.0 for span in row] for row in rows]
        )
    points, per_km = _exact_units([lattice[s] for s in outputs], scale)
    body = [tuple(float(per_km * c) for c in _snap_to_lattice(v, scale)) for v in body_km]
    return _pmf_planar(points, body, epsilon, nodes)


def possible_matrix(lattice, scale, outputs, body_km):
    """Which Pr(outputs[j] | outputs[i]) are non-zero by construction, whatever underflows (spec
    3)."""
    outputs = [int(s) for s in outputs]
    if len(body_km) == 1:
        return np.eye(len(outputs), dtype=bool)
    if len(body_km) == 2:
        rows = _segment_intervals(lattice, scale, outputs, body_km)
        return np.array([[span is not None for span in row] for row in rows])
    return np.ones((len(outputs), len(outputs)), dtype=bool)


def max_log_ratio(P, edges, outputs):
    """The largest |ln Pr(z|s) - ln Pr(z|s')| over the edges inside `outputs` and every z (spec
    5)."""
    place = {int(s): k for k, s in enumerate(outputs)}
    worst = 0.0
    for i, j in edges:
        if i not in place or j not in place:
            continue
        for a, b in zip(P[place[i]], P[place[j]], strict=True):
            if a != b:
                worst = max(worst, abs(math.log(a / b)) if a > 0 and b > 0 else math.inf)
    return worst


# Exposure and repair (spec 4, 6; Finding Isolated Node, Graph Repair)


def disconnected(n, edges, domain):
    """In C, with neighbours in G, none of them in C (spec 3; paper: Disconnected node)."""
    domain = set(domain)
    return [s for s in sorted(domain) if neighbours(edges, s) and not neighbours(edges, s) & domain]


def _pair(i, j):
    return (min(i, j), max(i, j))


def _is_isolated(lattice, kept, domain, s, calibration):
    """Finding Isolated Node for a disconnected s: graph, a new hull for every candidate; component,
    always."""
    if calibration == "component":
        return True
    if calibration != "graph":
        raise ValueError(f"unknown calibration {calibration!r}")
    body = sensitivity_hull(lattice, kept)
    return all(
        sensitivity_hull(lattice, kept | {_pair(s, j)}) != body for j in sorted(domain) if j != s
    )


def isolated(lattice, scale, edges, domain, calibration):
    """The isolated among the disconnected nodes, each judged on G^C as it stands (spec 4,
    Finding Isolated Node)."""
    kept = constrain(edges, domain)
    candidates = disconnected(len(lattice), edges, domain)
    return [s for s in candidates if _is_isolated(lattice, kept, domain, s, calibration)]


def _mean_length_on_side(a, b):
    """Mean of |a + tau (b - a)| over tau in [0, 1]."""
    side = math.hypot(b[0] - a[0], b[1] - a[1])
    distance = abs(cross(a, b)) / side
    start = (a[0] * (b[0] - a[0]) + a[1] * (b[1] - a[1])) / side

    def primitive(x):
        return (x * math.hypot(x, distance) + distance**2 * math.asinh(x / distance)) / 2

    return (primitive(start + side) - primitive(start)) / side


def expected_noise(body_km):
    """E|Y| in km of the noise at eps = 1 (spec 6): twice the cone-measure mean of |w|; half a
    segment."""
    vertices = [(float(x), float(y)) for x, y in body_km]
    if len(vertices) == 1:
        return 0.0
    if len(vertices) == 2:
        return math.dist(*vertices) / 2
    area = twice_area(vertices)
    return 2 * math.fsum(
        cross(a, b) / area * _mean_length_on_side(a, b) for a, b in _sides(vertices)
    )


def _area(lattice, edges):
    return twice_area(sensitivity_hull(lattice, edges))


def _noise_sum(lattice, scale, edges, count):
    return count * expected_noise(noise_body(lattice, scale, edges, "ppim"))


def _cost(lattice, scale, kept, i, j, strategy, calibration):
    """(cost, size of the terms it was rounded in) of repairing i with the edge i-j (spec 6)."""
    new = kept | {_pair(i, j)}
    if strategy in ("nearest", "arbitrary"):
        return 0, 0
    if strategy not in ("min-area", "min-error"):
        raise ValueError(f"unknown strategy {strategy!r}")
    if calibration == "graph":
        if strategy == "min-area":
            return _area(lattice, new), 0
        error = _noise_sum(lattice, scale, new, 1)
        return error, error
    partner, joined = (component(len(lattice), graph, j) for graph in (kept, new))
    before, after = _within(kept, partner), _within(new, joined)
    if strategy == "min-area":
        return _area(lattice, after) - _area(lattice, before), 0
    total = _noise_sum(lattice, scale, after, len(joined))
    return total - _noise_sum(lattice, scale, before, len(partner)), total


def repair_costs(lattice, scale, kept, domain, i, strategy, calibration):
    """{j: (cost, size)} of every possible partner of the isolated node i, a new hull for each
    (Graph Repair).

    Areas are twice the area in lattice units, exact, with size 0; errors are km, equal within TIE *
    size."""
    return {
        j: _cost(lattice, scale, kept, i, j, strategy, calibration)
        for j in sorted(domain)
        if j != i
    }


def _partner(lattice, scale, kept, domain, i, strategy, calibration):
    """Graph Repair with the ties of spec 6: lowest cost, then the shorter edge, then the lower
    index."""
    costs = repair_costs(lattice, scale, kept, domain, i, strategy, calibration)
    if strategy == "arbitrary":
        return min(costs)
    best = min(cost for cost, _ in costs.values())
    tied = [j for j, (cost, size) in costs.items() if cost - best <= TIE * size]
    return min(tied, key=lambda j: (squared_length(lattice, scale, i, j), j))


def repair(lattice, scale, edges, domain, strategy, calibration):
    """Algorithm 5, lines 3-8: ((node, partner) added in order, edges of the repaired G^C,
    exposed nodes)."""
    domain = set(domain)
    kept = constrain(edges, domain)
    added, exposed = [], []
    for i in disconnected(len(lattice), edges, domain):
        if neighbours(kept, i) or not _is_isolated(lattice, kept, domain, i, calibration):
            continue
        if len(domain) == 1:
            exposed.append(i)
            continue
        j = _partner(lattice, scale, kept, domain, i, strategy, calibration)
        added.append((i, j))
        kept = kept | {_pair(i, j)}
    return added, kept, exposed


def weighted_isolated(lattice, kept, domain, s, calibration):
    """Finding Isolated Node for a disconnected s under weighted edges ``kept``: a new hull,
    with an edge of weight 1, for every candidate (spec 10)."""
    body = weighted_hull(lattice, kept)
    return calibration == "component" or all(
        weighted_hull(lattice, {**kept, _pair(s, j): Fraction(1)}) != body for j in domain if j != s
    )


def _weighted_cost(lattice, scale, kept, i, j, strategy, calibration):
    """(cost, size) of joining i and j by an edge of weight 1, as ``_cost``."""
    new = {**kept, _pair(i, j): Fraction(1)}
    if strategy in ("nearest", "arbitrary"):
        return 0, 0

    def measure(weights, count):
        if strategy == "min-area":
            return twice_area(weighted_hull(lattice, weights))
        return count * expected_noise(weighted_body(lattice, scale, weights, "ppim"))

    if calibration == "graph":
        cost = measure(new, 1)
        return cost, 0 if strategy == "min-area" else cost
    partner, joined = (component(len(lattice), set(graph), j) for graph in (kept, new))
    before, after = (
        {e: w for e, w in graph.items() if set(e) <= set(cells)}
        for graph, cells in ((kept, partner), (new, joined))
    )
    total = measure(after, len(joined))
    return total - measure(before, len(partner)), 0 if strategy == "min-area" else total


def weighted_repair(lattice, scale, weights, domain, strategy, calibration):
    """``repair`` of weighted edges: what is added has weight 1 (spec 10)."""
    domain = set(domain)
    kept = {e: w for e, w in weights.items() if set(e) <= domain}
    added, exposed = [], []
    for i in disconnected(len(lattice), set(weights), domain):
        if neighbours(set(kept), i) or not weighted_isolated(lattice, kept, domain, i, calibration):
            continue
        if len(domain) == 1:
            exposed.append(i)
            continue
        costs = {
            j: _weighted_cost(lattice, scale, kept, i, j, strategy, calibration)
            for j in sorted(domain - {i})
        }
        best = min(cost for cost, _ in costs.values())
        tied = [j for j, (cost, size) in costs.items() if cost - best <= TIE * size]
        if strategy == "arbitrary":
            tied = [min(costs)]
        j = min(tied, key=lambda j: (squared_length(lattice, scale, i, j), j))
        added.append((i, j))
        kept[_pair(i, j)] = Fraction(1)
    return added, kept, exposed


# The adversary (spec 7, 8; Algorithm 5)


def constrained_domain(p_minus, delta, support=None):
    """C_t (spec 7): the support; with delta > 0 the smallest set of mass >= 1 - delta, largest
    first."""
    support = {int(i) for i in np.flatnonzero(p_minus)} if support is None else set(support)
    if delta == 0:
        return support
    kept = set()
    for i in sorted(support, key=lambda i: (-p_minus[i], i)):
        if math.fsum(p_minus[k] for k in kept) >= 1 - delta:
            break
        kept.add(i)
    return kept


def output_sets(n, edges, domain, calibration):
    """What the locations of C are snapped to: the components of G^C, or C itself (spec 4)."""
    if calibration == "graph":
        return [sorted(domain)]
    if calibration != "component":
        raise ValueError(f"unknown calibration {calibration!r}")
    return sorted({tuple(component(n, edges, s)) for s in domain})


def emission(lattice, scale, edges, domain, epsilon, mechanism, calibration):
    """Dense (N, N) Pr(z|s) for s in C on the repaired graph, and which are non-zero by
    construction."""
    n = len(lattice)
    P, possible = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
    for outputs in output_sets(n, edges, domain, calibration):
        body = noise_body(lattice, scale, _within(edges, outputs), mechanism)
        where = np.ix_(outputs, outputs)
        P[where] = pmf_matrix(lattice, scale, outputs, body, epsilon)
        possible[where] = possible_matrix(lattice, scale, outputs, body)
    return P, possible


def weighted_emission(lattice, scale, weights, domain, epsilon, mechanism, calibration):
    """``emission`` of weighted edges (spec 10)."""
    n = len(lattice)
    P = np.zeros((n, n))
    for outputs in output_sets(n, set(weights), domain, calibration):
        pmf = weighted_pmf(lattice, scale, list(outputs), weights, epsilon, mechanism)
        P[np.ix_(outputs, outputs)] = pmf
    return P, P > 0


def map_emission(lattice, scale, edges, epsilon, mechanism):
    """Dense (N, N) Pr(z|s) of P-LM and P-PIM to the letter: the noise of the component of s,
    snapped to the nearest location of the whole map (spec 10)."""
    n = len(lattice)
    P = np.zeros((n, n))
    for members in output_sets(n, edges, set(range(n)), "component"):
        body = noise_body(lattice, scale, _within(edges, members), mechanism)
        P[list(members)] = pmf_matrix(lattice, scale, list(range(n)), body, epsilon)[list(members)]
    return P


def trace_step(
    lattice,
    scale,
    edges,
    transitions,
    p_minus,
    support,
    released,
    epsilon,
    *,
    mechanism="ppim",
    calibration="component",
    strategy="min-area",
    delta=0.0,
    weighted=False,
):
    """One step of Algorithm 5 as the adversary sees it: from p_t^-, its support and the released
    cell.

    `edges` is the original G at every t (spec 7), `transitions` the dense (N, N) matrix that leads
    to t + 1. ``weighted``: edges are {edge: weight}."""
    M = np.asarray(transitions, float)
    p_minus = np.asarray(p_minus, float)
    domain = constrained_domain(p_minus, delta, support)
    mend, emit = (weighted_repair, weighted_emission) if weighted else (repair, emission)
    added, kept, exposed = mend(lattice, scale, edges, domain, strategy, calibration)
    P, possible = emit(lattice, scale, kept, domain, epsilon, mechanism, calibration)
    after = {s for s in domain if possible[s, released]}
    weights = np.zeros(len(lattice))
    for s in after:
        weights[s] = P[s, released] * p_minus[s]
    if not weights.sum() > 0:
        raise ValueError(
            f"cell {released} cannot be released at this step, or its probability underflows"
        )
    p_plus = weights / math.fsum(weights)
    return {
        "domain": domain,
        "added": added,
        "exposed": exposed,
        "edges": kept,
        "likelihood": P[:, released].copy(),
        "p_plus": p_plus,
        "support_plus": after,
        "next_p_minus": p_plus @ M,
        "next_support": {int(j) for s in after for j in np.flatnonzero(M[s])},
    }


def ledger(epsilons, graphs):
    """Composition (spec 8): (sum of the eps_t, edges that every G_t has)."""
    return math.fsum(epsilons), set.intersection(*(set(g) for g in graphs))


def weighted_ledger(epsilons, graphs):
    """{edge that every G_t has: sum of w_t eps_t}, w_t its weight in G_t (spec 10)."""
    kept = set.intersection(*(set(g) for g in graphs))
    return {e: sum(Fraction(w) * g[e] for w, g in zip(epsilons, graphs, strict=True)) for e in kept}
