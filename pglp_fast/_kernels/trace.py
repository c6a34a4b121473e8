"""Algorithm 5, one step of many users (spec sections 6 to 9).

Users are independent and share policy and model. A user's belief is a sparse distribution, cells and logarithms: either
a prior that several users may
share (t = 1), or the posterior of the last step, which this step first moves on. Everything is O(what the user's domain
holds); the scratch space is as large as the map but is allocated once and touched only where users are.
"""

from collections import namedtuple

import numpy as np

from .bits import first_in_span, last_in_span, set1, test1
from .bodies import grow, grow_by_clique
from .chacha import CHUNK, GEOMETRIC, LANES, draw
from .emission import log_column
from .exposure import View, clique_points, domain_hull, thread, unthread
from .hmm import clear_cells, forward, most_likely, normalise, reach
from .hull import cross
from .jit import kernel
from .knorm import cone_weights, diamond
from .nearest import round_down
from .patterns import MAX_CELLS, describe, recall, remember
from .repair import COMPONENT, repair_domain
from .rows import append_rows
from .sampling import noise
from .weights import build_alias, column_bits

PPIM, PLM = 0, 1
NOT_STARTED, OWN = -1, -2  # kinds of belief and of ledger; a number >= 0 is the row of a shared prior

# beliefs: of user u the shared prior ``kind[u]``, or cells[start[u]:start[u+1]] where kind is OWN; the same for what
# the ledger keeps
Ragged = namedtuple("Ragged", "kind start cells values")
Settings = namedtuple("Settings", "epsilon mechanism calibration strategy delta exact")
Scratch = namedtuple("Scratch", "words head place sums flagged patterns key")
# a domain ready to be released from: the repaired graph's edges threaded through it, the hull of all (graph calibration), and
# (disconnected, isolated, added, exposed)
Local = namedtuple("Local", "domain logs added first after K counts")


@kernel
def nearest_in_domain(policy, cells, words, x, y):
    """The location of a domain nearest to (x, y), lattice units, ties to the lower index.

    On a grid rows are searched outward, each by its nearest bits to the left and to the right; elsewhere all cells are looked at.
    """
    lattice, stretch, rows, cols = policy.lattice, policy.stretch, policy.rows, policy.cols
    best, best_d = np.int64(-1), np.inf
    if rows == 0:
        for cell in cells:
            dx, dy = lattice[cell, 0] - x, lattice[cell, 1] - y
            d = dx * dx + stretch * dy * dy
            if d < best_d * (1.0 - 1e-13) or (d <= best_d * (1.0 + 1e-13) and cell < best):
                best, best_d = np.int64(cell), min(d, best_d)
        return best
    middle = np.int64(min(max(round_down(y), 0.0), rows - 1.0))
    col = np.int64(min(max(round_down(x), 0.0), cols - 1.0))
    for step in range(rows):
        if middle - step < 0 and middle + step >= rows:
            break
        off = abs(y - middle)  # rows further out are at least this far: past the map's edge all of them lie on one side
        least = max(step - off, 0.0) if 0.0 <= y <= rows - 1.0 else step + off
        if stretch * least * least > best_d * (1.0 + 1e-13):
            break
        for side in range(2 if step > 0 else 1):
            row = middle - step if side == 0 else middle + step
            if row < 0 or row >= rows:
                continue
            left = last_in_span(words, row * cols, row * cols + col + 1)
            right = first_in_span(words, row * cols + col + 1, (row + 1) * cols)
            for cell in (left, right):
                if cell >= 0:
                    dx, dy = cell - row * cols - x, row - y
                    d = dx * dx + stretch * dy * dy
                    if d < best_d * (1.0 - 1e-13) or (d <= best_d * (1.0 + 1e-13) and cell < best):
                        best, best_d = np.int64(cell), min(d, best_d)
    return best


@kernel
def _nearest_member(lattice, members, stretch, x, y):
    """Place in ``members``, ascending locations, of the one nearest to (x, y); ties to the lower index."""
    best, best_d = 0, np.inf
    for k in range(members.shape[0]):
        dx, dy = lattice[members[k], 0] - x, lattice[members[k], 1] - y
        d = dx * dx + stretch * dy * dy
        if d < best_d * (1.0 - 1e-13):
            best, best_d = k, d
    return best


@kernel
def _link_added(domain, added, n_added, first, after):
    """Thread the added edges through the domain's places: edge 2e is listed at its first end, 2e + 1 at its second."""
    for p in range(first.shape[0]):
        first[p] = -1
    for e in range(n_added):
        for end in range(2):
            p = domain.place[added[e, end]]
            after[2 * e + end] = first[p]
            first[p] = 2 * e + end


@kernel
def _component_of(policy, domain, added, first, after, p):
    """Places of p's component in the repaired graph, ascending. A breadth-first walk, O(component)."""
    seen = domain.spare  # 0, and 1 where reached; left all 0
    queue = np.empty(64, np.int32)
    queue[0] = p
    seen[p] = 1
    head, tail = 0, 1
    while head < tail:
        q = queue[head]
        head += 1
        i = domain.cells[q]
        c = domain.own[q]
        if c >= 0:
            r = domain.head[c]
            while r >= 0:
                if seen[r] == 0:
                    seen[r] = 1
                    queue, tail = _push(queue, tail, r)
                r = domain.after[r]
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if test1(domain.words, j):
                r = domain.place[j]
                if seen[r] == 0:
                    seen[r] = 1
                    queue, tail = _push(queue, tail, r)
        e = first[q]
        while e >= 0:
            r = domain.place[added[e >> 1, 1 - (e & 1)]]
            if seen[r] == 0:
                seen[r] = 1
                queue, tail = _push(queue, tail, r)
            e = after[e]
    for k in range(tail):
        seen[queue[k]] = 0
    return np.sort(queue[:tail])


@kernel
def _push(queue, tail, value):
    if tail == queue.shape[0]:
        larger = np.empty(2 * tail, np.int32)
        for k in range(tail):
            larger[k] = queue[k]
        queue = larger
    queue[tail] = value
    return queue, tail + 1


@kernel
def _component_hull(policy, domain, added, first, after, places):
    """Sensitivity hull of a component of the repaired graph."""
    lattice, cells = policy.lattice, domain.cells
    K = np.zeros((1, 2), np.int64)
    for p in places:
        i = cells[p]
        c = domain.own[p]
        if c >= 0 and domain.head[c] == p and domain.after[p] >= 0:
            K = grow_by_clique(K, clique_points(lattice, cells, domain.after, p)[0])
        for e in range(policy.indptr[i], policy.indptr[i + 1]):
            j = policy.indices[e]
            if j > i and test1(domain.words, j):
                K = grow(K, np.int64(lattice[j, 0]) - np.int64(lattice[i, 0]), np.int64(lattice[j, 1]) - np.int64(lattice[i, 1]))
        e = first[p]
        while e >= 0:
            if e & 1 == 0:
                j = added[e >> 1, 1]
                x = np.int64(lattice[j, 0]) - np.int64(lattice[i, 0])
                K = grow(K, x, np.int64(lattice[j, 1]) - np.int64(lattice[i, 1]))
            e = after[e]
    return K


@kernel
def _graph_hull(policy, domain, added, n_added):
    """Sensitivity hull of the whole repaired graph."""
    K = domain_hull(policy, domain)
    lattice = policy.lattice
    for e in range(n_added):
        i, j = added[e, 0], added[e, 1]
        K = grow(K, np.int64(lattice[j, 0]) - np.int64(lattice[i, 0]), np.int64(lattice[j, 1]) - np.int64(lattice[i, 1]))
    return K


@kernel
def _draw_noise(words, body, epsilon):
    h = body.shape[0]
    bits = column_bits(h)
    cut, alias = np.empty(1 << bits, np.uint64), np.empty(1 << bits, np.int32)
    if h > 2:
        weights = np.empty(h, np.uint64)
        cone_weights(body, weights)
        build_alias(weights, bits, cut, alias)
    return noise(words, body, cut, alias, 0, bits, epsilon)


@kernel
def _gauge_forms(body):
    """Linear forms with ||x||_K = max |form(x)|: one for each pair of opposite edges of a symmetric body."""
    half = body.shape[0] >> 1
    forms = np.empty((half, 2))
    for i in range(half):
        ax, ay, bx, by = body[i, 0], body[i, 1], body[i + 1, 0], body[i + 1, 1]
        unit = cross(ax, ay, bx, by)
        forms[i, 0], forms[i, 1] = (by - ay) / unit, (ax - bx) / unit
    return forms


@kernel
def _log_likelihood(policy, members, z, body, epsilon, exact, out):
    """out[k] = ln Pr(members[z] | members[k]), up to a constant where it is not exact: the density at the released location.

    For a segment or a point the density would call possible what is not and impossible what is: there it is always exact.
    """
    lattice = policy.lattice
    k = members.shape[0]
    if exact or body.shape[0] < 3:
        sites = np.empty((k, 2), np.int64)
        for i in range(k):
            sites[i, 0] = np.int64(lattice[members[i], 0]) - np.int64(lattice[members[0], 0])
            sites[i, 1] = np.int64(lattice[members[i], 1]) - np.int64(lattice[members[0], 1])
        log_column(sites, policy.stretch, body, epsilon, np.arange(k), z, np.empty(k, np.int64), out)
        return
    x, y = np.float64(lattice[members[z], 0]), np.float64(lattice[members[z], 1])
    forms = _gauge_forms(body)
    for i in range(k):
        dx, dy = x - lattice[members[i], 0], y - lattice[members[i], 1]
        gauge = 0.0
        for e in range(forms.shape[0]):
            gauge = max(gauge, abs(forms[e, 0] * dx + forms[e, 1] * dy))
        out[i] = -epsilon * gauge


@kernel
def _before(chain, scratch, beliefs, priors, u):
    """p_t^- of user u, as cells and logarithms; ``scratch.words`` receives the cells."""
    kind = beliefs.kind[u]
    if kind >= 0:
        first, last = priors.start[kind], priors.start[kind + 1]
        for c in priors.cells[first:last]:
            set1(scratch.words, c)
        return priors.cells[first:last], priors.values[first:last]
    cells, logs = beliefs.cells[beliefs.start[u] : beliefs.start[u + 1]], beliefs.values[beliefs.start[u] : beliefs.start[u + 1]]
    room = min(reach(chain, cells), scratch.place.shape[0])
    support, moved = np.empty(room, np.int32), np.empty(room)
    n = forward(chain, cells, logs, scratch.words, scratch.sums, scratch.flagged, support, moved)
    return support[:n], moved[:n]


@kernel
def _repair(policy, settings, scratch, domain):
    """(added edges, counts) of a domain, which is left threaded; from memory where its pattern was met before."""
    n = domain.cells.shape[0]
    added, exposed = np.empty((n, 2), np.int32), np.empty((1, 1), np.int32)
    counts = np.zeros(4, np.int64)
    slot = -1
    if n <= MAX_CELLS:
        thread(policy, domain)
        slot = describe(policy, domain, scratch.key)
        if slot >= 0 and recall(scratch.patterns, slot, scratch.key, n, domain.cells, added, counts):
            return added, counts
        unthread(domain)
    counts[2], counts[3], counts[0], counts[1] = repair_domain(
        policy, domain, settings.strategy, settings.calibration, added, exposed
    )
    thread(policy, domain)
    if slot >= 0:
        remember(scratch.patterns, slot, scratch.key, n, domain.place, added, counts)
    return added, counts


@kernel
def _prepare(policy, settings, scratch, cells, logs):
    """Detect, repair and thread the domain of a belief, which ``scratch.words`` already holds; delta cuts it first."""
    if settings.delta > 0.0:
        kept = most_likely(logs, settings.delta)
        clear_cells(scratch.words, cells, cells.shape[0])
        cells, logs = cells[kept], logs[kept]
        for cell in cells:
            set1(scratch.words, cell)
    n = cells.shape[0]
    own, linked, spare = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    view = View(cells, scratch.words, own, linked, spare, scratch.head, scratch.place)
    for p in range(n):
        scratch.place[cells[p]] = p
    added, counts = _repair(policy, settings, scratch, view)
    n_added = counts[2]
    for p in range(n):
        spare[p] = 0
    first, after = np.empty(n, np.int32), np.empty(2 * n_added, np.int32)
    _link_added(view, added, n_added, first, after)
    K = np.zeros((1, 2), np.int64)
    if settings.calibration != COMPONENT:
        K = _graph_hull(policy, view, added, n_added)
    return Local(view, logs, added[:n_added], first, after, K, counts)


@kernel
def _discard(scratch, local):
    """Leave the scratch space as it was."""
    unthread(local.domain)
    clear_cells(scratch.words, local.domain.cells, local.domain.cells.shape[0])


@kernel
def _release(policy, settings, local, s, words):
    """Release from location s of the domain: (released cell, cells of the new belief, their logarithms)."""
    view, lattice = local.domain, policy.lattice
    if settings.calibration == COMPONENT:
        places = _component_of(policy, view, local.added, local.first, local.after, view.place[s])
        K = _component_hull(policy, view, local.added, local.first, local.after, places)
        members, logs = view.cells[places], local.logs[places]
    else:
        K, members, logs = local.K, view.cells, local.logs.copy()
    body = K.astype(np.float64) if settings.mechanism == PPIM else diamond(K, policy.dx, policy.dy)
    z = np.int64(s)
    if body.shape[0] > 1:
        dx, dy = _draw_noise(words, body, settings.epsilon)
        x, y = lattice[s, 0] + dx, lattice[s, 1] + dy
        if settings.calibration == COMPONENT:
            z = np.int64(members[_nearest_member(lattice, members, policy.stretch, x, y)])
        else:
            z = nearest_in_domain(policy, members, view.words, x, y)
    likelihood = np.empty(members.shape[0])
    at = np.searchsorted(members, np.int32(z))
    _log_likelihood(policy, members, at, body, settings.epsilon, settings.exact, likelihood)
    possible = 0
    for k in range(members.shape[0]):
        possible += likelihood[k] > -np.inf
    cells, new = np.empty(possible, np.int32), np.empty(possible)
    n = 0
    for k in range(members.shape[0]):
        if likelihood[k] > -np.inf:
            cells[n], new[n] = members[k], logs[k] + likelihood[k]
            n += 1
    normalise(new)
    return z, cells, new


@kernel
def _was_added(local, i, j):
    """Whether edge (i, j) is among those that the repair added."""
    if not test1(local.domain.words, i):
        return False
    e = local.first[local.domain.place[i]]
    while e >= 0:
        if local.added[e >> 1, 1 - (e & 1)] == j:
            return True
        e = local.after[e]
    return False


@kernel
def _keep_cells(cells, before):
    """Cells of this domain that were in every domain before: a merge, or a search for each where that is shorter."""
    kept = np.empty(cells.shape[0], np.int32)
    n = at = 0
    search = before.shape[0] > 32 * cells.shape[0]
    for cell in cells:
        if search:
            at = np.searchsorted(before, cell)
        while at < before.shape[0] and before[at] < cell:
            at += 1
        kept[n] = cell
        n += at < before.shape[0] and before[at] == cell
    return kept[:n]


@kernel
def step_users(
    policy, chain, settings, scratch, key, ids, times, cells, beliefs, priors, kept, edges, start, stop,
    released, counts, surrogate, exposed, new_kind, new_length, kept_kind, kept_length, edge_length,
):  # fmt: skip
    """One step of users start..stop-1. ``cells``: true locations, -1 for missing.

    Returns the new beliefs, ledger cells and edges, end to end.
    """
    counters, lanes = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words = np.empty((CHUNK, 4), np.uint64)
    pool_cells, pool_logs, used = np.empty((1024, 1), np.int32), np.empty((1024, 1)), 0
    pool_kept, used_kept = np.empty((1024, 1), np.int32), 0
    pool_edges, used_edges = np.empty((64, 2), np.int32), 0
    empty = np.empty(0, np.int32)
    local = _prepare(policy, settings, scratch, empty, np.empty(0))
    shared = NOT_STARTED  # the prior that ``local`` is of
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        draw(key, ids, times, begin, end, 2, GEOMETRIC, counters, lanes, words)
        for u in range(begin, end):
            kind, cell = beliefs.kind[u], cells[u]
            released[u] = -1
            counts[u] = 0
            surrogate[u] = exposed[u] = False
            new_kind[u], new_length[u] = kind, 0
            own_kept = kept.cells[kept.start[u] : kept.start[u + 1]]
            own_edges = edges.cells[edges.start[u] : edges.start[u + 1]]
            kept_kind[u], kept_length[u], edge_length[u] = kept.kind[u], own_kept.shape[0], own_edges.shape[0]
            if kind >= 0 and cell < 0:
                continue  # not started: the prior is that of the first observation
            # -- what the adversary thinks before this release
            if kind < 0 or kind != shared:
                _discard(scratch, local)
                shared = kind
                support, logs = _before(chain, scratch, beliefs, priors, u)
                if cell < 0:  # missing: the prior moves on, nothing is released
                    new_length[u] = support.shape[0]
                    pool_cells, _ = append_rows(pool_cells, used, support.reshape(-1, 1), support.shape[0])
                    pool_logs, used = append_rows(pool_logs, used, logs.reshape(-1, 1), support.shape[0])
                    pool_kept, used_kept = append_rows(pool_kept, used_kept, own_kept.reshape(-1, 1), own_kept.shape[0])
                    pool_edges, used_edges = append_rows(pool_edges, used_edges, own_edges, own_edges.shape[0])
                    clear_cells(scratch.words, support, support.shape[0])
                    local = _prepare(policy, settings, scratch, empty, np.empty(0))
                    continue
                local = _prepare(policy, settings, scratch, support, logs)
            # -- release
            view = local.domain
            counts[u, 0] = view.cells.shape[0]
            for k in range(3):
                counts[u, k + 1] = local.counts[k]
            s = np.int64(cell)
            if not test1(view.words, s):
                surrogate[u] = True
                x, y = np.float64(policy.lattice[s, 0]), np.float64(policy.lattice[s, 1])
                s = nearest_in_domain(policy, view.cells, view.words, x, y)
            exposed[u] = local.counts[3] > 0
            z, new_cells, new_logs = _release(policy, settings, local, s, words[u - begin])
            released[u] = z
            new_kind[u], new_length[u] = OWN, new_cells.shape[0]
            pool_cells, _ = append_rows(pool_cells, used, new_cells.reshape(-1, 1), new_cells.shape[0])
            pool_logs, used = append_rows(pool_logs, used, new_logs.reshape(-1, 1), new_logs.shape[0])
            # -- the ledger: cells in every domain so far, repaired edges in every repair so far
            first_release = kept.kind[u] == NOT_STARTED
            if first_release and kind >= 0 and settings.delta == 0.0:
                kept_kind[u], kept_length[u] = kind, 0
            else:
                still = view.cells
                if kept.kind[u] >= 0:
                    row = kept.kind[u]
                    still = _keep_cells(view.cells, priors.cells[priors.start[row] : priors.start[row + 1]])
                elif not first_release:
                    still = _keep_cells(view.cells, own_kept)
                kept_kind[u], kept_length[u] = OWN, still.shape[0]
                pool_kept, used_kept = append_rows(pool_kept, used_kept, still.reshape(-1, 1), still.shape[0])
            n = 0
            if first_release:
                n = local.added.shape[0]
                pool_edges, used_edges = append_rows(pool_edges, used_edges, local.added, n)
            else:
                for e in range(own_edges.shape[0]):
                    if _was_added(local, own_edges[e, 0], own_edges[e, 1]):
                        pool_edges, used_edges = append_rows(pool_edges, used_edges, own_edges[e : e + 1], 1)
                        n += 1
            edge_length[u] = n
    _discard(scratch, local)
    belief_cells, belief_logs = pool_cells[:used, 0].copy(), pool_logs[:used, 0].copy()
    return belief_cells, belief_logs, pool_kept[:used_kept, 0].copy(), pool_edges[:used_edges].copy()


@kernel
def look(policy, chain, settings, scratch, beliefs, priors, u):
    """(cells of C_t, added edges) of one user, made again from the belief before the step."""
    support, logs = _before(chain, scratch, beliefs, priors, u)
    local = _prepare(policy, settings, scratch, support, logs)
    cells, added = local.domain.cells.copy(), local.added.copy()
    _discard(scratch, local)
    return cells, added
