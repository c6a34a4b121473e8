"""Which policy and which epsilon hold at an event (spec section 10).

Policies over one map are stacked, so that one compiled loop takes users of all of them. A *choice*
is one number: that of the policy, plus the number of policies times that of the epsilon."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.exposure.domain_view import Policy

from .records import Settings

# the fields of ``Policy``, with a row for each policy; cliques of policy k have the extents
# extent[extent_start[k] : extent_start[k + 1]], its rows of further edges begin at indptr[k]; its
# coordinates are lattices[lattice_of[k]]; rows, cols, dx, dy and denominator for each policy
Policies = namedtuple(
    "Policies",
    "lattices lattice_of cliques extent extent_start widest tallest indptr indices rows cols dx dy "
    "stretch weights denominator",
)
# the choice at hand: all policies, its number, its policy, and settings with its epsilon
Chosen = namedtuple("Chosen", "policies number policy settings")
# what a common step looks at: the number of the choice, that of its policy, and a few arrays of
# this policy. Less than in ``Chosen``, for people whose policy changes at every step
Local = namedtuple("Local", "number policy lattice cliques indptr indices")


@kernel
def policy_at(policies, k):
    """Policy number k."""
    p = policies
    extent = p.extent[p.extent_start[k] : p.extent_start[k + 1]]
    return Policy(
        p.lattices[p.lattice_of[k]], p.cliques[k], extent, p.widest[k], p.tallest[k], p.indptr[k],
        p.indices, p.rows[k], p.cols[k], p.dx[k], p.dy[k], p.stretch, p.weights, p.denominator[k],
    )  # fmt: skip


@kernel
def choose(policies, settings, epsilons, number):
    """A choice at hand."""
    n, s = policies.cliques.shape[0], settings
    which = number // n
    bits = epsilons[which : which + 1].view(np.int64)[0]
    own = Settings(
        epsilons[which], s.polygon, s.calibration, s.strategy, s.delta, s.exact, s.tables,
        s.with_hull, s.anchored, s.remap, bits, number,
    )  # fmt: skip
    return Chosen(policies, number, policy_at(policies, number % n), own)


@bare
def number_at(policies, requests, released, e, begin):
    """The choice of event e of a user whose events begin at ``begin``: as it was asked for, or
    with the policy of the place that the user released last."""
    number = np.int64(requests.choice[e])
    if requests.places.shape[0] > 0 and e > begin:
        place = requests.places[released[e - 1]]
        if place >= 0:
            number += place - number % policies.cliques.shape[0]
    return number


@kernel
def choose_at(chosen, requests, released, e, begin):
    """The choice of event e; the one at hand where that is it."""
    number = number_at(chosen.policies, requests, released, e, begin)
    if number == chosen.number:
        return chosen
    return choose(chosen.policies, chosen.settings, requests.epsilons, number)


@bare
def number_of_policy(chosen):
    return chosen.number % chosen.policies.cliques.shape[0]


@bare
def local_at(policies, number):
    """What a common step looks at of a choice, of bound policies: nobody counts the references to
    what this returns."""
    k = number % policies.cliques.shape[0]
    lattice = policies.lattices[policies.lattice_of[k]]
    return Local(number, k, lattice, policies.cliques[k], policies.indptr[k], policies.indices)
