"""The hulls of a constrained graph that a repair may enlarge, in one pool.

The component calibration has one for each component of G^C, made when a candidate first needs it;
the graph calibration has one for all."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.growing import append_rows
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.hull_growth import error_of, with_prefixes
from pglp_fast._kernels.policy.graph import find_root

from .domain_hull import grow_by_edges
from .domain_view import COMPONENT, GRAPH, MIN_ERROR

# Hull b is vertices[start[b] : start[b] + length[b]]; start -1: not made yet. ``error`` is E|Y| of
# its noise; ``members`` how many locations feel that noise (0 for the graph calibration, where only
# the new hull counts); of[p] the hull of position p; ``first`` and ``next`` link the positions of a
# component.
Hulls = namedtuple(
    "Hulls", "vertices moments used start length area moment error members of first next"
)


@kernel
def _join(parent, p, q):
    a, b = find_root(parent, p), find_root(parent, q)
    parent[max(a, b)] = min(a, b)


@kernel
def _components(policy, domain, of):
    """of[p] = first position of p's component of G^C."""
    for p in range(of.shape[0]):
        of[p] = p
    for p in range(of.shape[0]):
        i = domain.cells[p]
        if domain.next[p] >= 0:
            _join(of, p, domain.next[p])
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            if policy.indices[e] > i and test1(domain.words, policy.indices[e]):
                _join(of, p, domain.position[policy.indices[e]])
    for p in range(of.shape[0]):
        of[p] = find_root(of, p)


@kernel
def make_hulls(policy, domain, calibration):
    """An empty pool, with the components of G^C found."""
    n = domain.cells.shape[0]
    count = 1 if calibration == GRAPH else n
    of, first, after = np.zeros(n, np.int32), np.full(count, -1, np.int32), np.full(n, -1, np.int32)
    members = np.zeros(count, np.int64)
    if calibration == COMPONENT:
        _components(policy, domain, of)
        for p in range(n - 1, -1, -1):
            members[of[p]] += 1
            after[p], first[of[p]] = first[of[p]], p
    vertices, moments, used = np.empty((64, 3), np.int64), np.empty((64, 1)), np.zeros(1, np.int64)
    start, length, area = np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.int64)
    moment, error = np.zeros(count), np.zeros(count)
    return Hulls(
        vertices, moments, used, start, length, area, moment, error, members, of, first, after
    )


@kernel
def set_hull(hulls, b, polygon, policy, strategy):
    """Append a polygon to the pool as hull b; returns the hulls, for the pool may have moved."""
    h = hulls
    vertices, moments, area, moment = with_prefixes(
        polygon, policy.dx, policy.dy, strategy == MIN_ERROR
    )
    used, n = h.used[0], polygon.shape[0]
    pool, h.used[0] = append_rows(h.vertices, used, vertices, n)
    pool_moments, _ = append_rows(h.moments, used, moments, n)
    h.start[b], h.length[b], h.area[b], h.moment[b] = used, n, area, moment
    h.error[b] = error_of(vertices, area, moment, policy.dx, policy.dy)
    return Hulls(
        pool, pool_moments, h.used, h.start, h.length, h.area, h.moment, h.error, h.members, h.of,
        h.first, h.next,
    )  # fmt: skip


@kernel
def polygon_of(hulls, b):
    """A copy of hull b's vertices."""
    return hulls.vertices[hulls.start[b] : hulls.start[b] + hulls.length[b], :2].copy()


@kernel
def _next_missing(start, of, positions, k, n):
    while k < n and start[of[positions[k]]] >= 0:
        k += 1
    return k


@kernel
def ensure_hulls(hulls, policy, domain, positions, n, strategy):
    """Make the hulls that these positions need and that are not there yet."""
    k = _next_missing(hulls.start, hulls.of, positions, 0, n)
    while k < n:
        b = hulls.of[positions[k]]
        K = np.zeros((1, 2), np.int64)
        p = hulls.first[b]
        while p >= 0:
            K = grow_by_edges(K, policy, domain, p)
            p = hulls.next[p]
        hulls = set_hull(hulls, b, K, policy, strategy)
        k = _next_missing(hulls.start, hulls.of, positions, k + 1, n)
    return hulls
