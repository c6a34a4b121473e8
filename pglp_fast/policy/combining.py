"""Policies combined: the edges that both have, and those that either has."""

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.policy import graph as kernels
from pglp_fast.errors import TooLarge

from .graph import PolicyGraph, weighted_graph
from .graph_arrays import no_rows, tidy

MOST_LISTED = 10**8  # edges of cliques that are listed one by one (some GB)


def intersection(one: PolicyGraph, other: PolicyGraph) -> PolicyGraph:
    """The edges that both graphs have; cliques that meet in cliques stay compact."""
    locations = one.locations
    both = (one.cliques >= 0) & (other.cliques >= 0)
    joint = np.where(
        both, one.cliques.astype(np.int64) * max(other.n_cliques, 1) + other.cliques, -1
    )
    cliques = np.full(locations.size, -1, np.int32)
    cliques[both] = np.unique(joint[both], return_inverse=True)[1]
    mine, theirs = one.extra_edges(), other.extra_edges()
    pairs = np.concatenate([mine[other.has_edges(mine)], theirs[one.has_edges(theirs)]])
    plain = PolicyGraph(locations, tidy(cliques), *kernels.pairs_to_csr(locations.size, pairs))
    if one.weights is None and other.weights is None:
        return plain
    return _combined(plain, one, other, weakest=True)


def union(one: PolicyGraph, other: PolicyGraph) -> PolicyGraph:
    """The edges that either graph has. A clique of ``other`` stays compact where it holds whole
    cliques of ``one``, or lies in one of them; else its edges are listed."""
    if one.weights is not None or other.weights is not None:
        check_listed(one.n_edges + other.n_edges)
        pairs = np.concatenate([one.edges(), other.edges()])
        plain = PolicyGraph.from_edges(one.locations, pairs)
        return _combined(plain, one, other, weakest=False)
    cliques, split = _joined_cliques(one, other)
    out = PolicyGraph(one.locations, tidy(cliques), *no_rows(one.locations))
    rest = np.where(split, other.cliques, np.int32(-1))
    sizes = np.bincount(rest[split])
    check_listed(int((sizes * (sizes - 1) // 2).sum()))
    listed = PolicyGraph(one.locations, tidy(rest), *no_rows(one.locations)).edges()
    return out.with_edges(np.concatenate([one.extra_edges(), other.extra_edges(), listed]))


def check_listed(edges: int) -> None:
    """Refuse to list more edges than memory holds."""
    if edges > MOST_LISTED:
        raise TooLarge(
            f"cliques overlap in part, or edges have weights: {edges} edges would have to be "
            f"listed, more than {MOST_LISTED}: make the cliques smaller, or cut them so that they "
            "are disjoint or nested"
        )


def _combined(
    plain: PolicyGraph, one: PolicyGraph, other: PolicyGraph, *, weakest: bool
) -> PolicyGraph:
    """The edges of ``plain`` with the larger (``weakest``) or the smaller of both weights."""
    check_listed(plain.n_edges)
    pairs = plain.edges()
    a, b = (graph.edge_weights(pairs) for graph in (one, other))
    larger = a[:, 0] * b[:, 1] >= b[:, 0] * a[:, 1]
    of_one = (b[:, 0] == 0) | ((a[:, 0] != 0) & (larger == weakest))  # 0: it has no such edge
    chosen = np.where(of_one[:, None], a, b)
    return weighted_graph(plain.locations, pairs, chosen[:, 0], chosen[:, 1])


def _joined_cliques(
    one: PolicyGraph, other: PolicyGraph
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """(clique labels of the union, which locations are in a clique of ``other`` that is neither
    inside a clique of ``one`` nor made of whole ones)."""
    inside = other.cliques >= 0
    theirs, mine = other.cliques[inside], one.cliques[inside]
    sizes = np.append(np.bincount(one.cliques[one.cliques >= 0]), 0)
    pairs, count = np.unique(np.stack([theirs, mine], axis=1), axis=0, return_counts=True)
    # a clique of other that meets one of ours in part only
    cuts = (pairs[:, 1] >= 0) & (count < sizes[pairs[:, 1]])
    met = np.bincount(pairs[:, 0], minlength=other.n_cliques)
    cut = np.zeros(other.n_cliques, bool)
    cut[pairs[cuts, 0]] = True
    nested = (met == 1) & cut
    whole, split = ~cut, cut & ~nested
    joined = one.cliques.copy()
    taken = inside & np.append(whole, False)[other.cliques]
    joined[taken] = one.n_cliques + other.cliques[taken]
    return joined, inside & np.append(split, False)[other.cliques]
