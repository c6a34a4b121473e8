"""Groups and their shapes on a row of small groups, against comparing them by hand."""

import numpy as np
import pytest

from pglp_fast._kernels.geometry.hull import chain
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.policy import graph, shapes

# Four groups in a plane: 0 and 2 are translates; 1 has other offsets; 3 another extra edge.
SITES = [(0, 0), (1, 0), (0, 1), (5, 0), (6, 0), (7, 0), (3, 4), (4, 4), (3, 5), (8, 8), (9, 8)]
LATTICE = np.array([*SITES, (8, 9)], np.int32)
MEMBERS, STARTS = np.arange(12, dtype=np.int32), np.array([0, 3, 6, 9, 12])
CLIQUES = np.array([0, 0, -1, 1, 1, -1, 2, 2, -1, 3, 3, -1], np.int32)
EXTRA = [(1, 2), (4, 5), (7, 8), (9, 11)]


@pytest.fixture
def groups():
    """Addresses, clique heads and shapes are found on the way, and are those expected."""
    indptr, indices = graph.pairs_to_csr(12, np.array(EXTRA, np.int32))
    address, heads = np.full((12, 2), -1, np.int32), np.empty(12, np.int64)
    shapes.addresses(MEMBERS, STARTS, address)
    assert address.tolist() == [[g, k] for g in range(4) for k in range(3)]
    shapes.clique_heads(MEMBERS, STARTS, CLIQUES, 4, heads)
    assert heads.tolist() == [0, 0, 2] * 4
    found = shapes.Groups(
        MEMBERS, STARTS, heads, address, np.empty(4, np.int32), np.empty(0, np.int32), LATTICE,
        CLIQUES, indptr, indices,
    )  # fmt: skip
    return found._replace(representative=shapes.classify(found))


def test_translates_share_a_shape(groups):
    assert groups.shape_of.tolist() == [0, 1, 0, 2]
    assert groups.representative.tolist() == [0, 1, 3]
    members = [shapes.members_of(groups, k).tolist() for k in range(3)]
    assert members == [[0, 1, 2], [3, 4, 5], [9, 10, 11]]


def test_sites_and_pairs_of_a_group(groups):
    members = MEMBERS[6:9]
    assert shapes.sites_of(members, LATTICE).tolist() == [[0, 0], [1, 0], [0, 1]]
    pairs = shapes.local_pairs(members, groups.indptr, groups.indices, groups.address)
    assert pairs.tolist() == [[1, 2]]


def test_pairs_that_a_proof_is_about(groups):
    """Extra edges; or everybody whose difference lies in the hull, its boundary included."""
    sites = shapes.sites_of(MEMBERS[3:6], LATTICE)  # 0, 1, 2 on a line
    for reach, expected in (1, [[0, 1], [1, 2]]), (2, [[0, 1], [0, 2], [1, 2]]):
        hull = chain(np.array([[reach, 0], [-reach, 0]]))
        hulls = Polygons(np.concatenate([hull, hull, hull]), np.array([0, 2, 4, 6]))
        assert shapes.reached_pairs(sites, hull).tolist() == expected
        assert shapes.protected_of(groups, 1, hulls, True).pairs.tolist() == expected
        protected = shapes.protected_of(groups, 1, hulls, False)
        assert (protected.heads.tolist(), protected.pairs.tolist()) == ([0, 0, 2], [[1, 2]])


def test_connected():
    protected = shapes.Protected(np.array([0, 0, 2, 3, 3, 5]), np.array([[1, 2], [4, 3]]))
    label, count = shapes.connected(protected)
    assert (label.tolist(), count) == ([0, 0, 0, 1, 1, 2], 3)
