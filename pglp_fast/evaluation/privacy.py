"""What one release leaves the adversary to guess, exactly.

The adversary knows the prior pi, the mechanism and the released z, and guesses the location w of
least expected distance. Over everything that can happen,

    error    = sum_z min_w sum_s pi(s) Pr(z|s) |f(s) - f(w)|     (km)
    entropy  = H(s|z) = -sum_z sum_s pi(s) Pr(z|s) log2 Pr(s|z)   (bits)
    lift     = max_{s,z} ln Pr(z|s) / Pr(z | component of s)

w is any location of the output set of z. A policy lets the component be known; ``told_error`` and
``told_entropy`` are what that alone leaves: a mechanism that says nothing more has error =
told_error, entropy = told_entropy and lift 0."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast.errors import InvalidParameter, TooLarge
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.table_sampler import MAX_TABLE

from .exact_utility import location_weights

_CHUNK = 1 << 22  # products held at once


@dataclass(frozen=True)
class Privacy:
    """What an adversary can do with one release. More is better but for ``lift``.

    Attributes
    ----------
    error : expected distance in km of the best guess once z is known, among the locations that
        may be released as z's component, never elsewhere on the map: where a component has holes or
        its members lie far apart, a guess in between can be nearer, and this is then an upper bound
    entropy : bits of the true location that z leaves open
    lift : how much belief in a location can rise, as ln, beyond knowing its component; at most
        epsilon times its diameter in d_G
    told_error, told_entropy : the same if only the component were known
    """

    error: float
    entropy: float
    lift: float
    told_error: float
    told_entropy: float


def privacy(mechanism: Mechanism, *, prior: ArrayLike | None = None) -> Privacy:
    """What an adversary who knows the prior (even over the domain if None) learns from one
    release, exactly; guesses are locations of the output set of z."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(
            f"privacy takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...)"
        )
    m, g = mechanism, mechanism.groups
    weight = location_weights(prior, g.address[:, 0] >= 0)
    sizes = g.sizes
    if sizes.max(initial=0) > MAX_TABLE:
        raise TooLarge(
            f"an output set has {sizes.max()} locations, exact privacy is computed up to "
            f"{MAX_TABLE}: "
            "release traces and attack them"
        )
    order = np.argsort(g.shape_of, kind="stable")
    ends = np.cumsum(np.bincount(g.shape_of, minlength=len(sizes)))
    total = np.zeros(5)  # error, entropy, told error, told entropy, lift
    for shape, size in enumerate(sizes.tolist()):
        groups = order[ends[shape - 1] if shape else 0 : ends[shape]]
        members = g.members[g.starts[groups][:, None] + np.arange(size)]
        pi = weight[members]
        if prior is None:  # all of a shape alike: one of them counts for all
            pi = pi[:1] * len(groups)
        pi = pi[pi.sum(axis=1) > 0]
        if size == 1 or not len(pi):
            continue
        at = m.locations.lattice[members[0]] * np.asarray(m.locations.scale)
        distance = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1))
        P = np.exp(m.log_rows(shape, np.arange(size))).T  # of z, given s
        step = max(1, _CHUNK // size**2)
        for begin in range(0, len(pi), step):
            found = _guess(P, pi[begin : begin + step], distance)
            total[:4] += found[:4]
            total[4] = max(total[4], found[4])
    return Privacy(*(float(v) for v in (total[0], total[1], total[4], total[2], total[3])))


def _guess(
    P: NDArray[np.float64], pi: NDArray[np.float64], distance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(error, entropy, told error, told entropy) summed over groups with these priors, and the
    largest lift."""
    joint = P[None] * pi[:, None, :]
    error = (joint @ distance).min(axis=2).sum()
    mass, said = pi.sum(axis=1), joint.sum(axis=2)
    told = (pi @ distance).min(axis=1).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        left = -np.where(joint > 0, joint * np.log2(joint / said[..., None]), 0.0).sum()
        left_told = -np.where(pi > 0, pi * np.log2(pi / mass[:, None]), 0.0).sum()
        possible = (pi[:, None, :] > 0) & (P[None] > 0)
        lift = np.where(
            possible, np.log(P[None] * mass[:, None, None] / said[..., None]), -np.inf
        ).max()
    return np.array([error, left, told, left_told, lift])
