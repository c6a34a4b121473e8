"""Algorithm 5, one step of many users (spec sections 6 to 9).

Users are independent and share policy and model. A user's belief is a sparse distribution, cells and logarithms: either a
prior that several users may share (t = 1), or the posterior of the last step, which this step first moves on. Everything
is O(what the user's domain holds); the scratch space is as large as the map but is allocated once and touched only where
users are.
"""

from collections import namedtuple

import numpy as np

from .bits import set1, test1
from .book import draw_place, find, make_key, remap, remapped_column
from .chacha import CHUNK, GEOMETRIC, LANES, draw
from .emission import log_column
from .exposure import difference
from .hmm import clear_cells, forward, normalise
from .hull import cross
from .jit import kernel
from .knorm import body_of, cone_weights
from .local import component_hull, component_of, discard, prepare, was_added
from .repair import COMPONENT
from .rows import append_rows
from .sampling import noise
from .snap import nearest_in_domain, nearest_member
from .weights import build_alias, column_bits

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
def _output_set(policy, settings, local, s):
    """(members, their places in the domain, ln p^- on them, sensitivity hull) of what a release from s may say."""
    view = local.domain
    if settings.calibration == COMPONENT:
        places = component_of(policy, local, view.place[s])
        K = component_hull(policy, local, places) if settings.with_hull else local.K
        return view.cells[places], places, local.logs[places], K
    return view.cells, np.arange(view.cells.shape[0]).astype(np.int32), local.logs, local.K


@kernel
def _release_noise(policy, settings, local, members, K, s, replay, words, likelihood):
    """Draw noise, snap it, and say how likely that was from everywhere; returns the released cell (replayed: s itself)."""
    body = body_of(K, settings.body, policy.dx, policy.dy)
    z = np.int64(s)
    if body.shape[0] > 1 and not replay:
        dx, dy = _draw_noise(words, body, settings.epsilon)
        if settings.calibration == COMPONENT:
            z = nearest_member(policy, members, s, dx, dy)
        else:
            z = nearest_in_domain(policy, members, local.domain.words, s, dx, dy)
    at = np.searchsorted(members, np.int32(z))
    _log_likelihood(policy, members, at, body, settings.epsilon, settings.exact, likelihood)
    if likelihood[np.searchsorted(members, np.int32(s))] == -np.inf:
        _likelihood_along(policy, members, s, z, body, settings.epsilon, likelihood)
    return z


@kernel
def _release_table(settings, book, entry, members, logs, s, replay, words, likelihood):
    """Draw a place from the table, remap it if that is asked for, and say how likely the answer was from everywhere."""
    k = members.shape[0]
    z = np.searchsorted(members, np.int32(s))
    if not replay:
        z = draw_place(book, entry, k, z, words[0])
    if settings.remap:
        to = np.empty(k, np.int64)
        room = np.empty((2, k))
        remap(book, entry, k, logs, to, room[0], room[1])
        if not replay:
            z = to[z]
        remapped_column(book, entry, k, to, z, likelihood)
    else:
        for place in range(k):
            likelihood[place] = book.logs[book.at[entry] + place * k + z]
    return np.int64(members[z])


@kernel
def _posterior(members, logs, likelihood):
    """(cells, ln p^+, ln Pr(z|s)) where the likelihood is not 0."""
    possible = 0
    for k in range(members.shape[0]):
        possible += likelihood[k] > -np.inf
    cells, new, seen = np.empty(possible, np.int32), np.empty(possible), np.empty(possible)
    n = 0
    for k in range(members.shape[0]):
        if likelihood[k] > -np.inf:
            cells[n], new[n], seen[n] = members[k], logs[k] + likelihood[k], likelihood[k]
            n += 1
    if possible > 0:
        normalise(new)
    return cells, new, seen


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
    policy, chain, settings, scratch, book, key, ids, times, cells, replay, beliefs, priors, kept, edges, start, stop,
    released, counts, surrogate, exposed, new_kind, new_length, kept_kind, kept_length, edge_length,
):  # fmt: skip
    """One step of users start..stop-1. ``cells``: true locations, -1 for missing.

    Returns the new beliefs, ledger cells and edges, likelihoods (beside the beliefs, 0 where nothing was released), all end to
    end, and the keys that the book lacks. Where there are any, the step must be taken again with them: it is a pure function.

    ``replay``: ``cells`` are what was released before, not where users were: nothing is drawn, beliefs follow. A release that
    was not possible is flagged as ``surrogate``.
    """
    counters, lanes = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words = np.empty((CHUNK, 4), np.uint64)
    pool_cells, pool_logs, used = np.empty((1024, 1), np.int32), np.empty((1024, 1)), 0
    pool_kept, used_kept = np.empty((1024, 1), np.int32), 0
    pool_edges, used_edges = np.empty((64, 2), np.int32), 0
    pool_seen, used_seen = np.empty((1024, 1)), 0
    pool_keys, used_keys = np.empty((64, 1), np.int64), 0
    nothing = np.zeros((1024, 1))
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
                    while used_seen < used:
                        pool_seen, used_seen = append_rows(pool_seen, used_seen, nothing, min(used - used_seen, 1024))
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
                if replay:
                    continue
                s = nearest_in_domain(policy, view.cells, view.words, s, 0.0, 0.0)
            exposed[u] = local.counts[3] > 0
            members, places, before, K = _output_set(policy, settings, local, s)
            likelihood = scratch.floats[1, : members.shape[0]]
            if members.shape[0] <= settings.tables:
                wanted = make_key(policy, local, places, members, K, settings.with_hull, settings.anchored)
                entry = find(book, wanted)
                if entry < 0:
                    pool_keys, used_keys = append_rows(pool_keys, used_keys, wanted.reshape(-1, 1), wanted.shape[0])
                    continue
                z = _release_table(settings, book, entry, members, before, s, replay, words[u - begin], likelihood)
            else:
                z = _release_noise(policy, settings, local, members, K, s, replay, words[u - begin], likelihood)
            released[u] = z
            new_cells, new_logs, new_seen = _posterior(members, before, likelihood)
            surrogate[u] |= new_cells.shape[0] == 0  # only a replay can contradict itself
            new_kind[u], new_length[u] = OWN, new_cells.shape[0]
            pool_cells, _ = append_rows(pool_cells, used, new_cells.reshape(-1, 1), new_cells.shape[0])
            pool_logs, used = append_rows(pool_logs, used, new_logs.reshape(-1, 1), new_logs.shape[0])
            pool_seen, used_seen = append_rows(pool_seen, used_seen, new_seen.reshape(-1, 1), new_seen.shape[0])
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
    return (
        pool_cells[:used, 0].copy(), pool_logs[:used, 0].copy(), pool_kept[:used_kept, 0].copy(), pool_edges[:used_edges].copy(),
        pool_seen[:used, 0].copy(), pool_keys[:used_keys, 0].copy(),
    )  # fmt: skip


@kernel
def look(policy, chain, settings, scratch, beliefs, priors, u):
    """(cells of C_t, added edges) of one user, made again from the belief before the step."""
    support, logs = _before(chain, scratch, beliefs, priors, u)
    local = prepare(policy, settings, scratch, support, logs)
    cells, added = local.domain.cells.copy(), local.added.copy()
    discard(scratch, local)
    return cells, added
