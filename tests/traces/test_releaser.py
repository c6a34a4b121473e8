"""Traces of many users: against a literal oracle, in distribution, bit for bit, and at the edges
of what is possible."""

import functools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy.stats import chi2

import naive
import pglp_fast as pf
from cases import (
    FIELDS,
    edge_set,
    fields,
    large,
    policy_of_kind,
    random_map,
    random_prior,
    random_transitions,
    walk,
)
from pglp_fast.errors import (
    BudgetExceeded,
    InvalidParameter,
    InvalidPolicy,
    InvalidTransition,
    PGLPError,
)

CALIBRATIONS = ("component", "graph")
MECHANISMS = {"ppim": pf.PPIM, "plm": pf.PLM}
STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")
COMBINATIONS = list(product(CALIBRATIONS, MECHANISMS, STRATEGIES))
both_ways = pytest.mark.parametrize(
    ("calibration", "mechanism"), list(product(CALIBRATIONS, MECHANISMS))
)


@pytest.fixture
def remembered(monkeypatch):
    """The oracle's dear parts, computed once for each domain: a trace comes back to the same
    few."""

    def memo(function):
        known = {}

        @functools.wraps(function)
        def call(lattice, scale, edges, domain, *rest):
            key = (
                tuple(map(tuple, lattice)),
                tuple(scale),
                frozenset(edges),
                frozenset(domain),
                rest,
            )
            if key not in known:
                known[key] = function(lattice, scale, edges, domain, *rest)
            return known[key]

        return call

    monkeypatch.setattr(naive, "emission", memo(naive.emission))
    monkeypatch.setattr(naive, "repair", memo(naive.repair))


def compare(
    locations, G, A, prior, truth, *, epsilon, mechanism, calibration, strategy, delta, seed=0
):
    """Take one user along ``truth`` (-1: missing) and hold every step against the oracle.

    Returns surrogates seen.
    """
    model = pf.MobilityModel(locations, A)
    T = pf.TraceReleaser(
        G,
        model,
        epsilon=epsilon,
        mechanism=mechanism,
        calibration=calibration,
        repair=strategy,
        delta=delta,
        rng=seed,
    )
    S = T.start(users=1, priors=prior[None])
    E, lattice = edge_set(G), [tuple(p) for p in locations.lattice.tolist()]
    p_minus, support, graphs, surrogates = prior, {int(i) for i in np.flatnonzero(prior)}, [], 0
    for t, s in enumerate(truth):
        r = S.step([s])
        if s < 0:
            assert r.released[0] == -1
            assert np.abs(S.posterior(0) - p_minus).max() < 1e-10
            p_minus, support = p_minus @ A, {int(j) for i in support for j in np.flatnonzero(A[i])}
            continue
        z = int(r.released[0])
        ref = naive.trace_step(
            lattice, locations.scale, E, A, p_minus, support, z, epsilon,
            mechanism=mechanism, calibration=calibration, strategy=strategy, delta=delta,
        )  # fmt: skip
        assert set(S.domain(0)) == ref["domain"], t
        assert edge_set(S.policy(0)) == set(ref["edges"]), t
        assert np.abs(S.posterior(0) - ref["p_plus"]).max() < 1e-10, t
        assert set(np.flatnonzero(S.posterior(0))) <= ref["support_plus"], t
        assert r.domain_size[0] == len(ref["domain"])
        assert r.added[0] == len(ref["added"])
        assert r.exposed[0] == bool(ref["exposed"])
        alone = naive.disconnected(locations.size, E, ref["domain"])
        assert r.disconnected[0] == len(alone)
        assert r.isolated[0] == len(
            naive.isolated(lattice, locations.scale, E, ref["domain"], calibration)
        )
        assert r.surrogate[0] == (s not in ref["domain"])
        surrogates += r.surrogate[0]
        graphs.append(set(ref["edges"]))
        total, kept = naive.ledger([epsilon] * len(graphs), graphs)
        assert S.ledger.epsilon(0) == pytest.approx(total, rel=1e-12)
        assert edge_set(S.ledger.graph(0)) == kept, t
        p_minus, support = ref["next_p_minus"], ref["next_support"]
    return surrogates


# Against the oracle


@pytest.mark.parametrize("k", range(len(COMBINATIONS)))
@pytest.mark.parametrize("delta", [0.0, 0.25])
def test_thirty_steps_equal_the_oracle(k, delta, remembered):
    calibration, mechanism, strategy = COMBINATIONS[k]
    rng = np.random.default_rng(1000 + 10 * k + (delta > 0))
    locations = random_map(rng, k)
    n = locations.size
    G, A, prior = (
        policy_of_kind(rng, locations, k // 2),
        random_transitions(rng, n),
        random_prior(rng, n),
    )
    truth = walk(rng, A, rng.choice(n, p=prior), 30)
    epsilon = [0.3, 1.0, 4.0][k % 3]
    options = dict(
        epsilon=epsilon,
        mechanism=mechanism,
        calibration=calibration,
        strategy=strategy,
        delta=delta,
    )
    surrogates = compare(locations, G, A, prior, truth, **options)
    assert delta > 0 or surrogates == 0


@pytest.mark.parametrize("k", range(6))
def test_missing_steps_and_impossible_truths_equal_the_oracle(k, remembered):
    rng = np.random.default_rng(50 + k)
    locations = random_map(rng, k)
    n = locations.size
    G, A, prior = (
        policy_of_kind(rng, locations, k),
        random_transitions(rng, n, 1.0),
        random_prior(rng, n),
    )
    truth = rng.integers(-1, n, 30)
    truth[0] = rng.integers(n)
    calibration, mechanism, strategy = COMBINATIONS[3 * k]
    options = dict(
        epsilon=2.0,
        mechanism=mechanism,
        calibration=calibration,
        strategy=strategy,
        delta=[0.0, 0.1][k % 2],
    )
    compare(locations, G, A, prior, truth.tolist(), **options)


@large
@both_ways
def test_eight_by_eight_equals_the_oracle(calibration, mechanism, remembered):
    """Two rows of movement on a larger map, so that domains stay small enough for the oracle."""
    rng = np.random.default_rng(7)
    g = pf.Grid(8, 8, cell_km=(0.5, 0.25))
    A = np.zeros((64, 64))
    for s in range(64):
        near = [s, (s + 8) % 64, (s + 9) % 64] if s % 8 in (2, 3) else [s]
        A[s, near] = rng.random(len(near)) + 0.1
    A /= A.sum(axis=1, keepdims=True)
    prior = np.zeros(64)
    prior[[2, 10, 11, 60]] = 0.25
    truth = walk(rng, A, 2, 30)
    options = dict(
        epsilon=1.0, mechanism=mechanism, calibration=calibration, strategy="min-area", delta=0.05
    )
    compare(g, pf.neighbours8(g), A, prior, truth, **options)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["blocks", "categories", "points", "edges"])
def test_repairs_are_those_of_each_domain_alone(calibration, strategy, kind):
    """Whatever is remembered between users and steps: translates, the map's edge, cliques cut in
    other ways."""
    rng = np.random.default_rng(8)
    users = 10 if numba.config.DISABLE_JIT else 150
    g = pf.Grid(9, 8, cell_km=(1.0, 0.7))
    n = g.size
    if kind == "points":
        g = pf.Points(np.asarray(g.xy(rng.permutation(n))), resolution_km=0.1)
    G = {
        "blocks": lambda: pf.blocks(g, 3),
        "categories": lambda: pf.categories(g, rng.integers(-1, 3, n), 4),
        "points": lambda: pf.categories(g, rng.integers(-1, 12, n), None),
        "edges": lambda: pf.blocks(g, 2).with_edges([[0, 20], [33, 34], [5, 70]]),
    }[kind]()
    patterns = [rng.permutation(18)[: rng.integers(1, 7)] for _ in range(5)]
    priors = np.zeros((users, n))
    for u in range(users):  # a few patterns, put down everywhere
        cells = patterns[u % 5] // 3 * 8 + patterns[u % 5] % 3 + rng.integers(0, n)
        priors[u, cells[cells < n]] = 1
        priors[u, rng.integers(n)] += 1
    priors /= priors.sum(axis=1, keepdims=True)
    move = np.eye(n) * 0.5 + np.roll(np.eye(n), 1, axis=1) * 0.5
    T = pf.TraceReleaser(
        G, pf.MobilityModel(g, move), epsilon=1.0, calibration=calibration, repair=strategy, rng=3
    )
    S = T.start(users=users, priors=priors)
    added = 0
    for _ in range(2):
        r = S.step(rng.integers(0, n, users))
        for u in range(users):
            C = S.domain(u)
            expected = pf.repair(G, C, strategy=strategy, calibration=calibration)
            assert edge_set(S.policy(u)) == edge_set(expected.graph)
            assert r.added[u] == len(expected.added)
            assert r.exposed[u] == (len(expected.exposed) > 0)
            assert r.disconnected[u] == len(pf.disconnected(G, C))
            assert r.isolated[u] == len(pf.isolated(G, C, calibration=calibration))
            added += len(expected.added)
    assert added > 0


def test_period_of_the_day(remembered):
    """The move from t to t + 1 takes matrix t % periods, or that of the period told for step t."""
    rng = np.random.default_rng(3)
    g = pf.Grid(2, 3)
    A = np.stack([random_transitions(rng, 6) for _ in range(3)])
    M = pf.MobilityModel(g, A)
    T = pf.TraceReleaser(pf.blocks(g, 2), M, epsilon=0.01, rng=1)
    prior = np.eye(6)[2]
    traces = np.array([[2, -1, -1, -1, -1]])
    told = [2, 2, 0, 1, 1]
    for periods in (None, told):
        S = T.start(priors=prior)
        p = None
        for t in range(5):
            S.step(traces[:, t], period=None if periods is None else periods[t - 1])
            p = (
                S.posterior(0)
                if t == 0
                else p @ A[(t - 1) % 3 if periods is None else periods[t - 1]]
            )
            assert np.abs(S.posterior(0) - p).max() < 1e-12
    full = rng.integers(0, 6, (4, 5))
    S, steps = T.start(users=4, priors="point"), []
    for t in range(5):
        steps.append(S.step(full[:, t], period=told[t - 1]).released)
    assert (steps == T.run(full, "point", periods=told).released.T).all()
    assert (
        T.run(full, "point", periods=np.arange(5) % 3).released == T.run(full, "point").released
    ).all()
    for bad in ([0, 1], [0, 1, 2, 3, 0], [0, 1, 2, -1, 0]):
        with pytest.raises(InvalidTransition, match=r"periods must be 5 numbers in 0\.\.2"):
            T.run(full, periods=bad)
    with pytest.raises(InvalidParameter, match="period must be an integer in"):
        S.step(full[:, 0], period=3)


def test_density_likelihood():
    """The density at the released cell, exp(-eps gauge), instead of its Voronoi region's mass;
    the noise is the same."""
    g = pf.Grid(4, 4)
    G, prior = pf.complete(g), np.random.default_rng(0).dirichlet(np.ones(16))
    M = pf.MobilityModel(g, np.eye(16))
    S, X = (
        pf.TraceReleaser(G, M, epsilon=1.5, likelihood=k, rng=4).start(priors=prior)
        for k in ("density", "exact")
    )
    z = int(S.step([5]).released[0])
    assert z == X.step([5]).released[0]
    gauge = naive.gauge(naive.sensitivity_hull(g.lattice, edge_set(G)), g.lattice - g.lattice[z])
    expected = np.exp(-1.5 * gauge) * prior
    assert np.abs(S.posterior(0) - expected / expected.sum()).max() < 1e-12
    assert np.abs(S.posterior(0) - X.posterior(0)).max() > 1e-3


# In distribution


def chi_square(released, outputs, p):
    """The probability of a worse fit; outputs that are expected fewer than 5 times are taken
    together."""
    counts = np.array([(released == z).sum() for z in outputs])
    assert counts.sum() == len(released)
    expected = p * len(released)
    few = expected < 5
    observed = np.append(counts[~few], counts[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    assert observed[expected == 0].sum() == 0
    observed, expected = observed[expected > 0], expected[expected > 0]
    return chi2.sf(((observed - expected) ** 2 / expected).sum(), max(len(expected) - 1, 1))


@large
@both_ways
@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_released_cells_follow_pmf(calibration, mechanism, delta):
    """At t = 1 all users are alike; at t = 2 those that released the same cell are, and so on at
    t = 3."""
    rng = np.random.default_rng(11)
    g = pf.Grid(5, 5, cell_km=(1.0, 0.5))
    G = pf.blocks(g, 2)
    A = random_transitions(rng, 25, 4.0)
    T = pf.TraceReleaser(
        G,
        pf.MobilityModel(g, A),
        epsilon=1.2,
        mechanism=mechanism,
        calibration=calibration,
        delta=delta,
        rng=21,
    )
    prior = np.zeros(25)
    prior[[0, 1, 6, 12, 22, 24]] = [
        0.2,
        0.1,
        0.15,
        0.25,
        0.25,
        0.05,
    ]  # 12 and 22 need a repair, 24 does not
    n = 30_000
    S = T.start(users=n, priors=prior)
    path, fits, repaired = [12, int(A[12].argmax()), 6], [], 0
    group = np.zeros(n, np.int64)
    for s in path:
        r = S.step(np.full(n, s))
        for k in np.unique(group):
            members = np.flatnonzero(group == k)
            if len(members) < 400:
                continue
            u = int(members[0])
            C, policy = S.domain(u), S.policy(u)
            repaired += r.added[u]
            at = s if s in C else naive.surrogate(g.lattice, g.scale, set(C), s)
            mechanism_t = MECHANISMS[mechanism](
                policy, epsilon=1.2, domain=C, calibration=calibration
            )
            fits.append(chi_square(r.released[members], *mechanism_t.pmf(at)))
        group = group * 26 + r.released + 1
    assert len(fits) > 5
    assert repaired > 0
    assert min(fits) > 0.001 / len(fits)
    assert np.mean(fits) > 0.5 - 4 / np.sqrt(12 * len(fits))


# Support


@both_ways
@pytest.mark.parametrize("tiny", [1e-200, 1e-300, 5e-324])
@pytest.mark.parametrize("shape", [(1, 8), (2, 5), (2, 200)])
def test_nothing_possible_is_lost_to_underflow(calibration, mechanism, tiny, shape):
    g = pf.Grid(*shape)
    n = g.size
    A = np.zeros((n, n))
    for s in range(n):
        A[s, (s + 1) % n] = tiny
        A[s, s] = 1.0
    G = pf.complete(g)
    T = pf.TraceReleaser(
        G,
        pf.MobilityModel(g, A),
        epsilon=2000.0,
        mechanism=mechanism,
        calibration=calibration,
        rng=1,
        likelihood="exact",
    )
    S = T.start(priors=np.eye(n)[0])
    steps = 15 if numba.config.DISABLE_JIT else 40
    for t in range(steps):
        r = S.step([0])
        assert len(S.domain(0)) == r.domain_size[0] == min(t + 1, n)
        p = S.posterior(0)
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert not r.surrogate[0]
    assert not S.step([min(n - 1, steps)]).surrogate[
        0
    ]  # the least likely place of all is still possible
    assert np.isfinite(S.posterior(0)).all()


def test_unlikely_walk_is_believed():
    """A user who makes every tiny move: the logarithms that remain are exact ratios."""
    g = pf.Grid(1, 6)
    A = np.zeros((6, 6))
    for s in range(6):
        A[s, (s + 1) % 6], A[s, s] = 1e-250, 1.0
    T = pf.TraceReleaser(
        pf.PolicyGraph.from_edges(g, np.empty((0, 2), int)),
        pf.MobilityModel(g, A),
        epsilon=1.0,
        rng=0,
    )
    S = T.start(priors="point")
    for t in range(30):  # no edges: everything is disclosed
        r = S.step([t % 6])
        assert r.released[0] == t % 6
        assert not r.surrogate[0]
        assert S.posterior(0)[t % 6] == 1.0
    G = pf.complete(g)
    S = pf.TraceReleaser(G, pf.MobilityModel(g, A), epsilon=2000.0, rng=0).start(priors="point")
    for t in range(30):
        r = S.step([t % 6])
        assert not r.surrogate[0]
        assert r.domain_size[0] == min(t + 1, 6)
        assert S.posterior(0).sum() == pytest.approx(1, abs=1e-12)


def test_many_missing_steps_keep_the_support():
    g = pf.Grid(1, 5)
    A = np.eye(5) * 1.0
    for s in range(4):
        A[s, s + 1] = 1e-220
    S = pf.TraceReleaser(pf.complete(g), pf.MobilityModel(g, A), epsilon=1.0, rng=0).start(
        priors="point"
    )
    S.step([0])
    for _ in range(6):
        S.step([-1])
    assert S.step([4]).domain_size[0] == 5


def test_stationary_prior_leaves_nothing_possible_out():
    """priors=None on a chain whose stationary probabilities float64 cannot hold: delta = 0 still
    means everything possible."""
    g = pf.Grid(1, 3)
    A = np.array([[1.0, 1e-200, 0], [0.5, 0.5, 1e-200], [0, 0.5, 0.5]])
    S = pf.TraceReleaser(pf.complete(g), pf.MobilityModel(g, A), epsilon=1.0, rng=0).start()
    r = S.step([2])
    assert r.domain_size[0] == 3
    assert not r.surrogate[0]


@both_ways
def test_possible_truth_is_always_in_the_domain(calibration, mechanism):
    rng = np.random.default_rng(4)
    g = pf.Grid(4, 4)
    A = random_transitions(rng, 16)
    T = pf.TraceReleaser(
        pf.blocks(g, 2),
        pf.MobilityModel(g, A),
        epsilon=5.0,
        mechanism=mechanism,
        calibration=calibration,
        rng=2,
    )
    users = 12
    starts = rng.integers(0, 16, users)
    traces = np.array([walk(rng, A, s, 20) for s in starts])
    S = T.start(users=users, priors="point")
    for t in range(20):
        r = S.step(traces[:, t])
        assert not r.surrogate.any()
        for u in range(users):
            C = S.domain(u)
            assert traces[u, t] in C
            assert r.released[u] in C


# Surrogates


@pytest.mark.parametrize("kind", ["grid", "points"])
def test_surrogate_is_the_nearest_of_the_domain(kind):
    """At a large epsilon what is released is what was released from."""
    rng = np.random.default_rng(5)
    grid = pf.Grid(7, 7, cell_km=(1.0, 0.5))
    locations = (
        grid if kind == "grid" else pf.Points(np.asarray(grid.xy(np.arange(49))), resolution_km=0.5)
    )
    # each location alone in the policy: no noise, so the released cell is the surrogate itself
    none = pf.PolicyGraph.from_edges(locations, np.empty((0, 2), int))
    M = pf.MobilityModel(locations, np.eye(49))
    for _ in range(6):
        C = sorted(rng.permutation(49)[: rng.integers(1, 9)].tolist())
        prior = np.zeros(49)
        prior[C] = 1 / len(C)
        r = (
            pf.TraceReleaser(none, M, epsilon=1.0, rng=0)
            .start(users=49, priors=prior)
            .step(np.arange(49))
        )
        expected = [
            naive.surrogate(locations.lattice, locations.scale, set(C), s) for s in range(49)
        ]
        assert r.released.tolist() == expected
        assert r.surrogate.tolist() == [s not in C for s in range(49)]


def test_surrogate_ties_go_to_the_lower_index():
    g = pf.Grid(3, 3)
    none = pf.PolicyGraph.from_edges(g, np.empty((0, 2), int))
    T = pf.TraceReleaser(none, pf.MobilityModel(g, np.eye(9)), epsilon=1.0, rng=0)
    for C, lowest in (([1, 3, 5, 7], 1), ([7, 5], 5), ([0, 2, 6, 8], 0), ([8, 6], 6), ([3, 5], 3)):
        prior = np.zeros(9)
        prior[C] = 1 / len(C)
        r = T.start(priors=prior).step([4])
        assert r.surrogate[0]
        assert r.released[0] == lowest


def test_delta_cuts_the_least_likely():
    g = pf.Grid(1, 5)
    none = pf.PolicyGraph.from_edges(g, np.empty((0, 2), int))
    prior = np.array([0.1, 0.4, 0.2, 0.2, 0.1])
    M = pf.MobilityModel(g, np.eye(5))
    for delta, C in (
        (0.05, [0, 1, 2, 3, 4]),
        (0.15, [0, 1, 2, 3]),
        (0.25, [1, 2, 3]),
        (0.45, [1, 2]),
        (0.65, [1]),
        (0.99, [1]),
    ):
        S = pf.TraceReleaser(none, M, epsilon=1.0, delta=delta, rng=0).start(users=5, priors=prior)
        assert S.domain(0).cells().tolist() == C
        r = S.step(np.arange(5))
        assert r.surrogate.tolist() == [s not in C for s in range(5)]
        assert set(np.flatnonzero(S.posterior(0))) <= set(C)


def test_delta_with_even_priors():
    """Mass that reaches 1 - delta up to rounding is enough: 90 of 100 equal cells for delta =
    0.1."""
    for n, delta in product((10, 20, 50, 100), (0.1, 0.2, 0.5)):
        g = pf.Grid(1, n)
        prior = np.full(n, 1 / n)
        T = pf.TraceReleaser(
            pf.blocks(g, 2),
            pf.MobilityModel(g, scipy.sparse.eye_array(n)),
            epsilon=1.0,
            delta=delta,
            rng=0,
        )
        expected = naive.constrained_domain(prior, delta)
        assert len(expected) == round(n * (1 - delta))
        assert set(T.start(priors=prior).domain(0)) == expected, (n, delta)


def test_exposed_where_nothing_can_be_done():
    g = pf.Grid(2, 2)
    M = pf.MobilityModel(g, np.eye(4))
    r = (
        pf.TraceReleaser(pf.complete(g), M, epsilon=1.0, rng=0)
        .start(users=2, priors="point")
        .step([3, -1])
    )
    assert r.exposed.tolist() == [True, False]
    assert r.released.tolist() == [3, -1]
    assert r.added.tolist() == [0, 0]
    none = pf.PolicyGraph.from_edges(g, np.empty((0, 2), int))
    assert (
        not pf.TraceReleaser(none, M, epsilon=1.0, rng=0).start(priors="point").step([3]).exposed[0]
    )


# Bit for bit


def releaser(calibration="component", mechanism="ppim", side=6, seed=9, **options):
    rng = np.random.default_rng(seed)
    g = pf.Grid(side, side)
    A = scipy.sparse.csr_array(random_transitions(rng, g.size, 3.0))
    return pf.TraceReleaser(
        pf.blocks(g, 3),
        pf.MobilityModel(g, A),
        epsilon=1.0,
        mechanism=mechanism,
        calibration=calibration,
        **{"rng": 77, **options},
    )


def some_traces(T, users, steps, seed=1, missing=0.15):
    rng = np.random.default_rng(seed)
    traces = rng.integers(0, T.locations.size, (users, steps))
    return np.where(rng.random(traces.shape) < missing, -1, traces)


def stepped(S, traces):
    steps = [S.step(column) for column in traces.T]
    return {
        name: np.array([getattr(r, name) for r in steps]).T.reshape(traces.shape) for name in FIELDS
    }


def assert_same(a, b):
    for name in FIELDS:
        assert a[name].dtype == b[name].dtype, name
        assert np.array_equal(a[name], b[name]), name


def state(S):
    """Everything a stream can tell, as bytes."""
    told = []
    for u in range(S.users):
        try:
            told.append(S.posterior(u).tobytes())
            told.append(S.domain(u).words.tobytes())
            told.append(S.policy(u).edges().tobytes())
        except PGLPError as error:
            told.append(str(error))
        told.append((S.ledger.epsilon(u), S.ledger.graph(u).edges().tobytes()))
    return S.t, told


@both_ways
@pytest.mark.parametrize("priors", [None, "point"])
def test_batches_order_and_run(calibration, mechanism, priors):
    T = releaser(calibration, mechanism, side=4, delta=0.05)
    traces = some_traces(T, 12, 6)
    whole = stepped(T.start(users=12, priors=priors), traces)
    assert_same(whole, fields(T.run(traces, priors)))
    order = np.random.default_rng(0).permutation(12)
    mixed = stepped(T.start(users=order, priors=priors), traces[order])
    assert_same({k: v[order] for k, v in whole.items()}, mixed)
    assert_same(mixed, fields(T.run(traces[order], priors, users=order)))
    for u in range(12):
        assert_same(
            {k: v[u : u + 1] for k, v in whole.items()},
            stepped(T.start(users=[u], priors=priors), traces[u : u + 1]),
        )


@large
@both_ways
def test_a_thousand_users_bit_for_bit(calibration, mechanism):
    T = releaser(calibration, mechanism)
    traces = some_traces(T, 1000, 5)
    before = pf.get_num_threads()
    try:
        pf.set_num_threads(1)
        S = T.start(users=1000)
        whole = stepped(S, traces)
        told = state(S)
        for threads in (2, 3, 7):
            pf.set_num_threads(threads)
            S = T.start(users=1000)
            assert_same(whole, stepped(S, traces))
            assert state(S) == told
    finally:
        pf.set_num_threads(before)
    prior = T.model.stationary()
    for u in range(0, 1000, 10):
        S = T.start(users=[u], priors=prior)
        assert_same({k: v[u : u + 1] for k, v in whole.items()}, stepped(S, traces[u : u + 1]))
        assert state(S)[1] == told[1][4 * u : 4 * u + 4]


@large
def test_run_in_blocks():
    """More users than ``run`` takes at once."""
    T = releaser(side=4)
    traces = some_traces(T, 4500, 3)
    assert_same(fields(T.run(traces)), stepped(T.start(users=4500), traces))
    priors = np.random.default_rng(0).dirichlet(np.ones(16), 4500)
    assert_same(fields(T.run(traces, priors)), stepped(T.start(users=4500, priors=priors), traces))


@both_ways
@pytest.mark.parametrize("priors", ["point", "shared", "own"])
def test_stopped_and_resumed_at_any_step(calibration, mechanism, priors, tmp_path):
    T = releaser(calibration, mechanism, side=4, delta=0.02, rng=None)
    users = np.array([5, 2, 900, 7])
    given = {
        "point": "point",
        "shared": None,
        "own": np.random.default_rng(0).dirichlet(np.ones(16), 4),
    }[priors]
    traces = some_traces(T, 4, 7)
    traces[1, :3] = -1  # starts late
    traces[2, 4:] = -1  # stops early
    S = T.start(users=users, priors=given)
    path = tmp_path / "state"
    S.save(path)
    kept = [path.read_bytes()]
    reference, told = [], []
    for column in traces.T:
        reference.append(fields(S.step(column)))
        told.append(state(S))
        S.save(path)
        kept.append(path.read_bytes())
    for stop in range(8):
        path.write_bytes(kept[stop])
        again = T.resume(path)
        assert again.t == stop
        assert again.ids.tolist() == users.tolist()
        if stop:
            assert state(again) == told[stop - 1]
        for t in range(stop, 7):
            assert_same(reference[t], fields(again.step(traces[:, t])))
            assert state(again) == told[t]


def test_keys():
    """A seed gives the same noise again, none never does; another step, another user: other
    noise."""
    T = releaser(side=6, delta=0.0)
    traces = np.full((12, 3), 14)
    prior = np.full(36, 1 / 36)
    a, b = T.run(traces, prior), T.run(traces, prior)
    assert_same(fields(a), fields(b))
    free = releaser(side=6, rng=None)
    assert (free.run(traces, prior).released != free.run(traces, prior).released).any()
    assert (a.released[:, 0] != a.released[:, 1]).any()
    assert len(np.unique(a.released[:, 0])) > 1
    assert (a.released != T.run(traces, prior, users=np.arange(12) + 40).released).any()
    assert (a.released != releaser(side=6, rng=78).run(traces, prior).released).any()


# Missing observations


def test_missing_observations():
    T = releaser(side=4)
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(16))
    S = T.start(users=3, priors=prior)
    r = S.step([-1, 3, -1])
    assert r.released.tolist()[::2] == [-1, -1]
    for name in FIELDS[1:]:
        assert getattr(r, name)[[0, 2]].tolist() == [0, 0]
    assert np.abs(S.posterior(0) - prior).max() < 1e-15
    assert (S.ledger.epsilon(0), S.ledger.epsilon(1)) == (0.0, 1.0)
    assert S.ledger.graph(0) == T.graph  # before any release
    before = S.posterior(1)
    S.step([-1, -1, 5])
    # not started: the prior waits; started: it moves on, and nothing is spent
    assert np.abs(S.posterior(0) - prior).max() < 1e-15
    assert np.abs(S.posterior(1) - before @ T.model.matrix().toarray()).max() < 1e-14
    assert [S.ledger.epsilon(u) for u in range(3)] == [0.0, 1.0, 1.0]
    S.step([7, -1, -1])
    assert S.domain(0) == pf.Domain(T.locations, np.flatnonzero(prior))
    assert [S.ledger.epsilon(u) for u in range(3)] == [1.0, 1.0, 1.0]


def test_late_start_equals_an_early_one_but_for_the_noise():
    """The prior is that of the first observation, whenever that is."""
    T = releaser(side=4)
    prior = np.random.default_rng(0).dirichlet(np.ones(16))
    prior[::2] = 0
    prior /= prior.sum()
    late, early = T.start(priors=prior), T.start(priors=prior)
    for _ in range(5):
        late.step([-1])
    a, b = late.step([1]), early.step([1])
    for name in FIELDS[1:]:
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    assert late.domain(0) == early.domain(0)
    assert edge_set(late.policy(0)) == edge_set(early.policy(0))


def test_users_that_stop_spend_nothing_more():
    T = releaser(side=4)
    traces = some_traces(T, 5, 8, missing=0)
    traces[0, 3:] = -1
    traces[1] = -1
    S = T.start(users=5, priors="point")
    result = stepped(S, traces)
    assert (result["released"] == -1).tolist() == (traces == -1).tolist()
    assert [S.ledger.epsilon(u) for u in range(5)] == [3.0, 0.0, 8.0, 8.0, 8.0]
    assert S.ledger.graph(1) == T.graph


def test_point_prior_is_unknown_before_the_first_cell():
    """Nobody can say what a user's first cell will be: above all not that it is cell 0."""
    T = releaser(side=4)
    S = T.start(users=2, priors="point")
    S.step([5, -1])
    assert S.posterior(0)[5] == 1.0
    for stream, u in ((S, 1), (T.start(users=2, priors="point"), 0)):
        for ask in ("posterior", "domain", "policy"):
            with pytest.raises(PGLPError, match="has not started"):
                getattr(stream, ask)(u)


# Priors


def test_kinds_of_prior():
    T = releaser(side=4)
    rng = np.random.default_rng(0)
    one, many = rng.dirichlet(np.ones(16)), rng.dirichlet(np.ones(16), 3)
    many[1, :12] = 0
    many[1] /= many[1].sum()
    traces = some_traces(T, 3, 4)
    assert_same(fields(T.run(traces, one)), fields(T.run(traces, np.tile(one, (3, 1)))))
    assert_same(fields(T.run(traces, one)), fields(T.run(traces, one.tolist())))
    assert_same(fields(T.run(traces)), fields(T.run(traces, T.model.stationary())))
    for form in ("csr", "csc", "coo", "lil"):
        assert_same(
            fields(T.run(traces, many)),
            fields(T.run(traces, scipy.sparse.coo_array(many).asformat(form))),
        )
    S = T.start(users=3, priors=many)
    assert np.abs(S.posterior(1) - many[1]).max() < 1e-15
    assert S.domain(1).cells().tolist() == [12, 13, 14, 15]
    points = scipy.sparse.coo_array((np.ones(3), (np.arange(3), [4, 9, 0])), shape=(3, 16))
    traces = np.array([[4, 3], [9, 1], [0, 7]])
    assert_same(fields(T.run(traces, "point")), fields(T.run(traces, points)))
    S = T.start(users=3, priors="point")
    S.step(traces[:, 0])
    assert [S.domain(u).cells().tolist() for u in range(3)] == [[4], [9], [0]]


def test_priors_are_left_alone():
    T = releaser(side=4)
    data = np.array([0.5, 0.0, 0.5])
    prior = scipy.sparse.csr_array((data, np.array([9, 2, 1]), np.array([0, 3])), shape=(1, 16))
    T.start(priors=prior)
    assert prior.indices.tolist() == [9, 2, 1]
    assert prior.data.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        (np.full(15, 1 / 15), r"shape \(2, 16\) or \(16,\), got \(15,\)"),
        (np.full((3, 16), 1 / 16), r"got \(3, 16\)"),
        (np.full((1, 16), 1 / 16), r"got \(1, 16\)"),
        (scipy.sparse.eye_array(16), r"got \(16, 16\)"),
        (np.stack([np.full(16, 1 / 16), np.full(16, 1 / 15)]), r"prior of user 1 sums to 1\.0666"),
        (np.zeros(16), "prior of user 0 sums to 0"),
        (np.full(16, np.nan), "prior of user 0 sums to nan"),
        (np.array([1.5, -0.5] + [0] * 14), "prior of user 0 .* negative entry"),
    ],
)
def test_bad_priors(priors, message):
    with pytest.raises(InvalidTransition, match=message):
        releaser(side=4).start(users=2, priors=priors)


def test_priors_of_no_known_name_or_shape():
    T = releaser(side=4)
    with pytest.raises(InvalidParameter, match="priors must be one of 'point'"):
        T.start(priors="uniform")
    with pytest.raises(InvalidTransition, match="priors must have shape"):
        T.start(priors=np.zeros((1, 2, 16)))


# Budget


def test_budget_refuses_before_any_noise():
    T, free = releaser(side=4, budget=2.0), releaser(side=4)
    S, F = T.start(users=3, priors="point"), free.start(users=3, priors="point")
    for cells in ([1, -1, 2], [3, 4, -1]):
        assert S.step(cells).released.tolist() == F.step(cells).released.tolist()
    told = state(S)
    # user 0 has spent its 2: the whole step is refused, though others have some left
    with pytest.raises(
        BudgetExceeded,
        match=r"user 0 has spent 2 of 2 and asks for 1 more \(1 users are over\): nothing was",
    ):
        S.step([5, 6, 7])
    assert state(S) == told
    assert [S.ledger.epsilon(u) for u in range(3)] == [2.0, 1.0, 1.0]
    # what follows is as if it had not been asked
    assert_same(fields(S.step([-1, 6, 7])), fields(F.step([-1, 6, 7])))
    with pytest.raises(BudgetExceeded, match="3 users are over"):
        S.step([0, 0, 0])
    assert_same(fields(S.step([-1, -1, -1])), fields(F.step([-1, -1, -1])))
    assert state(S) == state(F)


def test_budget_in_a_resumed_stream_and_by_user_number(tmp_path):
    T = releaser(side=4, budget=1.0)
    S = T.start(users=[40, 30], priors="point")
    S.step([-1, 2])
    S.save(tmp_path / "s")
    S = T.resume(tmp_path / "s")
    with pytest.raises(BudgetExceeded, match="user 30 has spent 1 of 1"):
        S.step([1, 1])
    assert S.step([1, -1]).released[0] >= 0


def test_budget_of_a_run():
    T = releaser(side=4, budget=3.0)
    traces = some_traces(T, 6, 5, missing=0)
    traces[:, 3:] = -1
    assert_same(fields(T.run(traces)), fields(releaser(side=4).run(traces)))
    traces[4, 3:] = 1
    with pytest.raises(BudgetExceeded, match=r"user 4 has spent 0 of 3 and asks for 5 more"):
        T.run(traces)
    with pytest.raises(BudgetExceeded, match=r"user 14 "):
        T.run(traces, users=np.arange(10, 16))


def test_ten_tenths_fit_in_one():
    T = pf.TraceReleaser(
        pf.blocks(pf.Grid(2, 2), 2),
        pf.MobilityModel(pf.Grid(2, 2), np.eye(4)),
        epsilon=0.1,
        budget=1.0,
        rng=0,
    )
    S = T.start()
    for _ in range(10):
        S.step([0])
    with pytest.raises(BudgetExceeded):
        S.step([0])
    assert S.ledger.epsilon(0) == pytest.approx(1.0)


# Memory


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_memory_does_not_grow_with_t(calibration):
    T = releaser(calibration, side=3)
    traces = some_traces(T, 4, 80, missing=0.1)
    S = T.start(users=4, priors="point")
    sizes = []
    for column in traces.T:
        S.step(column)
        sizes.append(S.memory())
    assert np.mean(sizes[60:]) <= 1.1 * np.mean(sizes[20:40])
    assert max(sizes) < 4 * (
        2 * 9 * (4 + 8) + 9 * 4 + 9 * 8 + 150
    )  # beliefs, ledger cells, repaired edges, and a little


def test_saved_size_does_not_grow_with_t(tmp_path):
    T = releaser(side=5)
    S = T.start(users=4, priors=np.full(25, 1 / 25))
    sizes = []
    for column in some_traces(T, 4, 24, missing=0).T:
        S.step(column)
        S.save(tmp_path / "s")
        sizes.append((tmp_path / "s").stat().st_size)
    assert max(sizes[12:]) <= max(sizes[:12]) * 1.05


# Errors


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1.0, 2.0], "cells must be integers, got dtype float64"),
        ([True, False], "cells must be integers, got booleans"),
        ([1], "cells has 1 entries for 2 users: give one for each, -1 for missing"),
        ([1, 2, 3], "cells has 3 entries for 2 users"),
        ([], "cells has 0 entries for 2 users"),
        ([1, 16], r"user 8 is at 16: cells are 0\.\.15, and -1 for missing"),
        ([-2, 1], "user 5 is at -2"),
        (np.array([1, 2**63], np.uint64), "user 8 is at 9223372036854775808"),
    ],
)
def test_bad_cells_change_nothing(cells, message):
    T = releaser(side=4)
    S, untouched = (T.start(users=[5, 8], priors="point") for _ in range(2))
    S.step([3, 4])
    untouched.step([3, 4])
    with pytest.raises(InvalidTransition, match=message):
        S.step(cells)
    assert state(S) == state(untouched)
    assert_same(fields(S.step([1, 2])), fields(untouched.step([1, 2])))


@pytest.mark.parametrize(
    ("traces", "message"),
    [
        (np.zeros((2, 3)), "traces must be integers, got dtype float64"),
        (
            np.zeros(3, int),
            r"traces must have shape \(users, T\), got \(3,\): "
            r"one user's trace is trace\[None, :\]",
        ),
        (np.zeros((1, 2, 3), int), r"got \(1, 2, 3\)"),
        (
            np.array([[0, 1], [2, 16]]),
            r"user 1 has 16 at step 1: cells are 0\.\.15, and -1 for missing",
        ),
        (np.array([[0, -2]]), "user 0 has -2 at step 1"),
    ],
)
def test_bad_traces(traces, message):
    with pytest.raises(InvalidTransition, match=message):
        releaser(side=4).run(traces)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([3, 1, 3], "user 3 occurs twice"),
        ([0, -1], r"numbers in 0\.\."),
        ([0, 2**60], r"numbers in 0\.\."),
        ([0.0, 1.0], "users must be integers, got dtype float64"),
        ([[0, 1]], "1-d array"),
        (-1, "users must be an integer at least 0"),
        (2.5, "users must be an integer"),
    ],
)
def test_bad_users(users, message):
    T = releaser(side=4)
    with pytest.raises(InvalidParameter, match=message):
        T.start(users=users)
    if np.ndim(users) == 1:
        with pytest.raises(InvalidParameter, match=message):
            T.run(np.zeros((len(users), 2), int), users=users)


def test_users_and_traces_must_agree():
    with pytest.raises(InvalidParameter, match="users has 3 numbers for 2 traces"):
        releaser(side=4).run(np.zeros((2, 2), int), users=[1, 2, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"mechanism": "laplace"}, "mechanism must be one of 'ppim', 'plm'"),
        ({"calibration": "node"}, "calibration must be one of"),
        ({"repair": "best"}, "repair must be one of"),
        ({"likelihood": "log"}, "likelihood must be one of"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"delta": -0.1}, "delta must be at least 0 and below 1"),
        ({"delta": np.nan}, "delta must be at least 0 and below 1"),
        ({"budget": 0}, "budget must be a finite number above 0"),
        ({"rng": -1}, "rng"),
        ({"rng": 1.5}, "rng"),
    ],
)
def test_bad_options(options, message):
    g = pf.Grid(2, 2)
    with pytest.raises(InvalidParameter, match=message):
        pf.TraceReleaser(
            pf.blocks(g, 2), pf.MobilityModel(g, np.eye(4)), **{"epsilon": 1.0, **options}
        )


def test_policy_and_model_must_fit():
    g, h = pf.Grid(2, 3), pf.Grid(3, 2)
    G, M = pf.blocks(g, 2), pf.MobilityModel(h, np.eye(6))
    with pytest.raises(InvalidTransition):
        pf.TraceReleaser(G, M, epsilon=1.0)
    with pytest.raises(InvalidPolicy, match="must be a PolicyGraph, got MobilityModel"):
        pf.TraceReleaser(M, M, epsilon=1.0)
    with pytest.raises(InvalidTransition, match="must be a MobilityModel, got ndarray"):
        pf.TraceReleaser(G, np.eye(6), epsilon=1.0)


@pytest.mark.parametrize("ask", ["domain", "policy", "posterior"])
def test_users_are_asked_for_by_place(ask):
    S = releaser(side=4).start(users=2)
    for u in (2, -1, 0.5):
        with pytest.raises(InvalidParameter, match="u must be an integer"):
            getattr(S, ask)(u)
    for u in (2, -1):
        with pytest.raises(InvalidParameter, match="u must be an integer in"):
            S.ledger.epsilon(u)
        with pytest.raises(InvalidParameter, match="u must be an integer in"):
            S.ledger.graph(u)


# Shapes, types, looks


def test_nobody_and_no_time():
    T = releaser(side=4)
    assert T.start(users=0).step([]).released.shape == (0,)
    assert T.run(np.empty((0, 3), int)).released.shape == (0, 3)
    assert T.run(np.empty((3, 0), int)).released.shape == (3, 0)


def test_types():
    T = releaser(side=4)
    traces = some_traces(T, 3, 4)
    R = T.run(traces)
    assert R.released.dtype == np.int32
    for name in FIELDS[1:5]:
        assert getattr(R, name).dtype == np.int64
    assert R.surrogate.dtype == R.exposed.dtype == bool
    for dtype in (np.int8, np.int16, np.int32, ">i4"):
        assert_same(fields(R), fields(T.run(traces.astype(dtype))))
    assert_same(fields(R), fields(T.run(np.asfortranarray(traces))))
    assert_same(fields(R), fields(T.run(traces.tolist())))
    assert T.start().step(3).released.shape == (1,)
    assert "t=0" in repr(T.start())
    assert "ppim" in repr(T)


def test_results_and_ledgers_stay_as_they_were():
    """A later step does not change what an earlier one gave out."""
    T = releaser(side=4)
    S = T.start(users=2, priors="point")
    first = S.step([1, 2])
    ledger, kept = S.ledger, {k: v.copy() for k, v in fields(first).items()}
    spent, graph = ledger.epsilon(0), edge_set(ledger.graph(0))
    cells = np.array([3, 4])
    S.step(cells)
    assert cells.tolist() == [3, 4]
    assert_same(fields(first), kept)
    assert (ledger.epsilon(0), edge_set(ledger.graph(0))) == (spent, graph)


def test_progress(capsys):
    T = releaser(side=4)
    traces = some_traces(T, 3, 4)
    quiet = T.run(traces)
    assert capsys.readouterr() == ("", "")
    loud = T.run(traces, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "10 of 10 user-steps" in err
    assert_same(fields(quiet), fields(loud))


def test_interrupted_step_changes_nothing(monkeypatch):
    """Ctrl-C in the middle of a step: the stream is where it was, and the same input gives the
    same output."""
    T = releaser(side=4)
    S, untouched = (T.start(users=3, priors="point") for _ in range(2))
    module = sys.modules[type(T.engine).__module__]
    S.step([1, 2, 3])
    untouched.step([1, 2, 3])
    real = module.run_ranges

    def interrupted(part, n, smallest):
        part(0, n)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_ranges", interrupted)
    with pytest.raises(KeyboardInterrupt):
        S.step([4, 5, 6])
    monkeypatch.setattr(module, "run_ranges", real)
    assert state(S) == state(untouched)
    assert_same(fields(S.step([4, 5, 6])), fields(untouched.step([4, 5, 6])))


def test_two_threads_cannot_step_one_stream_at_once():
    """They would share draws and budget: one of them gets the step, the other is refused."""

    g = pf.Grid(3, 3)
    M = pf.MobilityModel.fit(g, [[0, 1]], unseen="neighbours8")
    for _ in range(5):
        S = pf.TraceReleaser(pf.blocks(g, 3), M, epsilon=1.0, budget=1.0).start(200)

        def attempt(cell, stream=S):
            try:
                return stream.step(np.full(200, cell)).released
            except BudgetExceeded:
                return None

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(attempt, (0, 4)))
        assert sum(r is None for r in results) == 1
        assert S.t == 1
        assert S.ledger.epsilon(0) == 1.0


@pytest.mark.parametrize("offset", [(0, 0), (100_007, 12_345), (134_217_726, 77)])
def test_noise_along_a_tie_never_loses_the_truth(offset):
    """Two locations equally near all along the noise's line: large coordinates must not decide
    which is released."""
    a = np.array(offset) + np.array([200, 200])
    side = a - 30 * np.array([3, 1])
    sites = np.array([a, a + [3, 1], side + [-1, 3], side - [-1, 3], [0, 0]])
    points = pf.Points(sites * 0.001, resolution_km=0.001)
    G = pf.PolicyGraph.from_edges(points, [[0, 1]])
    T = pf.TraceReleaser(
        G, pf.MobilityModel(points, np.eye(5)), epsilon=0.05, calibration="graph", rng=3
    )
    S = T.start(4000, np.full(5, 0.2))
    released = S.step(np.full(4000, 1)).released
    again = S.step(np.full(4000, 1))
    assert not again.surrogate.any()
    outputs, p = pf.PPIM(G, epsilon=0.05, domain=pf.Domain.full(points), calibration="graph").pmf(1)
    assert set(released.tolist()) <= set(outputs[p > 0].tolist())


def test_a_large_clique_is_walked_once():
    """The component of a location in one clique of n cells costs O(n), not O(n^2): 22,500 cells
    would be half a billion steps."""
    g = pf.Grid(150, 150)
    T = pf.TraceReleaser(
        pf.complete(g),
        pf.MobilityModel.fit(g, [[0, 1]], unseen="stay"),
        epsilon=1.0,
        likelihood="density",
        rng=0,
    )
    small = pf.Grid(75, 75)
    S = pf.TraceReleaser(
        pf.complete(small),
        pf.MobilityModel.fit(small, [[0, 1]], unseen="stay"),
        epsilon=1.0,
        likelihood="density",
        rng=0,
    )
    times = []
    for releaser, n in ((S, small.size), (T, g.size)):
        stream = releaser.start(1, np.full(n, 1 / n))
        stream.step([0])
        each = []
        for _ in range(5):
            started = time.perf_counter()
            stream.step([0])
            each.append(time.perf_counter() - started)
        times.append(min(each))
    assert times[1] <= 12 * times[0]  # four times the cells; sixteen times for a square


def test_eight_threads_share_a_releaser():
    """Tables are added while others read them. Would catch a table that is found before it is
    whole, and a hash table that is changed under its readers."""
    T = releaser(side=8, seed=3)
    parts = [some_traces(T, 6, 12, seed=k) for k in range(24)]
    alone = [releaser(side=8, seed=3).run(part).released for part in parts[:4]]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda part: T.run(part), parts))
    for one, other in zip(alone, together, strict=False):
        assert (one == other.released).all()
    for part, found in zip(parts, together, strict=True):
        again = T.run(part)
        assert (again.released == found.released).all()
        assert found.certificate.ok
        assert found.certificate.tables == again.certificate.tables
