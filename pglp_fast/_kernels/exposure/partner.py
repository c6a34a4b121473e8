"""The partner of an isolated location: the one whose edge costs least (spec section 6).

On a grid candidates are looked for outward in square rings, as long as a better one may be further
out; elsewhere, and where rings would cost more, all of C is looked at. Where an edge that adds no
area is cheapest, the nearest ones are looked at first: most of them lie within the hull of a
component beside, and then no other hull is ever made."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import first_in_span, test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.geometry.hull_growth import area_with, error_with

from .component_hulls import ensure_hulls
from .domain_view import ARBITRARY, COMPONENT, GRAPH, MIN_AREA, MIN_ERROR, NEAREST

_TIE = 1e-12  # errors closer than this, relative to the terms they are differences of, are equal
_SCAN = 16  # looking at a candidate costs as much as passing this many empty cells of a ring
_NEAREST = 16  # candidates that are looked at one by one, the nearest first

# position, increase of the area or of the error, the size of the terms that the error is the
# difference of, squared length of the edge
Candidate = namedtuple("Candidate", "position area error size length2")
NONE = Candidate(-1, 0, 0.0, 0.0, 0.0)
# what far candidates cost at least: ``perpendicular_reach`` of K (graph calibration), and the
# largest error of all hulls (min-error)
Bound = namedtuple("Bound", "reach largest_error")
# as long as C: room for positions and for squared lengths, and where its locations are, in lattice
# units; positions that are a component by themselves, before any edge is added
Room = namedtuple("Room", "found length2 x y alone")


@kernel
def make_room(hulls, policy, domain, calibration):
    """Room to look for partners in a domain."""
    cells, lattice = domain.cells, policy.lattice
    n, m = cells.shape[0], 0
    found, alone, length2, x, y = (
        np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip
    for p in range(n):
        x[p], y[p] = lattice[cells[p], 0], lattice[cells[p], 1]
        alone[m] = p
        m += calibration == COMPONENT and hulls.members[hulls.of[p]] == 1
    return Room(found, length2, x, y, alone[:m])


@kernel
def _better(new, best):
    """Lower cost, then the shorter edge, then the lower index."""
    if best.position < 0:
        return True
    if new.area != best.area:
        return new.area < best.area
    if best.error - new.error > _TIE * best.size:
        return True
    if new.error - best.error > _TIE * new.size:
        return False
    if new.length2 != best.length2:
        return new.length2 < best.length2
    return new.position < best.position


@kernel
def _best_of(hulls, policy, domain, i, positions, n, strategy, best):
    """The best of these positions as a partner for location i, or the one that was best before.

    A plain loop over plain arrays."""
    cells, lattice, stretch = domain.cells, policy.lattice, policy.stretch
    dx, dy = policy.dx, policy.dy
    of, start, length, members = hulls.of, hulls.start, hulls.length, hulls.members
    vertices, moments, areas = hulls.vertices, hulls.moments, hulls.area
    moment, errors = hulls.moment, hulls.error
    for k in range(n):
        q = np.int64(positions[k])
        x, y = difference(lattice, i, cells[q])
        area, error, size = 0, 0.0, 0.0
        if strategy == MIN_AREA or strategy == MIN_ERROR:
            b = of[q]
            hull = vertices[start[b] : start[b] + length[b]]
            if strategy == MIN_AREA:
                area = area_with(hull, areas[b], x, y) - areas[b]
            else:
                own = moments[start[b] : start[b] + length[b]]
                size = (members[b] + 1) * error_with(hull, own, areas[b], moment[b], x, y, dx, dy)
                error = size - members[b] * errors[b]
        new = Candidate(q, area, error, size, np.float64(x) * x + stretch * (np.float64(y) * y))
        if _better(new, best):
            best = new
    return best


@kernel
def _consider(hulls, policy, domain, i, positions, n, strategy, best):
    if strategy != NEAREST:
        hulls = ensure_hulls(hulls, policy, domain, positions, n, strategy)
    return hulls, _best_of(hulls, policy, domain, i, positions, n, strategy, best)


@kernel
def _no_better_from(ring, best, hulls, policy, strategy, calibration, bound):
    """Whether every candidate at least ``ring`` lattice steps away loses to the best so far."""
    if best.position < 0:
        return False
    # how far that is, in units of dx
    near = ring * min(1.0, np.sqrt(policy.stretch)) * (1.0 - 1e-12)
    if strategy == MIN_ERROR:
        # E|Y| >= |v|: along v the noise is no narrower than that of a double triangle of half width
        # |v|. For a component of m locations (m + 1) |v| - m E is at least |v| once |v| exceeds E.
        return near * policy.dx > max(best.error, bound.largest_error) * (1.0 + 1e-9)
    if strategy == MIN_AREA and calibration == GRAPH:
        return 4.0 * ring * bound.reach - hulls.area[0] > best.area
    return best.area == 0 and near * near > best.length2


@kernel
def _measure(room, own, stretch):
    """The squared length of the edge from position ``own`` to each position."""
    x, y, length2 = room.x, room.y, room.length2
    for q in range(length2.shape[0]):
        dx, dy = x[q] - x[own], y[q] - y[own]
        length2[q] = dx * dx + stretch * (dy * dy)


@kernel
def _nearest_alone(hulls, room, own):
    """Squared length of the shortest edge to a location that is a component by itself; infinite
    where there is none. Such an edge adds no area: nothing that is longer is better."""
    of, members, length2 = hulls.of, hulls.members, room.length2
    least = np.inf
    for q in room.alone:
        if members[of[q]] == 1 and q != own:
            least = min(least, length2[q])
    return least


@kernel
def _list_within(room, own, limit):
    """The positions whose edge is no longer than this, ascending; returns how many."""
    found, length2 = room.found, room.length2
    n = 0
    for q in range(length2.shape[0]):
        found[n] = q
        n += length2[q] <= limit and q != own
    return n


@kernel
def _take_nearest(room, n):
    """The nearest of the n positions found, of equals the first one, moved to their end."""
    found, length2 = room.found, room.length2
    at = 0
    for k in range(1, n):
        if length2[found[k]] < length2[found[at]]:
            at = k
    q = found[at]
    for k in range(at, n - 1):
        found[k] = found[k + 1]
    found[n - 1] = q


@kernel
def _search_all(hulls, policy, domain, i, strategy, calibration, room):
    """The best of all of C. Hulls are made and looked at where they may matter only."""
    own, best, limit = np.int64(domain.position[i]), NONE, np.inf
    _measure(room, own, policy.stretch)
    least_area = strategy == MIN_AREA and calibration == COMPONENT
    if least_area:
        limit = _nearest_alone(hulls, room, own)
    n, first = _list_within(room, own, limit), 0
    while least_area and n > 0 and first < _NEAREST:
        _take_nearest(room, n)
        n, first = n - 1, first + 1
        nearest = room.found[n : n + 1]
        hulls, best = _consider(hulls, policy, domain, i, nearest, 1, strategy, best)
        if best.area == 0:  # all others are longer, and add no less
            return hulls, best
    return _consider(hulls, policy, domain, i, room.found, n, strategy, best)


@kernel
def _list_ring(domain, rows, cols, row, col, ring, found):
    """Positions of the domain on a square ring of the grid; returns how many."""
    words, position = domain.words, domain.position
    n = 0
    for r in range(max(row - ring, 0), min(row + ring, rows - 1) + 1):
        if abs(r - row) == ring:  # a whole line of the ring
            end = r * cols + min(col + ring, cols - 1) + 1
            at = first_in_span(words, r * cols + max(col - ring, 0), end)
            while at >= 0:
                found[n] = position[at]
                n += 1
                at = first_in_span(words, at + 1, end)
        else:
            for c in (col - ring, col + ring):
                if 0 <= c < cols and test1(words, r * cols + c):
                    found[n] = position[r * cols + c]
                    n += 1
    return n


@kernel
def _search_rings(hulls, policy, domain, i, strategy, calibration, bound, found):
    """The best partner on a grid; none where a plain scan of C is cheaper."""
    rows, cols = policy.rows, policy.cols
    row, col = i // cols, i % cols
    best = NONE
    seen, budget = 0, _SCAN * domain.cells.shape[0]
    for ring in range(1, max(row, rows - 1 - row, col, cols - 1 - col) + 1):
        if _no_better_from(ring, best, hulls, policy, strategy, calibration, bound):
            break
        if seen > budget:
            return hulls, NONE
        n = _list_ring(domain, rows, cols, row, col, ring, found)
        seen += 2 * ring + _SCAN * n
        if n > 0:
            hulls, best = _consider(hulls, policy, domain, i, found, n, strategy, best)
    return hulls, best


@kernel
def find_partner(hulls, policy, domain, i, strategy, calibration, bound, room):
    """(hulls, position) of the partner that the strategy picks for location i."""
    if strategy == ARBITRARY:
        return hulls, np.int64(0 if domain.cells[0] != i else 1)
    if policy.rows > 0:
        hulls, best = _search_rings(
            hulls, policy, domain, i, strategy, calibration, bound, room.found
        )
        if best.position >= 0:
            return hulls, best.position
    hulls, best = _search_all(hulls, policy, domain, i, strategy, calibration, room)
    return hulls, best.position
