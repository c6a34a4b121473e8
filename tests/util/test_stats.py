"""Intervals of means and of differences, against SciPy's."""

import math

import numpy as np
import pytest
import scipy.stats

from pglp_fast._util.stats import (
    Clusters,
    difference_interval,
    mean_bands,
    mean_interval,
    signed_mean_interval,
)


def test_signed_mean_interval():
    """Differences may be negative: an interval cut off at 0 would call every claim supported."""
    values = np.random.default_rng(0).normal(-0.1, 1, 25)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert signed_mean_interval(values, 0.9) == pytest.approx(tuple(expected))
    assert signed_mean_interval(values, 0.9)[0] < 0 == mean_interval(values, 0.9)[0]
    assert signed_mean_interval(values[:1], 0.9) == (-math.inf, math.inf)
    alone = Clusters.of(np.arange(25))
    assert signed_mean_interval(values, 0.9, alone) == pytest.approx(tuple(expected))


def test_difference_interval():
    """Welch's: samples of unequal sizes and variances."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 12), rng.normal(1, 5, 40)
    expected = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert difference_interval(a, b, 0.95) == pytest.approx(tuple(expected))
    assert difference_interval(a[:1], b, 0.95) == (-math.inf, math.inf)
    assert difference_interval(np.ones(3), np.zeros(2), 0.95) == (1.0, 1.0)


def test_mean_bands():
    """Column by column what ``mean_interval`` says of the entries that are there."""
    values = np.random.default_rng(2).random((8, 5))
    values[3:, 1] = np.nan
    values[1:, 2] = np.nan
    values[:, 3] = np.nan
    mean, low, high, n = mean_bands(values, 0.95)
    assert n.tolist() == [8, 3, 1, 0, 8]
    for k in (0, 1, 2, 4):
        some = values[~np.isnan(values[:, k]), k]
        assert mean[k] == pytest.approx(some.mean())
        assert (low[k], high[k]) == pytest.approx(mean_interval(some, 0.95))
    assert np.isnan(mean[3])
