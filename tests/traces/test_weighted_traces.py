"""Traces under policies with weights: steps against a dense oracle in fractions, the certificate,
composition as w epsilon, files, and mixtures with policies that have none."""

from fractions import Fraction

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import (
    FIELDS,
    edge_set,
    random_prior,
    random_transitions,
    random_weights,
    walk,
    weighted_policy,
    weights_of,
)
from pglp_fast.traces.ledger_file import pack, unpack
from pglp_fast.traces.table_cache import decode

GRID = pf.Grid(3, 4, cell_km=(1.0, 0.6))
PLACES = pf.Points(np.random.default_rng(2).integers(0, 900, (10, 2)) * 0.004)
HOW = [
    {},
    {"calibration": "graph"},
    {"mechanism": "plm", "repair": "nearest"},
    {"repair": "min-error", "delta": 0.1},
]


def world(seed, places=GRID, users=3, steps=5):
    rng = np.random.default_rng(seed)
    weights = random_weights(places, seed, 9)
    A = random_transitions(rng, places.size)
    traces = np.array([walk(rng, A, rng.integers(places.size), steps) for _ in range(users)])
    return rng, weights, A, traces


@pytest.mark.parametrize("seed", range(8))
def test_steps_are_the_oracles(seed):
    """Domain, repair, likelihoods and posterior of every step; then the sum of w_t eps_t."""
    places, how = (GRID, PLACES)[seed % 2], HOW[seed // 2]
    rng, weights, A, traces = world(seed, places)
    traces[0, 2] = -1
    T = pf.TraceReleaser(
        weighted_policy(places, weights), pf.MobilityModel(places, A), epsilon=0.9, rng=seed, **how
    )
    prior = random_prior(rng, places.size)
    R = T.run(traces, prior)
    assert R.certificate.ok, R.certificate
    S, lattice = T.start(len(traces), prior), places.lattice.tolist()
    p = [prior.copy() for _ in traces]
    support = [set(np.flatnonzero(prior).tolist()) for _ in traces]
    graphs, added = [[] for _ in traces], 0
    for t in range(traces.shape[1]):
        step = S.step(traces[:, t])
        assert (step.released == R.released[:, t]).all()
        for u in np.flatnonzero(traces[:, t] >= 0):
            ref = naive.trace_step(
                lattice, places.scale, weights, A, p[u], support[u], int(step.released[u]), 0.9,
                mechanism=how.get("mechanism", "ppim"),
                calibration=T.calibration, strategy=T.repair, delta=T.delta, weighted=True,
            )  # fmt: skip
            assert set(S.domain(u).cells().tolist()) == ref["domain"]
            assert weights_of(S.policy(u)) == ref["edges"]
            assert np.abs(S.posterior(u) - ref["p_plus"]).max() < 1e-9
            graphs[u].append(ref["edges"])
            added += len(ref["added"])
            p[u], support[u] = ref["p_plus"], ref["support_plus"]
        for u in range(len(traces)):
            if graphs[u]:
                p[u] = p[u] @ A
                support[u] = {int(j) for i in support[u] for j in np.flatnonzero(A[i])}
    assert added > 0 or T.calibration == "graph"
    for ledger in (S.ledger, R.certificate.ledger):
        for u, history in enumerate(graphs):
            check_ledger(ledger, u, [0.9] * len(history), history)


def check_ledger(ledger, u, epsilons, graphs):
    wanted = naive.weighted_ledger(epsilons, graphs)
    edges, sums = ledger.edge_epsilons(u)
    found = dict(zip(map(tuple, edges.tolist()), sums.tolist()))
    assert found.keys() == wanted.keys()
    for e, total in wanted.items():
        assert found[e] == pytest.approx(float(total), rel=1e-12)
    most = {e: max(g[e] for g in graphs) for e in wanted}
    assert weights_of(ledger.graph(u)) == most
    assert ledger.kept_edges()[u] == len(wanted)
    for e, w in most.items():  # what the graph promises is no less than the sum
        assert found[e] <= float(w) * ledger.epsilon(u) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_composition_of_policies_by_step(seed, tmp_path):
    """Weights, no weights and cliques in turn: an edge may be one policy's with a weight, another's
    without, and a third's repair. Ledgers, their files, streams and compose say the same."""
    rng, weights, A, traces = world(seed, steps=6)
    graphs = {
        "a": weighted_policy(GRID, weights),
        "b": weighted_policy(GRID, random_weights(GRID, seed + 50, 30)) | pf.blocks(GRID, 2),
        "c": pf.complete(GRID),
    }
    T = pf.TraceReleaser(graphs, pf.MobilityModel(GRID, A), epsilon=1.0, rng=seed)
    names = rng.choice(list("abc"), traces.shape)
    values = rng.choice([0.25, 1.0, 3.0], traces.shape)
    R = T.run(traces, policy=names, epsilon=values)
    S, history = T.start(len(traces)), [[] for _ in traces]
    for t in range(traces.shape[1]):
        S.step(traces[:, t], policy=names[:, t], epsilon=values[:, t])
        for u in range(len(traces)):
            history[u].append(weights_of(S.policy(u)))
        if t == 2:
            S.save(tmp_path / "stream")
            S = T.resume(tmp_path / "stream")
    R.certificate.ledger.save(tmp_path / "ledger")
    kept = 0
    for ledger in (S.ledger, R.certificate.ledger, pf.Ledger.load(tmp_path / "ledger")):
        for u in range(len(traces)):
            check_ledger(ledger, u, values[u].tolist(), history[u])
            kept += len(ledger.edge_epsilons(u)[0])
    assert kept > 0
    other = random_weights(GRID, seed + 9, 40)
    both = pf.compose(S.ledger, (0.5, weighted_policy(GRID, other)), (2.0, pf.blocks(GRID, 3)))
    cliques = dict.fromkeys(edge_set(pf.blocks(GRID, 3)), Fraction(1))
    for u in range(len(traces)):
        check_ledger(both, u, [*values[u].tolist(), 0.5, 2.0], [*history[u], other, cliques])


def test_a_budget_in_a_file_knows_shares(tmp_path):
    """Two processes, one ledger file: what each spends under which policy is written down."""
    _, weights, A, traces = world(1)
    G, H = weighted_policy(GRID, weights), pf.complete(GRID)
    model, path = pf.MobilityModel(GRID, A), tmp_path / "budget"
    T = pf.TraceReleaser({"a": G, "b": H}, model, epsilon=0.5, rng=1, budget=9.0)
    R = T.run(traces, policy="a", ledger=path)
    S = T.start(len(traces), ledger=path)
    S.step(traces[:, 0], policy="b")
    S.step(traces[:, 1], policy="a", epsilon=0.25)
    whole, n = pf.Ledger.load(path), traces.shape[1]
    assert whole.spending.shares[:, 0] == pytest.approx(n * 0.5 + 0.25)
    assert whole.spending.shares[:, 1] == pytest.approx(0.5)
    for u in range(len(traces)):
        edges, sums = whole.edge_epsilons(u)
        for (i, j), total in zip(edges.tolist(), sums):
            w = float(weights.get((i, j), 1))
            assert total == pytest.approx(w * (n * 0.5 + 0.25) + 0.5, rel=1e-12)
    assert R.certificate.ok
    arrays, facts = pack(whole)
    arrays["numerator_0"] = arrays["numerator_0"] + 1
    with pytest.raises(pf.InvalidState, match="contradicts itself"):
        unpack(arrays, facts, "it", None)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_policies_mixed_are_policies_apart(how):
    """Bit for bit, with and without weights in one releaser."""
    _, weights, A, traces = world(5, users=12)
    graphs = {
        "light": weighted_policy(GRID, weights),
        "plain": pf.blocks(GRID, 2),
        "heavy": weighted_policy(GRID, random_weights(GRID, 8, 9)) | pf.blocks(GRID, 3),
    }
    model, names = pf.MobilityModel(GRID, A), np.resize(list(graphs), len(traces))
    R = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=3, **how).run(
        traces, policy=names, evidence=True
    )
    for name, G in graphs.items():
        some = np.flatnonzero(names == name)
        apart = pf.TraceReleaser(G, model, epsilon=1.0, rng=3, **how)
        Q = apart.run(traces[some], users=some, evidence=True)
        for field in FIELDS:
            assert (getattr(Q, field) == getattr(R, field)[some]).all(), field
        for k, u in enumerate(some):
            first, own = R.evidence.first, Q.evidence.first
            rows = slice(*R.evidence.start[first[[u, u + 1]]])
            theirs = slice(*Q.evidence.start[own[[k, k + 1]]])
            assert R.evidence.logs[rows].tobytes() == Q.evidence.logs[theirs].tobytes()
            assert R.certificate.graph(u) == Q.certificate.graph(k)


def test_noise_of_large_components_is_proved_too():
    """Beyond 64 locations noise is drawn; its hull, divided by weights, is read back and proved."""
    g = pf.Grid(9, 9, cell_km=(0.5, 0.3))
    edges = [(i, i + 1) for i in range(80)]
    G = pf.PolicyGraph.from_edges(g, edges, weights=np.resize([0.5, 2.0, 1 / 3, 1.0], 80))
    A = np.full((81, 81), 1 / 81)
    truth = np.random.default_rng(0).integers(0, 81, (30, 3))
    for cls in (pf.PPIM, pf.PLM):
        T = pf.TraceReleaser(G, pf.MobilityModel(g, A), epsilon=1.0, mechanism=cls, rng=0)
        R = T.run(truth, evidence=True)
        found = R.certificate
        assert found.ok, found
        assert (found.tables, found.noises) == (0, 1)
        m = cls(G, epsilon=1.0, sampler="geometric")
        _, P = m.matrix(0, log=True)
        for u in range(3):
            z, e = R.released[u, 0], R.evidence.first[u]
            logs = R.evidence.logs[R.evidence.start[e] : R.evidence.start[e + 1]]
            assert np.allclose(logs, P[:, z], atol=1e-9)


def test_keys_of_tables_carry_weights():
    """The same component with other weights is another table, with its own bound."""
    A, line = np.full((2, 2), 0.5), pf.Grid(1, 2)
    ratios = {}
    for w in (Fraction(1, 2), Fraction(1), Fraction(3)):
        G = pf.PolicyGraph.from_edges(line, [(0, 1)], weights=[w])
        T = pf.TraceReleaser(G, pf.MobilityModel(line, A), epsilon=1.0, mechanism="krr", rng=0)
        R = T.run([[0, 1]], evidence=True)
        ratios[w] = float(np.ptp(R.evidence.logs[:2]))
        assert R.certificate.worst == pytest.approx(1.0, abs=1e-9)
        arrays = T.engine.tables.arrays
        component = decode(arrays.keys[: arrays.starts[1]])
        weights = [[1, 1]] if component.weights is None else component.weights.tolist()
        assert weights == [[w.numerator, w.denominator]]
        assert component.sites.tolist() == [[0, 0], [1, 0]]
    assert all(ratio == pytest.approx(float(w), abs=1e-9) for w, ratio in ratios.items())


def test_an_audit_of_traces_knows_weights():
    """It passes what keeps w epsilon, and finds a releaser whose noise ignores a weight of 1/3."""
    g = pf.Grid(2, 3)
    weights = {(0, 1): Fraction(1, 3), (1, 4): Fraction(2), (2, 5): Fraction(1)}
    G, A = weighted_policy(g, weights), np.full((6, 6), 1 / 6)
    T = pf.TraceReleaser(G, pf.MobilityModel(g, A), epsilon=1.0, mechanism="krr", rng=4)
    assert pf.audit(T, draws=4000, pairs=3).passed

    class Deaf:
        """Promises weights; its releases ignore them."""

        graph, epsilon, model, repair, delta = G, 1.0, T.model, "min-area", 0.0
        inner = pf.TraceReleaser(
            pf.PolicyGraph.from_edges(g, list(weights)),
            T.model,
            epsilon=1.0,
            mechanism="krr",
            rng=4,
        )

        def start(self, **how):
            S = self.inner.start(**how)

            class Told:
                step, domain = S.step, S.domain

                def policy(self, u):
                    return G.constrain(S.domain(u))

            return Told()

    found = pf.audit(Deaf(), draws=4000, pairs=3)
    assert not found.passed
