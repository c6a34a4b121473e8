"""The common step, fast: a small domain of a known pattern, whose table is there.

What ``run`` does event by event with views and named tuples, this does in one loop over plain
arrays, without allocating anything: one move, one look at the pattern, one draw, one update. It
stops before the first event that is not of this kind (a gap, an underflow, a new pattern, a missing
table, an impossible truth) and leaves it to ``run``. Both give the same bits."""

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set1, test1
from pglp_fast._kernels.base.jit import bare
from pglp_fast._kernels.base.markov import scatter

from .choices import local_at, number_at
from .forward import FLOOR, TINY
from .ledger import intersect, stays, was_kept
from .patterns import MAX_CELLS, anchor_of, describe, seek
from .table_cache import draw_position


@bare
def _values_of(sums, targets, n, values):
    """Whether all sums are there without underflow; they are written out."""
    fits = n <= MAX_CELLS
    for k in range(min(n, MAX_CELLS)):
        values[k] = sums[np.uint32(targets[k])]
        fits &= values[k] >= TINY
    return fits


@bare
def _members(label, cells, n, s, positions):
    """(how many members the component of s has, which of them s is); positions are written out."""
    p = np.uint32(0)
    while cells[p] != s:
        p = np.uint32(p + 1)
    wanted, k, place = label[p], 0, 0
    for q in range(n):
        positions[k] = q
        if q == p:
            place = k
        k += label[q] == wanted
    return k, place


@bare
def _update(chances, logs, at, positions, k, cells, values, new_cells, new_values):
    """p_t^+ over k members, for the likelihoods from ``at`` on: how many are possible, or -1 where
    one underflows."""
    n = 0
    total, least = 0.0, np.inf
    for q in range(k):
        entry, p = np.uint64(at + q), np.uint64(positions[q])
        if logs[entry] == -np.inf:
            continue
        value = values[p] * chances[entry]
        if value < TINY:
            return -1
        new_cells[n], new_values[n] = cells[p], value
        total += value
        least = min(least, value)
        n += 1
    if least < FLOOR * total:
        return -1
    for q in range(n):
        new_values[q] /= total
    return n


@bare
def _keep_edges(edges, n, pattern_edges, added, policy, cells):
    """The first n edges that a remembered repair added, or the policy has; returns how many."""
    kept = 0
    for e in range(n):
        i, j = edges[e, 0], edges[e, 1]
        found = False
        for a in range(added):
            x, y = cells[pattern_edges[a, 0]], cells[pattern_edges[a, 1]]
            found |= (x == i and y == j) or (x == j and y == i)
        if found or stays(policy, cells, i, j):
            edges[kept, 0], edges[kept, 1] = i, j
            kept += 1
    return kept


@bare
def _first_edges(policies, used, before, pattern_edges, added, cells, edges, n):
    """Add to n edges what a policy's first repair and all releases before keep; returns how many
    there are."""
    for a in range(added):
        i, j = cells[pattern_edges[a, 0]], cells[pattern_edges[a, 1]]
        if was_kept(policies, used, before, i, j):
            edges[n, 0], edges[n, 1] = i, j
            n += 1
    return n


@bare
def _draw(tables, patterns, slot, cells, values, n, s, word, space):
    """(table, position that is released, how many locations are possible after it) of location s of
    a domain of a known pattern; the table is -1 where it is missing, or something underflows. The
    new belief is in the work space."""
    k, place = _members(patterns.label[slot], cells, n, s, space.positions)
    entry = patterns.entries[slot, patterns.label[slot, space.positions[place]]]
    if entry < 0:
        return entry, 0, 0
    z = draw_position(tables, entry, k, place, word)
    m = _update(
        tables.chances, tables.logs, tables.at[entry] + z * k, space.positions, k, cells, values,
        space.new_cells, space.new_values,
    )  # fmt: skip
    return (entry if m >= 0 else np.int32(-1)), space.positions[z], m


@bare
def take_common(policies, local, anchored, moves, space, tables, s, word, at, sizes, before):
    """One event of a user at s, a step after its belief of step ``at``, if it is a common one.

    ``local``: what to look at of the choice. ``sizes`` (3): how many locations the belief, and
    locations and edges the ledger has, all in the work space, is kept up to date. ``before``: the
    locations that the ledger has so far. Returns (slot of the domain's pattern, |C_t|, table,
    release); where it is no common event, the slot is -1 and nothing has changed."""
    cells, values, bits, patterns = space.cells, space.values, space.domain.words, space.patterns
    cycle, own_cells, own_values, kept = moves.cycle, space.own_cells, space.own_values, space.kept
    nothing = np.int64(-1), np.int64(0), np.int32(-1), np.int32(-1)
    indptr, m = moves.indptr[cycle[at % cycle.shape[0]]], sizes[0]
    n = scatter(
        indptr, moves.indices, moves.data, own_cells[:m], own_values, bits, space.sums, cells
    )
    common = _values_of(space.sums, cells, n, values) and test1(bits, s)
    clear_cells(bits, cells, n)
    if not common:
        return nothing
    anchor = anchor_of(local.number, anchored, cells)
    first = describe(local, cells[:n], space.domain.head, anchor, space.key)
    if first < 0:
        return nothing
    slot, known = seek(patterns, first, space.key, n, anchor)
    if not known:
        return nothing
    entry, z, m = _draw(tables, patterns, slot, cells, values, n, s, word, space)
    if entry < 0:
        return nothing
    for q in range(m):
        own_cells[q], own_values[q] = space.new_cells[q], space.new_values[q]
    added, edges, used = patterns.counts[slot, 2], patterns.edges[slot], space.used
    sizes[2] = _keep_edges(space.edges, sizes[2], edges, added, local, cells[:n])
    if not test1(used, local.policy):
        sizes[2] = _first_edges(policies, used, before, edges, added, cells, space.edges, sizes[2])
        set1(used, local.policy)
    sizes[0], sizes[1] = m, intersect(cells[:n], before, kept)
    return np.int64(slot), np.int64(n), entry, cells[z]


@bare
def glide(chosen, moves, space, tables, requests, words, span, at, sizes, before, out):
    """Events span[0] .. span[1] - 1 of one user, as far as they are common ones.

    ``words``: the draws of event e are words[e - span[2]]; the user's events begin at span[3];
    ``at``: the step of the belief; ``sizes``, ``before``: as in ``take_common``. Returns (the next
    event, the step of the belief)."""
    e, counts = span[0], space.patterns.counts
    policies, anchored = chosen.policies, chosen.settings.anchored
    local = local_at(policies, chosen.number)
    while e < span[1] and requests.steps[e] == at + 1:
        number = number_at(policies, requests, out.released, e, span[3])
        if number != local.number:
            local = local_at(policies, number)
        slot, n, entry, z = take_common(
            policies, local, anchored, moves, space, tables, requests.cells[e],
            words[e - span[2], 0], at, sizes, before,
        )  # fmt: skip
        if slot < 0:
            break
        out.released[e], out.surrogate[e], out.table[e] = z, False, entry
        out.counts[e, 0], out.counts[e, 1] = n, counts[slot, 0]
        out.counts[e, 2], out.counts[e, 3] = counts[slot, 1], counts[slot, 2]
        out.exposed[e], out.choice[e] = counts[slot, 3] > 0, number
        at, e, before = at + 1, e + 1, space.kept[: sizes[1]]
    return e, at
