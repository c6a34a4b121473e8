"""The sensitivity hull of a constrained graph: K(G^C) = conv of +-(f(i) - f(j)) / w over its edges
of weight w.

Cliques enter by their own convex hull (a Minkowski difference), other edges one by one. See the
paper's definition "Graph-calibrated Sensitivity Hull"."""

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.hull import contains
from pglp_fast._kernels.geometry.hull_growth import grow, grow_by_clique
from pglp_fast._kernels.noise.proof import clique_inside

from .domain_view import clique_points, edge_difference, heads_clique


@kernel
def grow_by_edges(K, policy, domain, p):
    """K with the edges of position p: of the clique it heads, and to higher locations."""
    i = domain.cells[p]
    if heads_clique(domain, p):
        K = grow_by_clique(K, clique_points(policy, domain, p)[0])
    for e in range(policy.indptr[i], policy.indptr[i + 1]):
        j = policy.indices[e]
        if j > i and test1(domain.words, j):
            x, y = edge_difference(policy, i, e)
            K = grow(K, x, y)
    return K


@kernel
def _next_clique(policy, domain, p, wide, tall):
    """First position from p on that heads a clique which does not fit in a box known to be in K."""
    extent, clique = policy.extent, domain.clique
    if wide >= policy.widest and tall >= policy.tallest:
        return clique.shape[0]
    while p < clique.shape[0]:
        if heads_clique(domain, p):
            c = clique[p]
            if extent[c, 0] > wide or extent[c, 1] > tall:
                break
        p += 1
    return p


@kernel
def _next_edge(policy, domain, p, K):
    """First position from p on with an edge outside cliques that is not in K; its difference."""
    indptr, indices = policy.indptr, policy.indices
    cells, words = domain.cells, domain.words
    while p < cells.shape[0]:
        i = cells[p]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i and test1(words, j):
                x, y = edge_difference(policy, i, e)
                if not contains(K, x, y):
                    return p, x, y
        p += 1
    return p, 0, 0


@kernel
def domain_hull(policy, domain):
    """K(G^C) over all edges with both ends in the domain.

    Most cliques and edges add nothing and are passed over by two plain loops; K itself changes a
    few times only."""
    n = domain.cells.shape[0]
    K = np.zeros((1, 2), np.int64)
    wide = tall = 0  # K is known to hold this box
    p = _next_clique(policy, domain, 0, wide, tall)
    while p < n:
        points, members = clique_points(policy, domain, p)
        if not clique_inside(K, members, policy.lattice):
            K = grow_by_clique(K, points)
        c = domain.clique[p]
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
