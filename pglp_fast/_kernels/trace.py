"""Algorithm 5, one step of many users (spec sections 6 to 9).

Users are independent and share policy and model. A user's belief is a sparse distribution, cells and logarithms: either a
prior that several users may share (t = 1), or the posterior of the last step, which this step first moves on. Everything
is O(what the user's domain holds); the scratch space is as large as the map but is allocated once and touched only where
users are.
"""

from collections import namedtuple

import numpy as np

from .bits import set1, test1
from .chacha import CHUNK, GEOMETRIC, LANES, draw
from .emission import log_column
from .exposure import difference
from .hmm import clear_cells, forward, normalise
from .hull import cross
from .jit import kernel
from .knorm import cone_weights, diamond
from .local import component_hull, component_of, discard, prepare, was_added
from .repair import COMPONENT
from .rows import append_rows
from .sampling import noise
from .snap import nearest_in_domain, nearest_member
from .weights import build_alias, column_bits

PPIM, PLM = 0, 1
NOT_STARTED, OWN = -1, -2  # kinds of belief and of ledger; a number >= 0 is the row of a shared prior

# beliefs: of user u the shared prior ``kind[u]``, or cells[start[u]:start[u+1]] where kind is OWN; the same for what
# the ledger keeps
Ragged = namedtuple("Ragged", "kind start cells values")


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
def _likelihood_along(policy, members, s, z, body, epsilon, out):
    """Noise along a line met a tie that the sampler and the exact spans broke differently: what was released is possible.

    Every location on the line of s gets the density at z's foot on it, up to a constant; that keeps their ratios within e^eps.
    """
    wx, wy = body[1, 0], body[1, 1]
    zx, zy = difference(policy, s, z)
    square = wx * wx + policy.stretch * wy * wy
    foot = (zx * wx + policy.stretch * zy * wy) / square
    for k in range(members.shape[0]):
        x, y = difference(policy, s, members[k])
        if x * wy == y * wx:
            out[k] = -epsilon * abs(foot - (x * wx + policy.stretch * y * wy) / square)


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
    support, moved = scratch.ints[0], scratch.floats[0]
    n = forward(chain, cells, logs, scratch.words, scratch.sums, scratch.flagged, scratch.floats[1], support, moved)
    return support[:n], moved[:n]


@kernel
def _release(policy, settings, scratch, local, s, words):
    """Release from location s of the domain: (released cell, cells of the new belief, their logarithms)."""
    view = local.domain
    if settings.calibration == COMPONENT:
        places = component_of(policy, local, view.place[s])
        K = component_hull(policy, local, places)
        members, logs = view.cells[places], local.logs[places]
    else:
        K, members, logs = local.K, view.cells, local.logs
    body = K.astype(np.float64) if settings.mechanism == PPIM else diamond(K, policy.dx, policy.dy)
    z = np.int64(s)
    if body.shape[0] > 1:
        dx, dy = _draw_noise(words, body, settings.epsilon)
        if settings.calibration == COMPONENT:
            z = nearest_member(policy, members, s, dx, dy)
        else:
            z = nearest_in_domain(policy, members, view.words, s, dx, dy)
    likelihood = scratch.floats[1, : members.shape[0]]
    at = np.searchsorted(members, np.int32(z))
    _log_likelihood(policy, members, at, body, settings.epsilon, settings.exact, likelihood)
    if likelihood[np.searchsorted(members, np.int32(s))] == -np.inf:
        _likelihood_along(policy, members, s, z, body, settings.epsilon, likelihood)
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
    local = prepare(policy, settings, scratch, empty, np.empty(0))
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
                discard(scratch, local)
                shared = kind
                support, logs = _before(chain, scratch, beliefs, priors, u)
                if cell < 0:  # missing: the prior moves on, nothing is released
                    new_length[u] = support.shape[0]
                    pool_cells, _ = append_rows(pool_cells, used, support.reshape(-1, 1), support.shape[0])
                    pool_logs, used = append_rows(pool_logs, used, logs.reshape(-1, 1), support.shape[0])
                    pool_kept, used_kept = append_rows(pool_kept, used_kept, own_kept.reshape(-1, 1), own_kept.shape[0])
                    pool_edges, used_edges = append_rows(pool_edges, used_edges, own_edges, own_edges.shape[0])
                    clear_cells(scratch.words, support, support.shape[0])
                    local = prepare(policy, settings, scratch, empty, np.empty(0))
                    continue
                local = prepare(policy, settings, scratch, support, logs)
            # -- release
            view = local.domain
            counts[u, 0] = view.cells.shape[0]
            for k in range(3):
                counts[u, k + 1] = local.counts[k]
            s = np.int64(cell)
            if not test1(view.words, s):
                surrogate[u] = True
                s = nearest_in_domain(policy, view.cells, view.words, s, 0.0, 0.0)
            exposed[u] = local.counts[3] > 0
            z, new_cells, new_logs = _release(policy, settings, scratch, local, s, words[u - begin])
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
                    if was_added(local, own_edges[e, 0], own_edges[e, 1]):
                        pool_edges, used_edges = append_rows(pool_edges, used_edges, own_edges[e : e + 1], 1)
                        n += 1
            edge_length[u] = n
    discard(scratch, local)
    belief_cells, belief_logs = pool_cells[:used, 0].copy(), pool_logs[:used, 0].copy()
    return belief_cells, belief_logs, pool_kept[:used_kept, 0].copy(), pool_edges[:used_edges].copy()


@kernel
def look(policy, chain, settings, scratch, beliefs, priors, u):
    """(cells of C_t, added edges) of one user, made again from the belief before the step."""
    support, logs = _before(chain, scratch, beliefs, priors, u)
    local = prepare(policy, settings, scratch, support, logs)
    cells, added = local.domain.cells.copy(), local.added.copy()
    discard(scratch, local)
    return cells, added
