"""Attacks against every path there is (tests/naive_attacks.py), and against themselves in other
batches."""

from dataclasses import fields, replace

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy.stats import t as student

import naive_attacks as naive
import pglp_fast as pf
from cases import large
from pglp_fast._kernels.base.rows import Rows
from pglp_fast._util.arrays import starts_of
from pglp_fast.adversary.attack_table import lifts
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.priors import Priors, make_priors
from pglp_fast.errors import InvalidEvidence, InvalidLocation, InvalidParameter

SCALES = ((1.0, 1.0), (0.5, 0.25), (0.25, 1.0))  # dyadic, so that lengths tie exactly
CELLS = ("bayes", "map", "viterbi", "online_bayes", "online_map")
NUMBERS = ("expected_error", "entropy", "lift", "online_error", "online_entropy")


def stochastic(rng, shape, density):
    """Random rows with zeros, each summing to 1."""
    A = (rng.random(shape) < density) * (rng.random(shape) + 0.05)
    empty = A.sum(axis=-1) == 0
    A[(*np.nonzero(empty), rng.integers(0, shape[-1], int(empty.sum())))] = 1.0
    return A / A.sum(axis=-1, keepdims=True)


def pack(model, priors, periods, rows, released=None):
    """Evidence of rows[u][t] = {location: ln Pr(z | s)}, or None for no release; periods[t] is that
    of the move to step t."""
    n, T = len(rows), len(periods)
    flat = [row for user in rows for row in user]
    lengths = np.array([0 if row is None else len(row) for row in flat], np.int64).reshape(n, T)
    cells = np.array([c for row in flat if row is not None for c in sorted(row)], np.int32)
    logs = np.array([row[c] for row in flat if row is not None for c in sorted(row)], np.float64)
    if released is None:
        released = np.array(
            [-1 if row is None else min(row, default=0) for row in flat], np.int32
        ).reshape(n, T)
    cycle = [*periods[1:], 0]  # nobody moves on from the last step
    return Evidence.of_array(model, priors, cycle, released, lengths, cells, logs)


def part(evidence, users):
    """The evidence of some users only."""
    (_, T), users = evidence.shape, np.asarray(users, np.int64)
    rows = np.concatenate(
        [np.arange(evidence.first[u], evidence.first[u + 1]) for u in users] or [np.arange(0)]
    ).astype(np.int64)
    spans = [slice(evidence.start[r], evidence.start[r + 1]) for r in rows]
    cells, logs = (
        np.concatenate([a[:0], *(a[s] for s in spans)]) for a in (evidence.cells, evidence.logs)
    )
    return replace(
        evidence,
        priors=Priors(evidence.priors.rows, evidence.priors.of[users], evidence.priors.point),
        first=starts_of(np.diff(evidence.first)[users]),
        steps=evidence.steps[rows],
        released=evidence.released[rows],
        start=starts_of(np.array([s.stop - s.start for s in spans], np.int64)),
        cells=cells,
        logs=logs,
        shape=(len(users), T),
    )


def random_case(rng, *, users=1, size=None, steps=None, gap=1.0, sound=True):
    """A random model, priors and releases; ``sound``: every user has a path through all of them.

    Returns the evidence and, for each user, what ``naive.Paths`` takes.
    """
    n, T = size or int(rng.integers(2, 6)), steps or int(rng.integers(1, 6))
    if rng.integers(2) and n in (2, 4):
        locations = pf.Grid(2, n // 2, cell_km=SCALES[rng.integers(3)])
    elif rng.integers(2):
        locations = pf.Grid(1, n, cell_km=SCALES[rng.integers(3)])
    else:
        sites = rng.choice(36, n, replace=False)
        locations = pf.Points(
            np.stack([sites % 6, sites // 6], axis=1).astype(float), resolution_km=1.0
        )
    P = int(rng.integers(1, 4))
    A = stochastic(rng, (P, n, n), (0.4, 0.7, 1.0)[rng.integers(3)])
    model = pf.MobilityModel(locations, A)
    periods = rng.integers(0, P, T)
    kind = rng.integers(3)
    if kind == 0:
        priors = make_priors(model, "point", users)
        at = rng.integers(0, n, users)
        priors, dense = Priors(priors.rows, at, True), np.eye(n)[at]
    else:
        given = stochastic(rng, (users if kind == 1 else 1, n), 0.7)
        priors, dense = (
            make_priors(model, given if kind == 1 else given[0], users),
            np.broadcast_to(given, (users, n)),
        )
    rows, known = [], []
    for u in range(users):
        true = rng.choice(n, p=dense[u])
        mine, started = [], False
        for t in range(T):
            if started:
                true = rng.choice(n, p=A[periods[t], true])
            if rng.random() < 0.35:
                mine.append(None)
                continue
            started = True
            cells = set(np.flatnonzero(rng.random(n) < 0.6).tolist()) | (
                {int(true)} if sound else {int(rng.integers(n))}
            )
            mine.append({c: float(-gap * rng.exponential()) for c in cells})
            if rng.random() < 0.1:
                others = [c for c in mine[-1] if c != true]
                mine[-1] |= {others[0]: -np.inf} if others else {}
        rows.append(mine)
        known.append((dense[u], A[periods], mine))
    return pack(model, priors, periods, rows), known


def check_user(result, u, paths, locations):
    """Everything reported of one user against all of its paths."""
    T, first = paths.steps, paths.first
    for name in CELLS:
        assert (getattr(result, name)[u, :first] == -1).all()
    for name in NUMBERS:
        assert np.isnan(getattr(result, name)[u, :first]).all()
    if first == T:
        assert result.log_evidence[u] == 0 and result.path_entropy[u] == 0
        return
    xy = locations.xy(np.arange(locations.size))
    near = dict(rel=1e-10, abs=1e-11)
    assert result.log_evidence[u] == pytest.approx(paths.log_evidence(), **near)
    assert result.path_entropy[u] == pytest.approx(paths.path_entropy(), **near)
    assert tuple(result.viterbi[u, first:]) == paths.viterbi()
    for t in range(first, T):
        filtered, smoothed = paths.filtered(t), paths.smoothed(t)
        for ref, comp, cell, guess, error, bits in (
            (
                filtered,
                result.filtered,
                result.online_map,
                result.online_bayes,
                result.online_error,
                result.online_entropy,
            ),
            (
                smoothed,
                result.posterior,
                result.map,
                result.bayes,
                result.expected_error,
                result.entropy,
            ),
        ):
            p = [float(x) for x in ref]
            assert comp(u, t) == pytest.approx(p, **near)
            assert cell[u, t] == naive.most_likely(ref)
            assert bits[u, t] == pytest.approx(naive.entropy_bits(ref), **near)
            candidates = np.arange(len(p)) if isinstance(locations, pf.Grid) else np.flatnonzero(p)
            x, f = naive.guess(xy, p, candidates)
            assert guess[u, t] == x
            assert error[u, t] == pytest.approx(f, **near)
        if paths.rows_seen[t]:
            assert result.lift[u, t] == pytest.approx(paths.lift(t), **near)
        else:
            assert result.lift[u, t] == 0


def paths_of(known):
    paths = naive.Paths(*known)
    paths.rows_seen = [row is not None for row in known[2]]
    return paths


# Against all paths


@pytest.mark.parametrize("seed", range(40))
def test_everything_equals_the_enumeration_of_all_paths(seed):
    """Would catch a wrong recursion, period, prior, tie, missing step or late start: every
    number from every path."""
    rng = np.random.default_rng(seed)
    evidence, known = random_case(rng, users=2)
    result = pf.attack(evidence)
    for u, k in enumerate(known):
        check_user(result, u, paths_of(k), evidence.model.locations)


@pytest.mark.parametrize("seed", range(25))
def test_a_possible_path_is_never_lost_to_underflow(seed):
    """Logarithms thousands apart: would catch sums that underflow, and a location that is
    dropped because it looks unlikely."""
    rng = np.random.default_rng(1000 + seed)
    evidence, known = random_case(rng, users=2, gap=3000.0)
    result = pf.attack(evidence)
    for u, k in enumerate(known):
        check_user(result, u, paths_of(k), evidence.model.locations)


def test_the_unlikely_path_that_turns_out_to_be_the_only_one():
    """Two ways that never meet: one release says e^5000 to 1 for the first, a later (or an
    earlier) one rules it out."""
    g = pf.Grid(1, 4)
    A = np.array([[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1.0]])
    model = pf.MobilityModel(g, A)
    priors = make_priors(model, np.full(4, 0.25), 1)
    for rows in (
        [{0: 0.0, 1: -5000.0, 2: -5000.5}, None, {1: 0.0, 2: 0.0, 3: 0.0}],
        [{0: 0.0, 1: -5000.0, 2: -5000.5}, {0: 0.0, 1: -9000.0}, {1: 0.0, 2: -3.0}],
        [{1: 0.0, 2: 0.0, 3: 0.0}, {1: 0.0, 2: -4000.0, 3: 0.0}, {2: -6000.0, 0: 0.0}],
    ):
        evidence = pack(model, priors, [0, 0, 0], [rows])
        result = pf.attack(evidence)
        check_user(result, 0, paths_of((np.full(4, 0.25), A[None].repeat(3, axis=0), rows)), g)
        assert set(result.viterbi[0]) <= {1, 2}


def test_unlikely_ways_that_meet_are_added_up():
    """e^-5000 and e^-9000 lead to the only location left, in either order, forward and backward:
    would catch a sum that is taken relative to anything but its largest term."""
    g = pf.Grid(1, 4)
    A = np.array([[1.0, 0, 0, 0], [0, 0.5, 0, 0.5], [0, 0, 0.5, 0.5], [0, 0.5, 0.5, 0]])
    prior = np.full(4, 0.25)
    model = pf.MobilityModel(g, A)
    for one, other in ((-5000.0, -9000.0), (-9000.0, -5000.0), (-5000.0, -5000.25)):
        for rows in (
            [{0: 0.0, 1: one, 2: other}, {3: 0.0}],
            [{0: 0.0, 3: 0.0}, {0: 0.0, 1: one, 2: other}, {1: 0.0, 2: 0.0}],
        ):
            result = pf.attack(pack(model, make_priors(model, prior, 1), [0] * len(rows), [rows]))
            check_user(result, 0, paths_of((prior, A[None].repeat(len(rows), axis=0), rows)), g)
            dead = [
                {0: 0.0, 3: 0.0},
                {0: 0.0, 1: one, 2: other},
            ]  # here only the backward sums are tiny
            result = pf.attack(pack(model, make_priors(model, prior, 1), [0, 0], [dead]))
            check_user(result, 0, paths_of((prior, A[None].repeat(2, axis=0), dead)), g)


def test_ties_go_to_the_lower_index():
    """All moves and likelihoods alike: the lowest last cell, then the lowest before; MAP and
    Bayes the lowest of equals."""
    g = pf.Grid(1, 4)
    A = np.full((4, 4), 0.25)
    model = pf.MobilityModel(g, A)
    rows = [{1: 0.0, 2: 0.0}, {0: 0.0, 3: 0.0}, {2: -1.0, 3: -1.0}, None]
    evidence = pack(model, make_priors(model, np.full(4, 0.25), 1), [0] * 4, [rows])
    result = pf.attack(evidence)
    check_user(result, 0, paths_of((np.full(4, 0.25), A[None].repeat(4, axis=0), rows)), g)
    assert result.viterbi[0].tolist() == [1, 0, 2, 0]
    assert result.map[0].tolist() == [1, 0, 2, 0]
    assert result.bayes[0].tolist() == [1, 0, 2, 1]  # between 0 and 3 all cells are equally good
    # the lower predecessor although it is reached by another sum: 0.1 + 0.2 and 0.3 are not the
    # same float
    tied = [{0: -0.1, 1: -0.3}, {0: -0.2, 1: 0.0}, {3: 0.0}]
    A = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]])
    late = np.array([[0, 0, 0, 1.0]] * 4)
    model = pf.MobilityModel(g, np.stack([A, late]))
    result = pf.attack(
        pack(model, make_priors(model, np.array([0.5, 0.5, 0, 0]), 1), [0, 0, 1], [tied])
    )
    assert result.viterbi[0].tolist() == [0, 0, 3]
    assert result.map[0].tolist() == [0, 0, 3]


def test_releases_without_a_path_name_user_and_step():
    """Would catch a contradiction that is passed over, blamed on another step, or that harms the
    users beside it."""
    found = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        evidence, known = random_case(rng, users=3, sound=False)
        wrong = [paths_of(k).impossible_at() for k in known]
        bad = [u for u, t in enumerate(wrong) if t is not None]
        if not bad:
            pf.attack(evidence)
            continue
        found += 1
        with pytest.raises(
            InvalidEvidence,
            match=f"user {bad[0]} up to step {wrong[bad[0]]} have probability 0.*{len(bad)} users",
        ):
            pf.attack(evidence)
    assert found > 30


def dense_rows(size, rows):
    out = np.ones((len(rows), size), np.longdouble)
    for t, row in enumerate(rows):
        if row is not None:
            out[t] = 0
            out[t, list(row)] = np.exp(np.array(list(row.values()), np.longdouble))
    return out


@large
@pytest.mark.parametrize("seed", range(3))
def test_large_supports_and_long_gaps_equal_dense_recursions(seed):
    """Long stretches without release, supports from one cell to the whole map: would catch a list
    that grows past its room, an unsorted step, or work space that is handed on dirty."""
    rng = np.random.default_rng(seed)
    g = pf.Grid(13, 11, cell_km=(0.3, 0.7))
    around = pf.MobilityModel.fit(
        g, rng.integers(0, g.size, (60, 2)), smoothing="neighbours8", pseudo_count=0.3
    )
    ring = pf.MobilityModel.fit(g, np.zeros((1, 1), np.int64), unseen="neighbours8")
    A = np.stack([m.matrix().toarray() for m in (around, ring)])
    model, T, users = pf.MobilityModel(g, A), 24, 7
    periods = rng.integers(0, 2, T)
    prior = stochastic(rng, (users, g.size), 0.5)
    rows = []
    for u in range(users):
        true, mine = rng.choice(g.size, p=prior[u]), []
        for t in range(T):
            true = rng.choice(g.size, p=A[periods[t], true]) if t else true
            share = (0.03, 0.2, 1.0)[rng.integers(3)]
            cells = {int(true)} | set(np.flatnonzero(rng.random(g.size) < share).tolist())
            missing = t > 0 and (4 < t < 14 if u % 2 else rng.random() < 0.3)
            mine.append(None if missing else {c: float(-3 * rng.exponential()) for c in cells})
        rows.append(mine)
    result = pf.attack(pack(model, make_priors(model, prior, users), periods, rows))
    xy = g.xy(np.arange(g.size))
    for u in range(users):
        filtered, smoothed, path, bits, evidence = naive.dense_chain(
            prior[u], A[periods], dense_rows(g.size, rows[u])
        )
        assert result.log_evidence[u] == pytest.approx(evidence, rel=1e-11)
        assert result.path_entropy[u] == pytest.approx(bits, rel=1e-11)
        assert result.viterbi[u].tolist() == path
        for t in range(T):
            assert (
                result.map[u, t] == smoothed[t].argmax()
                and result.online_map[u, t] == filtered[t].argmax()
            )
            for p, guess, error in (
                (filtered[t], result.online_bayes, result.online_error),
                (smoothed[t], result.bayes, result.expected_error),
            ):
                x, f = naive.guess_dense(xy, p, np.arange(g.size))
                assert guess[u, t] == x
                assert error[u, t] == pytest.approx(f, rel=1e-11)
        for t in (0, 9, T - 1):
            assert result.filtered(u, t) == pytest.approx(filtered[t], rel=1e-10, abs=1e-15)
            assert result.posterior(u, t) == pytest.approx(smoothed[t], rel=1e-10, abs=1e-15)


def test_filtering_equals_the_stream_that_released():
    """The releaser's own belief, by its own kernels: likelihoods from the certified matrix of
    each step's repaired policy."""
    g = pf.Grid(6, 6, cell_km=0.5)
    model = pf.MobilityModel.fit(g, np.zeros((1, 1), np.int64), unseen="neighbours8")
    stream = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=1.0, rng=4).start(3)
    truth = np.array([[7, 8, -1, 15], [-1, 30, 24, 25], [14, 20, 21, 21]])
    rows, beliefs, released = [[], [], []], [], []
    for t in range(4):
        step = stream.step(truth[:, t])
        for u in range(3):
            row = None
            if truth[u, t] >= 0:
                m = pf.PPIM(stream.policy(u), epsilon=1.0, domain=stream.domain(u))
                z = int(step.released[u])
                outputs, P = m.matrix(z, log=True)
                column = P[:, outputs.tolist().index(z)]
                row = {int(c): float(v) for c, v in zip(outputs, column, strict=True)}
            rows[u].append(row)
        beliefs.append([stream.posterior(u) for u in range(3)])
        released.append(step.released)
    evidence = pack(model, make_priors(model, None, 3), [0] * 4, rows, np.stack(released, axis=1))
    result = pf.attack(evidence, truth)
    for u in range(3):
        for t in range(4):
            if result.bayes[u, t] >= 0:
                assert result.filtered(u, t) == pytest.approx(beliefs[t][u], rel=1e-9, abs=1e-14)
    assert result.lift[0, 0] <= np.log(36) + 1e-9  # nobody can be surer than sure


# The best guess


def guess_of(locations, p):
    """(bayes, expected error, online bayes, online error) where p is all that is known."""
    model = pf.MobilityModel(locations, scipy.sparse.eye_array(locations.size))
    row = {int(c): 0.0 for c in np.flatnonzero(p)}
    result = pf.attack(pack(model, make_priors(model, p / p.sum(), 1), [0], [[row]]))
    return (
        result.bayes[0, 0],
        result.expected_error[0, 0],
        result.online_bayes[0, 0],
        result.online_error[0, 0],
    )


def random_mass(rng, g, kind):
    """Masses of every shape: scattered, lines, symmetric squares, all but one tiny, the whole
    map."""
    p = np.zeros(g.size)
    if kind == 0:
        at = rng.choice(g.size, min(g.size, int(rng.integers(1, 8))), replace=False)
        p[at] = rng.random(len(at)) + 0.01
    elif kind == 1:  # equal weights on a row: everything between the two middle ones ties
        at = rng.integers(g.rows) * g.cols + rng.choice(
            g.cols, min(g.cols, 2 * int(rng.integers(1, 4))), replace=False
        )
        p[at] = 1
    elif kind == 2:  # four corners of a box
        (r0, r1), (c0, c1) = (
            np.sort(rng.integers(0, g.rows, 2)),
            np.sort(rng.integers(0, g.cols, 2)),
        )
        p[[r0 * g.cols + c0, r0 * g.cols + c1, r1 * g.cols + c0, r1 * g.cols + c1]] = 1
    elif kind == 3:
        p[rng.integers(g.size)] = 1
        p += 10.0 ** rng.uniform(-30, -5) * rng.random(g.size)
    elif kind == 4:
        p += rng.random(g.size) ** 8
    else:
        p += 1
    return p / p.sum()


@pytest.mark.parametrize("kind", range(6))
def test_the_best_guess_on_a_grid_is_the_argmin_over_all_cells(kind):
    """Would catch a bound that rules out too much, a tie to a higher index, dx and dy mixed up,
    a guess kept to the support."""
    rng = np.random.default_rng(kind)
    for _ in range(20 if numba.config.DISABLE_JIT else 60):
        rows, cols = rng.integers(1, 8 if numba.config.DISABLE_JIT else 14, 2)
        g = pf.Grid(
            int(rows), int(cols), cell_km=(*SCALES, (0.3, 0.7), (3.0, 5.0))[rng.integers(5)]
        )
        p = random_mass(rng, g, kind)
        x, f = naive.guess_dense(g.xy(np.arange(g.size)), p, np.arange(g.size))
        bayes, error, online, online_error = guess_of(g, p)
        assert bayes == online == x
        assert (error, online_error) == pytest.approx((f, f), rel=1e-12, abs=1e-300)


def test_the_best_guess_among_points_is_the_argmin_over_the_support():
    rng = np.random.default_rng(0)
    for _ in range(10 if numba.config.DISABLE_JIT else 100):
        n = int(rng.integers(1, 30))
        sites = rng.choice(100, n, replace=False)
        points = pf.Points(
            np.stack([sites % 10, sites // 10], axis=1).astype(float), resolution_km=1.0
        )
        p = (
            rng.random(n) * (rng.random(n) < 0.6)
            if rng.integers(2)
            else (rng.random(n) < 0.5).astype(float)
        )
        p[rng.integers(n)] += 0.5
        p /= p.sum()
        x, f = naive.guess_dense(np.asarray(points.xy), p, np.flatnonzero(p))
        bayes, error, online, online_error = guess_of(points, p)
        assert bayes == online == x
        assert (error, online_error) == pytest.approx((f, f), rel=1e-12, abs=1e-300)


def test_a_guess_may_lie_where_the_user_cannot_be():
    """The middle of three corners: would catch a search kept to the support of a grid."""
    g = pf.Grid(5, 5)
    p = np.zeros(25)
    p[[0, 4, 20, 24]] = 0.25
    assert guess_of(g, p)[0] == 12


# Estimators side by side


def walk_case(seed=0, users=30, T=12, missing=0.2):
    """Random walks on a 9 x 8 map, released within two cells, likelihoods to match; several
    users start late."""
    rng = np.random.default_rng(seed)
    g = pf.Grid(9, 8, cell_km=(0.5, 0.4))
    model = pf.MobilityModel.fit(g, np.zeros((1, 1), np.int64), unseen="neighbours8")
    A, xy = model.matrix().toarray(), g.xy(np.arange(g.size))
    d = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    emit = np.where(d < 1.1, np.exp(-d), 0)
    emit /= emit.sum(axis=1, keepdims=True)
    truth, released, rows = np.empty((users, T), np.int32), np.full((users, T), -1, np.int32), []
    for u in range(users):
        s, mine = rng.integers(g.size), []
        for t in range(T):
            s = rng.choice(g.size, p=A[s]) if t else s
            truth[u, t] = s
            if rng.random() < missing:
                mine.append(None)
                continue
            z = released[u, t] = rng.choice(g.size, p=emit[s])
            mine.append({int(c): float(np.log(emit[c, z])) for c in np.flatnonzero(emit[:, z])})
        rows.append(mine)
    return pack(
        model, make_priors(model, np.full(g.size, 1 / g.size), users), [0] * T, rows, released
    ), truth


def test_no_estimator_beats_the_bayesian_in_expected_error():
    """At every step of every user, for all estimators and for random guesses; and so in the
    table."""
    evidence, truth = walk_case()
    result = pf.attack(evidence, truth)
    known, best = result.bayes >= 0, result.expected_error
    rng = np.random.default_rng(1)
    others = [
        *result.errors.values(),
        *(result.expected(rng.integers(0, 72, known.shape)) for _ in range(5)),
    ]
    others.append(result.expected(result.no_release()))
    for error in others:
        assert (error[known] >= best[known] * (1 - 1e-12)).all()
    assert np.array_equal(result.errors["bayes"], best, equal_nan=True)
    for steps in ("released", "all"):
        table = result.table(steps=steps)
        assert [r.estimator for r in table] == [*result.errors, "no release"]
        assert all(row.expected_km >= table["bayes"].expected_km for row in table)
        assert table.privacy_km == table["bayes"].expected_km
    assert (best[known] <= result.errors["released"][known]).all() and (
        best[known] < result.errors["released"][known]
    ).any()


def test_headlines_tell_what_is_expected_beside_what_was_measured():
    """A model of people who stay, attacked with people who move: it calls most true locations
    impossible, and what it expects (0 km) is not what is so."""
    g = pf.Grid(6, 6, cell_km=1.0)
    staying = pf.MobilityModel.fit(g, [[0, 0], [1, 1], [6, 6], [7, 7]])
    T = pf.TraceReleaser(pf.blocks(g, 2), staying, epsilon=1.0, rng=0)
    truth = np.array([[0, 1, 2, 3, 9], [7, 7, 7, 7, 7]])
    R = T.run(truth, evidence=True)
    table = pf.attack(R, truth).table()
    evidence = R.evidence
    ruled_out = evidence.as_given(evidence.ruled_out(evidence.at_rows(truth)), False)
    assert np.array_equal(ruled_out, R.surrogate) and R.surrogate.sum() == 3
    assert table.ruled_out == R.surrogate.mean()
    text = str(table)
    best, release = table["bayes"], table["released"]
    assert best.error_km > 1.5 * best.expected_km
    assert f"expected {best.expected_km:.3f} km; measured {best.error_km:.3f} [" in text
    assert f"expected {release.expected_km:.3f} km; measured {table.utility_km:.3f} [" in text
    assert "WARNING: the model called 30% of the true locations impossible" in text
    blind = pf.attack(R).table()
    assert np.isnan(blind.ruled_out) and "WARNING" not in str(blind)
    assert str(blind).count("not measured: no true places") == 2
    at_home = pf.attack(T.run(truth[1:], evidence=True), truth[1:]).table()
    assert at_home.ruled_out == 0 and "WARNING" not in str(at_home)


def test_a_lift_is_told_in_numbers_that_mean_something():
    """ "ln lift at most 686" says nothing to anybody: a place of prior 1e-298 became likely."""
    g = pf.Grid(3, 3, cell_km=1.0)
    M = np.full((9, 9), 1 / 9)
    T = pf.TraceReleaser(pf.complete(g), pf.MobilityModel(g, M), epsilon=1.0, rng=0)
    walk = np.zeros((1, 3), int)
    plain = pf.attack(T.run(walk, evidence=True)).table()
    most = f"{np.exp(plain.lift):.3g} times"
    assert f"none more than {most}" in str(plain) and np.exp(plain.median_lift) < np.e
    assert lifts(np.log(3.14159), np.log(20537.0)) == (
        "the median release makes some place 3.14 times as likely as before, none more than 20,500 "
        "times"
    )
    prior = np.full(9, 1e-298)
    prior[8] = 1 - 8e-298
    blocks = pf.TraceReleaser(pf.blocks(g, 2), pf.MobilityModel(g, M), epsilon=1.0, rng=0)
    far = pf.attack(blocks.run(walk, prior, evidence=True)).table()
    assert far.lift > 600 and "e+" not in str(far)
    assert "a place likely that the model had called all but impossible" in str(far)


def test_expected_errors_are_means_of_distances_under_the_posterior():
    evidence, truth = walk_case(users=6)
    result = pf.attack(evidence)
    g = evidence.model.locations
    last = result.released.copy()
    for t in range(1, last.shape[1]):
        last[:, t] = np.where(last[:, t] < 0, last[:, t - 1], last[:, t])
    guesses = dict(
        zip(
            result.errors,
            (
                last,
                result.map,
                result.viterbi,
                result.bayes,
                result.online_map,
                result.online_bayes,
            ),
            strict=True,
        )
    )
    for u, t in np.argwhere(result.bayes >= 0):
        p = result.posterior(u, t)
        for name, cells in guesses.items():
            ref = p @ g.distance(np.arange(g.size), np.full(g.size, cells[u, t]))
            assert result.errors[name][u, t] == pytest.approx(ref, rel=1e-12)
        assert result.expected(truth)[u, t] == pytest.approx(
            p @ g.distance(np.arange(g.size), [truth[u, t]]), rel=1e-12
        )
    assert np.isnan(result.expected(np.full_like(truth, -1))).all()


def test_the_table_compares_with_the_truth():
    """Means, hits and intervals against the textbook, where every user has as many steps; steps
    of unknown truth are left out."""
    evidence, truth = walk_case(users=12, T=6, missing=0.0)
    result = pf.attack(evidence, truth)
    g = evidence.model.locations
    table = result.table(confidence=0.9)
    guesses = (
        result.released,
        result.map,
        result.viterbi,
        result.bayes,
        result.online_map,
        result.online_bayes,
    )
    for row, cells in zip(table, (*guesses, result.no_release()), strict=True):
        for value, interval, numbers in (
            (
                row.error_km,
                row.error_interval,
                g.distance(cells.ravel(), truth.ravel()).reshape(truth.shape),
            ),
            (row.hit_rate, row.hit_interval, cells == truth),
            (row.expected_km, row.expected_interval, result.expected(cells)),
        ):
            mean, error = naive.clustered_mean(numbers.astype(float).tolist())
            half = student.ppf(0.95, 11) * error
            assert value == pytest.approx(mean, rel=1e-12)
            low, high = (
                (mean - half, mean + half)
                if numbers.dtype != bool
                else (max(mean - half, 0), min(mean + half, 1))
            )
            assert interval == pytest.approx((low, high), rel=1e-9)
    assert (table.utility_km, table.utility_interval) == (
        table["released"].error_km,
        table["released"].error_interval,
    )
    assert (table.users, table.steps, table.confidence) == (12, 72, 0.9)
    assert table.entropy_bits == pytest.approx(result.entropy.mean())
    assert table.lift == result.lift.max()
    assert table.median_lift == np.median(result.lift)
    text = str(table)
    assert all(
        name in text
        for name in (*result.errors, "no release", "utility", "privacy", "90% intervals")
    )

    partly = truth.copy()
    partly[0], partly[1, 3:] = -1, -1
    few = result.table(partly, no_release=False)
    kept = partly >= 0
    assert (few.users, few.steps, len(few.rows)) == (11, 63, 6)
    assert few["bayes"].expected_km == pytest.approx(result.expected_error[kept].mean())
    assert few["map"].hit_rate == pytest.approx((result.map == truth)[kept].mean())

    blind = pf.attack(evidence).table(no_release=False)
    assert np.isnan(blind["bayes"].error_km) and np.isnan(blind["bayes"].hit_interval[0])
    assert blind.utility_km == blind["released"].expected_km
    assert "-" in str(blind)
    with pytest.raises(InvalidParameter, match="estimator must be one of"):
        table["median"]


def test_the_table_counts_steps_without_release_only_when_told():
    evidence, truth = walk_case(users=8)
    result = pf.attack(evidence, truth)
    released, every = result.table(no_release=False), result.table(no_release=False, steps="all")
    assert (
        released.steps == (evidence.released >= 0).sum() < every.steps == (result.bayes >= 0).sum()
    )
    assert every["bayes"].expected_km == pytest.approx(
        result.expected_error[result.bayes >= 0].mean()
    )
    assert every.utility_km == released.utility_km  # there is no release to be off elsewhere
    one = pf.attack(part(evidence, [3]), truth[3:4]).table(no_release=False)
    assert np.isnan(one["bayes"].expected_interval[0]) and "nan" not in str(one)
    nobody = pf.attack(part(evidence, []), truth[:0]).table()
    assert nobody.steps == 0 and np.isnan(nobody.privacy_km)


@large
def test_expected_and_realised_errors_agree_where_the_model_is_right():
    """Walks and releases drawn from the very model: the mean difference of expected and realised
    error is 0 but for chance. Would catch a posterior that is too sure, whatever the oracles
    say."""
    evidence, truth = walk_case(seed=5, users=600)
    result = pf.attack(evidence, truth)
    g, known = evidence.model.locations, result.bayes >= 0
    user = np.nonzero(known)[0]
    for name, cells in (
        ("map", result.map),
        ("viterbi", result.viterbi),
        ("bayes", result.bayes),
        ("online bayes", result.online_bayes),
    ):
        difference = result.errors[name][known] - g.distance(cells[known], truth[known])
        per_user = np.bincount(user, difference, 600)
        assert abs(per_user.mean()) <= 4 * per_user.std() / np.sqrt(600), name


def test_guesses_without_any_release():
    """The prior alone, from each user's first release on, by the period of each step: against
    dense products."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        evidence, known = random_case(rng, users=4)
        result = pf.attack(evidence)
        guesses = result.no_release()
        locations = evidence.model.locations
        xy = np.asarray(locations.xy(np.arange(locations.size)))
        for u, (prior, matrices, _) in enumerate(known):
            seen = result.bayes[u] >= 0
            first = int(seen.argmax()) if seen.any() else len(seen)
            assert (guesses[u, :first] == -1).all()
            if seen.any():
                for t, p in enumerate(naive.unseen(prior, matrices[first:]), first):
                    candidates = (
                        np.arange(len(p)) if isinstance(locations, pf.Grid) else np.flatnonzero(p)
                    )
                    assert guesses[u, t] == naive.guess_dense(xy, p, candidates)[0]


def test_a_prior_that_moves_and_then_settles():
    """Everybody walks east and stays at the end: would catch a settled guess that is taken from
    the wrong step."""
    g = pf.Grid(1, 5)
    model = pf.MobilityModel(g, np.eye(5, k=1) + np.diag([0, 0, 0, 0, 1.0]))
    priors = make_priors(model, "point", 2)
    evidence = pack(
        model,
        Priors(priors.rows, np.array([1, 3]), True),
        [0] * 6,
        [[{1: 0.0}] + [None] * 5, [None, {3: 0.0}] + [None] * 4],
    )
    result = pf.attack(evidence)
    assert result.no_release().tolist() == [[1, 2, 3, 4, 4, 4], [-1, 3, 4, 4, 4, 4]]
    assert result.no_release().tolist() == result.viterbi.tolist()


def test_a_stationary_prior_keeps_its_guess():
    evidence, _ = walk_case(users=3)
    model = evidence.model
    evidence = replace(evidence, priors=make_priors(model, None, 3))
    guesses = pf.attack(evidence).no_release()
    p, xy = model.stationary(), model.locations.xy(np.arange(72))
    assert set(guesses[guesses >= 0]) == {naive.guess_dense(xy, p, np.arange(72))[0]}


# The same whatever the batch


def same(a, b, users=slice(None)):
    for f in fields(pf.Attack):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if isinstance(x, np.ndarray) and f.name != "truth":
            assert np.array_equal(x[users], y, equal_nan=x.dtype.kind == "f"), f.name
    for name in a.errors:
        assert np.array_equal(a.errors[name][users], b.errors[name], equal_nan=True)


def test_results_do_not_depend_on_batches_or_threads():
    """Bit for bit: would catch work space that one user leaves dirty for the next, and threads
    that share it."""
    evidence, _ = walk_case(users=40, T=9)
    before = pf.get_num_threads()
    try:
        pf.set_num_threads(1)
        whole = pf.attack(evidence)
        unseen, judged = whole.no_release(), whole.expected(whole.map)
        for threads in (2, 5):
            pf.set_num_threads(threads)
            other = pf.attack(evidence)
            same(whole, other)
            assert np.array_equal(unseen, other.no_release())
            assert np.array_equal(judged, other.expected(whole.map), equal_nan=True)
    finally:
        pf.set_num_threads(before)
    order = np.random.default_rng(0).permutation(40)
    same(whole, pf.attack(part(evidence, order)), order)
    for u in range(0, 40, 7):
        same(whole, pf.attack(part(evidence, [u])), [u])


def test_nothing_to_attack():
    evidence, _ = walk_case(users=4, T=3)
    model = evidence.model
    silent = pack(model, make_priors(model, "point", 2), [0, 0], [[None, None], [None, None]])
    result = pf.attack(silent)
    assert (
        (result.bayes == -1).all()
        and np.isnan(result.entropy).all()
        and (result.log_evidence == 0).all()
    )
    assert result.table().steps == 0 and (result.no_release() == -1).all()
    for n, T in ((0, 3), (2, 0), (0, 0)):
        empty = pack(
            model,
            make_priors(model, None, n),
            [0] * T,
            [[None] * T] * n,
            np.full((n, T), -1, np.int32),
        )
        assert pf.attack(empty).bayes.shape == (n, T)
    assert "2 users, 2 steps" in repr(result)


def test_arrays_that_cannot_be_written_to():
    evidence, _ = walk_case(users=3, T=3)
    for name in ("cycle", "first", "steps", "released", "start", "cells", "logs"):
        getattr(evidence, name).setflags(write=False)
    assert pf.attack(evidence).bayes.shape == (3, 3)


# What is refused


def test_what_is_not_evidence_is_refused():
    evidence, truth = walk_case(users=4, T=5, missing=0.3)
    row = int(np.flatnonzero(np.diff(evidence.start) > 1)[2])
    where = f"user {evidence.person[row]} at step {evidence.steps[row]}"
    at, n = evidence.start[row], len(evidence.released)

    def changed(name, place, value):
        array = getattr(evidence, name).copy()
        array[place] = value
        return replace(evidence, **{name: array})

    swapped = evidence.cells[[at + 1, at]]
    second = int(evidence.first[1])
    for bad, message in (
        (changed("cells", at, -1), f"{where} has a cell that is not on the map"),
        (changed("cells", at + 1, 72), f"{where} has a cell that is not on the map"),
        (changed("cells", [at, at + 1], swapped), f"{where} has cells that do not ascend"),
        (changed("logs", at, np.nan), f"{where} has a logarithm that is NaN"),
        (changed("logs", at, np.inf), f"{where} has a logarithm that is NaN or"),
        (changed("released", 0, 72), f"user 0 released 72 at step {evidence.steps[0]}"),
        (changed("start", 3, -5), "start must ascend"),
        (changed("cycle", 0, 1), r"cycle must be numbers in 0\.\.0, at least one"),
        (replace(evidence, cycle=np.empty(0, np.int64)), "cycle must be numbers"),
        (replace(evidence, cycle=np.zeros((1, 1), int)), "cycle must be a 1-d array"),
        (replace(evidence, cycle=np.zeros(1)), "cycle must be integers"),
        (changed("first", 1, n + 1), f"first must ascend from 0 to {n}"),
        (replace(evidence, first=evidence.first[:0]), "first must ascend"),
        (changed("steps", second + 1, evidence.steps[second]), "steps of user 1 must ascend"),
        (changed("steps", n - 1, 5), r"user 3 has step 5: steps are 0\.\.4"),
        (replace(changed("steps", 0, -1), shape=None), "user 0 has step -1"),
        (replace(evidence, steps=evidence.steps[:-1]), f"{n - 1} steps but {n} rows"),
        (replace(evidence, shape=(3, 5)), "shape says 3 users, there are 4"),
        (replace(evidence, start=evidence.start[:-1]), f"start must have {n + 1} entries"),
        (replace(evidence, logs=evidence.logs[:-1]), "cells but"),
        (replace(evidence, released=evidence.released[None]), "released must be a 1-d array"),
        (replace(evidence, order=np.arange(n)), "order must be a permutation"),
        (replace(evidence, shape=None, order=np.zeros(n, int)), "order must be a permutation"),
        (
            replace(evidence, priors=replace(evidence.priors, of=np.array([0, 0, 0, 1]))),
            "priors.of must be 4 row numbers in 0..0",
        ),
        (
            replace(evidence, priors=replace(evidence.priors, of=np.zeros(3, np.int64))),
            "priors.of must be 4",
        ),
        (truth, "must be an Evidence, got ndarray"),
    ):
        with pytest.raises(InvalidEvidence, match=message):
            pf.attack(bad)
    silent, made = (
        np.flatnonzero(mask)[-1] for mask in (evidence.released < 0, evidence.released >= 0)
    )
    for r, cell, what in (
        (silent, 3, "no location that it is possible from"),
        (made, -1, "a row of likelihoods, but no release"),
    ):
        u, t = evidence.person[r], evidence.steps[r]
        with pytest.raises(InvalidEvidence, match=f"user {u} has {what} at step {t}"):
            pf.attack(changed("released", r, cell))
    late = replace(evidence, first=np.array([0, *evidence.first[2:], n]), shape=None)
    late = replace(late, first=np.array([0, silent, n]), steps=np.arange(n), shape=None)
    with pytest.raises(InvalidEvidence, match=r"the first row of user 1 \(step \d+\) is silent"):
        pf.attack(late)


def test_arrays_that_are_not_of_one_run_are_refused():
    model = pf.MobilityModel(pf.Grid(1, 2), np.eye(2))
    priors, one = make_priors(model, None, 1), np.ones(1)
    with pytest.raises(InvalidEvidence, match=r"one shape \(users, T\), got \(1, 2\) and \(2,\)"):
        Evidence.of_array(model, priors, [0], np.zeros((1, 2)), np.ones(2), one, one)
    with pytest.raises(InvalidEvidence, match="user 0 has a row of likelihoods, but no release"):
        Evidence.of_array(model, priors, [0], np.array([[-1, 0]]), np.ones((1, 2)), one, one)


def test_bad_questions_are_refused():
    evidence, truth = walk_case(users=4, T=5, missing=0.5)
    with pytest.raises(InvalidParameter, match=r"truth must have shape \(4, 5\)"):
        pf.attack(evidence, truth[:3])
    with pytest.raises(InvalidParameter, match="truth has 72 for user 2 at step 1"):
        pf.attack(evidence, np.where(np.arange(20).reshape(4, 5) == 11, 72, truth))
    with pytest.raises(InvalidLocation, match="integers"):
        pf.attack(evidence, truth.astype(float))
    result = pf.attack(evidence)
    u = int(np.flatnonzero(result.bayes[:, 0] < 0)[0])
    for call in (result.posterior, result.filtered):
        with pytest.raises(InvalidParameter, match=f"user {u} has not released anything by step 0"):
            call(u, 0)
        with pytest.raises(InvalidParameter, match=r"u must be an integer in 0\.\.3"):
            call(4, 0)
        with pytest.raises(InvalidParameter, match="t must be"):
            call(0, 5)
    with pytest.raises(InvalidParameter, match="steps must be one of"):
        result.table(steps="some")
    with pytest.raises(InvalidParameter, match="confidence must be between"):
        result.table(confidence=1.0)
    with pytest.raises(InvalidParameter, match=r"guesses must have shape \(4, 5\)"):
        result.expected(truth[0])


def test_priors_need_not_be_made_by_hand():
    """Several users may share one of several priors: would catch a prior that is looked up by
    user instead of by row."""
    g = pf.Grid(1, 3)
    model = pf.MobilityModel(g, np.full((3, 3), 1 / 3))
    cells, logs = np.array([0, 1, 2], np.int32), np.log([0.25, 0.75, 1.0])
    rows = Rows(np.array([0, 2, 3]), cells, logs)
    all_open = {0: 0.0, 1: 0.0, 2: 0.0}
    evidence = pack(model, Priors(rows, np.array([1, 0, 0]), False), [0], [[all_open]] * 3)
    result = pf.attack(evidence)
    assert result.map[:, 0].tolist() == [2, 1, 1]
    assert result.posterior(2, 0) == pytest.approx([0.25, 0.75, 0])
