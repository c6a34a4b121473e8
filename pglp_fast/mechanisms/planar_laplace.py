"""Planar Laplace noise, the mechanism of Geo-Indistinguishability (Andres et al., CCS 2013)."""

import numpy as np

from pglp_fast._kernels.noise.noise_polygon import DISC
from pglp_fast._util import validate as check
from pglp_fast.policy.named import complete, neighbours8
from pglp_fast.policy.sensitivity import sensitivity_hull
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_locations

from .k_norm import KNorm


class PlanarLaplace(KNorm):
    """Planar Laplace noise as a baseline under the same promise.

    Density (eps/R)^2 / (2 pi) exp(-eps |z - f(s)| / R), R the length of the longest edge in km. The
    disc of radius R is drawn as a polygon of 64 sides around it: closed forms hold, no pair is less
    protected, and noise is 0.04 % longer on average."""

    name, label = "planar-laplace", "planar Laplace"
    noise_kind = DISC
    trace_table = 128  # the integrals over a many-sided K are dear: traces look them up by shape


def geo_ind(locations: Locations, *, epsilon_per_km: float) -> PlanarLaplace:
    """Geo-Indistinguishability on a map: Pr(z|s) <= exp(epsilon_per_km |s - s'|) Pr(z|s') for all
    pairs, |.| in km.

    Planar Laplace noise of rate ``epsilon_per_km``, snapped to the nearest location of the map. Its
    policy is G_1 on a grid (the eight neighbours, whose epsilon is that of the longest edge), all
    pairs elsewhere. Always drawn geometrically: the certificate is then of the K-norm theorem's
    premises, which hold for every pair and not for edges alone."""
    require_locations(locations)
    rate = check.positive(epsilon_per_km, "epsilon_per_km")
    graph = neighbours8(locations) if isinstance(locations, Grid) else complete(locations)
    hull = sensitivity_hull(graph).vertices * np.asarray(locations.scale)
    longest = float(np.hypot(*hull.T).max(initial=0.0))
    return PlanarLaplace(
        graph, epsilon=rate * (longest or 1.0), calibration="graph", sampler="geometric"
    )
