"""The fast loop and the general one give the same bits.

Likelihoods are kept by the general loop alone: ``evidence=True`` is the same run without the fast
one."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import FIELDS, policy_of_kind, random_map, random_transitions
from pglp_fast._kernels.trace import run as kernels
from pglp_fast.traces.engine import TraceEngine


def runs_of(monkeypatch, T, traces, priors="point", **how):
    """(result, state) with the fast loop, and without it."""
    states, release = [], TraceEngine.release

    def recorded(self, *args, **options):
        done = release(self, *args, **options)
        states.append(done.state)
        return done

    monkeypatch.setattr(TraceEngine, "release", recorded)
    return [(T.run(traces, priors, evidence=slow, **how), states[-1]) for slow in (False, True)]


def assert_same_bits(fast, slow):
    (R, after), (Q, other) = fast, slow
    for name in FIELDS:
        assert (getattr(R, name) == getattr(Q, name)).all(), name
    for a, b in zip((*after.beliefs, *after.ledger), (*other.beliefs, *other.ledger), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    assert R.certificate.worst == Q.certificate.worst
    assert R.certificate.tables == Q.certificate.tables


def walkers(rng, model, users, steps):
    """People who move as the model says, now and then unseen, now and then where it says they
    cannot be."""
    n = model.locations.size
    A = [np.cumsum(model.matrix(k).toarray(), axis=1) for k in range(model.periods)]
    cells = np.empty((users, steps), np.int32)
    cells[:, 0] = rng.integers(0, n, users)
    for t in range(1, steps):
        u = rng.random((users, 1))
        cells[:, t] = np.minimum((A[(t - 1) % len(A)][cells[:, t - 1]] < u).sum(axis=1), n - 1)
    odd = rng.random(cells.shape)
    cells[odd < 0.03] = rng.integers(0, n, int((odd < 0.03).sum()))
    cells[odd > 0.97] = -1
    return cells


def neighbour_walk(grid, periods=1, seed=0):
    """Stay, or go to one of the eight neighbours, with probabilities of its own everywhere."""
    rng, near = np.random.default_rng(seed), pf.neighbours8(grid)
    A = np.zeros((periods, grid.size, grid.size))
    for i in range(grid.size):
        to = np.append(near.neighbours(i), i)
        A[:, i, to] = rng.random((periods, len(to))) + 0.01
    A /= A.sum(axis=2, keepdims=True)
    return pf.MobilityModel(grid, A if periods > 1 else A[0])


OPTIONS = [
    {},
    {"calibration": "graph"},
    {"mechanism": "plm", "repair": "nearest"},
    {"mechanism": "krr", "repair": "min-error"},
    {"mechanism": "graph-exponential"},
    {"likelihood": "density"},
]


@pytest.mark.parametrize("seed", range(len(OPTIONS)))
@pytest.mark.parametrize(("side", "block"), [((9, 9), 3), ((8, 7), 3), ((5, 11), 4)])
def test_blocks_and_neighbours(monkeypatch, seed, side, block):
    """Whole blocks, and blocks that the map's edge cuts, down to a single cell."""
    grid = pf.Grid(*side, cell_km=(1.0, 0.7))
    model = neighbour_walk(grid, 1 + seed % 2, seed)
    T = pf.TraceReleaser(pf.blocks(grid, block), model, epsilon=2.0, rng=seed, **OPTIONS[seed])
    traces = walkers(np.random.default_rng(seed), model, 60, 25)
    assert_same_bits(*runs_of(monkeypatch, T, traces))


@pytest.mark.parametrize("seed", range(len(OPTIONS)))
def test_many_who_start_from_one_prior(monkeypatch, seed):
    """More than 64 locations are possible at first, and components are met again: their tables are
    looked up. Two policies, and a prior that leaves out some locations."""
    rng = np.random.default_rng(seed)
    grid = pf.Grid(9, 10, cell_km=(1.0, 0.7))
    model = neighbour_walk(grid, 1, seed)
    graphs = {"threes": pf.blocks(grid, 3), "fours": pf.blocks(grid, 4)}
    T = pf.TraceReleaser(graphs, model, epsilon=2.0, rng=seed, **OPTIONS[seed])
    traces = walkers(rng, model, 200, 5)
    names = np.where(rng.random(200) < 0.5, "threes", "fours")
    holes = np.where(np.isin(np.arange(90), [0, 1, 2, 55]), 0.0, rng.random(90))
    for prior in (None, holes / holes.sum()):
        for _ in range(2):  # the second time every table is there
            assert_same_bits(*runs_of(monkeypatch, T, traces, prior, policy=names))


@pytest.mark.parametrize("seed", range(len(OPTIONS)))
def test_policies_that_change_at_every_step(monkeypatch, seed):
    """Of three cells in a row a person stays in the first two. One policy joins these; under the
    other the second is cut off from the third, and its repair joins it to the first. So the first
    repair adds an edge that was kept so far, or one that was not."""
    rng, n = np.random.default_rng(seed), 12
    line, triple, at = pf.Grid(1, n), np.arange(n) // 3, np.arange(n) % 3
    graphs = {
        "left": pf.categories(line, 2 * triple + (at == 2), None),
        "right": pf.categories(line, 2 * triple + (at > 0), None),
    }
    A = np.eye(n) * (at == 2) + 0.5 * ((triple[:, None] == triple) & (at < 2) & (at[:, None] < 2))
    model = pf.MobilityModel(line, A)
    T = pf.TraceReleaser(graphs, model, epsilon=2.0, rng=seed, **OPTIONS[seed])
    traces = 3 * rng.integers(0, 4, (20, 1)) + rng.integers(0, 2, (20, 5))
    traces[rng.random(traces.shape) < 0.1] = -1
    names = rng.choice(list(graphs), traces.shape)
    epsilons = rng.choice([0.5, 2.0], traces.shape)
    for prior in ("point", "move", (at < 2) / 8):
        for _ in range(2):  # the second time every table is there
            fast, slow = runs_of(monkeypatch, T, traces, prior, policy=names, epsilon=epsilons)
            assert_same_bits(fast, slow)
    assert len(fast[1].ledger.edges), "edges that repairs added are kept"


@pytest.mark.parametrize("seed", range(24))
def test_random_policies_and_sparse_models(monkeypatch, seed):
    """Cliques, further edges, both and neither; points and grids; domains of a few cells, that are
    repaired at most steps; large and small epsilon."""
    rng = np.random.default_rng(seed)
    locations = random_map(rng, seed)
    G = policy_of_kind(rng, locations, seed)
    model = pf.MobilityModel(locations, random_transitions(rng, locations.size))
    T = pf.TraceReleaser(
        G, model, epsilon=[0.1, 1.0, 8.0][seed % 3], rng=seed, **OPTIONS[seed % len(OPTIONS)]
    )
    traces = walkers(rng, model, 40, 25)
    assert_same_bits(*runs_of(monkeypatch, T, traces))
    assert_same_bits(*runs_of(monkeypatch, T, traces, None))  # every table is there by now


def test_probabilities_at_the_edge_of_what_floats_keep(monkeypatch):
    """Moves of 1e-80 over and over: plain products, logarithms, and back."""
    grid = pf.Grid(3, 6)
    rng = np.random.default_rng(1)
    A = random_transitions(rng, 18, 3.0)
    A[A < 0.2] *= 1e-80
    A /= A.sum(axis=1, keepdims=True)
    model = pf.MobilityModel(grid, A)
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=0.2, rng=2)
    traces = rng.integers(0, 18, (50, 30)).astype(np.int32)
    assert_same_bits(*runs_of(monkeypatch, T, traces))


@pytest.mark.skipif(hasattr(kernels.glide, "py_func"), reason="a compiled loop cannot be watched")
def test_most_steps_are_taken_by_the_fast_loop(monkeypatch):
    """Else these tests would say nothing."""
    grid = pf.Grid(8, 7)
    model = neighbour_walk(grid)
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=6.0, rng=1)
    traces = walkers(np.random.default_rng(0), model, 20, 30)
    taken, glide = [], kernels.glide

    def watched(*args):
        e, at = glide(*args)
        taken.append(e - args[6][0])
        return e, at

    T.run(traces, "point")
    monkeypatch.setattr(kernels, "glide", watched)
    T.run(traces, "point")
    assert sum(taken) > 0.7 * (traces >= 0).sum()
    taken.clear()
    T.run(traces, "point", evidence=True)
    assert not taken
