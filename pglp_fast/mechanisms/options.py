"""Which options of a mechanism go together."""

from typing import TYPE_CHECKING

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter, InvalidPolicy
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph

if TYPE_CHECKING:
    from .contract import Mechanism

OUTPUTS = ("component", "map")


def checked_outputs(m: "Mechanism", outputs: str, domain: Domain | None, calibration: str) -> str:
    """What noise is snapped to, if the mechanism can do that."""
    check.choice(outputs, "outputs", OUTPUTS)
    if outputs == "component":
        return outputs
    if not m.geometric:
        raise InvalidParameter(
            f"{type(m).__name__} adds no noise that could be snapped to the map: outputs='map' is "
            "for PPIM, PLM and PlanarLaplace"
        )
    if calibration == "graph":
        raise InvalidParameter(
            "calibration='graph' snaps to the whole domain already: leave out outputs='map'"
        )
    if domain is not None:
        raise InvalidParameter(
            "outputs='map' knows no domain: give the constrained policy, G.constrain(C)"
        )
    return outputs


def check_weights(kind: "type[Mechanism]", graph: PolicyGraph) -> None:
    """Refuse a policy with weights where the mechanism does not heed them."""
    if graph.weights is not None and not kind.weighted:
        raise InvalidPolicy(
            f"{kind.__name__} promises one epsilon for every edge: for a policy with weights "
            "use PPIM, PLM or GraphExponential, or say weighted = True in a class whose "
            "log_probabilities heeds component.weights"
        )
