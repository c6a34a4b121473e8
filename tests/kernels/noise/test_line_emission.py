"""Noise along a line: spans of the line, their mass, and snapping by the same spans."""

import numpy as np
import pytest

from pglp_fast._kernels.noise import line_emission as kernels

ROW = np.array([(0, 0), (1, 0), (3, 0)])
# a line along row 1 touches the region of the first site in one point alone
CORNER = np.array([(1, 0), (0, 1), (2, 1)])


def linear(sites, s, w=(1.0, 0.0), epsilon=1.0, stretch=1.0):
    out = np.empty(1)
    row = []
    for z in range(len(sites)):
        kernels.linear(z, np.array([s]), sites, stretch, *w, epsilon, out)
        row.append(out[0])
    return np.array(row)


def test_inner_products():
    """Exact on the lattice; a sum that only rounding keeps from 0 is 0."""
    assert kernels.dot(2**29, 1, 2.0**29, -(2.0**29), 1.0) == 2.0**58 - 2.0**29
    assert kernels.dot(3, 1, 0.1, -0.3 * (1 + 1e-15), 1.0) == 0.0
    assert kernels.dot(3, 1, 0.1, -0.3 * (1 + 1e-9), 1.0) < 0.0


def test_laplace_masses_of_three_in_a_row():
    """Boundaries at 1/2 and 2: the Laplace distribution function at their distances from s."""
    half, two = 0.5 * np.exp(-0.5), 0.5 * np.exp(-2.0)
    assert np.exp(linear(ROW, 0)) == pytest.approx([1 - half, half - two, two], rel=1e-15)
    far = linear(ROW, 0, epsilon=2000.0)
    assert far[2] == pytest.approx(-4000.0 + np.log(0.5), rel=1e-15)


def test_a_region_that_the_line_touches_is_impossible():
    row = linear(CORNER, 1)
    assert row[0] == -np.inf
    assert np.exp(row).sum() == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize(("t", "z"), [(-5.0, 1), (0.99, 1), (1.0, 1), (1.01, 2), (9.0, 2)])
def test_snapped_by_the_spans(t, z):
    """Never to the site that is only touched, though at t = 1 it is as near and has a lower index;
    ties to the lower index."""
    assert kernels.nearest_along(1, t, CORNER, 1.0, 1.0, 0.0) == z


def test_what_is_snapped_is_possible_and_nearest():
    """Random sites and lines, along rows, diagonals, through other sites and along bisectors."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        stretch = float(rng.choice([1.0, 9.0, (0.3 / 0.1) ** 2, (1.1 / 0.7) ** 2]))
        sites = np.unique(rng.integers(0, 6, (7, 2)), axis=0)
        w = [(1.0, 0.0), (1.0, 1.0), (-9.0, 1.0), (2.0, -3.0)][rng.integers(4)]
        s = int(rng.integers(len(sites)))
        for t in rng.laplace(scale=2.0, size=5):
            z = kernels.nearest_along(s, t, sites, stretch, *w)
            assert linear(sites, s, w, stretch=stretch)[z] > -np.inf
            away = sites - (sites[s] + t * np.array(w))
            distance = away[:, 0] ** 2 + stretch * away[:, 1] ** 2
            assert distance[z] <= distance.min() * (1 + 1e-9) + 1e-12
