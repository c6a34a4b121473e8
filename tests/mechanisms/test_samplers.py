"""What is drawn: both samplers against the exact matrix, the noise's laws, and the integers of the
tables (spec sections 4, 9).

Every statistical test has a fixed seed and rejects at p < 1e-4; the tests of power show which error
that would catch."""

from fractions import Fraction
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import naive
import pglp_fast as pf
from cases import (
    DOMAINS,
    MECHANISMS,
    SAMPLERS,
    SMALL,
    TOTAL,
    domain_of,
    draw_noise,
    draw_words,
    large,
    path,
    points,
    random_tree,
    rounding_of,
    set_weights,
    some_cells,
)
from pglp_fast._kernels.noise import alias_rows, integer_weights
from pglp_fast._kernels.policy.shapes import Protected
from pglp_fast.mechanisms.exp_bound import ExpBound, exp_lower_bound

P_MIN = 1e-4


def chi_square(m, s, draws, seed):
    """p-value of ``draws`` releases from s against ``m.pmf(s)``; what is expected less than 10
    times is counted together."""
    outputs, p = m.pmf(s)
    released = m.release(np.full(draws, s), rng=seed)
    counts = np.bincount(np.searchsorted(outputs, released), minlength=len(outputs))
    assert np.isin(released, outputs).all()
    rare = p * draws < 10
    observed, expected = (
        np.append(counts[~rare], counts[rare].sum()),
        np.append(p[~rare], p[rare].sum()) * draws,
    )
    if expected[-1] < 10:  # too few even together: they may not occur often
        assert observed[-1] < 40
        observed, expected = observed[:-1], expected[:-1]
    if len(observed) < 2:
        return 1.0
    return stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue


# Both samplers against the matrix


@large
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "name",
    [
        "block 3",
        "block 5",
        "tree",
        "star",
        "pair",
        "oblique path",
        "1 x N path",
        "thin",
        "hexagon",
        "clique and tail",
    ],
)
def test_releases_follow_the_matrix(name, mechanism, sampler):
    """Catches a wrong cone, radius, scale, snap or table row: anything that moves 0.1 % of the
    probability."""
    m = mechanism(SMALL[name], epsilon=1.5, sampler=sampler)
    component = np.flatnonzero(m.graph.degrees())
    for k in (0, len(component) // 2):
        assert chi_square(m, component[k], 2_000_000, seed=10 + k) > P_MIN


@large
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_releases_follow_the_matrix_of_the_graph_calibration(name, mechanism, sampler):
    """Among the sources is a cell without neighbours: it gets the same noise as the others."""
    graph, domain = domain_of(name)
    m = mechanism(graph, epsilon=1.5, domain=domain, calibration="graph", sampler=sampler)
    lonely = domain.cells()[m.graph.degrees()[domain.cells()] == 0]
    for s in {int(domain.cells()[1]), int(lonely[0])} if lonely.size else {0}:
        assert chi_square(m, s, 2_000_000, seed=3) > P_MIN


@large
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_ties_on_oblong_cells_are_drawn_as_on_exact_ones(sampler):
    """0.2 x 0.6 km, K along a Voronoi boundary (test_emission has the exact matrix): the lower
    index takes it all."""
    g = pf.Grid(9, 9, cell_km=(0.2, 0.6))
    graph, domain = pf.PolicyGraph.from_edges(g, [(58, 64)]), pf.Domain(g, [46, 55, 58, 64])
    m = pf.PPIM(graph, epsilon=1.0, domain=domain, calibration="graph", sampler=sampler)
    counts = np.bincount(m.release(np.full(1_000_000, 55), rng=1), minlength=81)[[46, 55, 58, 64]]
    expected = 1_000_000 * np.array([np.exp(-0.5) / 2, 1 - np.exp(-0.5), 0.0, np.exp(-0.5) / 2])
    assert abs(counts - expected).max() < 5 * np.sqrt(1_000_000) / 2


@large
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 5, 20])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_releases_follow_the_matrix_at_any_epsilon(epsilon, sampler):
    m = pf.PPIM(SMALL["tree"], epsilon=epsilon, sampler=sampler)
    assert chi_square(m, np.flatnonzero(m.graph.degrees())[5], 2_000_000, seed=4) > P_MIN


@large
@pytest.mark.parametrize("name", ["block 3", "tree", "hexagon"])
def test_power_one_weight_in_a_thousand(name):
    """The same chi-square rejects a table in which 0.1 % of the probability went from one output
    to another."""
    m = pf.PPIM(SMALL[name], epsilon=1.5, sampler="table")
    s = int(np.flatnonzero(m.graph.degrees())[0])
    w = [int(v) for v in m.table(s)[1]]
    top, second = np.argsort(w)[[-1, -2]]
    w[top], w[second] = w[top] - TOTAL // 1000, w[second] + TOTAL // 1000
    assert chi_square(m, s, 8_000_000, seed=10) > P_MIN
    set_weights(m, s, w)
    assert chi_square(m, s, 8_000_000, seed=10) < P_MIN


@large
def test_power_body_one_percent_too_small():
    """The same chi-square rejects a geometric sampler whose K is 1 % too small."""

    class Shrunk(pf.PPIM):
        def noise_polygons(self, hulls):
            made = super().noise_polygons(hulls)
            return made._replace(vertices=made.vertices * 0.99)

    good = pf.PPIM(SMALL["tree"], epsilon=1.5, sampler="geometric")
    s = int(np.flatnonzero(good.graph.degrees())[0])
    bad = Shrunk(SMALL["tree"], epsilon=1.5, sampler="geometric")
    bad.pmf = good.pmf
    assert chi_square(good, s, 8_000_000, seed=5) > P_MIN
    assert chi_square(bad, s, 8_000_000, seed=5) < P_MIN


@large
def test_the_two_samplers_do_not_share_draws():
    """Same key, user and t: knowing one sampler's output must not tell the other's."""
    cells = np.zeros(1_000_000, int)
    a, b = (
        pf.PPIM(SMALL["block 3"], epsilon=0.5, sampler=name).release(cells, rng=1)
        for name in SAMPLERS
    )
    table = np.histogram2d(a, b, bins=(9, 9))[0]
    assert stats.chi2_contingency(table).pvalue > P_MIN


# The noise


N_NOISE = 500 if numba.config.DISABLE_JIT else 200_000


@pytest.mark.parametrize("name", ["tree", "hexagon", "8 neighbours"])
def test_plm_noise_is_two_laplaces(name):
    """Catches a wrong scale S/eps on either axis, and axes that depend on each other."""
    m = pf.PLM(SMALL[name], epsilon=0.7, sampler="geometric")
    s = np.flatnonzero(m.graph.degrees())[0]
    edges = {tuple(e) for e in m.graph.edges().tolist()}
    S = naive.l1_sensitivity(m.locations.lattice, m.locations.scale, edges)
    x, y = (draw_noise(m, s, draw_words(1, N_NOISE)) * m.locations.scale).T
    for axis in (x, y):
        assert stats.kstest(axis, stats.laplace(scale=S / 0.7).cdf).pvalue > P_MIN
    assert stats.spearmanr(x, y).pvalue > P_MIN
    assert stats.spearmanr(abs(x), abs(y)).pvalue > P_MIN


@pytest.mark.parametrize("name", ["tree", "hexagon", "thin", "block 4"])
def test_ppim_noise_has_a_gamma_gauge_and_cone_measure(name):
    """Catches a wrong radius, edges chosen by length instead of cone, and points that crowd
    along an edge."""
    m = pf.PPIM(SMALL[name], epsilon=0.7, sampler="geometric")
    s = np.flatnonzero(m.graph.degrees())[0]
    body = m.polygon(m.groups.shape(s))
    noise = draw_noise(m, s, draw_words(2, N_NOISE))
    radius = naive.gauge([tuple(v) for v in body], noise)
    assert stats.kstest(radius, stats.gamma(2, scale=1 / 0.7).cdf).pvalue > P_MIN
    a, b = body, np.roll(body, -1, axis=0)
    functionals = np.stack(
        [naive.cross(noise.T, q - p) / naive.cross(p, q) for p, q in zip(a, b, strict=True)]
    )
    edge = functionals.argmax(axis=0)
    cones = np.array([naive.cross(p, q) for p, q in zip(a, b, strict=True)])
    counts = np.bincount(edge, minlength=len(body))
    assert stats.chisquare(counts, cones / cones.sum() * len(noise)).pvalue > P_MIN
    along = ((noise / radius[:, None] - a[edge]) * (b - a)[edge]).sum(axis=1) / ((b - a) ** 2).sum(
        axis=1
    )[edge]
    assert stats.kstest(along, "uniform").pvalue > P_MIN
    assert stats.spearmanr(radius, along).pvalue > P_MIN


def test_noise_of_rank_one_is_a_laplace_along_the_segment():
    m = pf.PPIM(SMALL["oblique path"], epsilon=0.7, sampler="geometric")
    x, y = draw_noise(m, 0, draw_words(3, N_NOISE)).T
    assert (x / 2).tolist() == y.tolist()  # K is +-(2, 1)
    assert stats.kstest(y, stats.laplace(scale=1 / 0.7).cdf).pvalue > P_MIN


@pytest.mark.parametrize("word", [0, 1, 2**11 - 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1])
def test_units_lie_inside_the_interval(word):
    """Neither 0, whose logarithm is infinite, nor 1: the middle of a step of 2^-53, as
    ``rounding_bound`` assumes."""
    unit = alias_rows.unit(np.uint64(word))
    assert 0 < unit < 1
    assert abs(Fraction(float(unit)) - Fraction(2 * (word >> 11) + 1, 2**54)) <= Fraction(1, 2**54)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no extended precision here")
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("name", ["tree", "thin", "oblique path"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_as_accurate_as_the_rounding_bound_claims(name, mechanism, epsilon):
    """Float64 against extended precision for the same words: fewer than 16 roundings of 2^-53,
    relative to the radius and K."""
    m = mechanism(SMALL[name], epsilon=epsilon, sampler="geometric")
    s = np.flatnonzero(m.graph.degrees())[0]
    shape = m.groups.shape(s)
    body, words = m.polygon(shape), draw_words(4, N_NOISE // 2)
    bits, starts, cut, alias = m.geometry.geometry.cones
    units = ((words >> np.uint64(11)).astype(np.longdouble) + np.longdouble(0.5)) * np.longdouble(
        2
    ) ** -53
    if len(body) == 2:
        radius = -np.log(units[:, 2]) / np.longdouble(epsilon)
        direction = body[(words[:, 0] >> np.uint64(63)).astype(int)].astype(np.longdouble)
    else:
        radius = -np.log(units[:, 2] * units[:, 3]) / np.longdouble(epsilon)
        i = np.array(
            [alias_rows.pick(w, cut, alias, starts[shape], bits[shape]) for w in words[:, 0]]
        )
        a, b = body[i].astype(np.longdouble), body[(i + 1) % len(body)].astype(np.longdouble)
        direction = a + units[:, 1:2] * (b - a)
    error = np.abs(draw_noise(m, s, words) - radius[:, None] * direction).sum(axis=1)
    half_width = np.abs(body).max(axis=0).sum()
    assert (error <= 16 * 2.0**-53 * half_width * (radius + 1 / epsilon)).all()
    lattice = m.locations.lattice[m.groups.of(s)]
    extent = (lattice.max(axis=0) - lattice.min(axis=0) + 1).sum()
    claimed = 2.0**-46 * (half_width + extent) * (1 + 1 / epsilon)
    assert error.mean() < claimed / 8  # leaves room for the sum with the coordinates
    assert 0 < rounding_of(m, shape) < 1e-6


# The tables


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", SMALL)
def test_tables_sum_exactly_and_are_the_matrix(name, mechanism):
    """Weights read back from the alias rows: sum 2**63, and within what was mixed in of the
    exact probabilities."""
    for epsilon in (0.01, 1, 20):
        m = mechanism(SMALL[name], epsilon=epsilon, sampler="table")
        for s in np.unique(m.groups.members[m.groups.starts[m.groups.representative]]):
            outputs, P = m.matrix(s)
            for row, t in enumerate(outputs):
                cells, w = m.table(t)
                assert w.dtype == np.uint64
                assert sum(int(v) for v in w) == TOTAL
                assert cells.tolist() == outputs.tolist()
                slack = 2 * m.tables.mixed[m.groups.shape(s)] + 1e-12
                np.testing.assert_allclose(w.astype(float) / TOTAL, P[row], rtol=0, atol=slack)
        assert m.tables.mixed.max() <= 1e-6


@st.composite
def weight_rows(draw):
    """(bits, weights): integers of sum 2**63, with zeros, ones and heaps among them."""
    bits = draw(st.integers(1, 7))
    k = draw(st.integers(1, 1 << bits))
    values = st.one_of(st.integers(0, TOTAL), st.sampled_from([0, 1, TOTAL - 1, TOTAL]))
    cuts = draw(st.lists(values, min_size=k - 1, max_size=k - 1))
    edges = [0, *sorted(cuts), TOTAL]
    return bits, [b - a for a, b in pairwise(edges)]


@given(weight_rows())
def test_alias_rows_keep_their_weights(row):
    bits, intended = row
    cut, alias = np.zeros(1 << bits, np.uint64), np.full(1 << bits, -1, np.int32)
    alias_rows.build_alias(np.array(intended, np.uint64), bits, cut, alias)
    back = np.empty(1 << bits, np.uint64)
    alias_rows.read_alias(cut, alias, bits, back)
    assert [int(w) for w in back] == intended + [0] * ((1 << bits) - len(intended))
    assert int(cut.max()) <= 1 << (63 - bits)


@given(weight_rows(), st.integers(0, 2**64 - 1))
def test_pick_reads_what_read_alias_reads(row, word):
    """Column c of 2**(63-b) steps: the first cut[c] go to c, the rest to alias[c]; the lowest
    bit of the word is not used."""
    bits, intended = row
    cut, alias = np.zeros((1 << bits) + 5, np.uint64), np.zeros((1 << bits) + 5, np.int32)
    alias_rows.build_alias(np.array(intended, np.uint64), bits, cut[5:], alias[5:])
    column, rest = divmod(word >> 1, 1 << (63 - bits))
    assert alias_rows.pick(np.uint64(word), cut, alias, 5, bits) == (
        column if rest < int(cut[5 + column]) else alias[5 + column]
    )
    assert intended[alias_rows.pick(np.uint64(word), cut, alias, 5, bits)] > 0


@pytest.mark.parametrize(
    "k, bits", [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (128, 7), (129, 8), (2048, 11)]
)
def test_column_bits(k, bits):
    assert alias_rows.column_bits(k) == bits


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_multiply_is_the_128_bit_product(a, b):
    high, low = integer_weights._multiply(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


WEIGHTS = st.one_of(st.integers(0, TOTAL), st.sampled_from([0, 1, 2**62, TOTAL]))


@given(WEIGHTS, WEIGHTS, st.integers(0, 2**64 - 1), st.integers(0, 63))
def test_within_is_the_inequality_on_integers(w, v, numerator, shift):
    assert integer_weights.within(
        np.uint64(w), np.uint64(v), ExpBound(np.uint64(numerator), shift)
    ) == (w << shift <= numerator * v)
    assert integer_weights.within(np.uint64(w), np.uint64(v), ExpBound(np.uint64(0), -1)) == (
        w == 0 or v > 0
    )
    exact = (numerator * v) >> shift  # the largest w that passes, and the next
    for near in (exact, exact + 1):
        if near <= TOTAL:
            assert integer_weights.within(
                np.uint64(near), np.uint64(v), ExpBound(np.uint64(numerator), shift)
            ) == (near == exact)


def test_rows_that_do_not_quite_sum_to_one_have_all_weights():
    """Rows that sum to a little more or less than 1 in floats still have 2**63 in all, and no
    weight wraps around."""
    P = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2 + 1e-13], [1.0, 1e-300, 1e-13]])
    protected = Protected(np.arange(3), np.empty((0, 2), np.int64))
    W = np.empty((3, 3), np.uint64)
    assert integer_weights.prove_weights(P, protected, exp_lower_bound(1.0), W) < 1e-8
    for p, row in zip(P, W, strict=True):
        assert sum(int(w) for w in row) == TOTAL
        np.testing.assert_allclose(row.astype(float) / TOTAL, p, rtol=0, atol=1e-8)


@large
def test_tables_at_their_limit():
    """The widest columns there are: more than 1024 locations, 11 bits."""
    g = pf.Grid(26, 40)
    m = pf.PPIM(pf.complete(g), epsilon=3, sampler="table")
    w = m.table(0)[1]
    assert sum(int(v) for v in w) == TOTAL
    assert chi_square(m, 1000, 2_000_000, seed=6) > P_MIN


@large
def test_scattered_points_and_holes():
    """The search tree's part: a component of 60 points, and a grid component of 50 cells with
    holes."""
    places = points(np.unique(np.random.default_rng(0).integers(0, 4000, (60, 2)), axis=0))
    g = pf.Grid(10, 12, cell_km=(0.3, 1))
    for graph in (path(places, np.arange(places.size)), random_tree(g, some_cells(g, 50, 1), 1)):
        m = pf.PPIM(graph, epsilon=4, sampler="geometric")
        assert chi_square(m, np.flatnonzero(graph.degrees())[7], 2_000_000, seed=7) > P_MIN
