"""Cases: every mechanism on every kind of policy; what it promises, costs and leaves to guess."""

import re

import numpy as np
from golden_maps import domain, grid, labels, points, policies

import pglp_fast as pf

EPSILONS = (0.1, 1.0, 4.0)
NOISES = {"ppim": pf.PPIM, "plm": pf.PLM, "planar-laplace": pf.PlanarLaplace}
TABLES = {"krr": pf.KRR, "graph-exponential": pf.GraphExponential, "optimal": pf.Optimal}


def certificate(m):
    """Without the edge of the worst case: many are equally bad, and a last bit decides."""
    c = pf.certify(m)
    facts = {k: getattr(c, k) for k in ("ok", "epsilon", "worst", "proof", "shapes", "edges")}
    return facts | {"text": re.sub(r" at edge \(\d+, \d+\)", "", str(c))}


def releases(m):
    inside = np.arange(m.locations.size) if m.domain is None else m.domain.cells()
    cells = np.resize(inside, 60)
    return {
        "seed 7": m.release(cells, rng=7),
        "users, t": m.release(cells[:20], users=np.arange(20) * 3 + 5, t=4, rng=8),
    }


def probabilities(m):
    """Tables, matrix and pmf, from the first location, and from one of the largest output set."""
    inside = np.arange(m.locations.size) if m.domain is None else m.domain.cells()
    sizes = [len(m.pmf(s)[0]) for s in inside]
    s = int(inside[int(np.argmax(sizes))])
    outputs, P = m.matrix(s)
    tree = {"s": s, "outputs": outputs, "pmf": m.pmf(s)[1], "log pmf": m.pmf(s, log=True)[1]}
    tree["pmf last"] = m.pmf(int(inside[-1]))
    # rows of a long matrix by a weighted sum: that keeps the recording short
    tree["matrix"] = P if P.size <= 36 else P @ (1.0 / np.arange(1, len(P) + 1))
    try:
        tree["table"] = m.table(s)[1]
    except pf.PGLPError as error:
        tree["table"] = f"{type(error).__name__}: {error}"
    return tree


def whole(m):
    return {
        "repr": repr(m),
        "releases": releases(m),
        "certificate": certificate(m),
        **probabilities(m),
    }


def noises():
    out = {}
    for policy, G in policies().items():
        C = domain(G.locations, 0.7, 2)
        for name, make in NOISES.items():
            for calibration in ("component", "graph"):
                for epsilon in EPSILONS:
                    how = {"epsilon": epsilon, "calibration": calibration}
                    case = f"{policy}, {name}, {calibration}, {epsilon}"
                    out[case] = whole(make(G, **how))
                    for sampler in ("table", "geometric"):
                        m = make(G, sampler=sampler, **how)
                        one = {"releases": releases(m), "certificate": certificate(m)}
                        out[f"{case}, {sampler}"] = one
                m = make(G, domain=C, epsilon=1.0, calibration=calibration)
                out[f"{policy}, {name}, {calibration}, domain"] = whole(m)
                m = make(G, domain=C, epsilon=1.0, calibration=calibration, sampler="geometric")
                out[f"{policy}, {name}, {calibration}, domain, geometric"] = releases(m)
    return out


def tables():
    out = {}
    for policy, G in policies().items():
        C = domain(G.locations, 0.7, 2)
        for name, make in TABLES.items():
            for epsilon in EPSILONS:
                out[f"{policy}, {name}, {epsilon}"] = whole(make(G, epsilon=epsilon))
            out[f"{policy}, {name}, domain"] = whole(make(G, epsilon=1.0, domain=C))
    g = grid()
    prior = 1.0 / (1.0 + g.distance(17, np.arange(g.size)))
    for loss in ("euclidean", "squared"):
        m = pf.Optimal(policies()["blocks3"], epsilon=1.0, prior=prior, loss=loss)
        out[f"optimal with a prior, {loss}"] = whole(m)
    loss = np.abs(np.arange(g.size)[:, None] - np.arange(g.size)).astype(float)
    out["optimal, loss matrix"] = whole(pf.Optimal(policies()["path"], epsilon=1.0, loss=loss))
    return out


def sets():
    """Mechanisms on location sets, and geo-indistinguishability."""
    out = {}
    for where, locations in (("grid", grid()), ("points", points())):
        C = domain(locations, 0.3, 6)
        for epsilon in EPSILONS:
            out[f"{where}, geo_ind, {epsilon}"] = whole(
                pf.geo_ind(locations, epsilon_per_km=epsilon)
            )
            for sampler in ("auto", "geometric"):
                for name, make in (("lm", pf.LM), ("pim", pf.PIM)):
                    m = make(C, epsilon=epsilon, sampler=sampler)
                    out[f"{where}, {name}, {epsilon}, {sampler}"] = whole(m)
    return out


def remapped():
    out = {}
    for policy in ("blocks3", "categories", "neighbours8", "points"):
        G = policies()[policy]
        prior = np.random.default_rng(1).random(G.locations.size)
        prior[::5] = 0
        made = {
            "ppim": pf.PPIM(G, epsilon=1.0),
            "ppim graph": pf.PPIM(G, epsilon=1.0, calibration="graph"),
            "plm": pf.PLM(G, epsilon=2.0, domain=domain(G.locations, 0.7, 2)),
            "planar-laplace": pf.PlanarLaplace(G, epsilon=1.0),
            "krr": pf.KRR(G, epsilon=2.0),
            "graph-exponential": pf.GraphExponential(G, epsilon=2.0),
        }
        for name, m in made.items():
            for how, given in (("even", None), ("prior", prior)):
                for loss in ("euclidean", "squared"):
                    r = pf.Remapped(m, given, loss)
                    out[f"{policy}, {name}, {how}, {loss}"] = {"to": r.to, **whole(r)}
    return out


def _utility(u):
    return {
        "figures": u.as_dict(),
        "text": str(u),
        "by location": u.by_location,
        "worst": list(u.worst),
        "intervals": u.intervals,
    }


def metrics():
    out = {}
    for policy in ("blocks3", "cut", "categories", "neighbours8", "star", "points"):
        G = policies()[policy]
        n = G.locations.size
        prior = np.random.default_rng(2).random(n)
        made = {
            "P-PIM": pf.PPIM(G, epsilon=1.0),
            "P-PIM graph": pf.PPIM(G, epsilon=2.0, calibration="graph"),
            "P-LM": pf.PLM(G, epsilon=1.0),
            "planar Laplace": pf.PlanarLaplace(G, epsilon=1.0),
            "k-RR": pf.KRR(G, epsilon=1.0),
            "Optimal": pf.Optimal(G, epsilon=1.0),
            "remapped": pf.Remapped(pf.PPIM(G, epsilon=1.0)),
        }
        for name, m in made.items():
            p, q = pf.privacy(m), pf.privacy(m, prior=prior)
            given = {"categories": labels(n, 2, 3)}
            if policy != "points":
                given["region"] = 2
            true = np.random.default_rng(5).integers(0, n, (8, 12))
            released = m.release(true.ravel(), rng=3).reshape(true.shape)
            released[2, 3:5] = -1
            estimate = pf.estimate_utility(G.locations, true, released, clusters="rows", **given)
            out[f"{policy}, {name}"] = {
                "utility": _utility(pf.utility(m, **given)),
                "with a prior": _utility(pf.utility(m, prior=prior, quantiles=(0.25, 0.75))),
                "estimate": _utility(estimate),
                "estimate, each": _utility(pf.estimate_utility(G.locations, true, released)),
                "privacy": [vars(p), vars(q), str(p)],
            }
        both = pf.compare(made, prior=prior)
        out[f"{policy}, compare"] = {"text": str(both), "rows": both.as_rows()}
        out[f"{policy}, compare, even"] = str(pf.compare(list(made.values())))
    return out


GROUPS = {
    "mechanisms_noise": noises,
    "mechanisms_table": tables,
    "mechanisms_set": sets,
    "mechanisms_remapped": remapped,
    "metrics": metrics,
}
