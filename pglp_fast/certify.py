"""The certificate: a proof, on the numbers that are sampled from, that a mechanism keeps its promise.

Two kinds of proof, by how a component is sampled:

*table*: for every distinct shape, every edge (s, s') and every output z, w(z|s) <= e^eps w(z|s') on the integer weights
read back from the alias table, in integer arithmetic against a rational number below e^eps. With the graph calibration
not for edges alone but for every pair whose difference lies in the sensitivity hull: a disconnected location that is not
isolated is protected by those.

*premises*: for the geometric sampler, what the K-norm theorem assumes, exactly: every edge's difference lies in K, and
both ends share K and
the output set. Then the density's ratio is at most exp(eps ||f(s) - f(s')||_K) <= e^eps everywhere, and so is every
probability's.
The sampler computes in float64; ``rounding`` bounds the total variation that this adds (see ``rounding_bound``).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ._kernels import hull as hull_kernels
from ._kernels import proof
from .errors import InvalidParameter
from .locations import Grid
from .mechanisms.base import Mechanism
from .mechanisms.knorm import KNorm
from .mechanisms.remapped import Remapped
from .mechanisms.sampled import Sampled
from .threads import run_ranges

_WHY = {
    proof.FINE: "",
    proof.FOREIGN_OUTPUT: "a table releases a location outside its output set",
    proof.RATIO: "a ratio of weights is above e^epsilon",
    proof.OUTSIDE: "an edge's difference lies outside the noise body K",
    proof.SPLIT: "the ends of an edge do not share one noise and one output set",
}


@dataclass(frozen=True)
class Certificate:
    """What ``certify`` found.

    Attributes
    ----------
    ok : whether the promise holds
    epsilon : what was promised
    worst : what is delivered: the largest ln of a ratio of weights met (table), the largest eps ||f(s) - f(s')||_K (premises)
    edge, output : where the worst case is (with the graph calibration maybe a pair that the hull reaches without an edge); no
        output for premises, neither where there is no edge at all
    proof : "table", "premises" or "table+premises"
    shapes, edges : distinct shapes that were walked, edges they stand for
    mixed : the largest share of a common distribution mixed into a table so that rounding cannot break the proof
    rounding : bound on the total variation distance that float64 adds to the geometric sampler; 0 for tables
    reason : why it does not hold; empty if it does
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

    def __str__(self) -> str:
        verdict = "holds" if self.ok else f"FAILS: {self.reason}"
        where = f" at edge {self.edge}" if self.edge else ""
        return (
            f"epsilon = {self.epsilon} promised, {self.worst:.9f} delivered{where}: the promise {verdict} "
            f"(proof by {self.proof}, {self.shapes} shapes, {self.edges} edges)"
        )


def certify(mechanism: Mechanism) -> Certificate:
    """Prove Pr(z|s) <= e^eps Pr(z|s') for every edge (s, s') and output z, or show where it fails.

    Of a remapped mechanism, the one that draws is proved: post-processing cannot tell more than it was told.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"certify takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...) or pf.PLM(...)")
    m = mechanism.mechanism if isinstance(mechanism, Remapped) else mechanism
    assert isinstance(m, Sampled)
    groups, graph = m.groups, m.graph
    tabled, untabled = np.flatnonzero(m.tabled), np.flatnonzero(~m.tabled)
    fault, worst, edge, output, rounding = proof.FINE, 0.0 if graph.n_edges else -np.inf, None, None, 0.0

    split = proof.first_split(groups.address, graph.cliques, graph.n_cliques, graph.extra_indptr, graph.extra_indices)
    if split[0] >= 0:
        fault, edge = proof.SPLIT, (int(split[0]), int(split[1]))
    if tabled.size:
        faults, found = _walk_tables(m, tabled)
        bad = np.flatnonzero(faults)
        at = int(bad[0]) if bad.size else int(np.argmax(found[:, 0]))
        if fault == proof.FINE and (bad.size or found[at, 0] > worst):
            fault, worst = int(faults[at]), max(float(found[at, 0]), worst)
            if np.isfinite(found[at, 1]):  # not where there is no edge at all
                s, r, z = (int(_members(m, tabled[at])[int(v)]) for v in found[at, 1:])
                edge, output = (s, r), z
    for shape in untabled:
        code, delivered, where = _premises(m, int(shape))
        rounding = max(rounding, rounding_bound(m, int(shape)))
        if fault == proof.FINE and (code != proof.FINE or delivered > worst):
            fault, worst, edge, output = code, max(delivered, worst), where, None
    kinds = [name for name, shapes in (("table", tabled), ("premises", untabled)) if shapes.size]
    return Certificate(
        ok=fault == proof.FINE,
        epsilon=m.epsilon,
        worst=worst if fault else min(worst, m.epsilon),  # proved in integers; the logarithm rounds
        edge=edge,
        output=output,
        proof="+".join(kinds) or "table",
        shapes=len(groups.representative),
        edges=graph.n_edges,
        mixed=float(m._mixed.max(initial=0.0)),
        rounding=rounding,
        reason=_WHY[fault],
    )


def _members(m: Sampled, shape: int) -> NDArray[np.int32]:
    g = m.groups.representative[shape]
    return m.groups.members[m.groups.starts[g] : m.groups.starts[g + 1]]


def _walk_tables(m: Sampled, which: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    m._ensure_tables()
    groups, graph = m.groups, m.graph
    fault, worst = np.zeros(which.size, np.int64), np.full((which.size, 4), -np.inf)
    numerator, shift = m._exp_bound
    everyone = m.calibration == "graph"
    hulls = groups.hulls() if everyone else (np.zeros((0, 2), np.int64), np.zeros(len(groups.representative) + 1, np.int64))

    def part(start: int, stop: int) -> None:
        proof.check_tables(
            which, start, stop, groups.members, groups.starts, groups.representative, m.locations.lattice, *hulls, everyone,
            groups.address, groups.lead, graph.extra_indptr, graph.extra_indices, numerator, shift,
            m._bits, m._offset, m._cut, m._alias, fault, worst,
        )  # fmt: skip

    run_ranges(part, which.size, smallest=16)
    return fault, worst


def _premises(m: Sampled, shape: int) -> tuple[int, float, tuple[int, int] | None]:
    """(fault, eps * largest ||difference||_K, an edge that attains it) of a geometric shape."""
    assert isinstance(m, KNorm)
    groups, graph = m.groups, m.graph
    vertices, starts = m.hulls
    polygon = np.ascontiguousarray(vertices[starts[shape] : starts[shape + 1]])
    code = proof.check_premises(
        shape, polygon, groups.members, groups.starts, groups.representative,
        m.locations.lattice, graph.cliques, graph.extra_indptr, graph.extra_indices,
    )  # fmt: skip
    if len(polygon) == 1:
        return code, -np.inf, None
    gauges = [_gauge(m, shape, v) for v in polygon]
    top = max(range(len(polygon)), key=gauges.__getitem__)
    if gauges[top] > 1:
        code = proof.OUTSIDE
    return code, m.epsilon * float(gauges[top]), _edge_with(m, shape, polygon[top])


def _gauge(m: KNorm, shape: int, v: NDArray[np.int64]) -> Fraction | float:
    """||v||_K of a vertex v of the sensitivity hull, in rational arithmetic, for the very floats that are K's vertices."""
    body = [(Fraction(x), Fraction(y)) for x, y in m.body(shape).tolist()]
    x, y = int(v[0]), int(v[1])
    if len(body) <= 2:
        (ax, ay), (bx, by) = body[0], body[-1]
        if (ax, ay) != (-bx, -by) or x * by != y * bx or not (bx or by):
            return np.inf  # v is not on the segment's line, or there is none
        return abs(Fraction(x) / bx if bx else Fraction(y) / by)
    best = Fraction(0)
    for (ax, ay), (bx, by) in zip(body, body[1:] + body[:1], strict=True):
        area = ax * by - ay * bx
        if area <= 0:
            return np.inf  # K does not go round the origin
        best = max(best, (x * (by - ay) - y * (bx - ax)) / area)
    return best


def _edge_with(m: Sampled, shape: int, difference: NDArray[np.int64]) -> tuple[int, int] | None:
    """An edge of the shape's group with this difference of lattice coordinates."""
    members = _members(m, shape)
    lattice = m.locations.lattice[members].astype(np.int64)
    keys = lattice[:, 0] * (2 * hull_kernels.MAX_SPAN) + lattice[:, 1]
    order = np.argsort(keys)
    wanted = keys + difference[0] * (2 * hull_kernels.MAX_SPAN) + difference[1]
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    hit = keys[order][at] == wanted
    pairs = np.stack([members[hit], members[order[at[hit]]]], axis=1)
    pairs = pairs[m.graph.has_edges(pairs)]
    return (int(pairs[0].min()), int(pairs[0].max())) if len(pairs) else None


def rounding_bound(m: Sampled, shape: int) -> float:
    """Total variation distance between the geometric sampler in float64 and in real arithmetic, at most.

    Uniforms are the middles of 2^53 steps: an off-by-2^-54 in u moves the radius by 2^-54 / (u eps), 2^-54 * 54 ln 2 / eps
    on average. With the other roundings (fewer than 16 of 2^-53 each, relative to radius, K and coordinates) the noise
    moves by at most 2^-46 (W + X) (1 + 1/eps) lattice units on average, W the half width of K and X the extent of the
    output set. A release changes only if that carries it across a boundary of two regions. Given direction and one
    exponential, the radius has a decreasing density of at most eps: across a line the noise has density at most
    eps / (2 w), w the least half width of K, and a comb of unit spacing is met with density at most 1 + eps. So a
    boundary is that near with at most twice the move times the density; 40 = ln 2^58 covers directions almost along it.
    Regions on a full box of a grid are bounded by two combs, k scattered sites by at most 3 k lines.
    """
    assert isinstance(m, KNorm)
    body = m.body(shape)
    if len(body) == 1:
        return 0.0
    lattice = m.locations.lattice[_members(m, shape)]
    extent = (lattice.max(axis=0) - lattice.min(axis=0) + 1).astype(float)
    move = 2.0**-46 * float((np.abs(body).max(axis=0) + extent).sum()) * (1 + 1 / m.epsilon)
    if isinstance(m.locations, Grid) and np.prod(extent) == len(lattice):
        density = 2.0 * (1 + m.epsilon)
    elif len(body) == 2:
        density = 3.0 * len(lattice) * (1 + m.epsilon)
    else:
        x, y = body.T
        area = 0.5 * float(np.abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
        thinnest = area / (4 * float(np.hypot(x, y).max()))
        density = 3.0 * len(lattice) * m.epsilon / (2 * thinnest)
    return min(1.0, 2 * 40 * move * density + len(body) * 2.0**-63)
