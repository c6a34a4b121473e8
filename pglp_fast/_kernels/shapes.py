"""Groups of locations that are translates of each other share one *shape*: what depends on a shape is computed once.

Two groups have the same shape when their members, in index order, have the same lattice offsets from the first one, the
same partition into cliques and the same extra edges between the same places in that order. Index order is part of it:
ties in "nearest" go to the lower index.
"""

import numpy as np

from .graph import find_root, number_roots
from .hull import contains
from .jit import kernel

_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def addresses(members, starts, out):
    """out[i] = (group, place in the group) of location i; (-1, -1) where it is in none (``out`` is filled with -1)."""
    for g in range(starts.shape[0] - 1):
        for k in range(starts[g], starts[g + 1]):
            out[members[k], 0] = g
            out[members[k], 1] = k - starts[g]


@kernel
def leads(members, starts, cliques, n_cliques, out):
    """out[k] = place in its group of the first member of member k's clique (its own place where it has none)."""
    first = np.full(n_cliques, -1, np.int64)
    for g in range(starts.shape[0] - 1):
        for k in range(starts[g], starts[g + 1]):
            c = cliques[members[k]]
            if c < 0:
                out[k] = k - starts[g]
                continue
            if first[c] < starts[g]:
                first[c] = k
            out[k] = first[c] - starts[g]


@kernel
def mix(h, value):
    h = (h ^ np.uint64(value)) * _MIX
    return h ^ (h >> np.uint64(29))


@kernel
def _hash(g, members, starts, lattice, lead, indptr, indices, address):
    a = members[starts[g]]
    h = mix(_MIX, starts[g + 1] - starts[g])
    for k in range(starts[g], starts[g + 1]):
        i = members[k]
        h = mix(h, np.int64(lattice[i, 0]) - np.int64(lattice[a, 0]))
        h = mix(h, np.int64(lattice[i, 1]) - np.int64(lattice[a, 1]))
        h = mix(h, lead[k])
        for e in range(indptr[i], indptr[i + 1]):
            h = mix(h, address[indices[e], 1])
        h = mix(h, indptr[i + 1] - indptr[i])
    return h


@kernel
def _same(g, f, members, starts, lattice, lead, indptr, indices, address):
    n = starts[g + 1] - starts[g]
    if n != starts[f + 1] - starts[f]:
        return False
    a, b = members[starts[g]], members[starts[f]]
    dx = np.int64(lattice[b, 0]) - np.int64(lattice[a, 0])
    dy = np.int64(lattice[b, 1]) - np.int64(lattice[a, 1])
    for k in range(n):
        i, j = members[starts[g] + k], members[starts[f] + k]
        if np.int64(lattice[j, 0]) - np.int64(lattice[i, 0]) != dx:
            return False
        if np.int64(lattice[j, 1]) - np.int64(lattice[i, 1]) != dy:
            return False
        if lead[starts[g] + k] != lead[starts[f] + k]:
            return False
        degree = indptr[i + 1] - indptr[i]
        if degree != indptr[j + 1] - indptr[j]:
            return False
        for e in range(degree):
            if address[indices[indptr[i] + e], 1] != address[indices[indptr[j] + e], 1]:
                return False
    return True


@kernel
def classify(members, starts, lattice, lead, indptr, indices, address, shape_of):
    """Number the distinct shapes in order of appearance; returns one representative group for each.

    A hash table finds candidates, an exact comparison decides: a hash collision cannot merge two shapes.
    """
    n = starts.shape[0] - 1
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    representative = np.empty(n, np.int32)
    count = 0
    for g in range(n):
        at = np.int64(_hash(g, members, starts, lattice, lead, indptr, indices, address) & np.uint64(size - 1))
        while True:
            shape = slots[at]
            if shape < 0:
                slots[at] = count
                representative[count] = g
                shape_of[g] = count
                count += 1
                break
            if _same(g, representative[shape], members, starts, lattice, lead, indptr, indices, address):
                shape_of[g] = shape
                break
            at = (at + 1) & (size - 1)
    return representative[:count].copy()


@kernel
def sites_of(members, lattice):
    """Lattice offsets of a group's members from the first one."""
    out = np.empty((members.shape[0], 2), np.int64)
    for k in range(members.shape[0]):
        out[k, 0] = np.int64(lattice[members[k], 0]) - np.int64(lattice[members[0], 0])
        out[k, 1] = np.int64(lattice[members[k], 1]) - np.int64(lattice[members[0], 1])
    return out


@kernel
def local_pairs(members, indptr, indices, address):
    """A group's extra edges as places in the group, i < j."""
    m = 0
    for i in members:
        m += indptr[i + 1] - indptr[i]
    out = np.empty((m // 2, 2), np.int64)
    m = 0
    for k in range(members.shape[0]):
        i = members[k]
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] > i:
                out[m, 0], out[m, 1] = k, address[indices[e], 1]
                m += 1
    return out


@kernel
def protected_pairs(members, lattice, hull, everyone, indptr, indices, address):
    """Pairs of places that the proof is about, cliques aside: the extra edges.

    With ``everyone`` (the graph calibration) all pairs whose difference lies in the sensitivity hull: K hides whoever it reaches,
    edge or not (spec section 4).
    """
    if not everyone:
        return local_pairs(members, indptr, indices, address)
    sites = sites_of(members, lattice)
    k = sites.shape[0]
    count = 0
    for i in range(k):
        for j in range(i + 1, k):
            count += contains(hull, sites[j, 0] - sites[i, 0], sites[j, 1] - sites[i, 1])
    out = np.empty((count, 2), np.int64)
    count = 0
    for i in range(k):
        for j in range(i + 1, k):
            if contains(hull, sites[j, 0] - sites[i, 0], sites[j, 1] - sites[i, 1]):
                out[count, 0], out[count, 1] = i, j
                count += 1
    return out


@kernel
def connected(lead, pairs):
    """(label of each place, how many labels): who hangs together by cliques and pairs."""
    parent = lead.copy()
    for e in range(pairs.shape[0]):
        a, b = find_root(parent, pairs[e, 0]), find_root(parent, pairs[e, 1])
        parent[max(a, b)] = min(a, b)
    label = np.empty(lead.shape[0], np.int64)
    return label, number_roots(parent, label)
