"""A memory of domains by their local pattern.

Two domains that are translates of each other, with the same cliques cut in the same way and no
other edges, are repaired alike, position by position, fall into the same components, and draw from
the same tables. Users on a map meet the same few patterns over and over: one look at the pattern
replaces detection, repair, the walk along a component, its hull and its key. The memory is bounded:
a pattern may lie in any slot of its set; where these are full, a newcomer replaces one of them in
turn. Patterns that are too large are not kept."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.hashing import mix, slot_of
from pglp_fast._kernels.base.jit import bare, kernel

# at most some 8 MB in all, for each thread: most domains of moving users are smaller than that
SLOTS = 8192
WAYS = 8  # slots of a set: with fewer, patterns in steady use replace each other
MAX_CELLS = 64
MAX_ADDED = 32
_FARTHEST = 1 << 20  # offsets within a pattern, in lattice units
_BITS = 22  # that hold such an offset, and its sign

# version of the tables that entries number; turn: how many patterns were kept; size (0: empty);
# shape[slot, position] = (col, row, first position of its clique) in one integer; anchor: the
# choice of policy and epsilon, and the first location where tables are not the same everywhere;
# counts (disconnected, isolated, added, exposed); edges as positions; label: the component of each
# position; entries: the table of each component, or -1
Patterns = namedtuple("Patterns", "version turn size shape anchor counts edges label entries")


def make_patterns() -> Patterns:
    """An empty memory."""
    return Patterns(
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(SLOTS, np.int32),
        np.empty((SLOTS, MAX_CELLS), np.int64),
        np.empty(SLOTS, np.int64),
        np.empty((SLOTS, 4), np.int64),
        np.empty((SLOTS, MAX_ADDED, 2), np.int8),
        np.empty((SLOTS, MAX_CELLS), np.int8),
        np.empty((SLOTS, MAX_CELLS), np.int32),
    )


@kernel
def refresh(patterns, version):
    """Forget everything if tables are numbered anew."""
    if patterns.version[0] != version:
        patterns.version[0] = version
        for slot in range(SLOTS):
            patterns.size[slot] = 0


@bare
def anchor_of(choice, anchored, cells):
    """What a pattern belongs to, as one number."""
    place = np.int64(cells[0]) + 1 if anchored and cells.shape[0] > 0 else np.int64(0)
    return (choice << 32) + place


@bare
def describe(policy, cells, head, anchor, key):
    """Write the pattern of a domain to ``key``; returns its set's first slot, -1 if it is not kept.

    ``head``: work space by clique, all -1."""
    n = cells.shape[0]
    if n == 0 or n > MAX_CELLS:
        return -1
    lattice, cliques, indptr = policy.lattice, policy.cliques, policy.indptr
    x0, y0 = np.int64(lattice[cells[0], 0]), np.int64(lattice[cells[0], 1])
    h = mix(np.uint64(n), anchor)
    fits = True
    for p in range(n):
        i = np.uint32(cells[p])
        x, y = lattice[i, 0] - x0, lattice[i, 1] - y0
        fits &= max(abs(x), abs(y)) < _FARTHEST and indptr[i] == indptr[i + 1]
        c = cliques[i]
        first = np.int64(-1)
        if c >= 0:
            if head[np.uint32(c)] < 0:
                head[np.uint32(c)] = p
            first = np.int64(head[np.uint32(c)])
        key[p] = ((((x + _FARTHEST) << _BITS) + y + _FARTHEST) << 8) + first + 1
        h = mix(h, key[p])
    for p in range(n):
        c = cliques[np.uint32(cells[p])]
        if c >= 0:
            head[np.uint32(c)] = -1
    return slot_of(h, SLOTS // WAYS) * WAYS if fits else -1


@bare
def is_known(patterns, slot, key, n, anchor):
    """Whether the slot holds this very pattern."""
    if patterns.size[slot] != n or patterns.anchor[slot] != anchor:
        return False
    for p in range(n):
        if patterns.shape[slot, p] != key[p]:
            return False
    return True


@bare
def seek(patterns, first, key, n, anchor):
    """(slot of a pattern in the set that begins at ``first``, whether it is there): where it is
    not, the slot that it may have."""
    free = first + patterns.turn[0] % WAYS
    for slot in range(first, first + WAYS):
        if is_known(patterns, slot, key, n, anchor):
            return slot, True
        if patterns.size[slot] == 0:
            free = slot
    return free, False


@kernel
def remember(patterns, slot, key, anchor, position, added, counts, label):
    """Keep a repaired domain in its slot, in place of what was there; returns whether it fits."""
    n = label.shape[0]
    if counts[2] > MAX_ADDED:
        return False
    patterns.size[slot], patterns.anchor[slot] = n, anchor
    patterns.turn[0] += 1
    for p in range(n):
        patterns.shape[slot, p] = key[p]
        patterns.label[slot, p] = label[p]
        patterns.entries[slot, p] = -1
    for k in range(4):
        patterns.counts[slot, k] = counts[k]
    for e in range(counts[2]):
        for end in range(2):
            patterns.edges[slot, e, end] = position[added[e, end]]
    return True
