"""Disconnected and isolated locations against the definitions."""

import numpy as np

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import isolated_nodes as kernels
from pglp_fast._kernels.exposure.domain_view import unlink_cliques


def test_disconnected():
    found_any = 0
    for graph, domain, policy, view in random_views(range(60)):
        _, _, edges, cells = oracle_of(graph, domain)
        out = np.empty(len(view.cells) + 1, np.int32)
        n = kernels.list_disconnected(policy, view, out)
        expected = naive.disconnected(graph.locations.size, edges, cells)
        assert view.cells[out[:n]].tolist() == sorted(expected)
        found_any += n > 0
    assert found_any > 10


def test_isolated_in_many_domains():
    """With both calibrations, and the work space left as it was."""
    for graph, domain, policy, view in random_views(range(100, 140)):
        unlink_cliques(view)
        sites, scale, edges, cells = oracle_of(graph, domain)
        words = np.stack([domain.words, np.zeros_like(domain.words), domain.words])
        rows, counts = np.empty((4, graph.locations.size), np.int32), np.empty((3, 3), np.int64)
        for calibration in ("graph", "component"):
            found = kernels.list_isolated_domains(
                policy, words, 0, 3, calibration == "graph", rows, view.head, counts
            )
            one = sorted(naive.isolated(sites, scale, edges, cells, calibration))
            alone = len(naive.disconnected(graph.locations.size, edges, cells))
            assert found.tolist() == one + one
            row = [len(cells), alone, len(one)]
            assert counts.tolist() == [row, [0, 0, 0], row]
        assert (view.head == -1).all()
