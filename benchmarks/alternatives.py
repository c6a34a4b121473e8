"""Locations a second of this package and of others, measured side by side on this machine: the
figures of the README's table. ``python benchmarks/alternatives.py``

Needs ``pip install diffprivlib qif`` for all rows; what is not installed is left out. One thread,
process time, the best of five; every mechanism is asked for two-dimensional Laplace noise."""

import time
from collections.abc import Callable, Iterator

import numpy as np

import pglp_fast as pf

REPEATS = 5


def rate(call: Callable[[], object], locations: int) -> float:
    """Locations a second."""
    call()  # compiled, and in the caches
    best = float("inf")
    for _ in range(REPEATS):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return locations / best


def measured() -> Iterator[tuple[str, float]]:
    """(what, locations a second) of whatever is installed."""
    grid = pf.Grid(300, 300, cell_km=0.3)
    cells = np.random.default_rng(0).integers(0, grid.size, 1_000_000).astype(np.int32)
    planar = pf.geo_ind(grid, epsilon_per_km=1.0)
    ppim = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
    yield "pglp_fast, P-PIM on 3 x 3 blocks", rate(lambda: ppim.release(cells), len(cells))
    yield "pglp_fast, planar Laplace on a grid", rate(lambda: planar.release(cells), len(cells))
    one = cells[:1]
    yield (
        "pglp_fast, P-PIM, one call a location",
        rate(lambda: [ppim.release(one) for _ in range(500)], 500),
    )
    raw = np.random.default_rng(0)
    yield "NumPy, raw Laplace noise", rate(lambda: raw.laplace(size=(1_000_000, 2)), 1_000_000)
    try:
        from diffprivlib.mechanisms import Laplace
    except ImportError:
        print("diffprivlib is not installed")
    else:
        axis = Laplace(epsilon=1.0, sensitivity=1.0)
        yield (
            "diffprivlib, Laplace on each axis",
            rate(lambda: [(axis.randomise(1.0), axis.randomise(2.0)) for _ in range(2_000)], 2_000),
        )
    try:
        import qif
    except ImportError:
        print("libqif (qif) is not installed")
    else:
        yield (
            "libqif, planar Laplace",
            rate(
                lambda: [qif.mechanism.geo_ind.planar_laplace_sample(1.0) for _ in range(100_000)],
                100_000,
            ),
        )


if __name__ == "__main__":
    pf.set_num_threads(1)
    for what, per_second in measured():
        print(f"{what:40}{per_second:14,.0f} locations a second")
