"""The certificate: a proof, on the numbers that are sampled, that a mechanism keeps its promise.

Two kinds of proof, by how a component is sampled:

*table*: for every distinct shape, every edge (s, s') and every output z, w(z|s) <= e^eps w(z|s') on
the integer weights read back from the alias table, in integer arithmetic against a rational number
below e^eps (below e^(w eps) for an edge of weight w). With the graph calibration not for edges
alone but for every pair whose difference lies in the sensitivity hull: a disconnected location that
is not isolated is protected by those.

*premises*: for the geometric sampler, what the K-norm theorem assumes, exactly: every edge's
difference lies in K, and both ends share K and the output set. Then the density's ratio is at most
exp(eps ||f(s) - f(s')||_K) <= e^eps everywhere, and so is every probability's. The cones that are
drawn are read back and compared with K's areas in rational numbers. The sampler computes in
float64; ``rounding`` bounds the total variation that both add (see ``rounding``). Where it is
above ``MAX_ROUNDING`` nothing is proved, and the certificate says so.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry import hull as hull_kernels
from pglp_fast._kernels.geometry.polygons import polygon_of
from pglp_fast._kernels.noise import proof
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidParameter
from pglp_fast.policy.isolated_nodes import isolated
from pglp_fast.policy.weighted_edges import edge_with, scaled_differences
from pglp_fast.space.grid import Grid

from .contract import Floats, Mechanism
from .rounding import MAX_ROUNDING, Noise, drawn_off, gauges_of, noise_over
from .table_sampler import MAX_TABLE

_NOT_PROVED = (
    f"float64 may move more than {MAX_ROUNDING:g} of the probability of a large, thin or scattered "
    f"component; use sampler='table' (up to {MAX_TABLE} locations) or, on a grid, outputs='map'"
)
_WHY = {
    proof.FINE: "",
    proof.FOREIGN_OUTPUT: "a table releases a location outside its output set",
    proof.RATIO: "a ratio of weights is above e^epsilon",
    proof.OUTSIDE: "an edge's difference lies outside the noise body K",
    proof.SPLIT: "the ends of an edge do not share one noise and one output set",
}

_CAPITALS = {"holds": "holds", "is not proved": "is NOT PROVED", "does not hold": "FAILS"}


@dataclass(frozen=True)
class Certificate:
    """What ``certify`` found.

    Attributes
    ----------
    ok : whether the promise holds
    epsilon : what was promised
    worst : what is delivered: the largest ln of a ratio of weights met (table), the largest eps
        ||f(s) - f(s')||_K (premises); of edges with weights, divided by the edge's own weight, so
        that epsilon is what each is compared with
    edge, output : where the worst case is (with the graph calibration maybe a pair that the hull
        reaches without an edge); no output for premises, neither where there is no edge at all
    proof : "table", "premises" or "table+premises"
    shapes, edges : distinct shapes that were walked, edges they stand for
    mixed : the largest total variation distance between a table that is drawn from and the exact
        probabilities, ``pmf``
    rounding : bound on the total variation distance that float64 adds to the geometric sampler; 0
        for tables
    reason : why it does not hold, or is not proved; empty if it is
    exposed : locations that the policy wants hidden, but that lost all their neighbours to the
        domain: they are released as they are
    """

    ok: bool
    epsilon: float
    worst: float
    edge: tuple[int, int] | None
    output: int | None
    proof: str
    shapes: int
    edges: int
    mixed: float
    rounding: float
    reason: str
    exposed: int = 0

    def within(self, hops: float) -> float:
        """Bound on ln Pr(z|s) / Pr(z|s') of locations ``hops`` edges apart: what each edge delivers
        adds up along a path (the paper's theorem on k-hop neighbours). Of edges with weights, of
        the sum of weights. Infinity across components, or where nothing is proved."""
        if not hops >= 0:
            raise InvalidParameter(f"hops must be at least 0, got {hops!r}: use G.distance(a, b)")
        if hops == 0:
            return 0.0
        return hops * max(self.worst, 0.0) if self.ok and np.isfinite(hops) else np.inf

    @property
    def verdict(self) -> str:
        """ "holds", "does not hold" or, where a premise or a bound on rounding is missing and no
        ratio above the promise was found, "is not proved"."""
        missing = self.reason == _WHY[proof.OUTSIDE] and self.worst <= self.epsilon
        if self.reason == _NOT_PROVED or missing:
            return "is not proved"
        return "holds" if self.ok else "does not hold"

    def __str__(self) -> str:
        verdict = f"{_CAPITALS[self.verdict]}: {self.reason}".removesuffix(": ")
        where = f" at edge {self.edge}" if self.edge else ""
        text = (
            f"epsilon = {self.epsilon} promised, {self.worst:.9f} delivered{where}: the promise "
            f"{verdict} "
            f"(proof by {self.proof}, {self.shapes} shapes, {self.edges} edges)"
        )
        if self.exposed:
            text += (
                f"; {self.exposed} locations have no neighbour left in the domain and are released "
                "as they are: repair the policy first (pf.repair)"
            )
        return text


class _Finding(NamedTuple):
    """What was found of some shapes: what fails, and the worst case met."""

    fault: int
    worst: float
    edge: tuple[int, int] | None = None
    output: int | None = None

    def worse(self, other: "_Finding") -> "_Finding":
        """The first fault of the two, or else the worse case; the worst of both is kept."""
        if self.fault != proof.FINE or (other.fault == proof.FINE and other.worst <= self.worst):
            return self
        return other._replace(worst=max(self.worst, other.worst))


def certify(mechanism: Mechanism) -> Certificate:
    """Prove Pr(z|s) <= e^eps Pr(z|s') for every edge (s, s') and output z, or show where it fails.

    Of a remapped mechanism, the one that draws is proved: post-processing cannot tell more than it
    was told."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(
            f"certify takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...) or "
            "pf.PLM(...)"
        )
    m = mechanism.source
    tabled, untabled = np.flatnonzero(m.tabled), np.flatnonzero(m.noisy)
    found = _split_edge(m)
    if tabled.size:
        found = found.worse(_tables(m, tabled))
    if untabled.size:
        found = found.worse(_premises(m, untabled))
    rounding = max([0.0, *(_drawn_off(m, shape) for shape in untabled.tolist())])
    reason = _WHY[found.fault]
    if not reason and rounding > MAX_ROUNDING:
        reason = _NOT_PROVED
    kinds = [name for name, shapes in (("table", tabled), ("premises", untabled)) if shapes.size]
    return Certificate(
        ok=not reason,
        epsilon=m.epsilon,
        # proved in integers; the logarithm rounds
        worst=found.worst if found.fault else min(found.worst, m.epsilon),
        edge=found.edge,
        output=found.output,
        proof="+".join(kinds) or "table",
        shapes=len((m.noise_groups if untabled.size else m.groups).representative),
        edges=m.graph.n_edges,
        mixed=float(m.tables.mixed.max(initial=0.0)),
        rounding=rounding,
        reason=reason,
        exposed=_exposed(m),
    )


def _exposed(m: Mechanism) -> int:
    """How many locations of the domain are isolated: released as they are, without a neighbour."""
    if m.domain is None:
        return 0
    return len(isolated(m.policy, m.domain, calibration=m.calibration))


def _drawn_off(m: Mechanism, shape: int) -> float:
    """How far what is drawn geometrically may be from the theorem's distribution."""
    K, is_grid = _polygon(m, shape), isinstance(m.locations, Grid)
    if m.outputs == "map" and is_grid:  # a box, without looking at every cell for every shape
        extent = m.locations.lattice[-1].astype(float) + 1
        noise = Noise(K, extent, m.locations.size, boxed=True, in_line=False)
    else:
        noise = noise_over(K, m.locations.lattice[_output_set(m, shape)], is_grid)
    return drawn_off(noise, m.cones(shape), m.noise_epsilon, m.locations.stretch)


def _output_set(m: Mechanism, shape: int) -> NDArray[np.int32]:
    """What noise of a shape is snapped to."""
    return m.groups.members if m.outputs == "map" else m.noise_groups.of_shape(shape)


def _split_edge(m: Mechanism) -> _Finding:
    """Whether the ends of every edge share one noise, and with it one output set; else the edge
    that is cut."""
    i, j = proof.first_split(m.noise_groups.arrays, m.graph.n_cliques)
    if i >= 0:
        return _Finding(proof.SPLIT, 0.0, (int(i), int(j)))
    return _Finding(proof.FINE, 0.0 if m.graph.n_edges else -np.inf)


def _tables(m: Mechanism, which: NDArray[np.int64]) -> _Finding:
    """The first fault of these shapes' tables, or the largest ratio."""
    m.tables.ensure()
    hulls, reached = m.tables.protected
    groups = m.tables.proved_groups()
    fault, worst = np.zeros(which.size, np.int64), np.full((which.size, 4), -np.inf)

    def part(start: int, stop: int) -> None:
        proof.check_tables(
            which, start, stop, groups, hulls, reached, m.tables.bound, m.tables.arrays,
            fault, worst,
        )  # fmt: skip

    run_ranges(part, which.size, smallest=16)
    bad = np.flatnonzero(fault)
    at = int(bad[0]) if bad.size else int(np.argmax(worst[:, 0]))
    ratio, *places = worst[at].tolist()
    if not np.isfinite(places[0]):  # there is no edge at all
        return _Finding(int(fault[at]), ratio)
    members = m.groups.of_shape(int(which[at]))
    s, r, z = (int(members[int(place)]) for place in places)
    return _Finding(int(fault[at]), ratio, (s, r), z)


def _premises(m: Mechanism, which: NDArray[np.int64]) -> _Finding:
    """The first of these geometric shapes with an edge outside K, or the one with the largest
    ||difference||_K, times eps."""
    fault, most = np.zeros(which.size, np.int64), np.full(which.size, -np.inf)
    for at, shape in enumerate(which.tolist()):
        fault[at], most[at] = _edges_in_noise(m, shape)
    bad = np.flatnonzero(fault)
    at = int(bad[0]) if bad.size else int(np.argmax(most))
    if most[at] < 0:  # there is no edge at all
        return _Finding(int(fault[at]), -np.inf)
    shape = int(which[at])
    hull = polygon_of(m.noise_groups.hulls, shape)
    gauges = gauges_of(_polygon(m, shape), hull)
    top = max(range(len(hull)), key=gauges.__getitem__)
    return _Finding(int(fault[at]), m.epsilon * float(most[at]), _edge_with(m, shape, hull[top]))


def _edges_in_noise(m: Mechanism, shape: int) -> tuple[int, float]:
    """What fails of a geometric shape, and the largest ||difference||_K of its edges."""
    groups = m.noise_groups
    hull, K = polygon_of(groups.hulls, shape), _polygon(m, shape)
    inside = (
        proof.edges_inside(shape, hull, groups.arrays)
        if m.graph.weights is None
        else _weighted_edges_inside(m, shape, hull)
    )
    most = max(gauges_of(K, hull)) if len(hull) > 1 else -np.inf
    return proof.FINE if inside and most <= 1 else proof.OUTSIDE, float(most)


def _weighted_edges_inside(m: Mechanism, shape: int, hull: NDArray[np.int64]) -> bool:
    """Whether the difference of every edge, divided by its weight, lies in the hull, exactly."""
    differences = scaled_differences(m.graph, m.noise_groups.of_shape(shape))
    found = np.empty(len(differences), bool)
    hull_kernels.contain(hull, differences, found)
    return bool(hull_kernels.is_symmetric(hull)) and bool(found.all())


def _polygon(m: Mechanism, shape: int) -> Floats:
    K = m.polygon(shape)
    if K is None:
        raise InvalidParameter(
            f"{type(m).__name__} draws shape {shape} without a table but says no noise polygon: "
            "there is nothing to prove"
        )
    return K


def _edge_with(m: Mechanism, shape: int, difference: NDArray[np.int64]) -> tuple[int, int] | None:
    """An edge of the shape's group with this difference of lattice coordinates."""
    members = m.noise_groups.of_shape(shape)
    if m.graph.weights is not None:
        found = edge_with(m.graph, members, difference)
        if found is not None or (difference % m.graph.denominator).any():
            return found
        difference = difference // m.graph.denominator  # of two locations of a clique
    lattice = m.locations.lattice[members].astype(np.int64)
    keys = lattice[:, 0] * (2 * hull_kernels.MAX_SPAN) + lattice[:, 1]
    order = np.argsort(keys)
    wanted = keys + difference[0] * (2 * hull_kernels.MAX_SPAN) + difference[1]
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    hit = keys[order][at] == wanted
    pairs = np.stack([members[hit], members[order[at[hit]]]], axis=1)
    pairs = pairs[m.graph.has_edges(pairs)]
    return (int(pairs[0].min()), int(pairs[0].max())) if len(pairs) else None
