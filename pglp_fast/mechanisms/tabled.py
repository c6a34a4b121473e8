"""Mechanisms that are given by a table of probabilities for each component shape."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from .._kernels import shapes, weights
from ..domain import Domain
from ..policy import PolicyGraph
from .base import Mechanism


class Tabled(Mechanism):
    """A mechanism that says Pr(z|s) over a component as a matrix; tables, release and certificate follow.

    Always of the component calibration: a location is released as one of its own component.
    """

    def __init__(self, graph: PolicyGraph, *, epsilon: float, domain: Domain | None = None):
        super().__init__(graph, epsilon=epsilon, domain=domain, calibration="component", sampler="table")
        self._matrices: dict[int, NDArray[np.float64]] = {}

    @abstractmethod
    def _probabilities(self, shape: int) -> NDArray[np.float64]:
        """P[i, j] = Pr(place j | place i) of a shape."""

    def _places(self, shape: int) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """(members of the shape's representative, place of the first of each one's clique, further edges as places)."""
        g, G = self.groups, self.graph
        a, b = g.starts[g.representative[shape]], g.starts[g.representative[shape] + 1]
        return g.members[a:b], g.lead[a:b], shapes.local_pairs(g.members[a:b], G.extra_indptr, G.extra_indices, g.address)

    def _matrix(self, shape: int) -> NDArray[np.float64]:
        if shape not in self._matrices:
            self._matrices[shape] = self._probabilities(shape)
        return self._matrices[shape]

    def _log_rows(self, shape: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._matrix(shape)[sources]))

    def _fill_tables(self, which: NDArray[np.int64]) -> None:
        numerator, shift = self._exp_bound
        for shape in which.tolist():
            P = self._matrix(shape)
            _, lead, pairs = self._places(shape)
            at, size = self._offset[shape], len(P) << self._bits[shape]
            self._mixed[shape], _ = weights.fill_table(
                P, np.zeros(len(P), np.int64), 1, lead, pairs, numerator, shift, self._bits[shape],
                self._cut[at : at + size], self._alias[at : at + size],
            )  # fmt: skip

    def _release_geometric(self, key: NDArray[np.uint32], users: Any, times: Any, cells: check.Cells, out: check.Cells) -> None:
        raise AssertionError("every shape has a table")
