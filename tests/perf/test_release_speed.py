"""The speed that is promised, each as a ratio against a named alternative in the same run."""

import tracemalloc

import numpy as np
import pytest

import pglp_fast as pf
from benchmarks.startup import cold_start, fresh_process
from benchmarks.workloads import seconds

N = 10_000_000


def laplace():
    return np.random.default_rng().laplace(size=(N, 2))


@pytest.fixture
def threads():
    before = pf.get_num_threads()
    yield pf.set_num_threads
    pf.set_num_threads(before)


@pytest.fixture(scope="module")
def city():
    grid = pf.Grid(1000, 1000)
    return pf.PPIM(pf.blocks(grid, 5), epsilon=1.0), np.random.default_rng(0).integers(
        0, grid.size, N
    ).astype(np.int32)


def test_table_release_beats_drawing_the_raw_noise(city, ratio, promise, threads):
    """10 million certified, cryptographic releases on one thread against NumPy's Laplace numbers
    alone."""
    m, cells = city
    threads(1)
    promise(ratio(lambda: m.release(cells), laplace), 1.0)


def test_releases_in_random_order_against_a_gather(city, ratio, promise, threads):
    """10 million releases on one thread against ``table[cells]``, the least that looking each of
    them up could cost in NumPy."""
    m, cells = city
    table = np.arange(m.locations.size)
    threads(1)
    promise(ratio(lambda: m.release(cells), lambda: table[cells], rounds=3), 3.0)


def test_one_release_in_a_call(city, in_calls, promise):
    m, _ = city
    promise(in_calls(lambda: [m.release(5) for _ in range(1000)], 1000), 8, "calls")


def test_two_threads_are_faster_than_one(city, ratio, promise, threads, two_cores):
    m, cells = city

    def release(n):
        threads(n)
        return m.release(cells)

    promise(ratio(lambda: release(2), lambda: release(1)), 0.9)


@pytest.mark.parametrize("component", ["square", "scattered"])
def test_large_components_cost_at_most_ten_times_the_raw_noise(component, ratio, promise, threads):
    grid = pf.Grid(100, 100) if component == "square" else pf.Grid(1000, 1000)
    members = np.random.default_rng(1).choice(grid.size, 10_000, replace=False)
    m = pf.PPIM(pf.complete(grid, members), epsilon=1.0)
    assert not m.tabled[m.groups.shape(int(members[0]))]
    cells = np.random.default_rng(2).choice(members, N).astype(np.int32)
    threads(1)
    promise(ratio(lambda: m.release(cells), laplace, rounds=2), 10.0)


def test_a_policy_and_a_mechanism_on_a_million_cells_are_cheap(ratio, promise):
    """Each under a second; here: both together cost less than drawing 10 million raw noises,
    under a second itself."""
    value = ratio(
        lambda: pf.PPIM(pf.blocks(pf.Grid(1000, 1000), 5), epsilon=1.0).release([0]),
        laplace,
        rounds=3,
    )
    promise(value, 1.0)


def test_memory_is_linear_in_locations_not_edges(promise):
    """12 million edges would take 96 MB of CSR indices alone; a million cells get a few dozen
    bytes each."""
    tracemalloc.start()
    m = pf.PPIM(pf.blocks(pf.Grid(1000, 1000), 5), epsilon=1.0)
    m.release([0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    promise(peak / 1_000_000, 80, "bytes a cell")


def test_import_costs_little_more_than_numba(ratio, promise):
    value = ratio(
        lambda: fresh_process("import pglp_fast"), lambda: fresh_process("import numba"), rounds=5
    )
    promise(value, 1.5)


def test_the_first_release_and_certificate_without_compiled_kernels(promise):
    """Everything that they need is compiled, in imports of Numba."""
    numba = seconds(lambda: fresh_process("import numba"), 5)
    promise(seconds(cold_start, 0) / numba, 40, "imports of Numba")
