"""Sums of logarithms against 60 decimal digits, where float64 alone under- or overflows."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from pglp_fast._kernels.base import logarithms

ROWS = ([0.0], [0.0, 0.0], [-1.0, 2.0, 0.5], [-800.0, -801.0, -900.0], [900.0, 899.0], [0.0, -1e5])


def log_sum(row):
    with localcontext() as context:
        context.prec = 60
        return float(sum(Decimal(v).exp() for v in row).ln())


@pytest.mark.parametrize("row", ROWS)
def test_sums(row):
    total, near = log_sum(row), {"rel": 1e-13, "abs": 1e-13}
    running = -np.inf
    for value in row:
        running = logarithms.log_add(running, value)
    assert running == pytest.approx(total, **near)
    logs = np.array(row)
    assert logarithms.normalise(logs) == pytest.approx(total, **near)
    assert logs == pytest.approx(np.array(row) - total, **near)
    p = np.array(row)
    assert logarithms.softmax(p) == pytest.approx(total, **near)
    assert p.sum() == pytest.approx(1.0, rel=1e-14)
    assert p == pytest.approx(np.exp(np.array(row) - total), rel=1e-12)
    out = np.empty(len(row))
    assert logarithms.exponentials(np.array(row), out) == max(row)
    assert out == pytest.approx(np.exp(np.array(row) - max(row)))


def test_nothing_and_something():
    assert logarithms.log_add(-np.inf, -np.inf) == -np.inf
    assert logarithms.log_add(-np.inf, 3.0) == 3.0
    assert logarithms.log_add(3.0, -np.inf) == 3.0
    logs = np.array([-np.inf, 0.0])
    logarithms.normalise(logs)
    assert logs.tolist() == [-np.inf, 0.0]
