"""A step of few users, from one array to the next.

Somebody who releases one location now and then waits for the call, not for the release. The state
of the users is one array of words here, and a step of common events (see ``glide``) makes the next
one. Any other step is left to ``run``."""

import numpy as np

from pglp_fast._kernels.base.chacha import GEOMETRIC, draw
from pglp_fast._kernels.base.jit import kernel

from .choices import local_at
from .common_step import take_common
from .patterns import MAX_CELLS
from .records import OWN, Moves
from .spending import add

# What is known of user u begins at word words[u]: these numbers, then the bitmask of the policies
# that were used, the belief's values, and as 32-bit numbers its cells, the cells and the edges that
# the ledger keeps. ``traces.state_rows`` writes and reads the same.
KIND, AT, ACCOUNT, RELEASES, SINCE, CELLS, KEPT, EDGES, DATED, HIGH, LOW, HEAD = range(12)
# of each user: the release, |C_t|, disconnected, isolated, added, whether exposed, the table
TOLD = 7


@kernel
def _may_go_on(words, sums, u, step, epsilon, limit):
    """Whether a user's next event may be a common one, and fits its budget."""
    at = words[u]
    high, low = add(sums[at + HIGH], sums[at + LOW], epsilon)
    own = words[at + KIND] == OWN and words[at + ACCOUNT] == OWN
    follows = words[at + AT] + 1 == step and words[at + CELLS] <= MAX_CELLS
    return own and follows and high + low <= limit


@kernel
def _open(words, sums, u, space):
    """What is known of user u to the work space."""
    at, used, sizes = words[u], space.used, space.sizes
    sizes[0], sizes[1], sizes[2] = words[at + CELLS], words[at + KEPT], words[at + EDGES]
    at += HEAD
    for k in range(used.shape[0]):
        used[k] = np.uint64(words[at + k])
    at += used.shape[0]
    for k in range(sizes[0]):
        space.own_values[k] = sums[at + k]
    halves, at = words.view(np.int32), 2 * (at + sizes[0])
    for k in range(sizes[0]):
        space.own_cells[k] = halves[at + k]
    at += sizes[0]
    for k in range(sizes[1]):
        space.kept[k] = halves[at + k]
    at += sizes[1]
    for k in range(sizes[2]):
        space.edges[k, 0], space.edges[k, 1] = halves[at + 2 * k], halves[at + 2 * k + 1]


@kernel
def _close(words, sums, at, space):
    """What is known of a user from the work space, behind the numbers at ``at``; returns the
    end."""
    used, sizes = space.used, space.sizes
    words[at + CELLS], words[at + KEPT], words[at + EDGES] = sizes[0], sizes[1], sizes[2]
    at += HEAD
    for k in range(used.shape[0]):
        words[at + k] = np.int64(used[k])
    at += used.shape[0]
    for k in range(sizes[0]):
        sums[at + k] = space.own_values[k]
    halves, at = words.view(np.int32), 2 * (at + sizes[0])
    for k in range(sizes[0]):
        halves[at + k] = space.own_cells[k]
    at += sizes[0]
    for k in range(sizes[1]):
        halves[at + k] = space.kept[k]
    at += sizes[1]
    for k in range(sizes[2]):
        halves[at + 2 * k], halves[at + 2 * k + 1] = space.edges[k, 0], space.edges[k, 1]
    at += 2 * sizes[2]
    if at & 1:
        halves[at] = 0
    return (at + 1) >> 1


@kernel
def _words_of(key, ids, step):
    """The draws of all users at a step."""
    n = ids.shape[0]
    counters, lanes = np.empty((4, n), np.uint32), np.empty((16, n), np.uint32)
    times, out = np.empty(1, np.int64), np.empty((n, 4), np.uint64)
    times[0] = step
    draw(key, ids, times, 0, n, 2, GEOMETRIC, counters, lanes, out)
    return out


@kernel
def _tell_nothing(told, u):
    for k in range(TOLD):
        told[k, u] = -1 if k in (0, TOLD - 1) else 0


@kernel
def _tell(told, u, z, n, counts, entry):
    told[0, u], told[1, u], told[TOLD - 1, u] = z, n, entry
    for k in range(3):
        told[k + 2, u] = counts[k]
    told[5, u] = counts[3] > 0


@kernel
def _spend(words, sums, at, step, epsilon):
    """One more release, at a step."""
    words[at + AT] = step
    words[at + RELEASES] += 1
    words[at + SINCE] = max(words[at + SINCE], step + 1)
    sums[at + HIGH], sums[at + LOW] = add(sums[at + HIGH], sums[at + LOW], epsilon)


@kernel
def step_few(world, cache, key, ids, cycle, words, cells, step, limit, told):
    """One step of users at ``cells`` (-1: not seen), of which the settings of ``world`` say the
    choice, plain ones: no remapping, no delta. ``limit``: the most that each may spend in total.

    Returns the state after it, as ``words`` is the one before, and fills ``told`` (TOLD, users).
    Where the event of some user is not a common one, or exceeds its budget, an empty array: nothing
    has happened."""
    policies, indptr, indices, data, settings, space = world.value
    tables, n, sums = cache.value, ids.shape[0], words.view(np.float64)
    epsilon, room, nothing = settings.epsilon, words.shape[0], words[:0].copy()
    if space.patterns.version[0] != tables.version:
        return nothing
    for u in range(n):
        if cells[u] >= 0:
            if not _may_go_on(words, sums, u, step, epsilon, limit):
                return nothing
            room += 2 * MAX_CELLS + 1
    draws, moves = _words_of(key, ids, step), Moves(indptr, indices, data, cycle)
    local = local_at(policies, settings.choice)
    after = np.empty(room, np.int64)
    new, at = after.view(np.float64), np.int64(n + 1)
    for u in range(n):
        first, after[u] = words[u], at
        for k in range(words[u + 1] - first if cells[u] < 0 else HEAD):
            after[at + k] = words[first + k]
        if cells[u] < 0:
            _tell_nothing(told, u)
            at += words[u + 1] - first
            continue
        _open(words, sums, u, space)
        slot, size, entry, z = take_common(
            policies, local, settings.anchored, moves, space, tables, cells[u], draws[u, 0],
            step - 1, space.sizes, space.kept[: space.sizes[1]],
        )  # fmt: skip
        if slot < 0:
            return nothing
        _tell(told, u, z, size, space.patterns.counts[slot], entry)
        _spend(after, new, at, step, epsilon)
        at = _close(after, new, at, space)
    after[n] = at
    return after[:at].copy()
