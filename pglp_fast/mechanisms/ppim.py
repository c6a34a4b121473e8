"""P-PIM: the paper's Policy-based Planar Isotropic Mechanism, and PIM on a location set."""

from pglp_fast._kernels.noise.noise_polygon import HULL
from pglp_fast.policy.domain import Domain

from .k_norm import KNorm, every_pair_joined


class PPIM(KNorm):
    """Policy-based Planar Isotropic Mechanism (the paper's algorithm of that name).

    K-norm noise whose K is the sensitivity hull itself: the least noise of the three."""

    name, label = "ppim", "P-PIM"
    noise_kind = HULL


class PIM(PPIM):
    """The planar isotropic mechanism on a location set (delta-Location Set Privacy).

    P-PIM where every pair of the set is joined (policy G_2); Xiao and Xiong, CCS 2015."""

    name, label = "pim", "PIM"
    every_pair = True

    def __init__(self, location_set: Domain, *, epsilon: float, sampler: str = "auto"):
        graph = every_pair_joined(location_set)
        super().__init__(graph, epsilon=epsilon, domain=location_set, sampler=sampler)
