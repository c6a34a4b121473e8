"""Short gaps that end in few locations: a layer is moved on from both sides.

A location matters only while the moves that are left lead from it to an end. Whatever leads to one
that matters matters as well, so that all others may be left out and nothing else changes, to the
last bit. As long as the layer is small it is pushed along the moves. Once fewer locations lead to
the ends than the layer spreads to, each of those adds up what comes to it by the transposed matrix:
no bitmask, no order, and neither side ever grows to what the whole gap could reach."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel

from .gaps import BACK, BOTH, SPLIT, empty_layer, move, pass_gap
from .records import TIE, TINY, Layers

_SHORT = 64  # moves of a gap that is short
_FEW = 0.1  # share of the map that the ends of such a gap are at most
_DEARER = 2  # pushing a location costs so many times what pulling one does


@kernel
def is_short(moves, count, ends, layers):
    """Whether a gap of so many moves before the last one is one for ``pass_towards`` to shorten."""
    few = ends.shape[0] < _FEW * layers.hops.shape[0]
    return few and 0 < count <= _SHORT and moves.indptr.shape[0] == 1


@kernel
def count_hops(indptr, indices, ends, hops, queue, levels):
    """hops[i] = 1 + the least number of moves from i to one of ``ends``, by a transposed matrix, of
    those where it is at most as long as ``levels`` goes; 0 elsewhere.

    They are listed in ``queue``, the nearest first; levels[h]: how many are at most h moves away.
    Returns how many there are."""
    n = head = 0
    for j in ends:
        hops[j], queue[n] = 1, j
        n += 1
    levels[0] = n
    for h in range(1, levels.shape[0]):
        while head < levels[h - 1]:
            j = queue[head]
            head += 1
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                if hops[i] == 0:
                    hops[i], queue[n] = h + 1, i
                    n += 1
        levels[h] = n
    return n


@kernel
def _drop(layer, n, hops, left):
    """Keep the locations from which so many moves may lead to the end; returns how many."""
    cells, value, m = layer.cells, layer.value, 0
    for k in range(n):
        i = cells[k]
        if 0 < hops[i] <= left + 1:
            cells[m] = i
            m += 1
        else:
            value[i] = 0.0
    return m


@kernel
def _pull(turned, here, targets, there, kind):
    """What comes to each target, of BOTH or BACK; returns (how many are reached, least value)."""
    indptr, indices, data, logs = turned.indptr[0], turned.indices, turned.data, turned.logs
    _, before, other_before, origin_before = here
    cells, value, other, origin = there
    m, least = 0, np.inf
    for j in targets:
        total = mean = 0.0
        best, at = -np.inf, -1
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            if before[i] == 0.0:  # not there
                continue
            at, q = i if at < 0 else at, before[i] * data[e]
            total += q
            path = other_before[i] + logs[e]
            if kind == BACK:
                mean += q * (other_before[i] - logs[e])
            elif path > best and path - TIE * (1.0 + abs(path)) > best:
                best, at = path, i
        if at >= 0:
            cells[m], value[j], origin[j] = j, total, origin_before[at]
            other[j] = mean / max(total, TINY) if kind == BACK else best
            least = min(least, total)
            m += 1
    return m, least


@kernel
def _move_towards(moves, turned, here, n, there, words, kind, near, pull):
    """One move of a layer; ``near``: the locations from where the ends may still be reached."""
    if pull:
        m, least = _pull(turned, here, near, there, kind)
        if least >= TINY:
            return m, kind
        empty_layer(there, m)
    return move(moves, turned, 0, here, n, there, words, kind)


@kernel
def pass_towards(moves, turned, cycle, step, stride, count, kind, n, layers, ends):
    """``pass_gap`` where only what one more move leads to, or may lead to, ``ends`` matters.

    Where that can be made use of (``is_short``), the layer may be BOTH; a sum that underflows ends
    it early, as SPLIT."""
    if not is_short(moves, count, ends, layers):
        return pass_gap(moves, turned, cycle, step, stride, count, kind, n, layers)
    here, there, kept, words, hops = layers
    queue, levels = kept.cells, np.empty((count + 4) >> 1, np.int64)
    reached = count_hops(turned.indptr[0], turned.indices, ends, hops, queue, levels)
    pull, left = False, count
    while left > 0 and kind != SPLIT:
        counted = left < levels.shape[0]
        near = queue[: levels[left] if counted else 0]
        pull |= counted and near.shape[0] <= _DEARER * n  # from then on: a pull leaves no order
        pull &= kind == BOTH or kind == BACK
        m, kind = _move_towards(moves, turned, here, n, there, words, kind, near, pull)
        empty_layer(here, n)
        if counted and not pull:
            m = _drop(there, m, hops, left)
        here, there, n = there, here, m
        left -= 1
    for k in range(reached):
        hops[queue[k]] = 0
    return Layers(here, there, kept, words, hops), n, kind, 0.0, 0.0


@kernel
def place_both(cells, logs, scores, layer):
    """States as a layer of BOTH; whether no probability underflows, else nothing is done."""
    if cells.shape[0] == 0 or logs.min() < np.log(TINY):
        return False
    listed, value, other, origin = layer
    for k in range(cells.shape[0]):
        listed[k], value[cells[k]] = cells[k], np.exp(logs[k])
        other[cells[k]], origin[cells[k]] = scores[k], k
    return True


@kernel
def gather_both(turned, layer, targets, arrivals):
    """The last move of BOTH, to the targets, by a transposed matrix; whether no sum underflows."""
    indptr, indices, data, logs = turned.indptr[0], turned.indices, turned.data, turned.logs
    _, value, score, origin = layer
    sums, best, back = arrivals
    for j in targets:
        total = 0.0
        best[j], back[j] = -np.inf, -1
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            if value[i] == 0.0:
                continue
            total += value[i] * data[e]
            path = score[i] + logs[e]
            if path > best[j] and path - TIE * (1.0 + abs(path)) > best[j]:
                best[j], back[j] = path, origin[i]
        if back[j] >= 0 and total < TINY:
            return False
        sums[j] = np.log(total) if back[j] >= 0 else -np.inf
    return True
