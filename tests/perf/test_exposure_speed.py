"""Detection and repair: against the literal algorithm, against a NumPy pass, and against
themselves at twice the size."""

import itertools
import time

import numpy as np
import pytest

import naive
import pglp_fast as pf


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def best(call, rounds=7):
    call()
    return min(seconds(call) for _ in range(rounds))


def literal_inputs(graph, domain):
    locations = graph.locations
    return (
        [tuple(p) for p in locations.lattice.tolist()],
        locations.scale,
        {tuple(e) for e in graph.edges().tolist()},
        set(domain),
    )


@pytest.fixture(scope="module")
def city():
    grid = pf.Grid(1000, 1000)
    domain = pf.Domain(grid, np.random.default_rng(0).choice(grid.size, 100_000, replace=False))
    return grid, pf.blocks(grid, 3), domain


def test_detection_and_repair_at_a_thousand_nodes_against_the_literal_algorithm(promise):
    """27 x 37 cells of an 8-neighbour map and one far cell that has lost its neighbours: m =
    1,000, one isolated node."""
    grid = pf.Grid(40, 60)
    graph = pf.neighbours8(grid)
    rows, cols = np.meshgrid(np.arange(27), np.arange(37), indexing="ij")
    domain = pf.Domain(grid, [*(rows * grid.cols + cols).ravel(), 39 * grid.cols + 59])
    words = np.stack([domain.words])
    lattice, scale, edges, cells = literal_inputs(graph, domain)
    started = time.perf_counter()
    added, _, _ = naive.repair(lattice, scale, edges, cells, "min-area", "graph")
    literal = time.perf_counter() - started
    ours = best(
        lambda: pf.repair_many(graph, words, strategy="min-area", calibration="graph"), rounds=20
    )
    assert pf.repair(graph, domain, strategy="min-area", calibration="graph").added.tolist() == [
        list(e) for e in added
    ]
    promise(ours / literal, 1 / 10_000)


def test_detection_costs_at_most_twenty_numpy_passes(city, ratio, promise):
    """Every disconnected node found and checked for isolation, against ANDing and counting one
    boolean mask of the map."""
    grid, graph, domain = city
    mask, other = domain.mask(), np.random.default_rng(1).random(grid.size) < 0.5
    value = ratio(
        lambda: pf.isolated(graph, domain, calibration="graph"),
        lambda: np.count_nonzero(mask & other),
        rounds=30,
    )
    promise(value, 20)


def test_detection_is_linear_in_the_domain(city, promise):
    """Doubling the domain costs at most 2.3 times as much, from 10^4 to 10^6 cells."""
    grid, graph, _ = city
    rng = np.random.default_rng(2)
    sizes = [15_625, 31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000]
    domains = [pf.Domain(grid, rng.choice(grid.size, n, replace=False)) for n in sizes]
    times = [
        best(lambda d=d: pf.isolated(graph, d, calibration="graph"), rounds=15) for d in domains
    ]
    for n, t in zip(sizes, times, strict=True):
        print(f"{n:9,} cells {t * 1e6:7.0f} us")
    growth = max(large / small for small, large in itertools.pairwise(times))
    promise(growth, 2.3, "worst doubling")


def test_a_thousand_repairs_take_less_time_than_one_literal_repair(city, promise):
    """The literal algorithm makes a new hull for each of 99,999 candidates; ten of them are
    timed and the rest counted."""
    grid, graph, domain = city
    kept = {tuple(e) for e in graph.constrain(domain).edges().tolist()}
    node = int(pf.disconnected(graph, domain)[0])
    some = [int(c) for c in domain.cells()[:11] if c != node][:10]
    ten = seconds(
        lambda: naive.repair_costs(
            grid.lattice, grid.scale, kept, {node, *some}, node, "min-area", "graph"
        )
    )
    one_literal_repair = ten / len(some) * (len(domain) - 1)
    words = np.stack([domain.words])
    started = time.perf_counter()
    done = pf.repair_many(graph, words, strategy="min-area", calibration="component")
    ours = time.perf_counter() - started
    assert len(done.added) >= 1000
    promise(ours / one_literal_repair, 1.0, f"{len(done.added):,} repairs")
