"""Exact probabilities of near-straight sets, up to the limit of the lattice.

The integral is affine-invariant, so a thin sensitivity hull is no harder than a round one, if it
is taken in a frame in which the hull is round. In the plain frame row sums were off by up to 1e-4
and some were NaN.
"""

import numba
import numpy as np
import pytest

from cases import near_straight_sets
from pglp_fast._kernels.geometry import hull
from pglp_fast._kernels.noise import emission

MANY = 30 if numba.config.DISABLE_JIT else 1500  # a sample goes through the plain Python code


def log_matrix(sites, epsilon):
    K = hull.minkowski_difference(hull.chain(sites.copy())).astype(np.float64)
    out = np.empty((len(sites), len(sites)))
    emission.fill_columns(sites, 1.0, K, epsilon, np.arange(len(sites)), 0, len(sites), out)
    return out


@pytest.mark.parametrize("low, high", [(1e-3, 10.0), (10.0, 1e6)])
def test_rows_sum_to_one_and_keep_the_bound(low, high):
    """A wrong sign of one bisector, or a crossing placed from its far end, breaks some of these."""
    rng = np.random.default_rng(7)
    for sites in near_straight_sets(rng, MANY):
        epsilon = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        L = log_matrix(sites, epsilon)
        assert not np.isnan(L).any()
        assert abs(np.exp(L).sum(axis=1) - 1).max() < 1e-12
        with np.errstate(invalid="ignore"):
            assert np.nanmax(L[:, None] - L[None]) <= epsilon * (1 + 1e-9) + 1e-13


def test_rows_of_very_small_epsilon_sum_to_one():
    rng = np.random.default_rng(8)
    for sites in near_straight_sets(rng, MANY // 5):
        P = np.exp(log_matrix(sites, 10.0 ** rng.uniform(-13, -3)))
        assert abs(P.sum(axis=1) - 1).max() < 1e-12


def test_the_frame_is_unimodular_and_makes_the_hull_round():
    rng = np.random.default_rng(9)
    for sites in near_straight_sets(rng, 200):
        K = hull.minkowski_difference(hull.chain(sites.copy()))
        if len(K) < 3:
            continue
        a, b, c, d, image = emission.reduced_frame(K.astype(np.float64))
        assert int(a) * int(d) - int(b) * int(c) == 1
        exact = [
            (int(a) * int(x) + int(b) * int(y), int(c) * int(x) + int(d) * int(y))
            for x, y in K.tolist()
        ]
        assert exact == [(int(x), int(y)) for x, y in image.tolist()]
        x, y = image.T
        assert abs(x @ y) <= 0.5 * (y @ y) * (1 + 1e-12)
        assert y @ y <= x @ x
