"""K-norm noise: a boundary point of K by cone measure times a random radius.

The cones from the centre over K's edges are drawn in proportion to their areas, by one alias row
for each polygon."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.polygons import polygon_of

from .alias_rows import TOTAL, build_alias, column_bits, pick, read_alias, unit


@kernel
def _wedge(polygon, i, j, whole):
    """Twice the area of the triangle from the centre over vertices i and j; an exact integer where
    ``whole`` says that the vertices are lattice points."""
    if whole:
        ax, ay = np.int64(polygon[i, 0]), np.int64(polygon[i, 1])
        bx, by = np.int64(polygon[j, 0]), np.int64(polygon[j, 1])
        return np.float64(ax * by - ay * bx)
    return polygon[i, 0] * polygon[j, 1] - polygon[i, 1] * polygon[j, 0]


@kernel
def cone_weights(polygon, out):
    """Cone measure of K's edges: weights that sum to TOTAL, in proportion to the areas of the
    triangles from the centre.

    Areas of a thin hull's triangles are small differences of large products: on the lattice these
    are taken in int64, where they are exact."""
    h = polygon.shape[0]
    whole = True
    for i in range(h):
        whole &= polygon[i, 0] == np.rint(polygon[i, 0]) and polygon[i, 1] == np.rint(polygon[i, 1])
    area = 0.0
    for i in range(h):
        area += _wedge(polygon, i, (i + 1) % h, whole)
    total, largest = np.uint64(0), 0
    for i in range(h):
        out[i] = np.uint64(_wedge(polygon, i, (i + 1) % h, whole) / area * np.float64(TOTAL))
        total += out[i]
        if out[i] > out[largest]:
            largest = i
    out[largest] += np.uint64(TOTAL) - total


@kernel
def build_cones(polygon, bits, cut, alias):
    """The alias row of one polygon's cones; nothing for a segment or a point."""
    if polygon.shape[0] > 2:
        weights = np.empty(polygon.shape[0], np.uint64)
        cone_weights(polygon, weights)
        build_alias(weights, bits, cut, alias)


@kernel
def fill_cones(which, polygons, cones):
    """Alias rows of the cones of each shape in ``which``; ``cones`` has one row a shape."""
    for shape in which:
        at, bits = cones.offset[shape], cones.bits[shape]
        size = 1 << bits
        polygon = polygon_of(polygons, shape)
        build_cones(polygon, bits, cones.cut[at : at + size], cones.alias[at : at + size])


@kernel
def noise(words, polygon, cut, alias, at, bits, epsilon):
    """K-norm noise in lattice units, by the alias row of K's cones at ``at`` (spec section 4).

    Rank 2: a point of the boundary by cone measure times a Gamma(2, 1/eps) radius. Rank 1: a
    Laplace(1/eps) multiple of the segment's end. Rank 0: none. No rejection: four words always
    suffice."""
    h = polygon.shape[0]
    if h == 1:
        return 0.0, 0.0
    if h == 2:
        r = -np.log(unit(words[2])) / epsilon
        end = np.int64(words[0] >> np.uint64(63))
        return r * polygon[end, 0], r * polygon[end, 1]
    i = pick(words[0], cut, alias, at, bits)
    j = i + 1 if i + 1 < h else 0
    t = unit(words[1])
    r = -np.log(unit(words[2]) * unit(words[3])) / epsilon
    x = polygon[i, 0] + t * (polygon[j, 0] - polygon[i, 0])
    y = polygon[i, 1] + t * (polygon[j, 1] - polygon[i, 1])
    return r * x, r * y


@kernel
def drawn_cones(polygon):
    """The weights with which ``draw_noise`` draws the cones of a polygon, read back; none for a
    segment or a point."""
    bits = column_bits(polygon.shape[0])
    cut, alias = np.empty(1 << bits, np.uint64), np.empty(1 << bits, np.int32)
    weights = np.zeros(1 << bits if polygon.shape[0] > 2 else 0, np.uint64)
    if polygon.shape[0] > 2:
        build_cones(polygon, bits, cut, alias)
        read_alias(cut, alias, bits, weights)
    return weights


@kernel
def draw_noise(words, polygon, epsilon):
    """``noise`` of a polygon that is met once: its cones are made on the spot."""
    bits = column_bits(polygon.shape[0])
    cut, alias = np.empty(1 << bits, np.uint64), np.empty(1 << bits, np.int32)
    build_cones(polygon, bits, cut, alias)
    return noise(words, polygon, cut, alias, 0, bits, epsilon)
