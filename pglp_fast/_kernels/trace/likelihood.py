"""ln Pr(z|s) of noise that was snapped, for every location s that may have released z.

Exact integrals over z's Voronoi region (spec section 5), or the density at z, which is faster."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.geometry.hull import cross
from pglp_fast._kernels.noise.emission import log_column
from pglp_fast._kernels.policy.shapes import sites_of

from .columns import look_up_column


@kernel
def _gauge_forms(polygon):
    """Linear forms with ||x||_K = max |form(x)|: one for each pair of opposite edges."""
    half = polygon.shape[0] >> 1
    forms = np.empty((half, 2))
    for i in range(half):
        ax, ay, bx, by = polygon[i, 0], polygon[i, 1], polygon[i + 1, 0], polygon[i + 1, 1]
        unit = cross(ax, ay, bx, by)
        forms[i, 0], forms[i, 1] = (by - ay) / unit, (ax - bx) / unit
    return forms


@kernel
def log_likelihood(policy, members, z, polygon, epsilon, exact, out):
    """out[k] = ln Pr(members[z] | members[k]), up to a constant where it is not exact.

    For a segment or a point the density would call possible what is not and impossible what is:
    there it is always exact."""
    lattice = policy.lattice
    k = members.shape[0]
    if exact or polygon.shape[0] < 3:
        sites, room = sites_of(members, lattice), np.empty(k, np.int64)
        log_column(sites, policy.stretch, polygon, epsilon, np.arange(k), z, room, out)
        return
    x, y = np.float64(lattice[members[z], 0]), np.float64(lattice[members[z], 1])
    forms = _gauge_forms(polygon)
    for i in range(k):
        dx, dy = x - lattice[members[i], 0], y - lattice[members[i], 1]
        gauge = 0.0
        for e in range(forms.shape[0]):
            gauge = max(gauge, abs(forms[e, 0] * dx + forms[e, 1] * dy))
        out[i] = -epsilon * gauge


@kernel
def likelihoods(policy, settings, members, z, polygon, space):
    """ln Pr(members[z] | s) of every member s to ``space.likelihood``, Pr to ``space.chances``."""
    logs, chances, k = space.likelihood, space.chances, members.shape[0]
    if settings.exact and polygon.shape[0] > 2:
        columns = space.columns
        if look_up_column(columns, policy, members, z, polygon, settings.epsilon, logs, chances):
            return
    log_likelihood(policy, members, z, polygon, settings.epsilon, settings.exact, logs)
    for q in range(k):
        chances[q] = np.exp(logs[q])
