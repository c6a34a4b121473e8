"""A policy in words and numbers: what it protects, how finely, and what that costs."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pglp_fast._kernels.geometry.hull_growth import error_of, with_prefixes
from pglp_fast._kernels.geometry.polygons import polygon_of
from pglp_fast._util import validate as check

from .graph import PolicyGraph, require_policy
from .groups import make_groups


@dataclass(frozen=True)
class PolicySummary:
    """What ``PolicyGraph.describe`` found; as text, four lines.

    Attributes
    ----------
    locations : of the map
    protected : locations with an edge
    disclosed : locations without: they are released as they are
    edges : how many
    components : connected components of two locations or more
    sizes : (least, median, largest) number of locations of those
    most_neighbours : the largest number of neighbours that a location has
    weights : (least, largest) weight of an edge; None where all are 1
    expected_error_km : for each epsilon the mean length of P-PIM's noise over the protected
        locations, before it is snapped to a location
    """

    locations: int
    protected: int
    disclosed: int
    edges: int
    components: int
    sizes: tuple[int, float, int]
    most_neighbours: int
    expected_error_km: dict[float, float]
    weights: tuple[float, float] | None = None

    def __str__(self) -> str:
        share, weights = 100 * self.protected / self.locations, ""
        if self.weights is not None:
            weights = f" of weight {self.weights[0]:.4g} to {self.weights[1]:.4g}"
        lines = [
            f"{self.protected} of {self.locations} locations are protected ({share:.1f} %), by "
            f"{self.edges} edges{weights}, up to {self.most_neighbours} at one location",
            f"{self.disclosed} locations have no edge: they are released as they are",
        ]
        if self.components:
            least, median, largest = self.sizes
            lines.append(
                f"{self.components} components of {least} to {largest} locations (median "
                f"{median:g}): a release shows the component"
            )
            errors = ", ".join(
                f"{error:.3g} km at epsilon {epsilon:g}"
                for epsilon, error in self.expected_error_km.items()
            )
            lines.append(f"mean noise of P-PIM before snapping: {errors}")
        return "\n".join(lines)


def summary_of(graph: PolicyGraph, epsilons: Iterable[float]) -> PolicySummary:
    """What a policy protects and what that costs, under the component calibration."""
    wanted = [check.epsilon(e) for e in check.listed(epsilons, "epsilons")]
    groups = make_groups(require_policy(graph), None, "component")
    sizes = np.diff(groups.starts)
    alone = sizes == 1
    lengths = np.empty(len(groups.representative))  # E|Y| at epsilon 1, of each shape
    dx, dy = graph.locations.scale
    for shape in range(len(lengths)):
        hull, _, area, moment = with_prefixes(polygon_of(groups.hulls, shape), dx, dy, True)
        lengths[shape] = error_of(hull, area, moment, dx, dy) / graph.denominator
    total = float((sizes * lengths[groups.shape_of])[~alone].sum())
    protected = int(sizes[~alone].sum())
    joined = sizes[~alone]
    return PolicySummary(
        locations=graph.locations.size,
        protected=protected,
        disclosed=graph.locations.size - protected,
        edges=graph.n_edges,
        components=len(joined),
        sizes=(int(joined.min()), float(np.median(joined)), int(joined.max()))
        if len(joined)
        else (0, 0.0, 0),
        most_neighbours=int(graph.degrees().max(initial=0)),
        expected_error_km={e: total / max(protected, 1) / e for e in wanted},
        weights=_weights_of(graph),
    )


def _weights_of(graph: PolicyGraph) -> tuple[float, float] | None:
    if graph.weights is None:
        return None
    values, ones = graph.weights.values, [1.0] if graph.n_cliques else []
    return float(min([values.min(), *ones])), float(max([values.max(), *ones]))
