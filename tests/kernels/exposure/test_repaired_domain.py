"""Components and hulls of a repaired graph that is never built."""

import numpy as np
import pytest

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.exposure import repaired_domain as kernels
from pglp_fast._kernels.exposure.domain_view import COMPONENT, GRAPH


@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_components_and_hulls(calibration):
    for graph, domain, policy, view in random_views(range(40)):
        sites, scale, edges, cells = oracle_of(graph, domain)
        added, _, exposed = naive.repair(sites, scale, edges, cells, "min-area", calibration)
        whole = naive.constrain(edges, cells) | {(min(e), max(e)) for e in added}
        space = kernels.make_workspace(graph.locations.size, graph.n_cliques)
        listed = view.cells.copy()
        for _ in range(2):  # the work space serves again
            set_cells(space.words, listed)
            by = (COMPONENT, GRAPH)[calibration == "graph"]
            found = kernels.make_repaired_domain(policy, 0, by, space, listed)
            assert [tuple(e) for e in found.added.tolist()] == [tuple(e) for e in added]
            assert found.counts[2:].tolist() == [len(added), len(exposed)]
            for p, cell in enumerate(listed.tolist()):
                members = sorted(naive.component(graph.locations.size, whole, cell))
                positions = kernels.component_of(policy, found, p)
                assert listed[positions].tolist() == members
                hull = kernels.component_hull(policy, found, positions)
                own = {e for e in whole if e[0] in set(members)}
                assert [tuple(v) for v in hull.tolist()] == naive.sensitivity_hull(sites, own)
            if calibration == "graph":
                expected = naive.sensitivity_hull(sites, whole)
                assert [tuple(v) for v in found.hull.tolist()] == expected
            kernels.discard(found)
            assert (space.head == -1).all()
            space.words[:] = 0


def repaired_views(calibration, seeds):
    """(graph, kernel policy, repaired domain, its edges, sites) of random domains."""
    by = (COMPONENT, GRAPH)[calibration == "graph"]
    for graph, domain, policy, view in random_views(seeds):
        sites, scale, edges, cells = oracle_of(graph, domain)
        _, whole, _ = naive.repair(sites, scale, edges, cells, "min-area", calibration)
        space = kernels.make_workspace(graph.locations.size, graph.n_cliques)
        listed = view.cells.copy()
        set_cells(space.words, listed)
        found = kernels.make_repaired_domain(policy, 0, by, space, listed)
        yield graph, policy, found, whole, sites


def test_labels_of_components():
    """Numbered in the order of their first members, the same for exactly those that are joined."""
    for graph, policy, found, whole, _ in repaired_views("component", range(60)):
        label = kernels.label_components(policy, found).tolist()
        cells, seen = found.domain.cells.tolist(), {}
        for cell, number in zip(cells, label):
            key = tuple(naive.component(graph.locations.size, whole, cell))
            assert seen.setdefault(key, len(seen)) == number


@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_a_hull_that_misses_one_edge_is_found_out(calibration):
    """All edges lie in the hull of all; without any one of the corners' edges some do not."""
    missed = 0
    for _, policy, found, whole, sites in repaired_views(calibration, range(60)):
        cells = found.domain.cells
        for p in range(len(cells)):
            positions = kernels.component_of(policy, found, p)
            own = {e for e in whole if e[0] in set(cells[positions].tolist())}
            hull = np.array(naive.sensitivity_hull(sites, own), np.int64)
            assert kernels.edges_inside(policy, found, positions, hull)
            for edge in own:
                smaller = naive.sensitivity_hull(sites, own - {edge})
                inside = all(
                    naive.contains(smaller, (sites[i][0] - sites[j][0], sites[i][1] - sites[j][1]))
                    for i, j in own
                )
                less = np.array(smaller, np.int64)
                assert kernels.edges_inside(policy, found, positions, less) == inside
                missed += not inside
    assert missed > 20
