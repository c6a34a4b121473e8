"""What an adversary learns from released traces: messages along the hidden chain, sparse and by logarithm.

A user's steps are a chain of short lists, the *states* of a step: the locations that transitions lead to and the release at that
step allows. Forward, each state gets ln p_t^+ and the best way to it (Viterbi); backward, ln Pr(z_{t+1}.. | s). Sums are
made of plain products; one that underflows is made again with logarithms, so that a possible path is never lost, however
unlikely a release makes it look. Work is O(states x moves); scratch space as large as the map is only touched where states are.
"""

from collections import namedtuple

import numpy as np

from .bits import set1, test1
from .guess import STACK, Mass, best_guess, expected_distance
from .hmm import clear_cells, scatter, sort_cells
from .jit import kernel

RELEASED, MAP, VITERBI, BAYES, ONLINE_MAP, ONLINE_BAYES = range(6)
ESTIMATORS = 6

_TIE = 1e-11  # logarithms that agree to so many digits count as equal
_TINY = 1e-280  # sums below this are done again with logarithms
_SETTLED = 1e-13  # a distribution that changed by less has the same guess

# the matrices of all periods: row i of period k is indptr[k, i]..indptr[k, i + 1]; logs = ln data
Moves = namedtuple("Moves", "indptr indices data logs")
# evidence: rows of users x T, and the prior (row ``of[u]``) at each user's first release
Seen = namedtuple("Seen", "periods start cells logs of prior_start prior_cells prior_logs")
# states of step t at start[t]..start[t + 1]: (location, place of its best predecessor), (ln p_t^+, ln Pr(z_t | s))
Messages = namedtuple("Messages", "start ints floats")
# as large as the map: place (all -1) and words (all 0), then one number for each state of a step; mass, boxes and bounds are
# where guesses are worked out
Scratch = namedtuple("Scratch", "place words targets back sums best peak score like beta ahead spread mass boxes bounds")
# (users, T) each; guesses and errors are (estimators, users, T)
Report = namedtuple("Report", "guesses errors entropy lift online_error online_entropy path_entropy log_evidence")


@kernel
def make_scratch(n, dx, dy, cols):
    """Work space of one thread. All of it may be touched, little of it is."""
    mass = Mass(np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n), dx, dy, cols)
    return Scratch(
        np.full(n, -1, np.int32), np.zeros((n + 63) >> 6, np.uint64), np.empty(n, np.int32), np.empty(n, np.int32),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        mass, np.empty((STACK, 5), np.int64), np.empty(max(n, STACK)),
    )  # fmt: skip


@kernel
def make_messages(steps):
    return Messages(np.zeros(steps + 1, np.int64), np.empty((2, 1024), np.int32), np.empty((2, 1024)))


@kernel
def _room(messages, need):
    """Messages with room for so many states."""
    have = messages.ints.shape[1]
    if need <= have:
        return messages
    ints, floats = np.empty((2, 2 * need), np.int32), np.empty((2, 2 * need))
    for row in range(2):
        for k in range(have):
            ints[row, k], floats[row, k] = messages.ints[row, k], messages.floats[row, k]
    return Messages(messages.start, ints, floats)


@kernel
def first_flaw(start, cells, logs, size):
    """(row, what is wrong with it: 1 a cell off the map, 2 cells do not ascend, 3 a logarithm is NaN or +inf), or (-1, 0)."""
    for row in range(start.shape[0] - 1):
        for k in range(start[row], start[row + 1]):
            if cells[k] < 0 or cells[k] >= size:
                return row, 1
            if k > start[row] and cells[k] <= cells[k - 1]:
                return row, 2
            if not logs[k] < np.inf:
                return row, 3
    return -1, 0


# -- forward


@kernel
def _enter(seen, u, t, steps, messages, score, like):
    """States of the first release: where the prior and the release agree; returns how many."""
    row = u * steps + t
    low, last = seen.prior_start[seen.of[u]], seen.prior_start[seen.of[u] + 1]
    n = 0
    for k in range(seen.start[row], seen.start[row + 1]):
        cell = seen.cells[k]
        low += np.searchsorted(seen.prior_cells[low:last], cell)
        if low == last:
            break
        if seen.prior_cells[low] == cell and seen.logs[k] > -np.inf:
            messages.ints[0, n], messages.ints[1, n] = cell, -1
            messages.floats[0, n], messages.floats[1, n] = seen.prior_logs[low] + seen.logs[k], seen.logs[k]
            score[n], like[n] = messages.floats[0, n], seen.logs[k]
            n += 1
    return n


@kernel
def _reach(moves, period, cells, words, out):
    """Every location that a move leads to, ascending; returns how many."""
    n = 0
    for i in cells:
        for e in range(moves.indptr[period, i], moves.indptr[period, i + 1]):
            j = moves.indices[e]
            if not test1(words, j):
                set1(words, j)
                out[n] = j
                n += 1
    sort_cells(words, out, n)
    clear_cells(words, out, n)
    return n


@kernel
def _relog(moves, period, cells, logs, n, place, sums, peak):
    """sums[k] = sum_i exp(logs_i + ln M_ik - peak_k), peak_k the largest exponent, for targets whose peak is not +inf."""
    for again in range(2):
        for i in range(cells.shape[0]):
            for e in range(moves.indptr[period, cells[i]], moves.indptr[period, cells[i] + 1]):
                k = place[moves.indices[e]]
                if k >= 0 and peak[k] < np.inf:
                    term = logs[i] + moves.logs[e]
                    if again:
                        sums[k] += np.exp(term - peak[k])
                    else:
                        peak[k] = max(peak[k], term)
        for k in range(n):
            if peak[k] < np.inf:
                sums[k] = np.log(sums[k]) + peak[k] if again else 0.0


@kernel
def _push(moves, period, cells, logs, n, scratch):
    """Move p_{t-1}^+ on to ``scratch.targets[:n]``: sums = ln p_t^-, best = the best path's score, back = where it comes from.

    back is -1 where no move leads.
    """
    targets, place, sums, best, back, score = (
        scratch.targets, scratch.place, scratch.sums, scratch.best, scratch.back, scratch.score,
    )  # fmt: skip
    for k in range(n):
        place[targets[k]] = k
        sums[k], best[k], back[k] = 0.0, -np.inf, -1
    indptr, indices, data, ln = moves.indptr, moves.indices, moves.data, moves.logs
    for i in range(cells.shape[0]):
        p, so_far = np.exp(logs[i]), score[i]
        for e in range(indptr[period, cells[i]], indptr[period, cells[i] + 1]):
            k = place[indices[e]]
            if k >= 0:
                sums[k] += p * data[e]
                path = so_far + ln[e]
                if path - _TIE * (1.0 + abs(path)) > best[k]:  # scores of a tie differ by rounding: the lower predecessor stays
                    best[k], back[k] = path, i
    tiny = False
    for k in range(n):
        redo = sums[k] < _TINY and back[k] >= 0
        scratch.peak[k] = -np.inf if redo else np.inf
        tiny |= redo
        if back[k] >= 0 and not redo:
            sums[k] = np.log(sums[k])
    if tiny:
        _relog(moves, period, cells, logs, n, place, sums, scratch.peak)
    for k in range(n):
        place[targets[k]] = -1


@kernel
def _settle(logs, score):
    """Normalise p_t^+, and scores to a largest of 0; returns ln Pr(z_t | what was released before)."""
    top, best = logs.max(), score.max()
    total = 0.0
    for k in range(logs.shape[0]):
        total += np.exp(logs[k] - top)
        score[k] -= best
    shift = top + np.log(total)
    for k in range(logs.shape[0]):
        logs[k] -= shift
    return shift


@kernel
def first_release(start, u, steps):
    """The step of user u's first release; ``steps`` where there is none."""
    t = 0
    while t < steps and start[u * steps + t] == start[u * steps + t + 1]:
        t += 1
    return t


@kernel
def filter_user(moves, seen, u, scratch, messages, lift):
    """Forward over all steps of user u: (messages, ln Pr(all z), -1), or the step whose release is impossible instead of -1.

    ``lift`` (T,): the largest ln p_t^+(s) / p_t^-(s) of each step. ``scratch.score`` holds the last step's path scores.
    """
    steps = seen.periods.shape[0]
    first = first_release(seen.start, u, steps)
    start = messages.start
    for t in range(min(first, steps - 1) + 1):
        start[t] = 0
    score, like = scratch.score, scratch.like
    evidence = 0.0
    for t in range(first, steps):
        begin = start[t]
        row, row_end = seen.start[u * steps + t], seen.start[u * steps + t + 1]
        if t == first:
            messages = _room(messages, row_end - row)
            m = _enter(seen, u, t, steps, messages, score, like)
        else:
            before, period = start[t - 1], seen.periods[t]
            n = 0
            if row < row_end:
                for k in range(row, row_end):
                    if seen.logs[k] > -np.inf:
                        scratch.targets[n], like[n] = seen.cells[k], seen.logs[k]
                        n += 1
            else:
                n = _reach(moves, period, messages.ints[0, before:begin], scratch.words, scratch.targets)
                for k in range(n):
                    like[k] = 0.0
            messages = _room(messages, begin + n)
            _push(moves, period, messages.ints[0, before:begin], messages.floats[0, before:begin], n, scratch)
            m = 0
            for k in range(n):
                if scratch.back[k] >= 0:
                    at = begin + m
                    messages.ints[0, at], messages.ints[1, at] = scratch.targets[k], scratch.back[k]
                    messages.floats[0, at], messages.floats[1, at] = scratch.sums[k] + like[k], like[k]
                    score[m] = scratch.best[k] + like[k]
                    m += 1
        start[t + 1] = begin + m
        if m == 0:
            return messages, -np.inf, t
        shift = _settle(messages.floats[0, begin : begin + m], score[:m])
        evidence += shift
        lift[t] = 0.0
        if row < row_end:
            lift[t] = messages.floats[1, begin : begin + m].max() - shift
    return messages, evidence, -1


# -- backward


@kernel
def _pull(moves, period, messages, t, beta, scratch):
    """From ln Pr(z_{t+1}.. | s_t) in ``beta`` to that of step t - 1, in place, each step short of a constant.

    ``scratch.spread``: H(s_t | s_{t-1}, all z) in nats for each state of step t - 1.
    """
    first, begin, end = messages.start[t - 1], messages.start[t], messages.start[t + 1]
    cells, like = messages.ints[0], messages.floats[1]
    place, ahead, weight, spread = scratch.place, scratch.ahead, scratch.sums, scratch.spread
    top = -np.inf
    for k in range(end - begin):
        ahead[k] = like[begin + k] + beta[k]
        top = max(top, ahead[k])
    for k in range(end - begin):
        place[cells[begin + k]] = k
        ahead[k] -= top
        weight[k] = np.exp(ahead[k])
    indptr, indices, data, ln = moves.indptr, moves.indices, moves.data, moves.logs
    for i in range(begin - first):
        row, row_end = indptr[period, cells[first + i]], indptr[period, cells[first + i] + 1]
        total = mean = shift = 0.0
        for e in range(row, row_end):
            k = place[indices[e]]
            if k >= 0 and weight[k] > 0.0:
                q = data[e] * weight[k]
                total += q
                mean += q * (ln[e] + ahead[k])
        if total < _TINY:  # once more, relative to this state's best successor
            shift = -np.inf
            for e in range(row, row_end):
                k = place[indices[e]]
                if k >= 0:
                    shift = max(shift, ln[e] + ahead[k])
            total = mean = 0.0
            if shift > -np.inf:
                for e in range(row, row_end):
                    k = place[indices[e]]
                    if k >= 0 and ahead[k] > -np.inf:
                        term = ln[e] + ahead[k] - shift
                        q = np.exp(term)
                        total += q
                        mean += q * term
        if total > 0.0:
            beta[i] = np.log(total) + shift
            spread[i] = max(np.log(total) - mean / total, 0.0)
        else:
            beta[i], spread[i] = -np.inf, 0.0  # a dead end: later releases rule it out
    for k in range(end - begin):
        place[cells[begin + k]] = -1


@kernel
def _posterior(logs, beta, p):
    """p = Pr(s_t | all z) from ln p_t^+ and ln Pr(z_{t+1}.. | s_t); returns the shift in ln p = logs + beta - shift."""
    top = -np.inf
    for k in range(logs.shape[0]):
        top = max(top, logs[k] + beta[k])
    total = 0.0
    for k in range(logs.shape[0]):
        p[k] = np.exp(logs[k] + beta[k] - top)
        total += p[k]
    for k in range(logs.shape[0]):
        p[k] /= total
    return top + np.log(total)


# -- what is reported of a distribution


@kernel
def _entropy(p, logs, beta, shift):
    """-sum p log2 p, for ln p = logs + beta - shift."""
    total = 0.0
    for k in range(p.shape[0]):
        if p[k] > 0.0:
            total -= p[k] * (logs[k] + beta[k] - shift)
    return max(total / np.log(2.0), 0.0)


@kernel
def _most_likely(logs, beta):
    """Place of the largest logs + beta, ties to the lower place."""
    best, at = -np.inf, 0
    for k in range(logs.shape[0]):
        value = logs[k] + beta[k]
        if value > -np.inf and value - _TIE * (1.0 + abs(value)) > best:
            best, at = value, k
    return at


@kernel
def _weigh(cells, p, lattice, mass):
    """Put a distribution on the lattice; returns how many locations have any of it."""
    n = 0
    for k in range(cells.shape[0]):
        if p[k] > 0.0:
            mass.cells[n], mass.w[n] = cells[k], p[k]
            mass.x[n], mass.y[n] = lattice[cells[k], 0], lattice[cells[k], 1]
            n += 1
    return n


# -- users


@kernel
def _report_online(messages, first, lattice, scratch, guesses, errors, entropies):
    """Guesses, expected errors and entropies under p_t^+ of one user. Nothing but zeros is written to ``scratch.beta``."""
    p, zero = scratch.sums, scratch.beta
    for t in range(first, messages.start.shape[0] - 1):
        begin, end = messages.start[t], messages.start[t + 1]
        cells, logs = messages.ints[0, begin:end], messages.floats[0, begin:end]
        for k in range(end - begin):
            p[k], zero[k] = np.exp(logs[k]), 0.0
        entropies[t] = _entropy(p[: end - begin], logs, zero, 0.0)
        guesses[ONLINE_MAP, t] = cells[_most_likely(logs, zero)]
        n = _weigh(cells, p, lattice, scratch.mass)
        guesses[ONLINE_BAYES, t], errors[t] = best_guess(scratch.mass, n, scratch.boxes, scratch.bounds)


@kernel
def attack_users(moves, seen, lattice, dx, dy, cols, start, stop, report, failed):
    """The whole attack on users start..stop-1; ``failed[u]`` is the step whose release is impossible, or -1.

    ``report.guesses[RELEASED]`` is given; everything else is filled in from each user's first release on.
    """
    steps = seen.periods.shape[0]
    scratch, messages = make_scratch(lattice.shape[0], dx, dy, cols), make_messages(steps)
    for u in range(start, stop):
        messages, report.log_evidence[u], failed[u] = filter_user(moves, seen, u, scratch, messages, report.lift[u])
        first = first_release(seen.start, u, steps)
        if failed[u] >= 0 or first == steps:
            continue
        guesses, errors = report.guesses[:, u], report.errors[:, u]
        beta, p = scratch.beta, scratch.sums
        n = messages.start[steps] - messages.start[steps - 1]
        for k in range(n):
            beta[k] = 0.0
        walker = _most_likely(scratch.score[:n], beta)
        _report_online(messages, first, lattice, scratch, guesses, report.online_error[u], report.online_entropy[u])
        path_entropy = 0.0
        for t in range(steps - 1, first - 1, -1):
            begin, end = messages.start[t], messages.start[t + 1]
            cells, logs = messages.ints[0, begin:end], messages.floats[0, begin:end]
            shift = _posterior(logs, beta, p)
            if t < steps - 1:
                for k in range(end - begin):
                    path_entropy += p[k] * scratch.spread[k]
            report.entropy[u, t] = _entropy(p[: end - begin], logs, beta, shift)
            guesses[MAP, t] = cells[_most_likely(logs, beta)]
            guesses[VITERBI, t] = cells[walker]
            walker = messages.ints[1, begin + walker]
            n = _weigh(cells, p, lattice, scratch.mass)
            guesses[BAYES, t], errors[BAYES, t] = best_guess(scratch.mass, n, scratch.boxes, scratch.bounds)
            for who in range(ESTIMATORS):
                if who != BAYES:
                    x, y = lattice[guesses[who, t], 0], lattice[guesses[who, t], 1]
                    errors[who, t] = expected_distance(scratch.mass, n, x, y)
            if t > first:
                _pull(moves, seen.periods[t], messages, t, beta, scratch)
        report.path_entropy[u] = path_entropy / np.log(2.0) + report.entropy[u, first]


@kernel
def judge_users(moves, seen, lattice, dx, dy, cols, start, stop, guesses, errors):
    """errors[u, t] = expected distance of guesses[u, t] (-1: none) under Pr(s_t | all z), for users start..stop-1."""
    steps = seen.periods.shape[0]
    scratch, messages = make_scratch(lattice.shape[0], dx, dy, cols), make_messages(steps)
    lift = np.empty(steps)
    for u in range(start, stop):
        messages, _, failed = filter_user(moves, seen, u, scratch, messages, lift)
        first = first_release(seen.start, u, steps)
        if failed >= 0 or first == steps:
            continue
        for k in range(messages.start[steps] - messages.start[steps - 1]):
            scratch.beta[k] = 0.0
        for t in range(steps - 1, first - 1, -1):
            begin, end = messages.start[t], messages.start[t + 1]
            if guesses[u, t] >= 0:
                _posterior(messages.floats[0, begin:end], scratch.beta, scratch.sums)
                n = _weigh(messages.ints[0, begin:end], scratch.sums, lattice, scratch.mass)
                x, y = lattice[guesses[u, t], 0], lattice[guesses[u, t], 1]
                errors[u, t] = expected_distance(scratch.mass, n, x, y)
            if t > first:
                _pull(moves, seen.periods[t], messages, t, scratch.beta, scratch)


@kernel
def look(moves, seen, size, u, t, smoothed, out):
    """out (N,) = Pr(s_t | all z), or p_t^+ where not ``smoothed``; t is not before the first release."""
    steps = seen.periods.shape[0]
    scratch, messages = make_scratch(size, 1.0, 1.0, 0), make_messages(steps)
    messages, _, _ = filter_user(moves, seen, u, scratch, messages, np.empty(steps))
    beta = scratch.beta
    last = steps - 1 if smoothed else t
    for k in range(messages.start[last + 1] - messages.start[last]):
        beta[k] = 0.0
    for later in range(last, t, -1):
        _pull(moves, seen.periods[later], messages, later, beta, scratch)
    begin, end = messages.start[t], messages.start[t + 1]
    _posterior(messages.floats[0, begin:end], beta, scratch.sums)
    for k in range(end - begin):
        out[messages.ints[0, begin + k]] = scratch.sums[k]


@kernel
def guess_unseen(moves, seen, lattice, dx, dy, cols, rows, firsts, horizons, start, stop, guesses):
    """guesses[g, e]: the best guess e steps after the prior ``rows[g]`` of step ``firsts[g]``, had nothing been released at all.

    Plain probabilities: what underflows is of no use to a guess.
    """
    size = lattice.shape[0]
    scratch = make_scratch(size, dx, dy, cols)
    cells, p, settled = np.empty(size, np.int32), np.empty(size), np.empty(size)
    for g in range(start, stop):
        low = seen.prior_start[rows[g]]
        n = seen.prior_start[rows[g] + 1] - low
        for k in range(n):
            cells[k], p[k] = seen.prior_cells[low + k], np.exp(seen.prior_logs[low + k])
        known = -1
        for e in range(horizons[g]):
            if e > 0:
                period = seen.periods[firsts[g] + e]
                n = scatter(
                    moves.indptr[period], moves.indices, moves.data, cells[:n], p, scratch.words, scratch.sums, scratch.targets
                )  # fmt: skip
                clear_cells(scratch.words, scratch.targets, n)
                for k in range(n):
                    cells[k], p[k] = scratch.targets[k], scratch.sums[scratch.targets[k]]
            change = np.inf
            if known == n:
                change = 0.0
                for k in range(n):
                    change += abs(p[k] - settled[k]) if cells[k] == scratch.back[k] else p[k] + settled[k]
            if change <= _SETTLED:
                guesses[g, e] = guesses[g, e - 1]
                continue
            known = n
            for k in range(n):
                scratch.back[k], settled[k] = cells[k], p[k]
            guesses[g, e], _ = best_guess(
                scratch.mass, _weigh(cells[:n], p, lattice, scratch.mass), scratch.boxes, scratch.bounds
            )
