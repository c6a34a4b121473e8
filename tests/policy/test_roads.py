"""Road networks as policies."""

import numpy as np
import pytest

import pglp_fast as pf

POINTS = pf.Points([(0.0, 0.0), (0.4, 0.1), (0.9, 0.0), (0.4, 0.8)])
ROADS = [(0, 1), (1, 2), (2, 1), (1, 3)]


def test_an_edge_list_is_the_policy():
    G = pf.road_network(POINTS, ROADS)
    assert G.edges().tolist() == [[0, 1], [1, 2], [1, 3]]
    assert G.distance(0, 3) == 2
    assert pf.certify(pf.PPIM(G, epsilon=1.0)).ok


def test_networkx_says_the_same():
    nx = pytest.importorskip("networkx")
    graph = nx.MultiDiGraph(ROADS)
    graph.add_edge(3, 3)  # a cul-de-sac
    assert pf.road_network(POINTS, graph) == pf.road_network(POINTS, ROADS)


def test_networkx_with_coordinates_makes_its_own_map():
    """Nodes as OSMnx gives them; two that lie on one site are one location."""
    nx = pytest.importorskip("networkx")
    graph = nx.Graph(crs="epsg:4326")
    at = {"a": (35.6, 139.6), "b": (35.601, 139.601), "c": (35.601, 139.601), "d": (35.603, 139.6)}
    for node, (lat, lon) in at.items():
        graph.add_node(node, x=lon, y=lat)
    graph.add_edges_from([("a", "b"), ("b", "c"), ("c", "d")])
    G = pf.road_network(graph)
    assert G.locations.location_of.tolist() == [0, 1, 1, 2]
    assert G.edges().tolist() == [[0, 1], [1, 2]]
    assert np.allclose(G.locations.latlon([0, 1, 2]), [at["a"], at["b"], at["d"]], atol=1e-5)


def test_lengths_are_weights_that_are_rounded_down():
    km = [0.5, 0.52, 0.3, 0.71]
    G = pf.road_network(POINTS, [(0, 1), (1, 2), (1, 3), (0, 3)], km)
    weight = G.edge_weights()[:, 0] / G.edge_weights()[:, 1]
    given = np.array([0.5, 0.71, 0.52, 0.3])  # in the order of edges()
    assert (weight <= given).all() and (weight > given * 0.984).all()
    assert weight[0] == 0.5  # exact where it can be
    assert G.denominator <= 64
    by_unit = pf.road_network(POINTS, [(0, 1)], [0.5], unit_km=0.25)
    assert by_unit.edge_weights().tolist() == [[2, 1]]
    m = pf.PPIM(G, epsilon=2.0)
    assert pf.certify(m).ok
    L = m.matrix(0, log=True)[1]
    a, b = np.indices((4, 4)).reshape(2, -1)
    far = G.distance(a, b).reshape(4, 4)
    assert (np.abs(L[:, None] - L[None]).max(axis=2) <= 2 * far * (1 + 1e-9) + 1e-12).all()


def test_lengths_of_networkx_are_metres():
    nx = pytest.importorskip("networkx")
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, length=500.0)
    graph.add_edge(0, 1, length=250.0)  # the shorter way holds
    graph.add_edge(1, 3, length=1000.0)
    G = pf.road_network(POINTS, graph, "length")
    assert pf.road_network(POINTS, [(0, 1), (1, 3)], [0.25, 1.0]) == G
    with pytest.raises(pf.InvalidPolicy, match="the road from 0 to 1 has no 'metres'"):
        pf.road_network(POINTS, graph, "metres")


@pytest.mark.parametrize(
    "lengths, words",
    [
        ([0.5, -1.0], r"lengths\[1\] = -1.0"),
        ([0.5, np.nan], r"lengths\[1\] = nan"),
        ([0.5, 0.001], "use a smaller unit_km"),
        ([0.5], "one number for each of the 2 edges"),
    ],
)
def test_bad_lengths_are_named(lengths, words):
    with pytest.raises(pf.InvalidPolicy, match=words):
        pf.road_network(POINTS, [(0, 1), (1, 2)], lengths)


def test_bad_networks_are_named():
    nx = pytest.importorskip("networkx")
    with pytest.raises(pf.InvalidPolicy, match="node 'a' of the graph is not one of the 4"):
        pf.road_network(POINTS, nx.Graph([("a", "b")]))
    with pytest.raises(pf.InvalidPolicy, match="node 0 has no 'y'"):
        pf.road_network(nx.Graph([(0, 1)]))
    with pytest.raises(pf.InvalidPolicy, match="EPSG:4326"):
        pf.road_network(nx.Graph([(0, 1)], crs="epsg:32654"))
    with pytest.raises(pf.InvalidPolicy, match="edges must be given"):
        pf.road_network(POINTS)
    with pytest.raises(pf.InvalidPolicy, match="leaves the 4 locations"):
        pf.road_network(POINTS, [(0, 4)])
