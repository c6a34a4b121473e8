"""Several moves without a release in between: a layer of locations is moved on and on.

Nothing is kept of the steps of a gap but the layer itself. What Viterbi's recursion needs from
before the gap, the state that the best path came from, travels with the layer; so does the entropy
of the path on the way back.

Every recursion here is monotone in its values, and scaling all of them scales the result. So it
never drives two layers further apart, measured by the largest and the smallest ratio of their
values. If a layer comes back, within a factor 1 + d, after a window of w moves, then m windows
later it is where it was within (1 + d)^m, short of a common factor. Layers are compared with one
saved at moves 1, 3, 7, 15, ... (Brent, An Improved Monte Carlo Factorization Algorithm, 1980),
which finds any window, and so the period of a periodic chain; d of 2^-50 a move is what rounding
would add on the way."""

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set1, set_cells, sort_cells, test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.logarithms import log_add

from .records import TIE, TINY, Layers

# what moves:
PLAIN = 0  # value: a probability; may underflow, and settles by the sum of all changes
SUM = 1  # value: a probability
BEST = 2  # value: the best path's score; origin: the state that the path comes from
BACK = 3  # value: b = Pr(later releases | s); other: entropy of the path from s on, less ln b
LOGS = 4  # as BACK or SUM, with ln b for a value
BOTH = 5  # SUM and BEST at once; other: the score
SPLIT = 6  # what BOTH becomes where a sum underflows: each is to be moved by itself

_ROUNDING = 2.0**-50
_MOST = 0.2  # share of the map from which on a layer is pulled, not pushed


@kernel
def _push_logarithms(indptr, indices, logs, here, n, there, words):
    """``move_layer`` of LOGS: sums of exponentials, each relative to the largest so far."""
    cells, value, other, _ = there
    cells_before, value_before, other_before, _ = here
    m = 0
    for k in range(n):
        i = cells_before[k]
        for e in range(indptr[i], indptr[i + 1]):
            j, term = indices[e], value_before[i] + logs[e]
            if not test1(words, j):
                set1(words, j)
                cells[m], value[j], other[j] = j, -np.inf, 0.0
                m += 1
            value[j] = log_add(value[j], term)
            other[j] += np.exp(term - value[j]) * (other_before[i] - logs[e] - other[j])
    return m


@kernel
def _push(indptr, indices, data, logs, here, n, there, words, kind):
    """``move_layer`` of all kinds but LOGS; ``other`` of BACK is not yet divided by b."""
    cells, value, other, origin = there
    cells_before, value_before, other_before, origin_before = here
    nothing = -np.inf if kind == BEST else 0.0
    no_other = -np.inf if kind == BOTH else 0.0
    m = 0
    for k in range(n):
        i = cells_before[k]
        w, f, source = value_before[i], other_before[i], origin_before[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            so_far = value[j]
            if so_far == 0.0 and not test1(words, j):  # values are 0 where nothing is yet
                set1(words, j)
                cells[m], so_far, other[j] = j, nothing, no_other
                m += 1
            if kind == BEST:
                path = w + logs[e]
                # scores of a tie differ by rounding: the lower predecessor stays
                if path > so_far and path - TIE * (1.0 + abs(path)) > so_far:
                    value[j], origin[j] = path, source
            else:
                q = w * data[e]
                value[j] = so_far + q
                if kind == BACK:
                    other[j] += q * (f - logs[e])
                elif kind == BOTH:
                    path = f + logs[e]
                    if path > other[j] and path - TIE * (1.0 + abs(path)) > other[j]:
                        other[j], origin[j] = path, source
    return m


@kernel
def move_layer(indptr, indices, data, logs, here, n, there, words, kind):
    """Move the n locations of ``here`` on to ``there``; returns (how many, least value)."""
    if kind == LOGS:
        m = _push_logarithms(indptr, indices, logs, here, n, there, words)
    else:
        m = _push(indptr, indices, data, logs, here, n, there, words, kind)
    cells, value, other, _ = there
    sort_cells(words, cells, m)
    clear_cells(words, cells, m)
    least = np.inf
    for k in range(m):
        least = min(least, value[cells[k]])
        if kind == BACK:
            other[cells[k]] /= value[cells[k]]
    return m, least


@kernel
def _pull_sums(indptr, indices, data, logs, here, there, kind):
    """``pull_layer`` of PLAIN, SUM and BACK."""
    _, before, other_before, _ = here
    cells, value, other, _ = there
    m, least = 0, np.inf
    for j in range(value.shape[0]):
        total = mean = 0.0
        if kind == BACK:
            for e in range(indptr[j], indptr[j + 1]):
                q = before[indices[e]] * data[e]
                total += q
                mean += q * (other_before[indices[e]] - logs[e])
        else:
            for e in range(indptr[j], indptr[j + 1]):
                total += before[indices[e]] * data[e]
        reached = total > 0.0
        if not reached:  # or did all products underflow?
            for e in range(indptr[j], indptr[j + 1]):
                reached |= before[indices[e]] > 0.0
        if reached:
            cells[m], value[j], other[j] = j, total, mean / max(total, TINY)
            least = min(least, total)
            m += 1
    return m, least


@kernel
def _pull_best(indptr, indices, logs, here, n, there, words):
    """``pull_layer`` of BEST."""
    _, before, _, origin_before = here
    cells, value, _, origin = there
    set_cells(words, here.cells[:n])
    for i in range(value.shape[0]):
        if not test1(words, i):
            before[i] = -np.inf
    clear_cells(words, here.cells, n)
    m = 0
    for j in range(value.shape[0]):
        best, at = -np.inf, -1
        for e in range(indptr[j], indptr[j + 1]):
            path = before[indices[e]] + logs[e]
            if path > best and path - TIE * (1.0 + abs(path)) > best:
                best, at = path, indices[e]
        if at >= 0:
            cells[m], value[j], origin[j] = j, best, origin_before[at]
            m += 1
    for i in range(value.shape[0]):
        before[i] = 0.0
    return m, 0.0


@kernel
def pull_layer(turned, period, here, n, there, words, kind):
    """``move_layer`` for a layer that is most of the map: every location adds up what comes to it.

    By the transposed matrix, in order; several times as fast as scattering."""
    _, indices, data, logs = turned
    indptr = turned.indptr[period]
    if kind == BEST:
        return _pull_best(indptr, indices, logs, here, n, there, words)
    return _pull_sums(indptr, indices, data, logs, here, there, kind)


@kernel
def empty_layer(layer, n):
    """Values 0 again."""
    cells, value = layer.cells, layer.value
    for k in range(n):
        value[cells[k]] = 0.0


@kernel
def _to_logarithms(layer, n):
    cells, value = layer.cells, layer.value
    for k in range(n):
        value[cells[k]] = np.log(value[cells[k]])


@kernel
def _keep(layer, n, kept):
    cells, value, other, origin = layer
    kept_cells, kept_value, kept_other, kept_origin = kept
    for k in range(n):
        cell = cells[k]
        kept_cells[k], kept_value[cell] = cell, value[cell]
        kept_other[cell], kept_origin[cell] = other[cell], origin[cell]


@kernel
def _settled(here, kept, n, kind, window):
    """(whether the layer came back, by how much ln value grew, by how much other grew)."""
    cells, value, other, origin = here
    kept_cells, kept_value, kept_other, kept_origin = kept
    slack = window * _ROUNDING
    low, high, less, more, change = np.inf, -np.inf, np.inf, -np.inf, 0.0
    for k in range(n):
        cell = cells[k]
        if cell != kept_cells[k] or (kind == BEST and origin[cell] != kept_origin[cell]):
            return False, 0.0, 0.0
        a, b = value[cell], kept_value[cell]
        if kind == PLAIN:
            change += abs(a - b)
            if change > slack:
                return False, 0.0, 0.0
            continue
        plain = kind == SUM or kind == BACK
        grown = (a - b) / b if plain else a - b
        low, high = min(low, grown), max(high, grown)
        if high - low > slack * (1.0 if plain else 1.0 + abs(a)):
            return False, 0.0, 0.0
        if kind >= BACK:
            grown = other[cell] - kept_other[cell]
            less, more = min(less, grown), max(more, grown)
            if more - less > slack * (1.0 + abs(other[cell])):
                return False, 0.0, 0.0
    if kind == PLAIN:
        return True, 0.0, 0.0
    drift = np.log1p(high) if kind == SUM or kind == BACK else high
    return True, drift, (more if kind >= BACK else 0.0)


@kernel
def move(moves, turned, period, here, n, there, words, kind):
    """One move of a layer; returns (how many locations, the kind it is of now)."""
    _, indices, data, logs = moves
    if n > _MOST * here.value.shape[0] and kind < LOGS:
        m, least = pull_layer(turned, period, here, n, there, words, kind)
    else:
        indptr = moves.indptr[period]
        m, least = move_layer(indptr, indices, data, logs, here, n, there, words, kind)
    if kind == BOTH and least < TINY:
        return m, SPLIT
    if (kind == SUM or kind == BACK) and least < TINY:
        empty_layer(there, m)
        _to_logarithms(here, n)
        kind = LOGS
        indptr = moves.indptr[period]
        m, _ = move_layer(indptr, indices, data, logs, here, n, there, words, kind)
    return m, kind


@kernel
def pass_gap(moves, turned, cycle, step, stride, count, kind, n, layers):
    """``count`` moves of the n locations of ``here``, by the matrices of ``step``, ``step +
    stride``...; ``turned``: the same matrices transposed.

    Returns (the layers with the result in ``here``, how many locations, the kind it is of now, what
    to add to ln value, what to add to other)."""
    here, there, kept, words, hops = layers
    power, since, n_kept, found = 1, 0, -1, False
    shift = gain = 0.0
    while count > 0:
        period, before = cycle[step % cycle.shape[0]], kind
        m, kind = move(moves, turned, period, here, n, there, words, kind)
        if kind != before:
            n_kept = -1
        empty_layer(here, n)
        here, there, n = there, here, m
        step, count, since = step + stride, count - 1, since + 1
        if found or count == 0:
            continue
        if n == n_kept and since % cycle.shape[0] == 0:
            found, drift, more = _settled(here, kept, n, kind, since)
            if found:
                windows = count // since
                shift, gain, count = windows * drift, windows * more, count - windows * since
        if since >= power and not found:
            _keep(here, n, kept)
            n_kept, power, since = n, 2 * power, 0
    return Layers(here, there, kept, words, hops), n, kind, shift, gain


@kernel
def place(cells, logs, kind, layer):
    """States as a layer, by probability if none underflows; returns the kind it is of."""
    n = cells.shape[0]
    if kind != BEST and (n == 0 or logs.min() < np.log(TINY)):
        kind = LOGS
    listed, value, other, origin = layer
    for k in range(n):
        listed[k] = cells[k]
        value[cells[k]] = logs[k] if kind == BEST or kind == LOGS else np.exp(logs[k])
        other[cells[k]], origin[cells[k]] = 0.0, k
    return kind


@kernel
def gather_sums(indptr, turned, layer, n, targets, kind, words, out):
    """out = ln of what a layer brings to each target, by a transposed matrix."""
    set_cells(words, layer.cells[:n])
    value, indices, data, logs = layer.value, turned.indices, turned.data, turned.logs
    for j in targets:
        total, found = 0.0, -np.inf
        for e in range(indptr[j], indptr[j + 1] if kind == SUM else indptr[j]):
            total += value[indices[e]] * data[e]
        if total >= TINY:
            out[j] = np.log(total)
            continue
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            if test1(words, i):
                term = value[i] if kind == LOGS else np.log(value[i])
                found = log_add(found, term + logs[e])
        out[j] = found
    clear_cells(words, layer.cells, n)


@kernel
def gather_best(indptr, turned, layer, n, targets, words, best, back):
    """The best path to each target and the state it comes from, by a transposed matrix."""
    set_cells(words, layer.cells[:n])
    value, origin, indices, logs = layer.value, layer.origin, turned.indices, turned.logs
    for j in targets:
        best[j], back[j] = -np.inf, -1
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            if test1(words, i):
                path = value[i] + logs[e]
                if path > best[j] and path - TIE * (1.0 + abs(path)) > best[j]:
                    best[j], back[j] = path, origin[i]
    clear_cells(words, layer.cells, n)
