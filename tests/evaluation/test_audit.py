"""The audit: what it must find, what it must let pass, and how often it may be wrong.

Bugs are planted in wrappers around public objects: the audit sees ``release``, ``start`` and
``step`` and nothing else.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import pglp_fast as pf
from cases import large, path
from pglp_fast._kernels.noise import alias_rows
from pglp_fast._util.stats import clopper_pearson
from pglp_fast.evaluation.audit_events import Pairs, Sample, Trial, bounds
from pglp_fast.evaluation.audit_pairs import audited_pairs
from pglp_fast.evaluation.audit_traces import Numbers

pytestmark = large  # without the compiler, draws take hours


class Claims:
    """Promises what ``promise`` promises, and releases what ``inner`` releases."""

    def __init__(self, promise, inner):
        self.promise, self.inner = promise, inner

    def __getattr__(self, name):
        return getattr(self.promise, name)

    def release(self, cells, users=None, t=0, rng=None):
        return self.inner.release(cells, users=users, t=t, rng=rng)


class Traced(Claims):
    """The same for traces."""

    release = property()  # there is none: ``hasattr`` is false

    def start(self, users, priors=None):
        return self.inner.start(users=users, priors=priors)


def scaled_noise():
    G = pf.blocks(pf.Grid(3, 3), 3)
    return Claims(pf.PPIM(G, epsilon=1.0), pf.PPIM(G, epsilon=1.0 / 0.9))


def wrong_cones():
    """Cones drawn evenly, whatever their areas."""
    P = pf.Points([(0, 0), (9, 0), (9, 1), (0, 1), (5, 4)], resolution_km=1.0)
    m = pf.PPIM(pf.complete(P), epsilon=0.5, sampler="geometric")
    cones, h = m.geometry.geometry.cones, len(m.polygon(0))
    row = slice(int(cones.offset[0]), int(cones.offset[0]) + (1 << int(cones.bits[0])))
    even = np.full(h, 2**63 // h, np.uint64)
    even[0] += np.uint64(2**63 - h * (2**63 // h))
    alias_rows.build_alias(even, int(cones.bits[0]), cones.cut[row], cones.alias[row])
    return m


def component_noise_with_graph_detection():
    """Detection thinks a location hidden by a far hull; the noise is that of its own component."""
    g = pf.Grid(4, 4)
    G = pf.PolicyGraph.from_edges(g, [(0, 2), (8, 12), (15, 14)])
    C = pf.Domain(g, [0, 2, 8, 12, 15, 13])
    assert 15 in pf.disconnected(G, C) and 15 not in pf.isolated(G, C, calibration="graph")
    graph = pf.repair(G, C, calibration="graph").graph
    return Claims(
        pf.PPIM(graph, epsilon=1.0, domain=C, calibration="graph"),
        pf.PPIM(graph, epsilon=1.0, domain=C),
    )


class WrongSnap(Claims):
    """Snaps to the neighbours of the true location, not to its component."""

    def release(self, cells, users=None, t=0, rng=None):
        graph, z = self.promise.graph, self.inner.release(cells, users=users, t=t, rng=rng)
        near = np.minimum(np.maximum(z, cells - 1), cells + 1)
        return np.clip(near, 0, graph.locations.size - 1)


def wrong_snap():
    m = pf.PPIM(path(pf.Grid(1, 6), np.arange(6)), epsilon=1.0)
    return WrongSnap(m, m)


class OneCounter(Claims):
    """Users 2 k and 2 k + 1 share their draws."""

    def release(self, cells, users=None, t=0, rng=None):
        seed = np.random.default_rng(rng).integers(2**60)
        users, cells = np.asarray(users), np.asarray(cells)
        out = np.empty(len(cells), np.int32)
        for odd in (0, 1):
            at = users % 2 == odd
            when = t if np.ndim(t) == 0 else t[at]
            out[at] = self.inner.release(cells[at], users=users[at] // 2, t=when, rng=int(seed))
        return out


def one_counter():
    m = pf.PPIM(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0)
    return OneCounter(m, m)


class OneTime(Claims):
    """A user's draws do not depend on t."""

    def release(self, cells, users=None, t=0, rng=None):
        seed = int(np.random.default_rng(rng).integers(2**60))
        if np.ndim(t) == 0:
            return self.inner.release(cells, users=users, rng=seed)
        users, out = np.asarray(users), np.empty(len(cells), np.int32)
        for when in (0, 1):
            out[t == when] = self.inner.release(cells[t == when], users=users[t == when], rng=seed)
        return out


def one_time():
    m = pf.KRR(pf.blocks(pf.Grid(2, 2), 2), epsilon=0.5)
    return OneTime(m, m)


BUGS = {
    "noise scaled by 0.9": scaled_noise,
    "wrong cone shares": wrong_cones,
    "component noise, graph detection": component_noise_with_graph_detection,
    "snapped to the wrong set": wrong_snap,
    "one counter for two users": one_counter,
    "one counter for two times": one_time,
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found_at_the_default_size(bug):
    m = BUGS[bug]()
    found = pf.audit(m, rng=0)
    assert not found.passed, found
    assert found.epsilon_lower > m.epsilon
    assert "BROKEN" in str(found)


def test_certain_bugs_are_found_by_few_draws_and_named():
    found = pf.audit(component_noise_with_graph_detection(), draws=2000, rng=1)
    assert 15 in found.pair and found.kind == "release"
    assert found.epsilon_lower > 4
    found = pf.audit(one_counter(), draws=20_000, rng=1)
    assert found.kind == "two users"
    assert len(found.output) == 2


MECHANISMS = {
    "P-PIM": lambda: pf.PPIM(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0),
    "P-LM, geometric": lambda: pf.PLM(
        pf.neighbours8(pf.Grid(4, 4)), epsilon=0.5, sampler="geometric"
    ),
    "graph calibration": lambda: pf.PPIM(
        pf.blocks(pf.Grid(4, 4), 2), epsilon=1.0, calibration="graph"
    ),
    "optimal": lambda: pf.Optimal(pf.blocks(pf.Grid(2, 3), 3), epsilon=1.0),
    "remapped": lambda: pf.Remapped(pf.PPIM(pf.blocks(pf.Grid(3, 3), 3), epsilon=3.0)),
    "graph exponential": lambda: pf.GraphExponential(
        path(pf.Grid(1, 5), np.arange(5)), epsilon=1.0
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_correct_mechanisms_pass(name):
    m = MECHANISMS[name]()
    found = pf.audit(m, draws=200_000, rng=5)
    assert found.passed, found
    assert 0 < found.epsilon_lower <= pf.certify(m).worst
    assert "no violation" in str(found)


def test_the_bound_is_near_what_is_delivered():
    m = pf.KRR(pf.blocks(pf.Grid(2, 2), 2), epsilon=1.0)
    found = pf.audit(m, rng=3)
    assert 0.98 < found.epsilon_lower < 1.0
    assert found.output == found.pair[0]  # the truth is what tells most


def test_false_alarms_are_as_rare_as_promised():
    """200 audits at 99 %: at most the alarms of a 1 % coin. Randomised response is tight at every
    output, so that each bound is at its limit."""
    alarms = 0
    for k in range(200):
        epsilon = (0.2, 0.7, 1.5, 3.0)[k % 4]
        graph = pf.complete(pf.Grid(1, 2)) if k % 2 else pf.blocks(pf.Grid(2, 2), 2)
        alarms += not pf.audit(pf.KRR(graph, epsilon=epsilon), draws=4000, rng=k).passed
    assert stats.binomtest(alarms, 200, 0.01, alternative="greater").pvalue > 1e-3


def test_single_bounds_err_as_often_as_they_say():
    """One event at 80 %: not more than 20 % of the bounds are wrong, and not far fewer either."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(400):
        codes = [(rng.random(3000) < p).astype(np.int64) for p in (0.6, 0.3)]
        trial = Trial("test", (0, 1), 1.0, (Sample.of(codes[0]), Sample.of(codes[1])), int)
        wrong += bounds([trial], 0.8, 1)[0].value > np.log(2)
    assert 0.01 < wrong / 400 < 0.2


def test_an_audit_says_its_power():
    """Randomised response that delivers ``epsilon + resolution`` is found in 99 of 100 audits; a
    resolution that is half as large would be missed in most."""
    graph = pf.complete(pf.Grid(1, 2))
    promised = pf.KRR(graph, epsilon=1.0)
    found = pf.audit(promised, draws=20_000, rng=0)
    assert found.passed and 0.02 < found.resolution < 0.2
    assert f"one of {1 + found.resolution:.4f} would have been" in str(found)
    hits = dict.fromkeys((1.0, 0.5), 0)
    for share in hits:
        inner = pf.KRR(graph, epsilon=1.0 + share * found.resolution)
        for k in range(100):
            hits[share] += not pf.audit(Claims(promised, inner), draws=20_000, rng=k).passed
    assert hits[1.0] >= 96
    assert hits[0.5] <= 70
    assert pf.audit(promised, draws=80_000, rng=0).resolution < 0.6 * found.resolution


def test_clopper_pearson_is_the_binomial_inverted():
    for hits, n in ((0, 10), (3, 10), (10, 10), (499, 500)):
        low, high = clopper_pearson(hits, n, 0.975)
        ref = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
        assert (low, high) == pytest.approx((ref.low, ref.high), rel=1e-9)


def test_user_numbers_never_repeat():
    numbers = Numbers()
    taken = [numbers.take(5), *(numbers.apart(7, lag) for lag in (1, 3, 1 << 32)), numbers.take(2)]
    assert len(np.unique(np.concatenate(taken))) == sum(map(len, taken)) == numbers.used
    assert (taken[1][7:] - taken[1][:7] == 1).all()
    assert set(taken[1][:7] % 2) == {0, 1}  # pairs begin at even and at odd numbers


def test_which_pairs_are_compared():
    """All edges of a small policy; of a large one the longest of every shape; the same each
    time."""
    G = pf.blocks(pf.Grid(3, 3), 3)
    assert sorted(map(tuple, audited_pairs(G, None, "component", 40, 0))) == sorted(
        map(tuple, G.edges())
    )
    g = pf.Grid(100, 101)
    G = pf.blocks(g, 4)
    pairs = audited_pairs(G, None, "component", 40, 0)
    assert len(pairs) <= 40 and G.has_edges(pairs).all()
    assert np.array_equal(pairs, audited_pairs(G, None, "component", 40, 0))
    lengths = g.distance(pairs[:, 0], pairs[:, 1])
    assert lengths[0] == pytest.approx(np.hypot(3, 3))
    assert (pairs % 101 == 100).all(axis=1).any()  # blocks cut off by the map's edge


def test_pairs_that_only_the_hull_protects():
    g = pf.Grid(4, 4)
    C = pf.Domain(g, [0, 2, 8, 12, 15, 13])
    G = pf.PolicyGraph.from_edges(g, [(0, 2), (8, 12)]).constrain(C)
    assert [15, 13] in audited_pairs(G, C, "graph", 40, 0).tolist()
    assert [15, 13] not in audited_pairs(G, C, "component", 40, 0).tolist()


def test_nothing_promised_is_nothing_to_see():
    m = pf.PPIM(pf.PolicyGraph.from_edges(pf.Grid(2, 2), []), epsilon=1.0)
    found = pf.audit(m, draws=1000)
    assert found.passed and found.pair is None and found.epsilon_lower == 0
    assert "nothing to see" in str(found)


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("me", {}, "audit takes a mechanism or a releaser of traces, got str without 'start'"),
        (None, {"confidence": 1.0}, "confidence must be between 0 and 1"),
        (None, {"draws": 10}, "draws"),
        (None, {"pairs": 0}, "pairs"),
    ],
)
def test_bad_input(what, options, message):
    m = what or pf.KRR(pf.complete(pf.Grid(1, 2)), epsilon=1.0)
    with pytest.raises(pf.InvalidParameter, match=message):
        pf.audit(m, **options)


# -- traces


def forks():
    """0 leads to 1 or 3 and nobody comes back; the policy joins 1-2 and 3-4."""
    g = pf.Grid(1, 5)
    moves = np.eye(5)
    moves[0] = [0, 0.5, 0, 0.5, 0]
    G = pf.PolicyGraph.from_edges(g, [(1, 2), (3, 4)])
    return G, pf.MobilityModel(g, sp.csr_array(moves))


def city(k=2):
    """Two blocks of k x k."""
    g = pf.Grid(k, 2 * k)
    rng = np.random.default_rng(0)
    moves = rng.random((g.size, g.size)) * (rng.random((g.size, g.size)) < 0.3)
    moves += 0.3 * np.eye(g.size)
    M = pf.MobilityModel(g, sp.csr_array(moves / moves.sum(axis=1, keepdims=True)))
    return pf.blocks(g, k), M


class Forgets:
    """A stream that starts afresh from the stationary distribution after a silence."""

    def __init__(self, releaser, users, priors):
        self.releaser, self.users, self.silent = releaser, users, False
        self.inner = releaser.start(users=users, priors=priors)

    def step(self, cells):
        if (np.asarray(cells) < 0).all():
            self.silent = True
        elif self.silent:
            self.inner, self.silent = self.releaser.start(users=self.users), False
        return self.inner.step(cells)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Restarts(Traced):
    def start(self, users, priors=None):
        return Forgets(self.inner, users, priors)


class OneCounterStream(Traced):
    """Users 2 k and 2 k + 1 share their draws."""

    def start(self, users, priors=None):
        return SharedDraws(self.inner, np.asarray(users), priors)


class SharedDraws:
    def __init__(self, releaser, users, priors):
        self.sides = [np.flatnonzero(users % 2 == odd) for odd in (0, 1)]
        self.streams = [
            releaser.start(users=users[side] // 2, priors=priors) for side in self.sides
        ]

    def step(self, cells):
        parts = [s.step(cells[side]) for s, side in zip(self.streams, self.sides, strict=True)]
        released = np.empty(len(cells), np.int32)
        for part, side in zip(parts, self.sides, strict=True):
            released[side] = part.released
        return type("Step", (), {"released": released})

    def _of(self, u):
        odd = int(u in self.sides[1])
        return self.streams[odd], int(np.searchsorted(self.sides[odd], u))

    def policy(self, u):
        stream, at = self._of(u)
        return stream.policy(at)

    def domain(self, u):
        stream, at = self._of(u)
        return stream.domain(at)


def test_a_restart_after_silence_is_found():
    """1 and 3 are all that is possible after 0, so that repair joins them. Who starts afresh thinks
    2 and 4 possible too, and tells 1 from 3 with certainty."""
    G, M = forks()
    T = pf.TraceReleaser(G, M, epsilon=1.0)
    found = pf.audit(Restarts(T, T), draws=2000)
    assert not found.passed, found
    assert set(found.pair) == {1, 3} and found.kind.startswith("silence of ")
    assert found.epsilon_lower > 3
    assert pf.audit(T, draws=2000).passed


@pytest.mark.parametrize(("mechanism", "k", "epsilon"), [("krr", 2, 2.0), ("ppim", 3, 1.0)])
def test_scaled_noise_of_traces_is_found_at_the_default_size(mechanism, k, epsilon):
    """P-PIM in blocks of 3 x 3: in those of 2 x 2 it delivers much less than epsilon anyhow."""
    G, M = city(k)
    promised = pf.TraceReleaser(G, M, epsilon=epsilon, mechanism=mechanism, rng=1)
    inner = pf.TraceReleaser(G, M, epsilon=epsilon / 0.9, mechanism=mechanism, rng=1)
    found = pf.audit(Traced(promised, inner))
    assert not found.passed, found


def test_traces_of_two_users_with_one_counter_are_found():
    G, M = city()
    T = pf.TraceReleaser(G, M, epsilon=1.0, rng=3)
    found = pf.audit(OneCounterStream(T, T), draws=20_000)
    assert not found.passed and found.kind == "two users", found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"calibration": "graph"},
        {"mechanism": "krr"},
        {"delta": 0.05},
        {"remap": "euclidean"},
    ],
)
def test_correct_releasers_pass(options):
    for make in (forks, city):
        G, M = make()
        found = pf.audit(pf.TraceReleaser(G, M, epsilon=1.0, rng=2, **options), draws=4000)
        assert found.passed, found
        assert found.trials >= 3


def test_false_alarms_of_traces():
    G, M = city()
    alarms = sum(
        not pf.audit(pf.TraceReleaser(G, M, epsilon=1.0, mechanism="krr", rng=k), draws=400).passed
        for k in range(8)
    )
    assert alarms <= 1


class Says:
    """A mechanism that says something else at location 0."""

    epsilon = 1.0
    graph = pf.blocks(pf.Grid(2, 2), 2)

    def __init__(self, says):
        self.says = says

    def release(self, cells, users=None, t=0, rng=None):
        return np.where(np.asarray(cells) == 0, self.says, 3)


def test_a_mechanism_that_says_nothing_is_found_out():
    """-1 is an outcome like others, and tells two locations apart."""
    found = pf.audit(Says(-1), draws=2000)
    assert not found.passed and {x for z in found.event for x in np.atleast_1d(z)} <= {-1, 3}
    assert pf.audit(Says(3), draws=2000).passed
    for strange in (4, -2, 99):
        with pytest.raises(pf.InvalidLocation, match=f"is {strange}|= {strange}"):
            pf.audit(Says(strange), draws=2000)


def test_pairs_have_codes_of_their_own():
    """Would catch (a, -1) and (a - 1, size - 1) that are one."""
    pairs, cells = Pairs(5), np.arange(-1, 5)
    first, second = (side.ravel() for side in np.meshgrid(cells, cells))
    codes = pairs.code(first.astype(np.int32), second)
    assert len(set(codes.tolist())) == 36
    assert [pairs.decode(int(c)) for c in codes] == list(zip(first.tolist(), second.tolist()))
    large = Pairs(2**31 - 2).code(np.array([2**31 - 3], np.int32), np.array([0], np.int32))
    assert large[0] == (2**31 - 2) * (2**31 - 1) + 1
