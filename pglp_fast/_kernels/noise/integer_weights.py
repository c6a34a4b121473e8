"""From probabilities to integer weights, and the proof on those very integers.

A row of weights sums to TOTAL = 2**63. ``bound`` is a rational number just below e^eps, numerator /
2**shift; a shift of -1 stands for "more than any ratio of weights". An edge of weight w of the
policy has a bound of its own, just below e^(w eps), in ``protected``."""

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.policy.shapes import PLAIN, connected

from .alias_rows import TOTAL

MAX_DISTANCE = 1e-6  # between what is drawn and the exact probabilities, in total variation
# Of a row, left to fill up with: about what float64 is off in its sum, so that a second try may be
# needed; then more and more of it.
_LEAST_SPARE, _MORE_SPARE = 2.0**-51, 64.0
_LEAST_SHARE = 2.0**-60  # of a mean, mixed into a column: some units of TOTAL
_TOTAL = np.uint64(TOTAL)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ZERO = np.uint64(0)


@kernel
def mean_rows(P, component, out):
    """out[c] = mean of the rows of component c: a distribution that is positive wherever one of
    them is."""
    count = np.zeros(out.shape[0])
    for c in range(out.shape[0]):
        for z in range(out.shape[1]):
            out[c, z] = 0.0
    for s in range(P.shape[0]):
        c = component[s]
        for z in range(P.shape[1]):  # sums of whole rows would take a second more to compile
            out[c, z] += P[s, z]
        count[c] += 1.0
    for c in range(out.shape[0]):
        for z in range(out.shape[1]):
            out[c, z] /= max(count[c], 1.0)


@bare
def _multiply(a, b):
    """The 128-bit product of two 64-bit words, as (high, low)."""
    a0, a1, b0, b1 = a & _LOW, a >> _32, b & _LOW, b >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _32) + (other >> _32), a * b


@bare
def _within(w, v, numerator, shift):
    """Whether w * 2**shift <= numerator * v, in integers."""
    if w == _ZERO:
        return True
    if shift < 0:
        return v > _ZERO
    high, low = _multiply(numerator, v)
    w_high = w >> np.uint64(64 - shift) if shift > 0 else _ZERO
    w_low = w << np.uint64(shift)
    return w_high < high or (w_high == high and w_low <= low)


@bare
def within(w, v, bound):
    """Whether w <= bound * v, in integers."""
    return _within(w, v, bound.numerator, bound.shift)


@bare
def _pair_within(protected, e, w, v, bound):
    """Whether w <= v times the bound of protected pair e."""
    if protected.shifts.shape[0] == 0 or protected.shifts[e] == PLAIN:
        return within(w, v, bound)
    return _within(w, v, protected.numerators[e], protected.shifts[e])


@bare
def _log_ratio(w, v):
    if w == _ZERO:
        return -np.inf
    return np.log(np.float64(w)) - np.log(np.float64(v)) if v > _ZERO else np.inf


@bare
def _note(W, i, j, z, weight, worst):
    """Replace ``worst`` where ln W[i, z] / W[j, z], divided by the edge's weight, is larger."""
    ratio = _log_ratio(W[i, z], W[j, z]) / weight
    if ratio > worst[0]:
        worst[0], worst[1], worst[2], worst[3] = ratio, i, j, z


@bare
def _extremes(W, heads, z, most, least):
    """most[c], least[c] = the members of the clique of head c with the largest and the smallest
    weight of output z."""
    for s in range(heads.shape[0]):
        c = heads[s]
        if c == s:
            most[s] = least[s] = s
        elif W[s, z] > W[most[c], z]:
            most[c] = s
        elif W[s, z] < W[least[c], z]:
            least[c] = s


@kernel
def check_weights(W, protected, bound, worst):
    """Prove W[s, z] <= e^eps W[s', z] for every protected pair (s, s') and every z; e^(w eps) where
    the pair has a weight w.

    A clique is proved by the largest and the smallest weight of each column. Returns whether it
    holds; ``worst`` (4 floats) receives the largest ln ratio met, divided by w, and its s, s',
    z."""
    heads, pairs = protected.heads, protected.pairs
    k, weighted = W.shape[0], protected.weights.shape[0] > 0
    ok = True
    worst[0] = -np.inf
    most, least = np.empty(k, np.int64), np.empty(k, np.int64)
    for z in range(W.shape[1]):
        _extremes(W, heads, z, most, least)
        for s in range(k):
            if heads[s] == s and most[s] != least[s]:
                _note(W, most[s], least[s], z, 1.0, worst)
                ok &= within(W[most[s], z], W[least[s], z], bound)
        for e in range(pairs.shape[0]):
            i, j = pairs[e, 0], pairs[e, 1]
            if W[i, z] < W[j, z]:
                i, j = j, i
            _note(W, i, j, z, protected.weights[e] if weighted else 1.0, worst)
            ok &= _pair_within(protected, e, W[i, z], W[j, z], bound)
    return ok


@kernel
def _mark_broken(column, component, protected, bound, broken):
    """broken[c] = whether a protected pair of component c is above e^eps in this column of
    weights; returns whether any is."""
    heads, pairs = protected.heads, protected.pairs
    k = column.shape[0]
    most, least = column.copy(), column.copy()
    for c in range(broken.shape[0]):
        broken[c] = False
    for s in range(k):
        c = heads[s]
        most[c], least[c] = max(most[c], column[s]), min(least[c], column[s])
    for s in range(k):
        if heads[s] == s and not within(most[s], least[s], bound):
            broken[component[s]] = True
    for e in range(pairs.shape[0]):
        v, w = column[pairs[e, 0]], column[pairs[e, 1]]
        if not _pair_within(protected, e, max(v, w), min(v, w), bound):
            broken[component[pairs[e, 0]]] = True
    found = False
    for c in range(broken.shape[0]):
        found |= broken[c]
    return found


@kernel
def _round_column(P, z, component, means, scale, protected, bound, column):
    """Weights of output z: probabilities times ``scale``, rounded down, with just enough of each
    component's mean mixed in that every ratio holds.

    Rounding down breaks a tight ratio where weights are small. A constant added to both ends of an
    edge brings their ratio nearer to 1: of a share m of the mean, m * mean * (e^eps - 1) is slack.
    Only a component that needs it gets a share, so that a column of tiny weights is bought with
    its own tiny mass. At 1 all weights of the component are equal.
    """
    share, broken = np.zeros(means.shape[0]), np.empty(means.shape[0], np.bool_)
    while True:
        for s in range(P.shape[0]):
            c = component[s]
            column[s] = np.uint64(((1.0 - share[c]) * P[s, z] + share[c] * means[c, z]) * scale)
        if not _mark_broken(column, component, protected, bound, broken):
            return
        for c in range(share.shape[0]):
            if broken[c]:
                share[c] = min(1.0, max(4.0 * share[c], _LEAST_SHARE))


@kernel
def _fill_up(W, component, means, protected, bound):
    """Give what each row lacks of TOTAL to the output that its component says most often.

    Rows of a component lack nearly the same, so that this column's ratios hold as they did.
    Returns whether they do, and no row has too much."""
    k = W.shape[0]
    column, broken = np.empty(k, np.uint64), np.empty(means.shape[0], np.bool_)
    for c in range(means.shape[0]):
        sink = 0
        for z in range(1, k):
            if means[c, z] > means[c, sink]:
                sink = z
        for s in range(k):
            if component[s] == c:
                total = _ZERO
                for z in range(k):
                    total += W[s, z]
                if total > _TOTAL:
                    return False
                W[s, sink] += _TOTAL - total
            column[s] = W[s, sink]
        if _mark_broken(column, component, protected, bound, broken):
            return False
    return True


@kernel
def prove_weights(P, protected, bound, W):
    """Integer weights W of P, rows of sum TOTAL, on which every protected ratio holds.

    Columns are rounded one by one, a little small; then each row is filled up. Returns the largest
    total variation distance between a row of W and of P: some 2**-45, at most ``MAX_DISTANCE``, or
    infinity where no such weights were found.
    """
    component, n_components = connected(protected)
    k = P.shape[0]
    means = np.empty((n_components, k))
    mean_rows(P, component, means)
    column = np.empty(k, np.uint64)
    spare = _LEAST_SPARE
    while spare <= MAX_DISTANCE:
        scale = (1.0 - spare) * np.float64(TOTAL)
        for z in range(k):
            _round_column(P, z, component, means, scale, protected, bound, column)
            for s in range(k):
                W[s, z] = column[s]
        if _fill_up(W, component, means, protected, bound):
            distance = _distance(W, P)
            return distance if distance <= MAX_DISTANCE else np.inf
        spare *= _MORE_SPARE
    return np.inf


@bare
def _distance(W, P):
    """The largest total variation distance between a row of weights and one of probabilities."""
    largest = 0.0
    for s in range(W.shape[0]):
        total = 0.0
        for z in range(W.shape[1]):
            total += abs(np.float64(W[s, z]) / np.float64(TOTAL) - P[s, z])
        largest = max(largest, 0.5 * total)
    return largest
