"""Repairs of many domains at once against the literal algorithm."""

import numpy as np
import pytest

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import graph_repair as kernels
from pglp_fast._kernels.exposure.domain_view import COMPONENT, GRAPH, unlink_cliques

STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")


@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_repairs(strategy, calibration):
    for graph, domain, policy, view in random_views(range(25)):
        unlink_cliques(view)
        added, _, exposed = naive.repair(*oracle_of(graph, domain), strategy, calibration)
        words = np.stack([domain.words] * 2)
        rows, counts = np.empty((4, graph.locations.size), np.int32), np.empty((2, 5), np.int64)
        how = STRATEGIES.index(strategy), (COMPONENT, GRAPH)[calibration == "graph"]
        edges, alone = kernels.repair_domains(
            policy, words, 0, 2, *how, rows, view.head, view.position, counts
        )
        assert edges.tolist() == [list(e) for e in added] * 2
        assert alone.tolist() == sorted(exposed) * 2
        assert counts[:, 3:].tolist() == [[len(added), len(exposed)]] * 2
        assert (view.head == -1).all()
