"""Hulls of the components of a constrained graph, made when they are needed."""

import numpy as np
import pytest

import naive
from cases import oracle_of, random_views
from pglp_fast._kernels.exposure import component_hulls as kernels
from pglp_fast._kernels.exposure.domain_view import COMPONENT, GRAPH, MIN_ERROR


def test_each_component_has_its_hull():
    for graph, domain, policy, view in random_views(range(50)):
        sites, scale, edges, cells = oracle_of(graph, domain)
        kept = naive.constrain(edges, cells)
        hulls = kernels.make_hulls(policy, view, COMPONENT)
        assert (hulls.start == -1).all()
        n = len(view.cells)
        positions = np.arange(n, dtype=np.int32)
        hulls = kernels.ensure_hulls(hulls, policy, view, positions, n, MIN_ERROR)
        for p, cell in enumerate(view.cells.tolist()):
            members = naive.component(graph.locations.size, kept, cell)
            b = hulls.of[p]
            assert view.cells[b] == min(members)
            assert hulls.members[b] == len(members)
            own = {e for e in kept if e[0] in members}
            expected = naive.sensitivity_hull(sites, own)
            found = kernels.polygon_of(hulls, b)
            assert [tuple(v) for v in found.tolist()] == expected
            assert hulls.area[b] == naive.twice_area(expected)
            error = naive.expected_noise(np.array(expected) * np.array(scale))
            assert hulls.error[b] == pytest.approx(error, rel=1e-12)


def test_one_hull_for_the_graph_calibration():
    for _, _, policy, view in random_views(range(3)):
        hulls = kernels.make_hulls(policy, view, GRAPH)
        assert len(hulls.start) == 1
        square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        for size in (1, 2, 3, 40):  # the pool moves when it is full
            hulls = kernels.set_hull(hulls, 0, size * square, policy, MIN_ERROR)
            assert kernels.polygon_of(hulls, 0).tolist() == (size * square).tolist()
            assert hulls.area[0] == 8 * size * size
