"""Graph repair: isolated nodes are joined to others (the paper's algorithm Graph Repair with High
Utility).

Nothing here takes the true location: repair spends no privacy."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.exposure import domain_view, graph_repair as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import UnsafeWarning

from .domain import Domain
from .graph import PolicyGraph
from .groups import CALIBRATIONS
from .kernel_arrays import checked_words, kernel_policy, largest_of, scratch_for, words_of

STRATEGIES = {
    "min-area": domain_view.MIN_AREA,
    "nearest": domain_view.NEAREST,
    "arbitrary": domain_view.ARBITRARY,
    "min-error": domain_view.MIN_ERROR,
    "none": domain_view.NONE,
}


def checked_strategy(value: str, name: str) -> str:
    """A strategy of repair; one that repairs nothing is warned of."""
    check.choice(value, name, STRATEGIES)
    if value == "none":
        warnings.warn(
            f"{name}='none' repairs nothing: isolated locations, which the policy wants hidden, "
            "are released as they are. Use it to compare, never to release",
            UnsafeWarning,
            stacklevel=3,
        )
    return value


@dataclass(frozen=True)
class Repair:
    """A repaired policy.

    Attributes
    ----------
    graph : G^C with the added edges
    added : (k, 2), (isolated location, its new neighbour), in the order they were added
    exposed : what is not protected: the sole location of a domain; with strategy "none" every
        isolated location
    disconnected, isolated : how many there were before the repair
    """

    graph: PolicyGraph
    added: NDArray[np.int32]
    exposed: check.Cells
    disconnected: int
    isolated: int


@dataclass(frozen=True)
class Repairs:
    """Repairs of many domains: domain d has ``added[added_starts[d]:added_starts[d+1]]`` and so
    on; the rest are counts."""

    added: NDArray[np.int32]
    added_starts: NDArray[np.int64]
    exposed: check.Cells
    exposed_starts: NDArray[np.int64]
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]
    isolated: NDArray[np.int64]


def repair(
    graph: PolicyGraph,
    domain: Domain,
    *,
    strategy: str = "min-area",
    calibration: str = "component",
) -> Repair:
    """Join every isolated location of C to another one, at the least cost in noise.

    Locations are taken in ascending order, each checked against the graph as repaired so far.

    Parameters
    ----------
    strategy : "min-area" the smallest hull (graph) or the smallest increase of the joined
        component's hull (component), then the shorter edge in km, then the lower index; "min-error"
        the same for the expected length of the noise; "nearest" the shortest edge; "arbitrary" the
        lowest index; "none" repairs nothing, which is unsafe and warned of: for comparisons only
    calibration : "component" or "graph", as in the mechanism that will use the result
    """
    many = repair_many(graph, words_of(graph, domain), strategy=strategy, calibration=calibration)
    repaired = graph.constrain(domain).with_edges(many.added)
    return Repair(
        repaired, many.added, many.exposed, int(many.disconnected[0]), int(many.isolated[0])
    )


def repair_many(
    graph: PolicyGraph,
    words: ArrayLike,
    *,
    strategy: str = "min-area",
    calibration: str = "component",
) -> Repairs:
    """``repair`` for many domains over one policy: rows of a (domains, words) matrix as in
    ``Domain.words``."""
    how = STRATEGIES[checked_strategy(strategy, "strategy")]
    by = (
        domain_view.GRAPH
        if check.choice(calibration, "calibration", CALIBRATIONS) == "graph"
        else domain_view.COMPONENT
    )
    matrix, policy = checked_words(graph, words), kernel_policy(graph)
    counts = np.zeros((len(matrix), 5), np.int64)
    largest = largest_of(matrix)
    parts: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}

    def part(start: int, stop: int) -> None:
        scratch, head = scratch_for(graph, largest)
        place = np.empty(graph.locations.size, np.int32)
        parts[start] = kernels.repair_domains(
            policy, matrix, start, stop, how, by, scratch, head, place, counts
        )

    run_ranges(part, len(matrix), smallest=4)
    added, exposed = (np.concatenate([parts[start][k] for start in sorted(parts)]) for k in (0, 1))
    return Repairs(
        added,
        starts_of(counts[:, 3]),
        exposed,
        starts_of(counts[:, 4]),
        counts[:, 0],
        counts[:, 1],
        counts[:, 2],
    )
