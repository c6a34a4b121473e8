"""Nearest site of a finite set of lattice points: a balanced k-d tree with tight boxes, laid out in
plain arrays.

Node v covers a range of the permuted sites; its children 2v and 2v+1 the two halves. Distances are
in the metric col^2 + stretch * row^2. Two distances that differ by less than rounding are a tie,
and ties go to the lower index."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.sorting import sort_numbers

LEAF = 8
DEPTH = 64
TIE = 1e-12  # boxes whose distances differ by no more are both searched
# Two sites are a tie if what tells them apart is smaller than this, relative to its terms: the
# rounding of a sum of two products; for noise along a line, which may run along a boundary all the
# way, the rounding of the noise too.
ROUNDING, ALONG_A_LINE = 2.0**-50, 1e-12


@kernel
def tree_levels(n):
    levels = 0
    while (n >> levels) > LEAF:
        levels += 1
    return levels


@kernel
def tree_nodes(n):
    """How many nodes (node 0 is unused) a tree of n sites has."""
    return 2 << tree_levels(n)


@kernel
def _sort_by(sites, axis, part):
    """Order a part of the sites by one coordinate, ties by index: one int64 key each."""
    n = sites.shape[0]
    low = sites[part[0], axis]
    for i in part:
        low = min(low, sites[i, axis])
    keys = np.empty(part.shape[0], np.int64)
    for k in range(part.shape[0]):
        keys[k] = (sites[part[k], axis] - low) * n + part[k]
    sort_numbers(keys)
    for k in range(part.shape[0]):
        part[k] = keys[k] % n


@kernel
def build_tree(sites, stretch, order, boxes):
    """Permute ``order`` (0..n-1) so that every node's sites are contiguous.

    ``boxes[v]`` = (min col, max col, min row, max row).
    """
    n = sites.shape[0]
    levels = tree_levels(n)
    low, high = np.zeros(2 << levels, np.int64), np.zeros(2 << levels, np.int64)
    high[1] = n
    for v in range(1, 2 << levels):
        lo, hi = low[v], high[v]
        x0 = x1 = sites[order[lo], 0]
        y0 = y1 = sites[order[lo], 1]
        for k in range(lo + 1, hi):
            x, y = sites[order[k], 0], sites[order[k], 1]
            x0, x1, y0, y1 = min(x0, x), max(x1, x), min(y0, y), max(y1, y)
        boxes[v, 0], boxes[v, 1], boxes[v, 2], boxes[v, 3] = x0, x1, y0, y1
        if v < (1 << levels):
            axis = 0 if (x1 - x0) * (x1 - x0) >= stretch * (y1 - y0) * (y1 - y0) else 1
            _sort_by(sites, axis, order[lo:hi])
            mid = (lo + hi) >> 1
            low[2 * v], high[2 * v], low[2 * v + 1], high[2 * v + 1] = lo, mid, mid, hi


@kernel
def _box_distance(box, x, y, stretch):
    dx = max(box[0] - x, x - box[1], 0.0)
    dy = max(box[2] - y, y - box[3], 0.0)
    return dx * dx + stretch * dy * dy


@kernel
def closer(ax, ay, bx, by, stretch, x, y, tie):
    """1 if the lattice point a is closer to p = (x, y) than b, -1 if b is, 0 for a tie.

    |p - b|^2 - |p - a|^2 = (a - b).(2 p - a - b): taken as this product and not as a difference of
    squares, its sign is right however far out p lies. What is below ``tie``, relative to its terms,
    is a tie.
    """
    u = (ax - bx) * (2.0 * x - (ax + bx))
    v = stretch * ((ay - by) * (2.0 * y - (ay + by)))
    if abs(u + v) <= tie * (abs(u) + abs(v)):
        return 0
    return 1 if u + v > 0.0 else -1


@kernel
def nearest_site(sites, order, boxes, stretch, x, y, stack, tie):
    """Index of the site nearest to (x, y), lattice units.

    ``stack``: (DEPTH, 3) int64 work space.
    """
    n = sites.shape[0]
    leaves = 1 << tree_levels(n)
    stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, n
    depth = 1
    best, best_d = -1, np.inf
    while depth > 0:
        depth -= 1
        v, lo, hi = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if _box_distance(boxes[v], x, y, stretch) > best_d * (1.0 + TIE):
            continue
        while v < leaves:
            mid = (lo + hi) >> 1
            left, right = (
                _box_distance(boxes[2 * v], x, y, stretch),
                _box_distance(boxes[2 * v + 1], x, y, stretch),
            )
            if left <= right:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = 2 * v + 1, mid, hi
                v, hi = 2 * v, mid
            else:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = 2 * v, lo, mid
                v, lo = 2 * v + 1, mid
            depth += 1
        for k in range(lo, hi):
            i = order[k]
            side = 1
            if best >= 0:
                bx, by = sites[best, 0], sites[best, 1]
                side = closer(sites[i, 0], sites[i, 1], bx, by, stretch, x, y, tie)
            if side > 0 or (side == 0 and i < best):
                dx, dy = sites[i, 0] - x, sites[i, 1] - y
                best, best_d = i, dx * dx + stretch * dy * dy
    return best


@kernel
def nearest_sites(sites, order, boxes, stretch, xy, out):
    stack = np.empty((DEPTH, 3), np.int64)
    for k in range(xy.shape[0]):
        out[k] = nearest_site(sites, order, boxes, stretch, xy[k, 0], xy[k, 1], stack, ROUNDING)


@kernel
def round_down(x):
    """Nearest integer, halves to the lower one."""
    return np.ceil(x - 0.5)
