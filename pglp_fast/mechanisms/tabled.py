"""Mechanisms that are given by a table of probabilities for each component shape."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from .._kernels import shapes, weights
from ..components import Component
from ..domain import Domain
from ..errors import PGLPError
from ..policy import PolicyGraph
from .recipe import ROW_SUM, Recipe
from .sampled import Sampled


class Tabled(Sampled):
    """A mechanism that says Pr(z|s) over a component as a matrix; tables, release and certificate follow.

    Always of the component calibration: a location is released as one of its own component.
    """

    def __init__(self, graph: PolicyGraph, recipe: Recipe, *, epsilon: float, domain: Domain | None = None):
        super().__init__(graph, epsilon=epsilon, domain=domain, calibration="component", sampler="table")
        self.recipe = recipe
        recipe.check_size(int(self.groups.sizes.max(initial=0)))
        self._matrices: dict[int, NDArray[np.float64]] = {}
        if not recipe.translates:  # one shape a component
            count = np.arange(len(self.groups.starts) - 1, dtype=np.int32)
            self.groups = replace(self.groups, shape_of=count, representative=count)
            self._lay_out_tables()

    def component(self, shape: int) -> Component:
        """The component that represents a shape."""
        g, G = self.groups, self.graph
        a, b = g.starts[g.representative[shape]], g.starts[g.representative[shape] + 1]
        members = g.members[a:b]
        pairs = shapes.local_pairs(members, G.extra_indptr, G.extra_indices, g.address)
        return Component(shapes.sites_of(members, self.locations.lattice), g.lead[a:b], pairs, members)

    def _matrix(self, shape: int) -> NDArray[np.float64]:
        if shape not in self._matrices:
            logs = self.recipe.log_matrix(self.component(shape))
            if not np.abs(np.exp(logs).sum(axis=1) - 1).max() <= ROW_SUM:
                raise PGLPError(f"the probabilities of a component of {len(logs)} locations do not sum to 1: nothing is released")
            self._matrices[shape] = logs
        return self._matrices[shape]

    def _log_rows(self, shape: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._matrix(shape)[sources]

    def _fill_tables(self, which: NDArray[np.int64]) -> None:
        numerator, shift = self._exp_bound
        for shape in which.tolist():
            P, component = np.exp(self._matrix(shape)), self.component(shape)
            at, size = self._offset[shape], len(P) << self._bits[shape]
            self._mixed[shape], _ = weights.fill_table(
                P, np.zeros(len(P), np.int64), 1, component.lead, component.pairs, numerator, shift, self._bits[shape],
                self._cut[at : at + size], self._alias[at : at + size],
            )  # fmt: skip

    def _release_geometric(self, key: NDArray[np.uint32], users: Any, times: Any, cells: check.Cells, out: check.Cells) -> None:
        raise AssertionError("every shape has a table")
