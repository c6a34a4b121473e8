"""The options of a releaser, checked, and as kernels take them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pglp_fast._kernels.exposure import domain_view
from pglp_fast._kernels.noise.noise_polygon import HULL
from pglp_fast._kernels.trace.records import Settings
from pglp_fast._util import validate as check
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.errors import InvalidParameter, InvalidPolicy, InvalidTransition
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.options import check_weights
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.graph_repair import STRATEGIES
from pglp_fast.space.locations import require_same_map


def make_settings(
    mechanism: Mechanism,
    *,
    calibration: str,
    repair: str,
    delta: float,
    likelihood: str,
    remap: bool,
    anchored: bool,
) -> Settings:
    """The options as kernels take them, after a look at whether they go together."""
    by_table = mechanism.noise_kind is None
    if calibration not in mechanism.calibrations:
        raise InvalidParameter(
            f"mechanism={mechanism.name!r} knows calibration='component' only: for 'graph' use "
            "'ppim' or 'plm'"
        )
    if (by_table or remap) and likelihood == "density":
        raise InvalidParameter(
            "likelihood='density' is for noise alone: tables know their exact likelihoods, "
            "leave it out"
        )
    return Settings(
        mechanism.epsilon,
        HULL if mechanism.noise_kind is None else mechanism.noise_kind,
        domain_view.GRAPH if calibration == "graph" else domain_view.COMPONENT,
        STRATEGIES[repair],
        delta,
        likelihood == "exact",
        check.MAX_LOCATIONS if by_table or remap else mechanism.trace_table,
        mechanism.needs_hull,
        anchored,
        remap,
        0,
        0,
    )


def per_component(
    kind: type[Mechanism], graphs: Iterable[PolicyGraph], options: Any
) -> Callable[..., Mechanism]:
    """What answers for each component of a repaired domain, called with ``epsilon=``."""
    if options is not None and not isinstance(options, dict):
        raise InvalidParameter(
            f"options must be a dict such as {{'loss': 'squared'}}, got {type(options).__name__}"
        )
    known = kind.options()
    extra = set(options or {}) - set(known)
    if extra:
        takes = f"takes {', '.join(known)}" if known else "takes none"
        raise InvalidParameter(
            f"mechanism={kind.name!r} has no option {sorted(extra)[0]!r}: it {takes}"
        )
    for graph in graphs:
        check_weights(kind, graph)
        if kind.every_pair and (graph.n_cliques != 1 or len(graph.extra_indices)):
            raise InvalidPolicy(
                f"mechanism={kind.name!r} is for a policy that joins every pair of a set: use "
                "pf.complete"
            )
        locations = graph.locations
    return partial(kind.for_components, locations, **(options or {}))


def check_model(graph: PolicyGraph, model: Any) -> None:
    """A model over the policy's map."""
    if not isinstance(model, MobilityModel):
        raise InvalidTransition(
            f"the second argument must be a MobilityModel, got {type(model).__name__}"
        )
    require_same_map(
        model.locations, graph.locations, "the model and the policy", InvalidTransition
    )


def checked_delta(delta: Any) -> float:
    """A share of the belief that may be cut."""
    try:
        value = float(delta)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"delta must be a number, got {delta!r}") from None
    if not 0 <= value < 1:
        raise InvalidParameter(f"delta must be at least 0 and below 1, got {delta!r}")
    return value
