"""Utility metrics: exact ones against literal double loops over the definitions, estimates
against exact ones."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import pglp_fast as pf
from cases import large, random_domain, random_locations, random_policy
from pglp_fast._util import stats as intervals
from pglp_fast.errors import InvalidDomain, InvalidLocation, InvalidParameter, TooLarge
from pglp_fast.evaluation import exact_utility as metrics
from pglp_fast.mechanisms import k_norm

NAMES = ("e_eu", "e_r", "e_poi")


# The definitions, by loops


def km(locations, s, z):
    (ax, ay), (bx, by) = locations.lattice[s].tolist(), locations.lattice[z].tolist()
    return math.sqrt(((ax - bx) * locations.scale[0]) ** 2 + ((ay - by) * locations.scale[1]) ** 2)


def region_of(grid, s, k):
    return (s // grid.cols // k, s % grid.cols // k)


def literal(m, prior, region, categories, quantiles):
    """Sums over all s and z of prior(s) Pr(z|s) error(s, z), and the distribution of the
    distance."""
    locations, total = m.locations, sum(prior)
    expected, at = dict.fromkeys(NAMES, 0.0), {name: [math.nan] * locations.size for name in NAMES}
    spread, largest = [], 0.0
    inside = range(locations.size) if m.domain is None else m.domain.cells().tolist()
    for s in inside:
        outputs, logs = m.pmf(s, log=True)
        here = dict.fromkeys(NAMES, 0.0)
        for z, log in zip(outputs.tolist(), logs.tolist(), strict=True):
            p, d = math.exp(log), km(locations, s, z)
            here["e_eu"] += p * d
            if isinstance(locations, pf.Grid):
                here["e_r"] += p * (
                    region_of(locations, s, region) != region_of(locations, z, region)
                )
            here["e_poi"] += p * (categories[s] != categories[z])
            spread.append((d, prior[s] / total * p))
            if prior[s] > 0 and log > -math.inf:
                largest = max(largest, d)
        for name in NAMES:
            at[name][s] = here[name]
            expected[name] += prior[s] / total * here[name]
    worst = max(at["e_eu"][s] for s in inside if prior[s] > 0)
    found = {}
    for q in quantiles:
        reached = 0.0
        for d, mass in sorted(spread):
            reached += mass
            if mass > 0 and reached >= q - 1e-12:
                found[q] = d
                break
    return expected, at, worst, largest, found


def random_prior(rng, inside):
    """None, or counts, some of them zero."""
    kind = rng.integers(3)
    if kind == 0:
        return None
    prior = (
        rng.integers(0, 9, inside.size) * (rng.random(inside.size) if kind == 1 else 1.0) * inside
    )
    return prior if prior.sum() > 0 else None


@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("mechanism", [pf.PPIM, pf.PLM])
@pytest.mark.parametrize("seed", range(12))
def test_exact_against_loops(mechanism, calibration, seed):
    """A wrong place in a shape, a transposed matrix, a prior taken as even, rows and columns
    swapped: all would show."""
    rng = np.random.default_rng(seed)
    locations = random_locations(rng, 5)
    graph, domain = random_policy(rng, locations), random_domain(rng, locations)
    if len(domain) == 0 or rng.integers(3) == 0:
        domain = None
    m = mechanism(graph, epsilon=float(rng.uniform(0.2, 4)), domain=domain, calibration=calibration)
    inside = np.ones(locations.size, bool) if domain is None else domain.mask()
    prior, labels, k = (
        random_prior(rng, inside),
        rng.integers(-1, 3, locations.size),
        int(rng.integers(1, 4)),
    )
    quantiles = rng.random(4).tolist()
    on_grid = isinstance(locations, pf.Grid)
    u = pf.utility(
        m, prior=prior, region=k if on_grid else None, categories=labels, quantiles=quantiles
    )
    weight = (inside.astype(float) if prior is None else prior).tolist()
    expected, at, worst, largest, found = literal(m, weight, k, labels.tolist(), quantiles)
    near = dict(rel=1e-11, abs=1e-13)
    assert u.e_eu == pytest.approx(expected["e_eu"], **near)
    assert u.e_poi == pytest.approx(expected["e_poi"], **near)
    assert u.e_r == (pytest.approx(expected["e_r"], **near) if on_grid else None)
    assert set(u.by_location) == ({*NAMES} if on_grid else {"e_eu", "e_poi"})
    for name, values in u.by_location.items():
        np.testing.assert_allclose(values, at[name], rtol=1e-11, atol=1e-13)
    assert u.worst.error == pytest.approx(worst, **near)
    assert u.worst.error == u.by_location["e_eu"][u.worst.location] and weight[u.worst.location] > 0
    assert u.largest == pytest.approx(largest, **near)
    assert u.quantiles == pytest.approx(found, **near)
    assert u.count == sum(w > 0 for w in weight)
    assert u.missing == 0 and u.intervals == {} and u.level is None


@pytest.mark.parametrize("mechanism, cells", [(pf.PPIM, 1.33965), (pf.PLM, 1.37203)])
def test_known_figures_of_a_block(mechanism, cells):
    """3 x 3, epsilon = 1.

    In km it grows with the cell; P-LM in a block of 27 cells of the same shape is no different.
    """
    assert pf.utility(mechanism(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0)).e_eu == pytest.approx(
        cells, abs=5e-6
    )
    city = pf.Grid(9, 27, cell_km=0.27)
    assert pf.utility(mechanism(pf.blocks(city, 3), epsilon=1.0)).e_eu == pytest.approx(
        0.27 * cells, abs=5e-6 * 0.27
    )


def test_regions_are_the_blocks():
    """blocks(g, 5) never leaves a region of 5 x 5, cut-off blocks and all; a region shifted by a
    cell would be left at once."""
    g = pf.Grid(23, 17)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=0.3)
    u = pf.utility(m)
    assert u.e_r == 0.0 and not u.by_location["e_r"].any()
    four = pf.utility(m, region=4).e_r
    assert four > 0.1
    own = np.arange(g.size) // 17 // 4 * 10 + np.arange(g.size) % 17 // 4
    assert pf.utility(m, region=own).e_r == pytest.approx(four, rel=1e-14)
    alone = pf.utility(m, region=np.arange(g.size)).by_location["e_r"]
    for s in (0, 40, g.size - 1):
        outputs, P = m.pmf(s)
        assert alone[s] == pytest.approx(1 - P[outputs == s][0], rel=1e-12)


def test_categories_are_kept_by_their_policy():
    """E_poi is 0 where the policy joins equal categories only.

    -1 is a category: from none to none is no error, to some it is.
    """
    g = pf.Grid(12, 12)
    labels = np.random.default_rng(0).integers(-1, 3, g.size)
    u = pf.utility(pf.PPIM(pf.categories(g, labels, 6), epsilon=0.5), categories=labels)
    assert u.e_poi == 0.0 and not u.by_location["e_poi"][labels >= 0].any()
    assert u.e_eu > 0
    assert pf.utility(pf.PPIM(pf.blocks(g, 6), epsilon=0.5), categories=labels).e_poi > 0.5
    pair = pf.KRR(pf.complete(pf.Grid(1, 2)), epsilon=1.0)
    other = 1 / (1 + math.e)
    assert pf.utility(pair, categories=[-1, -1]).e_poi == 0.0
    assert pf.utility(pair, categories=[-1, 0]).e_poi == pytest.approx(other, rel=1e-12)


def test_any_mechanism():
    """Mechanisms given by tables, by hand: KRR on a path of three clique cells, errors 1, 1 and
    2."""
    m = pf.KRR(
        pf.complete(pf.Grid(1, 3, cell_km=2.0)), epsilon=math.log(2)
    )  # truth 1/2, any other 1/4
    u = pf.utility(m, quantiles=(0.25, 0.5, 0.6, 0.8, 0.999))
    assert u.by_location["e_eu"] == pytest.approx([1.5, 1.0, 1.5])
    assert u.e_eu == pytest.approx(4 / 3)
    assert u.worst.error == pytest.approx(1.5)
    assert u.largest == 4.0
    # Pr(error <= 0) = 1/2, (<= 2) = 5/6. A quantile at exactly 1/2 is 0: rounding must not push it
    # over
    assert u.quantiles == {0.25: 0.0, 0.5: 0.0, 0.6: 2.0, 0.8: 2.0, 0.999: 4.0}
    for other in (pf.GraphExponential, pf.Optimal):
        m = other(pf.blocks(pf.Grid(4, 5), 3), epsilon=1.0)
        assert pf.utility(m).e_eu == pytest.approx(
            literal(m, [1.0] * 20, 5, [0] * 20, ())[0]["e_eu"], rel=1e-11
        )


def test_quantiles_at_the_very_steps():
    """k cells in a row, released evenly: Pr(error <= r) = (k + 2 ((k - 1) + ... + (k - r))) / k^2.
    Asked for that number, the quantile is r, although the sum of floats may fall short of it in the
    last place."""
    for k in range(2, 16):
        m = pf.KRR(pf.complete(pf.Grid(1, k)), epsilon=1e-15)
        steps = {
            (k + 2 * sum(k - j for j in range(1, r + 1))) / k**2: float(r) for r in range(k - 1)
        }
        assert pf.utility(m, quantiles=list(steps)).quantiles == steps


def test_the_optimal_mechanism_is_best():
    """What is least by construction is least by the metric, under its own prior too (there every
    component is its own shape)."""
    g = pf.Grid(6, 6)
    prior = np.random.default_rng(3).random(g.size)
    best = pf.utility(pf.Optimal(pf.blocks(g, 3), epsilon=1.0, prior=prior), prior=prior).e_eu
    for other in (pf.PPIM, pf.PLM, pf.KRR, pf.GraphExponential):
        assert best <= pf.utility(other(pf.blocks(g, 3), epsilon=1.0), prior=prior).e_eu + 1e-9


def test_a_prior_in_any_unit_and_locations_that_do_not_occur():
    """Worst case and largest error are over what can happen: a prior at one cell says all about
    that cell and nothing else."""
    g = pf.Grid(5, 5)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=1.0)
    centre = np.eye(25)[12]
    a, b = pf.utility(m, prior=centre), pf.utility(m, prior=(7e307 * centre))
    assert a.as_dict() == b.as_dict()
    assert a.worst == (a.e_eu, 12) and a.count == 1
    assert a.largest == pytest.approx(math.sqrt(8))
    assert pf.utility(m).largest == pytest.approx(math.sqrt(32))
    assert np.isfinite(a.by_location["e_eu"]).all()  # what would be expected, had it been there


def test_no_edges_no_error():
    u = pf.utility(pf.PPIM(pf.blocks(pf.Grid(4, 4), 1), epsilon=1.0), categories=np.arange(16))
    assert (u.e_eu, u.e_r, u.e_poi, u.largest, u.worst) == (0.0, 0.0, 0.0, 0.0, (0.0, 0))
    assert set(u.quantiles.values()) == {0.0}


@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_in_parts(monkeypatch, calibration):
    """Shapes are taken in parts that fit in memory: with parts of one shape each the figures are
    the same."""
    g = pf.Grid(8, 9)
    rng = np.random.default_rng(4)
    domain = pf.Domain(g, rng.choice(g.size, 50, replace=False))
    m = pf.PPIM(pf.blocks(g, 3), epsilon=0.7, domain=domain, calibration=calibration)
    labels = rng.integers(0, 2, g.size)
    whole = pf.utility(m, categories=labels, region=2)
    for entries in (1, 60):
        monkeypatch.setattr(metrics, "_ENTRIES", entries)
        part = pf.utility(m, categories=labels, region=2)
        for name, value in whole.as_dict().items():
            assert part.as_dict()[name] == (
                None if value is None else pytest.approx(value, rel=1e-13)
            )
        for name in NAMES:
            assert np.array_equal(part.by_location[name], whole.by_location[name], equal_nan=True)


@pytest.mark.parametrize("limit", [0, 3, 128])
def test_matrices_in_one_go(monkeypatch, limit):
    """Many small matrices from one kernel are those that single shapes give, in the order asked
    for."""
    monkeypatch.setattr(k_norm, "BATCHED", limit)
    g = pf.Grid(7, 7)
    m = pf.PLM(
        pf.blocks(g, 3),
        epsilon=1.0,
        domain=pf.Domain(g, np.random.default_rng(5).choice(49, 30, replace=False)),
    )
    which = np.arange(len(m.groups.representative))[::-1].copy()
    assert np.array_equal(m.log_matrices(which), pf.Mechanism.log_matrices(m, which))
    assert m.log_matrices(which[:0]).size == 0


@large
def test_threads_do_not_matter():
    g = pf.Grid(300, 300)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=1.0)
    labels = np.random.default_rng(0).integers(-1, 4, g.size)
    true = np.random.default_rng(1).integers(-1, g.size, 200_000)
    before = pf.get_num_threads()
    results = []
    try:
        for n in (1, 2, 5):
            pf.set_num_threads(n)
            results.append(
                (
                    pf.utility(m, region=7, categories=labels),
                    pf.estimate_utility(g, true, true[::-1], categories=labels),
                )
            )
    finally:
        pf.set_num_threads(before)
    for pair in results[1:]:
        for a, b in zip(pair, results[0], strict=True):
            assert a.as_dict() == b.as_dict()


# Estimates


def literal_estimate(locations, true, released, region, categories):
    errors = {name: [] for name in NAMES}
    for s, z in zip(np.ravel(true).tolist(), np.ravel(released).tolist(), strict=True):
        if s != -1 and z != -1:
            errors["e_eu"].append(km(locations, s, z))
            errors["e_r"].append(
                float(region_of(locations, s, region) != region_of(locations, z, region))
            )
            errors["e_poi"].append(float(categories[s] != categories[z]))
    return errors


@pytest.mark.parametrize("shape", [(), (1,), (40,), (7, 9), (2, 3, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_against_loops(shape, seed):
    """Pairs with a cell missing count nowhere.

    Taking -1 as the last cell, as NumPy would, changes every figure.
    """
    rng = np.random.default_rng(seed)
    g = pf.Grid(6, 8, cell_km=(0.5, 0.3))
    low = -1 if np.prod(shape) > 1 else 0
    true, released = rng.integers(low, g.size, shape), rng.integers(low, g.size, shape)
    labels = rng.integers(-1, 3, g.size)
    u = pf.estimate_utility(g, true, released, region=2, categories=labels)
    errors = literal_estimate(g, true, released, 2, labels)
    assert (u.count, u.missing) == (len(errors["e_eu"]), true.size - len(errors["e_eu"]))
    for name in NAMES:
        assert getattr(u, name) == pytest.approx(np.mean(errors[name]), rel=1e-12)
        low_end, high_end = u.intervals[name]
        assert low_end <= getattr(u, name) <= high_end
    assert u.largest == pytest.approx(max(errors["e_eu"]))
    ordered = sorted(errors["e_eu"])
    for q, value in u.quantiles.items():
        assert value == pytest.approx(ordered[math.ceil(Fraction(str(q)) * len(ordered)) - 1])
        assert u.intervals[f"q{q}"][0] <= value <= u.intervals[f"q{q}"][1]
    seen = [
        s
        for s, z in zip(np.ravel(true).tolist(), np.ravel(released).tolist(), strict=True)
        if s != -1 and z != -1
    ]
    for name in NAMES:
        means = [
            np.mean([e for s, e in zip(seen, errors[name], strict=True) if s == cell] or [np.nan])
            for cell in range(g.size)
        ]
        np.testing.assert_allclose(u.by_location[name], means, rtol=1e-12)
    assert (
        u.worst.error
        == pytest.approx(np.nanmax(u.by_location["e_eu"]))
        == u.by_location["e_eu"][u.worst.location]
    )


def test_any_integer_dtype_and_points():
    p = pf.Points([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])
    for dtype in (np.uint8, np.int8, np.int64, ">i4"):
        true = np.array([0, 1], dtype)
        true.setflags(write=False)
        u = pf.estimate_utility(p, true, np.array([1, 2], dtype))
        assert (u.e_eu, u.e_r, u.e_poi) == (4.5, None, None)
    assert pf.estimate_utility(p, [0, 1], [1, 2], region=[0, 1, 1]).e_r == 0.5
    m = pf.PPIM(pf.complete(p), epsilon=1.0)
    assert pf.utility(m).e_r is None
    assert pf.utility(m, region=[4, 4, 4]).e_r == 0.0


def test_traces_with_gaps():
    """The result of a trace goes straight in: -1 where the input was missing."""
    g = pf.Grid(6, 6)
    model = pf.MobilityModel.fit(g, [[0, 1, 2]], unseen="neighbours8")
    traces = np.array([[0, 1, -1, 2], [7, 8, 14, 20]])
    result = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=0).run(traces)
    u = pf.estimate_utility(g, traces, result.released, clusters="rows")
    assert (u.count, u.missing) == (7, 1)


# Intervals


def test_wilson_is_where_the_test_just_accepts():
    """Ends solve (share - p)^2 = z^2 p (1 - p) / n; at 0 and n hits one end is the share itself."""
    for n, hits in ((10, 3), (50, 49), (7, 0), (7, 7), (1, 1)):
        share, z = hits / n, 1.959963984540054
        low, high = intervals.share_interval(np.arange(n) < hits, 0.95)
        assert 0 <= low <= share <= high <= 1
        for p in (low, high):
            assert (share - p) ** 2 == pytest.approx(z * z * p * (1 - p) / n, abs=1e-12)
    assert intervals.share_interval(np.zeros(7, bool), 0.95)[0] == 0.0
    assert intervals.share_interval(np.ones(7, bool), 0.95)[1] == 1.0


def test_mean_interval_of_three_samples():
    """By hand: mean 2, standard error 1/sqrt(3), t = 4.302653 with two degrees of freedom; not
    below 0."""
    low, high = intervals.mean_interval(np.array([1.0, 2.0, 3.0]), 0.95)
    assert low == 0.0
    assert high == pytest.approx(
        2 + 4.302652729911275 / math.sqrt(3), rel=1e-9
    )  # SciPy's t has 10 digits


@pytest.mark.parametrize(
    "n, q", [(1, 0.5), (5, 0.5), (30, 0.9), (30, 0.99), (200, 0.01), (64, 0.3)]
)
def test_order_statistics_have_the_coverage_of_the_binomial(n, q):
    """Pr(x_(low) <= quantile <= x_(high)) summed in rationals is at least 95 %, and one rank
    less at either end is too few."""
    share = Fraction(q)
    pmf = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    low, high = intervals.quantile_interval(np.arange(1.0, n + 1), q, 0.95)
    rank_low, rank_high = (
        int(low),
        n + 1 if math.isinf(high) else int(high),
    )  # samples 1..n: a value is its rank
    tail = Fraction(1, 40)
    assert sum(pmf[:rank_low]) <= tail and sum(pmf[rank_high:]) <= tail
    assert sum(pmf[: rank_low + 1]) > tail - Fraction(1, 10**12)
    assert rank_high == n + 1 or sum(pmf[rank_high - 1 :]) > tail - Fraction(1, 10**12)


def test_quantile_ranks_do_not_trip_over_rounding():
    for n in range(1, 300):
        for tenth in range(1, 10):
            assert intervals.quantile_rank(n, tenth / 10) == math.ceil(Fraction(tenth, 10) * n) - 1


def test_cluster_variance_by_loops():
    """Sums of each cluster about the mean, squared; for clusters of one it is the ordinary
    variance of a mean."""
    rng = np.random.default_rng(0)
    x, labels = rng.random(50), rng.integers(0, 8, 50)
    clusters, mean = intervals.Clusters.of(labels), x.mean()
    sums = [
        sum(x[i] - mean for i in range(50) if labels[i] == g) for g in sorted(set(labels.tolist()))
    ]
    expected = len(sums) / (len(sums) - 1) * sum(v * v for v in sums) / 50**2
    assert clusters.variance_of_mean(x, mean) == pytest.approx(expected, rel=1e-12)
    single = intervals.Clusters.of(np.arange(50))
    assert intervals.mean_interval(x, 0.9, single) == pytest.approx(
        intervals.mean_interval(x, 0.9), rel=1e-12
    )
    assert single.like == 50
    gap = intervals.Clusters.of(np.array([7, 2, 7]))
    assert gap.code.tolist() == [1, 0, 1] and gap.sizes.tolist() == [1, 2]


def test_clusters_of_copies_are_worth_one_sample_each():
    """Every pair ten times over: with clusters nothing is gained, without them the interval
    shrinks by a factor of 3."""
    rng = np.random.default_rng(1)
    g = pf.Grid(10, 10)
    true, released = rng.integers(0, 100, 80), rng.integers(0, 100, 80)
    once = pf.estimate_utility(g, true, released, clusters=np.arange(80))
    true, released = np.tile(true[:, None], 10), np.tile(released[:, None], 10)
    ten = pf.estimate_utility(g, true, released, clusters="rows")
    loose = pf.estimate_utility(g, true, released)
    for name in ("e_eu", "e_r", "q0.5"):
        assert ten.intervals[name] == pytest.approx(once.intervals[name], rel=0.03)
    width = {u: u.intervals["e_eu"][1] - u.intervals["e_eu"][0] for u in (ten, loose)}
    assert width[ten] / width[loose] == pytest.approx(math.sqrt(10), rel=0.05)
    same = [
        pf.estimate_utility(g, true, released, clusters=c)
        for c in (np.arange(80).astype(str), 9 + np.repeat(np.arange(80), 10).reshape(80, 10))
    ]
    assert same[0].as_dict() == same[1].as_dict() == ten.as_dict()


def test_when_nothing_can_be_said():
    """One pair, or one user, leaves the error unknown. Three users all alike prove little: a tenth
    may well be worse, but hardly nine in ten better (0.1^3)."""
    g = pf.Grid(6, 6)
    one = pf.estimate_utility(g, 0, 1)
    assert one.intervals["e_eu"] == one.intervals["q0.5"] == (0.0, math.inf)
    user = pf.estimate_utility(g, [[0, 1, 2]], [[1, 1, 1]], clusters="rows")
    assert user.intervals["e_eu"] == user.intervals["q0.9"] == (0.0, math.inf) and user.intervals[
        "e_r"
    ] == (0.0, 1.0)
    few = pf.estimate_utility(g, np.zeros((3, 50), int), np.ones((3, 50), int), clusters="rows")
    assert few.intervals["e_r"][1] > 0.5 and few.intervals["q0.9"] == (1.0, math.inf)


REPEATS = 300
FEWEST, MOST = 272, 296  # Binomial(300, 0.95) lies outside with probability 0.0014


def covered(exact, estimates, name):
    value = exact.quantiles[float(name[1:])] if name[0] == "q" else getattr(exact, name)
    return sum(
        low * (1 - 1e-12) <= value <= high * (1 + 1e-12)
        for low, high in (e.intervals[name] for e in estimates)
    )


@large
def test_intervals_cover_the_exact_figures():
    """Independent pairs, a fifth of them missing.

    Order statistics of few distinct distances cover more often, never less.
    """
    g = pf.Grid(20, 20, cell_km=(0.4, 0.3))
    labels = np.random.default_rng(0).integers(-1, 3, g.size)
    m = pf.PPIM(pf.blocks(g, 4), epsilon=1.0)
    rng = np.random.default_rng(1)
    prior = rng.random(g.size) ** 3
    exact = pf.utility(m, prior=prior, region=3, categories=labels)
    true = rng.choice(g.size, (REPEATS, 500), p=prior / prior.sum())
    released = m.release(true.reshape(-1), rng=2).reshape(true.shape)
    released[rng.random(true.shape) < 0.2] = -1
    estimates = [
        pf.estimate_utility(g, a, b, region=3, categories=labels)
        for a, b in zip(true, released, strict=True)
    ]
    assert all(300 < e.count < 500 and e.count + e.missing == 500 for e in estimates)
    for name in NAMES:
        assert FEWEST <= covered(exact, estimates, name) <= MOST
    for q in exact.quantiles:
        assert covered(exact, estimates, f"q{q}") >= FEWEST
    wrong = [
        pf.estimate_utility(g, a, np.where(b < 0, g.size - 1, b), region=3)
        for a, b in zip(true, released, strict=True)
    ]
    assert covered(exact, wrong, "e_eu") < 10  # taking a missing cell as the last one
    assert exact.largest >= max(e.largest for e in estimates)


@large
def test_users_are_not_independent():
    """Users who stay where they are, some in blocks of 6 x 6, some where nothing is protected:
    steps of one user are alike.

    Clustered by user the intervals cover; taken as independent they would miss far too often.
    """
    g = pf.Grid(24, 24)
    near = pf.blocks(g, 6).edges()
    west = near[(near % 24 < 12).all(axis=1)]  # the east has no edges
    labels = np.random.default_rng(0).integers(0, 3, g.size)
    m = pf.PPIM(pf.PolicyGraph.from_edges(g, west), epsilon=1.0)
    exact = pf.utility(m, categories=labels, region=3, quantiles=(0.4, 0.75, 0.9))
    rng = np.random.default_rng(1)
    homes = np.repeat(rng.integers(0, g.size, (REPEATS, 150, 1)), 20, axis=2)
    homes[
        rng.random(homes.shape) < 0.1
    ] = -1  # users are seen now and then: clusters of different sizes
    released = homes.copy()
    released[homes >= 0] = m.release(homes[homes >= 0], rng=3)
    names = [*NAMES, "q0.4", "q0.75", "q0.9"]
    options = dict(categories=labels, region=3, quantiles=(0.4, 0.75, 0.9))
    by_user = [
        pf.estimate_utility(g, a, b, clusters="rows", **options)
        for a, b in zip(homes, released, strict=True)
    ]
    for name in names:
        hits = covered(exact, by_user, name)
        assert hits >= FEWEST, name
        assert hits <= MOST or name[0] == "q", name
    loose = [pf.estimate_utility(g, a, b, **options) for a, b in zip(homes, released, strict=True)]
    for name in NAMES:
        assert covered(exact, loose, name) < 240


@large
def test_too_large_for_exact_is_estimated():
    g = pf.Grid(50, 50)
    m = pf.PPIM(pf.neighbours8(g), epsilon=1.0)
    with pytest.raises(
        TooLarge,
        match=r"2500 locations, exact errors are computed up to 2048: estimate them with "
        r"pf.estimate_utility",
    ):
        pf.utility(m)
    true = np.random.default_rng(0).integers(0, g.size, 2000)
    u = pf.estimate_utility(g, true, m.release(true, rng=0))
    assert 0 < u.intervals["e_eu"][0] < u.e_eu < u.intervals["e_eu"][1] < 10


# What it looks like


def test_reading_the_result():
    g = pf.Grid(10, 10)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=1.0)
    u = pf.utility(m)
    assert "e_poi" not in u.by_location and "E_poi" not in str(u)
    assert (
        "expected" in str(u)
        and "E_eu (km)" in str(u)
        and "99 % within (km)" in str(u)
        and "over 100 locations" in str(u)
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        u.e_eu = 0.0
    true = np.arange(-1, 99)
    e = pf.estimate_utility(g, true, np.abs(true), categories=np.zeros(100, int), level=0.9)
    text = str(e)
    assert (
        "90 % interval" in text
        and "99 pairs, 1 more with a cell missing" in text
        and "E_poi" in text
    )
    flat = e.as_dict()
    assert json.loads(json.dumps(flat)) == flat
    assert (
        flat["e_eu_low"] == e.intervals["e_eu"][0] and flat["q0.99_high"] == e.intervals["q0.99"][1]
    )
    assert {"worst", "worst_location", "largest", "count", "missing", "level"} <= set(flat)
    assert pf.utility(m, quantiles=()).quantiles == {}
    assert list(pf.utility(m, quantiles=(0.9, 0.5, 0.9)).quantiles) == [0.9, 0.5]


G = pf.Grid(4, 4)
M = pf.PPIM(pf.blocks(G, 2), epsilon=1.0, domain=pf.Domain(G, range(12)))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: pf.utility(G), InvalidParameter, "utility takes a mechanism, got Grid"),
        (
            lambda: pf.utility(pf.PPIM(pf.blocks(G, 2), epsilon=1.0, domain=pf.Domain(G, []))),
            InvalidDomain,
            "the domain is empty",
        ),
        (
            lambda: pf.utility(M, prior=[1.0]),
            InvalidParameter,
            r"prior has shape \(1,\): give one number for each of the 16",
        ),
        (lambda: pf.utility(M, prior=["a"] * 16), InvalidParameter, "prior must be 16 numbers"),
        (
            lambda: pf.utility(M, prior=[1.0, -1.0] + [0.0] * 14),
            InvalidParameter,
            r"prior\[1\] = -1.0",
        ),
        (
            lambda: pf.utility(M, prior=[1.0, np.nan] + [0.0] * 14),
            InvalidParameter,
            r"prior\[1\] = nan",
        ),
        (
            lambda: pf.utility(M, prior=[1.0, np.inf] + [0.0] * 14),
            InvalidParameter,
            r"prior\[1\] = inf",
        ),
        (lambda: pf.utility(M, prior=np.zeros(16)), InvalidParameter, "zero everywhere"),
        (
            lambda: pf.utility(M, prior=np.ones(16)),
            InvalidDomain,
            r"prior\[12\] = 1.0, but location 12 is outside the domain",
        ),
        (lambda: pf.utility(M, region=0), InvalidParameter, "region must be an integer at least 1"),
        (lambda: pf.utility(M, region=2.5), InvalidParameter, "region must be an integer"),
        (lambda: pf.utility(M, region=[1, 2]), InvalidParameter, r"region has shape \(2,\)"),
        (
            lambda: pf.utility(M, categories=[1, 2]),
            InvalidParameter,
            r"categories has shape \(2,\)",
        ),
        (
            lambda: pf.utility(M, categories=np.full(16, 0.5)),
            InvalidParameter,
            "categories must be integers, got dtype float64",
        ),
        (
            lambda: pf.utility(M, categories=[-2] * 16),
            InvalidParameter,
            r"categories\[0\] = -2: categories are 0, 1, ..., and -1",
        ),
        (
            lambda: pf.utility(M, categories=np.full(16, 2**64 - 1, np.uint64)),
            InvalidParameter,
            "above 2\\^63",
        ),
        (
            lambda: pf.utility(M, quantiles=(0.5, 1.0)),
            InvalidParameter,
            "between 0 and 1, got 1.0: the largest error is in .largest",
        ),
        (lambda: pf.utility(M, quantiles=(0.0,)), InvalidParameter, "between 0 and 1"),
        (lambda: pf.utility(M, quantiles=0.5), InvalidParameter, "quantiles must be numbers"),
        (lambda: pf.utility(M, quantiles=(np.nan,)), InvalidParameter, "between 0 and 1"),
        (
            lambda: pf.estimate_utility(M, [0], [0]),
            InvalidParameter,
            "locations must be a Grid or Points, got PPIM",
        ),
        (
            lambda: pf.estimate_utility(G, [0, 1], [0]),
            InvalidParameter,
            r"true has shape \(2,\) and released \(1,\)",
        ),
        (
            lambda: pf.estimate_utility(G, [[0, 16]], [[0, 1]]),
            InvalidLocation,
            r"true\[0, 1\] = 16 is neither",
        ),
        (
            lambda: pf.estimate_utility(G, [0, 1], [0, -2]),
            InvalidLocation,
            r"released\[1\] = -2 is neither",
        ),
        (lambda: pf.estimate_utility(G, [0.5], [0]), InvalidLocation, "true must be integers"),
        (
            lambda: pf.estimate_utility(G, [], []),
            InvalidParameter,
            "none of the 0 pairs has both cells",
        ),
        (
            lambda: pf.estimate_utility(G, [0, -1], [-1, 0]),
            InvalidParameter,
            "none of the 2 pairs has both cells",
        ),
        (
            lambda: pf.estimate_utility(G, [0], [0], level=1.0),
            InvalidParameter,
            "level must be between 0 and 1",
        ),
        (
            lambda: pf.estimate_utility(G, [0], [0], level=0),
            InvalidParameter,
            "level must be a finite number above 0",
        ),
        (
            lambda: pf.estimate_utility(G, [0], [0], clusters="rows"),
            InvalidParameter,
            r'clusters="rows" needs arrays \(users, T\)',
        ),
        (
            lambda: pf.estimate_utility(G, [0], [0], clusters="users"),
            InvalidParameter,
            "clusters must be one of 'rows'",
        ),
        (
            lambda: pf.estimate_utility(G, [[0, 1]], [[0, 1]], clusters=[1, 2]),
            InvalidParameter,
            r"it must be \(1, 2\), one for each",
        ),
        (
            lambda: pf.estimate_utility(G, [0], [0], clusters=[0.5]),
            InvalidParameter,
            "clusters must be integers or strings",
        ),
        (
            lambda: pf.estimate_utility(pf.Points([[0, 0]]), [0], [0], region=5),
            InvalidParameter,
            "5 cells a side needs a Grid",
        ),
    ],
)
def test_errors_say_what_to_do(call, error, message):
    with pytest.raises(error, match=message):
        call()
