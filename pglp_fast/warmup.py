"""Compile every kernel once. Numba keeps the results on disk; warm the cache before a pool of processes starts."""

import numpy as np

from .certify import certify
from .domain import Domain
from .locations import Grid, Points
from .mechanisms import PLM, PPIM
from .policy import PolicyGraph, blocks, categories, complete, neighbours8
from .sensitivity import sensitivity_hull


def warm_up() -> None:
    """Go through the package as a release would: locations, policy, domain, hull, mechanism, certificate."""
    grid = Grid(6, 6)
    points = Points(np.random.default_rng(0).random((12, 2)))
    points.nearest([[0.5, 0.5]])
    domain = Domain(grid, np.arange(30))
    domain.cells(), domain.contains([1]), 3 in domain
    mixed = blocks(grid, 3).with_edges([[0, 35]])
    for graph in (mixed, categories(grid, np.arange(36) % 3, 6), neighbours8(grid), complete(points)):
        graph.edges(), graph.neighbours(0), graph.distance([0], [1]), (graph & graph).n_edges
        graph.constrain(Domain.full(graph.locations))
        sensitivity_hull(graph, 0).gauge([[1.0, 1.0]])
    PolicyGraph.from_scipy(grid, np.zeros((36, 36)))
    sensitivity_hull(mixed).contains([[1, 1]])
    for mechanism in (PLM, PPIM):
        for sampler in ("table", "geometric"):
            m = mechanism(mixed, epsilon=1.0, domain=domain, sampler=sampler)
            m.release([0, 5], users=[9, 2], t=[1, 2])
            m.pmf(0), certify(m)
    m.groups, PPIM(mixed, epsilon=1.0).table(0)
