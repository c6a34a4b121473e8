"""The certificate's kernels: integer checks of what is sampled, and of the premises of the K-norm theorem. No floating
point decides.

``fault`` numbers say what failed: 0 nothing, 1 a weight outside the output set, 2 a ratio above e^eps, 3 an edge whose
difference is not in K, 4 an edge between two groups.
"""

import numpy as np

from .hull import contains, cross
from .jit import kernel
from .shapes import protected_pairs
from .weights import check, read_alias

FINE, FOREIGN_OUTPUT, RATIO, OUTSIDE, SPLIT = 0, 1, 2, 3, 4


@kernel
def check_tables(
    which, start, stop, members, starts, representative, lattice, hulls, hull_starts, everyone, address, lead, indptr, indices,
    numerator, shift, bits, offset, cut, alias, fault, worst,
):  # fmt: skip
    """For shapes ``which[start:stop]``: read the weights back from the alias rows and check every edge; with ``everyone`` every
    pair that the sensitivity hull reaches.

    ``worst[w]`` receives (ln ratio, s, s', z) with places in the shape's group.
    """
    for w in range(start, stop):
        shape = which[w]
        g = representative[shape]
        a, b = starts[g], starts[g + 1]
        k = b - a
        columns = 1 << bits[shape]
        wide = np.empty(columns, np.uint64)
        W = np.empty((k, k), np.uint64)
        fault[w] = FINE
        for s in range(k):
            at = offset[shape] + s * columns
            for c in range(at, at + columns):
                if not 0 <= alias[c] < columns:
                    fault[w] = FOREIGN_OUTPUT
            if fault[w] != FINE:
                break
            read_alias(cut[at : at + columns], alias[at : at + columns], bits[shape], wide)
            W[s] = wide[:k]
            if np.any(wide[k:] > np.uint64(0)):
                fault[w] = FOREIGN_OUTPUT
        hull = hulls[hull_starts[shape] : hull_starts[shape + 1]]
        pairs = protected_pairs(members[a:b], lattice, hull, everyone, indptr, indices, address)
        if fault[w] == FINE and not check(W, lead[a:b], pairs, numerator, shift, worst[w]):
            fault[w] = RATIO


@kernel
def clique_inside(polygon, members, lattice):
    """Whether p - q lies in the symmetric polygon for all members p, q:

    by the extent along each of its edges' normals, O(k h).
    """
    h = polygon.shape[0]
    if h == 1:
        return members.shape[0] == 1
    for i in range(h):
        j = (i + 1) % h
        ex, ey = polygon[j, 0] - polygon[i, 0], polygon[j, 1] - polygon[i, 1]
        if h == 2:  # across the segment no extent, along it no more than the segment's half
            nx, ny = (-ey, ex) if i == 0 else (polygon[1, 0], polygon[1, 1])
            limit = 0 if i == 0 else polygon[1, 0] ** 2 + polygon[1, 1] ** 2
        else:
            nx, ny = ey, -ex
            limit = cross(polygon[i, 0], polygon[i, 1], ex, ey)
        low = high = nx * np.int64(lattice[members[0], 0]) + ny * np.int64(lattice[members[0], 1])
        for m in members:
            value = nx * np.int64(lattice[m, 0]) + ny * np.int64(lattice[m, 1])
            low, high = min(low, value), max(high, value)
        if high - low > limit:
            return False
    return True


@kernel
def check_premises(shape, polygon, members, starts, representative, lattice, cliques, indptr, indices):
    """Whether every edge's difference in the shape's group lies in the polygon, exactly."""
    g = representative[shape]
    own = members[starts[g] : starts[g + 1]]
    labels = cliques[own]
    order = np.argsort(labels, kind="mergesort")
    first = 0
    while first < own.shape[0]:
        last = first + 1
        while last < own.shape[0] and labels[order[last]] == labels[order[first]]:
            last += 1
        if labels[order[first]] >= 0 and not clique_inside(polygon, own[order[first:last]], lattice):
            return OUTSIDE
        first = last
    for i in own:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                dx = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0])
                dy = np.int64(lattice[j, 1]) - np.int64(lattice[i, 1])
                if not contains(polygon, dx, dy):
                    return OUTSIDE
    return FINE


@kernel
def first_split(address, cliques, n_cliques, indptr, indices):
    """An edge (i, j) whose ends are in two groups, or in none; (-1, -1) if there is none. O(locations + extra edges)."""
    first = np.full(n_cliques, -1, np.int64)
    for i in range(cliques.shape[0]):
        c = cliques[i]
        if c >= 0:
            if first[c] < 0:
                first[c] = i
            if address[i, 0] < 0 or address[i, 0] != address[first[c], 0]:
                return first[c], i
        for e in range(indptr[i], indptr[i + 1]):
            if address[i, 0] < 0 or address[i, 0] != address[indices[e], 0]:
                return i, np.int64(indices[e])
    return -1, -1
