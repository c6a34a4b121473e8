"""What one release leaves the adversary to guess, exactly; and mechanisms compared, privacy beside utility.

The adversary knows the prior pi, the mechanism and the released z, and guesses the location w of least expected distance. Over
everything that can happen,

    error    = sum_z min_w sum_s pi(s) Pr(z|s) |f(s) - f(w)|     (km)
    entropy  = H(s|z) = -sum_z sum_s pi(s) Pr(z|s) log2 Pr(s|z)   (bits)
    lift     = max_{s,z} ln Pr(z|s) / Pr(z | component of s)

w is any location of the output set of z. A policy lets the component be known; ``told_error`` and ``told_entropy`` are what that
alone leaves: a mechanism that says nothing more has error = told_error, entropy = told_entropy and lift 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidParameter, TooLarge
from .mechanisms.base import Mechanism
from .mechanisms.recipe import MAX_TABLE
from .metrics import Utility, location_weights, utility

_CHUNK = 1 << 22  # products held at once


@dataclass(frozen=True)
class Privacy:
    """What an adversary can do with one release. More is better but for ``lift``.

    Attributes
    ----------
    error : expected distance in km of the best guess once z is known
    entropy : bits of the true location that z leaves open
    lift : how much belief in a location can rise, as ln, beyond knowing its component; at most epsilon times its diameter in hops
    told_error, told_entropy : the same if only the component were known
    """

    error: float
    entropy: float
    lift: float
    told_error: float
    told_entropy: float


def privacy(mechanism: Mechanism, *, prior: ArrayLike | None = None) -> Privacy:
    """What an adversary who knows the prior (even over the domain if None) learns from one release, exactly."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"privacy takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...)")
    m, g = mechanism, mechanism.groups
    weight = location_weights(prior, g.address[:, 0] >= 0)
    sizes = g.sizes
    if sizes.max(initial=0) > MAX_TABLE:
        raise TooLarge(
            f"an output set has {sizes.max()} locations, exact privacy is computed up to {MAX_TABLE}: "
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
        P = np.exp(m._log_rows(shape, np.arange(size))).T  # of z, given s
        step = max(1, _CHUNK // size**2)
        for begin in range(0, len(pi), step):
            found = _guess(P, pi[begin : begin + step], distance)
            total[:4] += found[:4]
            total[4] = max(total[4], found[4])
    return Privacy(*(float(v) for v in (total[0], total[1], total[4], total[2], total[3])))


def _guess(P: NDArray[np.float64], pi: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(error, entropy, told error, told entropy) summed over groups with these priors, and the largest lift."""
    joint = P[None] * pi[:, None, :]
    error = (joint @ distance).min(axis=2).sum()
    mass, said = pi.sum(axis=1), joint.sum(axis=2)
    told = (pi @ distance).min(axis=1).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        left = -np.where(joint > 0, joint * np.log2(joint / said[..., None]), 0.0).sum()
        left_told = -np.where(pi > 0, pi * np.log2(pi / mass[:, None]), 0.0).sum()
        possible = (pi[:, None, :] > 0) & (P[None] > 0)
        lift = np.where(possible, np.log(P[None] * mass[:, None, None] / said[..., None]), -np.inf).max()
    return np.array([error, left, told, left_told, lift])


@dataclass(frozen=True)
class Comparison:
    """Mechanisms side by side: ``rows[name] = (utility, privacy)``."""

    rows: dict[str, tuple[Utility, Privacy]]

    def as_rows(self) -> list[dict[str, Any]]:
        """One flat dict for each mechanism, for a table, CSV or pandas."""
        return [
            {"mechanism": name, **u.as_dict(), "adversary_error": p.error, "entropy": p.entropy, "lift": p.lift,
             "told_error": p.told_error, "told_entropy": p.told_entropy}
            for name, (u, p) in self.rows.items()
        ]  # fmt: skip

    def __str__(self) -> str:
        width = max([9, *map(len, self.rows)])
        utility, privacy = "utility (less is better)", "privacy (more is better, but lift)"
        lines = [f"{'':{width}} |{utility:^34}|{privacy:^36}"]
        lines.append(
            f"{'mechanism':{width}} |{'error km':>11}{'worst km':>11}{'90 % km':>11} |"
            f"{'adversary km':>13}{'left bits':>11}{'ln lift':>10}"
        )
        for name, (u, p) in self.rows.items():
            tail = u.quantiles.get(0.9, float("nan"))
            lines.append(
                f"{name:{width}} |{u.e_eu:11.3f}{u.worst.error:11.3f}{tail:11.3f} |{p.error:13.3f}{p.entropy:11.2f}{p.lift:10.2f}"
            )
        told = [(p.told_error, p.told_entropy) for _, p in self.rows.values()]
        if np.ptp(told, axis=0).max() <= 1e-9 * np.max(told):  # of one policy
            lines.append(f"Who is told the component alone errs by {told[0][0]:.3f} km, with {told[0][1]:.2f} bits left.")
        return "\n".join(lines)


def compare(
    mechanisms: Mapping[str, Mechanism] | Sequence[Mechanism], *, prior: ArrayLike | None = None, **metrics: Any
) -> Comparison:
    """Utility and privacy of mechanisms under one prior, side by side.

    Parameters
    ----------
    mechanisms : by name, or a list (named by their class, and numbered where there are several of one)
    prior : how likely each location is; even if None
    metrics : region, categories, quantiles, as for ``pf.utility``

    Notes
    -----
    Read both halves. At small epsilon the mechanism of least error says nothing at all, and so leaves the adversary nothing; at
    equal error, the one that leaves the adversary less certain is better.
    """
    if not isinstance(mechanisms, Mapping):
        kinds = [type(m).__name__ for m in mechanisms]
        names = [k if kinds.count(k) == 1 else f"{k} {kinds[: i + 1].count(k)}" for i, k in enumerate(kinds)]
        mechanisms = dict(zip(names, mechanisms, strict=True))
    if not mechanisms:
        raise InvalidParameter("compare takes at least one mechanism")
    return Comparison({name: (utility(m, prior=prior, **metrics), privacy(m, prior=prior)) for name, m in mechanisms.items()})
