"""Forward steps against SciPy, traces against NumPy's scalar noise, and against themselves on a
larger map."""

import time
import tracemalloc

import numpy as np
import pytest

import pglp_fast as pf
from benchmarks.workloads import (
    check_ins,
    city,
    places,
    scalar_call,
    seconds as best,
    walks,
    whole_map,
)


def test_forward_of_one_distribution(promise):
    """25 cells of a million at least 1,000 times faster than SciPy's dense product, of which
    checking what is given takes most; all of them at most 1.2 times slower."""
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


@pytest.fixture(scope="module")
def walkers():
    """Exact P-PIM over blocks of 3 on 300 x 300, and the stationary prior."""
    grid, model = city(300)
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0)
    releaser.run(walks(grid, 40, 3))
    return grid, releaser, model.stationary()


@pytest.mark.parametrize(("users", "steps", "most"), [(10_000, 50, 1.0), (1000, 100, 1.5)])
def test_a_user_step_costs_a_scalar_call(users, steps, most, walkers, in_calls, promise, two_cores):
    """10,000 users at one call of NumPy's noise each, on two threads; a thousand users, of whom
    each thread has few, at most half dearer."""
    grid, releaser, prior = walkers
    traces = walks(grid, users, steps)
    promise(in_calls(lambda: releaser.run(traces, prior), traces.size), most, "calls")


def test_a_thousand_users_keep_two_threads_busy(walkers, promise, two_cores):
    """Wall over processor time: 1 / 1.7 at most."""
    grid, releaser, prior = walkers
    traces = walks(grid, 1000, 100)
    releaser.run(traces, prior)
    value = np.inf
    for _ in range(8):
        wall, busy = time.perf_counter(), time.process_time()
        releaser.run(traces, prior)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
        value = min(value, wall / busy)
    promise(value, 1 / 1.7)


def test_density_costs_no_more_than_exact(walkers, ratio, promise):
    grid, exact, prior = walkers
    traces = walks(grid, 1000, 30)
    density = pf.TraceReleaser(exact.graph, exact.model, epsilon=1.0, likelihood="density")
    promise(ratio(lambda: density.run(traces, prior), lambda: exact.run(traces, prior)), 1.1)


def test_one_step_of_one_user(walkers, in_calls, promise):
    grid, releaser, _ = walkers
    stream, walk = releaser.start(1, "point"), iter(walks(grid, 1, 5000)[0])
    steps = in_calls(lambda: [stream.step([next(walk)]) for _ in range(200)], 200)
    promise(steps, 30, "calls")


def test_a_step_where_the_whole_map_is_possible(in_calls, promise):
    """8 neighbours as a policy on 60 x 60: a thousand calls, some 1 ms."""
    releaser, prior = whole_map(60)
    traces = walks(releaser.locations, 4, 25)
    steps = in_calls(lambda: releaser.run(traces, prior), traces.size, 1)
    promise(steps, 1000, "calls")


def test_check_ins_with_long_gaps(promise):
    """30 users, 3,632 events over 1,041 steps on 7,004 places, released and attacked: two million
    scalar calls of NumPy's noise, some 2 s. Tables are made on the way. Of processor time, one
    thread, the release took 1.1 million calls and the attack 0.55 million."""
    _, model, graph = places()
    events = check_ins(model)
    few = check_ins(model, 4, 40)
    pf.attack(pf.TraceReleaser(graph, model, epsilon=1.0).run(few, "point", evidence=True))
    call, started = scalar_call(), time.perf_counter()
    releaser = pf.TraceReleaser(graph, model, epsilon=1.0, rng=0)
    pf.attack(releaser.run(events, "point", evidence=True))
    took = time.perf_counter() - started
    promise(took / min(call, scalar_call()), 2e6, "calls")


def test_a_hundred_thousand_users_cost_what_a_thousand_do(walkers, promise):
    """Processor time of a user-step, within 1.3; three steps of many, and of few over and over."""
    grid, releaser, _ = walkers
    few, many = walks(grid, 1000, 3), walks(grid, 100_000, 3)

    def step(traces, rounds):
        def runs():
            for _ in range(rounds):
                releaser.run(traces, "point")

        return best(runs, 3, time.process_time) / (rounds * traces.size)

    promise(step(many, 1) / step(few, 20), 1.3)


def test_memory_of_a_run(promise):
    """What 100,000 users x 100 steps on a million cells may take of 4 GiB, a user-step; here a
    fiftieth of it."""
    grid, model = city(1000)
    releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0)
    traces = walks(grid, 10_000, 20)
    releaser.run(traces[:40], "point")
    tracemalloc.start()
    releaser.run(traces, "point")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    promise(peak / traces.size, 2**32 / 10_000_000, "bytes a user-step")


@pytest.mark.parametrize("by", ["user", "step"])
def test_policies_mixed_cost_what_one_does(by, ratio, promise):
    """Two policies and two epsilons, in turns from user to user or from step to step: one pass, at
    most 1.1 times the mean of one policy at a time."""
    grid, model = city(100)
    traces, prior = walks(grid, 1000, 100), model.stationary()
    graphs = {"threes": pf.blocks(grid, 3), "fours": pf.blocks(grid, 4)}
    turns = np.arange(1000) % 2 if by == "user" else np.indices(traces.shape).sum(axis=0) % 2
    names = np.array(["threes", "fours"])[turns]
    epsilons = np.where(names == "threes", 1.0, 2.0)
    T = pf.TraceReleaser(graphs, model, epsilon=1.0)
    first = pf.TraceReleaser(graphs["threes"], model, epsilon=1.0)
    other = pf.TraceReleaser(graphs["fours"], model, epsilon=2.0)

    def apart():
        first.run(traces[::2], prior, users=np.arange(0, 1000, 2))
        other.run(traces[1::2], prior, users=np.arange(1, 1000, 2))

    mixed = ratio(lambda: T.run(traces, prior, policy=names, epsilon=epsilons), apart, rounds=3)
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
    """300 x 300 and 3,000 x 3,000 within 1.3 times of each other for users with small domains: the
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
    promise(median[3000] / median[300], 1.3, "time")
