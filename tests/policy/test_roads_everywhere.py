"""A road network with lengths in everything that takes a policy: mechanisms, certificates, audits,
streams, attacks, reports and pictures."""

import numpy as np
import pytest

import naive_attacks
import pglp_fast as pf
from pglp_fast import plot

XY = np.array([(0, 0), (5, 1), (9, 0), (12, 4), (6, 5), (2, 7), (7, 9)]) * 0.1
ROADS = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (1, 4)])
TOWN = pf.Points(XY)
KM = np.hypot(*(XY[ROADS[:, 0]] - XY[ROADS[:, 1]]).T)
NETWORK = pf.road_network(TOWN, ROADS, KM, unit_km=0.4)
EPSILON = 0.8
EVERY = [pf.PPIM, pf.PLM, pf.PlanarLaplace, pf.KRR, pf.GraphExponential, pf.Optimal]
# stay, or go along a road
A = np.eye(7) + sum(np.eye(7)[[i]].T @ np.eye(7)[[j]] for i, j in (*ROADS, *ROADS[:, ::-1]))
A /= A.sum(axis=1, keepdims=True)
MODEL = pf.MobilityModel(TOWN, A)


def walks(users, steps, seed=0):
    rng = np.random.default_rng(seed)
    out = np.empty((users, steps), np.int64)
    out[:, 0] = rng.integers(0, 7, users)
    for t in range(1, steps):
        out[:, t] = [rng.choice(7, p=A[s]) for s in out[:, t - 1]]
    return out


def assert_edges_keep_their_promise(m):
    outputs, L = m.matrix(0, log=True)
    row = {int(c): L[k] for k, c in enumerate(outputs)}
    weights = NETWORK.edge_weights()
    for (i, j), (p, q) in zip(NETWORK.edges().tolist(), weights.tolist(), strict=True):
        with np.errstate(invalid="ignore"):
            worst = np.nanmax(np.abs(row[i] - row[j]))
        assert worst <= p / q * EPSILON * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("remapped", [False, True])
@pytest.mark.parametrize("cls", EVERY)
def test_every_mechanism_keeps_the_lengths_and_is_certified(cls, remapped):
    m = cls(NETWORK, epsilon=EPSILON)
    m = pf.Remapped(m) if remapped else m
    found = pf.certify(m)
    assert found.ok, found
    assert_edges_keep_their_promise(m)


@pytest.mark.parametrize("cls", [pf.PPIM, pf.PLM, pf.KRR])
def test_audits_find_nothing(cls):
    assert pf.audit(cls(NETWORK, epsilon=EPSILON), draws=20_000, rng=1).passed
    T = pf.TraceReleaser(NETWORK, MODEL, epsilon=EPSILON, mechanism=cls.name, rng=4)
    assert pf.audit(T, draws=2000, pairs=2).passed


@pytest.mark.parametrize("how", [{}, {"calibration": "graph"}, {"mechanism": "plm"}], ids=str)
def test_an_attack_is_the_enumeration_of_all_paths(how):
    """From the probabilities of each step's own repaired network, one location at a time."""
    cls = {"plm": pf.PLM}.get(how.get("mechanism"), pf.PPIM)
    T = pf.TraceReleaser(NETWORK, MODEL, epsilon=EPSILON, rng=2, **how)
    prior, traces = np.arange(1.0, 8.0) / 28, walks(3, 4)
    R = T.run(traces, prior, evidence=True)
    assert R.certificate.ok
    result, S = pf.attack(R), T.start(3, prior)
    rows = [[] for _ in traces]
    for t in range(4):
        step = S.step(traces[:, t])
        assert (step.released == R.released[:, t]).all()
        for u, z in enumerate(step.released.tolist()):
            m = cls(S.policy(u), epsilon=EPSILON, domain=S.domain(u), calibration=T.calibration)
            row = {}
            for s in S.domain(u).cells().tolist():
                outputs, p = m.pmf(s)
                if z in outputs.tolist():
                    row[s] = float(np.log(p[outputs.tolist().index(z)]))
            rows[u].append(row)
    for u in range(3):
        paths = naive_attacks.Paths(prior, [A] * 4, rows[u])
        assert result.log_evidence[u] == pytest.approx(paths.log_evidence(), rel=1e-9)
        for t in range(4):
            smoothed = [float(x) for x in paths.smoothed(t)]
            assert result.posterior(u, t) == pytest.approx(smoothed, rel=1e-8, abs=1e-10)
            _, error = naive_attacks.guess(TOWN.xy(np.arange(7)), smoothed, range(7))
            assert result.expected_error[u, t] == pytest.approx(error, rel=1e-7)


def test_a_stream_goes_on_where_it_was_saved(tmp_path):
    traces = walks(20, 6, seed=1)
    T = pf.TraceReleaser(
        NETWORK, MODEL, epsilon=EPSILON, mechanism="ppim", remap="euclidean", rng=3
    )
    whole, S = T.run(traces).released, T.start(20)
    for t in range(6):
        assert (S.step(traces[:, t]).released == whole[:, t]).all()
        if t == 2:
            S.save(tmp_path / "stream")
            S = T.resume(tmp_path / "stream")
    other = pf.road_network(TOWN, ROADS, KM, unit_km=0.8)
    with pytest.raises(pf.InvalidState, match="another policy"):
        pf.TraceReleaser(
            other, MODEL, epsilon=EPSILON, mechanism="ppim", remap="euclidean", rng=3
        ).resume(tmp_path / "stream", again=True)


def test_reports_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    traces, m = walks(6, 5), pf.PPIM(NETWORK, epsilon=EPSILON)
    T = pf.TraceReleaser(NETWORK, MODEL, epsilon=EPSILON, rng=5)
    R = T.run(traces, evidence=True)
    for name, what in (("traces", (T, R, traces)), ("alone", (m, m.release(traces[:, 0], rng=1)))):
        text = pf.write_report(tmp_path / f"{name}.html", *what).read_text("utf-8")
        assert "proved" in text.lower()
    drawn = plot.policy(NETWORK)
    assert drawn.figure is not None
    plot.noise(m, 0)
    plot.trace(TOWN, traces[0], R.released[0])
    plot.pyplot().close("all")
