"""The integrals of exp over an interval and a triangle, in 1000 digits."""

import math
from decimal import Decimal, localcontext

import pytest

from pglp_fast._kernels.noise import emission


def exact_mean_exp(x):
    return (1 - (-x).exp()) / x if x else Decimal(1)


def exact_simplex_exp(a, b):
    a, b = sorted((a, b))
    return (exact_mean_exp(a) - (-a).exp() * exact_mean_exp(b - a)) / b if b else Decimal(1) / 2


SIZES = (
    0.0,
    1e-300,
    1e-17,
    1e-9,
    1e-3,
    0.3,
    0.5,
    math.nextafter(0.5, 1),
    0.7,
    1.0,
    3.0,
    40.0,
    700.0,
    745.0,
    1e5,
)


@pytest.mark.parametrize("a", SIZES)
def test_exponential_integrals(a):
    """Catches cancellation where the arguments are close, tiny, or of different sizes."""
    close = [a * (1 + d) for d in (1e-15, 1e-9, 1e-4)]
    with localcontext() as context:
        context.prec = 1000
        assert emission.mean_exp(a) == pytest.approx(float(exact_mean_exp(Decimal(a))), rel=1e-15)
        for b in (*SIZES, *close):
            exact = float(exact_simplex_exp(Decimal(a), Decimal(b)))
            assert emission.simplex_exp(a, b) == pytest.approx(exact, rel=2e-15)
            assert emission.simplex_exp(b, a) == emission.simplex_exp(a, b)
