"""The guess of least expected distance against trying every candidate."""

import numpy as np
import pytest

import naive_attacks as naive
from pglp_fast._kernels.attack import guess as kernels


def mass_of(cells, x, y, w, dx, dy, cols):
    parts = (np.asarray(v, float) for v in (x, y, w))
    return kernels.Mass(np.asarray(cells, np.int32), *parts, dx, dy, cols)


def best(mass):
    n = len(mass.cells)
    space = np.empty((kernels.STACK, 5), np.int64), np.empty(max(n, kernels.STACK))
    return kernels.best_guess(mass, n, *space)


@pytest.mark.parametrize("seed", range(25))
def test_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    rows, cols = (int(v) for v in rng.integers(1, 7, 2))
    n = int(rng.integers(1, rows * cols + 1))
    cells = np.sort(rng.choice(rows * cols, n, replace=False))
    w = rng.random(n) if seed % 2 else np.ones(n)
    dx, dy = [(1.0, 1.0), (0.5, 0.25)][seed % 3 == 0]
    mass = mass_of(cells, cells % cols, cells // cols, w, dx, dy, cols)
    every = np.arange(rows * cols)
    xy = np.stack([every % cols * dx, every // cols * dy], axis=1)
    p = np.zeros(rows * cols)
    p[cells] = w
    cell, error = naive.guess_dense(xy, p, every)
    found = best(mass)
    assert found[0] == cell
    assert found[1] == pytest.approx(error, rel=1e-12, abs=1e-300)
    assert kernels.expected_distance(mass, n, cell % cols, cell // cols) == pytest.approx(
        error, rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize("seed", range(25))
def test_among_points(seed):
    """Only where the mass is."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    x, y, w = rng.integers(0, 30, n), rng.integers(0, 30, n), rng.random(n)
    mass = mass_of(np.arange(n), x, y, w, 1.0, 1.0, 0)
    cell, error = naive.guess_dense(np.stack([x, y], axis=1).astype(float), w, np.arange(n))
    found = best(mass)
    assert found[0] == cell
    assert found[1] == pytest.approx(error, rel=1e-12, abs=1e-300)


def test_the_middle_of_four_corners():
    """Where nobody can be: a search kept to the support would miss it."""
    mass = mass_of([0, 4, 20, 24], [0, 4, 0, 4], [0, 0, 4, 4], np.ones(4), 1.0, 1.0, 5)
    assert best(mass) == (12, pytest.approx(4 * np.sqrt(8)))
