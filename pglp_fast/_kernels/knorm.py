"""What the K-norm mechanisms precompute for each shape: tables for small ones, cones and search trees for large ones."""

import numpy as np

from .emission import log_probabilities
from .jit import kernel
from .nearest import build_tree
from .rows import append_rows
from .shapes import connected, protected_pairs, sites_of
from .weights import TOTAL, build_alias, fill_table

HULL, DIAMOND, DISC = 0, 1, 2  # K: the sensitivity hull itself, P-LM's diamond, planar Laplace's disc
SIDES = 64  # of the polygon that stands for a disc: corners 0.12 % outside it


@kernel
def fill_tables(
    which, start, stop, epsilon, stretch, hulls, hull_starts, everyone, bodies, body_starts, members, starts, representative,
    lattice, address, lead, indptr, indices, numerator, shift, bits, offset, cut, alias, mixed, off,
):  # fmt: skip
    """Exact probabilities, rounded weights and alias rows of shapes ``which[start:stop]``.

    ``everyone``: prove the bound for all pairs that the hull reaches, not for edges alone.
    """
    for w in range(start, stop):
        shape = which[w]
        g = representative[shape]
        a, b = starts[g], starts[g + 1]
        k = b - a
        P = np.empty((k, k))
        body = bodies[body_starts[shape] : body_starts[shape + 1]]
        log_probabilities(sites_of(members[a:b], lattice), stretch, body, epsilon, np.arange(k), 0, k, P)
        P = np.exp(P)
        hull = hulls[hull_starts[shape] : hull_starts[shape + 1]]
        pairs = protected_pairs(members[a:b], lattice, hull, everyone, indptr, indices, address)
        own, n_own = connected(lead[a:b], pairs)
        size = k << bits[shape]
        at = offset[shape]
        mixed[shape], off[shape] = fill_table(
            P, own, n_own, lead[a:b], pairs, numerator, shift, bits[shape], cut[at : at + size], alias[at : at + size]
        )


@kernel
def fill_log_matrices(
    which, start, stop, epsilon, stretch, bodies, body_starts, members, starts, representative, lattice, at, out
):
    """ln Pr(z|s) of shapes ``which[start:stop]``, that of ``which[w]`` row by row from ``out[at[w]]`` on."""
    for w in range(start, stop):
        shape = which[w]
        a, b = starts[representative[shape]], starts[representative[shape] + 1]
        k = b - a
        body = bodies[body_starts[shape] : body_starts[shape + 1]]
        rows = out[at[w] : at[w] + k * k].reshape(k, k)
        log_probabilities(sites_of(members[a:b], lattice), stretch, body, epsilon, np.arange(k), 0, k, rows)


@kernel
def diamond(polygon, dx, dy):
    """P-LM's K in lattice units: |x| dx + |y| dy <= S, S the largest over the sensitivity hull's vertices; the origin if S = 0.

    S is taken a few units in the last place too large, so that rounding can never leave an edge outside.
    """
    S = 0.0
    for i in range(polygon.shape[0]):
        S = max(S, abs(polygon[i, 0]) * dx + abs(polygon[i, 1]) * dy)
    if S == 0.0:
        return np.zeros((1, 2))
    S *= 1.0 + 2.0**-50
    out = np.zeros((4, 2))
    out[0, 0], out[1, 1], out[2, 0], out[3, 1] = -S / dx, -S / dy, S / dx, S / dy
    return out


@kernel
def disc(polygon, dx, dy):
    """Planar Laplace's K in lattice units: a regular polygon of SIDES sides around the disc of radius R, the length in km of
    the sensitivity hull's farthest vertex; the origin if R = 0.

    The disc lies inside, so ||v||_K <= |v| / R: no pair is told apart more easily than by the disc itself. The polygon's own
    corners lie 1 / cos(pi / SIDES) farther out.
    """
    R = 0.0
    for i in range(polygon.shape[0]):
        R = max(R, np.hypot(polygon[i, 0] * dx, polygon[i, 1] * dy))
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
def body_of(polygon, kind, dx, dy):
    """K of a mechanism for a sensitivity hull."""
    if kind == DIAMOND:
        return diamond(polygon, dx, dy)
    if kind == DISC:
        return disc(polygon, dx, dy)
    return polygon.astype(np.float64)


@kernel
def bodies_of(vertices, starts, kind, dx, dy):
    """K for each hull, end to end: (vertices, starts)."""
    ends = np.zeros(starts.shape[0], np.int64)
    flat = np.empty((4 * (starts.shape[0] - 1), 2))
    for k in range(starts.shape[0] - 1):
        body = body_of(vertices[starts[k] : starts[k + 1]], kind, dx, dy)
        flat, ends[k + 1] = append_rows(flat, ends[k], body, body.shape[0])
    return flat[: ends[-1]].copy(), ends


@kernel
def cone_weights(body, out):
    """Cone measure of K's edges: weights that sum to TOTAL, in proportion to the areas of the triangles from the centre."""
    h = body.shape[0]
    area = 0.0
    for i in range(h):
        area += body[i, 0] * body[(i + 1) % h, 1] - body[i, 1] * body[(i + 1) % h, 0]
    total, largest = np.uint64(0), 0
    for i in range(h):
        share = (body[i, 0] * body[(i + 1) % h, 1] - body[i, 1] * body[(i + 1) % h, 0]) / area
        out[i] = np.uint64(share * np.float64(TOTAL))
        total += out[i]
        if out[i] > out[largest]:
            largest = i
    out[largest] += np.uint64(TOTAL) - total


@kernel
def extents(which, members, starts, representative, lattice, out):
    """(min col, max col, min row, max row) of each shape's sites, as offsets from the first member."""
    for shape in which:
        g = representative[shape]
        anchor = members[starts[g]]
        out[shape] = 0
        for k in range(starts[g], starts[g + 1]):
            x = np.int64(lattice[members[k], 0]) - np.int64(lattice[anchor, 0])
            y = np.int64(lattice[members[k], 1]) - np.int64(lattice[anchor, 1])
            out[shape, 0], out[shape, 1] = min(out[shape, 0], x), max(out[shape, 1], x)
            out[shape, 2], out[shape, 3] = min(out[shape, 2], y), max(out[shape, 3], y)


@kernel
def fill_geometry(
    which, stretch, bodies, body_starts, members, starts, representative, lattice,
    cone_bits, cone_starts, cut, alias, site_starts, sites, order, box_starts, boxes,
):  # fmt: skip
    """Alias rows of the cones, and k-d trees of the sites, of each shape in ``which``; no sites, no tree."""
    for shape in which:
        body = bodies[body_starts[shape] : body_starts[shape + 1]]
        if body.shape[0] > 2:
            weights = np.empty(body.shape[0], np.uint64)
            cone_weights(body, weights)
            at = cone_starts[shape]
            size = 1 << cone_bits[shape]
            build_alias(weights, cone_bits[shape], cut[at : at + size], alias[at : at + size])
        a, b = site_starts[shape], site_starts[shape + 1]
        if a == b:
            continue
        g = representative[shape]
        sites[a:b] = sites_of(members[starts[g] : starts[g + 1]], lattice)
        order[a:b] = np.arange(b - a)
        build_tree(sites[a:b], stretch, order[a:b], boxes[box_starts[shape] : box_starts[shape + 1]])
