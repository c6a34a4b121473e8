"""Traces as events: the same as arrays, with silence of any length in between."""

import time

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import spsolve

import naive
import pglp_fast as pf
from cases import FIELDS, edge_set, large, random_transitions
from pglp_fast.errors import InvalidParameter, InvalidTransition, PGLPError

GRID = pf.Grid(4, 6, cell_km=(1.0, 0.5))
GRAPH = pf.blocks(GRID, 3)
USERS, STEPS = 40, 12


def chain(periods=1, seed=0, grid=GRID):
    rng = np.random.default_rng(seed)
    A = np.stack([random_transitions(rng, grid.size, 3.0) for _ in range(periods)])
    return pf.MobilityModel(grid, A if periods > 1 else A[0])


def traces_of(seed=0, users=USERS, steps=STEPS, missing=0.4):
    """Any cells: truths that the model calls impossible among them; some users are never seen."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, GRID.size, (users, steps)).astype(np.int32)
    cells[rng.random(cells.shape) < missing] = -1
    cells[::9] = -1
    return cells


def events_of(traces, seed=None, persons=None):
    """The cells of an array that are there, in row order, or shuffled."""
    who, when = np.nonzero(traces >= 0)
    order = np.arange(len(who))
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    who, when = who[order], when[order]
    names = who if persons is None else np.asarray(persons)[who]
    return pf.Events(names, when, traces[who, when]), (who, when)


def assert_alike(R, Q, at):
    """A run of events against one of the array that they are at ``at`` of."""
    for name in FIELDS:
        found, expected = getattr(R, name), getattr(Q, name)[at]
        assert found.dtype == expected.dtype
        assert (found == expected).all(), name


def assert_same_ledgers(a, b, of_a=slice(None), of_b=slice(None)):
    assert (a.epsilons()[of_a] == b.epsilons()[of_b]).all()
    assert (a.kept_edges()[of_a] == b.kept_edges()[of_b]).all()


WAYS = {
    "ppim": {},
    "ppim, graph": {"calibration": "graph"},
    "ppim, delta": {"delta": 0.2},
    "ppim, density": {"likelihood": "density"},
    "ppim, remapped": {"remap": "euclidean"},
    "plm": {"mechanism": "plm"},
    "plm, graph, delta": {"mechanism": "plm", "calibration": "graph", "delta": 0.1},
    "planar-laplace": {"mechanism": "planar-laplace"},
    "krr": {"mechanism": "krr"},
    "krr, delta, remapped": {"mechanism": "krr", "delta": 0.3, "remap": "squared"},
    "graph-exponential": {"mechanism": "graph-exponential", "repair": "nearest"},
    "optimal": {"mechanism": "optimal"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("periods", [1, 3])
def test_events_are_arrays_bit_for_bit(way, periods):
    """In row order and shuffled, by the model's own cycle and by a told one."""
    if way == "optimal" and periods > 1:
        pytest.skip("once is enough of linear programs")
    T = pf.TraceReleaser(GRAPH, chain(periods), epsilon=0.8, rng=3, **WAYS[way])
    traces = traces_of()
    seen = np.flatnonzero((traces >= 0).any(axis=1))
    told = np.random.default_rng(1).integers(0, periods, STEPS)
    for priors in (None, "point"):
        for cycle in (None, told) if periods > 1 else (None,):
            Q = T.run(traces, priors, periods=cycle)
            for seed in (None, 5):
                events, at = events_of(traces, seed)
                R = T.run(events, priors, cycle=cycle)
                assert_alike(R, Q, at)
                assert_same_ledgers(R.certificate.ledger, Q.certificate.ledger, of_b=seen)
    assert (Q.released[traces < 0] == -1).all()
    assert Q.surrogate.any()


def test_persons_keep_their_numbers_and_priors_their_order():
    """Persons are users of those numbers; priors are given in the order of ``events.ids``."""
    T = pf.TraceReleaser(GRAPH, chain(), epsilon=0.8, rng=3)
    traces = traces_of(users=6)
    traces[:, 0] = 3
    numbers = [40, 7, 2**30, 5, 6, 1]
    priors = np.random.default_rng(2).dirichlet(np.ones(GRID.size), 6)
    events, at = events_of(traces, 1, numbers)
    assert events.ids.tolist() == sorted(numbers)
    R = T.run(events, priors[np.argsort(numbers)])
    assert_alike(R, T.run(traces, priors, users=numbers), at)


def test_of_array():
    traces = traces_of(users=5)
    events = pf.Events.of_array(traces)
    T = pf.TraceReleaser(GRAPH, chain(), epsilon=0.8, rng=3)
    assert (T.run(events).released == T.run(traces).released[traces >= 0]).all()


def test_nobody():
    T = pf.TraceReleaser(GRAPH, chain(), epsilon=0.8, rng=3)
    R = T.run(pf.Events([], [], []))
    assert R.released.shape == (0,)
    assert R.certificate.ok
    assert R.certificate.releases == 0


def test_steps_may_begin_anywhere():
    """Only differences move beliefs; draws are those of the step's number."""
    T = pf.TraceReleaser(GRAPH, chain(), epsilon=0.8, rng=3)
    far = 10**12
    early, late = (T.run(pf.Events([1, 1], [k, k + 3], [5, 5]), "point") for k in (0, far))
    assert early.domain_size.tolist() == late.domain_size.tolist()
    with pytest.raises(InvalidTransition, match="steps"):
        pf.Events([1], [2**60], [0])


# silence


def two_cells(stay, back):
    return np.array([[stay, 1 - stay], [back, 1 - back]])


def birth_death(n, up, down):
    A = np.diag(np.full(n - 1, up), 1) + np.diag(np.full(n - 1, down), -1)
    return A + np.diag(1 - A.sum(axis=1))


def ring(n, step=1.0):
    """Round and round; lazily where step < 1."""
    return step * np.roll(np.eye(n), 1, axis=1) + (1 - step) * np.eye(n)


def absorbing(n):
    """From n - 1 down to 0, and there to stay."""
    A = 0.3 * np.eye(n) + 0.7 * np.eye(n, k=-1)
    A[0, 0] = 1.0
    return A


def two_by_two(n, seed):
    """Period 2: from even cells to odd ones and back, at random."""
    rng = np.random.default_rng(seed)
    A = rng.random((n, n)) * ((np.arange(n)[:, None] + np.arange(n)) % 2)
    return A / A.sum(axis=1, keepdims=True)


def cut(A, floor=0.5):
    """Fewer transitions, so that supports grow slowly."""
    A = np.where(floor * A.max(axis=1, keepdims=True) <= A, A, 0.0)
    return A / A.sum(axis=1, keepdims=True)


def mixed(n, seed, weight=1e-3):
    """Three groups that hardly ever meet: the second eigenvalue is near 1."""
    rng = np.random.default_rng(seed)
    A = rng.random((n, n)) * (np.arange(n)[:, None] % 3 == np.arange(n) % 3)
    A /= A.sum(axis=1, keepdims=True)
    return (1 - weight) * A + weight * np.roll(np.eye(n), 1, axis=1)


CHAINS = {
    "slow": [two_cells(1 - 1e-5, 3e-5)],
    "very slow": [two_cells(1 - 1e-14, 1e-13)],
    "slow on one side": [two_cells(1 - 1e-9, 0.3)],
    "groups": [mixed(9, 0)],
    "groups, hardly ever": [mixed(9, 0, 1e-14)],
    "period 2": [two_by_two(6, 0)],
    "period 2, sparse": [cut(two_by_two(8, 1))],
    "period 3": [ring(3)],
    "period 3, with a tail": [np.vstack([np.c_[ring(3), np.zeros((3, 2))], [[0.5, 0, 0, 0.25, 0.25],
                                                                            [0, 0.1, 0, 0.9, 0]]])],
    "lazy ring": [ring(12, 0.3)],
    "absorbing": [absorbing(7)],
    "absorbing, two ways": [np.array([[1, 0, 0], [0.2, 0.5, 0.3], [0, 0, 1.0]])],
    "three periods": [cut(mixed(7, 2)), ring(7), absorbing(7)],
    "periods that undo each other": [ring(5), ring(5).T],
    "period 2 in two periods of the day": [two_by_two(6, 0), two_by_two(6, 1)],
    "underflow": [np.array([[1 - 1e-300, 1e-300, 0], [0, 1 - 1e-300, 1e-300], [0, 0, 1.0]])],
    "hardly possible": [birth_death(8, 1e-60, 0.5)],
    "still": [np.eye(4)],
}  # fmt: skip


def after_silence(matrices, gap, calibration="component"):
    """(p_0^+, p_t^+) around a gap of a user who starts at the last cell, whose release tells it
    exactly: the policy has no edges."""
    n = len(matrices[0])
    line = pf.Grid(1, n)
    G = pf.PolicyGraph.from_edges(line, np.empty((0, 2), int))
    M = pf.MobilityModel(line, np.stack(matrices) if len(matrices) > 1 else matrices[0])
    T = pf.TraceReleaser(G, M, epsilon=1.0, rng=1, calibration=calibration)
    S = T.start(priors=np.eye(n)[n - 1])
    S.step([n - 1])
    before = S.posterior(0)
    for _ in range(gap):
        S.step([-1])
    return before, S


@pytest.mark.parametrize("name", CHAINS)
def test_beliefs_after_silence_are_powers(name):
    """p^+ M^k within 1e-12, and its support to the last cell, at every step of a long silence."""
    matrices = [np.asarray(A, float) for A in CHAINS[name]]
    p, S = after_silence(matrices, 0)
    support = p > 0
    for k in range(200):
        A = matrices[k % len(matrices)]
        p, support = p @ A, (support @ (A > 0)) > 0
        S.step([-1])
        found = S.posterior(0)
        assert np.abs(found - p).max() < 1e-12, k
        assert abs(found.sum() - 1) < 1e-12
        if k % 7 == 0 or k > 190:
            # the domain of the last step is what one move from the belief before makes of it
            assert S.domain(0).cells().tolist() == np.flatnonzero(support).tolist()


@pytest.mark.parametrize("name", CHAINS)
def test_domains_after_gaps_have_the_exact_support(name):
    """By events: |C_t| after gaps of any length, everybody from the same start."""
    matrices = [np.asarray(A, float) for A in CHAINS[name]]
    n, gaps = len(matrices[0]), np.array([1, 2, 3, 4, 5, 8, 13, 31, 64, 65, 127, 200])
    _, S = after_silence(matrices, 0)
    who = np.repeat(np.arange(len(gaps)), 2)
    steps = np.stack([np.zeros_like(gaps), gaps], axis=1).ravel()
    R = S.releaser.run(pf.Events(who, steps, np.full(len(who), n - 1)), "point")
    support = np.eye(n)[n - 1] > 0
    sizes = []
    for k in range(200):
        support = (support @ (matrices[k % len(matrices)] > 0)) > 0
        sizes.append(support.sum())
    assert R.domain_size.reshape(-1, 2)[:, 1].tolist() == [sizes[g - 1] for g in gaps]


MILLION = 1_000_003

# the exact distribution after that many steps from the last cell
ENDS = {
    "lazy ring": np.full(12, 1 / 12),
    "period 3": np.eye(3)[(2 + MILLION) % 3],
    "absorbing": np.eye(7)[0],
    "still": np.eye(4)[3],
    "slow on one side": np.array([0.3, 1e-9]) / (0.3 + 1e-9),
    "periods that undo each other": np.eye(5)[(4 + MILLION % 2) % 5],
}


@large
@pytest.mark.parametrize("name", ENDS)
def test_a_million_steps_of_silence(name):
    matrices = [np.asarray(A, float) for A in CHAINS[name]]
    n = len(matrices[0])
    _, S = after_silence(matrices, 0)
    T, began = S.releaser, time.perf_counter()
    R = T.run(pf.Events([0, 0], [0, MILLION], [n - 1, n - 1]), "point", evidence=True)
    took = time.perf_counter() - began
    expected = ENDS[name]
    possible = expected > 0
    if name == "absorbing":
        possible[:] = True  # hardly, but possible
    assert R.domain_size.tolist() == [1, possible.sum()]
    S._state = S._state._replace(t=MILLION + 1)
    assert np.abs(S.posterior(0) - expected).max() < 1e-12
    assert took < 5, "a walk of a million steps on a large map would take minutes"


@large
def test_a_long_silence_on_a_large_map_settles():
    """3,600 locations, ten million steps: everybody is at home now and then, and settles to what a
    linear system says."""
    g = pf.Grid(60, 60)
    rng = np.random.default_rng(0)
    near = pf.neighbours8(g)
    A = scipy.sparse.csr_matrix(
        (rng.random(len(near.indices)) + 0.1, near.indices, near.indptr), shape=(g.size, g.size)
    ) + scipy.sparse.eye(g.size)
    A = 0.95 * A.multiply(1 / A.sum(axis=1)).tocsr()
    to_first = np.full(g.size, 0.05), np.zeros(g.size, int), np.arange(g.size + 1)
    home = scipy.sparse.csr_matrix(to_first, shape=A.shape)
    M = pf.MobilityModel(g, (A + home).tocsr())
    T = pf.TraceReleaser(pf.blocks(g, 3), M, epsilon=1.0, rng=1)
    S = T.start(priors=np.eye(g.size)[1800])
    S.step([1800])
    S._state = S._state._replace(t=10**7)
    first = np.eye(g.size)[0]
    limit = spsolve((scipy.sparse.eye(g.size) - A).T.tocsc(), 0.05 * first)
    assert np.abs(S.posterior(0) - limit).sum() < 1e-12


# what silence must not give away


def everybody_to(targets):
    """3 x 6 in blocks of 3, and a model by which everybody moves to one of two cells."""
    g = pf.Grid(3, 6)
    A = np.zeros((18, 18))
    A[:, targets] = 0.5
    return pf.blocks(g, 3), pf.MobilityModel(g, A)


@pytest.mark.parametrize("mechanism", ["ppim", "plm", "krr", "graph-exponential", "optimal"])
@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_two_cells_in_two_blocks_are_not_told_apart_after_silence(mechanism, calibration):
    """Cells 7 and 10 have mates on the map but none in C_t: alone, each would be told as it is."""
    if calibration == "graph" and mechanism not in ("ppim", "plm"):
        pytest.skip("by components only")
    targets, epsilon = [7, 10], 0.5
    G, M = everybody_to(targets)
    T = pf.TraceReleaser(G, M, epsilon=epsilon, mechanism=mechanism, calibration=calibration, rng=1)
    events = pf.Events([4, 4], [0, 14], [0, 7])
    R = T.run(events)
    assert R.domain_size.tolist() == [18, 2]
    assert (R.disconnected[1], R.isolated[1], R.added[1]) == (2, 2, 1)
    assert not R.exposed.any()
    assert R.certificate.ok
    assert 0 < R.certificate.worst <= epsilon
    S = T.start([4])
    for t in range(15):
        S.step([{0: 0, 14: 7}.get(t, -1)])
    assert S.domain(0).cells().tolist() == targets
    assert edge_set(S.policy(0)) == {(7, 10)}
    assert S.certificate.worst == R.certificate.worst
    outputs, P = T.step_mechanism(S.policy(0), S.domain(0)).matrix(7)
    assert outputs.tolist() == targets
    assert np.abs(np.log(P[0]) - np.log(P[1])).max() <= epsilon * (1 + 1e-9)
    # what is drawn from: one table has two locations, and its integer rows are that close
    arrays = T.engine.tables.arrays
    (entry,) = np.flatnonzero(np.diff(arrays.at) == 4)
    cumulative = arrays.cumulative[arrays.at[entry] : arrays.at[entry + 1]].reshape(2, 2)
    W = np.diff(cumulative, axis=1, prepend=np.uint64(0)).astype(object)
    assert W.sum(axis=1).tolist() == [2**63, 2**63]
    assert max(max(W[0, z] / W[1, z], W[1, z] / W[0, z]) for z in (0, 1)) <= np.exp(epsilon)


@large
@pytest.mark.parametrize("mechanism", ["ppim", "krr"])
def test_frequencies_do_not_tell_two_cells_apart_after_silence(mechanism):
    """4,000 persons at each of the cells: ratios within e^0.5 at 5 sigma."""
    G, M = everybody_to([7, 10])
    T = pf.TraceReleaser(G, M, epsilon=0.5, mechanism=mechanism, rng=11)
    n = 4000
    frequency = {}
    for truth in (7, 10):
        cells = np.stack([np.zeros(n, int), np.full(n, truth)], axis=1).ravel()
        R = T.run(pf.Events(np.repeat(np.arange(n), 2), np.tile([0, 14], n), cells))
        second = R.released[1::2]
        assert set(second.tolist()) == {7, 10}
        frequency[truth] = np.mean(second == 7)
    for a, b in ((7, 10), (10, 7)):
        for p, q in ((frequency[a], frequency[b]), (1 - frequency[a], 1 - frequency[b])):
            sigma = np.sqrt(p * (1 - p) / n + np.e * q * (1 - q) / n)
            assert p - np.exp(0.5) * q <= 5 * sigma
    assert frequency[7] > frequency[10]


# what is refused


@pytest.mark.parametrize(
    ("persons", "steps", "cells", "message"),
    [
        ([3, 1, 3], [5, 5, 5], [0, 1, 2], r"person 3 has two events at step 5 \(one is event 2\)"),
        ([1, 2], [0, 1], [0], "of one length, got 2, 2 and 1"),
        ([[1]], [0], [0], r"persons must be a 1-d array, got shape \(1, 1\)"),
        ([-1], [0], [0], r"persons\[0\] = -1 is not in"),
        ([1, 1], [0, -2], [0, 0], r"steps\[1\] = -2 is not in"),
        ([1, 1], [0, 1], [0, -1], r"cells\[1\] = -1 is not in"),
        ([0.5], [0], [0], "persons must"),
        (["a"], [0], [0], "persons must"),
        ([1], [0], [[0]], "cells must be a 1-d array"),
    ],
)
def test_bad_events(persons, steps, cells, message):
    with pytest.raises(InvalidTransition, match=message):
        pf.Events(persons, steps, cells)


def test_bad_runs_of_events():
    T = pf.TraceReleaser(GRAPH, chain(3), epsilon=0.8, rng=3)
    events = pf.Events([7, 7], [0, 2], [1, 2])
    off = pf.Events([7, 7, 9], [0, 2, 4], [1, 2, GRID.size])
    with pytest.raises(InvalidTransition, match=r"person 9 is at 24 at step 4: cells are 0\.\.23"):
        T.run(off)
    with pytest.raises(InvalidParameter, match="users= and periods= are for arrays"):
        T.run(events, users=[7])
    with pytest.raises(InvalidParameter, match="users= and periods= are for arrays"):
        T.run(events, periods=[0, 1, 2])
    with pytest.raises(InvalidParameter, match="cycle= is for events"):
        T.run(traces_of(), cycle=[0])
    for bad in ([], [3], [-1], [[0, 1]]):
        message = r"cycle must be at least one number in 0\.\.2"
        with pytest.raises(InvalidTransition, match=message):
            T.run(events, cycle=bad)
    with pytest.raises(PGLPError):
        T.run(events, cycle=[0.5])
    with pytest.raises(PGLPError):
        T.run(events, np.ones((2, GRID.size)) / GRID.size)  # one person, two priors
    budget = pf.TraceReleaser(GRAPH, chain(), epsilon=0.8, rng=3, budget=1.0)
    with pytest.raises(pf.BudgetExceeded, match=r"user 7 has spent 0 of 1 and asks for 1\.6"):
        budget.run(events)


# who else is there


@pytest.mark.parametrize("way", ["ppim", "ppim, graph", "krr, delta, remapped"])
def test_nobody_else_matters(way):
    """Results do not depend on who else is in the call, nor on what was released before."""
    T = pf.TraceReleaser(GRAPH, chain(2), epsilon=0.8, rng=3, **WAYS[way])
    events, _ = events_of(traces_of(), 2)
    R = T.run(events)
    for some in ([1], [5, 30], range(20, 40)):
        mine = np.isin(events.persons, list(some))
        part = pf.Events(events.persons[mine], events.steps[mine], events.cells[mine])
        for how in (T, pf.TraceReleaser(GRAPH, chain(2), epsilon=0.8, rng=3, **WAYS[way])):
            Q = how.run(part)
            for name in FIELDS:
                assert (getattr(Q, name) == getattr(R, name)[mine]).all()


@pytest.mark.parametrize("way", ["ppim", "ppim, graph", "krr"])
def test_threads_do_not_matter(way):
    events, _ = events_of(traces_of(users=100), 2)
    before, results = pf.get_num_threads(), []
    try:
        for n in (1, 2, 5):
            pf.set_num_threads(n)
            T = pf.TraceReleaser(GRAPH, chain(2), epsilon=0.8, rng=3, **WAYS[way])
            results.append(T.run(events))
    finally:
        pf.set_num_threads(before)
    for R in results[1:]:
        for name in FIELDS:
            assert (getattr(R, name) == getattr(results[0], name)).all()
        assert_same_ledgers(R.certificate.ledger, results[0].certificate.ledger)
        assert str(R.certificate) == str(results[0].certificate)


@pytest.mark.parametrize("told", [False, True])
def test_saved_and_resumed_in_the_middle_of_silence(told, tmp_path):
    traces = traces_of(users=8, steps=30, missing=0.8)
    traces[:, 11:16] = -1
    T = pf.TraceReleaser(GRAPH, chain(3), epsilon=0.8, rng=3)
    when = np.random.default_rng(0).integers(0, 3, 30) if told else None
    Q = T.run(traces, "point", periods=when)
    S = T.start(8, "point")
    for t in range(30):
        if t in (0, 12, 14, 29):
            S.save(tmp_path / "saved")
            S = pf.TraceReleaser(GRAPH, chain(3), epsilon=0.8, rng=3).resume(tmp_path / "saved")
        R = S.step(traces[:, t], period=when[t - 1] if told and t else None)
        for name in FIELDS:
            assert (getattr(R, name) == getattr(Q, name)[:, t]).all(), (name, t)
    assert_same_ledgers(S.ledger, Q.certificate.ledger)


def test_composition_over_events_is_literal():
    """The ledger after gaps: the intersection of the repaired graphs of each event's domain."""
    T = pf.TraceReleaser(GRAPH, chain(), epsilon=0.5, rng=3)
    traces = traces_of(users=12, missing=0.6)
    traces[:, 0] = 3
    R = T.run(events_of(traces, 1)[0], "point")
    S, graphs = T.start(12, "point"), [[] for _ in range(12)]
    for t in range(STEPS):
        S.step(traces[:, t])
        for u in np.flatnonzero(traces[:, t] >= 0):
            graphs[u].append(edge_set(S.policy(u)))
    for u in range(12):
        epsilon, kept = naive.ledger([0.5] * len(graphs[u]), graphs[u])
        assert R.certificate.epsilon(u) == pytest.approx(epsilon)
        assert edge_set(R.certificate.graph(u)) == kept
