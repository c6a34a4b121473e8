"""Repair of a policy: every isolated location is joined to another one, at the least cost in noise.

The paper's algorithm "Graph Repair with High Utility" (spec section 6). Locations are taken in
ascending order, each checked against the graph as repaired so far."""

import numpy as np

from pglp_fast._kernels.base.growing import Pool, append, contents
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.geometry.hull import contains
from pglp_fast._kernels.geometry.hull_growth import grow, perpendicular_reach

from .component_hulls import ensure_hulls, make_hulls, polygon_of, set_hull
from .domain_hull import domain_hull
from .domain_view import COMPONENT, GRAPH, MIN_ERROR, NONE, link_cliques, make_view, unlink_cliques
from .isolated_nodes import list_disconnected
from .neighbourhood import make_neighbourhood, mark_isolated, no_neighbourhood, with_hull
from .partner import Bound, find_partner, make_room


@kernel
def _starting_hulls(policy, domain, strategy, calibration):
    """(hulls, K(G^C), bound of the search) before any edge is added."""
    hulls = make_hulls(policy, domain, calibration)
    K = np.zeros((1, 2), np.int64)
    reach = largest_error = 0.0
    if calibration == GRAPH:
        K = domain_hull(policy, domain)
        hulls = set_hull(hulls, 0, K, policy, strategy)
        reach = perpendicular_reach(K)
    elif strategy == MIN_ERROR:  # the search's bound needs the largest of all
        n = domain.cells.shape[0]
        hulls = ensure_hulls(hulls, policy, domain, np.arange(n).astype(np.int32), n, strategy)
        largest_error = hulls.error.max()
    return hulls, K, Bound(reach, largest_error)


@kernel
def _add_edges(
    policy, domain, strategy, calibration, hulls, K, bound, around, alone, isolated, added
):
    """Join the isolated ones of ``alone`` in turn; returns how many edges were added."""
    cells, joined = domain.cells, np.zeros(domain.cells.shape[0], np.bool_)
    room, one = make_room(hulls, policy, domain, calibration), np.empty(1, np.int32)
    n = 0
    for k in range(alone.shape[0]):
        p = np.int64(alone[k])
        if not isolated[k] or joined[p]:  # K only grows: what was not isolated stays so
            continue
        if calibration == GRAPH and n > 0:
            mark_isolated(policy, domain, around, K, alone[k : k + 1], isolated[k : k + 1])
            if not isolated[k]:
                continue
        i = np.int64(cells[p])
        hulls, q = find_partner(hulls, policy, domain, i, strategy, calibration, bound, room)
        one[0] = q
        hulls = ensure_hulls(hulls, policy, domain, one, 1, strategy)
        b = hulls.of[q]
        x, y = difference(policy.lattice, i, cells[q])
        polygon = polygon_of(hulls, b)
        grown = not contains(polygon, x, y)
        if grown:
            polygon = grow(polygon, x, y)
            hulls = set_hull(hulls, b, polygon, policy, strategy)
        if calibration == COMPONENT:
            hulls.of[p] = b
            hulls.members[b] += 1
            bound = Bound(bound.reach, max(bound.largest_error, hulls.error[b]))
        elif grown:
            K, bound = polygon, Bound(perpendicular_reach(polygon), bound.largest_error)
            around = with_hull(around, policy, K)
        joined[p] = joined[q] = True
        added[n, 0], added[n, 1] = i, cells[q]
        n += 1
    return n


@kernel
def repair_domain(policy, domain, strategy, calibration, added, exposed):
    """Detect and repair: (location, partner) to ``added``, what cannot be protected to ``exposed``.

    Returns how many are (added, exposed, disconnected, isolated before any repair).
    ``domain.head`` is handed back as it was."""
    cells = domain.cells
    link_cliques(policy, domain)
    n_alone = list_disconnected(policy, domain, domain.spare)
    n_added = n_exposed = n_isolated = 0
    if n_alone > 0:
        for p in range(cells.shape[0]):
            domain.position[cells[p]] = p
        alone, isolated = domain.spare[:n_alone], np.ones(n_alone, np.bool_)
        hulls, K, bound = _starting_hulls(policy, domain, strategy, calibration)
        around = no_neighbourhood()
        if calibration == GRAPH:
            around = make_neighbourhood(policy, domain, K)
            mark_isolated(policy, domain, around, K, alone, isolated)
        n_isolated = isolated.sum()
        if cells.shape[0] > 1 and strategy != NONE:
            n_added = _add_edges(
                policy, domain, strategy, calibration, hulls, K, bound, around, alone, isolated,
                added,
            )  # fmt: skip
        else:  # the sole location of a domain, which nothing can hide; or nobody is to be hidden
            for k in range(n_alone):
                if isolated[k]:
                    exposed[n_exposed] = cells[alone[k]]
                    n_exposed += 1
    unlink_cliques(domain)
    return n_added, n_exposed, n_alone, n_isolated


@kernel
def repair_domains(
    policy, words, start, stop, strategy, calibration, workspace, head, position, counts
):
    """``repair_domain`` for rows start..stop-1 of a matrix of bitmasks, one user or moment a row.

    ``counts[d]`` receives (|C|, disconnected, isolated, added, exposed). Returns added edges and
    exposed cells, end to end."""
    all_added, all_exposed = Pool(np.empty(64, np.int32), 0), Pool(np.empty(64, np.int32), 0)
    for d in range(start, stop):
        domain = make_view(words[d], workspace, head, position)
        n = domain.cells.shape[0]
        added, exposed = np.empty((n, 2), np.int32), np.empty(n, np.int32)
        a, x, alone, isolated = repair_domain(policy, domain, strategy, calibration, added, exposed)
        counts[d, 0], counts[d, 1], counts[d, 2] = n, alone, isolated
        counts[d, 3], counts[d, 4] = a, x
        all_added = append(all_added, added[:a].reshape(-1))
        all_exposed = append(all_exposed, exposed[:x])
    return contents(all_added).reshape(-1, 2), contents(all_exposed)
