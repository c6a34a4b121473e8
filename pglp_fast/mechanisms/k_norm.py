"""The K-norm mechanism: noise of density eps^2 / (2 area K) exp(-eps ||z - f(s)||_K).

Every K that holds the sensitivity hull keeps the promise (Hardt and Talwar, On the Geometry of
Differential Privacy, STOC 2010). P-PIM, P-LM and planar Laplace differ in K alone: the hull itself,
a diamond, a disc. Noise is snapped to the nearest location of the output set, which is
post-processing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry.hull import gauge
from pglp_fast._kernels.geometry.polygons import Polygons, polygon_of
from pglp_fast._kernels.noise import emission, noise_polygon
from pglp_fast._kernels.noise.alias_tables import Requests
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidDomain, TooLarge
from pglp_fast.policy.components import Component
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.policy.named import complete
from pglp_fast.policy.weighted_edges import epsilon_of_noise

from .contract import Floats, Mechanism
from .geometric_sampler import GeometricSampler, MapSampler

_MAX_ROW = 5000  # output set for which a single exact row is computed
BATCHED = 128  # matrices of shapes up to this size are computed many at a time


class KNorm(Mechanism):
    """Noise whose density falls with the norm of a noise polygon K.

    A subclass says which K it makes of a sensitivity hull: one that kernels know (``noise_kind``),
    or its own (``noise_polygon``).
    """

    calibrations = CALIBRATIONS
    needs_hull = True
    geometric = True
    weighted = True
    largest = check.MAX_LOCATIONS
    trace_table = 64  # see docs/traces.md: what tables cost where components vary
    geometry: GeometricSampler

    def noise_polygon(self, hull: NDArray[np.int64]) -> Floats:
        """K for a sensitivity hull, vertices in lattice units, counter-clockwise, symmetric."""
        K = noise_polygon.noise_polygon(hull, self.noise_kind, *self.locations.scale)
        return np.asarray(K)

    def noise_polygons(self, hulls: Polygons) -> Polygons:
        """K for each sensitivity hull."""
        if self.noise_kind == noise_polygon.HULL:
            return Polygons(hulls.vertices.astype(np.float64), hulls.starts)
        if self.noise_kind is not None:
            scale = self.locations.scale
            return Polygons(*noise_polygon.noise_polygons(hulls, self.noise_kind, *scale))
        each = [self.noise_polygon(polygon_of(hulls, k)) for k in range(len(hulls.starts) - 1)]
        return Polygons(
            np.concatenate([np.zeros((0, 2)), *each]), starts_of(np.array([len(K) for K in each]))
        )

    def bind(
        self, graph: PolicyGraph, domain: Domain | None, calibration: str, sampler: str
    ) -> None:
        super().bind(graph, domain, calibration, sampler)
        self.geometry = MapSampler(self) if self.outputs == "map" else GeometricSampler(self)

    def polygon(self, shape: int) -> Floats:
        return np.asarray(polygon_of(self.geometry.polygons, shape))

    def cones(self, shape: int) -> NDArray[np.uint64]:
        return self.geometry.cone_weights(shape)

    def log_probabilities(self, component: Component) -> Floats:
        assert component.hull is not None
        K, epsilon = self.noise_polygon(component.hull), self._noise_epsilon(component)
        return self._rows(component.sites, K, np.arange(len(component.sites)), epsilon)

    def _noise_epsilon(self, component: Component) -> float:
        return epsilon_of_noise(component.denominator, self.epsilon)

    def log_densities(self, component: Component, logs: Floats) -> Floats:
        assert component.hull is not None
        K = self.noise_polygon(component.hull)
        if len(K) < 3:  # along a line a density calls possible what is not
            return logs
        away = (component.sites[None] - component.sites[:, None]).reshape(-1, 2)
        out = np.empty(len(away))
        gauge(K, away.astype(np.float64), out)
        epsilon = self._noise_epsilon(component)
        return np.where(np.isneginf(logs), -np.inf, -epsilon * out.reshape(logs.shape))

    def _rows(
        self, sites: NDArray[np.int64], K: Floats, sources: NDArray[np.int64], epsilon: float
    ) -> Floats:
        out = np.empty((len(sources), len(sites)))

        def part(start: int, stop: int) -> None:
            emission.fill_columns(
                sites, self.locations.stretch, K, epsilon, sources, start, stop, out
            )

        run_ranges(part, len(sites), smallest=32)
        return out

    def log_rows(self, shape: int, sources: NDArray[np.int64]) -> Floats:
        sites = self.groups.component(shape).sites
        if len(sites) > _MAX_ROW:
            raise TooLarge(
                f"the output set has {len(sites)} locations, exact probabilities are computed up "
                f"to {_MAX_ROW}: estimate them from releases"
            )
        if self.outputs == "component":
            return self._rows(sites, self.polygon(shape), sources, self.noise_epsilon)
        noise, out = self.noise_groups, np.empty((len(sources), len(sites)))
        of = noise.shape_of[noise.address[sources, 0]]  # the map is one group: places are locations
        for each in np.unique(of):
            K, some = self.polygon(int(each)), sources[of == each]
            out[of == each] = self._rows(sites, K, some, self.noise_epsilon)
        return out

    def log_matrices(self, which: NDArray[np.int64]) -> Floats:
        if self.outputs == "map":
            return super().log_matrices(which)
        sizes = self.groups.sizes[which]
        at = starts_of(sizes**2)
        out = np.empty(at[-1])
        small = sizes <= BATCHED
        batch, batch_at = which[small], at[:-1][small]
        groups, K, stretch = self.groups.arrays, self.geometry.polygons, self.locations.stretch

        def part(start: int, stop: int) -> None:
            emission.fill_matrices(
                batch, start, stop, groups, K, stretch, self.noise_epsilon, batch_at, out
            )

        run_ranges(part, batch.size, smallest=16)
        for w in np.flatnonzero(~small):  # each is shared out among the threads
            out[at[w] : at[w + 1]] = self.log_rows(int(which[w]), np.arange(sizes[w])).reshape(-1)
        return out

    def probabilities(self, which: NDArray[np.int64]) -> Floats:
        out = self.log_matrices(which)
        emission.exponentiate(out)
        return out

    def draw(self, requests: Requests, out: check.Cells) -> None:
        super().draw(requests, out)
        self.geometry.release(requests, out)

    draw_one = Mechanism.draw_one  # noise, for which there is no table, is left to ``draw``


def every_pair_joined(location_set: Any) -> PolicyGraph:
    """The policy of location set privacy: every pair of the set is joined (G_2)."""
    if not isinstance(location_set, Domain):
        raise InvalidDomain(
            f"a location set is a Domain, got {type(location_set).__name__}: make one with "
            "pf.Domain(locations, cells)"
        )
    return complete(location_set.locations, location_set.cells())
