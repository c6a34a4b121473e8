"""Tables for the components that moving users meet, found by what the table depends on.

A component's *key* is a row of integers: how many members, further edges and hull vertices, whether it is anchored; then
(col, row, lead) of each member, the edges as places, the hull, and the members themselves where it is anchored (the mechanism
is not the same everywhere). Kernels only read the book; a key that is not in it is handed back, to be written in between.
"""

from collections import namedtuple

import numpy as np

from .bits import test1
from .jit import kernel
from .shapes import mix

# slots: hash -> entry or -1; entry's key at keys[starts[entry]:starts[entry + 1]], its k x k numbers from at[entry] on: rows of
# cumulative weights of sum 2**63, ln Pr(z|s), and the loss of answering z for s (remapping only)
Book = namedtuple("Book", "slots starts keys at cumulative logs losses")

HEADER = 4


@kernel
def _hash(key):
    h = np.uint64(key.shape[0])
    for value in key:
        h = mix(h, value)
    return h


@kernel
def find(book, key):
    """The entry of a key, or -1."""
    last = book.slots.shape[0] - 1
    slot = np.int64(_hash(key) & np.uint64(last))
    while book.slots[slot] >= 0:
        entry = book.slots[slot]
        start = book.starts[entry]
        if book.starts[entry + 1] - start == key.shape[0]:
            k = 0
            while k < key.shape[0] and book.keys[start + k] == key[k]:
                k += 1
            if k == key.shape[0]:
                return entry
        slot = (slot + 1) & last
    return -1


@kernel
def enter(slots, starts, keys, first, last):
    """Put entries first..last-1 into the hash table, which has room."""
    mask = slots.shape[0] - 1
    for entry in range(first, last):
        slot = np.int64(_hash(keys[starts[entry] : starts[entry + 1]]) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@kernel
def _room(policy, local, places):
    """At most so many further edges."""
    m = 0
    for p in places:
        i = local.domain.cells[p]
        m += policy.indptr[i + 1] - policy.indptr[i]
    return m + local.added.shape[0]


@kernel
def make_key(policy, local, places, members, K, with_hull, anchored):
    """The key of a set of places of the domain, which must hold whole components of the repaired graph."""
    domain, lattice = local.domain, policy.lattice
    k, h = places.shape[0], K.shape[0] if with_hull else 0
    key = np.empty(HEADER + 4 * k + 2 * (_room(policy, local, places) + h), np.int64)
    first = domain.spare  # all 0; at the head of a clique, 1 + the place of its first member here
    n = HEADER
    for q in range(k):
        key[n] = np.int64(lattice[members[q], 0]) - np.int64(lattice[members[0], 0])
        key[n + 1] = np.int64(lattice[members[q], 1]) - np.int64(lattice[members[0], 1])
        c = domain.own[places[q]]
        lead = np.int64(q)
        if c >= 0:
            top = domain.head[c]
            if first[top] == 0:
                first[top] = q + 1
            lead = first[top] - 1
        key[n + 2] = lead
        n += 3
    for q in range(k):
        c = domain.own[places[q]]
        if c >= 0:
            first[domain.head[c]] = 0
    edges = 0
    for q in range(k):
        i = members[q]
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if j > i and test1(domain.words, j):
                key[n], key[n + 1] = q, np.searchsorted(members, j)
                n += 2
                edges += 1
        e = local.first[places[q]]
        while e >= 0:
            if e & 1 == 0:  # an added edge is listed at both ends: once is enough
                key[n], key[n + 1] = q, np.searchsorted(members, local.added[e >> 1, 1])
                n += 2
                edges += 1
            e = local.after[e]
    for v in range(h):
        key[n], key[n + 1] = K[v, 0], K[v, 1]
        n += 2
    if anchored:
        for q in range(k):
            key[n] = members[q]
            n += 1
    key[0], key[1], key[2], key[3] = k, edges, h, anchored
    return key[:n]


@kernel
def draw_place(book, entry, k, s, word):
    """The place that a 64-bit word selects from row s."""
    at = book.at[entry] + s * k
    threshold = word >> np.uint64(1)
    low, high = 0, k - 1
    while low < high:
        middle = (low + high) >> 1
        if book.cumulative[at + middle] > threshold:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def remap(book, entry, k, prior, to, weight, cost):
    """to[z] = the place w with the least expected loss sum_s p(s) Pr(z|s) loss(s, w) once z is known; ties to the lower place.

    ``prior``: logarithms. ``weight`` and ``cost`` are room for k numbers.
    """
    at = book.at[entry]
    for z in range(k):
        top = -np.inf
        for s in range(k):
            weight[s] = prior[s] + book.logs[at + s * k + z]
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
                    cost[w] += p * book.losses[row + w]
        best = 0
        for w in range(1, k):
            if cost[w] < cost[best]:
                best = w
        to[z] = best


@kernel
def remapped_column(book, entry, k, to, w, out):
    """out[s] = ln of the sum of Pr(z|s) over all z that are remapped to w."""
    at = book.at[entry]
    for s in range(k):
        top = -np.inf
        for z in range(k):
            if to[z] == w:
                top = max(top, book.logs[at + s * k + z])
        total = 0.0
        for z in range(k):
            if to[z] == w and top > -np.inf:
                total += np.exp(book.logs[at + s * k + z] - top)
        out[s] = top + np.log(total) if total > 0.0 else -np.inf
