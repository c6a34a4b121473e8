"""Policy graphs as disjoint cliques (one label a location, -1 for none) plus extra edges in CSR.

Every edge is in exactly one of the two. ``indptr`` int64, ``indices`` int32, rows sorted and
symmetric."""

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.sorting import sort_numbers


@kernel
def group_by(labels, n_groups):
    """Locations by label, ascending within each: (order, starts). Label -1 is left out.

    A counting sort, O(N).
    """
    starts = np.zeros(n_groups + 1, np.int64)
    for label in labels:
        if label >= 0:
            starts[label + 1] += 1
    for g in range(n_groups):
        starts[g + 1] += starts[g]
    order = np.empty(starts[n_groups], np.int32)
    at = starts[:-1].copy()
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            order[at[labels[i]]] = i
            at[labels[i]] += 1
    return order, starts


@kernel
def relabel(labels, alone, out):
    """Number labels by their lowest location.

    Label -1 stays -1, or becomes a group of its own if ``alone``.
    """
    top = -1
    for label in labels:
        top = max(top, label)
    fresh = np.full(top + 1, -1, np.int32)
    n = 0
    for i in range(labels.shape[0]):
        label = labels[i]
        if label < 0:
            if alone:
                out[i] = n
                n += 1
            else:
                out[i] = -1
            continue
        if fresh[label] < 0:
            fresh[label] = n
            n += 1
        out[i] = fresh[label]
    return n


@bare
def find_root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@bare
def number_roots(parent, out):
    """out[i] = number of i's component, in order of appearance; returns how many there are."""
    count = 0
    for i in range(parent.shape[0]):  # a root is the lowest of its component, so it is met first
        root = find_root(parent, i)
        if root == i:
            out[i] = count
            count += 1
        else:
            out[i] = out[root]
    return count


@kernel
def components(cliques, n_cliques, indptr, indices, out):
    """Connected components numbered by their lowest location; returns how many."""
    n = cliques.shape[0]
    parent = np.arange(n).astype(np.int32)
    first = np.full(n_cliques, -1, np.int32)
    for i in range(n):
        c = cliques[i]
        if c >= 0:
            if first[c] < 0:
                first[c] = i
            else:
                parent[i] = first[c]
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] > i:
                a, b = find_root(parent, i), find_root(parent, indices[e])
                if a < b:
                    parent[b] = a
                elif b < a:
                    parent[a] = b
    return number_roots(parent, out)


@bare
def in_row(indptr, indices, i, j):
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        mid = (low + high) >> 1
        if indices[mid] < j:
            low = mid + 1
        else:
            high = mid
    return low < indptr[i + 1] and indices[low] == j


@bare
def has_edge(cliques, indptr, indices, i, j):
    if i == j:
        return False
    return (cliques[i] >= 0 and cliques[i] == cliques[j]) or in_row(indptr, indices, i, j)


@kernel
def has_edges(cliques, indptr, indices, pairs, out):
    for k in range(pairs.shape[0]):
        out[k] = has_edge(cliques, indptr, indices, pairs[k, 0], pairs[k, 1])


@kernel
def pairs_to_csr(n, pairs):
    """Symmetric CSR of undirected pairs given in any order, repeats merged."""
    degree = np.zeros(n + 1, np.int64)
    for k in range(pairs.shape[0]):
        degree[pairs[k, 0] + 1] += 1
        degree[pairs[k, 1] + 1] += 1
    for i in range(n):
        degree[i + 1] += degree[i]
    wide = np.empty(degree[n], np.int32)
    at = degree[:-1].copy()
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        wide[at[i]] = j
        at[i] += 1
        wide[at[j]] = i
        at[j] += 1
    indptr = np.zeros(n + 1, np.int64)
    m = 0
    for i in range(n):
        indptr[i + 1] = m
        if degree[i] == degree[i + 1]:
            continue
        row, before = wide[degree[i] : degree[i + 1]], m
        sort_numbers(row)
        for k in range(row.shape[0]):
            if m == before or row[k] != wide[m - 1]:
                wide[m] = row[k]  # m never passes degree[i] + k: rows only shrink
                m += 1
        indptr[i + 1] = m
    return indptr, wide[:m].copy()


@kernel
def upper_pairs(indptr, indices):
    """The edges i < j of a CSR graph, sorted."""
    out = np.empty((indices.shape[0] // 2, 2), np.int32)
    m = 0
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] > i:
                out[m, 0], out[m, 1] = i, indices[e]
                m += 1
    return out


@kernel
def first_asymmetry(indptr, indices):
    """Position (row, column) of an entry without its mirror image, or (-1, -1)."""
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if not in_row(indptr, indices, indices[e], i):
                return i, np.int64(indices[e])
    return -1, -1


@kernel
def neighbour_row(members, starts, cliques, indptr, indices, i, out):
    """Sorted neighbours of i, merged from its clique and its extra edges; returns how many."""
    n = 0
    e, stop = indptr[i], indptr[i + 1]
    c = cliques[i]
    if c >= 0:
        for k in range(starts[c], starts[c + 1]):
            j = members[k]
            while e < stop and indices[e] < j:
                out[n] = indices[e]
                n += 1
                e += 1
            if j != i:
                out[n] = j
                n += 1
    while e < stop:
        out[n] = indices[e]
        n += 1
        e += 1
    return n


@kernel
def expand(members, starts, cliques, indptr, indices):
    """Full CSR of cliques and extra edges together."""
    n = cliques.shape[0]
    full = np.zeros(n + 1, np.int64)
    for i in range(n):
        c = cliques[i]
        full[i + 1] = (
            full[i] + indptr[i + 1] - indptr[i] + (starts[c + 1] - starts[c] - 1 if c >= 0 else 0)
        )
    out = np.empty(full[n], np.int32)
    for i in range(n):
        neighbour_row(members, starts, cliques, indptr, indices, i, out[full[i] : full[i + 1]])
    return full, out


@kernel
def neighbours8(rows, cols):
    """CSR of the 8-neighbour graph on a grid."""
    indptr = np.zeros(rows * cols + 1, np.int64)
    out = np.empty(8 * rows * cols, np.int32)
    m = 0
    for r in range(rows):
        for c in range(cols):
            for rr in range(max(0, r - 1), min(rows, r + 2)):
                for cc in range(max(0, c - 1), min(cols, c + 2)):
                    if rr != r or cc != c:
                        out[m] = rr * cols + cc
                        m += 1
            indptr[r * cols + c + 1] = m
    return indptr, out[:m].copy()


@kernel
def filter_rows(indptr, indices, words):
    """Drop every edge that does not have both ends in the domain."""
    n = indptr.shape[0] - 1
    kept_ptr = np.zeros(n + 1, np.int64)
    kept = np.empty(indices.shape[0], np.int32)
    m = 0
    one = np.uint64(1)
    for i in range(n):
        if (words[i >> 6] >> np.uint64(i & 63)) & one:
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if (words[j >> 6] >> np.uint64(j & 63)) & one:
                    kept[m] = j
                    m += 1
        kept_ptr[i + 1] = m
    return kept_ptr, kept[:m].copy()


@kernel
def hops(members, starts, cliques, indptr, indices, sources, targets, order, out):
    """d_G(sources[k], targets[k]) by breadth-first search, one search for each run of equal sources
    in ``order``.

    A clique is entered once: its members are all one hop from the first one reached.
    """
    n = cliques.shape[0]
    seen = np.full(n, -1, np.int64)  # which search reached it
    entered = np.full(starts.shape[0] - 1, -1, np.int64)
    depth = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    begin = 0
    while begin < order.shape[0]:
        source = sources[order[begin]]
        end = begin
        while end < order.shape[0] and sources[order[end]] == source:
            end += 1
        queue[0], depth[source], seen[source] = source, 0, begin
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if seen[j] != begin:
                    seen[j], depth[j], queue[tail] = begin, depth[i] + 1, j
                    tail += 1
            c = cliques[i]
            if c >= 0 and entered[c] != begin:
                entered[c] = begin
                for k in range(starts[c], starts[c + 1]):
                    j = members[k]
                    if seen[j] != begin:
                        seen[j], depth[j], queue[tail] = begin, depth[i] + 1, j
                        tail += 1
        for k in range(begin, end):
            target = targets[order[k]]
            out[order[k]] = depth[target] if seen[target] == begin else np.inf
        begin = end


@kernel
def clique_extents(lattice, cliques, n_cliques):
    """(width, height) of the box of each clique."""
    low, high = np.full((n_cliques, 2), 2**30, np.int32), np.full((n_cliques, 2), -1, np.int32)
    for i in range(cliques.shape[0]):
        c = cliques[i]
        if c >= 0:
            for axis in range(2):
                low[c, axis], high[c, axis] = (
                    min(low[c, axis], lattice[i, axis]),
                    max(high[c, axis], lattice[i, axis]),
                )
    return high - low
