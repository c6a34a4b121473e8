"""Domains too large for a pattern: the last ones under each policy are kept, repaired.

Where a belief covers much of the map, its support is mostly the same from step to step, and from
user to user: that of a shared prior, or all of the map. Then the repair, the component and its hull
are those of the step before, exactly. A domain that differs in one location is repaired anew. Of
each policy two are kept: the last of a shared prior, and behind those of all policies the last of a
belief."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import clear_cells, set_cells
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.exposure.repaired_domain import (
    Workspace,
    discard,
    make_repaired_domain,
)

from .choices import policy_at
from .forward import Belief
from .records import LOGS
from .release import no_output

# prior: the number of the shared prior whose domain this is, or negative; the domain with p_t^- on
# it, repaired, and what the last release from it by noise could say
Kept = namedtuple("Kept", "prior domain repaired output")


@kernel
def place_of(large, k):
    """Work space for the large domain that is kept at k."""
    return Workspace(large.words[k], large.head[k], large.position[k], large.rows[k])


@kernel
def leave(repaired):
    """Empty the work space of a domain."""
    discard(repaired)
    clear_cells(repaired.domain.words, repaired.domain.cells, repaired.domain.cells.shape[0])


@kernel
def nothing_kept_at(policies, settings, space, k):
    """The repaired domain of no locations, and the belief on it, in place k."""
    none, policy = Belief(LOGS, space.cells[:0], space.values[:0]), k % policies.cliques.shape[0]
    repaired = make_repaired_domain(
        policy_at(policies, policy), settings.strategy, settings.calibration,
        place_of(space.large, k), none.cells,
    )  # fmt: skip
    return Kept(np.int64(-1), none, repaired, no_output(repaired))


@kernel
def nothing_kept(policies, settings, space):
    """For each policy, twice, a domain of no locations."""
    out = []
    for k in range(2 * policies.cliques.shape[0]):
        out.append(nothing_kept_at(policies, settings, space, k))
    return out


@kernel
def _same(a, b):
    """Whether two domains have the same cells."""
    if a.shape[0] != b.shape[0]:
        return False
    apart = 0
    for k in range(a.shape[0]):
        apart += a[k] != b[k]
    return apart == 0


@kernel
def keep_large(old, k, chosen, space, domain, prior):
    """A large domain as it is kept at k from now on, in place of ``old``; where that has the same
    cells, it is repaired already. The bitmask of small domains is emptied."""
    settings, n = chosen.settings, domain.cells.shape[0]
    clear_cells(space.domain.words, domain.cells, n)
    if _same(old.domain.cells, domain.cells):
        same = Belief(domain.kind, old.domain.cells, domain.values)
        return Kept(prior, same, old.repaired, old.output)
    leave(old.repaired)
    cells, place = space.large.cells[k, :n], place_of(space.large, k)
    for p in range(n):
        cells[p] = domain.cells[p]
    set_cells(place.words, cells)
    repaired = make_repaired_domain(
        chosen.policy, settings.strategy, settings.calibration, place, cells
    )
    belief = Belief(domain.kind, cells, domain.values)
    return Kept(prior, belief, repaired, no_output(repaired))
