"""Attacks on events: gaps of any length between the rows of a person, against every path there is,
against dense recursions, and against the same traces step by step."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

import naive_attacks as naive
import pglp_fast as pf
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.priors import make_priors
from pglp_fast.errors import InvalidEvidence, InvalidParameter

NEAR = {"rel": 1e-10, "abs": 1e-11}


def stochastic(rng, shape, density):
    A = (rng.random(shape) < density) * (rng.random(shape) + 0.05)
    A[..., np.arange(shape[-1]), (np.arange(shape[-1]) + 1) % shape[-1]] += 0.1
    return A / A.sum(axis=-1, keepdims=True)


def pack(model, prior, cycle, traces, shuffle=None):
    """Evidence of traces[u] = {step: {location: ln Pr(z | s)}}; events come shuffled if told."""
    at = [(10 * u + 3, t) for u, trace in enumerate(traces) for t in trace]
    order = np.arange(len(at)) if shuffle is None else shuffle.permutation(len(at))
    persons, steps = np.array(at)[order].T
    events = pf.Events(persons, steps, np.zeros(len(at), int))
    rows = [trace[t] for trace in traces for t in sorted(trace)]
    lengths = np.array([len(row) for row in rows])
    cells = np.array([c for row in rows for c in sorted(row)], np.int32)
    logs = np.array([row[c] for row in rows for c in sorted(row)], float)
    released = np.array([min(row) for row in rows])
    priors = make_priors(model, prior, len(traces))
    how = events, model, priors, cycle, released, lengths, cells, logs
    return Evidence.of_events(*how), events


def random_trace(rng, prior, A, cycle, steps, gap):
    """{step: {location: ln Pr(z | s)}} that some path fits."""
    n, out = len(prior), {}
    true = rng.choice(n, p=prior)
    for t in range(steps[0], steps[-1] + 1):
        if t > steps[0]:
            true = rng.choice(n, p=A[cycle[(t - 1) % len(cycle)], true])
        if t in steps:
            cells = {int(true)} | set(np.flatnonzero(rng.random(n) < 0.6).tolist())
            out[t] = {c: float(-gap * rng.exponential()) for c in cells}
    return out


@pytest.mark.parametrize("seed", range(24))
def test_everything_equals_the_enumeration_of_all_paths(seed):
    """Would catch a move too many or too few, a matrix of another step, a Viterbi path that
    forgets the steps of a gap, and results that are not beside their events."""
    rng = np.random.default_rng(seed)
    n, P = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    A = stochastic(rng, (P, n, n), (0.3, 0.7)[seed % 2])
    cycle = rng.integers(0, P, int(rng.integers(1, 4)))
    model = pf.MobilityModel(pf.Grid(1, n, cell_km=0.5), A)
    prior = rng.dirichlet(np.ones(n), 2)
    gap = (1.0, 3000.0)[seed % 3 == 0]
    times = [np.sort(rng.choice(8, k, replace=False) + 5).tolist() for k in (1 + seed % 3, 3)]
    traces = [random_trace(rng, p, A, cycle, t, gap) for p, t in zip(prior, times, strict=True)]
    evidence, events = pack(model, prior, cycle, traces, rng)
    result = pf.attack(evidence)
    xy = model.locations.xy(np.arange(n))
    assert result.bayes.shape == (len(events),)
    for u, trace in enumerate(traces):
        steps = sorted(trace)
        every = naive.every_step(steps, [trace[t] for t in steps], cycle, A)
        paths = naive.Paths(prior[u], *every)
        assert result.log_evidence[u] == pytest.approx(paths.log_evidence(), **NEAR)
        assert result.path_entropy[u] == pytest.approx(paths.path_entropy(), **NEAR)
        path = paths.viterbi()
        for t in steps:
            (e,) = np.flatnonzero((events.persons == 10 * u + 3) & (events.steps == t))
            at = t - steps[0]
            smoothed, filtered = paths.smoothed(at), paths.filtered(at)
            assert result.posterior(u, t) == pytest.approx([float(x) for x in smoothed], **NEAR)
            assert result.filtered(u, t) == pytest.approx([float(x) for x in filtered], **NEAR)
            assert result.viterbi[e] == path[at]
            assert result.map[e] == naive.most_likely(smoothed)
            assert result.online_map[e] == naive.most_likely(filtered)
            assert result.entropy[e] == pytest.approx(naive.entropy_bits(smoothed), **NEAR)
            assert result.lift[e] == pytest.approx(paths.lift(at), **NEAR)
            x, f = naive.guess(xy, [float(v) for v in smoothed], np.arange(n))
            assert result.bayes[e] == x
            assert result.expected_error[e] == pytest.approx(f, **NEAR)
            assert result.released[e] == min(trace[t])


def chains():
    """Name -> (matrices, cycle): what gaps must cope with."""
    rng = np.random.default_rng(7)
    n = 6
    ring = 0.5 * (np.eye(n, k=1) + np.eye(n, k=-1))
    ring[0, -1] = ring[-1, 0] = 0.5
    leaky = np.diag([0.5, 0.9, 0, 0, 0, 1.0]) + np.diag([0.5, 0.1, 0, 0, 0], 1)
    leaky[2:5, 2:5] = rng.dirichlet(np.ones(3), 3)
    both = stochastic(rng, (3, n, n), 0.4)
    return {
        "mixes": (both[:1], [0]),
        "period 2": (ring[None], [0]),
        "turns round": (np.roll(np.eye(n), 1, axis=1)[None], [0]),
        "several matrices": (both, [0, 0, 2, 1, 2]),
        "classes that are left for ever": (leaky[None], [0]),
    }


@pytest.mark.parametrize("name", chains())
def test_long_gaps_equal_dense_recursions(name):
    """Hundreds of moves, most of which are skipped where the chain settles: would catch a window
    that is none, an odd rest, an entropy that stops growing, and mass lost to underflow."""
    A, cycle = chains()[name]
    rng = np.random.default_rng(3)
    n, model = 6, pf.MobilityModel(pf.Grid(2, 3, cell_km=0.5), A)
    prior = np.full(n, 1 / n)
    for steps in ([4, 5, 406, 407], [0, 301, 1002], [2, 130, 131, 388]):
        trace = random_trace(rng, prior, A, cycle, steps, 2.0)
        evidence, _ = pack(model, prior, cycle, [trace])
        result = pf.attack(evidence)
        matrices, rows = naive.every_step(steps, [trace[t] for t in steps], cycle, A)
        dense = np.ones((len(rows), n), np.longdouble)
        for row, said in zip(dense, rows, strict=True):
            if said is not None:
                row[:] = 0
                row[list(said)] = np.exp(np.array(list(said.values()), np.longdouble))
        filtered, smoothed, path, bits, log_evidence = naive.dense_chain(prior, matrices, dense)
        assert result.log_evidence[0] == pytest.approx(log_evidence, **NEAR)
        assert result.path_entropy[0] == pytest.approx(bits, **NEAR)
        for k, t in enumerate(steps):
            at = t - steps[0]
            assert result.posterior(0, t) == pytest.approx(smoothed[at], **NEAR)
            assert result.filtered(0, t) == pytest.approx(filtered[at], **NEAR)
            if name != "turns round" and name != "period 2":  # there many paths are as likely
                assert result.viterbi[k] == path[at]


def walks(rng, users=25, T=14, missing=0.4):
    """Dense evidence of walks on a grid, each ending in a release, and the truth."""
    g = pf.Grid(7, 6, cell_km=(0.5, 0.4))
    A = stochastic(rng, (2, 42, 42), 0.12)
    model, cycle = pf.MobilityModel(g, A), [0, 1, 1]
    truth, rows = np.empty((users, T), np.int32), []
    for u in range(users):
        s, mine = rng.integers(42), []
        for t in range(T):
            s = rng.choice(42, p=A[cycle[(t - 1) % 3], s]) if t else s
            truth[u, t] = s
            if rng.random() < missing and t < T - 1:
                mine.append(None)
                continue
            cells = {int(s)} | set(rng.choice(42, 5).tolist())
            mine.append({c: float(-rng.exponential()) for c in cells})
        rows.append(mine)
    flat = [row for user in rows for row in user]
    lengths = np.array([len(row or ()) for row in flat]).reshape(users, T)
    said = [(c, row[c]) for row in flat if row for c in sorted(row)]
    cells, logs = np.array([c for c, _ in said], np.int32), np.array([x for _, x in said])
    released = np.array([min(row) if row else -1 for row in flat]).reshape(users, T)
    priors = make_priors(model, np.full(42, 1 / 42), users)
    return Evidence.of_array(model, priors, cycle, released, lengths, cells, logs), truth


def events_of(dense):
    """The same releases as events."""
    kept = dense.released >= 0
    events = pf.Events(dense.person[kept], dense.steps[kept], dense.released[kept])
    return Evidence.of_events(
        events, dense.model, dense.priors, dense.cycle, dense.released[kept],
        np.diff(dense.start)[kept], dense.cells, dense.logs,
    )  # fmt: skip


def test_events_say_what_the_same_traces_say_step_by_step():
    """Silent steps as rows, or as gaps: would catch a gap that differs from its steps in guesses,
    errors, tables, guesses without release, or threads."""
    dense, truth = walks(np.random.default_rng(0))
    sparse = events_of(dense)
    at = dense.as_given(dense.released, -1) >= 0
    a, b = pf.attack(dense, truth), pf.attack(sparse, truth[at])
    for name in ("bayes", "map", "viterbi", "online_bayes", "online_map", "released"):
        assert np.array_equal(getattr(a, name)[at], getattr(b, name)), name
    for name in ("expected_error", "entropy", "lift", "online_error", "online_entropy"):
        assert getattr(b, name) == pytest.approx(getattr(a, name)[at], **NEAR), name
    assert b.path_entropy == pytest.approx(a.path_entropy, **NEAR)
    assert b.log_evidence == pytest.approx(a.log_evidence, **NEAR)
    assert np.array_equal(b.no_release(), a.no_release()[at])
    guesses = np.arange(at.sum()) % 42
    placed = np.full(at.shape, -1)
    placed[at] = guesses
    assert b.expected(guesses) == pytest.approx(a.expected(placed)[at], **NEAR)
    assert str(a.table()) == str(b.table())
    assert "25 users" in repr(b)
    assert "events" in repr(b)
    before = pf.get_num_threads()
    try:
        pf.set_num_threads(1)
        alone = pf.attack(sparse)
    finally:
        pf.set_num_threads(before)
    assert np.array_equal(alone.expected_error, b.expected_error)


def test_a_row_without_release_after_a_gap():
    """Rows may say nothing: the posterior there is what the moves give."""
    dense, _ = walks(np.random.default_rng(1), users=6)
    silent = np.flatnonzero(dense.released < 0)
    # every second silent row becomes part of a gap
    kept = np.ones(len(dense.released), bool)
    kept[silent[::2]] = False
    fewer = replace(
        dense,
        first=np.concatenate([[0], np.cumsum(np.bincount(dense.person[kept], minlength=6))]),
        steps=dense.steps[kept],
        released=dense.released[kept],
        start=np.concatenate([[0], np.cumsum(np.diff(dense.start)[kept])]),
        shape=None,
    )
    a, b = pf.attack(dense), pf.attack(fewer)
    whole = {name: dense.at_rows(getattr(a, name))[kept] for name in ("bayes", "viterbi", "lift")}
    assert np.array_equal(b.bayes, whole["bayes"])
    assert np.array_equal(b.viterbi, whole["viterbi"])
    assert b.lift == pytest.approx(whole["lift"], **NEAR)
    assert b.path_entropy == pytest.approx(a.path_entropy, **NEAR)


def test_releases_without_a_path_name_person_and_step():
    model = pf.MobilityModel(pf.Grid(1, 3), np.eye(3))
    traces = [{0: {0: 0.0}, 9: {0: 0.0}}, {4: {0: 0.0}, 90: {1: 0.0}}]
    evidence, _ = pack(model, np.full(3, 1 / 3), [0], traces)
    with pytest.raises(InvalidEvidence, match=r"user 1 up to step 90 have probability 0.*1 users"):
        pf.attack(evidence)


def test_bad_questions_about_events_are_refused():
    model = pf.MobilityModel(pf.Grid(1, 3), np.full((3, 3), 1 / 3))
    evidence, _ = pack(model, np.full(3, 1 / 3), [0], [{2: {0: 0.0}, 9: {1: 0.0}}])
    result = pf.attack(evidence, [0, -1])
    with pytest.raises(InvalidParameter, match="user 0 has no event at step 5"):
        result.posterior(0, 5)
    with pytest.raises(InvalidParameter, match=r"truth must have shape \(2,\)"):
        pf.attack(evidence, [[0, 1]])
    with pytest.raises(InvalidParameter, match="truth has 3 for event 1"):
        pf.attack(evidence, [0, 3])
    with pytest.raises(InvalidParameter, match=r"persons has shape \(2,\).*each of the 1 users"):
        result.table(persons=[0, 0])


# Persons are the sample


def test_traces_of_one_person_are_one_sample():
    """Ten traces of one person are one sample, not ten: no interval. Would catch a table that
    counts traces as users."""
    dense, truth = walks(np.random.default_rng(2), users=10)
    result = pf.attack(dense, truth)
    apart, one = (
        result.table(no_release=False),
        result.table(persons=["ann"] * 10, no_release=False),
    )
    assert (apart.users, one.users, one.steps) == (10, 1, apart.steps)
    assert np.isfinite(apart["bayes"].error_interval).all()
    for row in one:
        for interval in (row.expected_interval, row.error_interval, row.hit_interval):
            assert np.isnan(interval).all()
    assert np.isnan(one.utility_interval).all()
    assert one["bayes"].error_km == apart["bayes"].error_km


def test_intervals_are_those_between_persons():
    """Pieces of four persons against the textbook on the four persons' sums."""
    dense, truth = walks(np.random.default_rng(4), users=12, missing=0.0)
    who = np.array([5, 9, 5, 7, 9, 5, 7, 7, 9, 1, 1, 1])
    result = pf.attack(dense, truth)
    table = result.table(persons=who, no_release=False, confidence=0.9)
    groups = [result.expected_error[who == k].ravel().tolist() for k in np.unique(who)]
    mean, error = naive.clustered_mean(groups)
    half = student.ppf(0.95, 3) * error
    assert table.users == 4
    assert table["bayes"].expected_km == pytest.approx(mean, rel=1e-12)
    assert table["bayes"].expected_interval == pytest.approx((mean - half, mean + half), rel=1e-9)
