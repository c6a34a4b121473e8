"""Bayesian remapping against the definition written out, and what it may and may not change."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import large, set_weights
from pglp_fast._kernels.noise import alias_rows

INNER = {
    "ppim": lambda G, e: pf.PPIM(G, epsilon=e),
    "ppim graph": lambda G, e: pf.PPIM(G, epsilon=e, calibration="graph"),
    "plm geometric": lambda G, e: pf.PLM(G, epsilon=e, sampler="geometric"),
    "planar": lambda G, e: pf.PlanarLaplace(G, epsilon=e),
    "krr": lambda G, e: pf.KRR(G, epsilon=e),
    "hops": lambda G, e: pf.GraphExponential(G, epsilon=e),
    "optimal": lambda G, e: pf.Optimal(G, epsilon=e),
}


def written_out(m, outputs, P, prior, loss):
    """(to, gap): for each z the w of least sum_s prior(s) Pr(z|s) loss(s, w), and how much worse
    the second best is."""
    to, gaps = [], []
    for z in range(len(outputs)):
        cost = [
            sum(prior[s] * P[s, z] * loss(int(outputs[s]), int(w)) for s in range(len(outputs)))
            for w in outputs
        ]
        best = int(np.argmin(cost))
        rest = sorted(cost)[1:2]
        to.append(best)
        gaps.append((rest[0] - cost[best]) / max(prior @ P[:, z], 1e-300) if rest else np.inf)
    return np.array(to), np.array(gaps)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("loss", ["euclidean", "squared", "matrix", "function"])
@pytest.mark.parametrize("even", [True, False])
def test_the_definition(inner, loss, even):
    """Catches a prior that is ignored, a transposed matrix, a component remapped by its
    translate's prior."""
    rng = np.random.default_rng([len(inner), even])
    g = pf.Grid(4, 7, cell_km=(0.5, 0.7))
    G = pf.blocks(g, 3) if inner != "hops" else pf.neighbours8(g)
    m = INNER[inner](G, 1.2)
    prior = None if even else rng.random(g.size) * (rng.random(g.size) < 0.8)
    own = rng.random((g.size, g.size))
    losses = {
        "euclidean": ("euclidean", lambda s, w: g.distance(s, w)),
        "squared": ("squared", lambda s, w: g.distance(s, w) ** 2),
        "matrix": (own, lambda s, w: own[s, w]),
        "function": (lambda s, w: np.abs(s - w), lambda s, w: abs(s - w)),
    }
    given, value = losses[loss]
    r = pf.Remapped(m, prior, given)
    checked = 0
    for s in (0, 5, 27):
        outputs, P = m.matrix(s)
        weight = np.ones(len(outputs)) if prior is None else prior[outputs]
        to, gap = written_out(m, outputs, P, weight / weight.sum(), value)
        sure = gap > 1e-9
        checked += sure.sum()
        assert np.array_equal(r.to[outputs][sure], outputs[to][sure])
        same, Q = r.matrix(s)
        assert np.array_equal(same, outputs)
        merged = np.zeros_like(P)
        for z in range(len(outputs)):
            merged[:, np.searchsorted(outputs, r.to[outputs[z]])] += P[:, z]
        assert np.abs(Q - merged).max() < 1e-14
        row, q = r.pmf(s)
        assert np.array_equal(row, outputs)
        assert np.allclose(q, Q[np.searchsorted(outputs, s)], rtol=1e-13, atol=0)
    assert checked > 5  # the optimum leaves many outputs unsaid


@large
@pytest.mark.parametrize("inner", INNER)
def test_it_never_errs_more_and_keeps_the_promise(inner):
    g = pf.Grid(5, 5)
    G = pf.blocks(g, 5)
    d = g.distance(np.repeat(np.arange(25), 25), np.tile(np.arange(25), 25)).reshape(25, 25)
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        m = INNER[inner](G, epsilon)
        r = pf.Remapped(m)
        assert (r.matrix(0)[1] * d).sum() <= (m.matrix(0)[1] * d).sum() * (1 + 1e-12)
        logs = r.matrix(0, log=True)[1]
        said = ~np.isneginf(logs[0])
        assert (np.isneginf(logs) == ~said).all()
        assert np.ptp(logs[:, said], axis=0).max() <= epsilon * (1 + 1e-9)
        c = pf.certify(r)
        assert c.ok
        assert c == pf.certify(m)


def test_known_figures():
    """P-PIM with remapping on a 5 x 5 block: about 1.7 cells at eps = 2; nothing can beat the
    optimum."""
    g = pf.Grid(5, 5)
    d = g.distance(np.repeat(np.arange(25), 25), np.tile(np.arange(25), 25)).reshape(25, 25)
    for epsilon, known in ((1.0, 1.867), (2.0, 1.737)):
        G = pf.blocks(g, 5)
        mean = (pf.Remapped(pf.PPIM(G, epsilon=epsilon)).matrix(0)[1] * d).sum(axis=1).mean()
        assert mean == pytest.approx(known, abs=5e-4)
        best = pf.Optimal(G, epsilon=epsilon)
        assert (best.matrix(0)[1] * d).sum(axis=1).mean() < mean
        again = (pf.Remapped(best).matrix(0)[1] * d).sum(axis=1).mean()
        assert again == pytest.approx(
            (best.matrix(0)[1] * d).sum(axis=1).mean(), rel=1e-6
        )  # nothing left to gain


@pytest.mark.parametrize("inner", INNER)
def test_release_is_the_release_remapped(inner):
    g = pf.Grid(6, 6)
    m = INNER[inner](pf.blocks(g, 3), 1.0)
    r = pf.Remapped(m, prior=np.arange(1, 37))
    cells = np.tile(np.arange(36), 20)
    assert np.array_equal(r.release(cells, rng=3), r.to[m.release(cells, rng=3)])
    assert r.release(5, rng=1).shape == ()
    assert r.release([], rng=1).shape == (0,)
    if "geometric" not in inner:
        _, w = r.table(4)
        assert int(w.astype(object).sum()) == alias_rows.TOTAL
        assert np.abs(w.astype(float) / alias_rows.TOTAL - r.pmf(4)[1]).max() < 1e-8


def test_a_broken_mechanism_stays_broken():
    """One weight 0.1 % past the bound in the mechanism that draws fails the certificate of the
    remapped one."""
    m = pf.KRR(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0)
    r = pf.Remapped(m)
    assert pf.certify(r).ok
    w = m.table(0)[1]
    shift = np.uint64(int(w[0]) // 1000)
    w[0] += shift
    w[1] -= shift
    set_weights(m, 0, w)
    assert not pf.certify(r).ok


def test_domains():
    g = pf.Grid(4, 4)
    C = pf.Domain(g, [0, 1, 4, 5, 10, 15])
    r = pf.Remapped(pf.PPIM(pf.blocks(g, 2), epsilon=1.0, domain=C))
    assert set(np.unique(r.release(np.repeat([0, 1, 4, 5], 50), rng=0))) <= {0, 1, 4, 5}
    with pytest.raises(pf.InvalidDomain, match="outside the domain"):
        r.release([2])
    with pytest.raises(pf.InvalidDomain, match="outside the domain"):
        r.matrix(2)


@large
def test_a_million_cells():
    g = pf.Grid(1000, 1000)
    r = pf.Remapped(pf.PPIM(pf.blocks(g, 5), epsilon=1.0))
    to = r.to.reshape(1000, 1000)
    assert np.array_equal(to[5:10, 5:10] - 5005, to[:5, :5])  # translates alike
    assert (r.to // 5000 == np.arange(g.size) // 5000).all()


def test_errors():
    m = pf.PPIM(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0)
    with pytest.raises(
        pf.InvalidParameter, match=r"must be a mechanism that draws, got Remapped.*remapping twice"
    ):
        pf.Remapped(pf.Remapped(m))
    with pytest.raises(pf.InvalidParameter, match="must be a mechanism that draws, got Grid"):
        pf.Remapped(m.locations)
    with pytest.raises(pf.InvalidParameter, match="prior must be 9 numbers"):
        pf.Remapped(m, prior=[1, 2])
    with pytest.raises(pf.InvalidParameter, match="loss must be one of"):
        pf.Remapped(m, loss="cubic")
    with pytest.raises(
        pf.InvalidParameter, match=r"must give finite numbers of shape \(9, 9\).*got shape \(3,\)"
    ):
        pf.Remapped(m, loss=lambda s, w: np.zeros(3))
