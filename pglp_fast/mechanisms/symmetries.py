"""Turns and mirrors that leave a component, its edges and its costs as they are.

A linear program that does not change under them has an optimum that does not either: the average of
its images (the set of solutions is convex). So one variable of each orbit is enough: a 5 x 5 block
has 8 symmetries and 91 orbits of 625 pairs."""

import numpy as np
from numpy.typing import NDArray

from pglp_fast.policy.components import Component

_QUARTERS = ([[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]])
_TURNS = [np.array(m) for m in _QUARTERS]
_MIRROR = np.array([[1, 0], [0, -1]])


def symmetries(component: Component, cost: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Permutations of the places, each a turn or mirror image about the middle, that keep edges,
    their weights, cliques and costs; the identity first.

    A clique must become a clique: one that became single edges would share its variables with
    places that no edge joins to it."""
    sites, k = component.sites, len(component.sites)
    centred = 2 * sites - (sites.min(axis=0) + sites.max(axis=0))
    place = {(int(x), int(y)): p for p, (x, y) in enumerate(centred.tolist())}
    joined = np.zeros((k, k))
    joined[component.edges()] = component.edge_weights()
    together = component.heads[:, None] == component.heads
    tolerance = 1e-12 * float(np.abs(cost).max())
    found = []
    for turn in [*_TURNS, *(t @ _MIRROR for t in _TURNS)]:
        image = [place.get((int(x), int(y)), -1) for x, y in (centred @ turn.T).tolist()]
        if min(image) < 0:
            continue
        move = np.array(image, np.int64)
        to = np.ix_(move, move)
        kept = (joined[to] == joined).all() and (together[to] == together).all()
        if kept and np.abs(cost[to] - cost).max() <= tolerance:
            found.append(move)
    return found


def orbits(
    moves: list[NDArray[np.int64]], heads: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """(orbit of each variable, how many) for variables (s, z) at s * k + z, and (clique, z) at
    k * k + head * k + z.

    A clique's image is the clique of its head's image."""
    from scipy.sparse import coo_array, csgraph

    k = len(heads)
    every = np.arange(k)
    variable = np.arange(2 * k * k).reshape(2 * k, k)
    origin, target = [], []
    for move in moves:
        for rows, image in ((every, move), (k + every, k + heads[move])):
            origin.append(variable[rows].ravel())
            target.append(variable[image][:, move].ravel())
    ends = np.concatenate(origin), np.concatenate(target)
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(2 * k * k, 2 * k * k))
    count, label = csgraph.connected_components(graph, directed=False)
    return label.astype(np.int64), int(count)
