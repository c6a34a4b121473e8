"""Groups and shapes: translates share one, and nothing else does (a wrong merge would release
with another's noise)."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import cells_of, mixed
from pglp_fast._kernels.policy import shapes
from pglp_fast.policy.groups import make_groups


def members(groups):
    return [groups.members[a:b].tolist() for a, b in zip(groups.starts, groups.starts[1:])]


def signature(G, edges, group):
    """What a shape stands for: offsets in index order, who is in whose clique, and every edge,
    by place in the group."""
    place = {s: k for k, s in enumerate(group)}
    offsets = tuple(
        map(tuple, (G.locations.lattice[group] - G.locations.lattice[group[0]]).tolist())
    )
    cliques = G.cliques[group].tolist()
    leads = tuple(cliques.index(c) if c >= 0 else k for k, c in enumerate(cliques))
    return offsets, leads, frozenset((place[i], place[j]) for i, j in edges if i in place)


def classify_blindly(groups, constant):
    """(shape_of, representative) when every group has the same hash: the comparison alone
    decides, and probing must wrap."""
    shape_of = np.full_like(groups.shape_of, -1)
    classify = getattr(
        shapes.classify, "py_func", shapes.classify
    )  # compiled code would not see the patch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "_hash", lambda *args: np.uint64(constant))
        representative = classify(groups.arrays._replace(shape_of=shape_of))
    return shape_of.tolist(), representative.tolist()


def check(G, edges, domain, groups):
    """Members, addresses, clique heads, shapes and hulls of the component calibration, all from the
    definitions."""
    n = G.locations.size
    expected = sorted({tuple(naive.component(n, edges, s)) for s in domain})
    assert members(groups) == [list(c) for c in expected], (
        "ascending, in order of their lowest location"
    )
    where = {s: (g, k) for g, group in enumerate(expected) for k, s in enumerate(group)}
    assert [tuple(a) for a in groups.address.tolist()] == [where.get(s, (-1, -1)) for s in range(n)]
    signatures = [signature(G, edges, list(c)) for c in expected]
    assert [k for s in signatures for k in s[1]] == groups.heads.tolist()
    first = [signatures.index(s) for s in signatures]
    assert groups.representative.tolist() == sorted(set(first)), "numbered as they appear"
    assert groups.shape_of.tolist() == [sorted(set(first)).index(f) for f in first]
    assert classify_blindly(groups, 15) == (
        groups.shape_of.tolist(),
        groups.representative.tolist(),
    )
    assert groups.sizes.tolist() == [len(expected[f]) for f in sorted(set(first))]
    vertices, starts = groups.hulls
    for s in domain:
        assert groups.of(s).tolist() == naive.component(n, edges, s)
        k = groups.shape(s)
        own = {(i, j) for i, j in edges if i in groups.of(s)}
        assert list(
            map(tuple, vertices[starts[k] : starts[k + 1]].tolist())
        ) == naive.sensitivity_hull(G.locations.lattice, own)


@pytest.mark.parametrize(
    ("rows", "cols", "k", "n_shapes"),
    [
        (6, 6, 3, 1),
        (7, 7, 3, 4),
        (7, 6, 3, 2),
        (1, 1, 3, 1),
        (5, 9, 1, 1),
        (8, 3, 5, 2),
        (4, 5, 9, 1),
    ],
)
def test_blocks(rows, cols, k, n_shapes):
    """Whole blocks, and those cut off at one edge, the other, and both."""
    G = pf.blocks(pf.Grid(rows, cols), k)
    groups = make_groups(G, None, "component")
    check(G, naive.blocks(rows, cols, k), range(rows * cols), groups)
    assert len(groups.representative) == n_shapes


@given(mixed(top=14, span=4))
def test_mixed_graphs(case):
    """Small components on a small lattice: many are translates, many nearly so."""
    G, edges = case
    check(G, edges, range(G.locations.size), make_groups(G, None, "component"))


@given(mixed(top=12, span=4), st.data())
def test_constrained_graphs(case, data):
    """Outside the domain there is no group; what C leaves of equal blocks is compared anew."""
    G, edges = case
    domain = sorted(set(data.draw(cells_of(G.locations.size))))
    C = pf.Domain(G.locations, domain)
    kept = G.constrain(C)
    check(kept, naive.constrain(edges, domain), domain, make_groups(kept, C, "component"))
    one = make_groups(kept, C, "graph")
    assert members(one) == ([domain] if domain else [])
    assert one.shape_of.tolist() == one.representative.tolist() == ([0] if domain else [])
    assert (one.address[:, 0] >= 0).tolist() == C.mask().tolist()


def pieces(*parts):
    """The shape of each of several pieces, laid out far apart, with these edges."""
    sites = [(100 * p + x, y) for p, (sites, _) in enumerate(parts) for x, y in sites]
    starts = np.cumsum([0] + [len(sites) for sites, _ in parts])
    pairs = [(a + i, a + j) for a, (_, edges) in zip(starts, parts) for i, j in edges]
    G = pf.PolicyGraph.from_edges(pf.Points(sites, resolution_km=1.0), pairs)
    groups = make_groups(G, None, "component")
    assert classify_blindly(groups, 0)[0] == groups.shape_of.tolist()
    return groups.shape_of.tolist()


L = [(0, 0), (1, 0), (1, 1)]
PATH = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("other", "shapes_of"),
    [
        ((L, PATH), [0, 0]),
        ((L, [(2, 1), (1, 0)]), [0, 0]),  # the same edges, said otherwise
        (([(5, 3), (6, 3), (6, 4)], PATH), [0, 0]),  # moved
        ((L, [(0, 1), (0, 2)]), [0, 1]),  # another edge
        ((L, [(0, 1), (1, 2), (0, 2)]), [0, 1]),  # one more
        (([(0, 0), (1, 0), (2, 1)], PATH), [0, 1]),  # another place
        (([(0, 0), (1, 0), (1, -1)], PATH), [0, 1]),  # mirrored: not a translate
        (([(0, 0), (0, 1), (1, 1)], PATH), [0, 1]),  # turned
        (
            ([(1, 1), (1, 0), (0, 0)], PATH),
            [0, 1],
        ),  # the same sites and edges in another order: ties go elsewhere
        (([*L, (2, 1)], [*PATH, (2, 3)]), [0, 1]),  # the first three agree
    ],
)
def test_two_pieces(other, shapes_of):
    assert pieces((L, PATH), other) == shapes_of
    assert pieces(other, (L, PATH)) == shapes_of


SQUARE = [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("edges", "others"),
    [
        (
            [(0, 1), (1, 2), (2, 3), (0, 3)],
            [(0, 2), (1, 2), (1, 3), (0, 3)],
        ),  # two rings: all degrees equal
        (
            [(0, 1), (1, 2), (0, 3)],
            [(0, 1), (1, 2), (0, 3), (2, 3)],
        ),  # every row the beginning of the other's
    ],
)
def test_edges_on_the_same_sites(edges, others):
    assert (
        pieces((SQUARE, edges), (SQUARE, others))
        == pieces((SQUARE, others), (SQUARE, edges))
        == [0, 1]
    )


def test_order_decides_ties():
    """Why index order is part of a shape: from the middle of three in a row, noise half-way goes
    to the lower *index*."""
    P = pf.Points([(0, 0), (1, 0), (2, 0), (12, 0), (11, 0), (10, 0)], resolution_km=1.0)
    G = pf.PolicyGraph.from_edges(P, [(0, 1), (1, 2), (3, 4), (4, 5)])
    assert make_groups(G, None, "component").shape_of.tolist() == [0, 1]


def test_equal_cliques_at_other_places():
    """Cliques {0, 1} and {2, 3} joined by an edge, against {0, 2} and {1, 3}: same sites, same
    number of everything."""
    P = pf.Points([*SQUARE, *((x + 9, y) for x, y in SQUARE)], resolution_km=1.0)
    G = pf.categories(P, [0, 0, 1, 1, 2, 3, 2, 3], None).with_edges([[0, 3], [4, 7]])
    groups = make_groups(G, None, "component")
    assert groups.shape_of.tolist() == classify_blindly(groups, 0)[0] == [0, 1]
    assert groups.heads.tolist() == [0, 0, 2, 2, 0, 1, 0, 1]


@pytest.mark.parametrize("constant", [0, 15, 2**64 - 1])
def test_hash_collisions_do_not_merge(constant):
    """With one hash for all, shapes that differ in one place, one edge or one clique are still
    told apart."""
    G = pf.blocks(pf.Grid(13, 13), 3).with_edges([[0, 3], [39, 42], [100, 120]])
    groups = make_groups(G, None, "component")
    shape_of, representative = classify_blindly(groups, constant)
    assert shape_of == groups.shape_of.tolist()
    assert representative == groups.representative.tolist()
    assert len(representative) > 4


def test_many_shapes():
    """More shapes than the table's first 16 slots, each twice: components of i + 1 cells in a
    row."""
    rows, cols = 40, 24
    labels = np.full((rows, cols), -1)
    for r in range(rows):
        labels[r, : r // 2 + 1] = r
    groups = make_groups(
        pf.categories(pf.Grid(rows, cols), labels.reshape(-1), None), None, "component"
    )
    wide = [s for s in range(rows) if s >= 2]
    starts = [groups.shape(r * cols) for r in range(rows)]
    assert all(starts[r] == starts[r ^ 1] for r in wide)
    assert len(set(starts)) == rows // 2


def test_local_views():
    """Offsets and extra edges of one group, as its tables are built from them."""
    G = pf.blocks(pf.Grid(4, 4), 2).with_edges([[2, 8], [3, 12], [0, 10]])
    groups = make_groups(G, None, "component")
    joined = groups.of(2)
    assert (
        shapes.sites_of(joined, G.locations.lattice).tolist()
        == (G.locations.lattice[joined] - [2, 0]).tolist()
    )
    local = shapes.local_pairs(joined, G.extra_indptr, G.extra_indices, groups.address)
    assert joined[local].tolist() == [[2, 8], [3, 12]]


def test_an_empty_domain():
    g = pf.Grid(2, 2)
    nobody = pf.Domain(g, [])
    for calibration in ("component", "graph"):
        groups = make_groups(pf.blocks(g, 2).constrain(nobody), nobody, calibration)
        assert members(groups) == []
        assert (groups.address == -1).all()
        m = pf.PPIM(pf.blocks(g, 2), epsilon=1.0, domain=nobody, calibration=calibration)
        assert m.release([]).shape == (0,)
        with pytest.raises(pf.InvalidDomain, match=r"cells\[0\] = 1 is outside the domain"):
            m.release([1])
