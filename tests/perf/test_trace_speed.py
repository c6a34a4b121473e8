"""Forward steps against SciPy, traces against NumPy's scalar noise, and against themselves on a
larger map."""

import time

import numpy as np
import pytest

import pglp_fast as pf
from benchmarks.traces import city, walks


def best(call, rounds=5):
    call()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def test_forward_of_one_distribution(promise):
    """25 cells of a million at least 1,000 times faster than SciPy's dense product, all of them
    at most 1.2 times slower."""
    grid, model = city(1000)
    matrix = model.matrix()
    p = np.random.default_rng(0).dirichlet(np.ones(grid.size))
    rows, cols = np.meshgrid(np.arange(500, 505), np.arange(500, 505), indexing="ij")
    cells, few, space = (rows * grid.cols + cols).ravel(), np.full(25, 0.04), model.workspace()
    scipy = best(lambda: p @ matrix)
    sparse = best(lambda: model.forward_sparse(cells, few, workspace=space), 200)
    dense = best(lambda: model.forward(p))
    promise(sparse / scipy, 1 / 1000, "25 cells")
    promise(dense / scipy, 1.2, "all cells")


def test_forward_of_a_batch_is_as_fast_as_scipy(ratio, promise, two_cores):
    grid, model = city(300)
    matrix = model.matrix()
    P = np.random.default_rng(0).random((64, grid.size))
    promise(ratio(lambda: model.forward(P), lambda: P @ matrix), 1.0)


@pytest.mark.parametrize("likelihood", ["density", "exact"])
def test_traces_of_a_thousand_users(likelihood, promise):
    """1,000 users x 100 steps, 300 x 300, blocks of 3: one step costs at most two scalar calls of
    NumPy's laplace(size=2)."""
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
    promise(step / scalar, 2.0, f"{1 / step:,.0f} user-steps a second")


def test_policies_mixed_cost_what_one_does(ratio, promise):
    """Two policies and two epsilons in turns from user to user: one pass, at most 1.1 times the
    mean of one policy at a time."""
    grid, model = city(100)
    traces, prior = walks(grid, 1000, 100), model.stationary()
    graphs = {"threes": pf.blocks(grid, 3), "fours": pf.blocks(grid, 4)}
    names = np.array(["threes", "fours"])[np.arange(1000) % 2]
    epsilons = np.where(names == "threes", 1.0, 2.0)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0)
    first = pf.TraceReleaser(graphs["threes"], model, epsilon=1.0)
    other = pf.TraceReleaser(graphs["fours"], model, epsilon=2.0)

    def apart():
        first.run(traces[::2], prior, users=np.arange(0, 1000, 2))
        other.run(traces[1::2], prior, users=np.arange(1, 1000, 2))

    mixed = ratio(lambda: T.run(traces, prior, policy=names, epsilon=epsilons), apart)
    promise(mixed, 1.1)


def test_the_graph_calibration_is_linear_in_the_map(ratio, promise):
    """Full support on 300 x 300: a user-step with density likelihood costs at most ten of
    SciPy's p @ M."""
    grid, model = city(300)
    matrix = model.matrix()
    p = np.full(grid.size, 1 / grid.size)
    releaser = pf.TraceReleaser(
        pf.blocks(grid, 3), model, epsilon=1.0, calibration="graph", likelihood="density", rng=0
    )
    stream = releaser.start(users=1, priors=p)
    stream.step([45_000])
    promise(ratio(lambda: stream.step([45_000]), lambda: p @ matrix, rounds=30), 10)


def test_cost_does_not_grow_with_the_map_and_memory_not_with_time(promise):
    """300 x 300 and 3,000 x 3,000 within 1.5 times of each other for users with small domains: the
    median of 60 steps each, taken in turns of five, so that whoever else uses the machine slows
    down both."""
    traces, streams, times = {}, {}, {300: [], 3000: []}
    for side in times:
        grid, model = city(side)
        traces[side] = walks(grid, 1000, 80)
        releaser = pf.TraceReleaser(
            pf.blocks(grid, 3), model, epsilon=1.0, likelihood="density", rng=0
        )
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
        print(
            f"{side} x {side}: {1000 / value:,.0f} user-steps a second, "
            f"{streams[side].memory() / 1000:.0f} bytes a user"
        )
        promise(streams[side].memory() / memory[side], 1.5, f"memory, {side} x {side}")
    promise(median[3000] / median[300], 1.5, "time")
