"""The certificate's kernels on groups that hold and on ones that do not."""

import math

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import alias_rows, proof
from pglp_fast.mechanisms.exp_bound import exp_lower_bound
from pglp_fast.policy.groups import make_groups

SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
SEGMENT = np.array([(-2, -2), (2, 2)])
G = pf.Grid(3, 3)


def groups_of(graph, calibration="component"):
    return make_groups(graph, None, calibration).arrays


@pytest.mark.parametrize(
    ("polygon", "members", "inside"),
    [
        (SQUARE, [0, 1, 3, 4], True),
        (SQUARE, [0, 1, 2], False),
        (SEGMENT, [0, 4, 8], True),
        (SEGMENT, [0, 4, 5], False),
        (np.array([(-1, -1), (1, 1)]), [0, 4, 8], False),
        (np.array([(0, 0)]), [4], True),
        (np.array([(0, 0)]), [4, 5], False),
    ],
)
def test_cliques_inside_a_polygon(polygon, members, inside):
    assert proof.clique_inside(polygon, np.array(members, np.int32), G.lattice) == inside


def test_edges_inside_a_polygon():
    graph = pf.complete(G, [0, 1, 3]).with_edges([(3, 7)])
    groups = groups_of(graph)
    assert proof.edges_inside(0, SQUARE, groups)
    far = groups_of(graph.with_edges([(7, 2)]))
    assert not proof.edges_inside(0, SQUARE, far)


def test_an_edge_between_two_groups():
    graph = pf.blocks(G, 2).with_edges([(8, 0)])
    groups = groups_of(graph)
    n = graph.n_cliques
    assert proof.first_split(groups, n) == (-1, -1)
    address = groups.address.copy()
    address[8] = (99, 0)
    i, j = proof.first_split(groups._replace(address=address), n)
    assert {int(i), int(j)} == {0, 8}
    address = groups.address.copy()
    address[4] = -1
    assert set(map(int, proof.first_split(groups._replace(address=address), n))) & {4}


def table_of(W):
    bits = np.array([alias_rows.column_bits(len(W))])
    columns = 1 << int(bits[0])
    cut, to = np.empty(len(W) * columns, np.uint64), np.empty(len(W) * columns, np.int32)
    for s, row in enumerate(W):
        part = slice(s * columns, (s + 1) * columns)
        alias_rows.build_alias(np.array(row, np.uint64), int(bits[0]), cut[part], to[part])
    return alias_rows.AliasTables(bits, np.array([0]), cut, to)


def check(W, reached=False):
    """Three cells in a row, joined in turn, at eps = 1: (fault, worst)."""
    g = pf.Grid(1, 3)
    groups = groups_of(pf.PolicyGraph.from_edges(g, [(0, 1), (1, 2)]))
    hulls = Polygons(np.array([(-2, 0), (2, 0)]), np.array([0, 2]))
    fault, worst = np.empty(1, np.int64), np.empty((1, 4))
    how = groups, hulls, reached, exp_lower_bound(1.0), table_of(W), fault, worst
    proof.check_tables(np.array([0]), 0, 1, *how)
    return int(fault[0]), worst[0]


def test_tables():
    half, quarter = 2**62, 2**61
    even = [[half, quarter, quarter], [quarter, half, quarter], [quarter, quarter, half]]
    fault, worst = check(even)
    assert fault == proof.FINE
    assert worst[0] == pytest.approx(math.log(2))
    steep = [*even[:2], [quarter // 2, half + quarter // 2, quarter]]
    assert check(steep)[0] == proof.FINE  # 0 and 2 are not joined
    assert check(steep, reached=True)[0] == proof.RATIO  # the hull reaches
    broken = [[half, quarter, quarter], [quarter // 2, half + quarter // 2, quarter], even[2]]
    fault, worst = check(broken)
    assert fault == proof.RATIO
    assert (worst[0], *worst[1:]) == (pytest.approx(math.log(4)), 0, 1, 0)
