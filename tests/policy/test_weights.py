"""Weighted edges: weight w promises e^(w epsilon). Hulls, distances and probabilities against
fractions."""

from fractions import Fraction

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import MECHANISMS, random_weights, weighted_policy as policy, weights_of
from pglp_fast._util.storage import read_arrays, write_arrays

GRID = pf.Grid(4, 5, cell_km=(1.0, 0.6))
PLACES = pf.Points(np.random.default_rng(1).integers(0, 900, (12, 2)) * 0.004)


CASES = {
    f"{name} {seed}": (places, random_weights(places, seed))
    for name, places in (("grid", GRID), ("points", PLACES))
    for seed in (1, 2, 3)
}


@pytest.mark.parametrize("name", CASES)
def test_hulls_and_distances(name):
    places, weights = CASES[name]
    G = policy(places, weights)
    assert weights_of(G) == weights
    hull = pf.sensitivity_hull(G)
    corners = [tuple(Fraction(int(x), hull.denominator) for x in v) for v in hull.vertices]
    assert corners == naive.weighted_hull(places.lattice.tolist(), weights)
    for s in range(0, places.size, 3):
        wanted = naive.weighted_distance(places.size, weights, s)
        found = G.distance(np.full(places.size, s), np.arange(places.size))
        assert np.allclose(found, [float(d) for d in wanted], rtol=1e-14)
        inside = {e: w for e, w in weights.items() if e[0] in G.component(s)}
        own = pf.sensitivity_hull(G, s)
        got = [tuple(Fraction(int(x), own.denominator) for x in v) for v in own.vertices]
        assert got == naive.weighted_hull(places.lattice.tolist(), inside)
        for (i, j), w in inside.items():
            step = (places.lattice[i] - places.lattice[j]).astype(int)
            assert own.gauge(step * np.asarray(places.scale))[0] <= float(w) * (1 + 1e-12)


@pytest.mark.parametrize("cls", MECHANISMS)
@pytest.mark.parametrize("name", ["grid 1", "grid 2", "points 1"])
def test_probabilities_and_the_promise_of_each_edge(name, cls):
    """Would catch a hull that is multiplied by w, or noise of the wrong scale."""
    places, weights = CASES[name]
    G = policy(places, weights)
    m = cls(G, epsilon=0.9)
    checked = 0
    for s in np.unique(G.components, return_index=True)[1].tolist():
        outputs, L = m.matrix(s, log=True)
        inside = {e: w for e, w in weights.items() if e[0] in outputs}
        body = naive.weighted_body(places.lattice, places.scale, inside, cls.name)
        if len(inside) > 1:  # the oracle takes a segment's exact direction from the lattice
            wanted = naive.pmf_matrix(
                places.lattice, places.scale, outputs.tolist(), body, m.epsilon
            )
            assert np.abs(np.exp(L) - wanted).max() < 1e-9
            checked += 1
        at = {int(c): k for k, c in enumerate(outputs)}
        for (i, j), w in inside.items():
            a, b = L[at[i]], L[at[j]]
            worst = np.abs(a - b)[(a > -np.inf) | (b > -np.inf)].max()
            assert worst <= 0.9 * float(w) * (1 + 1e-9)
        far = G.distance(np.repeat(outputs, len(outputs)), np.tile(outputs, len(outputs)))
        with np.errstate(invalid="ignore"):
            apart = np.nan_to_num(np.abs(L[:, None] - L[None])).max(axis=2)
        assert (apart <= 0.9 * far.reshape(apart.shape) * (1 + 1e-9) + 1e-12).all()
    assert checked > 0


@pytest.mark.parametrize("outputs", ["component", "map"])
@pytest.mark.parametrize("cls", [*MECHANISMS, pf.PlanarLaplace])
def test_certificates(cls, outputs):
    places, weights = CASES["grid 1"]
    found = pf.certify(cls(policy(places, weights), epsilon=1.0, outputs=outputs))
    assert found.ok, found
    assert found.worst <= 1.0
    assert found.edges == len(weights)


def test_the_certificate_sees_a_weight_that_is_not_kept():
    """Noise for weight 2 does not keep the promise of weight 1/2."""
    light, heavy = (
        pf.PPIM(policy(GRID, {(0, 1): w, (1, 5): Fraction(1)}), epsilon=1.0, sampler="geometric")
        for w in (Fraction(1, 2), Fraction(2))
    )
    assert pf.certify(heavy).ok
    heavy.graph = heavy.noise_groups.graph.__class__(
        GRID, light.graph.cliques, light.graph.extra_indptr, light.graph.extra_indices,
        light.graph.weights,
    )  # fmt: skip
    found = pf.certify(heavy)
    assert not found.ok
    assert "outside the noise body" in found.reason


def test_an_audit_finds_no_violation_and_would_find_one():
    G = policy(GRID, {(0, 1): Fraction(1, 2), (1, 6): Fraction(2)})
    assert pf.audit(pf.PPIM(G, epsilon=1.0), draws=40_000, rng=1).passed

    class Loud:
        """Promises weights, but draws as if every edge had weight 2."""

        graph, epsilon = G, 1.0
        inner = pf.PPIM(pf.PolicyGraph.from_edges(GRID, [(0, 1), (1, 6)]), epsilon=2.0)

        def release(self, cells, **how):
            return self.inner.release(cells, **how)

    assert not pf.audit(Loud(), draws=40_000, rng=1).passed


def test_weight_one_is_no_weight():
    G = pf.PolicyGraph.from_edges(GRID, [(0, 1), (5, 6)], weights=[1, 1.0])
    assert G.weights is None
    assert pf.PolicyGraph.from_edges(GRID, [(0, 1), (5, 6)]) == G
    assert G.edge_weights().tolist() == [[1, 1], [1, 1]]


def test_noise_is_that_of_the_weighted_hull():
    """One edge of weight 2 is noise at twice epsilon, and of weight 1/3 at a third."""
    for w in (Fraction(2), Fraction(1, 3)):
        m = pf.PPIM(policy(GRID, {(0, 7): w}), epsilon=1.5)
        plain = pf.PPIM(pf.PolicyGraph.from_edges(GRID, [(0, 7)]), epsilon=1.5 * float(w))
        assert np.allclose(m.matrix(0)[1], plain.matrix(0)[1], atol=1e-15)
        drawn = m.release(np.zeros(40_000, int), rng=2)
        assert (drawn == 7).mean() == pytest.approx(plain.pmf(0)[1][1], abs=0.01)


def test_intersection_union_and_domain():
    for seed in range(4):
        a, b = random_weights(GRID, seed, 40), random_weights(GRID, seed + 9, 40)
        G, H = policy(GRID, a), policy(GRID, b)
        assert weights_of(G & H) == {e: max(a[e], b[e]) for e in a.keys() & b.keys()}
        both = {e: min(a.get(e, 10**6), b.get(e, 10**6)) for e in a.keys() | b.keys()}
        assert weights_of(G | H) == both
        plain = pf.blocks(GRID, 2)
        ones = dict.fromkeys(map(tuple, plain.edges().tolist()), Fraction(1))
        assert weights_of(G & plain) == {e: max(a[e], 1) for e in a.keys() & ones.keys()}
        assert weights_of(plain | G) == {
            e: min(a.get(e, 10**6), ones.get(e, 10**6)) for e in a.keys() | ones.keys()
        }
        C = pf.Domain(GRID, np.random.default_rng(seed).permutation(20)[:11])
        assert weights_of(G.constrain(C)) == {e: w for e, w in a.items() if set(e) <= set(C)}
        assert (G == H) == (a == b)
        extra = G.with_edges([(0, 19)])
        assert weights_of(extra) == a | {(0, 19): a.get((0, 19), Fraction(1))}


def test_repeats_take_the_smallest_weight():
    G = pf.PolicyGraph.from_edges(GRID, [(0, 1), (1, 0), (2, 3)], weights=[(3, 4), (1, 2), (7, 1)])
    assert G.edge_weights().tolist() == [[1, 2], [7, 1]]


def test_files_keep_weights(tmp_path):
    places, weights = CASES["points 2"]
    G = policy(places, weights)
    G.save(tmp_path / "G.npz")
    assert weights_of(pf.PolicyGraph.load(tmp_path / "G.npz")) == weights
    arrays, facts = read_arrays(tmp_path / "G.npz", "policy")
    for name, at, value, words in (
        ("numerator", 0, 0, "fraction of whole numbers"),
        ("numerator", 0, 1021, "two weights"),
        ("denominator", slice(None), 1024, "lowest terms"),
    ):
        changed = {k: v.copy() for k, v in arrays.items()}
        changed[name][at] = value
        write_arrays(tmp_path / "H.npz", "policy", changed, {"points": facts["points"]})
        with pytest.raises(pf.InvalidState, match=words):
            pf.PolicyGraph.load(tmp_path / "H.npz")


def test_describe_knows_the_noise():
    w = Fraction(1, 4)
    found = policy(GRID, {(0, 1): w}).describe(epsilons=[1.0])
    assert found.expected_error_km[1.0] == pytest.approx(4.0)
    assert "by 1 edges of weight 0.25 to 0.25, up to" in str(found)


@pytest.mark.parametrize("weight", [0, -1, 1 / 2000, 1025, np.pi, np.nan, np.inf, "a", True, None])
def test_what_is_no_small_rational_is_refused(weight):
    with pytest.raises(pf.InvalidPolicy, match=r"weights\[1\] = .*: a weight is above 0"):
        pf.PolicyGraph.from_edges(GRID, [(0, 1), (1, 2)], weights=[1, weight])
    with pytest.raises(pf.InvalidPolicy, match="one number for each of the 2 edges"):
        pf.PolicyGraph.from_edges(GRID, [(0, 1), (1, 2)], weights=[1])


def test_a_denominator_that_does_not_fit_is_refused():
    """Nine primes have a product above 2^29, and a long edge a difference: not exact."""
    primes = [3, 5, 7, 11, 13, 17, 19, 23, 29]
    edges = [(k, k + 1) for k in range(9)]
    with pytest.raises(pf.InvalidPolicy, match="common denominator of 3234846615"):
        pf.PolicyGraph.from_edges(GRID, edges, weights=primes)
    long = pf.Points([(0, 0), (600.0, 0), (600.1, 0)])
    with pytest.raises(pf.InvalidPolicy, match=r"then has 614400000 steps"):
        pf.PolicyGraph.from_edges(long, [(0, 1), (1, 2)], weights=[(1, 1024), (1, 1)])


def test_what_does_not_know_weights_says_so():
    G = policy(GRID, {(0, 1): Fraction(1, 2), (1, 5): Fraction(1)})
    M = pf.MobilityModel.fit(GRID, [[0, 1, 5, 1, 0]])

    class Even(pf.Mechanism):
        def log_probabilities(self, component):
            k = len(component.sites)
            return np.full((k, k), -np.log(k))

    with pytest.raises(pf.InvalidPolicy, match=r"Even promises one epsilon for every edge: .*PPIM"):
        Even(G, epsilon=1.0)
    with pytest.raises(pf.InvalidPolicy, match="Even promises one epsilon"):
        pf.TraceReleaser(G, M, epsilon=1.0, mechanism=Even)
    Even.weighted = True
    assert pf.certify(Even(G, epsilon=1.0)).ok


def test_a_map_that_is_too_fine_for_repair_is_refused():
    """An edge may be added between any two locations: all differences must stay exact."""
    far = pf.Points([(0, 0), (0.1, 0), (2e5, 0)])
    G = pf.PolicyGraph.from_edges(far, [(0, 1)], weights=[7])
    assert pf.certify(pf.PPIM(G, epsilon=1.0)).ok
    with pytest.raises(pf.InvalidPolicy, match="common denominator of 7, and the map then spans"):
        pf.repair(G, pf.Domain(far, [0, 2]))
