"""Policies and epsilons by person and by step: mixed releases against separate ones, and against
the oracle."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import (
    FIELDS,
    edge_set,
    oracle_of,
    policy_of_kind,
    random_map,
    random_prior,
    random_transitions,
    walk,
)

OPTIONS = [
    {},
    {"calibration": "graph"},
    {"mechanism": "plm", "repair": "nearest"},
    {"mechanism": "krr", "delta": 0.1},
    {"likelihood": "density", "repair": "min-error"},
    {"remap": "euclidean"},
]
EPSILONS = [0.3, 1.0, 4.0]


def world(seed, users=30, steps=8):
    """(map, three policies, model, matrix, traces)."""
    rng = np.random.default_rng(seed)
    locations = random_map(rng, seed)
    graphs = {name: policy_of_kind(rng, locations, seed + k) for k, name in enumerate("abc")}
    A = random_transitions(rng, locations.size)
    n = locations.size
    traces = np.array([walk(rng, A, rng.integers(n), steps) for _ in range(users)])
    traces[rng.random(traces.shape) < 0.1] = -1
    return locations, graphs, pf.MobilityModel(locations, A), A, traces


@pytest.mark.parametrize("seed", range(12))
def test_persons_mixed_are_persons_apart(seed):
    """Bit for bit: releases, counts, likelihoods, and what composition leaves each person."""
    _, graphs, model, _, traces = world(seed)
    rng, how = np.random.default_rng(seed), OPTIONS[seed % len(OPTIONS)]
    names, values = rng.choice(list("abc"), len(traces)), rng.choice(EPSILONS, len(traces))
    mixed = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=seed, **how)
    R = mixed.run(traces, policy=names, epsilon=values, evidence=True)
    fast = mixed.run(traces, policy=names, epsilon=values)
    assert all((getattr(fast, name) == getattr(R, name)).all() for name in FIELDS)
    assert R.certificate.ok
    first = R.evidence.first
    for name in "abc":
        for value in EPSILONS:
            some = np.flatnonzero((names == name) & (values == value))
            if not some.size:
                continue
            apart = pf.TraceReleaser(graphs[name], model, epsilon=value, rng=seed, **how)
            Q = apart.run(traces[some], users=some, evidence=True)
            for field in FIELDS:
                assert (getattr(Q, field) == getattr(R, field)[some]).all(), field
            kept = R.certificate.ledger.kept_edges()
            for k, u in enumerate(some):
                rows = slice(R.evidence.start[first[u]], R.evidence.start[first[u + 1]])
                own = slice(*Q.evidence.start[Q.evidence.first[[k, k + 1]]])
                assert R.evidence.logs[rows].tobytes() == Q.evidence.logs[own].tobytes()
                assert R.certificate.epsilon(u) == Q.certificate.epsilon(k)
                if Q.certificate.ledger.releases[k]:
                    assert R.certificate.graph(u) == Q.certificate.graph(k)
                    assert kept[u] == Q.certificate.graph(k).n_edges


@pytest.mark.parametrize("seed", range(8))
def test_steps_of_one_person_are_the_oracles(seed):
    """Domain, repair, posterior and composition, where policy and epsilon change at every step.
    The belief goes on whatever the policy was; each step's graph is made from its own policy."""
    locations, graphs, model, A, traces = world(seed, users=5, steps=6)
    rng, how = np.random.default_rng(seed), [{}, {"calibration": "graph"}][seed % 2]
    names, values = rng.choice(list("abc"), traces.shape), rng.choice(EPSILONS, traces.shape)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=seed, **how)
    prior = random_prior(rng, locations.size)
    R = T.run(traces, prior, policy=names, epsilon=values)
    S = T.start(len(traces), prior)
    p = [prior.copy() for _ in traces]
    support = [set(np.flatnonzero(prior).tolist()) for _ in traces]
    histories = [([], []) for _ in traces]
    for t in range(traces.shape[1]):
        step = S.step(traces[:, t], policy=names[:, t], epsilon=values[:, t])
        assert (step.released == R.released[:, t]).all()
        for u in np.flatnonzero(traces[:, t] >= 0):
            G = graphs[names[u, t]]
            lattice, scale, edges, _ = oracle_of(G, range(locations.size))
            ref = naive.trace_step(
                lattice, scale, edges, A, p[u], support[u], int(step.released[u]), values[u, t],
                calibration=T.calibration,
            )  # fmt: skip
            assert set(S.domain(u).cells().tolist()) == ref["domain"]
            assert edge_set(S.policy(u)) == ref["edges"]
            assert S.policy_name(u) == names[u, t]
            assert S.epsilon(u) == values[u, t]
            assert np.abs(S.posterior(u) - ref["p_plus"]).max() < 1e-9
            histories[u][0].append(values[u, t])
            histories[u][1].append(ref["edges"])
            p[u], support[u] = ref["p_plus"], ref["support_plus"]
        for u in range(len(traces)):
            if histories[u][0]:
                p[u] = p[u] @ A
                support[u] = {int(j) for i in support[u] for j in np.flatnonzero(A[i])}
    kept = S.ledger.kept_edges()
    for u, (spent, kept_graphs) in enumerate(histories):
        if spent:
            total, edges = naive.ledger(spent, kept_graphs)
            for ledger in (S.ledger, R.certificate.ledger):
                assert ledger.epsilon(u) == total
                assert edge_set(ledger.graph(u)) == edges
            assert kept[u] == len(edges)


def test_an_edge_may_be_one_policys_and_then_a_repairs():
    """On a line of 3, the first policy joins 0 and 1; the second joins 1 and 2, loses 2, and its
    repair joins 1 to 0. The edge (0, 1) was kept by both, though one only repaired it."""
    line = pf.Grid(1, 3)
    graphs = {
        "left": pf.PolicyGraph.from_edges(line, [(0, 1)]),
        "right": pf.PolicyGraph.from_edges(line, [(1, 2)]),
    }
    A = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    T = pf.TraceReleaser(graphs, pf.MobilityModel(line, A), epsilon=1.0, rng=1)
    S = T.start(1, [0.5, 0.5, 0.0])
    S.step([0], policy="left")
    assert S.ledger.graph(0).edges().tolist() == [[0, 1]]
    S.step([0], policy="right")
    assert S.added(0).tolist() == [[1, 0]]
    assert S.ledger.graph(0).edges().tolist() == [[0, 1]]
    for name in ("left", "right", "left"):
        S.step([0], policy=name)
        assert S.ledger.graph(0).edges().tolist() == [[0, 1]]
        assert S.ledger.kept_edges().tolist() == [1]


def test_the_adversary_knows_the_choice():
    """Evidence from releases and choices alone is that of the run; so is the replay."""
    _, graphs, model, _, traces = world(3, users=12)
    rng = np.random.default_rng(0)
    names, values = rng.choice(list("abc"), traces.shape), rng.choice(EPSILONS, traces.shape)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=1)
    R = T.run(traces, policy=names, epsilon=values, evidence=True)
    seen = T.observe(R.released, policy=names, epsilon=values)
    for name in ("released", "start", "cells", "logs", "policy", "epsilon"):
        assert (getattr(seen, name) == getattr(R.evidence, name)).all(), name
    assert pf.attack(R, truth=traces).online_error.shape == traces.shape
    *_, (stream, _) = T.replay(R.evidence)
    for u in range(len(traces)):
        assert stream.ledger.graph(u) == R.certificate.graph(u)
        assert stream.ledger.epsilon(u) == R.certificate.epsilon(u)
    with pytest.raises(pf.InvalidEvidence, match="this releaser has 1 policies"):
        next(pf.TraceReleaser(graphs["a"], model, epsilon=1.0).replay(R.evidence))


def test_forms_of_a_choice():
    """One, one for each user, a mapping by number, one for each cell; by event and by row."""
    _, graphs, model, _, traces = world(1, users=6)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=2)
    full = np.full(traces.shape, "b")
    wanted = T.run(traces, policy=full, epsilon=np.full(traces.shape, 4.0)).released
    for policy, epsilon in (
        ("b", 4.0),
        (["b"] * 6, [4.0] * 6),
        (dict.fromkeys(range(6), "b"), dict.fromkeys(range(6), 4.0)),
        (full.astype(object), np.full(6, 4)),
    ):
        assert (T.run(traces, policy=policy, epsilon=epsilon).released == wanted).all()
    seen = traces >= 0
    events = pf.Events.of_array(traces)
    by_event = T.run(events, policy=full[seen], epsilon=np.full(seen.sum(), 4.0))
    assert (by_event.released == wanted[seen]).all()
    shuffled = np.random.default_rng(0).permutation(len(events))
    mixed = np.array(list("abc"))[events.persons % 3]
    again = pf.Events(events.persons[shuffled], events.steps[shuffled], events.cells[shuffled])
    one = T.run(events, policy=mixed).released[shuffled]
    assert (one == T.run(again, policy=mixed[shuffled]).released).all()
    # what is said of a cell that is missing does not matter
    names, values = full.copy(), np.full(traces.shape, 4.0)
    names[~seen], values[~seen] = "", np.nan
    assert (T.run(traces, policy=names, epsilon=values).released == wanted).all()


def test_the_default():
    _, graphs, model, _, traces = world(1, users=6)
    plain = pf.TraceReleaser(graphs["b"], model, epsilon=1.0, rng=2).run(traces)
    for policies in ({"a": graphs["a"], "default": graphs["b"]}, {"x": graphs["b"]}):
        T = pf.TraceReleaser(policies, model, epsilon=1.0, rng=2)
        assert (T.run(traces).released == plain.released).all()
        assert T.graph is graphs["b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(policy="z"), "there is no policy 'z': there are a, b, c"),
        (
            dict(policy=["a"] * 5 + ["z"]),
            r"user 5 has policy .*'z'.* at step .*: there are a, b, c",
        ),
        (dict(policy=["a"] * 5), r"policy has shape \(5,\): give one, a mapping"),
        (dict(policy={0: "a"}), "policy has none for user 1"),
        (dict(policy=lambda cell: "a"), "not a function: a choice must follow from public facts"),
        (dict(epsilon=[1.0] * 5 + [0.0]), "epsilon of user 5 at step .* is 0.0"),
        (dict(epsilon=-1.0), "epsilon of user 0"),
        (dict(epsilon="much"), "epsilon must be real numbers"),
        (dict(epsilon=True), "epsilon must be numbers, not booleans"),
        (dict(epsilon=[True] * 6), "epsilon must be numbers, not booleans"),
        (
            dict(epsilon=np.ones((6, 3))),
            r"give one, a mapping by user number, or an array of shape",
        ),
        (dict(ledger=3), "ledger must be a Ledger or the path of a ledger file, got 3"),
    ],
)
def test_errors_name_the_person_and_the_step(options, message):
    _, graphs, model, _, traces = world(1, users=6)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0)
    with pytest.raises(pf.PGLPError, match=message):
        T.run(traces, **options)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({}, "there is no policy in the mapping"),
        ({1: None}, "policies go by name, got 1"),
        ({"a": 3}, "must be a PolicyGraph"),
        ({"a": pf.blocks(pf.Grid(2, 2), 2), "b": pf.blocks(pf.Grid(3, 2), 2)}, "policy 'b' and"),
    ],
)
def test_bad_policies(policies, message):
    model = pf.MobilityModel(pf.Grid(2, 2), np.eye(4))
    with pytest.raises(pf.InvalidPolicy, match=message):
        pf.TraceReleaser(policies, model, epsilon=1.0)


def test_many_policies():
    """More than a word of them, one a day: the ledger knows which were used."""
    grid = pf.Grid(2, 4)
    graphs = {f"day {k}": pf.blocks(grid, 1 + k % 3) for k in range(70)}
    T = pf.TraceReleaser(graphs, pf.MobilityModel(grid, np.full((8, 8), 1 / 8)), epsilon=1.0, rng=1)
    S = T.start(2)
    S.step([0, 1], policy=["day 1", "day 67"])
    S.step([0, 1], policy=["day 69", "day 1"])
    assert S.ledger.graph(0) == graphs["day 1"] & graphs["day 69"]
    assert S.ledger.graph(1) == graphs["day 67"] & graphs["day 1"]
    assert S.ledger.graph(0).n_edges == 0 != S.ledger.graph(1).n_edges


def test_a_stream_is_resumed_with_its_policies(tmp_path):
    _, graphs, model, _, traces = world(2, users=8)
    rng = np.random.default_rng(0)
    names, values = rng.choice(list("abc"), traces.shape), rng.choice(EPSILONS, traces.shape)
    limits = {3: 12.0, None: 100.0}
    T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=1, budget=limits)
    whole = T.run(traces, policy=names, epsilon=values)
    S = T.start(len(traces))
    for t in range(traces.shape[1]):
        step = S.step(traces[:, t], policy=names[:, t], epsilon=values[:, t])
        assert (step.released == whole.released[:, t]).all()
        S.save(tmp_path / "stream")
        T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=1, budget=limits)
        S = T.resume(tmp_path / "stream")
    for u in range(len(traces)):
        assert S.ledger.epsilon(u) == whole.certificate.epsilon(u)
        assert S.ledger.graph(u) == whole.certificate.graph(u)
    names = list(graphs)
    other = pf.TraceReleaser(
        {"a": graphs["b"], "b": graphs["a"], "c": graphs["c"]}, model, epsilon=1.0, rng=1,
        budget=limits,
    )  # fmt: skip
    S.save(tmp_path / "stream")
    with pytest.raises(pf.InvalidState, match="another policy"):
        other.resume(tmp_path / "stream")


def test_each_table_is_proved_for_its_own_epsilon():
    """The same components at two epsilons are two tables, and both bounds are told."""
    grid = pf.Grid(3, 3)
    T = pf.TraceReleaser(
        pf.blocks(grid, 3), pf.MobilityModel(grid, np.full((9, 9), 1 / 9)), epsilon=1.0, rng=1
    )
    S = T.start(4)
    S.step([0, 1, 2, 3], epsilon=[0.5, 2.0, 0.5, 2.0])
    c = S.certificate
    assert c.ok
    assert c.tables == 2
    assert c.promised == 2.0
    assert set(c.delivered) == {0.5, 2.0}
    assert 0.4 < c.delivered[0.5] <= 0.5
    assert 1.9 < c.delivered[2.0] <= 2.0
    assert str(c).startswith("epsilon = 0.5 to 2 (2 values) promised for each of 4 releases")
