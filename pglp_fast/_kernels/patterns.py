"""Repairs remembered by local pattern.

Two domains that are translates of each other, with the same cliques cut in the same way and no other edges, are repaired
alike: place by place in index order. Users on a map meet the same few patterns over and over. The memory is bounded: a
table of slots, a newcomer takes the place of whoever had its slot, and patterns that are too large are not kept.
"""

from collections import namedtuple

import numpy as np

from .jit import kernel
from .shapes import mix

SLOTS = 4096
MAX_CELLS = 64
MAX_ADDED = 32

# size (0: empty), shape[slot, place] = (col, row, last place of its clique), counts (disconnected, isolated, added,
# exposed), edges as places
Patterns = namedtuple("Patterns", "size shape counts edges")


def make_patterns() -> Patterns:
    """An empty memory, some 2 MB."""
    return Patterns(
        np.zeros(SLOTS, np.int32),
        np.empty((SLOTS, MAX_CELLS, 3), np.int16),
        np.empty((SLOTS, 4), np.int32),
        np.empty((SLOTS, MAX_ADDED, 2), np.int8),
    )


@kernel
def describe(policy, domain, key):
    """Write the pattern of a threaded domain to ``key``; returns its slot, or -1 where it cannot be kept."""
    cells, lattice = domain.cells, policy.lattice
    n = cells.shape[0]
    if n == 0 or n > MAX_CELLS:
        return -1
    x0, y0 = np.int64(lattice[cells[0], 0]), np.int64(lattice[cells[0], 1])
    h = np.uint64(n)
    for p in range(n):
        i = cells[p]
        x, y = lattice[i, 0] - x0, lattice[i, 1] - y0
        if abs(x) > 32767 or abs(y) > 32767 or policy.indptr[i] != policy.indptr[i + 1]:
            return -1
        last = np.int64(domain.head[domain.own[p]] if domain.own[p] >= 0 else -1)
        key[p, 0], key[p, 1], key[p, 2] = x, y, last
        h = mix(mix(mix(h, x), y), last)
    return np.int64(h & np.uint64(SLOTS - 1))


@kernel
def recall(patterns, slot, key, n, cells, added, counts):
    """Whether the slot holds this very pattern; then its edges and counts are written out."""
    if patterns.size[slot] != n:
        return False
    for p in range(n):
        for k in range(3):
            if patterns.shape[slot, p, k] != key[p, k]:
                return False
    for k in range(4):
        counts[k] = patterns.counts[slot, k]
    for e in range(counts[2]):
        added[e, 0], added[e, 1] = cells[patterns.edges[slot, e, 0]], cells[patterns.edges[slot, e, 1]]
    return True


@kernel
def remember(patterns, slot, key, n, place, added, counts):
    if counts[2] > MAX_ADDED:
        return
    patterns.size[slot] = n
    for p in range(n):
        for k in range(3):
            patterns.shape[slot, p, k] = key[p, k]
    for k in range(4):
        patterns.counts[slot, k] = counts[k]
    for e in range(counts[2]):
        patterns.edges[slot, e, 0], patterns.edges[slot, e, 1] = place[added[e, 0]], place[added[e, 1]]
