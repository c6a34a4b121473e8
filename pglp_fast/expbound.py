"""A rational number just below e^eps, for proofs in integers."""

from decimal import Decimal, localcontext

import numpy as np

_ANY = 43.7  # above 63 ln 2 every weight, at most 2**63, is below e^eps times any positive one


def exp_lower_bound(epsilon: float) -> tuple[np.uint64, int]:
    """(numerator, shift) with numerator / 2**shift <= e^epsilon, within 2**-61 of it; shift -1 says "any positive
    weight will do".

    The decimal library's exp is correctly rounded at 60 digits; the last of them is given away.
    """
    if epsilon >= _ANY:
        return np.uint64(0), -1
    with localcontext() as context:
        context.prec = 60
        below = Decimal(epsilon).exp() * (1 - Decimal(10) ** -58)
        shift = 63
        while below * 2**shift >= 2**64:
            shift -= 1
        return np.uint64(max(int(below * 2**shift), 2**63 if shift == 63 else 0)), shift
