"""Certificates against a proof of their own: in fractions, from the definition, with nothing of the
package but the integers that it draws with and the polygons that it draws from.

Definition of location privacy: for every edge (s, r) and every output z, Pr(z|s) <= e^eps Pr(z|r).
With the graph calibration for every pair whose difference lies in the sensitivity hull."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import DOMAINS, SMALL, domain_of, noise_polygon_of


def exp_below(x):
    """A rational below e^x, x >= 0, within 2**-80 of it: the partial sums of the series."""
    x = Fraction(x)
    total = term = Fraction(1)
    k = 0
    while k <= 2 * x or term * 2**80 > total:
        k += 1
        term *= x / k
        total += term
    return total


def test_the_bound_is_below_and_close():
    """e itself lies between its partial sum and that plus 2 / 31!."""
    e = sum(Fraction(1, math.factorial(k)) for k in range(31))
    assert 0 <= e + Fraction(2, math.factorial(31)) - exp_below(1) < Fraction(1, 2**78)
    for x in (0.0, 0.1, 1.5, 20.0):
        assert float(exp_below(x)) == pytest.approx(math.exp(x), rel=1e-15)
        assert exp_below(x) ** 2 <= exp_below(2 * x) * (1 + Fraction(1, 2**70))


def protected_pairs(m):
    """Edges, and with the graph calibration whoever the hull of all edges reaches."""
    edges = {tuple(e) for e in m.graph.edges().tolist()}
    if m.calibration != "graph":
        return edges
    lattice = [tuple(p) for p in m.locations.lattice.tolist()]
    cells = range(m.locations.size) if m.domain is None else m.domain.cells().tolist()
    kept = {(i, j) for i, j in edges if i in set(cells) and j in set(cells)}
    ends = [tuple(a - b for a, b in zip(lattice[i], lattice[j])) for i, j in kept]
    hull = naive.hull([(0, 0), *ends, *((-x, -y) for x, y in ends)])
    reached = {
        (i, j)
        for i, j in combinations(sorted(cells), 2)
        if naive.contains(hull, tuple(a - b for a, b in zip(lattice[j], lattice[i])))
    }
    assert kept <= reached
    return reached


def rows_of(m):
    """{s: {z: weight}} of everybody with a neighbour, Python integers; they must sum to 2**63."""
    rows = {}
    for s in {i for pair in protected_pairs(m) for i in pair}:
        outputs, weights = m.table(s)
        rows[s] = {int(z): int(w) for z, w in zip(outputs, weights)}
        assert sum(rows[s].values()) == 2**63
    return rows


def largest_ratio(rows, pairs):
    """max of Pr(z|s) / Pr(z|r) over the pairs both ways; None if it is infinite."""
    worst = Fraction(0)
    for a, b in pairs:
        assert rows[a].keys() == rows[b].keys()
        for s, r in permutations((a, b)):
            for z, w in rows[s].items():
                if w and not rows[r][z]:
                    return None
                if w * worst.denominator > worst.numerator * rows[r][z]:
                    worst = Fraction(w, rows[r][z])
    return worst


def assert_proved(m):
    """The certificate says what the fractions say."""
    drawn = m.mechanism if isinstance(m, pf.Remapped) else m
    ratio = largest_ratio(rows_of(drawn), protected_pairs(drawn))
    c = pf.certify(m)
    assert ratio is not None
    assert ratio <= exp_below(drawn.epsilon)
    assert c.ok
    assert c.epsilon == drawn.epsilon
    exact = math.log(ratio.numerator) - math.log(ratio.denominator) if ratio else -math.inf
    assert c.worst == pytest.approx(exact, rel=1e-9, abs=1e-12)


def by_table(mechanism):
    return lambda G, epsilon: mechanism(G, epsilon=epsilon, sampler="table")


MECHANISMS = {
    "P-PIM": by_table(pf.PPIM),
    "P-LM": by_table(pf.PLM),
    "planar Laplace": by_table(pf.PlanarLaplace),
    "randomised response": lambda G, epsilon: pf.KRR(G, epsilon=epsilon),
    "graph exponential": lambda G, epsilon: pf.GraphExponential(G, epsilon=epsilon),
    "optimal": lambda G, epsilon: pf.Optimal(G, epsilon=epsilon),
    "remapped": lambda G, epsilon: pf.Remapped(pf.PPIM(G, epsilon=epsilon, sampler="table")),
}
POLICIES = ["block 3", "cut-off blocks", "two places", "star", "1 x N path", "clique and tail"]


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
@pytest.mark.parametrize("policy", POLICIES)
def test_tables(mechanism, policy):
    for epsilon in (0.1, 1.3, 8.0):
        assert_proved(mechanism(SMALL[policy], epsilon))


@pytest.mark.parametrize("mechanism", [pf.PPIM, pf.PLM])
@pytest.mark.parametrize("name", DOMAINS)
def test_tables_of_the_graph_calibration(mechanism, name):
    graph, domain = domain_of(name)
    m = mechanism(graph, epsilon=1.3, domain=domain, calibration="graph", sampler="table")
    assert_proved(m)


@pytest.mark.parametrize("special", [pf.LM, pf.PIM])
def test_location_sets(special):
    """Every pair of the set: an edge."""
    g = pf.Grid(3, 4, cell_km=(0.5, 1.0))
    m = special(pf.Domain(g, [0, 2, 5, 7, 11]), epsilon=0.8)
    assert len(protected_pairs(m)) == 10
    assert_proved(m)


def test_one_weight_too_many_is_seen():
    """By the fractions themselves: raised to the last integer below e^eps it holds, by one more it
    does not."""
    m = pf.KRR(SMALL["two places"], epsilon=1.3)
    rows, pairs, bound = rows_of(m), protected_pairs(m), exp_below(1.3)
    ((a, b),) = pairs
    z = max(rows[a], key=rows[a].get)
    rows[a][z] = math.floor(rows[b][z] * bound)
    assert largest_ratio(rows, pairs) <= bound
    rows[a][z] += 1
    assert largest_ratio(rows, pairs) > bound
    rows[b][z] = 0
    assert largest_ratio(rows, pairs) is None


# The premises of the K-norm theorem (Hardt and Talwar) for what is drawn geometrically


def cross(a, b):
    return a[0] * b[1] - a[1] * b[0]


def gauge(polygon, v):
    """||v||_K by the definition, the least t with v in t K: (v x (b - a)) / (a x b) is 1 on the
    side ab; None where v is in no t K."""
    if len(polygon) == 1 or not any(v):
        return None if any(v) else Fraction(0)
    if len(polygon) == 2:
        w = polygon[1]
        if cross(w, v):
            return None
        return abs(v[0] / w[0] if w[0] else v[1] / w[1])
    sides = list(zip(polygon, polygon[1:] + polygon[:1]))
    return max(cross(v, (b[0] - a[0], b[1] - a[1])) / cross(a, b) for a, b in sides)


def assert_premises(m):
    """K is convex, symmetric, around the origin; both ends of an edge share it and the outputs; and
    every edge's difference is in it."""
    lattice = [tuple(map(Fraction, p)) for p in m.locations.lattice.tolist()]
    worst = Fraction(0)
    for a, b in protected_pairs(m):
        polygon = [tuple(map(Fraction, p)) for p in noise_polygon_of(m, a).tolist()]
        assert (noise_polygon_of(m, b) == noise_polygon_of(m, a)).all()
        assert (m.pmf(a)[0] == m.pmf(b)[0]).all()
        assert {(-x, -y) for x, y in polygon} == set(polygon)
        if len(polygon) > 2:
            around = list(zip(polygon, polygon[1:] + polygon[:1], polygon[2:] + polygon[:2]))
            for p, q, r in around:
                assert cross(p, q) > 0
                assert cross((q[0] - p[0], q[1] - p[1]), (r[0] - q[0], r[1] - q[1])) > 0
        difference = tuple(x - y for x, y in zip(lattice[b], lattice[a]))
        reached = gauge(polygon, difference)
        assert reached is not None
        worst = max(worst, reached)
    assert worst <= 1
    c = pf.certify(m)
    assert c.ok
    assert c.proof == "premises"
    delivered = float(worst) * m.epsilon if worst else -math.inf  # nobody to hide
    assert c.worst == pytest.approx(delivered, rel=1e-12)


@pytest.mark.parametrize("mechanism", [pf.PPIM, pf.PLM, pf.PlanarLaplace])
@pytest.mark.parametrize("policy", [*POLICIES, "oblique path", "hexagon"])
def test_premises(mechanism, policy):
    assert_premises(mechanism(SMALL[policy], epsilon=1.3, sampler="geometric"))


@pytest.mark.parametrize("mechanism", [pf.PPIM, pf.PLM])
@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "rank 0"])
def test_premises_of_the_graph_calibration(mechanism, name):
    graph, domain = domain_of(name)
    how = dict(epsilon=1.3, domain=domain, calibration="graph", sampler="geometric")
    assert_premises(mechanism(graph, **how))


def test_a_gauge_by_hand():
    square = [tuple(map(Fraction, p)) for p in ((-2, -2), (2, -2), (2, 2), (-2, 2))]
    assert gauge(square, (1, 0)) == Fraction(1, 2)
    assert gauge(square, (3, -1)) == Fraction(3, 2)
    segment = [tuple(map(Fraction, p)) for p in ((-2, -4), (2, 4))]
    assert gauge(segment, (3, 6)) == Fraction(3, 2)
    assert gauge(segment, (1, 0)) is None
    assert np.isclose(float(gauge(square, (Fraction(1, 3), Fraction(2, 3)))), 1 / 3)
