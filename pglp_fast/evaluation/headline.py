"""What a release gives away and what it hides, in one sentence: a proof says only that a policy is
kept, not what that policy is worth."""

import math
from collections.abc import Mapping

import numpy as np

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.policy.graph_repair import STRATEGIES
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.space.grid import Grid

OUTPUTS = ("component", "map")
_LARGEST = 700.0  # exponent of e that is written out


def headline(
    graph: PolicyGraph,
    epsilon: float,
    *,
    calibration: str = "component",
    outputs: str = "component",
    repair: str | None = None,
    delta: float = 0.0,
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
    outputs : {"component", "map"}
        With "map" noise of the component is snapped to the whole map: as with the calibration
        "graph" a release may lie in another component. A location without an edge gets no noise.
    repair : str, optional
        Of releases along traces, the ``repair`` of their ``TraceReleaser``. The policy then holds
        on what is possible at a step: a repaired step, and a place that the model calls impossible,
        lead out of the component. ``explained`` says what these are. None for releases one by
        one.
    delta : float
        Of releases along traces: above 0 only what lies in the smallest set of mass 1 - delta
        counts as possible, and the policy holds on that.

    Returns
    -------
    str
        One sentence, or two where some locations are hidden by no edge.
    """
    return headlines(
        {"": (graph, epsilon)},
        calibration=calibration,
        outputs=outputs,
        repair=repair,
        delta=delta,
    )


def headlines(
    policies: Mapping[str, tuple[PolicyGraph, float]],
    *,
    calibration: str = "component",
    outputs: str = "component",
    repair: str | None = None,
    delta: float = 0.0,
) -> str:
    """The same for releases under several policies: by name, each and its epsilon, the largest
    that it is used with."""
    check.choice(calibration, "calibration", CALIBRATIONS)
    check.choice(outputs, "outputs", OUTPUTS)
    if repair is not None:
        check.choice(repair, "repair", STRATEGIES)
    elif delta:
        raise InvalidParameter(
            f"delta is of releases along traces: give repair too, or no {delta=}"
        )
    bounded = calibration == "component" and outputs == "component"
    told = [
        (f"Under policy {name}: " if len(policies) > 1 else "")
        + _of_policy(
            require_policy(graph),
            check.epsilon(epsilon),
            _OPEN[calibration],
            bounded,
            _unless(repair, delta),
            _possible(repair, delta),
        )
        for name, (graph, epsilon) in policies.items()
    ]
    return " ".join(told)


def explained(repair: str, delta: float = 0.0) -> str:
    """What the headline of releases along traces means by repaired steps, by a model that was
    wrong, and by places that are left out."""
    where = "where earlier releases and the model rule out all neighbours of a place"
    cut_off = f"A step is repaired {where}: it is then hidden among places further off."
    if repair == "none":
        cut_off = f"W{where[1:]}, it is given away: repair is off."
    text = (
        f"{cut_off} The model is wrong where somebody is at a place that it calls impossible: the "
        "nearest possible one is released from instead, and nothing is promised of the true one."
    )
    if delta:
        text += (
            f" Delta leaves out the least likely places, of mass up to {delta:g} at each step, as "
            "if they were impossible: nothing is promised of those either."
        )
    return text


_OPEN = {
    "component": "whoever is there is given away exactly",
    "graph": "of those nothing is promised",
}  # of locations without an edge, by calibration


def _of_policy(
    graph: PolicyGraph, epsilon: float, bare: str, bounded: bool, unless: str, possible: str
) -> str:
    """``bare``: what becomes of locations without an edge; ``bounded``: whether a release is in the
    component of the true location, ``unless`` what; ``possible``: of which places it holds."""
    size, alone = graph.locations.size, int(np.count_nonzero(graph.degrees() == 0))
    if alone == size:
        return f"Whoever sees a release knows the exact place{unless}: the policy hides nothing."
    hidden = (
        f"two places that the policy joins{possible} "
        f"cannot be told apart beyond {_factor(graph, epsilon)} in how likely they are"
    )
    if np.bincount(graph.components).max() == size:
        text = f"Whoever sees a release learns roughly where somebody is: {hidden}."
    elif bounded:
        text = (
            "Whoever sees a release knows in which group of places somebody is "
            f"({_group(graph)}){unless}; within it, {hidden}."
        )
    else:
        text = (
            "Whoever sees a release may learn in which group of places somebody is "
            f"({_group(graph)}), of which nothing is promised; within it, {hidden}."
        )
    if alone:
        have = "has" if alone == 1 else "have"
        text += f" {alone:,} of {size:,} places {have} no edge: {bare}."
    return text


def _unless(repair: str | None, delta: float) -> str:
    """When a release lies in another component than the place it is of."""
    if repair is None:
        return ""
    cases = [] if repair == "none" else ["the step was repaired"]
    cases.append("the model of movement was wrong")
    if delta:
        cases.append(
            f"the place was among the least likely ones, of mass up to {delta:g}, that are left out"
        )
    *first, last = cases
    return f", unless {', '.join(first)} or {last}" if first else f", unless {last}"


def _possible(repair: str | None, delta: float) -> str:
    """Of which places that the policy joins it holds."""
    if repair is None:
        return ""
    kept = f" and in the smallest set of mass 1 - {delta:g}" if delta else ""
    return f" and that are both still possible{kept}"


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
