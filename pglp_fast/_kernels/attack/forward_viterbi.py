"""Forward along the hidden chain: p_t^+ of every state, and the most likely path to it.

The forward recursion alpha_t(j) = Pr(z_t | j) sum_i alpha_{t-1}(i) M(i, j), normalised at each
row, and Viterbi's delta_t(j) = Pr(z_t | j) max_i delta_{t-1}(i) M(i, j) (Rabiner, A Tutorial on
Hidden Markov Models, Proceedings of the IEEE 77, 1989). Sums are made of plain products; one that
underflows is made again with logarithms, so that a possible path is never lost, however unlikely a
release makes it look. Work is O(states x moves)."""

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set1, sort_cells, test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.logarithms import log_add
from pglp_fast._kernels.base.sorting import lower_bound

from .gaps import (
    BEST,
    BOTH,
    SUM,
    empty_layer,
    gather_best,
    gather_sums,
    pass_gap,
    place,
)
from .records import TIE, TINY, with_states
from .short_gaps import gather_both, is_short, pass_towards, place_both


@kernel
def _first_states(seen, u, row, messages, score):
    """States of the first release: where the prior and the release agree; returns how many."""
    low, last = seen.prior_start[seen.of[u]], seen.prior_start[seen.of[u] + 1]
    n = 0
    for k in range(seen.start[row], seen.start[row + 1]):
        cell = seen.cells[k]
        low += lower_bound(seen.prior_cells[low:last], cell)
        if low == last:
            break
        if seen.prior_cells[low] == cell and seen.logs[k] > -np.inf:
            messages.cells[n], messages.back[n] = cell, -1
            messages.logs[n] = seen.prior_logs[low] + seen.logs[k]
            messages.likelihood[n] = seen.logs[k]
            score[n] = messages.logs[n]
            n += 1
    return n


@kernel
def _reachable(indptr, indices, cells, words, out):
    """Every location that a move leads to, ascending; returns how many."""
    n = 0
    for i in cells:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if not test1(words, j):
                set1(words, j)
                out[n] = j
                n += 1
    sort_cells(words, out, n)
    clear_cells(words, out, n)
    return n


@kernel
def _allowed(cells, logs, low, high, targets, likelihood):
    """Where a release allows a person to be, ln Pr(z_t | s) beside; returns how many."""
    n = 0
    for k in range(low, high):
        if logs[k] > -np.inf:
            targets[n], likelihood[n] = cells[k], logs[k]
            n += 1
    return n


@kernel
def _sum_logarithms(indptr, indices, ln, cells, logs, targets, arrivals, words):
    """Make the sums of targets that underflowed again, as logarithms; marks them in ``words``."""
    sums, back = arrivals.sum, arrivals.back
    for j in targets:
        if back[j] >= 0 and sums[j] < TINY:
            set1(words, j)
            sums[j] = -np.inf
    for i in range(cells.shape[0]):
        for e in range(indptr[cells[i]], indptr[cells[i] + 1]):
            j = indices[e]
            if test1(words, j):
                sums[j] = log_add(sums[j], logs[i] + ln[e])


@kernel
def _move_once(indptr, moves, cells, p, logs, score, targets, arrivals, words):
    """Move p_{t-1}^+ and the best paths on to the targets.

    By location, and so also to locations that are no targets: nobody looks at those."""
    _, indices, data, ln = moves
    sums, best, back = arrivals
    for j in targets:
        sums[j], best[j], back[j] = 0.0, -np.inf, -1
    for i in range(cells.shape[0]):
        mass, so_far = p[i], score[i]
        for e in range(indptr[cells[i]], indptr[cells[i] + 1]):
            j, path = indices[e], so_far + ln[e]
            sums[j] += mass * data[e]
            # scores of a tie differ by rounding: the lower predecessor stays
            if path > best[j] and path - TIE * (1.0 + abs(path)) > best[j]:
                best[j], back[j] = path, i
    tiny = False
    for j in targets:
        tiny |= back[j] >= 0 and sums[j] < TINY
    if tiny:
        _sum_logarithms(indptr, indices, ln, cells, logs, targets, arrivals, words)
    for j in targets:
        if back[j] >= 0 and not (tiny and test1(words, j)):
            sums[j] = np.log(sums[j])
    if tiny:
        clear_cells(words, targets, targets.shape[0])


@kernel
def _pass_layer(moves, turned, cycle, step, gap, cells, logs, kind, targets, layers, arrivals):
    """States through a gap to the targets: ln p_t^- (SUM) or the best paths (BEST).

    The last move is made backward, from the targets: they are few, the layer may be the map."""
    kind = place(cells, logs, kind, layers.here)
    layers, n, kind, shift, _ = pass_towards(
        moves, turned, cycle, step, 1, gap - 1, kind, cells.shape[0], layers, targets
    )
    here, words = layers.here, layers.words
    last = turned.indptr[cycle[(step + gap - 1) % cycle.shape[0]]]
    if kind == BEST:
        gather_best(last, turned, here, n, targets, words, arrivals.best, arrivals.back)
    else:
        gather_sums(last, turned, here, n, targets, kind, words, arrivals.sum)
        for j in targets:
            arrivals.sum[j] += shift
    empty_layer(here, n)


@kernel
def _pass_both(moves, turned, cycle, step, gap, cells, logs, score, targets, layers, arrivals):
    """``_pass_layer`` of SUM and BEST at once, where a gap is short and nothing underflows; returns
    whether that is so."""
    if not is_short(moves, gap - 1, targets, layers):
        return False
    if not place_both(cells, logs, score, layers.here):
        return False
    layers, n, kind, _, _ = pass_towards(
        moves, turned, cycle, step, 1, gap - 1, BOTH, cells.shape[0], layers, targets
    )
    done = kind == BOTH and gather_both(turned, layers.here, targets, arrivals)
    empty_layer(layers.here, n)
    return done


@kernel
def _reachable_after(moves, turned, cycle, step, gap, cells, layers, targets):
    """Where a gap without a release at its end leads to; returns how many locations."""
    kind = place(cells, np.zeros(cells.shape[0]), BEST, layers.here)
    layers, n, _, _, _ = pass_gap(moves, turned, cycle, step, 1, gap, kind, cells.shape[0], layers)
    for k in range(n):
        targets[k] = layers.here.cells[k]
    empty_layer(layers.here, n)
    return n


@kernel
def _pass_gap(moves, turned, seen, row, cells, logs, n, space):
    """From the states of the row before to the n targets of this one (-1: wherever moves lead).

    Returns how many targets there are."""
    cycle, step = seen.cycle, seen.steps[row - 1]
    gap, layers, arrivals = seen.steps[row] - step, space.layers, space.arrivals
    if n < 0:
        n = _reachable_after(moves, turned, cycle, step, gap, cells, layers, space.targets)
    targets, score = space.targets[:n], space.score[: cells.shape[0]]
    if not _pass_both(
        moves, turned, cycle, step, gap, cells, logs, score, targets, layers, arrivals
    ):
        _pass_layer(moves, turned, cycle, step, gap, cells, logs, SUM, targets, layers, arrivals)
        _pass_layer(moves, turned, cycle, step, gap, cells, score, BEST, targets, layers, arrivals)
    return n


@kernel
def _keep_states(targets, likelihood, arrivals, messages, begin, score):
    """The targets that a move leads to become states from ``begin`` on; returns how many."""
    sums, best, back = arrivals
    _, cells, came_from, _, logs, likely, _ = messages
    m = 0
    for k in range(targets.shape[0]):
        j = targets[k]
        if back[j] >= 0:
            at = begin + m
            cells[at], came_from[at] = j, back[j]
            logs[at], likely[at] = sums[j] + likelihood[k], likelihood[k]
            score[m] = best[j] + likelihood[k]
            m += 1
    return m


@kernel
def _normalise(messages, begin, end, score):
    """p = exp(logs) / sum, logs = ln p, best score 0; returns (ln sum, largest likelihood)."""
    _, _, _, p, logs, likelihood, _ = messages
    top = best = most = -np.inf
    total = 0.0
    for k in range(begin, end):
        top, best, most = max(top, logs[k]), max(best, score[k - begin]), max(most, likelihood[k])
    for k in range(begin, end):
        p[k] = np.exp(logs[k] - top)
        total += p[k]
    shift, scale = top + np.log(total), 1.0 / total
    for k in range(begin, end):
        p[k] *= scale
        logs[k] -= shift
        score[k - begin] -= best
    return shift, most


@kernel
def filter_person(moves, turned, seen, u, space, messages, lift):
    """Forward over all rows of person u.

    Returns (messages, ln Pr(all z), -1), or the row whose release is impossible instead of -1.
    ``lift``: the largest ln p_t^+(s) / p_t^-(s) of each row. ``space.score`` holds the last row's
    path scores. ``turned``: the transposed matrices, needed where a gap is longer than 1."""
    cycle, firsts, steps, starts, seen_cells, seen_logs = seen[:6]
    layers, arrivals, _, targets, likelihood, score, _, _ = space
    start, indptr, words, first = messages.start, moves.indptr, layers.words, firsts[u]
    # all that releases allow; only rows without one may need more
    messages = with_states(messages, 0, starts[firsts[u + 1]] - starts[first])
    evidence = 0.0
    start[0] = 0
    for r in range(firsts[u + 1] - first):
        begin, row = start[r], first + r
        low, high = starts[row], starts[row + 1]
        n = -1
        if high > low:
            n = _allowed(seen_cells, seen_logs, low, high, targets, likelihood)
        if r == 0:
            m = _first_states(seen, u, row, messages, score)
        else:
            before, step = start[r - 1], steps[row - 1]
            cells, logs = messages.cells[before:begin], messages.logs[before:begin]
            if steps[row] == step + 1:
                matrix = indptr[cycle[step % cycle.shape[0]]]
                if n < 0:
                    n = _reachable(matrix, moves.indices, cells, words, targets)
                p = messages.p[before:begin]
                _move_once(matrix, moves, cells, p, logs, score, targets[:n], arrivals, words)
            else:
                n = _pass_gap(moves, turned, seen, row, cells, logs, n, space)
            if high == low:
                for k in range(n):
                    likelihood[k] = 0.0
            if begin + n > messages.cells.shape[0]:
                messages = with_states(messages, begin, n)
            m = _keep_states(targets[:n], likelihood, arrivals, messages, begin, score)
        start[r + 1] = begin + m
        if m == 0:
            return messages, -np.inf, row
        shift, most = _normalise(messages, begin, begin + m, score)
        evidence += shift
        lift[row] = most - shift if high > low else 0.0
    return messages, evidence, -1
