"""Repairing a policy (Algorithm 4, spec section 6): for each isolated node in turn the edge that costs least.

Both calibrations are one algorithm over *bodies*: hulls that a new edge would enlarge. The component calibration has one
for each component of G^C, made when a candidate first needs it; the graph calibration has one for all. A partner is
looked for outward in square rings on a grid, as long as a better one may be further out; elsewhere, and where rings would
cost more, at all of C.
"""

from collections import namedtuple

import numpy as np

from .bits import first_in_span, test1
from .bodies import area_with, error_of, error_with, grow, make_body, perpendicular_reach
from .exposure import (
    difference,
    domain_hull,
    grow_by_edges,
    list_disconnected,
    make_neighbourhood,
    make_view,
    mark_isolated,
    thread,
    unthread,
    with_hull,
)
from .graph import find_root
from .jit import kernel
from .rows import append_rows

MIN_AREA, NEAREST, ARBITRARY, MIN_ERROR = 0, 1, 2, 3
COMPONENT, GRAPH = 0, 1
_TIE = 1e-12  # errors closer than this, relative to the terms they are differences of, are equal
_SCAN = 16  # looking at a candidate costs as much as passing this many empty cells of a ring

# Bodies of a domain. Body b is vertices[start[b] : start[b] + length[b]]; start -1: not made yet. ``members`` is how
# many locations feel its noise
# (0 for the graph calibration, where only the new hull counts); ``first`` and ``next`` link the places of a component.
Bodies = namedtuple("Bodies", "vertices moments used start length area moment error members of first next")
Candidate = namedtuple("Candidate", "place area error size length2")
NOBODY = Candidate(-1, 0, 0.0, 0.0, 0.0)


@kernel
def _join(parent, p, q):
    a, b = find_root(parent, p), find_root(parent, q)
    parent[max(a, b)] = min(a, b)


@kernel
def _components(policy, domain, of):
    """of[p] = first place of p's component of G^C."""
    for p in range(of.shape[0]):
        of[p] = p
    for p in range(of.shape[0]):
        i = domain.cells[p]
        if domain.after[p] >= 0:
            _join(of, p, domain.after[p])
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            if policy.indices[e] > i and test1(domain.words, policy.indices[e]):
                _join(of, p, domain.place[policy.indices[e]])
    for p in range(of.shape[0]):
        of[p] = find_root(of, p)


@kernel
def _make_bodies(policy, domain, calibration):
    n = domain.cells.shape[0]
    count = 1 if calibration == GRAPH else n
    of, first, after = np.zeros(n, np.int32), np.full(count, -1, np.int32), np.full(n, -1, np.int32)
    members = np.zeros(count, np.int64)
    if calibration == COMPONENT:
        _components(policy, domain, of)
        for p in range(n - 1, -1, -1):
            members[of[p]] += 1
            after[p], first[of[p]] = first[of[p]], p
    return Bodies(
        np.empty((64, 3), np.int64), np.empty((64, 1)), np.zeros(1, np.int64),
        np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count), np.zeros(count),
        members, of, first, after,
    )  # fmt: skip


@kernel
def _set_body(bodies, b, polygon, policy, strategy):
    """Append a hull to the pool as body b; returns the bodies, for the pool may have moved."""
    vertices, moments, area, moment = make_body(polygon, policy.dx, policy.dy, strategy == MIN_ERROR)
    h, used = polygon.shape[0], bodies.used[0]
    pool, bodies.used[0] = append_rows(bodies.vertices, used, vertices, h)
    pool_moments, _ = append_rows(bodies.moments, used, moments, h)
    bodies.start[b], bodies.length[b], bodies.area[b], bodies.moment[b] = used, h, area, moment
    bodies.error[b] = error_of(vertices, area, moment, policy.dx, policy.dy)
    return Bodies(
        pool, pool_moments, bodies.used, bodies.start, bodies.length, bodies.area, bodies.moment, bodies.error,
        bodies.members, bodies.of, bodies.first, bodies.next,
    )  # fmt: skip


@kernel
def _component_hull(policy, domain, first, after):
    """Sensitivity hull of one component of G^C, its places linked from ``first`` on."""
    K = np.zeros((1, 2), np.int64)
    p = first
    while p >= 0:
        K = grow_by_edges(K, policy, domain, p)
        p = after[p]
    return K


@kernel
def _next_missing(start, of, places, k, n):
    while k < n and start[of[places[k]]] >= 0:
        k += 1
    return k


@kernel
def _ensure_bodies(bodies, policy, domain, places, n, strategy):
    """Make the bodies that these places need and that are not there yet."""
    k = _next_missing(bodies.start, bodies.of, places, 0, n)
    while k < n:
        b = bodies.of[places[k]]
        bodies = _set_body(bodies, b, _component_hull(policy, domain, bodies.first[b], bodies.next), policy, strategy)
        k = _next_missing(bodies.start, bodies.of, places, k + 1, n)
    return bodies


@kernel
def _better(new, best):
    """Lower cost, then the shorter edge, then the lower index."""
    if best.place < 0:
        return True
    if new.area != best.area:
        return new.area < best.area
    if best.error - new.error > _TIE * best.size:
        return True
    if new.error - best.error > _TIE * new.size:
        return False
    return new.length2 < best.length2 or (new.length2 == best.length2 and new.place < best.place)


@kernel
def _best_of(bodies, policy, domain, i, places, n, strategy, best):
    """The best of these places as a partner for location i, or the one that was best before. A plain loop over plain arrays."""
    cells, lattice, stretch, dx, dy = domain.cells, policy.lattice, policy.stretch, policy.dx, policy.dy
    of, start, length, members = bodies.of, bodies.start, bodies.length, bodies.members
    vertices, moments, areas, moment, errors = bodies.vertices, bodies.moments, bodies.area, bodies.moment, bodies.error
    for k in range(n):
        q = np.int64(places[k])
        x = np.int64(lattice[cells[q], 0]) - np.int64(lattice[i, 0])
        y = np.int64(lattice[cells[q], 1]) - np.int64(lattice[i, 1])
        area, error, size = 0, 0.0, 0.0
        if strategy == MIN_AREA or strategy == MIN_ERROR:
            b = of[q]
            body = vertices[start[b] : start[b] + length[b]]
            if strategy == MIN_AREA:
                area = area_with(body, areas[b], x, y) - areas[b]
            else:
                own = moments[start[b] : start[b] + length[b]]
                size = (members[b] + 1) * error_with(body, own, areas[b], moment[b], x, y, dx, dy)
                error = size - members[b] * errors[b]
        new = Candidate(q, area, error, size, np.float64(x) * x + stretch * (np.float64(y) * y))
        if _better(new, best):
            best = new
    return best


@kernel
def _consider(bodies, policy, domain, i, places, n, strategy, best):
    if strategy != NEAREST:
        bodies = _ensure_bodies(bodies, policy, domain, places, n, strategy)
    return bodies, _best_of(bodies, policy, domain, i, places, n, strategy, best)


@kernel
def _no_better_from(ring, best, bodies, policy, strategy, calibration, reach, largest_error):
    """Whether every candidate at least ``ring`` lattice steps away loses to the best so far."""
    if best.place < 0:
        return False
    near = ring * min(1.0, np.sqrt(policy.stretch)) * (1.0 - 1e-12)  # how far that is, in units of dx
    if strategy == MIN_ERROR:
        # E|Y| >= |v|: along v the noise is no narrower than that of a double triangle of half width |v|. For a component of m
        # locations (m + 1) |v| - m E is at least |v| once |v| is above E.
        return near * policy.dx > max(best.error, largest_error) * (1.0 + 1e-9)
    if strategy == MIN_AREA and calibration == GRAPH:
        return 4.0 * ring * reach - bodies.area[0] > best.area
    return best.area == 0 and near * near > best.length2


@kernel
def _search_all(bodies, policy, domain, i, strategy, found):
    n = 0
    for q in range(domain.cells.shape[0]):
        found[n] = q
        n += domain.cells[q] != i
    return _consider(bodies, policy, domain, i, found, n, strategy, NOBODY)


@kernel
def _list_ring(words, place, rows, cols, row, col, ring, found):
    """Places of the domain on a square ring of the grid; returns how many."""
    n = 0
    for r in range(max(row - ring, 0), min(row + ring, rows - 1) + 1):
        if abs(r - row) == ring:  # a whole line of the ring
            end = r * cols + min(col + ring, cols - 1) + 1
            at = first_in_span(words, r * cols + max(col - ring, 0), end)
            while at >= 0:
                found[n] = place[at]
                n += 1
                at = first_in_span(words, at + 1, end)
        else:
            for c in (col - ring, col + ring):
                if 0 <= c < cols and test1(words, r * cols + c):
                    found[n] = place[r * cols + c]
                    n += 1
    return n


@kernel
def _search_rings(bodies, policy, domain, i, strategy, calibration, reach, largest_error, found):
    """The best partner on a grid; nobody where a plain scan of C is cheaper."""
    rows, cols = policy.rows, policy.cols
    row, col = i // cols, i % cols
    best = NOBODY
    seen, budget = 0, _SCAN * domain.cells.shape[0]
    for ring in range(1, max(row, rows - 1 - row, col, cols - 1 - col) + 1):
        if _no_better_from(ring, best, bodies, policy, strategy, calibration, reach, largest_error):
            break
        if seen > budget:
            return bodies, NOBODY
        n = _list_ring(domain.words, domain.place, rows, cols, row, col, ring, found)
        seen += 2 * ring + _SCAN * n
        if n > 0:
            bodies, best = _consider(bodies, policy, domain, i, found, n, strategy, best)
    return bodies, best


@kernel
def _partner(bodies, policy, domain, i, strategy, calibration, reach, largest_error, found):
    """(bodies, place) of the partner that the strategy picks for location i."""
    if strategy == ARBITRARY:
        return bodies, np.int64(0 if domain.cells[0] != i else 1)
    if policy.rows > 0:
        bodies, best = _search_rings(bodies, policy, domain, i, strategy, calibration, reach, largest_error, found)
        if best.place >= 0:
            return bodies, best.place
    bodies, best = _search_all(bodies, policy, domain, i, strategy, found)
    return bodies, best.place


@kernel
def repair_domain(policy, domain, strategy, calibration, added, exposed):
    """Detect and repair. Writes (node, partner) to ``added`` and what cannot be protected to ``exposed``.

    Returns how many were (added, exposed, disconnected, isolated before any repair). ``domain.head`` is handed back as it was.
    """
    cells = domain.cells
    n = cells.shape[0]
    thread(policy, domain)
    alone = domain.spare
    n_alone = list_disconnected(policy, domain, alone)
    n_added = n_exposed = n_isolated = 0
    if n_alone > 0:
        for p in range(n):
            domain.place[cells[p]] = p
        bodies = _make_bodies(policy, domain, calibration)
        K = np.zeros((1, 2), np.int64)
        reach = largest_error = 0.0
        if calibration == GRAPH:
            K = domain_hull(policy, domain)
            bodies = _set_body(bodies, 0, K, policy, strategy)
            reach = perpendicular_reach(K)
        elif strategy == MIN_ERROR:  # the search's bound needs the largest of all
            bodies = _ensure_bodies(bodies, policy, domain, np.arange(n).astype(np.int32), n, strategy)
            largest_error = bodies.error.max()
        around = make_neighbourhood(policy, domain, K)
        isolated = np.ones(n_alone, np.bool_)
        if calibration == GRAPH:
            mark_isolated(policy, domain, around, K, alone[:n_alone], isolated)
        n_isolated = isolated.sum()
        joined = np.zeros(n, np.bool_)
        found = np.empty(n, np.int32)
        for k in range(n_alone):
            p = np.int64(alone[k])
            if not isolated[k] or joined[p]:  # K only grows: who was not isolated stays so
                continue
            if calibration == GRAPH and n_added > 0:
                mark_isolated(policy, domain, around, K, alone[k : k + 1], isolated[k : k + 1])
                if not isolated[k]:
                    continue
            i = np.int64(cells[p])
            if n == 1:
                exposed[0, 0] = i
                n_exposed = 1
                continue
            bodies, q = _partner(bodies, policy, domain, i, strategy, calibration, reach, largest_error, found)
            found[0] = q
            bodies = _ensure_bodies(bodies, policy, domain, found, 1, strategy)
            b = bodies.of[q]
            x, y = difference(policy, i, cells[q])
            old = bodies.vertices[bodies.start[b] : bodies.start[b] + bodies.length[b], :2].copy()
            K_new = grow(old, x, y)
            bodies = _set_body(bodies, b, K_new, policy, strategy)
            if calibration == GRAPH:
                if K_new.shape[0] != K.shape[0] or np.any(K_new != K):
                    K, reach = K_new, perpendicular_reach(K_new)
                    around = with_hull(around, policy, K)
            else:
                bodies.of[p] = b
                bodies.members[b] += 1
                largest_error = max(largest_error, bodies.error[b])
            joined[p] = joined[q] = True
            added[n_added, 0], added[n_added, 1] = i, cells[q]
            n_added += 1
    unthread(domain)
    return n_added, n_exposed, n_alone, n_isolated


@kernel
def repair_domains(policy, words, start, stop, strategy, calibration, scratch, head, place, counts):
    """``repair_domain`` for rows start..stop-1 of a matrix of bitmasks, one user or moment a row.

    ``counts[d]`` receives (|C|, disconnected, isolated, added, exposed). Returns added edges and exposed cells, end to end.
    """
    all_added, n_added = np.empty((0, 2), np.int32), 0
    all_exposed, n_exposed = np.empty((0, 1), np.int32), 0
    for d in range(start, stop):
        domain = make_view(words[d], scratch, head, place)
        n = domain.cells.shape[0]
        added, exposed = np.empty((n, 2), np.int32), np.empty((1, 1), np.int32)
        a, x, alone, isolated = repair_domain(policy, domain, strategy, calibration, added, exposed)
        counts[d, 0], counts[d, 1], counts[d, 2], counts[d, 3], counts[d, 4] = n, alone, isolated, a, x
        all_added, n_added = append_rows(all_added, n_added, added, a)
        all_exposed, n_exposed = append_rows(all_exposed, n_exposed, exposed, x)
    return all_added[:n_added].copy(), all_exposed[:n_exposed, 0].copy()
