"""The adversary's answers by going through every path, or through dense vectors, from the
definitions alone.

A hidden chain s_1..s_T has Pr(s_1) = prior, Pr(s_t | s_{t-1}) = M_t, and is seen through Pr(z_t |
s_t). Weights are decimals of 60 digits with exponents without practical bound: plain products, no
logarithms, nothing underflows."""

import decimal
import itertools
import math

import numpy as np

D = decimal.Decimal
CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class Paths:
    """All paths of one user from the first release on.

    prior: one probability for each location. matrices[t]: the move from step t - 1 to t. rows[t]:
    {location: ln Pr(z_t | s)}, or None where nothing was released."""

    def __init__(self, prior, matrices, rows):
        with decimal.localcontext(CONTEXT):
            self.size, self.steps = len(prior), len(rows)
            self.first = next((t for t, row in enumerate(rows) if row is not None), len(rows))
            self.prior = [D(float(p)) for p in prior]
            self.moves = [[[D(float(m)) for m in line] for line in matrix] for matrix in matrices]
            self.like = [self._likelihoods(row) for row in rows]

    def _likelihoods(self, row):
        if row is None:
            return [D(1)] * self.size
        logs = [row.get(s, -math.inf) for s in range(self.size)]
        return [D(x).exp() if x > -math.inf else D(0) for x in logs]

    def weights(self, last, seen_up_to):
        """{(s_first, .., s_last): Pr(path, z_first..z_seen_up_to)}, possible paths only."""
        with decimal.localcontext(CONTEXT):
            out = {
                (s,): self.prior[s]
                * (self.like[self.first][s] if self.first <= seen_up_to else D(1))
                for s in range(self.size)
            }
            out = {path: w for path, w in out.items() if w}
            for t in range(self.first + 1, last + 1):
                longer = {}
                for path, w in out.items():
                    for s in range(self.size):
                        v = (
                            w
                            * self.moves[t][path[-1]][s]
                            * (self.like[t][s] if t <= seen_up_to else D(1))
                        )
                        if v:
                            longer[(*path, s)] = v
                out = longer
            return out

    def impossible_at(self):
        """The first step whose release cannot be, or None."""
        return next((t for t in range(self.first, self.steps) if not self.weights(t, t)), None)

    def marginal(self, t, last, seen_up_to):
        """Pr(s_t | z up to seen_up_to), of paths up to ``last``."""
        with decimal.localcontext(CONTEXT):
            total = [D(0)] * self.size
            for path, w in self.weights(last, seen_up_to).items():
                total[path[t - self.first]] += w
            norm = sum(total)
            return [x / norm for x in total]

    def before(self, t):
        return self.marginal(t, t, t - 1)

    def filtered(self, t):
        return self.marginal(t, t, t)

    def smoothed(self, t):
        return self.marginal(t, self.steps - 1, self.steps - 1)

    def all_weights(self):
        return self.weights(self.steps - 1, self.steps - 1)

    def log_evidence(self):
        with decimal.localcontext(CONTEXT):
            return float(sum(self.all_weights().values()).ln())

    def path_entropy(self):
        return entropy_bits(list(self.all_weights().values()))

    def viterbi(self):
        """The most likely path; of several the one with the lowest last cell, then the lowest
        cell before, and so on."""
        with decimal.localcontext(CONTEXT):
            weights = self.all_weights()
            best = max(weights.values())
            return min(
                (path for path, w in weights.items() if w >= best * (1 - D("1e-9"))),
                key=lambda path: path[::-1],
            )

    def lift(self, t):
        with decimal.localcontext(CONTEXT):
            return float(
                max(a / b for a, b in zip(self.filtered(t), self.before(t), strict=True) if b).ln()
            )


def entropy_bits(weights):
    with decimal.localcontext(CONTEXT):
        total = sum(weights)
        return float(-sum(w / total * (w / total).ln() for w in weights if w) / D(2).ln())


def most_likely(p):
    best = max(p)
    return next(s for s, value in enumerate(p) if value >= best * (1 - D("1e-9")))


def guess(xy, p, candidates):
    """(the candidate of least expected distance, that distance): all distances, lowest index of
    what agrees to 12 digits."""
    p = np.asarray(p, np.float64)
    f = np.array(
        [sum(p[s] * math.dist(xy[x], xy[s]) for s in np.flatnonzero(p)) for x in candidates]
    )
    at = np.flatnonzero(f <= f.min() * (1 + 1e-12))[0]
    return candidates[at], f[at]


def guess_dense(xy, p, candidates):
    """``guess`` for larger maps."""
    at = np.flatnonzero(p)
    f = np.hypot(*(xy[candidates][:, None] - xy[at][None]).transpose(2, 0, 1)) @ p[at]
    best = np.flatnonzero(f <= f.min() * (1 + 1e-12))[0]
    return candidates[best], f[best]


def dense_chain(prior, matrices, rows):
    """(filtered, smoothed, Viterbi path, path entropy in bits, log evidence) by dense vectors in
    extended precision.

    ``rows``: (T, N) likelihoods, all ones where nothing was released; the first step is the first
    release."""
    L = np.longdouble
    matrices, rows = [np.asarray(m, L) for m in matrices], np.asarray(rows, L)
    steps = len(rows)
    alpha = [np.asarray(prior, L) * rows[0]]
    evidence = L(0)
    for t in range(steps):
        if t:
            alpha.append((alpha[-1] @ matrices[t]) * rows[t])
        evidence += np.log(alpha[t].sum())
        alpha[t] = alpha[t] / alpha[t].sum()
    beta = [np.ones_like(alpha[0])] * steps
    for t in range(steps - 1, 0, -1):
        beta[t - 1] = matrices[t] @ (rows[t] * beta[t])
        beta[t - 1] = beta[t - 1] / beta[t - 1].max()
    smoothed = [a * b / (a * b).sum() for a, b in zip(alpha, beta, strict=True)]
    entropy = -sum(p * np.log2(p) for p in smoothed[0][smoothed[0] > 0])
    for t in range(1, steps):
        joint = alpha[t - 1][:, None] * matrices[t] * (rows[t] * beta[t])[None]
        joint = joint / joint.sum()
        given = joint / np.where(joint.sum(axis=1) > 0, joint.sum(axis=1), 1)[:, None]
        entropy -= (joint[joint > 0] * np.log2(given[joint > 0])).sum()
    with np.errstate(divide="ignore"):
        logs, moves = np.log(rows), [np.log(m) for m in matrices]
        score, back = np.log(np.asarray(prior, L)) + logs[0], []
    for t in range(1, steps):
        through = score[:, None] + moves[t]
        back.append(through.argmax(axis=0))
        score = through.max(axis=0) + logs[t]
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    as_float = [[np.asarray(p, np.float64) for p in many] for many in (alpha, smoothed)]
    return *as_float, path[::-1], float(entropy), float(evidence)


def clustered_mean(groups):
    """Mean of equally large groups and its standard error, the groups being the sample."""
    means = [math.fsum(g) / len(g) for g in groups]
    mean = math.fsum(means) / len(means)
    return mean, math.sqrt(
        math.fsum((m - mean) ** 2 for m in means) / (len(means) - 1) / len(means)
    )


def unseen(prior, matrices):
    """The prior alone, moved along: one distribution for each step."""
    return list(
        itertools.accumulate(
            matrices[1:], lambda p, m: p @ m, initial=np.asarray(prior, np.float64)
        )
    )


def every_step(steps, rows, cycle, matrices):
    """(matrices, rows) of every step from the first row's to the last row's, as ``Paths`` takes
    them: a row that is not there says nothing, and the move from step t to t + 1 is made by
    ``matrices[cycle[t % len(cycle)]]``."""
    said = dict(zip(steps, rows, strict=True))
    every = range(steps[0], steps[-1] + 1)
    return [matrices[cycle[(t - 1) % len(cycle)]] for t in every], [said.get(t) for t in every]
