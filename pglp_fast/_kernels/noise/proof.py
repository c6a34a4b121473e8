"""The certificate's kernels: integer checks of what is sampled, and of the premises of the K-norm
theorem. No floating point decides."""

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.base.sorting import order_of_labels
from pglp_fast._kernels.geometry.hull import contains, cross, is_symmetric
from pglp_fast._kernels.policy.shapes import members_of, protected_of

from .alias_rows import read_rows
from .integer_weights import check_weights

# What failed: nothing; a weight outside the output set; a ratio above e^eps; an edge whose
# difference is not in K; an edge between two groups.
FINE, FOREIGN_OUTPUT, RATIO, OUTSIDE, SPLIT = 0, 1, 2, 3, 4


@kernel
def _check_table(shape, groups, hulls, reached, bound, tables, worst):
    """What fails in one shape's table; ``worst`` receives (ln ratio, s, s', z) as places."""
    k = members_of(groups, shape).shape[0]
    W = np.empty((k, k), np.uint64)
    if not read_rows(tables, shape, W):
        return FOREIGN_OUTPUT
    protected = protected_of(groups, shape, hulls, reached)
    return FINE if check_weights(W, protected, bound, worst) else RATIO


@kernel
def check_tables(which, start, stop, groups, hulls, reached, bound, tables, fault, worst):
    """Check the tables of shapes ``which[start:stop]``: every edge and every output.

    The weights are read back from the alias rows. With ``reached`` every pair that the sensitivity
    hull reaches is checked. ``worst[w]`` receives (ln ratio, s, s', z) with places in the shape's
    group."""
    for w in range(start, stop):
        fault[w] = _check_table(which[w], groups, hulls, reached, bound, tables, worst[w])


@bare
def clique_inside(polygon, members, lattice):
    """Whether p - q lies in the symmetric polygon for all members p, q.

    By the extent along each of its edges' normals, O(k h)."""
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
def _cliques_inside(members, groups, polygon):
    """Whether the differences of all cliques among the members lie in the polygon."""
    labels = groups.cliques[members]
    order = order_of_labels(labels)
    first = 0
    while first < members.shape[0]:
        label, last = labels[order[first]], first + 1
        while last < members.shape[0] and labels[order[last]] == label:
            last += 1
        if label >= 0 and not clique_inside(polygon, members[order[first:last]], groups.lattice):
            return False
        first = last
    return True


@kernel
def edges_inside(shape, polygon, groups):
    """Whether every edge's difference in the shape's group lies in the polygon, exactly. One that
    is not its own mirror image proves nothing: an edge is looked at in one direction only."""
    members = members_of(groups, shape)
    if not is_symmetric(polygon) or not _cliques_inside(members, groups, polygon):
        return False
    for i in members:
        for j in groups.indices[groups.indptr[i] : groups.indptr[i + 1]]:
            x, y = difference(groups.lattice, i, j)
            if j > i and not contains(polygon, x, y):
                return False
    return True


@kernel
def first_split(groups, n_cliques):
    """An edge (i, j) whose ends are in two groups, or in none; (-1, -1) if there is none.

    O(locations + extra edges)."""
    cliques, address = groups.cliques, groups.address
    first = np.full(n_cliques, -1, np.int64)
    for i in range(cliques.shape[0]):
        c = cliques[i]
        if c >= 0:
            if first[c] < 0:
                first[c] = i
            if address[i, 0] < 0 or address[i, 0] != address[first[c], 0]:
                return first[c], i
        for j in groups.indices[groups.indptr[i] : groups.indptr[i + 1]]:
            if address[i, 0] < 0 or address[i, 0] != address[j, 0]:
                return i, np.int64(j)
    return -1, -1
