"""Cases: maps too large for tables, many users at once, and reports from Python."""

import tempfile
from pathlib import Path

import numpy as np
from golden_cli import page
from golden_maps import domain, grid, policies
from golden_mechanisms import certificate
from golden_traces import FIELDS, evidence, model, moves, walks
from scipy import sparse as sp

import pglp_fast as pf


def mechanisms():
    out = {}
    g = pf.Grid(60, 60, cell_km=(0.3, 0.2))
    scattered = np.flatnonzero(np.random.default_rng(1).random(g.size) < 0.7)
    made = {
        "complete": pf.complete(g),
        "scattered": pf.complete(g, scattered),
        "blocks5": pf.blocks(g, 5),
        "neighbours8": pf.neighbours8(g),
    }
    cells = np.random.default_rng(2).integers(0, g.size, 30_000)
    for name, G in made.items():
        for kind in (pf.PPIM, pf.PLM, pf.PlanarLaplace):
            for calibration in ("component", "graph"):
                m = kind(G, epsilon=1.0, calibration=calibration)
                case = {
                    "releases": m.release(cells, rng=3),
                    "some": m.release(cells[:40], rng=4),
                    "certificate": certificate(m),
                }
                # a row over thousands of cells takes seconds: two of them will do
                long = name == "complete" and kind is not pf.PlanarLaplace
                if (name == "blocks5" or long) and calibration == "component":
                    case["pmf"] = m.pmf(int(scattered[len(scattered) // 2]))[1]
                out[f"{name}, {kind.__name__}, {calibration}"] = case
    return out


def exposure():
    out = {}
    g = pf.Grid(100, 100, cell_km=0.5)
    made = {
        "blocks3": pf.blocks(g, 3),
        "blocks5": pf.blocks(g, 5),
        "neighbours8": pf.neighbours8(g),
    }
    words = np.stack([domain(g, share, k).words for k, share in enumerate((0.03, 0.1, 0.2))])
    for name, G in made.items():
        for calibration in ("component", "graph"):
            case = f"{name}, {calibration}"
            out[case] = vars(pf.isolated_many(G, words, calibration=calibration))
            for strategy in ("min-area", "nearest", "arbitrary", "min-error"):
                how = {"strategy": strategy, "calibration": calibration}
                out[f"{case}, {strategy}"] = vars(pf.repair_many(G, words, **how))
    return out


def walkers(g, users, steps, seed):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, g.rows, users), rng.integers(0, g.cols, users)
    out = np.empty((users, steps), np.int64)
    for t in range(steps):
        out[:, t] = row * g.cols + col
        row = np.clip(row + rng.integers(-1, 2, users), 0, g.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, g.cols - 1)
    out[rng.random(out.shape) < 0.1] = -1
    return out


def traces():
    out = {}
    g = pf.Grid(30, 30, cell_km=0.5)
    M = pf.MobilityModel.fit(g, walkers(g, 800, 30, 1), smoothing="neighbours8")
    out["model"] = moves(M)
    true = walkers(g, 120, 15, 2)
    ways = {
        "exact": {},
        "density": {"likelihood": "density"},
        "graph": {"calibration": "graph", "delta": 0.1},
        "plm": {"mechanism": "plm", "repair": "min-error"},
        "krr": {"mechanism": "krr"},
        "planar": {"mechanism": "planar-laplace"},
        "remap": {"remap": "euclidean"},
    }
    for name, how in ways.items():
        T = pf.TraceReleaser(pf.blocks(g, 3), M, epsilon=1.0, rng=4, **how)
        R = T.run(true, evidence=True)
        a = pf.attack(R, true)
        out[name] = {field: getattr(R, field) for field in FIELDS}
        kept = {k: v for k, v in evidence(R.evidence).items() if k in ("start", "cells", "logs")}
        out[name] |= kept | {"text": str(a.table())}
        out[name] |= {"bayes": a.bayes, "viterbi": a.viterbi, "expected": a.expected_error}
    return out


def reports():
    out = {}
    g = grid()
    true = walks(g)
    T = pf.TraceReleaser(policies()["blocks3"], model(), epsilon=1.0, rng=5)
    R = T.run(true, evidence=True)
    m = pf.PPIM(policies()["blocks3"], epsilon=1.0)
    cells = np.random.default_rng(1).integers(0, g.size, 50)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "r.html"
        how = {"overwrite": True}
        pf.write_report(path, T, R, **how)
        out["traces"] = page(path)
        pf.write_report(path, T, R, true, title="With the truth", **how)
        out["truth"] = page(path)
        pf.write_report(path, m, **how)
        out["mechanism"] = page(path)
        pf.write_report(path, m, m.release(cells, rng=1), cells, **how)
        out["releases"] = page(path)
    return out


def priors():
    """Rows of a sparse matrix, one for each of many users."""
    g = grid()
    rng = np.random.default_rng(3)
    true = walks(g, 80, 6, 14)
    first = np.where((true >= 0).any(axis=1), true[np.arange(80), (true >= 0).argmax(axis=1)], 0)
    rows = np.repeat(np.arange(80), 4)
    cols = np.concatenate([first[:, None], rng.integers(0, g.size, (80, 3))], axis=1).ravel()
    given = sp.coo_array((np.full(320, 0.25), (rows, cols)), shape=(80, g.size)).tocsr()
    R = pf.TraceReleaser(policies()["blocks2"], model(), epsilon=1.0, rng=7).run(true, given)
    return {"sparse": {field: getattr(R, field) for field in FIELDS}}


GROUPS = {
    "large_mechanisms": mechanisms,
    "large_exposure": exposure,
    "large_traces": traces,
    "large_priors": priors,
    "reports": reports,
}
