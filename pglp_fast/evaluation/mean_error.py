"""The mean error of a mechanism, for any size of its output sets."""

import numpy as np
from numpy.typing import ArrayLike

from pglp_fast.errors import TooLarge
from pglp_fast.mechanisms.contract import Mechanism

from .exact_utility import location_weights, utility

_DRAWS = 20_000  # where exact figures are out of reach


def expected_error(mechanism: Mechanism, *, prior: ArrayLike | None = None) -> float:
    """E d(s, z) in km of a release, with locations as likely as ``prior`` says.

    Exact where ``pf.utility`` is, else the mean of 20,000 draws with a fixed seed."""
    try:
        return float(utility(mechanism, prior=prior).e_eu)
    except TooLarge:
        weight = location_weights(prior, mechanism.groups.address[:, 0] >= 0)
        # evenly spread quantiles of the prior: no randomness but that of the mechanism
        at = np.searchsorted(np.cumsum(weight), (np.arange(_DRAWS) + 0.5) / _DRAWS)
        cells = np.minimum(at, mechanism.locations.size - 1).astype(np.int32)
        released = mechanism.release(cells, users=np.arange(_DRAWS), rng=0)
        return float(mechanism.locations.distance(cells, released).mean())
