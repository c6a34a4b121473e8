"""Sensitivity hulls of policies against hulls of all their edges."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import large, mixed, vertices
from pglp_fast._kernels.geometry import hull as kernels
from pglp_fast.policy.groups import make_groups

SPAN = kernels.MAX_SPAN


def strictly_convex(polygon):
    """Every corner turns left, in Python integers, and they turn around once."""
    v = vertices(polygon)
    sides = [naive._minus(b, a) for a, b in zip(v, v[1:] + v[:1])]
    turns = [naive.cross(a, b) for a, b in zip(sides, sides[1:] + sides[:1])]
    descents = sum(a > (0, 0) >= b for a, b in zip(sides, sides[1:] + sides[:1]))
    return min(turns) > 0 and descents == 1


# Sensitivity hulls


def k_of(G, s=None):
    h = pf.sensitivity_hull(G, s)
    assert h.rank == min(2, len(h.vertices) - 1)
    return vertices(h.vertices)


def within(edges, component):
    return {(i, j) for i, j in edges if i in component}


@given(mixed())
def test_sensitivity_hull(case):
    """Of every component and of the whole graph: would catch an edge counted that is not one
    (pairs of a component are not)."""
    G, edges = case
    lattice = G.locations.lattice
    assert k_of(G) == naive.sensitivity_hull(lattice, edges)
    for s in range(G.locations.size):
        assert k_of(G, s) == naive.sensitivity_hull(
            lattice, within(edges, naive.component(len(lattice), edges, s))
        )


@pytest.mark.parametrize(["rows", "cols"], [(1, 1), (1, 7), (7, 1), (5, 7)])
def test_sensitivity_hull_of_named_policies(rows, cols):
    g = pf.Grid(rows, cols)
    labels = np.random.default_rng(rows).integers(-1, 2, g.size)
    cases = [
        (pf.blocks(g, 3), naive.blocks(rows, cols, 3)),
        (pf.categories(g, labels, 4), naive.categories(rows, cols, labels, 4)),
        (pf.neighbours8(g), naive.neighbours8(rows, cols)),
        (pf.complete(g), naive.complete(range(g.size))),
        (pf.complete(g, range(0, g.size, 2)), naive.complete(range(0, g.size, 2))),
    ]
    for G, edges in cases:
        flat = pf.PolicyGraph.from_edges(g, sorted(edges))  # the same edges kept as CSR
        assert k_of(G) == k_of(flat) == naive.sensitivity_hull(g.lattice, edges)
        for s in range(g.size):
            expected = naive.sensitivity_hull(
                g.lattice, within(edges, naive.component(g.size, edges, s))
            )
            assert k_of(G, s) == k_of(flat, s) == expected


@given(st.lists(st.tuples(*[st.integers(0, SPAN)] * 2), min_size=2, max_size=7, unique=True))
def test_sensitivity_hull_at_the_largest_span(sites):
    """Would catch a difference of differences that overflows int64: the corners force the full
    2**29."""
    step = 2.0**-10
    sites = list({*sites, (0, 0), (SPAN, SPAN), (0, SPAN)})
    P = pf.Points(np.array(sites) * step, resolution_km=step)
    assert P.lattice.tolist() == [list(s) for s in sites]
    edges = naive.complete(range(P.size))
    expected = naive.sensitivity_hull(P.lattice, edges)
    assert k_of(pf.complete(P)) == k_of(pf.PolicyGraph.from_edges(P, sorted(edges))) == expected
    assert pf.sensitivity_hull(pf.complete(P)).twice_area == naive.twice_area(expected)


@pytest.mark.parametrize("n", [2, 30])
def test_more_differences_than_the_buffer_holds(n):
    """A dense graph kept as CSR: the buffer of differences fills and is reduced to its hull on
    the way."""
    sites = np.random.default_rng(n).permutation(np.stack(np.divmod(np.arange(400), 20), 1))[:n]
    P = pf.Points(sites, resolution_km=1.0)
    edges = naive.complete(range(n))
    assert k_of(pf.PolicyGraph.from_edges(P, sorted(edges))) == naive.sensitivity_hull(
        P.lattice, edges
    )


@large
def test_a_hull_with_more_vertices_than_the_buffer_holds():
    """A star to 5000 points of a parabola: its hull has thousands of vertices and does not fit
    back in the buffer."""
    i = np.arange(5001)
    P = pf.Points(np.stack([i, i * i], 1), resolution_km=1.0)
    G = pf.PolicyGraph.from_edges(P, np.stack([np.zeros_like(i), i], 1)[1:])
    h = pf.sensitivity_hull(G)
    differences = np.concatenate([P.lattice, -P.lattice]).astype(np.int64)
    corners = set(vertices(h.vertices))
    assert len(corners) == len(h.vertices) > kernels._BUFFER
    assert corners <= set(vertices(differences))
    assert strictly_convex(h.vertices)
    assert h.contains(differences).all()
    # more than its first guess of room, too
    ends, starts = make_groups(G, None, "component").hulls
    assert starts.tolist() == [0, len(h.vertices)]
    assert np.array_equal(ends, h.vertices)


def test_rank_area_and_scale():
    g = pf.Grid(3, 3, cell_km=(0.5, 0.25))
    none, line, plane = (
        pf.sensitivity_hull(pf.complete(g, cells)) for cells in ([4], [0, 4], None)
    )
    assert [h.rank for h in (none, line, plane)] == [0, 1, 2]
    assert [h.twice_area for h in (none, line, plane)] == [0, 0, 32]
    assert [h.area_km2 for h in (none, line, plane)] == [0.0, 0.0, 16 * 0.125]
    assert plane.vertices_km.tolist() == [[-1, -0.5], [1, -0.5], [1, 0.5], [-1, 0.5]]
    assert type(plane.twice_area) is int


def test_gauge():
    """In km, scale included; off the line or the origin nothing reaches, so infinity, never NaN."""
    g = pf.Grid(3, 3, cell_km=(0.5, 0.25))
    none, line, plane = (
        pf.sensitivity_hull(pf.complete(g, cells)) for cells in ([4], [0, 4], None)
    )
    assert plane.gauge([[1, 0], [0.5, 0.25], [0, 1], [0, 0], [-3, 0]]).tolist() == [1, 0.5, 2, 0, 3]
    assert line.gauge([[0.5, 0.25], [-1, -0.5], [0, 0], [0.5, 0.2501], [0.5, 0]]).tolist() == [
        1,
        2,
        0,
        np.inf,
        np.inf,
    ]
    assert none.gauge([[0, 0], [1e-12, 0]]).tolist() == [0, np.inf]
    for h in (none, line, plane):
        assert h.gauge([]).shape == (0,)
        assert h.gauge([0.0, 0.0]).tolist() == [0]


@given(mixed(), st.lists(st.tuples(*[st.floats(-20, 20)] * 2), min_size=1, max_size=4))
def test_gauge_of_a_policy(case, xy):
    h = pf.sensitivity_hull(case[0])
    inside = h.contains(np.rint(xy).astype(int))
    gauges = h.gauge(np.rint(xy) * h.scale)
    assert (
        inside.tolist() == (gauges <= 1 + 1e-9).tolist()
    )  # lattice points are never closer to the border than that
    if h.rank == 2:
        assert h.gauge(xy) == pytest.approx(
            naive.gauge(vertices(h.vertices), xy), rel=1e-9, abs=1e-300
        )


# What SensitivityHull.contains is asked by users: any integers

triangle = pf.sensitivity_hull(
    pf.complete(pf.Points([[0, 0], [2**19, 0], [0, 2**19]], resolution_km=2.0**-10))
)


@pytest.mark.parametrize("power", [30, 36, 40, 50, 62])
def test_contains_never_overflows(power):
    """Differences no map can have are outside; unchecked, their products wrap and every tenth
    one is found inside."""
    points = np.random.default_rng(power).integers(-(2**power), 2**power, (500, 2))
    corners = vertices(triangle.vertices)
    assert triangle.contains(points).tolist() == [naive.contains(corners, p) for p in points]


def test_contains_of_unsigned_integers():
    assert triangle.contains(np.array([[2**64 - 1, 0], [1, 0]], np.uint64)).tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: pf.sensitivity_hull(pf.blocks(pf.Grid(2, 3), 2), 6),
            "= 6 is not one of the 6 locations",
        ),
        (
            lambda: pf.sensitivity_hull(pf.blocks(pf.Grid(2, 3), 2), [0, 1]),
            "s must be one location",
        ),
        (
            lambda: triangle.contains([[0.5, 0.5]]),
            "differences must be integers, got dtype float64",
        ),
        (lambda: triangle.contains([1, 2, 3]), r"shape \(n, 2\)"),
        (
            lambda: triangle.contains([[1, 2, 3, 4]]),
            r"shape \(n, 2\)",
        ),  # not two differences in a row
        (lambda: triangle.gauge([[1, 2, 3]]), r"xy_km must have shape \(n, 2\), got \(1, 3\)"),
        (lambda: triangle.gauge([[np.nan, 0]]), r"xy_km\[0\] = \[nan, 0.0\] is not finite"),
    ],
)
def test_refused(call, match):
    with pytest.raises(pf.InvalidLocation, match=match) as caught:
        call()
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)


def test_hulls_compare():
    """Would catch a dataclass's own ==, which asks an array for its truth."""
    again = pf.sensitivity_hull(
        pf.complete(pf.Points([[0, 0], [2**19, 0], [0, 2**19]], resolution_km=2.0**-10))
    )
    assert triangle == again
    assert triangle != pf.sensitivity_hull(pf.complete(pf.Grid(2, 2)))
