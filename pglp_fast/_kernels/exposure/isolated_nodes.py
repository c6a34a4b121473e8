"""Locations that are disconnected or isolated once the adversary has ruled others out.

The paper's definitions "Disconnected node" and "Location Exposure under constrained domain", and
its algorithm "Finding Isolated Node" (spec sections 3 and 4)."""

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.growing import Pool, append, contents
from pglp_fast._kernels.base.jit import kernel

from .domain_hull import domain_hull
from .domain_view import link_cliques, make_view, unlink_cliques
from .neighbourhood import make_neighbourhood, mark_isolated


@kernel
def list_disconnected(policy, domain, out):
    """Positions of cells that have neighbours in G but none in the domain; returns how many."""
    indptr, indices = policy.indptr, policy.indices
    cells, words, head = domain.cells, domain.words, domain.head
    clique, after = domain.clique, domain.next
    n = 0
    if indices.shape[0] == 0:
        for p in range(cells.shape[0]):
            c = max(clique[p], np.int32(0))
            out[n] = p
            # one sum: no branch to mispredict
            n += (clique[p] >= 0) & (after[p] < 0) & (head[c] == p)
        return n
    for p in range(cells.shape[0]):
        c = clique[p]
        first, last = indptr[cells[p]], indptr[cells[p] + 1]
        # without neighbours in G a location is not disconnected: the policy lets it be disclosed
        alone = first < last if c < 0 else after[p] < 0 and head[c] == p
        for e in range(first, last):
            alone &= not test1(words, indices[e])
        out[n] = p
        n += alone
    return n


@kernel
def list_isolated(policy, domain, graph):
    """Cells that are isolated in G^C as it stands, at the start of ``domain.spare``.

    ``graph``: a disconnected node is isolated iff f(s) + K(G^C) holds no other location of C; with
    the component calibration it always is. Returns how many are (isolated, disconnected)."""
    cells, found = domain.cells, domain.spare
    link_cliques(policy, domain)
    n_alone = list_disconnected(policy, domain, found)
    isolated = np.ones(n_alone, np.bool_)
    if n_alone > 0 and graph:
        K = domain_hull(policy, domain)
        around = make_neighbourhood(policy, domain, K)
        mark_isolated(policy, domain, around, K, found[:n_alone], isolated)
    n = 0
    for k in range(n_alone):
        found[n] = cells[found[k]]
        n += isolated[k]
    unlink_cliques(domain)
    return n, n_alone


@kernel
def list_isolated_domains(policy, words, start, stop, graph, workspace, head, counts):
    """``list_isolated`` for rows start..stop-1 of a matrix of bitmasks, cells end to end.

    ``counts[d]`` receives (|C|, disconnected, isolated)."""
    position = np.empty(0, np.int32)
    found = Pool(np.empty(64, np.int32), 0)
    for d in range(start, stop):
        domain = make_view(words[d], workspace, head, position)
        n, n_alone = list_isolated(policy, domain, graph)
        counts[d, 0], counts[d, 1], counts[d, 2] = domain.cells.shape[0], n_alone, n
        found = append(found, domain.spare[:n])
    return contents(found)
