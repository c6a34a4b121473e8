"""What an audit of traces compares.

The promise of a step: given the same public past, the releases from s and s' that are joined in the
repaired policy G_t differ by at most e^epsilon, or e^(w epsilon) where the edge has a weight. The
promise of whole traces is the sum, for traces
that are joined at every step (the paper's section "Privacy Composition"). Four comparisons:

*step t*: many users with one prior go through the same cells. Those with the same released past are
compared, half of them at s and half at s', joined in ``stream.policy`` of that past.

*silence*: the prior is one location, so that the first release says nothing new and every past is
the same. C_t is then the support of a row of a power of M, which is worked out here and not asked
for: a releaser that forgets what it knew is silently wrong about its own C_t.

*whole traces*: (s, s) against (r, r), which costs 2 epsilon, and (s, s) against (r, s), which costs
one and shows draws that serve twice.

*two users*: as (s, s) against (r, s), of two users at one step.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.graph_repair import repair

from .audit_events import Pairs, Sample, Trial
from .audit_pairs import audited_pairs

Cells = NDArray[np.int64]

_LEAST = 400  # users at a location, in any comparison
STEPS = 2  # steps of a stream that are compared one by one
_PASTS = 2  # released pasts of a step that are compared
_PILOTS = 64  # users who show which pasts are usual
_STARTS = 64  # locations that are tried as the one before a silence
_SILENCES = (0, 1, 3)
_SCENARIOS = 2  # silences of each length that are compared


class Numbers:
    """User numbers that were not used before: no two draws of an audit share one."""

    def __init__(self) -> None:
        self.next = self.used = 0

    def take(self, n: int) -> Cells:
        """n consecutive numbers."""
        self.next += n
        self.used += n
        return np.arange(self.next - n, self.next)

    def adjacent(self, n: int, odd: int) -> Cells:
        """Numbers of n pairs of neighbours, the first of each pair even, or odd."""
        self.next += (self.next + odd) % 2
        return self.take(2 * n)

    def apart(self, n: int, lag: int) -> Cells:
        """2 n numbers: those of n users, and of n others who are ``lag`` apart from them."""
        first = self.next + 3 * lag * (np.arange(n) // lag) + np.arange(n) % lag
        self.next = int(first[-1]) + lag + 1
        self.used += 2 * n
        return np.concatenate([first, first + lag])


def releaser_trials(
    T: Any, draws: int, limit: int, seed: int, numbers: Numbers, rng: int | None = None
) -> Iterator[Trial]:
    """All comparisons of a releaser of traces. ``rng`` is the releaser's own."""
    rounds = _Rounds(T, limit, seed, numbers)
    for t in range(1, STEPS + 1):
        yield from rounds.step(t, draws if t == 1 else max(draws // 4, _LEAST))
    yield from rounds.whole_traces(max(draws // 4, _LEAST))
    yield from rounds.two_users(max(draws // 8, _LEAST))
    for missing in _SILENCES:
        yield from rounds.silence(missing, max(draws // 50, _LEAST))


def promised(policy: PolicyGraph, pair: Cells) -> float:
    """A pair may differ by this times epsilon: its distance in the policy; 1 where there is no path
    of edges, but the hull of the graph calibration reaches."""
    if policy.weights is None:
        return 1.0  # pairs that are compared are edges
    far = float(policy.distance(*pair))
    return far if np.isfinite(far) else 1.0


class _Rounds:
    """Comparisons of one releaser.

    Attributes
    ----------
    start : a location where users can begin and, if any can, stay
    """

    def __init__(self, T: Any, limit: int, seed: int, numbers: Numbers):
        self.T, self.limit, self.seed, self.numbers = T, limit, seed, numbers
        self.size = T.graph.locations.size
        self._coded = Pairs(self.size)
        self.calibration = getattr(T, "calibration", "component")
        prior = T.model.stationary()
        stays = np.min([T.model.matrix(p).diagonal() for p in range(T.model.periods)], axis=0)
        self.stays = (stays > 0) & (prior > 0)
        joined = T.graph.degrees() > 0
        self.start = int(np.argmax(prior * (1.0 + 2.0 * self.stays + 4.0 * joined)))

    def _pairs(self, policy: PolicyGraph, domain: Domain | None, limit: int) -> Cells:
        pairs = audited_pairs(policy, domain, self.calibration, 40, self.seed)
        return pairs[:limit].astype(np.int64)

    def _stream(self, n: int, priors: Any = None) -> Any:
        return self.T.start(users=self.numbers.take(n), priors=priors)

    def _walked(self, n: int, steps: int) -> tuple[Any, Cells]:
        """A stream of n users after some steps at ``start``, and their released pasts."""
        stream, pasts = self._stream(n), np.empty((steps, n), np.int64)
        for t in range(steps):
            pasts[t] = stream.step(np.full(n, self.start)).released
        return stream, pasts.T

    def step(self, t: int, draws: int) -> Iterator[Trial]:
        """Users with one released past, half of them at s and half at s'."""
        stream, pasts = self._walked(_PILOTS, t - 1)
        stream.step(np.full(_PILOTS, self.start))
        usual, first, count = np.unique(pasts, axis=0, return_index=True, return_counts=True)
        order = np.argsort(-count, kind="stable")[:_PASTS]
        wanted = []
        for k in order:
            policy, domain = stream.policy(int(first[k])), stream.domain(int(first[k]))
            pairs = self._pairs(policy, domain, self.limit if t == 1 else 1)
            wanted += [(usual[k], pair, promised(policy, pair)) for pair in pairs]
        if not wanted:
            return
        n = 2 * draws * (len(wanted) if t == 1 else 1)
        stream, pasts = self._walked(n, t - 1)
        cells, groups = np.full(n, self.start), []
        for k, (past, pair, _) in enumerate(wanted):
            users = np.flatnonzero((pasts == past).all(axis=1))
            users = users[k :: len(wanted)] if t == 1 else users
            groups.append((users[0::2], users[1::2]))
            for side, who in zip(pair.tolist(), groups[-1]):
                cells[who] = side
        released = np.asarray(stream.step(cells).released, np.int64)
        for (past, (s, r), hops), (a, b) in zip(wanted, groups):
            kind = f"step {t}" + (f" after {tuple(past.tolist())}" if t > 1 else "")
            samples = Sample.of(released[a]), Sample.of(released[b])
            yield Trial(kind, (int(s), int(r)), hops, samples, int)

    def whole_traces(self, draws: int) -> Iterator[Trial]:
        """Two steps, at neighbours where one can stay: both are possible throughout."""
        if getattr(self.T, "delta", 0.0) > 0:
            return  # a location may be cut off from one release to the next
        edges = self._pairs(self.T.graph, None, 40)
        edges = edges[self.stays[edges].all(axis=1)][:1]
        edges = edges[self.T.graph.has_edges(edges)] if len(edges) else edges
        for s, r in edges.tolist():
            inputs = [(s, s), (r, r), (r, s)]
            samples = [self._released(np.repeat([x], draws, axis=0)) for x in inputs]
            once = promised(self.T.graph, np.array([s, r]))
            for k, hops in ((1, 2 * once), (2, once)):
                yield Trial(
                    "whole traces", (inputs[0], inputs[k]), hops, (samples[0], samples[k]),
                    self._coded.decode,
                )  # fmt: skip

    def _released(self, traces: Cells) -> Sample:
        """Released traces of two steps, coded."""
        stream = self._stream(len(traces))
        z = [np.asarray(stream.step(cells).released, np.int64) for cells in traces.T]
        return Sample.of(self._coded.code(z[0], z[1]))

    def two_users(self, n: int) -> Iterator[Trial]:
        """Users with adjacent numbers at one step, the lower one even or odd."""
        for (s, r), odd in product(self._pairs(self.T.graph, None, 1).tolist(), (0, 1)):
            samples = []
            for first in (s, r):
                stream = self.T.start(users=self.numbers.adjacent(n, odd))
                z = np.asarray(stream.step(np.tile([first, s], n)).released, np.int64)
                samples.append(Sample.of(self._coded.code(z[0::2], z[1::2])))
            inputs, hops = ((s, s), (r, s)), promised(self.T.graph, np.array([s, r]))
            yield Trial("two users", inputs, hops, (samples[0], samples[1]), self._coded.decode)

    def silence(self, missing: int, n: int) -> Iterator[Trial]:
        """After one known location and some missing steps: the policy on what is possible then."""
        for start, (s, r), hops in self._after(missing):
            prior = np.zeros(self.size)
            prior[start] = 1.0
            stream = self._stream(2 * n, prior)
            stream.step(np.full(2 * n, start))
            for _ in range(missing):
                stream.step(np.full(2 * n, -1))
            released = np.asarray(stream.step(np.repeat([s, r], n)).released, np.int64)
            samples = Sample.of(released[:n]), Sample.of(released[n:])
            kind = f"silence of {missing} after {start}" if missing else f"step 2 after {start}"
            yield Trial(kind, (int(s), int(r)), hops, samples, int)

    def _after(self, missing: int) -> list[tuple[int, Cells, float]]:
        """Locations to be silent after, each with a pair of the policy that holds then, and what is
        promised of it.

        Where repair had to join two locations, that edge is compared: it was not in the policy, so
        it is the first thing that a wrong C_t would miss."""
        T = self.T
        tried = np.random.default_rng(self.seed).permutation(self.size)[:_STARTS]
        repaired: list[tuple[int, Cells, float]] = []
        plain: list[tuple[int, Cells, float]] = []
        for start in tried.tolist():
            domain = self._possible(start, missing + 1)
            found = repair(T.graph, domain, strategy=T.repair, calibration=self.calibration)
            if len(found.added):
                pair = np.asarray(found.added[0], np.int64)
                repaired.append((start, pair, promised(found.graph, pair)))
            elif len(plain) < _SCENARIOS:
                pairs = self._pairs(found.graph, domain, 1)
                plain += [(start, pair, promised(found.graph, pair)) for pair in pairs]
            if len(repaired) == _SCENARIOS:
                break
        return (repaired + plain)[:_SCENARIOS]

    def _possible(self, start: int, steps: int) -> Domain:
        """C_t some steps after a known location: a support, or the smallest set of mass 1-delta."""
        p = np.zeros(self.size)
        p[start] = 1.0
        for t in range(steps):
            moves = self.T.model.matrix(t % self.T.model.periods)
            p = np.asarray(p @ moves)
        cells = np.flatnonzero(p)
        delta = getattr(self.T, "delta", 0.0)
        if delta > 0:
            cells = cells[np.argsort(-p[cells], kind="stable")]
            short = np.cumsum(p[cells]) < 1 - delta
            cells = np.sort(cells[: int(short.sum()) + 1])
        return Domain(self.T.graph.locations, cells)
