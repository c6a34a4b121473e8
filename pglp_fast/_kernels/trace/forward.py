"""The adversary's forward step: p_t^- = p_{t-1}^+ M on a sparse distribution (spec section 7).

The paper's section "Location Release via Hidden Markov Model"; the forward recursion of Rabiner, A
Tutorial on Hidden Markov Models (Proceedings of the IEEE 77, 1989). A distribution is a list of
cells with a value beside each. Which cells are listed is structural: what transitions exist. Values
are probabilities, up to a factor; where one of them would underflow all are logarithms instead, so
no possible location is ever lost."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set1
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.logarithms import exponentials, log_add, normalise
from pglp_fast._kernels.base.markov import scatter, scatter_dense
from pglp_fast._kernels.base.sorting import order_by, sort_numbers

from .records import LOGS, OWN

Belief = namedtuple("Belief", "kind cells values")

TINY = 1e-280  # sums below this are done again with logarithms
FLOOR = 1e-220  # a distribution with a smaller probability is kept as logarithms: it may move on
_SETTLED = 1e-13  # ln of the factor by which what silence leaves out may change a probability
_FAR = 1 << 20  # moves that are left out, and count
_DEEPEST = -700.0  # ln of probabilities that no sum of epsilons in use makes likely again


@kernel
def _sum_logarithms(indptr, moves, cells, logs, sums, flagged):
    """sums[j] = ln sum_i exp(logs_i) M[i, j] for the targets j that are flagged."""
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(indptr[i], indptr[i + 1]):
            if flagged[moves.indices[e]]:
                sums[moves.indices[e]] = -np.inf
    for k in range(cells.shape[0]):
        i = cells[k]
        for e in range(indptr[i], indptr[i + 1]):
            j = moves.indices[e]
            if flagged[j]:
                sums[j] = log_add(sums[j], logs[k] + np.log(moves.data[e]))


@kernel
def _forward_logarithms(indptr, moves, belief, top, targets, values, space):
    """The values of a move as logarithms; sums that underflow are made again."""
    sums, flagged = space.sums, space.flagged
    for k in range(targets.shape[0]):
        j = targets[k]
        if sums[j] < TINY:
            flagged[j] = True
        else:
            values[k] = np.log(sums[j]) + top
    logs = belief.values
    if belief.kind == OWN:
        logs = np.log(logs)
    _sum_logarithms(indptr, moves, belief.cells, logs, sums, flagged)
    for k in range(targets.shape[0]):
        if flagged[targets[k]]:
            values[k] = sums[targets[k]]
            flagged[targets[k]] = False
    return Belief(LOGS, targets, values)


@kernel
def forward(moves, period, belief, space):
    """p M of a sparse p, in the work space, whose bitmask receives the targets.

    Sums are made of plain products; where one underflows, all become logarithms."""
    indptr, indices, data = moves.indptr[period], moves.indices, moves.data
    cells, p, sums, words = belief.cells, belief.values, space.sums, space.domain.words
    top = 0.0
    if belief.kind == LOGS:
        p = space.likelihood[: cells.shape[0]]
        top = exponentials(belief.values, p)
    if cells.shape[0] > sums.shape[0] >> 4:
        n = scatter_dense(indptr, indices, data, cells, p, words, sums, space.cells)
    else:
        n = scatter(indptr, indices, data, cells, p, words, sums, space.cells)
    targets, values = space.cells[:n], space.values[:n]
    least = np.inf
    for k in range(n):
        values[k] = sums[targets[k]]
        least = min(least, values[k])
    if least < TINY:
        return _forward_logarithms(indptr, moves, belief, top, targets, values, space)
    return Belief(OWN, targets, values)


@kernel
def settle(belief):
    """Normalise in place; returns the belief, as probabilities wherever these do not underflow."""
    values = belief.values
    if belief.kind == LOGS:
        normalise(values)
        if values.min() < np.log(FLOOR):
            return belief
        for k in range(values.shape[0]):
            values[k] = np.exp(values[k])
    total, least = 0.0, np.inf
    for k in range(values.shape[0]):
        total += values[k]
        least = min(least, values[k])
    for k in range(values.shape[0]):
        values[k] /= total
    if least < FLOOR * total:
        for k in range(values.shape[0]):
            values[k] = np.log(values[k])
        return Belief(LOGS, belief.cells, values)
    return Belief(OWN, belief.cells, values)


@kernel
def _keep(belief, space):
    """The belief in the user's own room; the bitmask is emptied."""
    n = belief.cells.shape[0]
    cells, values = space.own_cells[:n], space.own_values[:n]
    for k in range(n):
        cells[k], values[k] = belief.cells[k], belief.values[k]
    clear_cells(space.domain.words, belief.cells, n)
    return settle(Belief(belief.kind, cells, values))


@bare
def _distance(a, b):
    """The largest |ln a_k - ln b_k| of two distributions over the same cells; infinite where these
    differ. Cells that both hold all but impossible do not count."""
    if a.kind != b.kind or a.cells.shape[0] != b.cells.shape[0]:
        return np.inf
    largest = 0.0
    for k in range(a.cells.shape[0]):
        if a.cells[k] != b.cells[k]:
            return np.inf
        x, y = a.values[k], b.values[k]
        if a.kind == OWN:
            # |ln x - ln y| is at most |x - y| / min(x, y)
            largest = max(largest, abs(x - y) / min(x, y))
        elif max(x, y) > _DEEPEST:
            largest = max(largest, abs(x - y))
    return largest


@kernel
def through_silence(moves, belief, at, step, space):
    """The belief of step ``at`` moved on to ``step``, in the user's own room.

    Silence ends in a cycle: of one distribution, or of as many as the chain's period. Brent's
    search finds it: the belief at step s, a power of two, is compared with the following ones. Let
    two, w moves apart, differ by a factor e^d at most, location by location: later releases
    multiply, so a location of 1e-50 must be as right as any other. No move makes two distributions
    differ by a larger factor, since M has no negative entry, so that n further moves, in whole
    cycles, change no probability by a factor above e^(d n / w). Where that is below ``_SETTLED``
    they are left out. Rounding alone makes d some 1e-16: beyond ``_FAR`` moves n counts as
    ``_FAR``, else w would have to grow for ever. The support must be the same to the last cell.
    Locations that only ever lose probability are followed until it is below e^``_DEEPEST``."""
    cycle, steps = moves.cycle, step - at
    then, since, next_mark, done = belief, np.int64(0), np.int64(1), np.int64(0)
    found = False
    while done < steps:
        period = cycle[(at + done) % cycle.shape[0]]
        belief = _keep(forward(moves, period, belief, space), space)
        done += 1
        apart = done - since
        if found or done == steps:
            continue
        if since > 0 and apart % cycle.shape[0] == 0:
            if _distance(belief, then) * min(steps - done, _FAR) <= _SETTLED * apart:
                done = steps - (steps - done) % apart
                found = True
        if done == next_mark and not found:
            then = Belief(belief.kind, belief.cells.copy(), belief.values.copy())
            since, next_mark = done, 2 * done
    return belief


@kernel
def predict(moves, belief, step, space):
    """p_t^- at ``step`` of a belief of the step before; the work space's bitmask receives the
    cells."""
    return forward(moves, moves.cycle[(step - 1) % moves.cycle.shape[0]], belief, space)


@kernel
def _most_likely(belief, delta):
    """Indices of the smallest set of mass >= 1 - delta, largest first, ties to the lower."""
    p = belief.values.copy()
    if belief.kind == LOGS:
        exponentials(belief.values, p)
    size = p.shape[0]
    falling, order, room = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    total = 0.0
    for k in range(size):
        falling[k] = -belief.values[k]
        total += p[k]
    order_by(falling, order, room)
    mass, n = 0.0, 0
    while n < order.shape[0] and mass < (1.0 - delta) * total:
        mass += p[order[n]]
        n += 1
    kept = order[:n]
    sort_numbers(kept)
    return kept


@kernel
def cut_domain(delta, words, belief):
    """C_t and p_t^- on it: the support, or with delta > 0 the smallest set of mass 1 - delta."""
    if delta == 0.0:
        return belief
    kept = _most_likely(belief, delta)
    clear_cells(words, belief.cells, belief.cells.shape[0])
    cells, values = belief.cells[kept], belief.values[kept]
    for cell in cells:
        set1(words, cell)
    return Belief(belief.kind, cells, values)
