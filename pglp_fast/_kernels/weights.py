"""From probabilities to the integers that are sampled, and the proof on those very integers.

A row of weights sums to TOTAL = 2**63. The alias table of a row keeps its weights exactly: 2**b columns of 2**(63-b) each,
column c gives its first ``cut[c]`` to output c and the rest to output ``alias[c]``.
"""

import numpy as np

from .jit import kernel

TOTAL = 2**63
LEAST_MIXED = 2.0**-30  # what mixing begins with
_TOTAL = np.uint64(TOTAL)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ZERO = np.uint64(0)


@kernel
def column_bits(k):
    """b with 2**b >= k columns, at least one bit."""
    b = 1
    while (1 << b) < k:
        b += 1
    return b


@kernel
def mean_rows(P, component, out):
    """out[c] = mean of the rows of component c: a distribution that is positive wherever one of them is."""
    count = np.zeros(out.shape[0])
    out[:] = 0.0
    for s in range(P.shape[0]):
        out[component[s]] += P[s]
        count[component[s]] += 1.0
    for c in range(out.shape[0]):
        out[c] /= max(count[c], 1.0)


@kernel
def round_rows(P, component, means, eta, W):
    """W[s] = weights of (1 - eta) P[s] + eta means[component[s]], each rounded down, the largest takes what is left over."""
    scale = np.float64(TOTAL)
    for s in range(P.shape[0]):
        mean = means[component[s]]
        total, largest = _ZERO, 0
        for z in range(P.shape[1]):
            w = np.uint64(min(((1.0 - eta) * P[s, z] + eta * mean[z]) * scale, scale))
            W[s, z] = w
            total += w
            if w > W[s, largest]:
                largest = z
        W[s, largest] += _TOTAL - total  # wraps where the floats sum to a little over one


@kernel
def _multiply(a, b):
    """The 128-bit product of two 64-bit words, as (high, low)."""
    a0, a1, b0, b1 = a & _LOW, a >> _32, b & _LOW, b >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _32) + (other >> _32), a * b


@kernel
def within(w, v, numerator, shift):
    """Whether w * 2**shift <= numerator * v, in integers; shift in 0..63, or -1 for "any positive v will do"."""
    if w == _ZERO:
        return True
    if shift < 0:
        return v > _ZERO
    high, low = _multiply(numerator, v)
    w_high = w >> np.uint64(64 - shift) if shift > 0 else _ZERO
    w_low = w << np.uint64(shift)
    return w_high < high or (w_high == high and w_low <= low)


@kernel
def _log_ratio(w, v):
    if w == _ZERO:
        return -np.inf
    return np.log(np.float64(w)) - np.log(np.float64(v)) if v > _ZERO else np.inf


@kernel
def check(W, lead, pairs, numerator, shift, worst):
    """Prove W[s, z] <= e^eps W[s', z] for every edge and z: cliques by the largest and the smallest of each column.

    ``lead[s]``: first member of s's clique; ``pairs``: further edges. Returns whether it holds; ``worst`` (4 floats) receives the
    largest ln ratio met and its s, s', z.
    """
    k = W.shape[0]
    ok = True
    worst[0] = -np.inf
    most, least = np.empty(k, np.int64), np.empty(k, np.int64)
    for z in range(W.shape[1]):
        for s in range(k):
            c = lead[s]
            if c == s:
                most[s] = least[s] = s
            elif W[s, z] > W[most[c], z]:
                most[c] = s
            elif W[s, z] < W[least[c], z]:
                least[c] = s
        for s in range(k):
            if lead[s] == s and most[s] != least[s]:
                a, b = W[most[s], z], W[least[s], z]
                ok &= within(a, b, numerator, shift)
                ratio = _log_ratio(a, b)
                if ratio > worst[0]:
                    worst[0], worst[1], worst[2], worst[3] = ratio, most[s], least[s], z
        for e in range(pairs.shape[0]):
            i, j = pairs[e, 0], pairs[e, 1]
            a, b = W[i, z], W[j, z]
            if a < b:
                a, b, i, j = b, a, j, i
            ok &= within(a, b, numerator, shift)
            ratio = _log_ratio(a, b)
            if ratio > worst[0]:
                worst[0], worst[1], worst[2], worst[3] = ratio, i, j, z
    return ok


@kernel
def build_alias(weights, bits, cut, alias):
    """Vose's construction in integers, exact: every column ends with its full capacity."""
    columns = 1 << bits
    capacity = np.uint64(1) << np.uint64(63 - bits)
    left = np.zeros(columns, np.uint64)
    for c in range(weights.shape[0]):
        left[c] = weights[c]
    small, large = np.empty(columns, np.int64), np.empty(columns, np.int64)
    n_small = n_large = 0
    for c in range(columns):
        if left[c] < capacity:
            small[n_small] = c
            n_small += 1
        else:
            large[n_large] = c
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        c, d = small[n_small], large[n_large - 1]
        cut[c], alias[c] = left[c], d
        left[d] -= capacity - left[c]
        if left[d] < capacity:
            n_large -= 1
            small[n_small] = d
            n_small += 1
    for i in range(n_large):
        cut[large[i]], alias[large[i]] = capacity, large[i]
    for i in range(n_small):  # only reached when capacities are met exactly
        cut[small[i]], alias[small[i]] = capacity, small[i]


@kernel
def read_alias(cut, alias, bits, weights):
    """The weights that an alias row really samples."""
    capacity = np.uint64(1) << np.uint64(63 - bits)
    weights[:] = _ZERO
    for c in range(1 << bits):
        if cut[c] > _ZERO:
            weights[c] += cut[c]
        if cut[c] < capacity:
            weights[alias[c]] += capacity - cut[c]


@kernel
def pick(word, cut, alias, start, bits):
    """The output that a 64-bit random word selects from the alias row at ``start``: top bits the column, the next the cut."""
    column = np.int64(word >> np.uint64(64 - bits))
    rest = (word >> np.uint64(1)) & ((np.uint64(1) << np.uint64(63 - bits)) - np.uint64(1))
    other = np.int64(alias[start + column])  # read before the choice: no branch to mispredict
    return column if rest < cut[start + column] else other


@kernel
def prove_weights(P, component, n_components, lead, pairs, numerator, shift, W):
    """Integer weights W of P, rounded so that the proof on them holds; returns how much of the mean row had to be mixed in.

    Rounding breaks a tight ratio and a tiny probability; mixing in a little of a distribution that both ends of every
    edge share (the mean row of their component) buys the slack. 2**-30 is nearly always enough; it grows until the check
    passes, and at 1 all rows of a component are equal. Rows without an edge are their own mean: nothing is mixed into
    them.
    """
    means = np.empty((n_components, P.shape[1]))
    mean_rows(P, component, means)
    worst = np.empty(4)
    eta = LEAST_MIXED
    while True:
        round_rows(P, component, means, eta, W)
        if check(W, lead, pairs, numerator, shift, worst) or eta >= 1.0:
            return eta
        eta *= 4.0


@kernel
def fill_table(P, component, n_components, lead, pairs, numerator, shift, bits, cut, alias):
    """Alias rows of P's proved weights: (how much of the mean row was mixed in, the largest distance of a row's sum from 1)."""
    k = P.shape[0]
    W = np.empty((k, k), np.uint64)
    eta = prove_weights(P, component, n_components, lead, pairs, numerator, shift, W)
    columns = 1 << bits
    for s in range(k):
        build_alias(W[s], bits, cut[s * columns : (s + 1) * columns], alias[s * columns : (s + 1) * columns])
    off = 0.0
    for s in range(k):
        off = max(off, abs(P[s].sum() - 1.0))
    return eta, off


@kernel
def read_table(cut, alias, bits, k, W):
    """Weights of all k rows of a shape, read back from what is sampled."""
    columns = 1 << bits
    wide = np.empty(columns, np.uint64)
    for s in range(k):
        read_alias(cut[s * columns : (s + 1) * columns], alias[s * columns : (s + 1) * columns], bits, wide)
        W[s] = wide[:k]
