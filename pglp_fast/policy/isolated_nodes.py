"""Isolated nodes: what a domain exposes (the paper's algorithm Finding Isolated Node).

Nothing here takes the true location: detection spends no privacy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.exposure import isolated_nodes as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import run_ranges

from .domain import Domain
from .graph import PolicyGraph
from .groups import CALIBRATIONS
from .kernel_arrays import checked_words, kernel_policy, largest_of, scratch_for, words_of


def excluded(graph: PolicyGraph, domain: Domain) -> check.Cells:
    """Locations that are not in C, ascending: the adversary holds them impossible, and edges to
    them protect nobody (Excluded node)."""
    words_of(graph, domain)
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
    return isolated_many(graph, words_of(graph, domain), calibration=calibration).cells


@dataclass(frozen=True)
class Exposure:
    """Isolated locations of many domains: those of domain d at ``cells[starts[d]:starts[d+1]]``."""

    cells: check.Cells
    starts: NDArray[np.int64]
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]


def isolated_many(
    graph: PolicyGraph, words: ArrayLike, *, calibration: str = "component"
) -> Exposure:
    """``isolated`` for many domains over one policy: rows of a (domains, words) matrix as in
    ``Domain.words``."""
    by_graph = check.choice(calibration, "calibration", CALIBRATIONS) == "graph"
    matrix, policy = checked_words(graph, words), kernel_policy(graph)
    counts = np.zeros((len(matrix), 3), np.int64)
    largest = largest_of(matrix)
    parts: dict[int, NDArray[np.int32]] = {}

    def part(start: int, stop: int) -> None:
        scratch, head = scratch_for(graph, largest)
        parts[start] = kernels.list_isolated_domains(
            policy, matrix, start, stop, by_graph, scratch, head, counts
        )

    run_ranges(part, len(matrix), smallest=16)
    cells = np.concatenate([parts[start] for start in sorted(parts)])
    return Exposure(cells, starts_of(counts[:, 2]), counts[:, 0], counts[:, 1])
