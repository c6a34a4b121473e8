"""Which locations share one noise and one output set: the two calibrations (spec section 4).

``component``: each component of G^C is a group. ``graph``: all of C is one group. Groups that are translates share a shape.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._kernels import graph as graph_kernels
from ._kernels import hull, shapes
from .domain import Domain
from .policy import PolicyGraph

CALIBRATIONS = ("component", "graph")


@dataclass(frozen=True)
class Groups:
    """Groups of locations over a constrained policy.

    Attributes
    ----------
    graph : the policy they come from (G^C)
    members, starts : members of group g, ascending, at ``members[starts[g]:starts[g+1]]``
    address : (N, 2) int32, (group, place in the group) of each location; -1 outside the domain
    lead : for each entry of ``members``, the place of the first member of its clique
    shape_of : the shape of each group
    representative : one group of each shape
    """

    graph: PolicyGraph
    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    address: NDArray[np.int32]
    lead: NDArray[np.int64]
    shape_of: NDArray[np.int32]
    representative: NDArray[np.int32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each shape."""
        return np.asarray(np.diff(self.starts)[self.representative])

    def of(self, s: int) -> NDArray[np.int32]:
        """Members of the group of s."""
        g = self.address[s, 0]
        return self.members[self.starts[g] : self.starts[g + 1]]

    def shape(self, s: int) -> int:
        return int(self.shape_of[self.address[s, 0]])

    def hulls(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sensitivity hull of each shape, vertices end to end: (vertices, starts)."""
        G = self.graph
        vertices, starts = hull.difference_hulls(
            self.members, self.starts, self.representative, G.locations.lattice, G.cliques, G.extra_indptr, G.extra_indices
        )
        return vertices, starts


def make_groups(graph: PolicyGraph, domain: Domain | None, calibration: str) -> Groups:
    """Group the locations of the domain (or of the map); ``graph`` must already be constrained to it."""
    n = graph.locations.size
    inside = np.ones(n, bool) if domain is None else domain.mask()
    labels = np.empty(n, np.int32)
    if calibration == "graph":
        labels[:] = np.where(inside, 0, -1)
        n_groups = int(inside.any())
    else:
        n_groups = graph_kernels.relabel(np.where(inside, graph.components, np.int32(-1)), False, labels)
    members, starts = graph_kernels.group_by(labels, n_groups)
    address = np.full((n, 2), -1, np.int32)
    shapes.addresses(members, starts, address)
    lead = np.empty(len(members), np.int64)
    shapes.leads(members, starts, graph.cliques, graph.n_cliques, lead)
    shape_of = np.zeros(n_groups, np.int32)
    if calibration == "graph":
        representative = np.arange(n_groups, dtype=np.int32)
    else:
        representative = shapes.classify(
            members, starts, graph.locations.lattice, lead, graph.extra_indptr, graph.extra_indices, address, shape_of
        )
    return Groups(graph, members, starts, address, lead, shape_of, representative)
