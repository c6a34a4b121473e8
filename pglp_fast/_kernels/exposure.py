"""Who stands alone once the adversary has ruled locations out (Algorithm 3, spec sections 3 and 4).

A policy and a domain travel as named tuples of arrays. Work is O(|C|), never O(N): the domain's members of each clique
are threaded as linked lists, ``head[clique]`` -> place -> ``after[place]`` -> ... -> -1, through scratch space that is
handed back as it was.
"""

from collections import namedtuple

import numpy as np

from .bits import any_in_span, list_cells, popcount, test1, window
from .bodies import grow, grow_by_clique
from .hull import contains
from .jit import kernel
from .nearest import DEPTH, build_tree, tree_levels, tree_nodes
from .proof import clique_inside
from .rows import append_rows

# extent: width and height of each clique in G, and the largest of each; rows = cols = 0 for scattered points; dx, dy in km;
# stretch = (dy/dx)^2
Policy = namedtuple("Policy", "lattice cliques extent widest tallest indptr indices rows cols dx dy stretch")
# cells, ascending, and their bitmask; for each place its clique (own), the next place of that clique (after), room for a
# list (spare); head (cliques, all -1) and place (locations, read only where the domain is) are scratch space
View = namedtuple("View", "cells words own after spare head place")
# what lies in f(s) + K is asked of column spans on a grid, of a k-d tree of the domain elsewhere
Neighbourhood = namedtuple("Neighbourhood", "spans sites order boxes stack")


@kernel
def make_view(words, scratch, head, place):
    """A domain to work on; ``scratch`` is (4, at least |C|)."""
    n = popcount(words)
    list_cells(words, scratch[0])
    return View(scratch[0, :n], words, scratch[1, :n], scratch[2, :n], scratch[3, :n], head, place)


@kernel
def thread(policy, domain):
    """Link the domain's members of each clique."""
    cliques = policy.cliques
    cells, own, after, head = domain.cells, domain.own, domain.after, domain.head
    for p in range(cells.shape[0]):
        own[p] = cliques[cells[p]]
    for p in range(cells.shape[0]):
        c = own[p]
        after[p] = -1
        if c >= 0:
            after[p] = head[c]
            head[c] = p


@kernel
def unthread(domain):
    """Hand the scratch space back as it was."""
    own, head = domain.own, domain.head
    for p in range(own.shape[0]):
        if own[p] >= 0:
            head[own[p]] = -1


@kernel
def list_disconnected(policy, domain, out):
    """Places of cells that have neighbours in G, but none in the domain (Definition 12); returns how many."""
    indptr, indices = policy.indptr, policy.indices
    cells, words, own, after, head = domain.cells, domain.words, domain.own, domain.after, domain.head
    n = 0
    if indices.shape[0] == 0:
        for p in range(cells.shape[0]):
            c = max(own[p], np.int32(0))
            out[n] = p
            n += (own[p] >= 0) & (after[p] < 0) & (head[c] == p)  # one sum: no branch to mispredict
        return n
    for p in range(cells.shape[0]):
        c = own[p]
        first, last = indptr[cells[p]], indptr[cells[p] + 1]
        # without neighbours in G a location is not disconnected: the policy lets it be disclosed
        alone = first < last if c < 0 else after[p] < 0 and head[c] == p
        for e in range(first, last):
            alone &= not test1(words, indices[e])
        out[n] = p
        n += alone
    return n


@kernel
def clique_points(lattice, cells, after, p):
    """Lattice points of the clique members linked from place p on, and their locations."""
    m, q = 0, p
    while q >= 0:
        m, q = m + 1, after[q]
    points, members = np.empty((m, 2), np.int64), np.empty(m, np.int32)
    for k in range(m):
        members[k] = cells[p]
        points[k, 0], points[k, 1] = lattice[cells[p], 0], lattice[cells[p], 1]
        p = after[p]
    return points, members


@kernel
def difference(policy, i, j):
    """f(j) - f(i) on the lattice."""
    lattice = policy.lattice
    return np.int64(lattice[j, 0]) - np.int64(lattice[i, 0]), np.int64(lattice[j, 1]) - np.int64(lattice[i, 1])


@kernel
def grow_by_edges(K, policy, domain, p):
    """K with the differences of the clique that place p heads, and of its extra edges to higher locations of the domain."""
    i, c = domain.cells[p], domain.own[p]
    if c >= 0 and domain.head[c] == p and domain.after[p] >= 0:
        K = grow_by_clique(K, clique_points(policy.lattice, domain.cells, domain.after, p)[0])
    for e in range(policy.indptr[i], policy.indptr[i + 1]):
        j = policy.indices[e]
        if j > i and test1(domain.words, j):
            x, y = difference(policy, i, j)
            K = grow(K, x, y)
    return K


@kernel
def _next_clique(policy, domain, p, wide, tall):
    """First place from p on that heads a clique of two or more which does not fit in a box known to be in K."""
    extent = policy.extent
    own, after, head = domain.own, domain.after, domain.head
    if wide >= policy.widest and tall >= policy.tallest:
        return own.shape[0]
    while p < own.shape[0]:
        c = own[p]
        if c >= 0 and head[c] == p and after[p] >= 0 and (extent[c, 0] > wide or extent[c, 1] > tall):
            break
        p += 1
    return p


@kernel
def _next_edge(policy, domain, p, K):
    """First place from p on with an extra edge in the domain whose difference is not in K, and that difference."""
    lattice, indptr, indices = policy.lattice, policy.indptr, policy.indices
    cells, words = domain.cells, domain.words
    while p < cells.shape[0]:
        i = cells[p]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i and test1(words, j):
                x, y = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0]), np.int64(lattice[j, 1]) - np.int64(lattice[i, 1])
                if not contains(K, x, y):
                    return p, x, y
        p += 1
    return p, 0, 0


@kernel
def domain_hull(policy, domain):
    """K(G^C): conv of +-(f(i) - f(j)) over all edges with both ends in the domain.

    Most cliques and edges add nothing and are passed over by two plain loops; K itself changes a few times only.
    """
    n = domain.cells.shape[0]
    K = np.zeros((1, 2), np.int64)
    wide = tall = 0  # K is known to hold this box
    p = _next_clique(policy, domain, 0, wide, tall)
    while p < n:
        points, members = clique_points(policy.lattice, domain.cells, domain.after, p)
        if not clique_inside(K, members, policy.lattice):
            K = grow_by_clique(K, points)
        c = domain.own[p]
        x, y = max(wide, policy.extent[c, 0]), max(tall, policy.extent[c, 1])
        if contains(K, x, y) and contains(K, x, -y):
            wide, tall = x, y
        p = _next_clique(policy, domain, p + 1, wide, tall)
    if policy.indices.shape[0] > 0:
        p, x, y = _next_edge(policy, domain, 0, K)
        while p < n:
            K = grow(K, x, y)
            p, x, y = _next_edge(policy, domain, p, K)
    return K


@kernel
def footprint(K):
    """K's lattice points as column spans: row y holds columns spans[y + H, 0]..spans[y + H, 1], -H <= y <= H; none if lo > hi."""
    h = K.shape[0]
    top = K[:, 1].max()
    spans = np.empty((2 * top + 1, 2), np.int64)
    for y in range(-top, top + 1):
        low, high = K[:, 0].min(), K[:, 0].max()
        if h == 2 and K[1, 1] != 0:  # a slanting segment holds a row only where it passes a lattice point
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
    """Whether another location of the domain lies in f(s) + K on a grid; rows are tried from the middle outward."""
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
    """Each row's span as bits from its first column on, the middle location left out; empty if a span is wider than a word."""
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
    """``_meets_spans`` for a location so far from the map's edge that no span is cut: a few word operations a row."""
    top = spans.shape[0] >> 1
    found = np.uint64(0)
    for step in range(top + 1):
        low, high = top - step, top + step
        found |= window(words, (row - step) * cols + col + spans[low, 0]) & masks[low]
        found |= window(words, (row + step) * cols + col + spans[high, 0]) & masks[high]
        if step & 3 == 3 and found != np.uint64(0):  # asking more often costs more in mispredicted branches than it saves
            return True
    return found != np.uint64(0)


@kernel
def _meets_tree(around, K, own):
    """Whether another site lies in sites[own] + K: down the k-d tree by K's box, exact containment at the end."""
    sites, order, boxes, stack = around.sites, around.order, around.boxes, around.stack
    x, y = sites[own, 0], sites[own, 1]
    wide, tall = K[:, 0].max(), K[:, 1].max()
    leaves = 1 << tree_levels(sites.shape[0])
    stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, sites.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, lo, hi = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if boxes[v, 0] > x + wide or boxes[v, 1] < x - wide or boxes[v, 2] > y + tall or boxes[v, 3] < y - tall:
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
        return Neighbourhood(footprint(K), np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty((0, 4), np.int64), stack)
    sites, order, boxes = np.empty((n, 2), np.int64), np.arange(n), np.empty((tree_nodes(n), 4), np.int64)
    for p in range(n):
        sites[p, 0], sites[p, 1] = policy.lattice[domain.cells[p], 0], policy.lattice[domain.cells[p], 1]
    build_tree(sites, policy.stretch, order, boxes)
    return Neighbourhood(np.empty((0, 2), np.int64), sites, order, boxes, stack)


@kernel
def with_hull(around, policy, K):
    """The same neighbourhood for another K."""
    spans = footprint(K) if policy.rows > 0 else around.spans
    return Neighbourhood(spans, around.sites, around.order, around.boxes, around.stack)


@kernel
def mark_isolated(policy, domain, around, K, places, out):
    """out[k] = whether no other location of the domain lies in f(s) + K, boundary included, s at places[k]."""
    words, cells, rows, cols, spans = domain.words, domain.cells, policy.rows, policy.cols, around.spans
    masks = _span_masks(spans)
    top, wide = spans.shape[0] >> 1, K[:, 0].max()
    row, col = 0, 0
    for k in range(places.shape[0]):
        if rows > 0:
            col = np.int64(cells[places[k]]) - row * cols
            if not 0 <= col < cols:  # places ascend: a division only where the row changes
                row, col = row + col // cols, col % cols
            if masks.shape[0] > 0 and top <= row < rows - top and wide <= col < cols - wide:
                out[k] = not _meets_masks(words, cols, row, col, spans, masks)
            else:
                out[k] = not _meets_spans(words, rows, cols, row, col, spans)
        else:
            out[k] = not _meets_tree(around, K, places[k])


@kernel
def list_isolated(policy, domain, graph):
    """Cells that are isolated in G^C as it stands, at the start of ``domain.spare``: (how many, how many are disconnected).

    ``graph``: a disconnected node is isolated iff f(s) + K holds no other location of C; else it always is.
    """
    cells, found = domain.cells, domain.spare
    thread(policy, domain)
    n_alone = list_disconnected(policy, domain, found)
    isolated = np.ones(n_alone, np.bool_)
    if n_alone > 0 and graph:
        K = domain_hull(policy, domain)
        mark_isolated(policy, domain, make_neighbourhood(policy, domain, K), K, found[:n_alone], isolated)
    n = 0
    for k in range(n_alone):
        found[n] = cells[found[k]]
        n += isolated[k]
    unthread(domain)
    return n, n_alone


@kernel
def list_isolated_domains(policy, words, start, stop, graph, scratch, head, counts):
    """``list_isolated`` for rows start..stop-1 of a matrix of bitmasks, cells end to end.

    ``counts[d]`` receives (|C|, disconnected, isolated).
    """
    place = np.empty(0, np.int32)
    found, total = np.empty((0, 1), np.int32), 0
    for d in range(start, stop):
        domain = make_view(words[d], scratch, head, place)
        n, n_alone = list_isolated(policy, domain, graph)
        counts[d, 0], counts[d, 1], counts[d, 2] = domain.cells.shape[0], n_alone, n
        found, total = append_rows(found, total, domain.spare.reshape(-1, 1), n)
    return found[:total, 0].copy()
