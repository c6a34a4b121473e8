"""Road networks as policies: the ends of a street are not to be told apart."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.locations import Locations, require_locations
from pglp_fast.space.points import Points

from .graph import PolicyGraph
from .weighted_edges import LARGEST

_FINEST = 64  # weights of roads are 64 / n: their common denominator is 64 at most
_DEGREES = ("epsg:4326", "ogc:crs84", "wgs84", "wgs 84")


def road_network(
    points: Any, edges: Any = None, lengths: ArrayLike | str | None = None, *, unit_km: float = 1.0
) -> PolicyGraph:
    """The nodes of a road network, each joined with the next ones along its roads.

    Parameters
    ----------
    points : the map, whose locations are the nodes (``Points``, or a ``Grid``); or a NetworkX graph
        by itself, whose nodes have ``x`` (longitude) and ``y`` (latitude), as OSMnx makes them. The
        map is then made of its nodes, in their order; nodes within 1 m of each other are one
        location: ``policy.locations.location_of`` tells which.
    edges : (m, 2) pairs of locations, or a NetworkX graph whose nodes are locations 0, 1, ...
    lengths : the length of each road in km; of a NetworkX graph the name of the attribute that has
        it in metres ("length" of OSMnx). A road then has the weight length / unit_km.
    unit_km : how long a road is across which epsilon is promised

    Notes
    -----
    Without lengths, two places d roads apart are protected by d times epsilon. With them, two
    places whose shortest way is r km are protected by r / unit_km times epsilon:
    Geo-Indistinguishability along the roads. A weight is rounded down to 64 / n with a whole n, up
    to 1.6 % at unit_km and less for shorter roads: that promises more, and keeps hulls exact.
    Directions do not matter; of parallel roads the shortest holds; of a NetworkX graph loops are
    left out.
    """
    if edges is None and _is_networkx(points):
        return _of_networkx(points, lengths, unit_km)
    if edges is None:
        raise InvalidPolicy("edges must be given, unless the first argument is a NetworkX graph")
    require_locations(points)
    if _is_networkx(edges):
        strange = next((v for v in edges.nodes if not _is_location(v, points.size)), None)
        if strange is not None:
            raise InvalidPolicy(
                f"node {check.brief(strange)} of the graph is not one of the {points.size} "
                f"locations 0..{points.size - 1}: number its nodes, e.g. with "
                "networkx.convert_node_labels_to_integers"
            )
        pairs = np.array([(a, b) for a, b in edges.edges()], np.int64).reshape(-1, 2)
        return _made(points, pairs, _road_lengths(edges, lengths), unit_km)
    if lengths is None:
        return PolicyGraph.from_edges(points, edges)
    return PolicyGraph.from_edges(points, edges, _weights(lengths, unit_km))


def _made(
    points: Locations, pairs: NDArray[Any], lengths: ArrayLike | None, unit_km: float
) -> PolicyGraph:
    """The policy of pairs that may be loops."""
    proper = pairs[:, 0] != pairs[:, 1]
    if lengths is None:
        return PolicyGraph.from_edges(points, pairs[proper])
    return PolicyGraph.from_edges(points, pairs[proper], _weights(lengths, unit_km)[proper])


def _weights(lengths: ArrayLike, unit_km: float) -> NDArray[np.int64]:
    """(m, 2) fractions 64 / n in lowest terms, each at most length / unit_km."""
    unit = check.length_km(unit_km, "unit_km")
    km = check.floats(lengths, "lengths", InvalidPolicy)
    if km.ndim != 1:
        raise InvalidPolicy(f"lengths has shape {km.shape}: give one number for each edge")
    bad = np.flatnonzero(~((km > 0) & np.isfinite(km)))
    if bad.size:
        raise InvalidPolicy(f"lengths[{bad[0]}] = {km[bad[0]]}: a road is longer than 0 km")
    parts = np.ceil(_FINEST * unit / km * (1 - 2.0**-50))
    parts = np.maximum(parts, 1.0)
    far = np.flatnonzero(parts > LARGEST)
    if far.size:
        raise InvalidPolicy(
            f"lengths[{far[0]}] = {km[far[0]]:g} km is less than a {LARGEST // _FINEST}th of "
            f"unit_km = {unit:g}: use a smaller unit_km (with epsilon in proportion), or merge "
            "such nodes"
        )
    shared = np.gcd(parts.astype(np.int64), _FINEST)
    return np.stack([_FINEST // shared, parts.astype(np.int64) // shared], axis=1)


def _road_lengths(graph: Any, attribute: Any) -> ArrayLike | None:
    """Lengths in km of a graph's edges, from an attribute in metres."""
    if attribute is None:
        return None
    if not isinstance(attribute, str):
        raise InvalidPolicy(
            "lengths of a NetworkX graph is the name of the attribute that has them, such as "
            f"'length', got {check.brief(attribute)}"
        )
    values = []
    for a, b, facts in graph.edges(data=True):
        if attribute not in facts:
            raise InvalidPolicy(f"the road from {a} to {b} has no {attribute!r}")
        values.append(facts[attribute])
    return check.floats(values, f"{attribute} of the roads", InvalidPolicy) / 1000


def _is_networkx(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("nodes", "edges", "adj"))


def _is_location(node: Any, size: int) -> bool:
    whole = isinstance(node, int | np.integer) and not isinstance(node, bool)
    return whole and 0 <= int(node) < size


def _of_networkx(graph: Any, lengths: Any, unit_km: float) -> PolicyGraph:
    """The policy of a graph whose nodes have longitude and latitude."""
    system = str(getattr(graph, "graph", {}).get("crs", "epsg:4326"))
    if system.lower() not in _DEGREES:
        raise InvalidPolicy(
            f"the graph's coordinates are in {check.brief(system)}: give it in longitude and "
            "latitude (EPSG:4326), e.g. before ox.project_graph"
        )
    number = {node: k for k, node in enumerate(graph.nodes)}
    lat, lon = (_attribute(graph, name) for name in ("y", "x"))
    points = Points.from_latlon(lat, lon, twins="merge")
    ends = np.array([(number[a], number[b]) for a, b in graph.edges()], np.int64).reshape(-1, 2)
    return _made(points, points.location_of[ends], _road_lengths(graph, lengths), unit_km)


def _attribute(graph: Any, name: str) -> NDArray[np.float64]:
    values: list[ArrayLike] = []
    for node, facts in graph.nodes(data=True):
        if name not in facts:
            raise InvalidPolicy(
                f"node {check.brief(node)} has no {name!r}: nodes need x (longitude) and y "
                "(latitude), or give the map: road_network(points, graph)"
            )
        values.append(facts[name])
    return check.floats(values, f"{name} of the nodes", InvalidPolicy)
