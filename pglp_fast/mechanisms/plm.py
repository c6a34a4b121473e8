"""P-LM: the paper's Policy-based Laplace Mechanism, and LM on a location set."""

from pglp_fast._kernels.noise.noise_polygon import DIAMOND
from pglp_fast.policy.domain import Domain

from .k_norm import KNorm, every_pair_joined


class PLM(KNorm):
    """Policy-based Laplace Mechanism (the paper's algorithm of that name).

    Independent Laplace(S/eps) on each axis, S = max |dx| + |dy| in km over edges: K-norm noise
    whose K is the diamond |x| + |y| <= S."""

    name, label = "plm", "P-LM"
    noise_kind = DIAMOND


class LM(PLM):
    """The Laplace mechanism on a location set: P-LM where every pair is joined (policy G_2)."""

    name, label = "lm", "LM"
    every_pair = True

    def __init__(self, location_set: Domain, *, epsilon: float, sampler: str = "auto"):
        graph = every_pair_joined(location_set)
        super().__init__(graph, epsilon=epsilon, domain=location_set, sampler=sampler)
