"""A domain ready to be released from: detected, repaired, and the repaired graph's components at hand.

The repaired graph is never built: its cliques and the edges that the repair added are threaded through the domain's cells,
and a walk along them finds the component of a location and its hull in O(component).
"""

from collections import namedtuple

import numpy as np

from .bits import set1, test1
from .bodies import grow
from .exposure import View, difference, domain_hull, grow_by_edges, thread, unthread
from .hmm import clear_cells, most_likely
from .jit import kernel
from .patterns import MAX_CELLS, describe, recall, remember
from .repair import COMPONENT, repair_domain

# body: K of the noise; tables: draw from the book for components of up to so many, whose keys may need the hull or be anchored;
# remap: and post-process
Settings = namedtuple("Settings", "epsilon body calibration strategy delta exact tables with_hull anchored remap")
# work space as large as the map: a bitmask, clique heads, places, sums and flags of the forward step, empty between uses; rows
# for whatever is as long as a domain, so that nothing large is allocated at every step; and the memory of repairs
Scratch = namedtuple("Scratch", "words head place sums flagged ints floats patterns key")
# a domain and ln p^- on it; added edges and their threads; the hull of all (graph calibration); (disconnected, isolated,
# added, exposed)
Local = namedtuple("Local", "domain logs added first after K counts")


@kernel
def _link_added(domain, added, n_added, first, after):
    """Thread the added edges through the domain's places: edge 2e is listed at its first end, 2e + 1 at its second."""
    for p in range(first.shape[0]):
        first[p] = -1
    for e in range(n_added):
        for end in range(2):
            p = domain.place[added[e, end]]
            after[2 * e + end] = first[p]
            first[p] = 2 * e + end


@kernel
def _graph_hull(policy, domain, added, n_added):
    """Sensitivity hull of the whole repaired graph."""
    K = domain_hull(policy, domain)
    for e in range(n_added):
        x, y = difference(policy, added[e, 0], added[e, 1])
        K = grow(K, x, y)
    return K


@kernel
def _repair(policy, settings, scratch, domain):
    """(added edges, counts) of a domain, which is left threaded; from memory where its pattern was met before."""
    n = domain.cells.shape[0]
    added, exposed = np.empty((n, 2), np.int32), np.empty((1, 1), np.int32)
    counts = np.zeros(4, np.int64)
    slot = -1
    if n <= MAX_CELLS:
        thread(policy, domain)
        slot = describe(policy, domain, scratch.key)
        if slot >= 0 and recall(scratch.patterns, slot, scratch.key, n, domain.cells, added, counts):
            return added, counts
        unthread(domain)
    counts[2], counts[3], counts[0], counts[1] = repair_domain(
        policy, domain, settings.strategy, settings.calibration, added, exposed
    )
    thread(policy, domain)
    if slot >= 0:
        remember(scratch.patterns, slot, scratch.key, n, domain.place, added, counts)
    return added, counts


@kernel
def prepare(policy, settings, scratch, cells, logs):
    """Detect, repair and thread the domain of a belief, which ``scratch.words`` already holds; delta cuts it first."""
    if settings.delta > 0.0:
        kept = most_likely(logs, settings.delta)
        clear_cells(scratch.words, cells, cells.shape[0])
        cells, logs = cells[kept], logs[kept]
        for cell in cells:
            set1(scratch.words, cell)
    n = cells.shape[0]
    own, linked, spare, first = scratch.ints[1, :n], scratch.ints[2, :n], scratch.ints[3, :n], scratch.ints[4, :n]
    view = View(cells, scratch.words, own, linked, spare, scratch.head, scratch.place)
    for p in range(n):
        scratch.place[cells[p]] = p
    added, counts = _repair(policy, settings, scratch, view)
    n_added = counts[2]
    for p in range(n):
        spare[p] = 0
    after = np.empty(2 * n_added, np.int32)
    _link_added(view, added, n_added, first, after)
    K = np.zeros((1, 2), np.int64)
    if settings.calibration != COMPONENT:
        K = _graph_hull(policy, view, added, n_added)
    return Local(view, logs, added[:n_added], first, after, K, counts)


@kernel
def discard(scratch, local):
    """Leave the scratch space as it was."""
    unthread(local.domain)
    clear_cells(scratch.words, local.domain.cells, local.domain.cells.shape[0])


@kernel
def _push(queue, tail, value):
    if tail == queue.shape[0]:
        larger = np.empty(2 * tail, np.int32)
        for k in range(tail):
            larger[k] = queue[k]
        queue = larger
    queue[tail] = value
    return queue, tail + 1


@kernel
def component_of(policy, local, p):
    """Places of p's component in the repaired graph, ascending. A breadth-first walk, O(component)."""
    domain, added, first, after = local.domain, local.added, local.first, local.after
    seen = domain.spare  # 0, above where reached; left all 0
    queue = np.empty(64, np.int32)
    queue[0] = p
    seen[p] = 1
    head, tail = 0, 1
    while head < tail:
        q = queue[head]
        head += 1
        i = domain.cells[q]
        c = domain.own[q]
        if c >= 0:
            top = domain.head[c]
            r = top if seen[top] != 2 else np.int32(-1)  # 2: this clique has been walked
            while r >= 0:
                if seen[r] == 0:
                    seen[r] = 1
                    queue, tail = _push(queue, tail, r)
                r = domain.after[r]
            seen[top] = 2
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if test1(domain.words, j):
                r = domain.place[j]
                if seen[r] == 0:
                    seen[r] = 1
                    queue, tail = _push(queue, tail, r)
        e = first[q]
        while e >= 0:
            r = domain.place[added[e >> 1, 1 - (e & 1)]]
            if seen[r] == 0:
                seen[r] = 1
                queue, tail = _push(queue, tail, r)
            e = after[e]
    for k in range(tail):
        seen[queue[k]] = 0
    return np.sort(queue[:tail])


@kernel
def component_hull(policy, local, places):
    """Sensitivity hull of a component of the repaired graph."""
    K = np.zeros((1, 2), np.int64)
    for p in places:
        K = grow_by_edges(K, policy, local.domain, p)
        e = local.first[p]
        while e >= 0:
            if e & 1 == 0:  # an added edge counts once, at its first end
                x, y = difference(policy, local.added[e >> 1, 0], local.added[e >> 1, 1])
                K = grow(K, x, y)
            e = local.after[e]
    return K


@kernel
def was_added(local, i, j):
    """Whether edge (i, j) is among those that the repair added."""
    if not test1(local.domain.words, i):
        return False
    e = local.first[local.domain.place[i]]
    while e >= 0:
        if local.added[e >> 1, 1 - (e & 1)] == j:
            return True
        e = local.after[e]
    return False
