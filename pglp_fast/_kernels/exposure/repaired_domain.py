"""A domain ready to be released from: detected, repaired, its components at hand.

The repaired graph is never built. Its cliques and the edges that the repair added are linked lists
over the domain's positions; a walk along them finds the component of a location and its hull in
O(component)."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.growing import with_room
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.base.sorting import lower_bound, sort_numbers
from pglp_fast._kernels.geometry.hull import contains, is_symmetric
from pglp_fast._kernels.geometry.hull_growth import grow
from pglp_fast._kernels.noise.proof import clique_inside

from .domain_hull import domain_hull, grow_by_edges
from .domain_view import (
    GRAPH,
    DomainView,
    clique_points,
    edge_difference,
    heads_clique,
    link_cliques,
    unlink_cliques,
)
from .graph_repair import repair_domain

# As large as the map, so that nothing large is allocated at every step: a bitmask and clique heads,
# empty between uses; positions; four rows for what is as long as a domain
Workspace = namedtuple("Workspace", "words head position rows")
# domain: its cliques linked; added: edges, linked by ``first`` (by position) and ``next``
# (by edge end); hull: of the whole repaired graph (graph calibration); counts: how many are
# (disconnected, isolated, added, exposed)
RepairedDomain = namedtuple("RepairedDomain", "domain added first next hull counts")


def make_workspace(locations: int, cliques: int) -> Workspace:
    """Work space of one thread, for a map and a policy of this size."""
    return Workspace(
        np.zeros(-(-locations // 64), np.uint64),
        np.full(max(cliques, 1), -1, np.int32),
        np.empty(locations, np.int32),
        np.empty((4, locations), np.int32),
    )


@kernel
def _link_added(view, added, n_added, first, after):
    """Link the added edges: edge e is listed as 2e at its first end, as 2e + 1 at its second."""
    for p in range(first.shape[0]):
        first[p] = -1
    for e in range(n_added):
        for end in range(2):
            p = view.position[added[e, end]]
            after[2 * e + end] = first[p]
            first[p] = 2 * e + end


@kernel
def make_repaired_domain(policy, strategy, calibration, workspace, cells):
    """Detect and repair the domain of these cells, which ``workspace.words`` already holds."""
    n = cells.shape[0]
    rows = workspace.rows
    spare, first = rows[2, :n], rows[3, :n]
    view = DomainView(
        cells, workspace.words, rows[0, :n], rows[1, :n], spare, workspace.head, workspace.position
    )
    for p in range(n):
        workspace.position[cells[p]] = p
    added, exposed = np.empty((n, 2), np.int32), np.empty(n, np.int32)
    counts = np.zeros(4, np.int64)
    counts[2], counts[3], counts[0], counts[1] = repair_domain(
        policy, view, strategy, calibration, added, exposed
    )
    link_cliques(policy, view)
    n_added = counts[2]
    for p in range(n):
        spare[p] = 0
    after = np.empty(2 * n_added, np.int32)
    _link_added(view, added, n_added, first, after)
    hull = np.zeros((1, 2), np.int64)
    if calibration == GRAPH:
        hull = domain_hull(policy, view)
        for e in range(n_added):
            x, y = difference(policy.lattice, added[e, 0], added[e, 1])
            hull = grow(hull, x, y)
    return RepairedDomain(view, added[:n_added], first, after, hull, counts)


@kernel
def discard(repaired):
    """Leave the work space as it was, but for the bitmask, which is the caller's."""
    unlink_cliques(repaired.domain)


@kernel
def label_components(policy, repaired):
    """The component of each position, numbered in the order of their first members."""
    n = repaired.domain.cells.shape[0]
    label, count = np.full(n, -1, np.int32), 0
    for p in range(n):
        if label[p] < 0:
            for q in component_of(policy, repaired, p):
                label[q] = count
            count += 1
    return label


@kernel
def _visit(p, seen, queue, tail):
    """Put position p at the end of the queue, unless it has been there."""
    if seen[p] == 0:
        seen[p] = 1
        queue = with_room(queue, tail, 1)
        queue[tail] = p
        tail += 1
    return queue, tail


@kernel
def component_of(policy, repaired, p):
    """Positions of p's component in the repaired graph, ascending.

    A breadth-first walk, O(component)."""
    view, added, first, after = repaired.domain, repaired.added, repaired.first, repaired.next
    # 0, above where reached, 2 at the head of a clique that has been walked; left all 0
    seen = view.spare
    queue, tail = _visit(p, seen, np.empty(64, np.int32), 0)
    head = 0
    while head < tail:
        q = queue[head]
        head += 1
        i = view.cells[q]
        c = view.clique[q]
        if c >= 0:
            top = view.head[c]
            r = top if seen[top] != 2 else np.int32(-1)
            while r >= 0:
                queue, tail = _visit(r, seen, queue, tail)
                r = view.next[r]
            seen[top] = 2
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if test1(view.words, j):
                queue, tail = _visit(view.position[j], seen, queue, tail)
        e = first[q]
        while e >= 0:
            r = view.position[added[e >> 1, 1 - (e & 1)]]
            queue, tail = _visit(r, seen, queue, tail)
            e = after[e]
    for k in range(tail):
        seen[queue[k]] = 0
    found = queue[:tail]
    sort_numbers(found)
    return found


@kernel
def component_hull(policy, repaired, positions):
    """Sensitivity hull of a component of the repaired graph."""
    K = np.zeros((1, 2), np.int64)
    for p in positions:
        K = grow_by_edges(K, policy, repaired.domain, p)
        e = repaired.first[p]
        while e >= 0:
            if e & 1 == 0:  # an added edge counts once, at its first end
                i, j = repaired.added[e >> 1, 0], repaired.added[e >> 1, 1]
                x, y = difference(policy.lattice, i, j)
                K = grow(K, x, y)
            e = repaired.next[e]
    return K


@kernel
def edges_inside(policy, repaired, positions, hull):
    """Whether every edge of the repaired graph at these positions has its difference, divided by
    its weight, in the hull, exactly: what the K-norm theorem asks for. A hull that is not its own
    mirror image proves nothing, since an edge is looked at in one direction only."""
    view, lattice = repaired.domain, policy.lattice
    if not is_symmetric(hull):
        return False
    for p in positions:
        i = view.cells[p]
        if heads_clique(view, p):
            # the box of the whole clique in G is quickly looked at, and mostly inside
            wide, tall = policy.extent[view.clique[p], 0], policy.extent[view.clique[p], 1]
            boxed = contains(hull, wide, tall) and contains(hull, wide, -tall)
            if not boxed and not clique_inside(hull, clique_points(policy, view, p)[1], lattice):
                return False
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if j > i and test1(view.words, j):
                x, y = edge_difference(policy, i, e)
                if not contains(hull, x, y):
                    return False
    for e in range(repaired.added.shape[0]):
        i, j = repaired.added[e, 0], repaired.added[e, 1]
        at = lower_bound(positions, view.position[i])
        if at < positions.shape[0] and positions[at] == view.position[i]:
            x, y = difference(lattice, i, j)
            if not contains(hull, x, y):
                return False
    return True
