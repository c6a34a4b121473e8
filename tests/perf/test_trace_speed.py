"""Forward steps against SciPy, traces against NumPy's scalar noise, and against themselves on a larger map."""

import time

import numba
import numpy as np
import pytest

import pglp_fast as pf

pytestmark = [pytest.mark.perf, pytest.mark.skipif(numba.config.DISABLE_JIT, reason="times compiled code")]


def best(call, rounds=5):
    call()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def city(side):
    """8 neighbours and staying, all alike."""
    grid = pf.Grid(side, side)
    return grid, pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")


def walks(grid, users, steps, seed=0):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, grid.rows, users), rng.integers(0, grid.cols, users)
    out = np.empty((users, steps), np.int32)
    for t in range(steps):
        out[:, t] = row * grid.cols + col
        row = np.clip(row + rng.integers(-1, 2, users), 0, grid.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, grid.cols - 1)
    return out


def test_forward_of_one_distribution():
    """25 cells of a million at least 1,000 times faster than SciPy's dense product, all of them at most 1.2 times slower."""
    grid, model = city(1000)
    matrix = model.matrix()
    p = np.random.default_rng(0).dirichlet(np.ones(grid.size))
    rows, cols = np.meshgrid(np.arange(500, 505), np.arange(500, 505), indexing="ij")
    cells, few, space = (rows * grid.cols + cols).ravel(), np.full(25, 0.04), model.workspace()
    scipy = best(lambda: p @ matrix)
    sparse = best(lambda: model.forward_sparse(cells, few, workspace=space), 200)
    dense = best(lambda: model.forward(p))
    print(f"scipy {scipy * 1e3:.1f} ms; 25 cells {sparse * 1e6:.1f} us ({scipy / sparse:,.0f}); dense {dense / scipy:.2f} times")
    assert scipy / sparse >= 1000
    assert dense / scipy <= 1.2


def test_forward_of_a_batch_is_as_fast_as_scipy(ratio, two_cores):
    grid, model = city(300)
    matrix = model.matrix()
    P = np.random.default_rng(0).random((64, grid.size))
    assert ratio(lambda: model.forward(P), lambda: P @ matrix) <= 1.0


@pytest.mark.parametrize("likelihood", ["density", "exact"])
def test_traces_of_a_thousand_users(likelihood):
    """1,000 users x 100 steps, 300 x 300, blocks of 3: one step costs at most so many scalar calls of NumPy's laplace(size=2).

    A scalar call takes some 0.8 us where 100,000 (density) and 40,000 (exact) user-steps a second on two cores are asked for:
    10 us and 25 us a step, 12 and 31 calls.
    """
    grid, model = city(300)
    traces = walks(grid, 1000, 100)
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, likelihood=likelihood)
    prior = model.stationary()
    releaser.run(traces[:40, :3], prior)
    rng = np.random.default_rng()
    started = time.perf_counter()
    for _ in range(50_000):
        rng.laplace(size=2)
    scalar = (time.perf_counter() - started) / 50_000
    step = best(lambda: releaser.run(traces, prior), 3) / traces.size
    print(f"{likelihood}: {1 / step:,.0f} user-steps a second, {step / scalar:.1f} scalar laplace calls each")
    assert step / scalar <= {"density": 12.5, "exact": 31.0}[likelihood]


def test_the_graph_calibration_is_linear_in_the_map(ratio):
    """Full support on 300 x 300: a user-step with density likelihood costs at most ten of SciPy's p @ M."""
    grid, model = city(300)
    matrix = model.matrix()
    p = np.full(grid.size, 1 / grid.size)
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, calibration="graph", likelihood="density", rng=0)
    stream = releaser.start(users=1, priors=p)
    stream.step([45_000])
    assert ratio(lambda: stream.step([45_000]), lambda: p @ matrix, rounds=30) <= 10


def test_cost_does_not_grow_with_the_map_and_memory_not_with_time():
    """300 x 300 and 3,000 x 3,000 within 1.5 times of each other for users with small domains: the median of 60 steps each, taken
    in turns of five, so that whoever else uses the machine slows down both."""
    traces, streams, times = {}, {}, {300: [], 3000: []}
    for side in times:
        grid, model = city(side)
        traces[side] = walks(grid, 1000, 80)
        releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, likelihood="density", rng=0)
        streams[side] = releaser.start(1000, "point")
        for t in range(20):
            streams[side].step(traces[side][:, t])
    memory = {side: streams[side].memory() for side in times}
    for first in range(20, 80, 5):
        for side, each in times.items():
            for t in range(first, first + 5):
                started = time.perf_counter()
                streams[side].step(traces[side][:, t])
                each.append(time.perf_counter() - started)
    median = {side: float(np.median(each)) for side, each in times.items()}
    for side, value in median.items():
        print(f"{side} x {side}: {1000 / value:,.0f} user-steps a second, {streams[side].memory() / 1000:.0f} bytes a user")
        assert streams[side].memory() <= 1.5 * memory[side]
    assert median[3000] <= 1.5 * median[300]
