"""The paper's theorems, on the exact matrices and on the integers that are drawn from.

Indistinguishability of k-hop neighbours, G_1 and Geo-Indistinguishability, G_2 and Location Set
Privacy, Composability."""

import math
from fractions import Fraction

import numpy as np
import pytest

import pglp_fast as pf
from cases import SMALL

NAMES = ["cut-off blocks", "tree", "star", "8 neighbours", "oblique path", "1 x N path",
         "clique and tail", "scattered points", "circle"]  # fmt: skip
BY_TABLE = (pf.PPIM, pf.PLM, pf.PlanarLaplace, pf.KRR, pf.GraphExponential)


def groups_of(m):
    for s in np.unique(m.graph.components, return_index=True)[1].tolist():
        members = m.graph.component(s)
        if len(members) > 1:
            a, b = np.indices((len(members),) * 2).reshape(2, -1)
            far = m.graph.distance(members[a], members[b]).reshape(len(members), -1)
            yield s, members, far


def log_ratios(L):
    """[s, s'] = the largest ln Pr(z|s) / Pr(z|s') over z."""
    with np.errstate(invalid="ignore"):
        apart = L[:, None, :] - L[None, :, :]
    return np.where(np.isnan(apart), -np.inf, apart).max(axis=2)


def exp_above(x):
    """A rational number just above e^x, by the series and a bound on what is left of it."""
    x = Fraction(x)
    if x > 1:
        half = exp_above(x / 2)
        return half * half
    return sum(x**k / math.factorial(k) for k in range(30)) + Fraction(2, math.factorial(30))


@pytest.mark.parametrize("epsilon", [0.4, 2.5])
@pytest.mark.parametrize("cls", BY_TABLE)
@pytest.mark.parametrize("name", NAMES)
def test_hops_multiply_the_bound(name, cls, epsilon):
    """Pr(z|s) <= e^(epsilon d_G(s, s')) Pr(z|s') for all pairs: exact matrices, of every
    mechanism. Would catch an edge that is left out of the hull: its ends are a pair, too."""
    m = cls(SMALL[name], epsilon=epsilon)
    for s, _, far in groups_of(m):
        assert (log_ratios(m.matrix(s, log=True)[1]) <= epsilon * far * (1 + 1e-9) + 1e-13).all()


@pytest.mark.parametrize("cls", [pf.PPIM, pf.PLM, pf.KRR])
@pytest.mark.parametrize("name", ["tree", "star", "oblique path", "clique and tail"])
def test_hops_multiply_the_bound_of_what_is_drawn(name, cls):
    """The same on the integers of the tables, in exact arithmetic: what is proved of edges alone
    holds of all pairs."""
    m = cls(SMALL[name], epsilon=0.7)
    assert pf.certify(m).ok
    for _, members, far in groups_of(m):
        tables = [[int(w) for w in m.table(int(i))[1]] for i in members]
        bounds = {d: exp_above(Fraction(0.7) * d) for d in {int(d) for d in far.ravel()}}
        for a in range(len(members)):
            for b in range(len(members)):
                bound = bounds[int(far[a, b])]
                assert all(v <= bound * w for v, w in zip(tables[a], tables[b]))


@pytest.mark.parametrize("cell", [(1.0, 1.0), (0.3, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("cls", [pf.PPIM, pf.PLM])
def test_neighbours8_implies_geo_indistinguishability(cls, cell):
    """G_1 at epsilon gives epsilon / min(dx, dy) for each km: hops are the larger of columns and
    rows, which are at most so many. No smaller rate would do."""
    g, epsilon = pf.Grid(4, 5, cell_km=cell), 1.2
    m = cls(pf.neighbours8(g), epsilon=epsilon)
    ratios = log_ratios(m.matrix(0, log=True)[1])
    a, b = np.indices((g.size, g.size)).reshape(2, -1)
    km = g.distance(a, b).reshape(ratios.shape)
    rate = epsilon / min(cell)
    assert (ratios <= rate * km * (1 + 1e-9) + 1e-13).all()
    if cls is pf.PPIM:
        per_km = ratios[km > 0] / km[km > 0]
        assert per_km.max() > 0.99 * rate


def test_a_complete_policy_implies_location_set_privacy():
    """G_2: all pairs of the set within e^epsilon, and PIM is P-PIM under it."""
    g = pf.Grid(6, 6, cell_km=(1, 0.7))
    cells = np.random.default_rng(3).permutation(36)[:11]
    m = pf.PPIM(pf.complete(g, cells), epsilon=0.9)
    outputs, L = m.matrix(int(cells[0]), log=True)
    assert outputs.tolist() == sorted(cells.tolist())
    assert log_ratios(L).max() <= 0.9 * (1 + 1e-9)
    pim = pf.PIM(pf.Domain(g, cells), epsilon=0.9)
    assert np.array_equal(pim.matrix(int(cells[0]), log=True)[1], L)
    assert (
        log_ratios(pf.PLM(m.graph, epsilon=0.9).matrix(int(cells[0]), log=True)[1]).max()
        <= 0.9 + 1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_two_releases_compose(seed):
    """(eps1, G1) and (eps2, G2) give (eps1 + eps2, G1 & G2) on the joint distribution of both
    releases; and no more: an edge of G1 that G2 cuts is told apart for certain."""
    rng = np.random.default_rng(seed)
    g = pf.Grid(3, 4)
    pairs = rng.integers(0, g.size, (14, 2))
    G = pf.blocks(g, 2)
    H = pf.PolicyGraph.from_edges(g, pairs[pairs[:, 0] != pairs[:, 1]])
    one, two = pf.PPIM(G, epsilon=0.5), pf.PLM(H, epsilon=1.1)

    def joint(s):
        rows = []
        for m in (one, two):
            outputs, P = m.pmf(s)
            row = np.zeros(g.size)
            row[outputs] = P
            rows.append(row)
        return np.outer(*rows)

    def worst(i, j):
        a, b = joint(i), joint(j)
        return max(np.log(a[a > 0] / np.maximum(b[a > 0], 1e-300)).max(),
                   np.log(b[b > 0] / np.maximum(a[b > 0], 1e-300)).max())  # fmt: skip

    both = G & H
    for i, j in both.edges().tolist():
        assert worst(i, j) <= 1.6 * (1 + 1e-9)
    for i, j in G.edges().tolist():
        if H.components[i] != H.components[j]:
            assert worst(i, j) > 100


def test_weights_add_along_a_path():
    """d_G of weighted edges is the least sum of weights, and bounds all pairs."""
    g = pf.Grid(3, 3)
    G = pf.PolicyGraph.from_edges(
        g, [(0, 1), (1, 4), (4, 8), (8, 7), (0, 3)], weights=[0.5, 2, 0.75, 1, 3]
    )
    m = pf.PPIM(G, epsilon=1.0)
    for s, _, far in groups_of(m):
        assert (log_ratios(m.matrix(s, log=True)[1]) <= far * (1 + 1e-9) + 1e-13).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_certificate_speaks_of_all_pairs(epsilon):
    """``within`` bounds the exact ratio of every pair by its hops; no bound across components."""
    g = pf.Grid(3, 4)
    G = pf.PolicyGraph.from_edges(g, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 9)])
    m = pf.PPIM(G, epsilon=epsilon)
    c = pf.certify(m)
    for s in (0, 4):
        outputs, P = m.matrix(s)
        for i, a in enumerate(outputs):
            for j, b in enumerate(outputs):
                ratio = np.log(P[i] / P[j]).max()
                assert ratio <= c.within(G.distance(a, b)) * (1 + 1e-9) + 1e-12
    assert c.within(0) == 0 and c.within(np.inf) == np.inf and c.within(3) <= 3 * epsilon
    with pytest.raises(pf.InvalidParameter, match="hops must be at least 0"):
        c.within(-1)
