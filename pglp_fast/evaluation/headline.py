"""What a release gives away and what it hides, in one sentence: a proof says only that a policy is
kept, not what that policy is worth."""

import math
from collections.abc import Mapping

import numpy as np

from pglp_fast._util import validate as check
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.policy.graph_repair import STRATEGIES
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.space.grid import Grid

_LARGEST = 700.0  # exponent of e that is written out


def headline(
    graph: PolicyGraph, epsilon: float, *, calibration: str = "component", repair: str | None = None
) -> str:
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
    repair : str, optional
        Of releases along traces, the ``repair`` of their ``TraceReleaser``. The policy then holds
        on what is possible at a step: a repaired step, and a place that the model calls impossible,
        lead out of the component. ``explained`` says what these are. None for releases one by
        one.

    Returns
    -------
    str
        One sentence, or two where some locations are hidden by no edge.
    """
    return headlines({"": (graph, epsilon)}, calibration=calibration, repair=repair)


def headlines(
    policies: Mapping[str, tuple[PolicyGraph, float]],
    *,
    calibration: str = "component",
    repair: str | None = None,
) -> str:
    """The same for releases under several policies: by name, each and its epsilon, the largest
    that it is used with."""
    check.choice(calibration, "calibration", CALIBRATIONS)
    if repair is not None:
        check.choice(repair, "repair", STRATEGIES)
    told = [
        (f"Under policy {name}: " if len(policies) > 1 else "")
        + _of_policy(require_policy(graph), check.epsilon(epsilon), calibration, repair)
        for name, (graph, epsilon) in policies.items()
    ]
    return " ".join(told)


def explained(repair: str) -> str:
    """What the headline of releases along traces means by repaired steps, and by a model that was
    wrong."""
    where = "where earlier releases and the model rule out all neighbours of a place"
    cut_off = f"A step is repaired {where}: it is then hidden among places further off."
    if repair == "none":
        cut_off = f"W{where[1:]}, it is given away: repair is off."
    return (
        f"{cut_off} The model is wrong where somebody is at a place that it calls impossible: the "
        "nearest possible one is released from instead, and nothing is promised of the true one."
    )


def _of_policy(graph: PolicyGraph, epsilon: float, calibration: str, repair: str | None) -> str:
    size, alone = graph.locations.size, int(np.count_nonzero(graph.degrees() == 0))
    if alone == size:
        known = f"Whoever sees a release knows the exact place{_unless(repair)}"
        return f"{known}: the policy hides nothing."
    hidden = (
        "two places that the policy joins"
        f"{'' if repair is None else ' and that are both still possible'} "
        f"cannot be told apart beyond {_factor(graph, epsilon)} in how likely they are"
    )
    if np.bincount(graph.components).max() == size:
        text = f"Whoever sees a release learns roughly where somebody is: {hidden}."
    elif calibration == "component":
        text = (
            "Whoever sees a release knows in which group of places somebody is "
            f"({_group(graph)}){_unless(repair)}; within it, {hidden}."
        )
    else:
        text = (
            "Whoever sees a release may learn in which group of places somebody is "
            f"({_group(graph)}), of which nothing is promised; within it, {hidden}."
        )
    if alone:
        told = {
            "component": "whoever is there is given away exactly",
            "graph": "of those nothing is promised",
        }[calibration]
        have = "has" if alone == 1 else "have"
        text += f" {alone:,} of {size:,} places {have} no edge: {told}."
    return text


def _unless(repair: str | None) -> str:
    """When a release lies in another component than the place it is of."""
    return {None: "", "none": ", unless the model of movement was wrong"}.get(
        repair, ", unless the step was repaired or the model of movement was wrong"
    )


def _factor(graph: PolicyGraph, epsilon: float) -> str:
    """By how much a release may change how likely a place is beside a neighbour."""
    most = epsilon * _largest_weight(graph)
    factor = f"a factor of e^{most:g}"
    factor += f" = {math.exp(most):.3g}" if most < _LARGEST else ""
    return factor + (" (or less, by the weight of their edge)" if graph.weights is not None else "")


def _largest_weight(graph: PolicyGraph) -> float:
    return 1.0 if graph.weights is None else float(graph.weights.values.max(initial=1.0))


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
