"""Traces of many users: each user goes through all of its events, one after the other.

The paper's algorithm "Location Trace Release Mechanism for PGLP" (spec sections 6 to 9 and 11). A
step without an event is silence: the belief is moved on when the next event needs it."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set1, set_cells, test1
from pglp_fast._kernels.base.chacha import CHUNK, GEOMETRIC, LANES, draw
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.rows import row_cells
from pglp_fast._kernels.exposure.repaired_domain import discard, make_repaired_domain

from .choices import choose, choose_at, number_of_policy
from .common_step import glide
from .first_release import begin, component_at, learn_component, take_first, tell_first
from .forward import Belief, cut_domain, predict, through_silence
from .large_domains import Kept, keep_large, leave, nothing_kept
from .ledger import Account, keep_cells, keep_edges, open_account
from .patterns import MAX_CELLS, refresh
from .pools import collect, make_pools, record, store
from .posterior import posterior
from .records import LOGS, NOT_STARTED, OWN, Moves
from .release import (
    Known,
    allows,
    known_entry,
    learn,
    learn_entry,
    look_up,
    nothing_released,
    output_of,
    release_from,
    release_output,
    release_pattern,
    surrogate_of,
)

# room for the draws of CHUNK events
Draws = namedtuple("Draws", "counters lanes words")


@kernel
def _make_draws():
    counters, lanes = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    return Draws(counters, lanes, np.empty((CHUNK, 4), np.uint64))


@kernel
def _draw(draws, requests, first, last):
    """The words of events first .. last - 1."""
    draw(
        requests.key, requests.who, requests.steps, first, last, 2, GEOMETRIC, draws.counters,
        draws.lanes, draws.words,
    )  # fmt: skip


@kernel
def _open_belief(beliefs, u, space):
    """The belief of user u, copied to the user's own room; of a shared prior the number alone."""
    kind, at = beliefs.kind[u], beliefs.start[u]
    n = beliefs.start[u + 1] - at if kind < 0 else 0
    for k in range(n):
        space.own_cells[k], space.own_values[k] = beliefs.cells[at + k], beliefs.values[at + k]
    return Belief(kind, space.own_cells[:n], space.own_values[:n])


@kernel
def _prior_belief(priors, kind):
    """A shared prior, as logarithms."""
    cells, logs = row_cells(priors.start, priors.cells, kind), priors.values
    return Belief(LOGS, cells, row_cells(priors.start, logs, kind))


@kernel
def _tell(patterns, slot, repaired, number, e, out):
    """What is told of event e: |C_t|, disconnected, isolated, added, whether exposed."""
    counts, out.counts[e, 0] = repaired.counts, repaired.domain.cells.shape[0]
    if slot >= 0:
        counts, out.counts[e, 0] = patterns.counts[slot], patterns.size[slot]
    for k in range(3):
        out.counts[e, k + 1] = counts[k]
    out.exposed[e], out.choice[e] = counts[3] > 0, number


@kernel
def _added_edges(patterns, slot, cells):
    """The edges that a remembered repair adds to a domain."""
    added = np.empty((patterns.counts[slot, 2], 2), np.int32)
    for e in range(added.shape[0]):
        for end in range(2):
            added[e, end] = cells[patterns.edges[slot, e, end]]
    return added


@bare
def _is_plain(requests, settings):
    """Whether nothing is asked for that only the general way can do."""
    return not (requests.replay or requests.keep or settings.remap or settings.delta > 0.0)


@bare
def _is_common(belief, account):
    """Whether a user's next step may be one that ``glide`` takes."""
    return belief.kind == OWN and account.kind != NOT_STARTED and belief.cells.shape[0] <= MAX_CELLS


@kernel
def _domain(moves, priors, settings, belief, step, space):
    """C_t with p_t^- on it, of a user of whom there is a prior or a belief of the step before; the
    work space's bitmask receives the cells."""
    words = space.domain.words
    if belief.kind >= 0:
        domain = _prior_belief(priors, belief.kind)
        set_cells(words, domain.cells)
    else:
        domain = predict(moves, belief, step, space)
    return cut_domain(settings.delta, words, domain)


@kernel
def _find_domain(kept, chosen, moves, priors, belief, step, space):
    """(C_t with p_t^- on it, where it is kept: -1 for a small one)."""
    number = chosen.policies.cliques.shape[0]
    k = number_of_policy(chosen) + (number if belief.kind < 0 else 0)
    if belief.kind >= 0 and kept[k].prior == belief.kind:
        return kept[k].domain, k
    domain = _domain(moves, priors, chosen.settings, belief, step, space)
    if domain.cells.shape[0] <= MAX_CELLS:
        return domain, np.int64(-1)
    kept[k] = keep_large(kept[k], k, chosen, space, domain, belief.kind)
    if belief.kind >= 0:
        begin(space.starts, k, belief.kind, kept[k].repaired.counts)
    return kept[k].domain, k


@kernel
def _glide(chosen, moves, priors, space, tables, requests, words, span, at, belief, account, out):
    """``glide``, if this may be a step for it; the belief and the account as it leaves them."""
    e = span[0]
    if not _is_common(belief, account) or requests.steps[e] != at + 1:
        return belief, account, at, e
    sizes, before = space.sizes, account.cells
    if account.kind >= 0:
        before = row_cells(priors.start, priors.cells, account.kind)
    sizes[0], sizes[1] = belief.cells.shape[0], account.cells.shape[0]
    sizes[2] = account.edges.shape[0]
    e, at = glide(chosen, moves, space, tables, requests, words, span, at, sizes, before, out)
    if e > span[0]:
        n = sizes[0]
        belief = Belief(OWN, space.own_cells[:n], space.own_values[:n])
        account = Account(OWN, space.kept[: sizes[1]], space.edges[: sizes[2]])
    return belief, account, at, e


@kernel
def _start(chosen, priors, space, tables, requests, word, e, belief, account, out):
    """The first release of a user, where its component is known; nothing, where it is not."""
    k, starts, s = number_of_policy(chosen), space.starts, requests.cells[e]
    c = component_at(starts, k, belief.kind, s)
    if c < 0 or account.kind != NOT_STARTED:
        return belief, account, np.int64(-1), e
    prior, account = (
        _prior_belief(priors, belief.kind),
        Account(belief.kind, account.cells, account.edges),
    )
    cell, entry, belief = take_first(
        starts, k, c, tables, prior, s, word, space.own_cells, space.own_values
    )
    tell_first(starts, k, prior.cells.shape[0], e, out)
    out.released[e], out.table[e], out.choice[e] = cell, entry, chosen.number
    set1(space.used, k)
    return belief, account, requests.steps[e], e + 1


@kernel
def _quickly(chosen, moves, priors, space, tables, requests, words, span, at, belief, account, out):
    """The next events of a user, as far as little has to be looked at: (belief, account, step of
    the belief, next event, whether that is the second of a user who started)."""
    e = span[0]
    if belief.kind >= 0:
        word = words[e - span[2], 0]
        belief, account, at, e = _start(
            chosen, priors, space, tables, requests, word, e, belief, account, out
        )
        return belief, account, at, e, e > span[0]
    belief, account, at, e = _glide(
        chosen, moves, priors, space, tables, requests, words, span, at, belief, account, out
    )
    return belief, account, at, e, False


@kernel
def _look(chosen, space, domain, words, large, cell):
    """What is known of a domain before anything is repaired."""
    policy, settings = chosen.policy, chosen.settings
    slot, known = np.int64(-1), False
    if large < 0:
        slot, known = look_up(policy, settings, space, domain.cells)
    s = surrogate_of(policy, domain.cells, words, cell)
    entry = np.int64(-1)
    if known:
        entry = known_entry(space.patterns, slot, domain.cells, s)[1]
    return Known(domain, s, slot, known, entry, large)


@kernel
def _conclude(release, known, repaired, fresh, chosen, tables, priors, account, space):
    """(belief, account) of a user after a release from a domain."""
    domain = known.domain
    added = repaired.added
    if known.entry >= 0:
        added = _added_edges(space.patterns, known.slot, domain.cells)
    belief = posterior(release, domain, tables, space)
    whole = fresh if chosen.settings.delta == 0.0 else np.int64(-1)
    account = keep_edges(account, chosen, added, domain.cells, priors, space)
    set1(space.used, number_of_policy(chosen))
    return belief, keep_cells(account, domain.cells, whole, priors, space)


@kernel
def _repair(kept, chosen, space, known):
    """(the repaired domain, where it is needed; the slot where it is remembered, or -1)."""
    if known.large >= 0 or known.entry >= 0:
        return kept[max(known.large, 0)].repaired, known.slot
    how, slot = chosen.settings, known.slot
    repaired = make_repaired_domain(
        chosen.policy, how.strategy, how.calibration, space.domain, known.domain.cells
    )
    if slot >= 0 and not known.known:
        slot = learn(chosen.policy, how, space, slot, repaired)
    return repaired, slot


@kernel
def _release_large(kept, chosen, space, tables, known, replay, words):
    """Release from a large domain; what noise could say stays at hand."""
    k, policy, settings = known.large, chosen.policy, chosen.settings
    prior, domain, repaired, output = kept[k]
    if not allows(output, known.s):
        output = output_of(policy, settings, repaired, known.s)
        if output.claim.shape[0] > 0:
            kept[k] = Kept(prior, domain, repaired, output)
    release = release_output(
        policy, settings, tables, repaired, output, domain, known.s, replay, words, space
    )
    if prior >= 0:
        learn_component(space.starts, k, prior, domain.cells, release.positions, release.entry)
    return release


@kernel
def _release(kept, chosen, space, tables, known, slot, repaired, replay, words):
    """Release from a domain, by its pattern where the table is known."""
    if known.large >= 0:
        return _release_large(kept, chosen, space, tables, known, replay, words)
    if known.entry >= 0:
        return release_pattern(chosen.settings, space, tables, known, replay, words)
    release = release_from(
        chosen.policy, chosen.settings, tables, repaired, known.domain, known.s, replay, words,
        space,
    )  # fmt: skip
    learn_entry(space.patterns, slot, known, release.entry)
    return release


@kernel
def _put_away(known, repaired, words):
    """Leave the work space of a domain that is not kept as it was."""
    if known.large >= 0:
        return
    if known.entry < 0:
        discard(repaired)
    clear_cells(words, known.domain.cells, known.domain.cells.shape[0])


@kernel
def run_users(world, cycle, cache, requests, beliefs, priors, ledger, users, out, ends):
    """Users users[0] .. users[1] - 1, as they are ordered, through the events left to them.

    Returns the new beliefs (cells, values), the ledger's cells and edges, the likelihoods of events
    (cells, logarithms), the keys of tables that are missing, and claims of noise that are to be
    proved, all end to end in that order. A user who needs a table that is missing stops before that
    event: it is to go on, from what is returned here, once the table is there. What is released is
    a pure function of key, user, step, choice and input.

    In a replay nothing is drawn, beliefs follow; a release that was not possible is flagged as
    ``surrogate``, and its user goes no further. ``world`` and ``cache`` are bound: a ``World`` and
    ``Tables``."""
    policies, indptr, indices, data, settings, space = world.value
    moves, tables = Moves(indptr, indices, data, cycle), cache.value
    refresh(space.patterns, tables.version)
    space.told[:] = np.uint64(0)
    space.starts.prior[:] = -1
    plain = _is_plain(requests, settings)
    pools, draws, replay = make_pools(), _make_draws(), requests.replay
    kept, small = nothing_kept(policies, settings, space), space.domain.words
    chosen = choose(policies, settings, requests.epsilons, np.int64(0))
    # events whose draws are at hand; where all users' events lie end to end, a chunk spans users
    first = last = np.int64(-1)
    until, order = requests.start[users[1]], requests.order
    for k in range(users[0], users[1]):
        u = order[k] if order.shape[0] > 0 else k
        at, account = beliefs.at[u], open_account(ledger, u, space)
        begin, e, end = requests.start[u], requests.next[u], requests.start[u + 1]
        belief = _open_belief(beliefs, u, space)
        while e < end:
            if not first <= e < last:
                first, last = e, min(e + CHUNK, end if order.shape[0] > 0 else until)
                _draw(draws, requests, first, last)
            chosen = choose_at(chosen, requests, out.released, e, begin)
            if plain:
                belief, account, at, e, started = _quickly(
                    chosen, moves, priors, space, tables, requests, draws.words,
                    (e, min(last, end), first, begin), at, belief, account, out,
                )  # fmt: skip
                if started or e >= min(last, end):
                    continue
            chosen = choose_at(chosen, requests, out.released, e, begin)
            step, cell, fresh = requests.steps[e], requests.cells[e], belief.kind
            if fresh < 0 and at < step - 1:
                belief, at = through_silence(moves, belief, at, step - 1, space), step - 1
            domain, large = _find_domain(kept, chosen, moves, priors, belief, step, space)
            words = space.large.words[large] if large >= 0 else small
            known = _look(chosen, space, domain, words, large, cell)
            repaired, slot = _repair(kept, chosen, space, known)
            out.surrogate[e] = not test1(words, cell)
            _tell(space.patterns, slot, repaired, chosen.number, e, out)
            release, drawn = nothing_released(), draws.words[e - first]
            if not (replay and out.surrogate[e]):
                release = _release(
                    kept, chosen, space, tables, known, slot, repaired, replay, drawn
                )
            pools = record(release, known, requests, tables, space, e, pools, out)
            if release.cell >= 0:
                belief, account = _conclude(
                    release, known, repaired, fresh, chosen, tables, priors, account, space
                )
                at = step
                out.surrogate[e] |= belief.cells.shape[0] == 0  # only in a replay
            _put_away(known, repaired, words)
            if release.cell < 0 or belief.cells.shape[0] == 0:
                break
            e += 1
        pools = store(belief, at, account, space.used, u, e, pools, ends)
    for one in kept:
        leave(one.repaired)
    return collect(pools)


@kernel
def domain_of(policy, moves, settings, space, beliefs, priors, u, step):
    """(cells of C_t, added edges) of one user at a step, made from its belief."""
    belief, at = _open_belief(beliefs, u, space), beliefs.at[u]
    if belief.kind < 0 and at < step - 1:
        belief = through_silence(moves, belief, at, step - 1, space)
    domain = _domain(moves, priors, settings, belief, step, space)
    repaired = make_repaired_domain(
        policy, settings.strategy, settings.calibration, space.domain, domain.cells
    )
    found = domain.cells.copy(), repaired.added.copy()
    leave(repaired)
    return found


@kernel
def belief_of(moves, space, beliefs, u, step):
    """(cells, values, kind) of the belief of a user who has started, moved on to a step."""
    belief, at = _open_belief(beliefs, u, space), beliefs.at[u]
    if step > at:
        belief = through_silence(moves, belief, at, step, space)
    return belief.cells.copy(), belief.values.copy(), belief.kind
