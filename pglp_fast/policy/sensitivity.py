"""The Sensitivity Hull K: the convex hull of the differences that noise must hide."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.geometry import hull as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import for_kernels
from pglp_fast.errors import InvalidLocation

from .graph import PolicyGraph, require_policy
from .weighted_edges import weighted_hull

_ON_LINE = 1e-9  # for float input only: how far off a segment's line still counts as on it


@dataclass(frozen=True, eq=False)
class SensitivityHull:
    """conv{+-(f(i) - f(j)) / w : (i, j) an edge of weight w}, exact.

    Attributes
    ----------
    vertices : (h, 2) int64 points, counter-clockwise, strictly convex: of the lattice, or of one
        that is ``denominator`` times as fine
    scale : (dx, dy) km per unit of the vertices
    denominator : 1 without weights
    """

    vertices: NDArray[np.int64]
    scale: tuple[float, float]
    denominator: int = field(default=1, repr=False)

    @property
    def rank(self) -> Literal[0, 1, 2]:
        """Dimension: 0 a point (no edge), 1 a segment, 2 a polygon."""
        h = len(self.vertices)
        return 0 if h == 1 else 1 if h == 2 else 2

    @property
    def twice_area(self) -> int:
        """Twice the area in lattice units, an exact integer."""
        return int(kernels.twice_area(self.vertices))

    @property
    def area_km2(self) -> float:
        """Area of K; 0 for a point or a segment."""
        return self.twice_area / 2 * self.scale[0] * self.scale[1]

    @property
    def vertices_km(self) -> NDArray[np.float64]:
        """``vertices`` in km."""
        return np.asarray(self.vertices * np.asarray(self.scale))

    def contains(self, differences: ArrayLike) -> NDArray[np.bool_]:
        """Whether each lattice difference (n, 2) lies in K, boundary included; exact."""
        array = check.integers(differences, "differences")
        if array.size == 0 or array.shape == (2,):
            array = array.reshape(-1, 2)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InvalidLocation(f"differences must have shape (n, 2), got {array.shape}")
        # no map has a larger difference, and products of larger ones would wrap
        reach = kernels.MAX_SPAN // self.denominator
        near = np.asarray(((array >= -reach) & (array <= reach)).all(axis=1))
        asked = np.where(near[:, None], array, 0) * self.denominator
        out = np.empty(len(array), bool)
        kernels.contain(self.vertices, for_kernels(asked, np.int64), out)
        return out & near

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensitivityHull):
            return NotImplemented
        same = (self.scale, self.denominator) == (other.scale, other.denominator)
        return same and np.array_equal(self.vertices, other.vertices)

    def gauge(self, xy_km: ArrayLike) -> NDArray[np.float64]:
        """||x||_K: the factor by which K must grow to reach x.

        Infinite off the line (rank 1) or the origin (rank 0).
        """
        xy = check.points(xy_km, "xy_km")
        if self.rank == 2:
            out = np.empty(len(xy))
            kernels.gauge(self.vertices_km, xy, out)
            return out
        end = self.vertices_km[-1]
        length2 = end @ end
        along = xy @ end / length2 if length2 else np.zeros(len(xy))
        off = np.linalg.norm(xy - along[:, None] * end, axis=1)
        return np.where(off <= _ON_LINE * np.linalg.norm(xy, axis=1), np.abs(along), np.inf)


def sensitivity_hull(graph: PolicyGraph, s: int | None = None) -> SensitivityHull:
    """K of the component of s, or of the whole graph."""
    require_policy(graph)
    cells = np.arange(graph.locations.size, dtype=check.CELL) if s is None else graph.component(s)
    if graph.weights is not None:
        (dx, dy), L = graph.locations.scale, graph.denominator
        return SensitivityHull(weighted_hull(graph, cells), (dx / L, dy / L), L)
    vertices = kernels.difference_hull(
        cells, graph.locations.lattice, graph.cliques, graph.extra_indptr, graph.extra_indices
    )
    return SensitivityHull(vertices, graph.locations.scale)
