"""A policy and a domain as kernels take them, and the cliques linked within the domain.

Work is O(|C|), never O(N). A location of the domain is known by its *position* in the ascending
list of cells. The domain's members of each clique form a linked list, ``head[clique]`` -> position
-> ``next[position]`` -> ... -> -1, in work space that is handed back as it was."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import list_cells, popcount
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference

# extent: width and height of each clique in G, and the largest of each; indptr, indices: the edges
# outside cliques; rows = cols = 0 for scattered points; dx, dy in km; stretch = (dy/dx)^2.
# denominator: 0 without weights. With weights the lattice, and dx and dy with it, is so many times
# as fine as the map's, so that every difference divided by its weight is whole; weights has the
# (numerator, denominator) of each entry of indices
Policy = namedtuple(
    "Policy",
    "lattice cliques extent widest tallest indptr indices rows cols dx dy stretch weights "
    "denominator",
)
# cells, ascending, and their bitmask; for each position its clique (-1: none), the next position of
# that clique, and room for a list. Work space as large as the map: head (by clique, all -1) and
# position (by location, read only where the domain is)
DomainView = namedtuple("DomainView", "cells words clique next spare head position")

MIN_AREA, NEAREST, ARBITRARY, MIN_ERROR, NONE = range(5)  # repair strategies; NONE: no repair
COMPONENT, GRAPH = range(2)  # calibrations


@kernel
def edge_difference(policy, i, e):
    """f(j) - f(i) divided by the edge's weight, exactly: j the other end of entry e of row i."""
    x, y = difference(policy.lattice, i, policy.indices[e])
    if policy.denominator > 0:
        p, q = policy.weights[e, 0], policy.weights[e, 1]
        x, y = x * q // p, y * q // p
    return x, y


@kernel
def make_view(words, workspace, head, position):
    """The view of a bitmask; ``workspace`` is (4, at least |C|)."""
    n = popcount(words)
    list_cells(words, workspace[0])
    cells, clique = workspace[0, :n], workspace[1, :n]
    return DomainView(cells, words, clique, workspace[2, :n], workspace[3, :n], head, position)


@kernel
def link_cliques(policy, domain):
    """Link the domain's members of each clique."""
    cells, clique, after, head = domain.cells, domain.clique, domain.next, domain.head
    for p in range(cells.shape[0]):
        clique[p] = policy.cliques[cells[p]]
    for p in range(cells.shape[0]):
        c = clique[p]
        after[p] = -1
        if c >= 0:
            after[p] = head[c]
            head[c] = p


@kernel
def unlink_cliques(domain):
    """Hand the work space back as it was."""
    for c in domain.clique:
        if c >= 0:
            domain.head[c] = -1


@kernel
def heads_clique(domain, p):
    """Whether position p is the head of a clique of two or more within the domain."""
    c = domain.clique[p]
    return c >= 0 and domain.head[c] == p and domain.next[p] >= 0


@kernel
def clique_points(policy, domain, p):
    """Lattice points of the clique members linked from position p on, and their locations."""
    m, q = 0, p
    while q >= 0:
        m, q = m + 1, domain.next[q]
    points, members = np.empty((m, 2), np.int64), np.empty(m, np.int32)
    for k in range(m):
        i = domain.cells[p]
        members[k] = i
        points[k, 0], points[k, 1] = policy.lattice[i, 0], policy.lattice[i, 1]
        p = domain.next[p]
    return points, members
