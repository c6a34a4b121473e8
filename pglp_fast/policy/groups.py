"""Which locations share one noise and one output set: the two calibrations (spec section 4).

``component``: each component of G^C is a group. ``graph``: all of C is one group. Groups that are
translates share a shape."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry import hull
from pglp_fast._kernels.geometry.polygons import Polygons, polygon_of
from pglp_fast._kernels.policy import graph as graph_kernels, shapes

from .components import Component
from .domain import Domain
from .graph import PolicyGraph
from .weighted_edges import weighted_hulls

CALIBRATIONS = ("component", "graph")


@dataclass(frozen=True)
class Groups:
    """Groups of locations over a constrained policy.

    Attributes
    ----------
    graph : the policy they come from (G^C)
    members, starts : members of group g, ascending, at ``members[starts[g]:starts[g+1]]``
    address : (N, 2) int32, (group, place in the group) of each location; -1 outside the domain
    heads : for each entry of ``members``, the place of the first member of its clique
    shape_of : the shape of each group
    representative : one group of each shape
    """

    graph: PolicyGraph
    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    address: NDArray[np.int32]
    heads: NDArray[np.int64]
    shape_of: NDArray[np.int32]
    representative: NDArray[np.int32]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each shape."""
        return np.asarray(np.diff(self.starts)[self.representative])

    def of(self, s: int) -> NDArray[np.int32]:
        """Members of the group of s."""
        g = self.address[s, 0]
        return self.members[self.starts[g] : self.starts[g + 1]]

    def shape(self, s: int) -> int:
        """The shape of the group of s."""
        return int(self.shape_of[self.address[s, 0]])

    def of_shape(self, shape: int) -> NDArray[np.int32]:
        """Members of the group that represents a shape."""
        g = self.representative[shape]
        return self.members[self.starts[g] : self.starts[g + 1]]

    @cached_property
    def arrays(self) -> shapes.Groups:
        """The same for kernels."""
        G = self.graph
        return shapes.Groups(
            self.members, self.starts, self.heads, self.address, self.shape_of,
            self.representative, G.locations.lattice, G.cliques, G.extra_indptr, G.extra_indices,
            *self._weights,
        )  # fmt: skip

    @property
    def _weights(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]:
        """Weights of edges for kernels, without what they are proved with."""
        none, weights = shapes.NO_WEIGHTS, self.graph.weights
        values = none[0] if weights is None else weights.values
        return values, none[1], none[2], self.graph.denominator

    @cached_property
    def hulls(self) -> Polygons:
        """Sensitivity hull of each shape, exact; ``graph.denominator`` times as large."""
        G = self.graph
        if G.weights is not None:
            return weighted_hulls(G, [self.of_shape(k) for k in range(len(self.representative))])
        where = G.locations.lattice, G.cliques, G.extra_indptr, G.extra_indices
        return Polygons(
            *hull.difference_hulls(self.members, self.starts, self.representative, *where)
        )

    def component(self, shape: int, *, with_hull: bool = False) -> Component:
        """The group that represents a shape, by itself."""
        G, members = self.graph, self.of_shape(shape)
        first = self.starts[self.representative[shape]]
        weights = None
        if G.weights is not None:
            of = shapes.local_entries(members, G.extra_indptr, G.extra_indices)
            weights = G.weights.fractions[of]
        return Component(
            shapes.sites_of(members, G.locations.lattice),
            self.heads[first : first + len(members)],
            shapes.local_pairs(members, G.extra_indptr, G.extra_indices, self.address),
            members,
            polygon_of(self.hulls, shape) if with_hull else None,
            weights,
            G.denominator,
        )

    def apart(self) -> "Groups":
        """The same groups, each a shape of its own: for what is not the same everywhere."""
        each = np.arange(len(self.starts) - 1, dtype=np.int32)
        return replace(self, shape_of=each, representative=each)


def make_groups(graph: PolicyGraph, domain: Domain | None, calibration: str) -> Groups:
    """Group the locations of the domain (or of the map); ``graph`` must already be constrained to
    it."""
    n = graph.locations.size
    inside = np.ones(n, bool) if domain is None else domain.mask()
    labels = np.empty(n, np.int32)
    if calibration == "graph":
        labels[:] = np.where(inside, 0, -1)
        n_groups = int(inside.any())
    else:
        n_groups = graph_kernels.relabel(
            np.where(inside, graph.components, np.int32(-1)), False, labels
        )
    members, starts = graph_kernels.group_by(labels, n_groups)
    address = np.full((n, 2), -1, np.int32)
    shapes.addresses(members, starts, address)
    heads = np.empty(len(members), np.int64)
    shapes.clique_heads(members, starts, graph.cliques, graph.n_cliques, heads)
    groups = Groups(
        graph, members, starts, address, heads,
        np.zeros(n_groups, np.int32), np.arange(n_groups, dtype=np.int32),
    )  # fmt: skip
    if calibration == "graph":
        return groups
    return replace(groups, representative=shapes.classify(groups.arrays))
