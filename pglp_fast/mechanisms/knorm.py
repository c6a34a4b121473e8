"""P-LM, P-PIM and planar Laplace: the K-norm mechanism with three bodies K (Algorithms 1 and 2, Definition 10).

Noise has density eps^2 / (2 area K) exp(-eps ||z - f(s)||_K). K is the sensitivity hull for P-PIM; for P-LM the diamond
|x| + |y| <= S: independent Laplace(S/eps) on each axis; for planar Laplace a disc. Everything else is the same code.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from .._kernels import emission, knorm, nearest, sampling
from ..components import Component
from ..domain import Domain
from ..errors import InvalidDomain, PGLPError, TooLarge
from ..locations import Grid, Locations
from ..policy import PolicyGraph, complete, neighbours8
from ..ragged import starts_of
from ..sensitivity import sensitivity_hull
from ..threads import run_ranges
from .recipe import ROW_SUM, Recipe
from .sampled import Sampled

_MAX_ROW = 5000  # output set for which a single exact row is computed
_BATCHED = 128  # matrices of shapes up to this size are computed many at a time


class KNorm(Sampled):
    """The K-norm mechanism; a subclass says which body K it gives a sensitivity hull."""

    _kind: int

    @cached_property
    def hulls(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Exact sensitivity hull of each shape, end to end: (vertices, starts)."""
        return self.groups.hulls()

    @cached_property
    def bodies(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """K of each shape in lattice units, end to end: (vertices, starts). One vertex: no noise. Two: a segment."""
        return self._bodies(*self.hulls)

    def _bodies(self, vertices: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        corners, ends = knorm.bodies_of(vertices, starts, self._kind, *self.locations.scale)
        return corners, ends

    def body(self, shape: int) -> NDArray[np.float64]:
        vertices, starts = self.bodies
        return vertices[starts[shape] : starts[shape + 1]]

    def _sites(self, shape: int) -> NDArray[np.int64]:
        g = self.groups.representative[shape]
        members = self.groups.members[self.groups.starts[g] : self.groups.starts[g + 1]]
        lattice = self.locations.lattice[members].astype(np.int64)
        return np.ascontiguousarray(lattice - lattice[0])

    def _log_rows(self, shape: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        sites, body = self._sites(shape), np.ascontiguousarray(self.body(shape))
        if len(sites) > _MAX_ROW:
            raise TooLarge(
                f"the output set has {len(sites)} locations, exact probabilities are computed up to {_MAX_ROW}: "
                "estimate them from releases"
            )
        out = np.empty((len(sources), len(sites)))

        def part(start: int, stop: int) -> None:
            emission.log_probabilities(sites, self.locations.stretch, body, self.epsilon, sources, start, stop, out)

        run_ranges(part, len(sites), smallest=32)
        return out

    def _log_matrices(self, which: NDArray[np.int64]) -> NDArray[np.float64]:
        g, sizes = self.groups, self.groups.sizes[which]
        at = starts_of(sizes**2)
        out = np.empty(at[-1])
        small = sizes <= _BATCHED
        batch, batch_at = which[small], at[:-1][small]

        def part(start: int, stop: int) -> None:
            knorm.fill_log_matrices(
                batch, start, stop, self.epsilon, self.locations.stretch, *self.bodies, g.members, g.starts, g.representative,
                self.locations.lattice, batch_at, out,
            )  # fmt: skip

        run_ranges(part, batch.size, smallest=16)
        for w in np.flatnonzero(~small):  # each is shared out among the threads
            out[at[w] : at[w + 1]] = self._log_rows(int(which[w]), np.arange(sizes[w])).reshape(-1)
        return out

    def _fill_tables(self, which: NDArray[np.int64]) -> None:
        g, G = self.groups, self.graph
        numerator, shift = self._exp_bound
        off = np.zeros(len(g.representative))

        def part(start: int, stop: int) -> None:
            knorm.fill_tables(
                which, start, stop, self.epsilon, self.locations.stretch, *self.hulls, self.calibration == "graph", *self.bodies,
                g.members, g.starts, g.representative, self.locations.lattice, g.address, g.lead, G.extra_indptr, G.extra_indices,
                numerator, shift, self._bits, self._offset, self._cut, self._alias, self._mixed, off,
            )  # fmt: skip

        run_ranges(part, which.size, smallest=16)
        worst = int(np.argmax(off))
        if off[worst] > ROW_SUM:
            s = g.members[g.starts[g.representative[worst]]]
            raise PGLPError(
                f"the probabilities of the component of location {s} sum to 1 only within {off[worst]:.1e}: they are too "
                "far apart for float64; use a coarser resolution_km, or sampler='geometric'"
            )

    @cached_property
    def _geometry(self) -> tuple[NDArray[Any], ...]:
        """Cones and search trees of the shapes that have no table: (cut, alias, cone_starts, cone_bits, extents, sites, ...)."""
        g = self.groups
        bodies, body_starts = self.bodies
        wanted = ~self.tabled
        which = np.flatnonzero(wanted)
        edges = np.diff(body_starts)
        cone_bits = np.maximum(1, np.ceil(np.log2(np.maximum(edges, 2)))).astype(np.int64)
        cone_starts = starts_of(np.where(wanted & (edges > 2), 1 << cone_bits, 0))
        extents = np.zeros((len(edges), 4), np.int64)
        knorm.extents(which, g.members, g.starts, g.representative, self.locations.lattice, extents)
        width, height = extents[:, 1] - extents[:, 0] + 1, extents[:, 3] - extents[:, 2] + 1
        full = isinstance(self.locations, Grid) & (width * height == g.sizes)  # the clamped cell is always the answer
        searched = np.where(wanted & ~full, g.sizes, 0)
        site_starts = starts_of(searched)
        box_starts = starts_of(np.array([nearest.tree_nodes(k) if k else 0 for k in searched.tolist()], np.int64))
        cut, alias = np.empty(cone_starts[-1], np.uint64), np.empty(cone_starts[-1], np.int32)
        sites, order = np.empty((site_starts[-1], 2), np.int64), np.empty(site_starts[-1], np.int64)
        boxes = np.empty((box_starts[-1], 4), np.int64)
        knorm.fill_geometry(
            which, self.locations.stretch, bodies, body_starts, g.members, g.starts, g.representative,
            self.locations.lattice, cone_bits, cone_starts, cut, alias, site_starts, sites, order, box_starts, boxes,
        )  # fmt: skip
        return cut, alias, cone_starts, cone_bits, extents, sites, site_starts, order, boxes, box_starts

    def _release_geometric(self, key: NDArray[np.uint32], users: Any, times: Any, cells: check.Cells, out: check.Cells) -> None:
        g = self.groups
        columns = self.locations.cols if isinstance(self.locations, Grid) else 0
        with self._lock:
            geometry = self._geometry

        def part(start: int, stop: int) -> None:
            sampling.release_geometric(
                key, users, times, cells, start, stop, self.epsilon, columns, self.locations.stretch, self.locations.lattice,
                g.address, g.starts, g.members, g.shape_of, self._offset, *self.bodies, *geometry, out,
            )  # fmt: skip

        run_ranges(part, cells.size)


class Noise(Recipe):
    """K-norm noise over one component, as a table of exact probabilities."""

    wants_hull = True

    def __init__(self, kind: int, locations: Locations, epsilon: float):
        self.kind, self.locations, self.epsilon = kind, locations, check.epsilon(epsilon)
        self.name = {knorm.HULL: "PPIM", knorm.DIAMOND: "PLM", knorm.DISC: "PlanarLaplace"}[kind]

    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        assert component.hull is not None
        k = len(component.sites)
        body = knorm.body_of(component.hull, self.kind, *self.locations.scale)
        out = np.empty((k, k))
        emission.log_probabilities(component.sites, self.locations.stretch, body, self.epsilon, np.arange(k), 0, k, out)
        return out


class PPIM(KNorm):
    """Policy-based Planar Isotropic Mechanism (Algorithm 2): K is the sensitivity hull, the least noise of the three."""

    _kind = knorm.HULL


class PLM(KNorm):
    """Policy-based Laplace Mechanism (Algorithm 1):

    independent Laplace(S/eps) on each axis, S = max |dx| + |dy| in km over edges.
    """

    _kind = knorm.DIAMOND


class PlanarLaplace(KNorm):
    """Planar Laplace noise, the mechanism of Geo-Indistinguishability, as a baseline under the same promise.

    Density (eps/R)^2 / (2 pi) exp(-eps |z - f(s)| / R), R the length of the longest edge in km. The disc of radius R is drawn
    as a polygon of 64 sides around it: closed forms hold, no pair is less protected, and noise is 0.04 % longer on average.
    """

    _kind = knorm.DISC


class LM(PLM):
    """The Laplace mechanism on a location set: P-LM where every pair of the set is joined (policy G_2)."""

    def __init__(self, location_set: Domain, *, epsilon: float, sampler: str = "auto"):
        super().__init__(_joined(location_set), epsilon=epsilon, domain=location_set, sampler=sampler)


class PIM(PPIM):
    """The planar isotropic mechanism on a location set (delta-Location Set Privacy): P-PIM where every pair is joined (G_2)."""

    def __init__(self, location_set: Domain, *, epsilon: float, sampler: str = "auto"):
        super().__init__(_joined(location_set), epsilon=epsilon, domain=location_set, sampler=sampler)


def _joined(location_set: Any) -> PolicyGraph:
    if not isinstance(location_set, Domain):
        raise InvalidDomain(
            f"a location set is a Domain, got {type(location_set).__name__}: make one with pf.Domain(locations, cells)"
        )
    return complete(location_set.locations, location_set.cells())


def geo_ind(locations: Locations, *, epsilon_per_km: float) -> PlanarLaplace:
    """Geo-Indistinguishability on a map: Pr(z|s) <= exp(epsilon_per_km |s - s'|) Pr(z|s') for all pairs, |.| in km.

    Planar Laplace noise of rate ``epsilon_per_km``, snapped to the nearest location of the map. Its policy is G_1 on a grid (the
    eight neighbours, whose epsilon is that of the longest edge), all pairs elsewhere. Always drawn geometrically: the certificate
    is then of the K-norm theorem's premises, which hold for every pair and not for edges alone.
    """
    rate = check.positive(epsilon_per_km, "epsilon_per_km")
    graph = neighbours8(locations) if isinstance(locations, Grid) else complete(locations)
    hull = sensitivity_hull(graph).vertices * np.asarray(locations.scale)
    longest = float(np.hypot(*hull.T).max(initial=0.0))
    return PlanarLaplace(graph, epsilon=rate * (longest or 1.0), calibration="graph", sampler="geometric")
