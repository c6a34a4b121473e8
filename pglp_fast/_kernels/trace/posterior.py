"""The adversary's update: p_t^+ is proportional to Pr(z_t|s) p_t^- (spec section 7)."""

import numpy as np

from pglp_fast._kernels.base.growing import append_one
from pglp_fast._kernels.base.jit import bare, kernel

from .forward import TINY, Belief, settle
from .records import LOGS, OWN


@kernel
def _products(logs, chances, at, positions, belief, space):
    """Pr(z|s) p_t^-(s) to the user's own room, where nothing underflows; ``at``: where the
    likelihoods of the positions begin.

    Returns how many are possible; -1 where something underflows."""
    cells, values = space.own_cells, space.own_values
    n = 0
    for q in range(positions.shape[0]):
        if logs[at + q] == -np.inf:
            continue
        p = positions[q]
        value = belief.values[p] * chances[at + q]
        if value < TINY:
            return -1
        cells[n], values[n] = belief.cells[p], value
        n += 1
    return n


@kernel
def likelihoods_of(release, tables, space):
    """(logarithms, Pr(z|s), offset) of the likelihoods, in the order of ``release.positions``."""
    if release.column < 0:
        return space.likelihood, space.chances, np.int64(0)
    at = tables.at[release.entry] + release.column * release.positions.shape[0]
    return tables.logs, tables.chances, at


@bare
def log_products(logs, at, positions, belief, cells, values):
    """ln (Pr(z|s) p_t^-(s)) of the positions to ``cells`` and ``values``; returns how many are
    possible."""
    before, places, linear = belief.values, belief.cells, belief.kind != LOGS
    n = 0
    for q in range(positions.shape[0]):
        log = logs[at + q]
        if log > -np.inf:
            value = before[positions[q]]
            if linear:
                value = np.log(value)
            cells[n], values[n] = places[positions[q]], value + log
            n += 1
    return n


@kernel
def posterior(release, belief, tables, space):
    """p_t^+ in the user's own room, without the locations that cannot have released z_t."""
    logs, chances, at = likelihoods_of(release, tables, space)
    positions, n, kind = release.positions, -1, OWN
    if belief.kind == OWN:
        n = _products(logs, chances, at, positions, belief, space)
    if n < 0:
        n = log_products(logs, at, positions, belief, space.own_cells, space.own_values)
        kind = LOGS
    updated = Belief(kind, space.own_cells[:n], space.own_values[:n])
    return settle(updated) if n > 0 else updated


@kernel
def keep_likelihoods(release, belief, tables, space, cells, logs):
    """Append the possible locations and ln Pr(z|s) of a release to two pools."""
    found, _, at = likelihoods_of(release, tables, space)
    positions, places = release.positions, belief.cells
    for q in range(positions.shape[0]):
        if found[at + q] > -np.inf:
            cells = append_one(cells, places[positions[q]])
            logs = append_one(logs, found[at + q])
    return cells, logs
