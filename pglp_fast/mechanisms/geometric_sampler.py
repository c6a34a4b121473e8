"""The geometric sampler: K-norm noise in the plane, snapped to the nearest location.

It draws for the shapes that are too large for a table."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry import kdtree
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import cones as cone_kernels, geometric_sampler as kernels
from pglp_fast._kernels.noise.alias_rows import AliasTables, read_alias
from pglp_fast._kernels.noise.alias_tables import Requests
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import ForkLock, run_ranges
from pglp_fast.space.grid import Grid

if TYPE_CHECKING:
    from .k_norm import KNorm


class GeometricSampler:
    """What the geometric sampler knows of a mechanism's shapes: made when it is first needed."""

    def __init__(self, mechanism: "KNorm"):
        self.mechanism = mechanism
        self._lock = ForkLock()

    @cached_property
    def polygons(self) -> Polygons:
        """K of each shape in lattice units. One vertex: no noise. Two: a segment."""
        return self.mechanism.noise_polygons(self.mechanism.noise_groups.hulls)

    @cached_property
    def geometry(self) -> kernels.Geometry:
        """Noise polygons, cones, extents and search trees, for kernels."""
        m, groups = self.mechanism, self.mechanism.groups
        which = np.flatnonzero(~m.tabled)
        extents = np.zeros((len(groups.representative), 4), np.int64)
        kernels.extents(which, groups.arrays, extents)
        columns = m.locations.cols if isinstance(m.locations, Grid) else 0
        return kernels.Geometry(
            m.noise_epsilon, columns, m.locations.stretch, self.polygons, self._cones(), extents,
            self._trees(extents, columns > 0),
        )  # fmt: skip

    def _cones(self) -> AliasTables:
        wanted, edges = self.mechanism.noisy, np.diff(self.polygons.starts)
        bits = np.maximum(1, np.ceil(np.log2(np.maximum(edges, 2)))).astype(np.int64)
        starts = starts_of(np.where(wanted & (edges > 2), 1 << bits, 0))
        cut, alias = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.int32)
        cones = AliasTables(bits, starts[:-1], cut, alias)
        cone_kernels.fill_cones(np.flatnonzero(wanted), self.polygons, cones)
        return cones

    def cone_weights(self, shape: int) -> NDArray[np.uint64]:
        """The weights of K's cones, read back from the alias row that is drawn from."""
        with self._lock:
            cones = self.geometry.cones
        starts = self.polygons.starts
        if starts[shape + 1] - starts[shape] <= 2:
            return np.zeros(0, np.uint64)
        at, bits = int(cones.offset[shape]), int(cones.bits[shape])
        out = np.empty(1 << bits, np.uint64)
        read_alias(cones.cut[at : at + len(out)], cones.alias[at : at + len(out)], bits, out)
        return out

    def _trees(self, extents: np.ndarray, grid: bool) -> kernels.SiteTrees:
        m, groups = self.mechanism, self.mechanism.groups
        width, height = extents[:, 1] - extents[:, 0] + 1, extents[:, 3] - extents[:, 2] + 1
        # where a shape fills its box of a grid, the clamped cell is always the answer
        full = grid & (width * height == groups.sizes)
        sizes = np.where(~m.tabled & ~full, groups.sizes, 0)
        nodes = np.array([kdtree.tree_nodes(k) if k else 0 for k in sizes.tolist()], np.int64)
        starts, box_starts = starts_of(sizes), starts_of(nodes)
        trees = kernels.SiteTrees(
            starts,
            np.empty((starts[-1], 2), np.int64),
            np.empty(starts[-1], np.int64),
            box_starts,
            np.empty((box_starts[-1], 4), np.int64),
        )
        which = np.flatnonzero(sizes)
        kernels.fill_trees(which, groups.arrays, m.locations.stretch, trees)
        return trees

    def release(self, requests: Requests, out: check.Cells) -> None:
        """Release the cells whose shape has no table."""
        if self.mechanism.tabled.all():
            return
        with self._lock:
            geometry = self.geometry
        draw, arrays = self._drawing()
        run_ranges(
            lambda start, stop: draw(requests, start, stop, *arrays, geometry, out),
            requests.cells.size,
        )

    def _drawing(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The kernel that draws, and what it takes of the mechanism."""
        m = self.mechanism
        return kernels.release_geometric, (m.groups.arrays, m.tables.arrays)


class MapSampler(GeometricSampler):
    """The same with outputs="map": noise of the component, snapped to the whole map, unless that
    has a table."""

    def _drawing(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return kernels.release_onto_map, (self.mechanism.noise_groups.arrays,)
