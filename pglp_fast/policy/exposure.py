"""Isolated nodes and graph repair: what is exposed once the adversary rules locations out.

The paper's algorithms Finding Isolated Node and Graph Repair with High Utility. Nothing here
takes the true location: detection and repair spend no privacy.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.exposure import domain_view, graph_repair as repair_kernels, isolated_nodes
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import for_kernels, starts_of
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidDomain, UnsafeWarning
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import require_same_map

from .domain import Domain, require_domain
from .graph import PolicyGraph, require_policy
from .groups import CALIBRATIONS
from .weighted_edges import fine_lattice

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


def kernel_policy(graph: PolicyGraph) -> domain_view.Policy:
    """A policy as kernels take it: with weights over scattered points of a finer lattice."""
    locations, weights = graph.locations, graph.weights
    lattice, (extent, widest, tallest) = locations.lattice, graph.clique_extents
    rows, cols = (locations.rows, locations.cols) if isinstance(locations, Grid) else (0, 0)
    (dx, dy), L = locations.scale, graph.denominator
    fractions = np.empty((0, 2), np.int64)
    if weights is not None:
        lattice, rows, cols, dx, dy = fine_lattice(graph), 0, 0, dx / L, dy / L
        extent, widest, tallest = extent * np.int32(L), widest * L, tallest * L
        fractions = weights.fractions
    return domain_view.Policy(
        lattice, graph.cliques, extent, widest, tallest, graph.extra_indptr, graph.extra_indices,
        rows, cols, dx, dy, locations.stretch, fractions, 0 if weights is None else L,
    )  # fmt: skip


def _words(graph: PolicyGraph, domain: Domain) -> NDArray[np.uint64]:
    maps = require_domain(domain).locations, require_policy(graph).locations
    require_same_map(*maps, "the domain and the policy", InvalidDomain)
    return domain.words[None, :]


def excluded(graph: PolicyGraph, domain: Domain) -> check.Cells:
    """Locations that are not in C, ascending: the adversary holds them impossible, and edges to
    them protect nobody (Excluded node)."""
    _words(graph, domain)
    return (~domain).cells()


def disconnected(graph: PolicyGraph, domain: Domain) -> check.Cells:
    """Locations of C that have neighbours in G, but none in C (Disconnected node), ascending."""
    return isolated(graph, domain, calibration="component")


def isolated(graph: PolicyGraph, domain: Domain, *, calibration: str = "component") -> check.Cells:
    """Disconnected locations that the mechanism would expose (Isolated Node), each judged on G^C
    as it stands; ascending.

    Under the component calibration every disconnected location is: its noise is none, it would be
    released as it is. Under the graph calibration one is iff no other location of C lies in f(s) +
    K(G^C), boundary included."""
    return isolated_many(graph, _words(graph, domain), calibration=calibration).cells


@dataclass(frozen=True)
class Exposure:
    """Isolated locations of many domains: those of domain d at ``cells[starts[d]:starts[d+1]]``."""

    cells: check.Cells
    starts: NDArray[np.int64]
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]


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
    many = repair_many(graph, _words(graph, domain), strategy=strategy, calibration=calibration)
    repaired = graph.constrain(domain).with_edges(many.added)
    return Repair(
        repaired, many.added, many.exposed, int(many.disconnected[0]), int(many.isolated[0])
    )


def _matrix(graph: PolicyGraph, words: ArrayLike) -> NDArray[np.uint64]:
    array = check.as_array(words, "words", InvalidDomain)
    n = require_policy(graph).locations.size
    width = -(-n // 64)
    if array.dtype.newbyteorder("=") != np.uint64 or array.ndim != 2 or array.shape[1] != width:
        raise InvalidDomain(
            f"words must be uint64 of shape (domains, {width}) for {n} locations, got "
            f"{array.dtype} of shape {array.shape}"
        )
    if n % 64 and (array[:, -1] >> np.uint64(n % 64)).any():
        at = int(np.flatnonzero(array[:, -1] >> np.uint64(n % 64))[0])
        raise InvalidDomain(f"domain {at} has bits beyond the last of {n} locations: clear them")
    return for_kernels(array, np.uint64)


def _largest(matrix: NDArray[np.uint64]) -> int:
    return int(np.bitwise_count(matrix).sum(axis=1, dtype=np.int64).max(initial=0))


def _scratch(graph: PolicyGraph, largest: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Work space for domains of up to this many locations, and an empty head for each clique."""
    return np.empty((4, largest), np.int32), np.full(max(graph.n_cliques, 1), -1, np.int32)


def isolated_many(
    graph: PolicyGraph, words: ArrayLike, *, calibration: str = "component"
) -> Exposure:
    """``isolated`` for many domains over one policy: rows of a (domains, words) matrix as in
    ``Domain.words``."""
    by_graph = check.choice(calibration, "calibration", CALIBRATIONS) == "graph"
    matrix, policy = _matrix(graph, words), kernel_policy(graph)
    counts = np.zeros((len(matrix), 3), np.int64)
    largest = _largest(matrix)
    parts: dict[int, NDArray[np.int32]] = {}

    def part(start: int, stop: int) -> None:
        scratch, head = _scratch(graph, largest)
        parts[start] = isolated_nodes.list_isolated_domains(
            policy, matrix, start, stop, by_graph, scratch, head, counts
        )

    run_ranges(part, len(matrix), smallest=16)
    cells = np.concatenate([parts[start] for start in sorted(parts)])
    return Exposure(cells, starts_of(counts[:, 2]), counts[:, 0], counts[:, 1])


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
    matrix, policy = _matrix(graph, words), kernel_policy(graph)
    counts = np.zeros((len(matrix), 5), np.int64)
    largest = _largest(matrix)
    parts: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}

    def part(start: int, stop: int) -> None:
        scratch, head = _scratch(graph, largest)
        place = np.empty(graph.locations.size, np.int32)
        parts[start] = repair_kernels.repair_domains(
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
