"""The partner of an isolated location against looking at every candidate."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import graph_repair as repairs, partner as kernels
from pglp_fast._kernels.exposure.domain_view import COMPONENT, GRAPH
from pglp_fast._kernels.exposure.isolated_nodes import list_disconnected
from pglp_fast.policy.graph import from_labels

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


def scattered(seed, size, left_out):
    """(graph, domain) of scattered points in cliques of so many, which lie anywhere; of some pairs
    one is left out of the domain."""
    rng = np.random.default_rng(seed)
    sites = np.unique(rng.integers(0, 400, (100, 2)), axis=0)
    locations = pf.Points(rng.permutation(sites) * 0.001)
    labels = np.arange(locations.size) // size
    labels[: 2 * left_out] = locations.size + np.arange(2 * left_out) // 2
    out = 2 * np.arange(left_out)
    rest = np.setdiff1d(np.arange(locations.size // size * size), out)
    return from_labels(locations, labels), pf.Domain(locations, rest)


@pytest.mark.parametrize("left_out", [1, 6])
@pytest.mark.parametrize("size", [2, 12])
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_first_is_as_good_as_all(seed, size, left_out):
    """Between wide hulls many edges add no area and the search stops early, between thin ones none
    does and all are looked at: both pick what the literal search picks."""
    graph, domain = scattered(seed, size, left_out)
    added, _, _ = naive.repair(*oracle_of(graph, domain), "min-area", "component")
    assert len(added) >= left_out / 2
    assert pf.repair(graph, domain).added.tolist() == [list(edge) for edge in added]
