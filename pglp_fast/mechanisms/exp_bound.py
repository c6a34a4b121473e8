"""Rational numbers just below e^eps, and e^(w eps) for edges of weight w, for proofs in
integers."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ANY = 43.7  # above 63 ln 2 every weight, at most 2**63, is below e^eps times any positive one


class ExpBound(NamedTuple):
    """numerator / 2**shift, just below e^epsilon; shift -1: any positive weight will do."""

    numerator: np.uint64
    shift: int


@lru_cache(maxsize=1024)
def exp_lower_bound(epsilon: float | Fraction) -> ExpBound:
    """The largest such number at hand, within 2**-61 of e^epsilon.

    The decimal library's exp is correctly rounded at 60 digits; the last of them is given away. A
    fraction is first rounded down at 80 digits, which moves its exp in the 77th at most.
    """
    if epsilon >= _ANY:
        return ExpBound(np.uint64(0), -1)
    with localcontext() as context:
        if isinstance(epsilon, Fraction):
            context.prec = 80
            given = Decimal(epsilon.numerator) / epsilon.denominator * (1 - Decimal(10) ** -79)
        else:
            given = Decimal(epsilon)
        context.prec = 60
        below = given.exp() * (1 - Decimal(10) ** -58)
        shift = 63
        while below * 2**shift >= 2**64:
            shift -= 1
        least = 2**63 if shift == 63 else 0
        return ExpBound(np.uint64(max(int(below * 2**shift), least)), shift)


class PairBounds(NamedTuple):
    """Of pairs of weights w: w, and a number just below e^(w epsilon), numerator / 2**shift."""

    weights: NDArray[np.float64]
    numerators: NDArray[np.uint64]
    shifts: NDArray[np.int64]


def pair_bounds(
    epsilon: float, numerator: NDArray[np.int64], denominator: NDArray[np.int64]
) -> PairBounds:
    """The bounds of pairs whose weights are these fractions."""
    names, which = np.unique(numerator << 32 | denominator, return_inverse=True)
    exact, which = Fraction(epsilon), which.reshape(-1)
    found = [exp_lower_bound(Fraction(n >> 32, n & 0xFFFFFFFF) * exact) for n in names.tolist()]
    return PairBounds(
        np.asarray(numerator / denominator, np.float64),
        np.array([bound.numerator for bound in found], np.uint64)[which],
        np.array([bound.shift for bound in found], np.int64)[which],
    )
