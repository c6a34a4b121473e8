"""K(G^C) against the hull of all differences of edges within the domain."""

import numpy as np

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import domain_hull as kernels


def test_the_hull_of_a_domain():
    ranks = set()
    for graph, domain, policy, view in random_views(range(60)):
        sites, _, edges, cells = oracle_of(graph, domain)
        expected = naive.sensitivity_hull(sites, naive.constrain(edges, cells))
        found = kernels.domain_hull(policy, view)
        assert [tuple(v) for v in found.tolist()] == expected
        ranks.add(min(len(expected), 3))
    assert ranks == {1, 2, 3}


def test_edges_are_added_position_by_position():
    for graph, domain, policy, view in random_views(range(60, 90)):
        sites, _, edges, cells = oracle_of(graph, domain)
        K = np.zeros((1, 2), np.int64)
        for p in range(len(view.cells)):
            K = kernels.grow_by_edges(K, policy, view, p)
        expected = naive.sensitivity_hull(sites, naive.constrain(edges, cells))
        assert [tuple(v) for v in K.tolist()] == expected
