"""What a release gives away and what it hides, in one sentence: a proof says only that a policy is
kept, not what that policy is worth."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.space.grid import Grid

_LARGEST = 700.0  # exponent of e that is written out


def headline(graph: PolicyGraph, epsilon: float, *, calibration: str = "component") -> str:
    """What whoever sees one release knows, and what stays hidden.

    Parameters
    ----------
    graph : PolicyGraph
        The policy.
    epsilon : float
        Of the release.
    calibration : {"component", "graph"}
        With "component" the release is in the component of the true location, and so gives the
        component away. With "graph" it is not; but nothing is promised of two components either.

    Returns
    -------
    str
        One sentence, or two where some locations are hidden by no edge.
    """
    require_policy(graph)
    epsilon = check.epsilon(epsilon)
    check.choice(calibration, "calibration", CALIBRATIONS)
    size = graph.locations.size
    alone = int(np.count_nonzero(graph.degrees() == 0))
    if alone == size:
        return "Whoever sees a release knows the exact place: the policy hides nothing."
    most = epsilon * _largest_weight(graph)
    factor = f"a factor of e^{most:g}"
    factor += f" = {math.exp(most):.3g}" if most < _LARGEST else ""
    factor += " (or less, by the weight of their edge)" if graph.weights is not None else ""
    hidden = (
        f"two places that the policy joins cannot be told apart beyond {factor} in how likely "
        "they are"
    )
    sizes = np.bincount(graph.components)
    if sizes.max() == size:
        text = f"Whoever sees a release learns roughly where somebody is: {hidden}."
    elif calibration == "component":
        text = (
            f"Whoever sees a release knows in which group of places somebody is ({_group(graph)}); "
            f"within it, {hidden}."
        )
    else:
        text = (
            "Whoever sees a release may learn in which group of places somebody is "
            f"({_group(graph)}), of which nothing is promised; within it, {hidden}."
        )
    if alone and calibration == "component":
        text += (
            f" {alone:,} of {size:,} places have no edge: whoever is there is given away exactly."
        )
    elif alone:
        text += f" {alone:,} of {size:,} places have no edge: of those nothing is promised."
    return text


def headlines(
    names: Sequence[str],
    graphs: Sequence[PolicyGraph],
    policy: NDArray[np.int64],
    epsilon: NDArray[np.float64],
    *,
    calibration: str,
) -> str:
    """The same for releases under several policies, of each of which number and epsilon are given:
    a sentence for each policy that was used, at the largest epsilon that it was used with."""
    used = np.unique(policy).tolist()
    told = [
        headline(graphs[k], float(epsilon[policy == k].max()), calibration=calibration)
        for k in used
    ]
    if len(used) == 1:
        return told[0]
    return " ".join(f"Under policy {names[k]}: {text}" for k, text in zip(used, told))


def _largest_weight(graph: PolicyGraph) -> float:
    if graph.weights is None:
        return 1.0
    weights = graph.edge_weights()
    return float((weights[:, 0] / weights[:, 1]).max(initial=1.0))


def _group(graph: PolicyGraph) -> str:
    """The group that a typical location is in: its size and extent."""
    label = graph.components
    sizes = np.bincount(label)
    mine = sizes[label]
    joined = np.flatnonzero(mine > 1)
    typical = joined[np.argsort(mine[joined], kind="stable")[len(joined) // 2]]
    members = graph.locations.lattice[label == label[typical]]
    span = np.ptp(members, axis=0)
    dx, dy = graph.locations.scale
    if isinstance(graph.locations, Grid):
        wide, high = (int(v) + 1 for v in span)
        extent = f"within {wide * dx:.3g} x {high * dy:.3g} km"
        if wide * high == len(members):
            return f"typically {wide} x {high} cells, {extent}"
    else:
        extent = f"within {span[0] * dx:.3g} x {span[1] * dy:.3g} km"
    return f"typically {len(members):,} places {extent}"
