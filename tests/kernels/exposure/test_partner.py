"""The partner of an isolated location against looking at every candidate."""

import numpy as np
import pytest

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import partner as kernels, repair as repairs
from pglp_fast._kernels.exposure.detection import list_disconnected
from pglp_fast._kernels.exposure.domain_view import COMPONENT, GRAPH

STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")


@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_cheapest_edge(strategy, calibration):
    """The first location that must be joined: its partner is the first edge of a literal repair."""
    tried = 0
    for graph, domain, policy, view in random_views(range(80)):
        added, _, _ = naive.repair(*oracle_of(graph, domain), strategy, calibration)
        listed = np.empty(len(view.cells) + 1, np.int32)
        if not added or not list_disconnected(policy, view, listed):
            continue
        i, expected = added[0]
        how = STRATEGIES.index(strategy), (COMPONENT, GRAPH)[calibration == "graph"]
        hulls, _, bound = repairs._starting_hulls(policy, view, *how)
        room = kernels.make_room(hulls, policy, view, how[1])
        _, q = kernels.find_partner(hulls, policy, view, i, *how, bound, room)
        assert view.cells[q] == expected
        tried += 1
    assert tried > 8
