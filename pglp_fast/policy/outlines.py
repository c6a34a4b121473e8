"""What a picture of a policy shows: hulls of its cliques, and colours that tell groups apart."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.geometry import hull
from pglp_fast._kernels.policy import colouring, graph as kernels

from .graph import PolicyGraph


def clique_hulls(
    graph: PolicyGraph, inside: NDArray[np.bool_]
) -> list[tuple[int, NDArray[np.float64]]]:
    """A member of each clique, and the convex hull in km of its members that are ``inside``.

    Cliques with one member inside have none; two members make a segment.
    """
    locations = graph.locations
    members, starts = kernels.group_by(
        np.where(inside, graph.cliques, np.int32(-1)), graph.n_cliques
    )
    scale, offset = np.asarray(locations.scale), np.asarray(locations.offset_km)
    found = []
    for c in np.flatnonzero(np.diff(starts) > 1).tolist():
        some = members[starts[c] : starts[c + 1]]
        corners = hull.chain(locations.lattice[some].astype(np.int64))
        found.append((int(some[0]), corners * scale + offset))
    return found


def touching(label: NDArray[Any]) -> NDArray[Any]:
    """Labels (m, 2) of each two cells of a raster that are side by side or meet at a corner."""
    sides = (
        (label[:, :-1], label[:, 1:]),
        (label[:-1], label[1:]),
        (label[:-1, :-1], label[1:, 1:]),
        (label[:-1, 1:], label[1:, :-1]),
    )
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides])


def colour_apart(count: int, pairs: NDArray[np.int32]) -> NDArray[np.int64]:
    """A colour number for each of ``count`` nodes: the two nodes of a pair differ.

    Each node in turn takes the lowest colour that none before it has taken (greedy colouring).
    """
    different = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.int32)
    colour = np.empty(count, np.int64)
    colouring.greedy(*kernels.pairs_to_csr(count, different), colour)
    return colour
