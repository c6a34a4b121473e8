"""Backward along the hidden chain: Pr(s_t | all z), and the entropy of the path.

The backward recursion beta_{t-1}(i) = sum_j M(i, j) Pr(z_t | j) beta_t(j), and the posterior
proportional to alpha_t(i) beta_t(i): the forward-backward algorithm (Rabiner, 1989). Given s_t,
what follows is a Markov chain with transitions q(j | i) proportional to M(i, j) b(j), where b =
Pr(z_t | j) beta_t(j), so its entropy is E(i) = sum_j q(j | i) (E(j) - ln q(j | i)). With F = E -
ln b that is F(i) = sum_j q(j | i) (F(j) - ln M(i, j)): no logarithm for each state."""

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set_cells, test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.logarithms import log_add, softmax

from .gaps import BACK, LOGS, empty_layer
from .records import TINY
from .short_gaps import pass_towards


@kernel
def _place_ahead(cells, likelihood, beta, begin, end, future, layer):
    """b and F of the states begin..end-1 as a layer; returns (how many have any, its kind)."""
    listed, value, other, _ = layer
    top = -np.inf
    least = np.inf
    for k in range(begin, end):
        ahead = likelihood[k] + beta[k]
        top = max(top, ahead)
        if ahead > -np.inf:
            least = min(least, ahead)
    kind = LOGS if least - top < np.log(TINY) else BACK
    n = 0
    for k in range(begin, end):
        ahead = likelihood[k] + beta[k] - top
        if ahead > -np.inf:
            listed[n] = cells[k]
            value[cells[k]] = ahead if kind == LOGS else np.exp(ahead)
            other[cells[k]] = future[k - begin] - ahead
            n += 1
    return n, kind


@kernel
def _gather_logarithms(indptr, moves, cells, begin, end, layer, kind, words, beta, future):
    """``_gather_back`` by logarithms, for the states whose plain sum is not there (beta is NaN)."""
    indices, logs, value, other = moves.indices, moves.logs, layer.value, layer.other
    for k in range(begin, end):
        if not np.isnan(beta[k]):
            continue
        found, mean = -np.inf, 0.0
        for e in range(indptr[cells[k]], indptr[cells[k] + 1]):
            j = indices[e]
            if test1(words, j):
                term = logs[e] + (value[j] if kind == LOGS else np.log(value[j]))
                found = log_add(found, term)
                mean += np.exp(term - found) * (other[j] - logs[e] - mean)
        beta[k], future[k - begin] = found, mean


@kernel
def _gather_back(indptr, moves, cells, begin, end, layer, n, kind, words, beta, future):
    """beta = ln b and future = F of states before a layer; -inf and 0 of a dead end."""
    indices, data, logs = moves.indices, moves.data, moves.logs
    value, other = layer.value, layer.other
    plain = True
    for k in range(begin, end):
        total = mean = 0.0
        if kind == BACK:
            for e in range(indptr[cells[k]], indptr[cells[k] + 1]):
                q = data[e] * value[indices[e]]
                total += q
                mean += q * (other[indices[e]] - logs[e])
        if total >= TINY:
            beta[k], future[k - begin] = np.log(total), mean / total
        else:
            beta[k], plain = np.nan, False
    if not plain:
        set_cells(words, layer.cells[:n])
        _gather_logarithms(indptr, moves, cells, begin, end, layer, kind, words, beta, future)
        clear_cells(words, layer.cells, n)


@kernel
def smooth_person(moves, turned, seen, u, space, messages, last):
    """Backward over the rows of person u: ``messages.beta`` = ln Pr(later z | s), of each row short
    of a constant.

    From releases up to row ``last``, which counts from the person's first. ``space.future`` is then
    the entropy in nats of what follows each state of the first row, given all z."""
    cycle, steps, first = seen.cycle, seen.steps, seen.first[u]
    start, cells, _, _, _, likelihood, beta = messages
    layers, future, indptr = space.layers, space.future, moves.indptr
    for k in range(start[last], start[last + 1]):
        beta[k] = future[k - start[last]] = 0.0
    for r in range(last, 0, -1):
        before, begin, end = start[r - 1], start[r], start[r + 1]
        step, gain = steps[first + r - 1], 0.0
        gap = steps[first + r] - step
        n, kind = _place_ahead(cells, likelihood, beta, begin, end, future, layers.here)
        if gap > 1:
            layers, n, kind, shift, more = pass_towards(
                turned, moves, cycle, step + gap - 1, -1, gap - 1, kind, n, layers,
                cells[before:begin],
            )  # fmt: skip
            gain = shift + more
        _gather_back(
            indptr[cycle[step % cycle.shape[0]]], moves, cells, before, begin, layers.here, n,
            kind, layers.words, beta, future,
        )  # fmt: skip
        empty_layer(layers.here, n)
        for k in range(before, begin):
            # E = F + ln b; what later releases rule out has no future
            more = future[k - before] + beta[k] + gain
            future[k - before] = max(more, 0.0) if beta[k] > -np.inf else 0.0


@kernel
def smoothed(logs, beta, begin, end, p):
    """p = Pr(s_t | all z) from ln p_t^+ and ln Pr(later z | s_t) of the states begin..end-1.

    Returns the shift in ln p = logs + beta - shift."""
    n = end - begin
    for k in range(n):
        p[k] = logs[begin + k] + beta[begin + k]
    return softmax(p[:n])
