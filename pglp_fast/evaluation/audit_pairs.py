"""Which pairs of locations an audit compares."""

import numpy as np
from numpy.typing import NDArray

from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.groups import make_groups
from pglp_fast.policy.sensitivity import sensitivity_hull

_MEMBERS = 64  # of a component that are asked for their neighbours, extreme ones first

Pairs = NDArray[np.int32]


def audited_pairs(
    graph: PolicyGraph, domain: Domain | None, calibration: str, limit: int, seed: int
) -> Pairs:
    """(m, 2) pairs that the policy protects, longest first, m at most ``limit``.

    All edges if there are no more than that. Else each shape of component gets an equal share: half
    of it its longest edges, half edges at random. With the graph calibration also locations that
    have no edge, each with the nearest location within the sensitivity hull of the policy: that one
    hides it (the paper's algorithm Finding Isolated Node)."""
    rng = np.random.default_rng(seed)
    if graph.n_edges <= limit:
        pairs = np.asarray(graph.edges(), np.int32).reshape(-1, 2)
    else:
        pairs = _by_shape(graph, domain, limit, rng)
    if calibration == "graph" and graph.n_edges:
        hidden = _hidden(graph, domain, max(limit // 4, 1), rng)
        pairs = np.concatenate([pairs[: max(limit - len(hidden), 1)], hidden])
    return pairs[np.argsort(-_lengths(graph, pairs), kind="stable")]


def _lengths(graph: PolicyGraph, pairs: Pairs) -> NDArray[np.float64]:
    """Lengths of pairs; of edges with weights divided by these, as noise has to hide them."""
    far = graph.locations.distance(pairs[:, 0], pairs[:, 1])
    if graph.weights is not None and len(pairs):
        numerator, denominator = graph.edge_weights(pairs).T
        far = np.where(numerator > 0, far * denominator / np.maximum(numerator, 1), far)
    return far


def _by_shape(
    graph: PolicyGraph, domain: Domain | None, limit: int, rng: np.random.Generator
) -> Pairs:
    groups = make_groups(graph, domain, "component")
    shapes = np.flatnonzero(groups.sizes > 1)
    most = max(limit // 2, 1)
    if len(shapes) > most:
        largest = shapes[np.argsort(-groups.sizes[shapes], kind="stable")[: most // 2]]
        others = np.setdiff1d(shapes, largest)
        shapes = np.concatenate([largest, rng.permutation(others)[: most - len(largest)]])
    share = limit // len(shapes)
    chosen = [_of_component(graph, groups.of_shape(int(s)), share, rng) for s in shapes]
    return np.concatenate(chosen)[:limit]


def _of_component(
    graph: PolicyGraph, members: NDArray[np.int32], share: int, rng: np.random.Generator
) -> Pairs:
    """Some edges of a component: the longest ones, and some at random."""
    at = graph.locations.lattice[members].astype(np.int64)
    turns = np.array([(1, 0), (0, 1), (1, 1), (1, -1)])
    extreme = np.concatenate([np.argmax(at @ turns.T, axis=0), np.argmin(at @ turns.T, axis=0)])
    some = np.unique(np.concatenate([extreme, rng.permutation(len(members))[:_MEMBERS]]))
    pairs = np.concatenate(
        [
            np.stack([np.full(len(near), s, np.int32), near.astype(np.int32)], axis=1)
            for s, near in ((int(members[i]), graph.neighbours(int(members[i]))) for i in some)
        ]
    )
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    pairs = pairs[np.argsort(-_lengths(graph, pairs), kind="stable")]
    longest = max((share + 1) // 2, 1)
    rest = rng.permutation(len(pairs) - min(longest, len(pairs)))[: share - longest]
    return np.concatenate([pairs[:longest], pairs[longest:][rest]])


def _hidden(
    graph: PolicyGraph, domain: Domain | None, limit: int, rng: np.random.Generator
) -> Pairs:
    """Locations without an edge, each with the nearest one that the hull reaches from it."""
    locations, hull = graph.locations, sensitivity_hull(graph)
    inside = np.arange(locations.size) if domain is None else domain.cells()
    lonely = inside[graph.degrees()[inside] == 0]
    pairs = []
    for s in rng.permutation(lonely)[:limit].tolist():
        others = inside[inside != s]
        difference = locations.lattice[others].astype(np.int64) - locations.lattice[s]
        others = others[hull.contains(difference)]
        if len(others):
            far = locations.distance(np.full(len(others), s), others)
            pairs.append((s, int(others[np.argmin(far)])))
    return np.array(pairs, np.int32).reshape(-1, 2)
