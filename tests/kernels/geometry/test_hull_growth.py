"""What a hull would become with one more difference, against making that hull."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
from cases import SCALES, random_hull
from pglp_fast._kernels.geometry import hull_growth as kernels


@given(st.integers(0, 2**32 - 1))
def test_area_and_error_with_one_more_difference(seed):
    """Two tangents and prefix sums give what a new hull would.

    Catches a wrapped arc and a wrong side.
    """
    rng = np.random.default_rng(seed)
    K = random_hull(rng)
    scale = SCALES[rng.integers(len(SCALES))]
    hull, moments, area, moment = kernels.with_prefixes(K, *scale)
    for x, y in rng.integers(-20, 21, (20, 2)).tolist():
        new = naive.hull([*map(tuple, K.tolist()), (x, y), (-x, -y)])
        assert kernels.area_with(hull, area, x, y) == naive.twice_area(new)
        assert sorted(map(tuple, kernels.grow(K, x, y).tolist())) == sorted(new)
        expected = naive.expected_noise(np.array(new) * np.array(scale))
        assert kernels.error_with(hull, moments, area, moment, x, y, *scale) == pytest.approx(
            expected, rel=1e-12, abs=1e-15
        )


@given(st.integers(0, 2**32 - 1))
def test_the_bounds_that_stop_a_search(seed):
    """4 max(|v|) reach never exceeds twice the new area, and |v| never the new E|Y|: else a
    better partner could be missed."""
    rng = np.random.default_rng(seed)
    K = random_hull(rng)
    hull, moments, area, moment = kernels.with_prefixes(K, 1.0, 1.0)
    reach = kernels.perpendicular_reach(K)
    for x, y in rng.integers(-40, 41, (40, 2)).tolist():
        assert 4 * max(abs(x), abs(y)) * reach <= kernels.area_with(hull, area, x, y)
        assert np.hypot(x, y) <= kernels.error_with(hull, moments, area, moment, x, y, 1.0, 1.0) * (
            1 + 1e-12
        )
