"""Tables of policies with weights: proved for e^(w epsilon) on each edge, in integers."""

import math
from fractions import Fraction

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import random_weights, set_weights, weighted_policy
from pglp_fast.mechanisms.exp_bound import exp_lower_bound, pair_bounds

GRID = pf.Grid(4, 5, cell_km=(1.0, 0.6))
WEIGHTS = random_weights(GRID, 1)
EVERY = [pf.PPIM, pf.PLM, pf.PlanarLaplace, pf.KRR, pf.GraphExponential, pf.Optimal]


def first_of(G):
    """A location of each component of two or more."""
    counts = np.bincount(G.components)
    return [int(np.argmax(G.components == c)) for c in np.flatnonzero(counts > 1)]


@pytest.mark.parametrize("cls", EVERY)
def test_every_edge_keeps_its_own_bound_on_the_integers(cls):
    """Read back, against e^(w eps) in 60 digits. Pairs further apart: e^(eps d_G)."""
    G = weighted_policy(GRID, WEIGHTS)
    m = cls(G, epsilon=0.9, sampler="table")
    found = pf.certify(m)
    assert found.ok, found
    assert (found.proof, found.edges) == ("table", len(WEIGHTS))
    tight = 0.0
    for s in first_of(G):
        members, P = m.matrix(s)
        W = {int(c): [int(w) for w in m.table(int(c))[1]] for c in members}
        drawn = np.array([W[int(c)] for c in members]) / 2.0**63
        assert np.abs(drawn - P).sum(axis=1).max() / 2 < 1e-6
        for (i, j), w in WEIGHTS.items():
            if i in W:
                limit = float(w) * 0.9
                ratios = [math.log(a / b) for a, b in zip(W[i], W[j]) if a and b]
                assert max(map(abs, ratios)) <= limit * (1 + 1e-14)
                tight = max(tight, max(map(abs, ratios)) / float(w))
                for a, b in zip(W[i], W[j]):
                    bound = exp_lower_bound(Fraction(0.9) * w)
                    top, low = max(a, b), min(a, b)
                    assert top << bound.shift <= int(bound.numerator) * low
        far = [naive.weighted_distance(GRID.size, WEIGHTS, int(c)) for c in members]
        for k, row in enumerate(drawn):
            for q, other in enumerate(drawn):
                with np.errstate(divide="ignore", invalid="ignore"):
                    apart = np.nanmax(np.log(row / other))
                assert apart <= 0.9 * float(far[k][int(members[q])]) + 1e-12
    assert found.worst == pytest.approx(tight, rel=1e-12)


def test_weighted_answers_are_the_oracles():
    G = weighted_policy(GRID, WEIGHTS)
    for s in first_of(G):
        outputs, P = pf.GraphExponential(G, epsilon=1.3).matrix(s)
        wanted = naive.graph_exponential(GRID.size, WEIGHTS, outputs.tolist(), 1.3)
        assert np.abs(P - wanted).max() < 1e-12
        inside = [w for e, w in WEIGHTS.items() if e[0] in outputs]
        plain = pf.KRR(pf.complete(GRID, outputs), epsilon=1.3 * float(min(inside)))
        assert np.allclose(pf.KRR(G, epsilon=1.3).matrix(s)[1], plain.matrix(s)[1], atol=1e-15)
        for cls in (pf.PPIM, pf.PLM):
            P = cls(G, epsilon=1.3, sampler="table").matrix(s)[1]
            wanted = naive.weighted_pmf(
                GRID.lattice, GRID.scale, outputs.tolist(), WEIGHTS, 1.3, cls.name
            )
            assert np.abs(P - wanted).max() < 1e-9


def test_optimal_is_no_worse_than_any_other_and_says_how_near():
    """Its constraints are e^(w eps): no weighted mechanism on the list has a smaller loss."""
    G = weighted_policy(GRID, WEIGHTS)
    best = pf.Optimal(G, epsilon=1.0)
    assert best.gap < 1e-3
    for s in first_of(G):
        outputs, P = best.matrix(s)
        n = len(outputs)
        far = GRID.distance(np.repeat(outputs, n), np.tile(outputs, n)).reshape(n, n)
        loss = float((P * far).sum())
        for cls in (pf.PPIM, pf.PLM, pf.KRR, pf.GraphExponential):
            assert loss <= float((cls(G, epsilon=1.0).matrix(s)[1] * far).sum()) * (1 + 1e-9)
    # two locations: the truth with odds of e^(w eps) to one
    pair = pf.Optimal(weighted_policy(GRID, {(0, 1): Fraction(3)}), epsilon=0.5).pmf(0)[1]
    assert pair[0] == pytest.approx(math.exp(1.5) / (1 + math.exp(1.5)), rel=1e-9)


@pytest.mark.parametrize("sampler", ["table", "geometric"])
@pytest.mark.parametrize("cls", [pf.PPIM, pf.PLM])
def test_graph_calibration(cls, sampler):
    """One K for all, the weighted hull of all edges; tables are proved for its reach as well."""
    G = weighted_policy(GRID, WEIGHTS)
    m = cls(G, epsilon=0.8, calibration="graph", sampler=sampler)
    found = pf.certify(m)
    assert found.ok, found
    outputs, P = m.matrix(0)
    wanted = naive.weighted_pmf(GRID.lattice, GRID.scale, outputs.tolist(), WEIGHTS, 0.8, cls.name)
    assert np.abs(P - wanted).max() < 1e-9


def test_a_tampered_weight_of_a_table_is_found():
    """One integer of one row is made larger: the edge of weight 1/2 breaks first, while the same
    row would still keep weight 1."""
    weights = {(0, 1): Fraction(1, 2), (1, 6): Fraction(2)}
    m = pf.PPIM(weighted_policy(GRID, weights), epsilon=1.0, sampler="table")
    assert pf.certify(m).ok
    row = m.table(0)[1].astype(object)
    more = int(row[0] * 0.2)
    changed = [row[0] + more, row[1] - more, row[2]]
    assert max(abs(math.log(a / b)) for a, b in zip(changed, m.table(1)[1].tolist())) < 1.0
    set_weights(m, 0, changed)
    found = pf.certify(m)
    assert not found.ok
    assert "above e^epsilon" in found.reason
    assert sorted(found.edge) == [0, 1]


def test_a_tampered_weight_of_an_edge_is_found():
    """Tables for weights (1/2, 2), a policy that promises (1/3, 2)."""
    made, promised = (
        weighted_policy(GRID, {(0, 1): w, (1, 6): Fraction(2)})
        for w in (Fraction(1, 2), Fraction(1, 3))
    )
    m = pf.PPIM(made, epsilon=1.0, sampler="table")
    m.tables.ensure()
    m.graph = promised
    found = pf.certify(m)
    assert not found.ok
    assert "above e^epsilon" in found.reason


def test_translates_with_the_same_weights_share_a_shape():
    edges = [(0, 1), (5, 6), (10, 11), (2, 3)]
    same = pf.PolicyGraph.from_edges(GRID, edges, weights=[0.5, 0.5, 2, 0.5])
    shapes = pf.PPIM(same, epsilon=1.0).groups
    of = [shapes.shape(i) for i, _ in edges]
    assert of[0] == of[1] == of[3] != of[2]


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 4.0, 30.0])
def test_bounds_lie_just_below(epsilon):
    numerator, denominator = np.array([1, 2, 1024, 1, 5]), np.array([1024, 3, 1, 1, 7])
    bounds = pair_bounds(epsilon, numerator, denominator)
    for k, (w, top, shift) in enumerate(zip(*bounds)):
        exact = Fraction(int(numerator[k]), int(denominator[k])) * Fraction(epsilon)
        assert w == numerator[k] / denominator[k]
        if shift < 0:
            assert exact >= 43.6
            continue
        below = int(top) * Fraction(1, 2 ** int(shift))
        assert Fraction(math.expm1(float(exact))) * (1 - 2**-40) + 1 <= below * (1 + 2**-40)
        assert below >= 1
        # no more than e^x: the series of e^x up to x^60 / 60! is below it
        series, term = Fraction(0), Fraction(1)
        for n in range(1, 400):
            series, term = series + term, (term * exact / n).limit_denominator(10**60)
        assert below <= series * (1 + Fraction(1, 10**40))
