"""Exact likelihoods of noise on a grid, each worked out once.

ln Pr(z|s) depends on K, on epsilon, on the sites around z that bound its Voronoi region, and on the
difference of s and z alone. In a large domain nearly all z have the four sites beside them, so that
one table over differences serves all of them, at every step, for every user. The memory is bounded:
a newcomer replaces the oldest."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.base.sorting import lower_bound
from pglp_fast._kernels.noise.emission import planar
from pglp_fast._kernels.noise.voronoi_regions import voronoi_neighbours
from pglp_fast._kernels.policy.shapes import sites_of

SLOTS = 16
ROOM = 1 << 20  # differences in all slots together, 16 bytes each
LONGEST = 160  # numbers of a key: a polygon of 64 vertices, and 16 sites around z

# oldest: the slot that is replaced next; keys (slots, LONGEST), all 0 where a slot is empty;
# ln Pr and Pr by slot and difference (rows first), NaN where they are not known yet
Columns = namedtuple("Columns", "oldest keys logs chances")


def make_columns(rows: int, cols: int) -> Columns:
    """An empty memory for a grid; one without slots for scattered points, and where the map has
    too many differences."""
    size = (2 * rows - 1) * (2 * cols - 1) if rows > 0 else 1
    slots = min(SLOTS, ROOM // size) if rows > 0 else 0
    keys = np.zeros((slots, LONGEST), np.int64)
    return Columns(np.zeros(1, np.int64), keys, np.empty((slots, size)), np.empty((slots, size)))


@kernel
def _listed(members, cell):
    """The place of a location among ascending members, or -1."""
    at = lower_bound(members, cell)
    return at if at < members.shape[0] and members[at] == cell else -1


@kernel
def beside(policy, members, z, out):
    """The places of the four sites beside member z on a grid, the nearest first, -1 where one of
    them is on the map but no member; returns how many.

    They alone bound z's region. It lies within half a step of z towards each of them; the map
    has no sites beyond its edges; and of any other site the bisector meets that box in a corner at
    most."""
    cell, n = np.int64(members[z]), 0
    row, col = cell // policy.cols, cell % policy.cols
    for turn in range(2):
        across = turn == 0 if policy.stretch >= 1.0 else turn == 1
        at, last, step = (col, policy.cols, 1) if across else (row, policy.rows, policy.cols)
        for side in (-1, 1):
            if 0 <= at + side < last:
                out[n] = _listed(members, cell + side * step)
                if out[n] < 0:
                    return -1
                n += 1
    return n


@kernel
def _sites_around(policy, members, z):
    """Places of the members that bound z's region."""
    near = np.empty(4, np.int64)
    n = beside(policy, members, z, near)
    if n >= 0:
        return near[:n]
    room = np.empty(members.shape[0], np.int64)
    n = voronoi_neighbours(sites_of(members, policy.lattice), z, policy.stretch, room)
    return room[:n]


@kernel
def _write_key(policy, members, z, near, polygon, epsilon, key):
    """What a column depends on; returns how many numbers that are, -1 if they are too many."""
    h, n = polygon.shape[0], 3
    if n + 2 * (h + near.shape[0]) > LONGEST:
        return -1
    room = np.empty(1 + 2 * h)
    room[0] = epsilon
    for v in range(h):
        room[1 + 2 * v], room[2 + 2 * v] = polygon[v, 0], polygon[v, 1]
    bits = room.view(np.int64)
    key[0], key[1], key[2] = h, near.shape[0], bits[0]
    for k in range(2 * h):
        key[n + k] = bits[1 + k]
    n += 2 * h
    for k in near:
        key[n], key[n + 1] = difference(policy.lattice, members[z], members[k])
        n += 2
    return n


@kernel
def _slot_of(columns, key, n):
    """The slot of a key, emptied for it if it has none."""
    for slot in range(columns.keys.shape[0]):
        same, k = True, 0
        while same and k < n:
            same = columns.keys[slot, k] == key[k]
            k += 1
        if same:
            return slot
    slot = columns.oldest[0]
    columns.oldest[0] = (slot + 1) % columns.keys.shape[0]
    for k in range(n):
        columns.keys[slot, k] = key[k]
    columns.logs[slot, :] = np.nan
    return slot


@kernel
def _fill(policy, members, z, near, polygon, epsilon, missing, places, logs, chances):
    """Work out what is missing; ``places``: where each member's difference stands."""
    sites, found = sites_of(members, policy.lattice), np.empty(missing.shape[0])
    planar(z, missing, sites, near, policy.stretch, polygon, epsilon, found)
    for k in range(missing.shape[0]):
        at = places[missing[k]]
        logs[at], chances[at] = found[k], np.exp(found[k])


@kernel
def look_up_column(columns, policy, members, z, polygon, epsilon, logs, chances):
    """logs[k] = ln Pr(members[z] | members[k]) for K of rank 2 on a grid, chances[k] its
    exponential; returns whether there is a memory for it, else nothing is written. A policy with
    weights has none: it lies on a finer lattice."""
    if columns.keys.shape[0] == 0 or policy.rows == 0:
        return False
    near, key = _sites_around(policy, members, z), np.empty(LONGEST, np.int64)
    n = _write_key(policy, members, z, near, polygon, epsilon, key)
    if n < 0:
        return False
    slot, k, lattice = _slot_of(columns, key, n), members.shape[0], policy.lattice
    known, likely = columns.logs[slot], columns.chances[slot]
    places, missing, absent = np.empty(k, np.int64), np.empty(k, np.int64), 0
    wide = 2 * policy.cols - 1
    # where the difference 0 stands, less z
    middle = (policy.rows - 1 - np.int64(lattice[members[z], 1])) * wide
    middle += policy.cols - 1 - np.int64(lattice[members[z], 0])
    for q in range(k):
        i = members[q]
        at = middle + np.int64(lattice[i, 1]) * wide + np.int64(lattice[i, 0])
        places[q], missing[absent] = at, q
        logs[q], chances[q] = known[at], likely[at]
        absent += np.isnan(known[at])
    if absent > 0:
        some = missing[:absent]
        _fill(policy, members, z, near, polygon, epsilon, some, places, known, likely)
        for q in some:
            logs[q], chances[q] = known[places[q]], likely[places[q]]
    return True
