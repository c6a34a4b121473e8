"""Who stands alone once the adversary has ruled locations out (Algorithm 3, spec sections 3 and 4).

A policy and a domain travel as named tuples of arrays. Work is O(|C|), never O(N): the domain's members of each clique
are threaded as linked
lists, ``head[clique]`` -> place -> ``after[place]`` -> ... -> -1, through scratch space that is handed back as it was.
"""

from collections import namedtuple

import numpy as np

from .bits import any_in_span, list_cells, popcount, test1
from .bodies import grow, grow_by_clique
from .hull import contains
from .jit import kernel
from .nearest import DEPTH, build_tree, tree_levels, tree_nodes
from .proof import clique_inside

# rows = cols = 0 for scattered points; dx, dy in km; stretch = (dy/dx)^2
Policy = namedtuple("Policy", "lattice cliques indptr indices rows cols dx dy stretch")
# cells ascending and their bitmask; scratch: head (cliques, all -1), after (cells), place (locations, read only where
# the domain is)
View = namedtuple("View", "cells words head after place")
# what lies in f(s) + K is asked of column spans on a grid, of a k-d tree of the domain elsewhere
Neighbourhood = namedtuple("Neighbourhood", "spans sites order boxes stack")


@kernel
def thread_cliques(cells, cliques, head, after):
    """Link the domain's members of each clique."""
    for p in range(cells.shape[0]):
        c = cliques[cells[p]]
        if c >= 0:
            after[p] = head[c]
            head[c] = p
        else:
            after[p] = -1


@kernel
def unthread_cliques(cells, cliques, head):
    for cell in cells:
        if cliques[cell] >= 0:
            head[cliques[cell]] = -1


@kernel
def list_disconnected(policy, domain, out):
    """Places of cells that have neighbours in G, but none in the domain (Definition 12); returns how many."""
    cliques, indptr, indices = policy.cliques, policy.indptr, policy.indices
    cells, words, head, after = domain.cells, domain.words, domain.head, domain.after
    n = 0
    for p in range(cells.shape[0]):
        i = cells[p]
        c = cliques[i]
        if c >= 0:
            if after[p] >= 0 or head[c] != p:
                continue
        elif indptr[i] == indptr[i + 1]:
            continue  # no neighbours in G: the policy lets it be disclosed
        alone = True
        for e in range(indptr[i], indptr[i + 1]):
            if test1(words, indices[e]):
                alone = False
                break
        if alone:
            out[n] = p
            n += 1
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
def _box_inside(K, lattice, cells, after, p):
    """Whether K holds the corners of the box of a clique's differences, and so all of them: a quick sufficient test."""
    x0 = x1 = np.int64(lattice[cells[p], 0])
    y0 = y1 = np.int64(lattice[cells[p], 1])
    while p >= 0:
        x, y = np.int64(lattice[cells[p], 0]), np.int64(lattice[cells[p], 1])
        x0, x1, y0, y1 = min(x0, x), max(x1, x), min(y0, y), max(y1, y)
        p = after[p]
    return contains(K, x1 - x0, y1 - y0) and contains(K, x1 - x0, y0 - y1)


@kernel
def domain_hull(policy, domain):
    """K(G^C): conv of +-(f(i) - f(j)) over all edges with both ends in the domain.

    Most cliques add nothing, and are seen to at once.
    """
    lattice, cliques, indptr, indices = policy.lattice, policy.cliques, policy.indptr, policy.indices
    cells, words, head, after = domain.cells, domain.words, domain.head, domain.after
    K = np.zeros((1, 2), np.int64)
    for p in range(cells.shape[0]):
        i = cells[p]
        c = cliques[i]
        if c >= 0 and head[c] == p and after[p] >= 0 and not _box_inside(K, lattice, cells, after, p):
            points, members = clique_points(lattice, cells, after, p)
            if not clique_inside(K, members, lattice):
                K = grow_by_clique(K, points)
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i and test1(words, j):
                x = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0])
                K = grow(K, x, np.int64(lattice[j, 1]) - np.int64(lattice[i, 1]))
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
def _meets_spans(words, rows, cols, cell, spans):
    """Whether another location of the domain lies in f(cell) + K on a grid; rows are tried from the middle outward."""
    row, col = cell // cols, cell % cols
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
        elif any_in_span(words, low, cell) or any_in_span(words, cell + 1, high):
            return True
    return False


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
    """Ready to ask ``meets`` for this K."""
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
def meets(policy, domain, around, K, p):
    """Whether another location of the domain lies in f(cells[p]) + K, boundary included."""
    if policy.rows > 0:
        return _meets_spans(domain.words, policy.rows, policy.cols, np.int64(domain.cells[p]), around.spans)
    return _meets_tree(around, K, p)


@kernel
def list_isolated(policy, domain, graph, out):
    """Cells that are isolated in G^C as it stands, written to ``out``; returns (how many, how many are disconnected).

    ``graph``: a disconnected node is isolated iff f(s) + K holds no other location of C; else it always is.
    """
    thread_cliques(domain.cells, policy.cliques, domain.head, domain.after)
    alone = np.empty(domain.cells.shape[0], np.int32)
    n_alone = list_disconnected(policy, domain, alone)
    n = 0
    if n_alone > 0 and graph:
        K = domain_hull(policy, domain)
        around = make_neighbourhood(policy, domain, K)
        for k in range(n_alone):
            if not meets(policy, domain, around, K, alone[k]):
                out[n] = domain.cells[alone[k]]
                n += 1
    else:
        for k in range(n_alone):
            out[k] = domain.cells[alone[k]]
        n = n_alone
    unthread_cliques(domain.cells, policy.cliques, domain.head)
    return n, n_alone


@kernel
def list_isolated_domains(policy, words, start, stop, graph, n_cliques, counts):
    """``list_isolated`` for rows start..stop-1 of a matrix of bitmasks.

    ``counts[d]`` = (|C|, disconnected, isolated); cells end to end.
    """
    head = np.full(n_cliques, -1, np.int32)
    place = np.empty(0, np.int32)
    found = np.empty(64, np.int32)
    total = 0
    for d in range(start, stop):
        n = popcount(words[d])
        cells = np.empty(n, np.int32)
        list_cells(words[d], cells)
        out = np.empty(n, np.int32)
        m, alone = list_isolated(policy, View(cells, words[d], head, np.empty(n, np.int32), place), graph, out)
        counts[d, 0], counts[d, 1], counts[d, 2] = n, alone, m
        if total + m > found.shape[0]:
            larger = np.empty(2 * (total + m), np.int32)
            larger[:total] = found[:total]
            found = larger
        found[total : total + m] = out[:m]
        total += m
    return found[:total].copy()
