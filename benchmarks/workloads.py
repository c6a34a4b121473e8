"""What is measured, once for the suites, the perf tests and the tables of the docs."""

import time

import numpy as np
import scipy.sparse
import scipy.spatial

import pglp_fast as pf


def seconds(call, rounds=5, clock=time.perf_counter):
    """The best time of a call, after one that does not count (it does where it is the only one)."""
    started = clock()
    call()
    best = np.inf if rounds else clock() - started
    for _ in range(rounds):
        started = clock()
        call()
        best = min(best, clock() - started)
    return best


def scalar_calls(n=5_000):
    """n scalar calls of NumPy's noise, ``default_rng().laplace(size=2)``."""
    rng = np.random.default_rng()
    for _ in range(n):
        rng.laplace(size=2)


def scalar_call():
    """Seconds of one of them."""
    return seconds(scalar_calls, 10) / 5_000


def city(side):
    """8 neighbours and staying, all alike."""
    grid = pf.Grid(side, side)
    return grid, pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")


def walks(grid, users, steps, seed=0):
    """Users who stay or go to one of the eight cells around."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, grid.rows, users), rng.integers(0, grid.cols, users)
    out = np.empty((users, steps), np.int32)
    for t in range(steps):
        out[:, t] = row * grid.cols + col
        row = np.clip(row + rng.integers(-1, 2, users), 0, grid.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, grid.cols - 1)
    return out


def many_users(users=100_000, steps=100, side=1000):
    """(releaser, traces): exact P-PIM over blocks of 3."""
    grid, model = city(side)
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0)
    return releaser, walks(grid, users, steps)


def places(n=7004, near=8, seed=0):
    """(Points, model, policy): places in 60 clusters, moves to the nearest ones, and the same
    category within a kilometre."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 5, (60, 2))
    xy = np.unique(np.round(centres[rng.integers(0, 60, 2 * n)], 3), axis=0)
    while len(xy) < n:
        more = centres[rng.integers(0, 60, n)] + rng.normal(0, 0.8, (n, 2))
        xy = np.unique(np.concatenate([xy, np.round(more, 3)]), axis=0)
    xy = rng.permutation(xy)[:n]
    points = pf.Points(xy)
    far, to = scipy.spatial.cKDTree(xy).query(xy, near + 1)
    weight = np.exp(-far / 0.5)
    weight /= weight.sum(axis=1, keepdims=True)
    where = np.repeat(np.arange(n), near + 1), to.ravel()
    moves = scipy.sparse.csr_array((weight.ravel(), where), shape=(n, n))
    labels = rng.integers(0, 8, n)
    return points, pf.MobilityModel(points, moves), pf.categories(points, labels, block=1.0)


def check_ins(model, users=30, events=3632, steps=1041, seed=0):
    """Events of users who walk by the model and are seen now and then."""
    rng = np.random.default_rng(seed)
    seen = np.sort(rng.choice(users * steps, events, replace=False))
    who, when = seen // steps, seen % steps
    chain, cells, at = model.chains[0], np.empty(events, np.int64), 0
    for e in range(events):
        if e == 0 or who[e] != who[e - 1]:
            at = rng.integers(model.locations.size)
        else:
            for _ in range(min(when[e] - when[e - 1], 50)):
                row = slice(chain.indptr[at], chain.indptr[at + 1])
                at = rng.choice(chain.indices[row], p=chain.data[row] / chain.data[row].sum())
        cells[e] = at
    return pf.Events(who, when, cells)


def whole_map(side=60, likelihood="exact"):
    """(releaser, prior) of 8 neighbours as a policy, where a user may be anywhere at every step."""
    grid, model = city(side)
    releaser = pf.TraceReleaser(
        pf.neighbours8(grid), model, epsilon=1.0, likelihood=likelihood, rng=0
    )
    return releaser, np.full(grid.size, 1 / grid.size)
