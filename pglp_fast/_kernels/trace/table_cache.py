"""Tables for the components that moving users meet, found by what the table depends on.

A component's *key* is a row of integers: how many members, further edges and hull vertices, whether
it is anchored plus twice the policy's denominator (0 without weights), the bits of epsilon; then
(col, row, head of its clique) of each member, the edges as positions, the hull, the members
themselves where it is anchored (the mechanism is not the same everywhere), and with weights the
numerator and denominator of each edge's. Columns, rows and hull are on the policy's lattice, which
with weights is ``denominator`` times as fine as the map's. Kernels only read the cache; a key that
is missing is handed back, to be filled in between steps."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.hashing import hash_row, slot_of
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.base.sorting import lower_bound

# version: of the numbering of entries; slots: hash -> entry or -1; an entry's key is
# keys[starts[entry] : starts[entry + 1]], its k x k numbers begin at at[entry]: rows of cumulative
# weights of sum 2**63; Pr(z|s) and ln Pr(z|s), those of one answer z side by side; and the loss of
# answering z for s (remapping only)
Tables = namedtuple("Tables", "version slots starts keys at cumulative chances logs losses")

HEADER = 5  # numbers before a key's members


@kernel
def find(tables, key):
    """The entry of a key, or -1."""
    last = tables.slots.shape[0] - 1
    slot = slot_of(hash_row(key), tables.slots.shape[0])
    while tables.slots[slot] >= 0:
        entry = tables.slots[slot]
        start = tables.starts[entry]
        if tables.starts[entry + 1] - start == key.shape[0]:
            k = 0
            while k < key.shape[0] and tables.keys[start + k] == key[k]:
                k += 1
            if k == key.shape[0]:
                return entry
        slot = (slot + 1) & last
    return -1


@kernel
def enter(slots, starts, keys, first, last):
    """Put entries first..last-1 into the hash table, which has room."""
    for entry in range(first, last):
        slot = slot_of(hash_row(keys[starts[entry] : starts[entry + 1]]), slots.shape[0])
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = entry


@kernel
def _write_members(policy, view, positions, members, key, n):
    """(col, row, head of its clique) of each member; returns the end of the key so far."""
    # all 0; at the head of a clique in the domain, 1 + the position of its first member here
    first = view.spare
    for q in range(positions.shape[0]):
        key[n], key[n + 1] = difference(policy.lattice, members[0], members[q])
        key[n + 2] = q
        c = view.clique[positions[q]]
        if c >= 0:
            top = view.head[c]
            if first[top] == 0:
                first[top] = q + 1
            key[n + 2] = first[top] - 1
        n += 3
    for p in positions:
        if view.clique[p] >= 0:
            first[view.head[view.clique[p]]] = 0
    return n


@kernel
def _write_edges(policy, repaired, positions, members, weights, key, n):
    """The edges outside cliques, by the positions of their ends, or by their ``weights``: of an
    added edge 1. Returns the end of the key so far."""
    for q in range(positions.shape[0]):
        i = members[q]
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if j > i and test1(repaired.domain.words, j):
                if weights:
                    key[n], key[n + 1] = policy.weights[e, 0], policy.weights[e, 1]
                else:
                    key[n], key[n + 1] = q, lower_bound(members, j)
                n += 2
        e = repaired.first[positions[q]]
        while e >= 0:
            if e & 1 == 0:  # an added edge is listed at both ends: once is enough
                if weights:
                    key[n] = key[n + 1] = 1
                else:
                    key[n], key[n + 1] = q, lower_bound(members, repaired.added[e >> 1, 1])
                n += 2
            e = repaired.next[e]
    return n


@kernel
def component_key(policy, settings, repaired, positions, members, hull):
    """The key of positions that hold whole components of the repaired graph."""
    k, h = positions.shape[0], hull.shape[0] if settings.with_hull else 0
    anchored = settings.anchored
    edges = repaired.added.shape[0]  # at most so many further edges
    for i in members:
        edges += policy.indptr[i + 1] - policy.indptr[i]
    key = np.empty(HEADER + 4 * k + 4 * edges + 2 * h, np.int64)
    at = _write_members(policy, repaired.domain, positions, members, key, HEADER)
    n = _write_edges(policy, repaired, positions, members, False, key, at)
    key[0], key[1], key[2], key[3] = k, (n - at) >> 1, h, anchored + 2 * policy.denominator
    key[4] = settings.bits
    for v in range(h):
        key[n], key[n + 1] = hull[v, 0], hull[v, 1]
        n += 2
    if anchored:
        for i in members:
            key[n] = i
            n += 1
    if policy.denominator > 0:
        n = _write_edges(policy, repaired, positions, members, True, key, n)
    return key[:n]


@bare
def draw_position(tables, entry, k, s, word):
    """The position that a 64-bit word selects from row s."""
    at = tables.at[entry] + s * k
    threshold = word >> np.uint64(1)
    low, high = 0, k - 1
    while low < high:
        middle = (low + high) >> 1
        if tables.cumulative[at + middle] > threshold:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def remap(tables, entry, k, prior, to, weight, cost):
    """to[z] = argmin over w of sum_s p(s) Pr(z|s) loss(s, w); ties to the lower position.

    ``prior``: logarithms. ``weight`` and ``cost`` are room for k numbers. The remapping of
    Chatzikokolakis, ElSalamouny and Palamidessi, Efficient Utility Improvement for Location Privacy
    (PoPETs 2017)."""
    at = tables.at[entry]
    for z in range(k):
        top = -np.inf
        for s in range(k):
            weight[s] = prior[s] + tables.logs[at + z * k + s]
            top = max(top, weight[s])
        to[z] = z
        if top == -np.inf:
            continue
        for w in range(k):
            cost[w] = 0.0
        for s in range(k):
            p = np.exp(weight[s] - top)
            row = at + s * k
            if p > 0.0:
                for w in range(k):
                    cost[w] += p * tables.losses[row + w]
        best = 0
        for w in range(1, k):
            if cost[w] < cost[best]:
                best = w
        to[z] = best


@kernel
def remapped_column(tables, entry, k, to, w, out):
    """out[s] = ln of the sum of Pr(z|s) over all z that are remapped to w."""
    at = tables.at[entry]
    for s in range(k):
        top = -np.inf
        for z in range(k):
            if to[z] == w:
                top = max(top, tables.logs[at + z * k + s])
        total = 0.0
        for z in range(k):
            if to[z] == w and top > -np.inf:
                total += np.exp(tables.logs[at + z * k + s] - top)
        out[s] = top + np.log(total) if total > 0.0 else -np.inf
