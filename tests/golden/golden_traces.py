"""Cases: how people move, releases of traces, and attacks on them."""

import tempfile
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import sparse
from golden_maps import grid, points, policies
from scipy import sparse as sp

import pglp_fast as pf

NOISES = ("ppim", "plm", "planar-laplace")
TABLES = ("krr", "graph-exponential", "optimal")
STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")
FIELDS = ("released", "domain_size", "disconnected", "isolated", "added", "surrogate", "exposed")


def chain(locations, seed=0, reach=1.3):
    """A random chain between near locations, with some moves left out."""
    n = locations.size
    rng = np.random.default_rng(seed)
    i, j = (k.ravel() for k in np.indices((n, n)))
    weight = rng.random(n * n) * (locations.distance(i, j) < reach) * (rng.random(n * n) < 0.8)
    weight[:: n + 1] = 0.3
    P = weight.reshape(n, n)
    return sp.csr_array(P / P.sum(axis=1, keepdims=True))


def walks(locations, users=5, steps=8, seed=3):
    """Walks by the chain, some steps missing, one impossible move."""
    P = chain(locations).toarray().cumsum(axis=1)
    rng = np.random.default_rng(seed)
    out = np.empty((users, steps), np.int64)
    out[:, 0] = rng.integers(0, locations.size, users)
    for t in range(1, steps):
        u = rng.random(users)
        out[:, t] = [
            min(int(np.searchsorted(P[s], x)), locations.size - 1) for s, x in zip(out[:, t - 1], u)
        ]
    out[1, 0] = out[2, 3] = out[2, 4] = out[4, -1] = -1
    out[3, 5] = (out[3, 5] + 23) % locations.size
    return out


@cache
def model(where="grid", periods=1):
    locations = grid() if where == "grid" else points()
    if periods == 1:
        return pf.MobilityModel(locations, chain(locations))
    stack = np.stack([chain(locations, seed).toarray() for seed in range(periods)])
    return pf.MobilityModel(locations, sparse.COO.from_numpy(stack))


def moves(M):
    n = M.locations.size
    p = np.random.default_rng(1).random(n)
    p /= p.sum()
    return {
        "repr": repr(M),
        "periods": M.periods,
        "stationary": M.stationary(),
        "forward": [M.forward(p, period=k) for k in range(M.periods)],
        "point": M.forward(np.eye(n)[3]),
        "sparse": M.forward_sparse(np.array([0, 4, 9], np.int32), np.array([0.5, 0.25, 0.25])),
        "matrix": [M.matrix(k).toarray() @ (1.0 / np.arange(1, n + 1)) for k in range(M.periods)],
        "nnz": [M.matrix(k).nnz for k in range(M.periods)],
    }


def mobility():
    g = grid()
    rng = np.random.default_rng(4)
    seen = walks(g, 60, 12, 9)
    ragged = [row[: k % 7 + 3] for k, row in enumerate(seen)]
    when = rng.integers(0, 2, seen.shape)
    fit = pf.MobilityModel.fit
    made = {
        "scipy": model(),
        "points": model("points"),
        "n-d": model("grid", 3),
        "unseen": pf.MobilityModel(
            g, sp.csr_array(([1.0], ([0], [1])), shape=(42, 42)), unseen="stay"
        ),
        "fit": fit(g, seen),
        "fit ragged": fit(g, ragged),
        "fit, minimum": fit(g, seen, minimum_count=2),
        "fit, unseen": fit(g, seen, unseen="neighbours8"),
        "fit, smoothing": fit(g, seen, smoothing="neighbours8", pseudo_count=0.5),
        "fit, periods": fit(g, seen, periods=3),
        "fit, given periods": fit(g, seen, periods=2, period_of_step=when),
    }
    out = {name: moves(M) for name, M in made.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        made["n-d"].save(path, notes={"from": "here"})
        for name, again in (
            ("load", pf.MobilityModel.load(g, path)),
            ("open", pf.MobilityModel.open(path)),
        ):
            out[name] = moves(again) | {"notes": repr(dict(again.notes))}
    times = np.arange("2026-01-05", "2026-01-06", np.timedelta64(100, "m"), dtype="datetime64[m]")
    out["periods of times"] = {
        "day": pf.day_period(times, 4),
        "model": made["n-d"].period_of(times),
    }
    return out


def result(R):
    tree = {name: getattr(R, name) for name in FIELDS}
    if R.evidence is not None:
        tree["evidence"] = evidence(R.evidence)
    return tree


def evidence(e):
    """As arrays (users, T): the period of the move to each step, and where its row starts."""
    T = e.shape[1]
    moves = e.cycle[(np.arange(T) - 1) % len(e.cycle)]
    if len(e.cycle) == T:  # given step by step: nobody moves to the first
        moves[:1] = e.cycle[:1]
    lengths = e.as_given(np.diff(e.start), 0)
    return {
        "periods": moves,
        "start": np.concatenate([[0], np.cumsum(lengths)]),
        "cells": e.cells,
        "logs": e.logs,
        "shape": e.shape,
    }


def stream(T, traces, priors, periods=None):
    """One step at a time, saved in the middle and resumed; and what the adversary knows."""
    S = T.start(users=len(traces), priors=priors)
    steps = []
    with tempfile.TemporaryDirectory() as folder:
        for t in range(traces.shape[1]):
            if t == 4:
                S.save(Path(folder) / "stream")
                S = T.resume(Path(folder) / "stream")
            period = None if periods is None else int(periods[t])
            steps.append(S.step(traces[:, t], period=period).released)
            if t == 3:
                middle = knowledge(S)
    return {
        "released": np.stack(steps, axis=1),
        "middle": middle,
        "end": knowledge(S),
        "repr": repr(S),
    }


def knowledge(S):
    n = S.releaser.locations.size
    weight = 1.0 / np.arange(1, n + 1)
    users = (0, 2, 3)
    return {
        "domain": [S.domain(u).cells() for u in users],
        "policy": [S.policy(u).edges() for u in users],
        "posterior": S.posterior(users[0]),
        "posteriors": [float(S.posterior(u) @ weight) for u in range(S.users)],
        "support": [np.flatnonzero(S.posterior(u)) for u in users],
        "epsilon": [S.ledger.epsilon(u) for u in range(S.users)],
        "graph": [S.ledger.graph(u).edges() for u in users],
    }


def attacked(R, truth):
    a = pf.attack(R, truth=truth)
    names = (
        "bayes",
        "map",
        "viterbi",
        "expected_error",
        "entropy",
        "lift",
        "online_bayes",
        "online_map",
        "online_error",
        "online_entropy",
        "path_entropy",
        "log_evidence",
    )
    weight = 1.0 / np.arange(1, R.evidence.model.locations.size + 1)
    return {
        **{name: getattr(a, name) for name in names},
        "errors": a.errors,
        "no release": a.no_release(),
        "text": str(a.table()),
        "repr": repr(a),
        "all steps": str(a.table(steps="all", no_release=False, confidence=0.9)),
        "expected": a.expected(np.full(R.released.shape, 7)),
        "posteriors": [float(a.posterior(0, t) @ weight) for t in range(R.released.shape[1])],
        "filtered": a.filtered(0, 2),
    }


def _settings():
    """Name -> (policy, settings). Not every product: each choice with each mechanism it knows."""
    for name, calibration, likelihood in product(
        NOISES, ("component", "graph"), ("exact", "density")
    ):
        how = {"mechanism": name, "calibration": calibration, "likelihood": likelihood}
        yield f"{name}, {calibration}, {likelihood}", "blocks3", how
        yield f"{name}, {calibration}, {likelihood}, delta", "blocks2", how | {"delta": 0.1}
        if likelihood == "exact":
            yield f"{name}, {calibration}, remap", "blocks3", how | {"remap": "euclidean"}
            more = {"remap": "squared", "delta": 0.05}
            yield f"{name}, {calibration}, remap squared, delta", "mixed", how | more
    for name in TABLES:
        yield name, "blocks3", {"mechanism": name}
        yield f"{name}, delta", "blocks2", {"mechanism": name, "delta": 0.1}
        yield f"{name}, remap", "blocks3", {"mechanism": name, "remap": "euclidean"}
        yield f"{name}, random", "random", {"mechanism": name, "repair": "nearest"}
    for name in ("pim", "lm"):
        yield name, "complete", {"mechanism": name}
    for strategy, calibration in product(STRATEGIES, ("component", "graph")):
        for policy in ("blocks3", "neighbours8", "categories", "random", "points"):
            how = {"repair": strategy, "calibration": calibration, "likelihood": "density"}
            yield f"{policy}, {strategy}, {calibration}", policy, how
    prior = np.arange(1.0, 43.0)
    yield (
        "optimal, options",
        "blocks3",
        {"mechanism": "optimal", "options": {"prior": prior, "loss": "squared"}},
    )


def traces():
    out = {}
    for name, policy, how in _settings():
        G = policies()[policy]
        where = "grid" if G.locations is grid() else "points"
        T = pf.TraceReleaser(G, model(where), epsilon=1.0, rng=5, **how)
        true = walks(G.locations)
        R = T.run(true, evidence=True)
        out[name] = {"run": result(R), "repr": repr(T)}
        if policy in ("blocks3", "random", "complete"):
            out[name]["attack"] = attacked(R, true)
            out[name]["stream"] = stream(T, true, None)
    return out


def priors():
    out = {}
    g = grid()
    true = walks(g)
    one = np.arange(1.0, 43.0)
    one[::3] = 0
    each = np.random.default_rng(2).random((5, 42)) * (
        np.random.default_rng(3).random((5, 42)) < 0.6
    )
    each[np.arange(5), np.maximum(true, 0).max(axis=1)] += 0.1
    each /= each.sum(axis=1, keepdims=True)
    made = {"point": "point", "one": one / one.sum(), "each": each, "sparse": sp.csr_array(each)}
    for name, given in made.items():
        for mechanism in ("ppim", "krr"):
            T = pf.TraceReleaser(
                policies()["blocks3"], model(), epsilon=0.5, rng=6, mechanism=mechanism
            )
            R = T.run(true, given, evidence=True)
            out[f"{name}, {mechanism}"] = {
                "run": result(R),
                "attack": attacked(R, true),
                "stream": stream(T, true, given),
            }
    for periods in (None, np.array([0, 1, 2, 2, 1, 0, 0, 1])):
        T = pf.TraceReleaser(policies()["blocks2"], model("grid", 3), epsilon=2.0, rng=8)
        R = T.run(true, periods=periods, evidence=True)
        case = {"run": result(R), "attack": attacked(R, true)}
        out[f"periods {periods is not None}"] = case | {"stream": stream(T, true, None, periods)}
    T = pf.TraceReleaser(policies()["blocks3"], model(), epsilon=1.0, rng=9)
    R = T.run(true, users=[40, 7, 3, 12, 5])
    out["numbers"] = result(R)
    out["observe"] = evidence(T.observe(R.released))
    out["observe, attacked"] = str(pf.attack(T.observe(R.released), true).table())
    many = walks(g, 70, 6, 12)
    out["many"] = {k: v for k, v in result(T.run(many)).items() if k == "released"}
    try:
        pf.TraceReleaser(policies()["blocks3"], model(), epsilon=1.0, budget=5.0).run(true)
    except pf.BudgetExceeded as error:
        out["budget, run"] = str(error)
    T = pf.TraceReleaser(policies()["blocks3"], model(), epsilon=1.0, budget=2.0, rng=1)
    S = T.start(users=2)
    said = []
    for t in range(4):
        try:
            said.append(S.step(true[[0, 3], t]).released.tolist())
        except pf.BudgetExceeded as error:
            said.append(str(error))
    out["budget, steps"] = said
    return out


GROUPS = {"mobility": mobility, "traces": traces, "priors": priors}
