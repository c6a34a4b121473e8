"""Whether another location of the domain lies in f(s) + K, boundary included.

On a grid K is a column span for each row, and a row is asked by a few word operations; elsewhere
a k-d tree of the domain is searched."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import any_in_span, window
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.hull import contains
from pglp_fast._kernels.geometry.kdtree import DEPTH, build_tree, tree_levels, tree_nodes

# column spans of K by row, on a grid; the domain's k-d tree and a stack to search it, elsewhere
Neighbourhood = namedtuple("Neighbourhood", "spans sites order boxes stack")


@kernel
def footprint(K):
    """K's lattice points: row y holds columns spans[y + H, 0]..spans[y + H, 1], -H <= y <= H.

    None if the first is above the second."""
    h = K.shape[0]
    top = K[:, 1].max()
    spans = np.empty((2 * top + 1, 2), np.int64)
    for y in range(-top, top + 1):
        low, high = K[:, 0].min(), K[:, 0].max()
        if h == 2 and K[1, 1] != 0:
            # a slanting segment holds a row only where it passes a lattice point
            low = high = (y * K[1, 0]) // K[1, 1]
            if low * K[1, 1] != y * K[1, 0]:
                high = low - 1
        elif h > 2:
            for i in range(h):
                j = i + 1 if i + 1 < h else 0
                ex, ey = K[j, 0] - K[i, 0], K[j, 1] - K[i, 1]
                reach = ex * (y - K[i, 1]) + ey * K[i, 0]
                if ey > 0:
                    high = min(high, reach // ey)
                elif ey < 0:
                    low = max(low, -(reach // -ey))
        spans[y + top, 0], spans[y + top, 1] = low, high
    return spans


@kernel
def _meets_spans(words, rows, cols, row, col, spans):
    """Whether another location lies in f(s) + K on a grid; rows from the middle outward."""
    top = spans.shape[0] >> 1
    for step in range(2 * top + 1):
        y = (step + 1) >> 1 if step & 1 else -(step >> 1)
        if not 0 <= row + y < rows:
            continue
        start = (row + y) * cols
        low = start + max(col + spans[y + top, 0], 0)
        high = start + min(col + spans[y + top, 1], cols - 1) + 1
        if y != 0:
            if any_in_span(words, low, high):
                return True
        elif any_in_span(words, low, start + col) or any_in_span(words, start + col + 1, high):
            return True
    return False


@kernel
def _span_masks(spans):
    """Each row's span as bits from its first column on, without the middle location itself.

    Empty if a span is wider than a word."""
    top = spans.shape[0] >> 1
    masks = np.zeros(spans.shape[0], np.uint64)
    if spans.shape[0] == 0:  # not a grid
        return masks
    for y in range(spans.shape[0]):
        width = spans[y, 1] - spans[y, 0] + 1
        if width > 64:
            return masks[:0]
        if width > 0:
            masks[y] = ~np.uint64(0) >> np.uint64(64 - width)
    masks[top] &= ~(np.uint64(1) << np.uint64(-spans[top, 0]))
    return masks


@kernel
def _meets_masks(words, cols, row, col, spans, masks):
    """``_meets_spans`` for a location so far from the map's edge that no span is cut."""
    top = spans.shape[0] >> 1
    found = np.uint64(0)
    for step in range(top + 1):
        low, high = top - step, top + step
        found |= window(words, (row - step) * cols + col + spans[low, 0]) & masks[low]
        found |= window(words, (row + step) * cols + col + spans[high, 0]) & masks[high]
        # asking more often costs more in mispredicted branches than it saves
        if step & 3 == 3 and found != np.uint64(0):
            return True
    return found != np.uint64(0)


@kernel
def _meets_tree(around, K, own):
    """Whether another site lies in sites[own] + K: by K's box, then by exact containment."""
    sites, order, boxes, stack = around.sites, around.order, around.boxes, around.stack
    x, y = sites[own, 0], sites[own, 1]
    wide, tall = K[:, 0].max(), K[:, 1].max()
    leaves = 1 << tree_levels(sites.shape[0])
    stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, sites.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, lo, hi = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if (
            boxes[v, 0] > x + wide
            or boxes[v, 1] < x - wide
            or boxes[v, 2] > y + tall
            or boxes[v, 3] < y - tall
        ):
            continue
        if v >= leaves:
            for k in range(lo, hi):
                if order[k] != own and contains(K, sites[order[k], 0] - x, sites[order[k], 1] - y):
                    return True
            continue
        mid = (lo + hi) >> 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = 2 * v, lo, mid
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = 2 * v + 1, mid, hi
        depth += 2
    return False


@kernel
def make_neighbourhood(policy, domain, K):
    """Ready to ask who lies in f(s) + K."""
    n = domain.cells.shape[0]
    stack = np.empty((DEPTH, 3), np.int64)
    if policy.rows > 0:
        return Neighbourhood(
            footprint(K),
            np.empty((0, 2), np.int64),
            np.empty(0, np.int64),
            np.empty((0, 4), np.int64),
            stack,
        )
    sites, order = np.empty((n, 2), np.int64), np.arange(n)
    boxes = np.empty((tree_nodes(n), 4), np.int64)
    for p in range(n):
        i = domain.cells[p]
        sites[p, 0], sites[p, 1] = policy.lattice[i, 0], policy.lattice[i, 1]
    build_tree(sites, policy.stretch, order, boxes)
    return Neighbourhood(np.empty((0, 2), np.int64), sites, order, boxes, stack)


@kernel
def no_neighbourhood():
    """Where nobody will be asked for."""
    none = np.empty((0, 2), np.int64)
    return Neighbourhood(
        none, none, np.empty(0, np.int64), np.empty((0, 4), np.int64), np.empty((0, 3), np.int64)
    )


@kernel
def with_hull(around, policy, K):
    """The same neighbourhood for another K."""
    spans = footprint(K) if policy.rows > 0 else around.spans
    return Neighbourhood(spans, around.sites, around.order, around.boxes, around.stack)


@kernel
def mark_isolated(policy, domain, around, K, positions, out):
    """out[k] = whether no other location of the domain lies in f(s) + K, s at positions[k]."""
    words, cells, spans = domain.words, domain.cells, around.spans
    rows, cols = policy.rows, policy.cols
    masks = _span_masks(spans)
    top, wide = spans.shape[0] >> 1, K[:, 0].max()
    row, col = 0, 0
    for k in range(positions.shape[0]):
        if rows > 0:
            col = np.int64(cells[positions[k]]) - row * cols
            if not 0 <= col < cols:  # positions ascend: a division only where the row changes
                row, col = row + col // cols, col % cols
            if masks.shape[0] > 0 and top <= row < rows - top and wide <= col < cols - wide:
                out[k] = not _meets_masks(words, cols, row, col, spans, masks)
            else:
                out[k] = not _meets_spans(words, rows, cols, row, col, spans)
        else:
            out[k] = not _meets_tree(around, K, positions[k])
