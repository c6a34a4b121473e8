"""Certificates of whole runs: what they say is true, and planted faults are found."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import (
    edge_set,
    oracle_of,
    policy_of_kind,
    random_map,
    random_prior,
    random_transitions,
    walk,
)
from pglp_fast._kernels.trace.release import CLAIM
from pglp_fast.errors import PGLPError
from pglp_fast.traces import certificate as certificates, table_cache
from pglp_fast.traces.certificate import TraceCertificate, prove
from pglp_fast.traces.ledger import edges_within
from pglp_fast.traces.proof import Proof
from pglp_fast.traces.table_cache import decode

WAYS = [
    ("ppim", "component"),
    ("ppim", "graph"),
    ("plm", "component"),
    ("plm", "graph"),
    ("planar-laplace", "component"),
    ("krr", "component"),
    ("graph-exponential", "component"),
    ("optimal", "component"),
]
NOISE = ("ppim", "plm")
every_way = pytest.mark.parametrize(("mechanism", "calibration"), WAYS)


def city(side=6, seed=0, moves=3.0):
    grid = pf.Grid(side, side, cell_km=(1.0, 0.5))
    rng = np.random.default_rng(seed)
    return grid, pf.MobilityModel(grid, random_transitions(rng, grid.size, moves))


def some_traces(grid, users=30, steps=8, seed=1):
    rng = np.random.default_rng(seed)
    traces = rng.integers(0, grid.size, (users, steps)).astype(np.int32)
    traces[rng.random(traces.shape) < 0.2] = -1
    return traces


def delivered(T):
    """The largest ratio of any two weights of a table over an edge, by Python integers."""
    arrays, worst = T.engine.tables.arrays, Fraction(1)
    for entry in range(len(T.engine.tables)):
        component = decode(arrays.keys[arrays.starts[entry] : arrays.starts[entry + 1]])
        k = len(component.sites)
        rows = arrays.cumulative[arrays.at[entry] : arrays.at[entry + 1]].reshape(k, k).tolist()
        W = [[b - a for a, b in zip([0, *row], row)] for row in rows]
        edges = {tuple(sorted(e)) for e in component.pairs.tolist()}
        heads = component.heads.tolist()
        edges |= {(i, j) for j in range(k) for i in range(j) if heads[i] == heads[j]}
        for i, j in edges:
            for a, b in zip(W[i], W[j]):
                if a != b:
                    worst = max(worst, Fraction(max(a, b), min(a, b)))
    return worst


@every_way
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_every_mechanism_is_proved(mechanism, calibration, epsilon):
    grid, model = city()
    T = pf.TraceReleaser(
        pf.blocks(grid, 3), model, epsilon=epsilon, mechanism=mechanism, calibration=calibration,
        rng=1,
    )  # fmt: skip
    traces = some_traces(grid)
    R = T.run(traces)
    c = R.certificate
    assert (c.ok, c.reason, c.promised) == (True, "", epsilon)
    assert 0 < c.worst <= epsilon
    assert c.releases == (traces >= 0).sum()
    assert c.exposed == R.exposed.sum()
    assert (c.noises, c.rounding) == (0, 0.0)
    assert "the promise holds" in str(c)
    ratio = delivered(T)
    with localcontext(prec=60):
        assert ratio <= Fraction(Decimal(epsilon).exp())
    if calibration == "component":
        assert c.worst == pytest.approx(math.log(ratio), rel=1e-12)
    else:  # not only edges are proved, but whoever lies in reach of K
        assert c.worst >= math.log(ratio) * (1 - 1e-12)


@pytest.mark.parametrize(("mechanism", "calibration"), [w for w in WAYS if w[0] in NOISE])
def test_noise_over_large_domains_is_proved(mechanism, calibration):
    """81 locations in a component are above what traces make tables of."""
    grid = pf.Grid(9, 18, cell_km=(1.0, 0.5))
    model = pf.MobilityModel(grid, random_transitions(np.random.default_rng(0), grid.size, 60.0))
    T = pf.TraceReleaser(
        pf.blocks(grid, 9), model, epsilon=1.5, mechanism=mechanism, calibration=calibration,
        rng=1,
    )  # fmt: skip
    R = T.run(some_traces(grid, 20, 4))
    c = R.certificate
    assert c.ok, c.reason
    assert c.noises > 0
    assert 0 < c.worst <= 1.5
    assert 0 < c.rounding < 1e-6
    assert f"{c.noises} noises" in str(c)
    if mechanism == "ppim":  # some edge is a corner of its own hull
        assert c.worst == 1.5


def test_planar_laplace_over_a_large_domain_is_proved():
    grid = pf.Grid(12, 12)
    model = pf.MobilityModel(grid, np.full((144, 144), 1 / 144))
    T = pf.TraceReleaser(pf.complete(grid), model, epsilon=1.5, mechanism="planar-laplace", rng=1)
    c = T.run([[3, 100]]).certificate
    assert (c.ok, c.tables, c.noises) == (True, 0, 1), c.reason
    assert c.worst <= 1.5


# counts, by hand


def still(grid, policy, **options):
    """Nobody moves."""
    model = pf.MobilityModel(grid, np.eye(grid.size))
    return pf.TraceReleaser(policy, model, epsilon=1.0, rng=1, **options)


@pytest.mark.parametrize("mechanism", ["krr", "ppim"])
def test_tables_are_counted_once(mechanism):
    """Three blocks that are translates of each other have one table; a block of another shape has
    its own; a cell that is known has one more."""
    grid = pf.Grid(1, 9)
    G = pf.categories(grid, [0, 0, 1, 1, 2, 2, 3, 3, 3], None)
    even = np.full(9, 1 / 9)
    T = still(grid, G, mechanism=mechanism)
    assert T.run([[0]], even).certificate.tables == 1
    assert T.run([[0, 0], [2, 2], [5, 4]], even).certificate.tables == 1
    c = T.run([[0, 0], [8, 8]], even).certificate
    assert (c.tables, c.releases, c.exposed) == (2, 4, 0)
    points = T.run([[0, 0], [8, 8]], "point").certificate
    assert (points.tables, points.exposed) == (1, 4)
    assert "4 releases of a location that nothing could hide" in str(points)
    assert points.ok
    assert points.worst <= 0  # nothing to compare


def test_noises_are_counted_once():
    """Two blocks of 81 that are translates have one noise, whoever draws from it how often."""
    grid = pf.Grid(9, 18)
    T = still(grid, pf.blocks(grid, 9))
    even = np.full(grid.size, 1 / grid.size)
    assert T.run([[0, 1, 2]], even).certificate.noises == 1
    both = T.run([[0, 1, 2], [17, 16, 15]], even).certificate
    assert (both.tables, both.noises, both.releases) == (0, 1, 6)
    mixed = pf.Grid(9, 21)  # and a block of 9 x 3, by a table
    T = still(mixed, pf.blocks(mixed, 9))
    c = T.run([[0], [20]], np.full(mixed.size, 1 / mixed.size)).certificate
    assert (c.tables, c.noises) == (1, 1)


def test_exposed_releases_are_counted():
    """A ring of cells that are known for sure, in a policy that would hide them."""
    grid = pf.Grid(1, 4)
    model = pf.MobilityModel(grid, np.roll(np.eye(4), 1, axis=1))
    T = pf.TraceReleaser(pf.blocks(grid, 2), model, epsilon=1.0, rng=1)
    R = T.run([[0, 1, 2, -1, 0], [0, -1, -1, -1, -1]], "point")
    assert R.exposed.sum() == R.certificate.exposed == 5
    S = T.start(2, "point")
    S.step([0, 0])
    S.step([1, -1])
    assert S.certificate.exposed == 3


def test_a_run_of_several_blocks_of_users(monkeypatch):
    """What is proved is gathered over all of them."""
    grid, model = city()
    traces = some_traces(grid)
    how = {"epsilon": 1.0, "rng": 1}
    whole = pf.TraceReleaser(pf.blocks(grid, 3), model, **how).run(traces).certificate
    monkeypatch.setattr("pglp_fast.traces.run._BLOCK", 7)
    parts = pf.TraceReleaser(pf.blocks(grid, 3), model, **how).run(traces).certificate
    assert str(parts) == str(whole)
    assert (parts.tables, parts.worst, parts.exposed) == (whole.tables, whole.worst, whole.exposed)
    for u in range(len(traces)):
        assert edge_set(parts.graph(u)) == edge_set(whole.graph(u))


def test_tables_that_were_forgotten_stay_counted(monkeypatch):
    """A cache that is emptied between blocks of users makes tables anew: they are no others."""
    monkeypatch.setattr("pglp_fast.traces.run._BLOCK", 1)
    monkeypatch.setattr("pglp_fast.traces.table_cache.MAX_ENTRIES", 0)
    grid = pf.Grid(1, 5)
    T = still(grid, pf.categories(grid, [0, 0, 1, 1, 1], None))
    first, c = (T.run(cells, np.full(5, 0.2)).certificate for cells in ([[4]], [[0], [4], [0]]))
    assert (first.tables, c.tables, len(T.engine.tables)) == (1, 2, 1)
    assert c.worst >= first.worst


# composition


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_epsilons_and_graphs_are_the_literal_composition(seed, calibration):
    """Of random histories with gaps: the intersection of graphs that the oracle repairs."""
    rng = np.random.default_rng(seed)
    locations = random_map(rng, seed)
    G, n = policy_of_kind(rng, locations, seed), locations.size
    A = random_transitions(rng, n)
    T = pf.TraceReleaser(
        G, pf.MobilityModel(locations, A), epsilon=0.7, rng=seed, calibration=calibration
    )
    prior = random_prior(rng, n)
    users, steps = 4, 7
    traces = np.array([walk(rng, A, rng.choice(n, p=prior), steps) for _ in range(users)], np.int32)
    traces[rng.random(traces.shape) < 0.3] = -1
    traces[3] = -1
    S, graphs = T.start(users, prior), [[] for _ in range(users)]
    for t in range(steps):
        S.step(traces[:, t])
        for u in np.flatnonzero(traces[:, t] >= 0):
            sites, scale, edges, cells = oracle_of(G, S.domain(u).cells().tolist())
            graphs[u].append(naive.repair(sites, scale, edges, cells, "min-area", calibration)[1])
    run = T.run(traces, prior).certificate
    for u in range(users):
        spent, kept = naive.ledger([0.7] * len(graphs[u]), graphs[u] or [edge_set(G)])
        for c in (run, S.certificate):
            assert c.epsilon(u) == pytest.approx(spent)
            assert edge_set(c.graph(u)) == kept
            assert c.ledger.kept_edges()[u] == c.graph(u).n_edges == len(kept)


@pytest.mark.parametrize("seed", range(9))
def test_edges_within_rows(seed):
    """Counted row by row, against the graph itself; rows may be empty, or there may be none."""
    rng = np.random.default_rng(seed)
    locations = random_map(rng, seed)
    G, n = policy_of_kind(rng, locations, seed), locations.size
    rows = [np.flatnonzero(rng.random(n) < share) for share in (0.0, 0.3, 0.6, 1.0, 0.0)]
    start = np.cumsum([0, *map(len, rows)])
    found = edges_within(G, start, np.concatenate(rows).astype(np.int32))
    assert found.tolist() == [len(naive.constrain(edge_set(G), set(r.tolist()))) for r in rows]
    assert edges_within(G, np.zeros(1, np.int64), np.empty(0, np.int32)).tolist() == []
    assert edges_within(G, np.zeros(3, np.int64), np.empty(0, np.int32)).tolist() == [0, 0]


# planted faults


def tampered(monkeypatch, change):
    """Tables whose cumulative weights are changed before they are read back."""
    proved = table_cache._proved

    def changed(cumulative, protected, bound):
        change(cumulative)
        return proved(cumulative, protected, bound)

    monkeypatch.setattr(table_cache, "_proved", changed)


def _favour(cumulative):
    """The first location says itself nearly always: far above e^eps, and the row still sums up."""
    if len(cumulative) > 1:
        cumulative[0, :-1] = np.uint64(2**63 - 1)


def _lose(cumulative):
    cumulative[-1, -1] -= np.uint64(1)


def _never(cumulative):
    """The last location no longer says what it said most often, but something else."""
    if len(cumulative) > 1:
        W = np.diff(cumulative[-1], prepend=np.uint64(0))
        z = int(W.argmax())
        W[z - 1] += W[z]
        W[z] = 0
        cumulative[-1] = np.cumsum(W)


@every_way
@pytest.mark.parametrize("change", [_favour, _lose, _never])
def test_nothing_is_drawn_from_a_table_that_is_not_proved(
    monkeypatch, mechanism, calibration, change
):
    grid, model = city()
    T = pf.TraceReleaser(
        pf.blocks(grid, 3), model, epsilon=1.0, mechanism=mechanism, calibration=calibration,
        rng=1,
    )  # fmt: skip
    S = T.start(2)
    tampered(monkeypatch, change)
    with pytest.raises(PGLPError, match="breaks its own bound: nothing is drawn from it"):
        S.step([0, 9])
    assert (S.t, S.ledger.epsilons().tolist()) == (0, [0.0, 0.0])
    assert S.certificate.releases == 0
    assert len(T.engine.tables) == 0
    monkeypatch.undo()
    assert (S.step([0, 9]).released >= 0).all()


@pytest.fixture
def noisy():
    """(proof, ledger, polygon, map) of a stream that was released by noise."""
    grid = pf.Grid(9, 18, cell_km=(1.0, 0.5))
    T = still(grid, pf.blocks(grid, 9))
    S = T.start(2, np.full(grid.size, 1 / grid.size))
    S.step([0, 17])
    assert S.certificate.ok
    return S._state.proof, S.ledger, T.engine.settings.polygon, grid


def certified(proof, ledger, polygon, locations):
    return TraceCertificate(proof, prove(proof, polygon, locations), ledger, 1.0)


def with_claim(proof, change):
    """The proof with its only claim changed."""
    (claim,) = proof.claims
    row = np.frombuffer(claim, np.int64).copy()
    return Proof(proof.tables, proof.delivered, frozenset({change(row).tobytes()}))


def test_an_edge_outside_the_hull_is_not_proved(noisy):
    def missed(row):
        row[0] = 0
        return row

    c = certified(with_claim(noisy[0], missed), *noisy[1:])
    assert not c.ok
    assert c.reason == "an edge's difference lies outside the noise polygon"
    assert "is NOT PROVED: an edge's difference" in str(c) and c.verdict.told == "is not proved"


def test_a_noise_polygon_that_is_too_small_is_not_proved(noisy, monkeypatch):
    polygon = certificates.noise_polygon.noise_polygon
    monkeypatch.setattr(
        certificates.noise_polygon, "noise_polygon",
        lambda *args: np.asarray(polygon(*args)) * (1 - 2.0**-40),
    )  # fmt: skip
    c = certified(*noisy)
    assert not c.ok
    assert c.worst > c.promised
    assert "the promise FAILS: an edge's" in str(c) and c.verdict.told == "does not hold"


def test_a_noise_polygon_that_misses_a_corner_is_not_proved(noisy, monkeypatch):
    polygon = certificates.noise_polygon.noise_polygon
    monkeypatch.setattr(
        certificates.noise_polygon, "noise_polygon",
        lambda *args: np.delete(np.asarray(polygon(*args)), [0, 2], axis=0),
    )  # fmt: skip
    assert not certified(*noisy).ok


@pytest.mark.parametrize("fault", ["swapped", "lost", "short", "shifted"])
def test_cones_that_are_drawn_wrongly_are_not_proved(noisy, monkeypatch, fault):
    cones = certificates.drawn_cones

    def drawn(K):
        w = cones(K).copy()
        if fault == "swapped":
            w[:] = np.roll(w, 1)
        elif fault == "lost":
            w[0] -= np.uint64(1)
        elif fault == "short":
            return w[:2]
        else:  # two parts in a million
            w[0] += np.uint64(2**44)
            w[1] -= np.uint64(2**44)
        return w

    hull = np.array([(-3, -1), (1, -2), (3, -1), (3, 1), (-1, 2), (-3, 1)])

    def other(row):
        return np.concatenate([row[: CLAIM - 1], [len(hull)], hull.ravel()])

    proof = with_claim(noisy[0], other)
    assert certified(proof, *noisy[1:]).ok
    monkeypatch.setattr(certificates, "drawn_cones", drawn)
    c = certified(proof, *noisy[1:])
    assert not c.ok
    assert c.rounding > 1e-6
    assert "float64 may move" in c.reason


def test_noise_that_rounding_may_move_is_not_proved():
    """Cells a millimetre wide and a thousand kilometres apart."""
    sites = np.stack([np.arange(70) * 7_000_003 % 2**28, np.arange(70) * 3], axis=1)
    places = pf.Points(sites * 0.001)
    T = still(places, pf.complete(places))
    c = T.run([[0], [5]], np.full(70, 1 / 70)).certificate
    assert (c.ok, c.noises) == (False, 1)
    assert "float64 may move" in c.reason
    assert "use delta, or smaller blocks" in c.reason


# streams


def test_a_resumed_stream_remembers_what_was_proved(tmp_path):
    grid = pf.Grid(9, 12)
    G = pf.categories(grid, np.where(np.arange(108) % 12 < 9, 0, 1 + np.arange(108) % 2), None)
    model = pf.MobilityModel(grid, random_transitions(np.random.default_rng(0), 108, 80.0))
    even = np.full(108, 1 / 108)

    def made():
        return pf.TraceReleaser(G, model, epsilon=1.5, rng=4)

    S = made().start(3, even)
    S.step([0, 9, 10])  # noise, and two tables
    S.step([1, -1, 100])
    before = S.certificate
    assert before.ok
    assert (before.noises > 0, before.tables > 0) == (True, True)
    S.save(tmp_path / "stream")
    again = made().resume(tmp_path / "stream")
    after = again.certificate
    assert str(after) == str(before)
    for name in ("ok", "worst", "tables", "noises", "rounding", "releases", "exposed"):
        assert getattr(after, name) == getattr(before, name)
    for stream in (S, again):
        stream.step([2, 3, -1])
    assert again.certificate.releases == before.releases + 2 == S.certificate.releases
    for name in ("ok", "worst", "tables", "noises", "rounding", "exposed"):
        assert getattr(again.certificate, name) == getattr(S.certificate, name)
    assert edge_set(again.certificate.graph(0)) == edge_set(S.certificate.graph(0))


def test_a_stream_is_certified_like_its_run():
    grid, model = city()
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, rng=1)
    traces = some_traces(grid)
    S = T.start(len(traces))
    assert (S.certificate.ok, S.certificate.releases, S.certificate.tables) == (True, 0, 0)
    for t in range(traces.shape[1]):
        S.step(traces[:, t])
    a, b = S.certificate, T.run(traces).certificate
    assert str(a) == str(b)
    for name in ("worst", "tables", "noises", "rounding", "releases", "exposed"):
        assert getattr(a, name) == getattr(b, name)


def test_a_failed_step_proves_nothing():
    grid, model = city()
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, rng=1, budget=1.0)
    S = T.start(2)
    S.step([0, 1])
    before = str(S.certificate)
    with pytest.raises(pf.BudgetExceeded):
        S.step([0, -1])
    assert str(S.certificate) == before


def test_proofs_as_dictionaries(noisy):
    """Through JSON and back."""
    claims = noisy[0].claims
    for proof in (
        Proof(),
        Proof(frozenset({3, 2**60 + 1}), {0.5: 0.4, 1.0: 0.75}, claims, 4, 11),
        noisy[0],
    ):
        assert Proof.from_dict(json.loads(json.dumps(proof.to_dict()))) == proof


def test_proofs_add_up():
    a = Proof(frozenset({1, 2}), {1.0: 0.5, 2.0: 1.5}, frozenset({b"x"}), 1, 10)
    b = Proof(frozenset({2, 5}), {1.0: 0.75}, frozenset({b"x", b"y"}), 2, 20)
    each = {1.0: 0.75, 2.0: 1.5}
    both = Proof(frozenset({1, 2, 5}), each, frozenset({b"x", b"y"}), 3, 30)
    assert both.worst == 1.5
    assert a | b == b | a == both
    assert a | Proof() == a
