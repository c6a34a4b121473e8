"""Groups of locations that are translates of each other share one *shape*.

Two groups have the same shape when their members, in index order, have the same lattice offsets
from the first one, the same partition into cliques and the same extra edges, of the same weights,
between the same places in that order. Index order is part of it: ties in "nearest" go to the lower
index. What depends on a shape is computed once."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.hashing import SEED, mix, slot_of
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.geometry.hull import contains
from pglp_fast._kernels.geometry.polygons import polygon_of

from .graph import find_root, number_roots

# Groups of locations over a policy graph.
#   members, starts   members of group g, ascending, at members[starts[g]:starts[g + 1]]
#   heads             for each entry of members, the place of the first member of its clique
#   address           (group, place in the group) of each location; -1 outside the domain
#   shape_of          the shape of each group
#   representative    one group of each shape
#   lattice           coordinates of every location
#   cliques           the clique of each location, -1 for none
#   indptr, indices   extra edges of every location, as a CSR matrix
#   weights           of each entry of indices, with the bound just below e^(w eps) that it is
#   numerators        proved with, numerators / 2**shifts (see ``noise.integer_weights``); empty
#   shifts            without weights, and where nothing is proved
#   denominator       hulls are so many times as large as the lattice says
NO_WEIGHTS = np.empty(0), np.empty(0, np.uint64), np.empty(0, np.int64)
Groups = namedtuple(
    "Groups",
    "members starts heads address shape_of representative lattice cliques indptr indices "
    "weights numerators shifts denominator",
    defaults=(*NO_WEIGHTS, 1),
)

# Which places of a group must not be told apart: those of one clique (``heads``), and further
# ``pairs`` (m, 2), with the weight and the bound of each; empty where all have weight 1.
Protected = namedtuple("Protected", "heads pairs weights numerators shifts", defaults=NO_WEIGHTS)
PLAIN = -2  # a shift that says: e^eps itself


@kernel
def members_of(groups, shape):
    """Members of the group that represents a shape."""
    g = groups.representative[shape]
    return groups.members[groups.starts[g] : groups.starts[g + 1]]


@kernel
def sites_of(members, lattice):
    """Lattice offsets of a group's members from the first one."""
    out = np.empty((members.shape[0], 2), np.int64)
    for k in range(members.shape[0]):
        out[k, 0], out[k, 1] = difference(lattice, members[0], members[k])
    return out


@bare
def addresses(members, starts, out):
    """out[i] = (group, place in the group) of location i; ``out`` is filled with -1 before."""
    for g in range(starts.shape[0] - 1):
        for k in range(starts[g], starts[g + 1]):
            out[members[k], 0] = g
            out[members[k], 1] = k - starts[g]


@kernel
def clique_heads(members, starts, cliques, n_cliques, out):
    """out[k] = place in its group of the first member of member k's clique.

    It is the member's own place where it has no clique."""
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


@bare
def _hash(groups, g):
    """Of what a shape is: offsets, clique heads and extra edges, in index order."""
    a = groups.members[groups.starts[g]]
    h = mix(SEED, groups.starts[g + 1] - groups.starts[g])
    for k in range(groups.starts[g], groups.starts[g + 1]):
        i = groups.members[k]
        x, y = difference(groups.lattice, a, i)
        h = mix(mix(mix(h, x), y), groups.heads[k])
        for e in range(groups.indptr[i], groups.indptr[i + 1]):
            h = mix(h, groups.address[groups.indices[e], 1])
            if groups.weights.shape[0] > 0:
                h = mix(h, groups.weights[e : e + 1].view(np.int64)[0])
        h = mix(h, groups.indptr[i + 1] - groups.indptr[i])
    return h


@bare
def _same_edges(groups, i, j):
    """Whether the extra edges of two locations lead to the same places of their groups."""
    indptr, indices, address = groups.indptr, groups.indices, groups.address
    degree = indptr[i + 1] - indptr[i]
    if degree != indptr[j + 1] - indptr[j]:
        return False
    for k in range(degree):
        e, f = indptr[i] + k, indptr[j] + k
        if address[indices[e], 1] != address[indices[f], 1]:
            return False
        if groups.weights.shape[0] > 0 and groups.weights[e] != groups.weights[f]:
            return False
    return True


@bare
def _same(groups, g, f):
    """Whether two groups are of one shape, exactly."""
    members, a, b = groups.members, groups.starts[g], groups.starts[f]
    n = groups.starts[g + 1] - a
    if n != groups.starts[f + 1] - b:
        return False
    offset = difference(groups.lattice, members[a], members[b])
    for k in range(n):
        if difference(groups.lattice, members[a + k], members[b + k]) != offset:
            return False
        if groups.heads[a + k] != groups.heads[b + k]:
            return False
        if not _same_edges(groups, members[a + k], members[b + k]):
            return False
    return True


@kernel
def classify(groups):
    """Number the distinct shapes in order of appearance, in ``groups.shape_of``.

    Returns one representative group for each. A hash table finds candidates, an exact comparison
    decides: a hash collision cannot merge two shapes."""
    n = groups.starts.shape[0] - 1
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    representative = np.empty(n, np.int32)
    count = 0
    for g in range(n):
        at = slot_of(_hash(groups, g), size)
        while slots[at] >= 0 and not _same(groups, g, representative[slots[at]]):
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = count
            representative[count] = g
            count += 1
        groups.shape_of[g] = slots[at]
    return representative[:count].copy()


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
def local_entries(members, indptr, indices):
    """Which entries of the CSR matrix the edges of ``local_pairs`` are, in the same order."""
    m = 0
    for i in members:
        m += indptr[i + 1] - indptr[i]
    out = np.empty(m // 2, np.int64)
    m = 0
    for i in members:
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] > i:
                out[m] = e
                m += 1
    return out


@kernel
def reached_pairs(sites, hull):
    """All pairs of places whose difference lies in a sensitivity hull, i < j.

    With the graph calibration K hides whoever it reaches, edge or not (spec section 4)."""
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
def protected_of(groups, shape, hulls, reached):
    """What the proof of a shape is about: its edges.

    With ``reached`` (the graph calibration) all pairs that its sensitivity hull reaches."""
    g = groups.representative[shape]
    a, b = groups.starts[g], groups.starts[g + 1]
    members, heads = groups.members[a:b], groups.heads[a:b]
    others = np.empty((0, 2), np.int64)
    if reached:
        sites = sites_of(members, groups.lattice) * groups.denominator
        others = reached_pairs(sites, polygon_of(hulls, shape))
    weighted = groups.weights.shape[0] > 0
    if reached and not weighted:
        return Protected(heads, others, groups.weights, groups.numerators, groups.shifts)
    pairs = local_pairs(members, groups.indptr, groups.indices, groups.address)
    if not weighted:
        return Protected(heads, pairs, groups.weights, groups.numerators, groups.shifts)
    entries = local_entries(members, groups.indptr, groups.indices)
    return _with_weights(groups, heads, pairs, entries, others)


@kernel
def _with_weights(groups, heads, pairs, entries, others):
    """Edges with their weights and bounds, and other pairs of weight 1."""
    m, n = pairs.shape[0], pairs.shape[0] + others.shape[0]
    both, weights = np.empty((n, 2), np.int64), np.empty(n)
    numerators, shifts = np.zeros(n, np.uint64), np.full(n, PLAIN)
    for e in range(n):
        if e < m:
            both[e, 0], both[e, 1], at = pairs[e, 0], pairs[e, 1], entries[e]
            weights[e], numerators[e] = groups.weights[at], groups.numerators[at]
            shifts[e] = groups.shifts[at]
        else:
            both[e, 0], both[e, 1], weights[e] = others[e - m, 0], others[e - m, 1], 1.0
    return Protected(heads, both, weights, numerators, shifts)


@kernel
def connected(protected):
    """(label of each place, how many labels): connected components by cliques and pairs."""
    heads, pairs = protected.heads, protected.pairs
    parent = heads.copy()
    for e in range(pairs.shape[0]):
        a, b = find_root(parent, pairs[e, 0]), find_root(parent, pairs[e, 1])
        parent[max(a, b)] = min(a, b)
    label = np.empty(heads.shape[0], np.int64)
    return label, number_roots(parent, label)
