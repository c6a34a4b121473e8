"""Traces by every mechanism, with and without remapping, against filters written out in full;
and the evidence they leave."""

from itertools import product

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy.stats import chi2

import naive
import pglp_fast as pf
from cases import (
    edge_set,
    fields,
    large,
    policy_of_kind,
    random_map,
    random_prior,
    random_transitions,
    walk,
)
from pglp_fast.mechanisms.exp_bound import exp_lower_bound
from pglp_fast.traces import table_cache

STATIC = {
    "krr": pf.KRR,
    "graph-exponential": pf.GraphExponential,
    "optimal": pf.Optimal,
    "planar-laplace": pf.PlanarLaplace,
}
REMAPS = (None, "euclidean", "squared")
NOISE = ("ppim", "plm", "planar-laplace")


def krr(G, members, epsilon):
    k = len(members)
    return np.array([[np.exp(epsilon) if i == j else 1.0 for j in range(k)] for i in range(k)]) / (
        np.exp(epsilon) + k - 1
    )


def hops(G, members, epsilon):
    edges = edge_set(G)
    n = G.locations.size
    W = np.array(
        [
            [np.exp(-epsilon * naive.hop_distance(n, edges, int(a), int(b)) / 2) for b in members]
            for a in members
        ]
    )
    return W / W.sum(axis=1, keepdims=True)


def probabilities(mechanism, G, domain, members, epsilon, calibration):
    """Pr(z|s) over an output set: the closed forms written out, or the mechanism that stands
    still, which has its own tests."""
    if mechanism == "krr":
        return krr(G, members, epsilon)
    if mechanism == "graph-exponential":
        return hops(G, members, epsilon)
    if mechanism == "optimal":
        return pf.Optimal(G, epsilon=epsilon, domain=domain).matrix(int(members[0]))[1]
    kind = {"ppim": pf.PPIM, "plm": pf.PLM, "planar-laplace": pf.PlanarLaplace}[mechanism]
    return kind(G, epsilon=epsilon, domain=domain, calibration=calibration).matrix(int(members[0]))[
        1
    ]


def remapping(locations, members, P, p, loss):
    """to[z]: the place w that minimises sum_s p(s) Pr(z|s) loss(s, w), and how near the second
    best is, written out."""
    xy = locations.lattice[members] * np.asarray(locations.scale)
    to, gap = [], np.inf
    for z in range(len(members)):
        cost = []
        for w in range(len(members)):
            total = 0.0
            for s in range(len(members)):
                d = np.hypot(*(xy[s] - xy[w]))
                total += p[s] * P[s, z] * (d if loss == "euclidean" else d * d)
            cost.append(total)
        to.append(int(np.argmin(cost)))
        others = np.delete(cost, to[-1])
        if len(others):
            gap = min(gap, (others.min() - cost[to[-1]]) / max(sum(p * P[:, z]), 1e-300))
    return to, gap


def follow(
    locations,
    G,
    A,
    prior,
    truth,
    *,
    epsilon,
    mechanism,
    remap,
    calibration="component",
    delta=0.0,
    seed=0,
):
    """One user along ``truth``, every posterior held against the formula.

    Returns (stream, steps where a tie decides).
    """
    T = pf.TraceReleaser(
        G,
        pf.MobilityModel(locations, A),
        epsilon=epsilon,
        mechanism=mechanism,
        calibration=calibration,
        remap=remap,
        delta=delta,
        rng=seed,
    )
    S = T.start(users=1, priors=prior[None])
    before, ties = prior, 0
    for s in truth:
        r = S.step([s])
        if s < 0:
            assert np.abs(S.posterior(0) - before).max() < 1e-10
            before = before @ A
            continue
        z, domain, policy = int(r.released[0]), S.domain(0), S.policy(0)
        members = domain.cells() if calibration == "graph" else policy.component(z)
        P = probabilities(mechanism, policy, domain, members, epsilon, calibration)
        at = int(np.searchsorted(members, z))
        if remap is None:
            likelihood = P[:, at]
        else:
            to, gap = remapping(locations, members, P, before[members], remap)
            if (
                gap < 1e-9
                # equally good answers: rounding may choose differently, take the released one's own
                # posterior
            ):
                ties += 1
                before = S.posterior(0) @ A
                continue
            likelihood = P[:, [q for q in range(len(members)) if to[q] == at]].sum(axis=1)
            assert likelihood.sum() > 0
        after = np.zeros(locations.size)
        after[members] = before[members] * likelihood
        after /= after.sum()
        assert np.abs(S.posterior(0) - after).max() < 1e-10
        before = after @ A
    return S, ties


CASES = [(m, r, "component") for m, r in product(STATIC, REMAPS)]
CASES += [
    (m, r, c)
    for m in ("ppim", "plm")
    for r in ("euclidean", "squared")
    for c in ("component", "graph")
]


@pytest.mark.parametrize(("mechanism", "remap", "calibration"), CASES)
@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_posteriors_follow_the_formula(mechanism, remap, calibration, delta):
    """Random maps, policies and models. Catches a wrong key (another component's table), a
    remapping under the wrong prior, a posterior of who sees what was drawn instead of what was
    released."""
    ties = steps = 0
    for k in range(2 if numba.config.DISABLE_JIT else 6):
        rng = np.random.default_rng([k, len(mechanism), delta > 0])
        locations = random_map(rng, k)
        G, A = policy_of_kind(rng, locations, k), random_transitions(rng, locations.size)
        prior = random_prior(rng, locations.size)
        truth = walk(rng, A, rng.choice(locations.size, p=prior), 10)
        truth[4] = -1
        steps += len(truth)
        epsilon = (0.3, 1.0, 2.5)[k % 3]
        ties += follow(
            locations,
            G,
            A,
            prior,
            truth,
            epsilon=epsilon,
            mechanism=mechanism,
            remap=remap,
            calibration=calibration,
            delta=delta,
        )[1]
    assert ties < steps / 2  # most steps were compared


def city(side=12, cell=0.5, seed=0, users=40, steps=12):
    """A grid where people step to a neighbouring cell, and walks on it."""
    g = pf.Grid(side, side, cell_km=cell)
    n8 = pf.neighbours8(g)
    A = scipy.sparse.csr_array(
        (np.ones(len(n8.indices)), n8.indices, n8.indptr), shape=(g.size, g.size)
    )
    A = scipy.sparse.csr_array(A + scipy.sparse.eye_array(g.size))
    A = scipy.sparse.csr_array(A.multiply(1 / A.sum(axis=1).reshape(-1, 1)))
    rng = np.random.default_rng(seed)
    traces = np.empty((users, steps), np.int64)
    traces[:, 0] = rng.integers(0, g.size, users)
    for t in range(1, steps):
        for u in range(users):
            traces[u, t] = rng.choice(
                A.indices[A.indptr[traces[u, t - 1]] : A.indptr[traces[u, t - 1] + 1]]
            )
    traces[1, 2] = traces[1, 3] = traces[2, 0] = -1
    return g, pf.MobilityModel(g, A), traces


WAYS = [(m, r) for m in (*STATIC, "ppim", "plm") for r in (None, "euclidean")]


@pytest.mark.parametrize(("mechanism", "remap"), WAYS)
def test_batches_threads_observers_and_restarts_agree(mechanism, remap, tmp_path):
    g, model, traces = city(side=6, users=20, steps=7) if numba.config.DISABLE_JIT else city()
    T = pf.TraceReleaser(
        pf.blocks(g, 3), model, epsilon=1.0, mechanism=mechanism, remap=remap, rng=4
    )
    R = T.run(traces, evidence=True)
    assert (R.released[traces >= 0] >= 0).all()
    some = T.run(traces[10:20], users=np.arange(10, 20))
    assert np.array_equal(some.released, R.released[10:20])
    before = pf.get_num_threads()
    try:
        pf.set_num_threads(1)
        alone = T.run(traces, evidence=True)
    finally:
        pf.set_num_threads(before)
    assert all(np.array_equal(a, fields(R)[name]) for name, a in fields(alone).items())
    seen = T.observe(R.released)  # an outsider who knows everything but the key
    for E in (alone.evidence, seen):
        for name in ("start", "cells", "logs", "released", "steps", "first", "cycle"):
            assert np.array_equal(getattr(E, name), getattr(R.evidence, name)), name
    S = T.start(users=len(traces))
    for t in range(5):
        S.step(traces[:, t])
    S.save(tmp_path / "s")
    S = T.resume(tmp_path / "s")
    for t in range(5, traces.shape[1]):
        assert np.array_equal(S.step(traces[:, t]).released, R.released[:, t])
    other = pf.TraceReleaser(
        pf.blocks(g, 3),
        model,
        epsilon=1.0,
        mechanism="krr" if mechanism != "krr" else "ppim",
        rng=4,
    )
    with pytest.raises(pf.InvalidState, match="saved under another policy, map, model or setting"):
        other.resume(tmp_path / "s")


@pytest.mark.parametrize(("mechanism", "remap"), WAYS)
def test_evidence_is_what_moves_the_posterior(mechanism, remap):
    g, model, traces = city(users=6, steps=6)
    T = pf.TraceReleaser(
        pf.blocks(g, 3), model, epsilon=1.0, mechanism=mechanism, remap=remap, rng=4
    )
    E = T.run(traces, evidence=True).evidence
    S = T.start(users=len(traces))
    M = model.matrix().toarray()
    belief = [S.posterior(u) for u in range(len(traces))]
    started = np.zeros(len(traces), bool)
    for t in range(traces.shape[1]):
        S.step(traces[:, t])
        for u in range(len(traces)):
            before = belief[u] @ M if started[u] else belief[u]
            rows = np.arange(E.first[u], E.first[u + 1])
            rows = rows[E.steps[rows] == t]
            if traces[u, t] < 0:
                assert (E.start[rows] == E.start[rows + 1]).all()
                belief[u] = before if started[u] else belief[u]
                continue
            row = slice(E.start[rows[0]], E.start[rows[0] + 1])
            started[u] = True
            after = np.zeros(g.size)
            after[E.cells[row]] = before[E.cells[row]] * np.exp(E.logs[row])
            belief[u] = after / after.sum()
            assert np.abs(belief[u] - S.posterior(u)).max() < 1e-12


@large
@pytest.mark.parametrize(
    ("mechanism", "remap"),
    [(m, r) for m in STATIC for r in (None, "euclidean")] + [("ppim", "euclidean")],
)
def test_released_cells_follow_the_probabilities(mechanism, remap):
    """20,000 users with one prior and one true cell: chi-square at 1e-6. A draw from another row,
    or a remapping that the likelihood does not know of, would be hundreds off."""
    g, model, _ = city(side=7)
    G = pf.blocks(g, 3)
    rng = np.random.default_rng(2)
    prior = np.zeros(g.size)
    prior[rng.permutation(g.size)[:30]] = rng.random(30) + 0.1
    prior /= prior.sum()
    s = int(np.argmax(prior))
    n = 20_000
    T = pf.TraceReleaser(G, model, epsilon=1.3, mechanism=mechanism, remap=remap, rng=8)
    S = T.start(users=n, priors=prior)
    z = S.step(np.full(n, s)).released
    domain, policy = S.domain(0), S.policy(0)
    members = policy.component(s)
    P = probabilities(mechanism, policy, domain, members, 1.3, "component")
    p = P[int(np.searchsorted(members, s))]
    if remap:
        to, gap = remapping(g, members, P, prior[members], remap)
        assert gap > 1e-9
        p = np.bincount(to, p, minlength=len(members))
    seen = np.bincount(z, minlength=g.size)[members]
    assert seen.sum() == n
    assert (seen[p == 0] == 0).all()
    often = p > 0
    statistic = ((seen - n * p)[often] ** 2 / (n * p)[often]).sum()
    assert statistic < chi2.isf(1e-6, max(int(often.sum()) - 1, 1))


@large
def test_every_table_of_a_trace_is_proved():
    """Integers in Python against the rational below e^eps, for every edge and output of every
    component met."""
    g, model, traces = city(steps=8)
    rng = np.random.default_rng(1)
    G = pf.blocks(g, 3).with_edges(rng.integers(0, g.size // 2, (40, 1)) * 2 + [0, 1])
    for mechanism, epsilon in product(("krr", "graph-exponential", "optimal"), (0.05, 1.0, 6.0)):
        T = pf.TraceReleaser(G, model, epsilon=epsilon, mechanism=mechanism, rng=0, delta=0.3)
        T.run(traces)
        numerator, shift = (int(v) for v in exp_lower_bound(epsilon))
        B = T.engine.tables.arrays
        assert len(T.engine.tables) > 10
        for entry in range(len(T.engine.tables)):
            component = table_cache.decode(B.keys[B.starts[entry] : B.starts[entry + 1]])
            k = len(component.sites)
            W = np.diff(
                B.cumulative[B.at[entry] : B.at[entry + 1]].reshape(k, k),
                axis=1,
                prepend=np.uint64(0),
            ).astype(object)
            assert (W.sum(axis=1) == 2**63).all()
            i, j = component.edges()
            assert (W[i] * 2**shift <= numerator * W[j]).all()


def test_a_full_book_begins_anew(monkeypatch):
    g, model, traces = city()
    releaser = lambda: pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, mechanism="krr", rng=4)  # noqa: E731
    R = releaser().run(traces)
    monkeypatch.setattr(table_cache, "MAX_ENTRIES", 100)
    T = releaser()
    assert np.array_equal(T.run(traces).released, R.released)
    assert T.engine.tables.arrays.at[-1] < 2000


@large
def test_remapping_lowers_the_error_and_optimal_is_best():
    """What it is for, on one seed: in the mean over 480 steps, remapped noise errs less, and
    least of all the optimum."""
    g, model, traces = city()
    seen = traces >= 0

    def error(**how):
        R = pf.TraceReleaser(pf.blocks(g, 5), model, epsilon=1.0, rng=4, **how).run(traces)
        return g.distance(traces[seen], R.released[seen]).mean()

    assert error(mechanism="ppim", remap="euclidean") < 0.9 * error(mechanism="ppim")
    assert error(mechanism="optimal") < 0.9 * error(mechanism="krr")


def test_losses_and_priors_of_ones_own():
    """A loss by place or a prior makes tables differ from place to place: the key must say
    where."""
    g, model, traces = city(side=6, users=10, steps=5)
    G = pf.blocks(g, 3)
    every = np.arange(g.size)
    matrix = g.distance(np.repeat(every, g.size), np.tile(every, g.size)).reshape(g.size, g.size)
    by_name = pf.TraceReleaser(G, model, epsilon=1.0, rng=1, remap="euclidean").run(traces).released
    by_matrix = pf.TraceReleaser(G, model, epsilon=1.0, rng=1, remap=matrix).run(traces).released
    by_function = (
        pf.TraceReleaser(G, model, epsilon=1.0, rng=1, remap=lambda s, z: matrix[s, z])
        .run(traces)
        .released
    )
    assert np.array_equal(by_matrix, by_function)
    assert (by_name == by_matrix).mean() > 0.9  # the same but for ties that rounding breaks
    prior = np.ones(g.size)
    prior[14] = 1000.0  # everybody in that block is told to be there
    T = pf.TraceReleaser(
        G, model, epsilon=0.1, rng=1, mechanism="optimal", options={"prior": prior}
    )
    full = np.full(g.size, 1 / g.size)
    z = T.start(users=g.size, priors=full).step(every).released
    assert (z[G.component(14)] == 14).all()
    assert (z[G.component(35)] != 14).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"mechanism": "krr", "calibration": "graph"},
            pf.InvalidParameter,
            "knows calibration='component' only",
        ),
        (
            {"mechanism": "krr", "likelihood": "density"},
            pf.InvalidParameter,
            "likelihood='density' is for noise alone",
        ),
        (
            {"remap": "euclidean", "likelihood": "density"},
            pf.InvalidParameter,
            "likelihood='density' is for noise alone",
        ),
        ({"remap": "cubic"}, pf.InvalidParameter, "loss must be one of 'euclidean', 'squared'"),
        (
            {"mechanism": "krr", "options": {"prior": 1}},
            pf.InvalidParameter,
            "has no option 'prior': it takes none",
        ),
        (
            {"mechanism": "optimal", "options": {"pryor": 1}},
            pf.InvalidParameter,
            "no option 'pryor': it takes prior, loss, cache",
        ),
        ({"mechanism": "pim"}, pf.InvalidPolicy, "joins every pair of a set: use pf.complete"),
        (
            {"mechanism": "sorcery"},
            pf.InvalidParameter,
            "mechanism must be one of 'ppim', 'plm', 'planar-laplace'",
        ),
    ],
)
def test_bad_options(options, error, message):
    g, model, _ = city(side=6, users=8, steps=8)
    with pytest.raises(error, match=message):
        pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, **options)


def test_location_sets_by_name():
    g, model, traces = city(side=6, users=8, steps=8)
    for name, same in (("pim", "ppim"), ("lm", "plm")):
        a, b = (
            pf.TraceReleaser(pf.complete(g), model, epsilon=1.0, mechanism=m, delta=0.1, rng=2)
            .run(traces)
            .released
            for m in (name, same)
        )
        assert np.array_equal(a, b)


def test_too_large_a_component_changes_nothing():
    g, model, traces = city(side=13, users=8, steps=8)
    T = pf.TraceReleaser(pf.complete(g), model, epsilon=1.0, mechanism="optimal", rng=2)
    S = T.start(users=8)
    with pytest.raises(pf.TooLarge, match="a component has 169 locations, Optimal takes 144"):
        S.step(traces[:, 1])
    assert S.t == 0
    assert S.ledger.epsilon(0) == 0


def test_what_cannot_have_been_released_is_refused():
    g, model, traces = city(side=6, users=8, steps=8)
    T = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=2)
    released = T.run(traces).released.copy()
    released[2, 3] = (released[2, 3] + 18) % g.size
    point = scipy.sparse.csr_array(
        (np.ones(8), (np.arange(8), traces.max(axis=1))), shape=(8, g.size)
    )
    with pytest.raises(pf.InvalidTransition, match="cannot have released"):
        T.observe(released, priors=point)
    with pytest.raises(pf.InvalidParameter, match="priors='point' is where users truly were"):
        T.observe(released, priors="point")


@pytest.mark.parametrize(("mechanism", "remap"), WAYS)
def test_an_attack_filters_as_the_releaser_does(mechanism, remap):
    """p_t^+ of the attack is the posterior that the releaser itself goes on from, whoever kept
    the evidence."""
    g, model, traces = city(side=9, users=8, steps=6)
    T = pf.TraceReleaser(
        pf.blocks(g, 3), model, epsilon=1.0, mechanism=mechanism, remap=remap, rng=4
    )
    R = T.run(traces, evidence=True)
    found, seen = pf.attack(R, traces), pf.attack(T.observe(R.released))
    assert np.array_equal(found.bayes, seen.bayes)
    S = T.start(users=len(traces))
    for t in range(traces.shape[1]):
        S.step(traces[:, t])
        for u in range(len(traces)):
            if (traces[u, : t + 1] >= 0).any():
                assert np.abs(found.filtered(u, t) - S.posterior(u)).max() < 1e-12
    table = found.table()
    assert all(table["bayes"].expected_km <= row.expected_km + 1e-12 for row in table)
    assert "privacy: the best guess" in str(table)


def test_attacks_need_evidence():
    g, model, traces = city(side=6, users=8, steps=8)
    R = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=2).run(traces)
    assert R.evidence is None
    with pytest.raises(
        pf.InvalidEvidence, match=r"without keeping evidence: use TraceReleaser.run"
    ):
        pf.attack(R)


@pytest.mark.parametrize("mechanism", ["krr", "optimal"])
def test_threads_that_change_while_a_table_is_made(mechanism, monkeypatch):
    """Another thread may set the number of threads between the two passes of a step: ranges of
    the first pass must not count."""
    g, model, traces = city(users=60, steps=4)
    T = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, mechanism=mechanism, rng=4)
    want = T.run(traces).released
    before, add = pf.get_num_threads(), table_cache.TableCache.add
    turns = iter([1, 3, 2, 1, 2, 3] * 100)
    monkeypatch.setattr(
        table_cache.TableCache,
        "add",
        lambda self, keys: (add(self, keys), pf.set_num_threads(next(turns)))[0],
    )
    try:
        pf.set_num_threads(2)
        fresh = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, mechanism=mechanism, rng=4)
        assert np.array_equal(fresh.run(traces).released, want)
    finally:
        pf.set_num_threads(before)


@pytest.mark.parametrize(
    "how", [{"mechanism": "ppim", "remap": "euclidean"}, {"mechanism": "planar-laplace"}]
)
def test_tables_of_the_graph_calibration_hide_whom_the_hull_reaches(how):
    """The step's table is proved for every pair in K, not for edges alone: see test_certify."""
    g = pf.Grid(1, 9)
    G = pf.PolicyGraph.from_edges(g, [(0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (8, 7)])
    model = pf.MobilityModel(g, scipy.sparse.eye_array(9, format="csr"))
    prior = np.ones(9) / 8
    prior[7] = 0.0
    T = pf.TraceReleaser(G, model, epsilon=10.0, calibration="graph", rng=0, **how)
    r = T.start(1, priors=prior[None]).step([8])
    assert r.isolated[0] == r.added[0] == 0
    B = T.engine.tables.arrays
    W = np.diff(B.cumulative.reshape(8, 8), axis=1, prepend=np.uint64(0)).astype(object)
    numerator, shift = (int(v) for v in exp_lower_bound(10.0))
    eight, six = W[7], W[6]
    assert (eight * 2**shift <= numerator * six).all()
    assert (six * 2**shift <= numerator * eight).all()


def test_density_means_density_for_planar_laplace_too():
    g, model, traces = city(users=6, steps=5)
    exact, density = (
        pf.TraceReleaser(
            pf.blocks(g, 3), model, epsilon=1.0, mechanism="planar-laplace", likelihood=how, rng=4
        )
        .run(traces, evidence=True)
        .evidence.logs
        for how in ("exact", "density")
    )
    assert exact.shape != density.shape or np.abs(exact - density).max() > 1e-3


def test_a_function_cannot_be_saved(tmp_path):
    """Two functions of one name cannot be told apart: a resumed stream might remap by another."""
    g, model, traces = city(side=6, users=8, steps=8)
    S = pf.TraceReleaser(
        pf.blocks(g, 3), model, epsilon=1.0, rng=2, remap=lambda s, z: np.abs(s - z)
    ).start(8)
    S.step(traces[:, 4])
    with pytest.raises(
        pf.InvalidParameter, match="a loss that is a function cannot be told from another"
    ):
        S.save(tmp_path / "s")
    assert not list(tmp_path.iterdir())
    with pytest.raises(pf.InvalidParameter, match="options must be a dict"):
        pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, mechanism="optimal", options="cache")


@pytest.mark.parametrize(
    "epsilon",
    [True, np.True_, [True, False], [True, 0.5], {0: True, 1: 0.5}, np.array([True, True]),
     np.array([True, 0.5], object), [[True], [0.5]]],
)  # fmt: skip
def test_booleans_are_no_epsilons(epsilon):
    """Would catch True that NumPy takes for 1."""
    grid = pf.Grid(3, 3)
    model = pf.MobilityModel(grid, np.full((9, 9), 1 / 9))
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, rng=1)
    with pytest.raises(pf.InvalidParameter, match="not booleans"):
        T.run([[0], [1]], epsilon=epsilon)
    with pytest.raises(pf.InvalidParameter, match="not booleans"):
        T.start(2).step([0, 1], epsilon=epsilon)
    for made in (
        lambda: pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=True),
        lambda: pf.compose((True, pf.blocks(grid, 3))),
        lambda: pf.PPIM(pf.blocks(grid, 3), epsilon=np.True_),
    ):
        with pytest.raises(pf.InvalidParameter, match="epsilon must be a number"):
            made()
