"""A rational number just below e^eps, for proofs in integers."""

from decimal import Decimal, localcontext
from functools import cache
from typing import NamedTuple

import numpy as np

_ANY = 43.7  # above 63 ln 2 every weight, at most 2**63, is below e^eps times any positive one


class ExpBound(NamedTuple):
    """numerator / 2**shift, just below e^epsilon; shift -1: any positive weight will do."""

    numerator: np.uint64
    shift: int


@cache
def exp_lower_bound(epsilon: float) -> ExpBound:
    """The largest such number at hand, within 2**-61 of e^epsilon.

    The decimal library's exp is correctly rounded at 60 digits; the last of them is given away.
    """
    if epsilon >= _ANY:
        return ExpBound(np.uint64(0), -1)
    with localcontext() as context:
        context.prec = 60
        below = Decimal(epsilon).exp() * (1 - Decimal(10) ** -58)
        shift = 63
        while below * 2**shift >= 2**64:
            shift -= 1
        least = 2**63 if shift == 63 else 0
        return ExpBound(np.uint64(max(int(below * 2**shift), least)), shift)
