"""Exact geometry against Python integers: hulls, areas, containment, differences, tangents,
gauges."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import naive
from cases import vertices
from pglp_fast._kernels.geometry import hull as kernels

SPAN = kernels.MAX_SPAN


tiny = st.integers(-3, 3)  # degenerate, collinear, repeated


huge = st.one_of(st.sampled_from([-SPAN, 1 - SPAN, 0, SPAN - 1, SPAN]), st.integers(-SPAN, SPAN))


def clouds(low=1, top=12):
    """Lattice points, small or as far out as is allowed, often repeated or on one line."""
    points = st.one_of(st.tuples(tiny, tiny), st.tuples(huge, huge))
    kind = st.sampled_from(
        [st.tuples(tiny, tiny), st.tuples(huge, huge), st.tuples(st.just(0), huge), points]
    )
    return kind.flatmap(lambda point: st.lists(point, min_size=low, max_size=top))


def array(points):
    return np.array(points, np.int64).reshape(-1, 2)


def test_by_hand():
    square = array([(2, 2), (0, 0), (1, 0), (2, 0), (0, 2), (1, 1), (0, 0)])
    assert vertices(kernels.chain(square)) == [(0, 0), (2, 0), (2, 2), (0, 2)]
    assert kernels.twice_area(kernels.chain(square)) == 8
    assert vertices(kernels.minkowski_difference(kernels.chain(square))) == [
        (-2, -2),
        (2, -2),
        (2, 2),
        (-2, 2),
    ]
    triangle = array([(0, 0), (1, 0), (0, 1)])
    assert vertices(kernels.minkowski_difference(triangle)) == [
        (-1, 0),
        (0, -1),
        (1, -1),
        (1, 0),
        (0, 1),
        (-1, 1),
    ]


@given(clouds())
def test_chain(points):
    """Would catch an orientation test that overflows (2**29 a side) or keeps collinear points,
    and repeats."""
    assert vertices(kernels.chain(array(points))) == naive.hull(points)


@given(clouds())
def test_twice_area(points):
    corners = naive.hull(points)
    assert kernels.twice_area(array(corners)) == naive.twice_area(corners)


@given(
    clouds(),
    st.lists(st.one_of(st.tuples(tiny, tiny), st.tuples(huge, huge)), max_size=8),
    st.data(),
)
def test_contains(points, others, data):
    """Corners, points of the cloud, midpoints of sides, far points: would catch a boundary that
    is left out on one side."""
    polygon = naive.hull(points)
    ends = list(zip(polygon, polygon[1:] + polygon[:1]))
    middles = [((a[0] + b[0]) // 2, (a[1] + b[1]) // 2) for a, b in ends]
    beyond = [(x + data.draw(tiny), y + data.draw(tiny)) for x, y in polygon[:4]]
    queries = [
        *points,
        *middles,
        *others,
        *((x, y) for x, y in beyond if max(abs(x), abs(y)) <= SPAN),
    ]
    out = np.empty(len(queries), bool)
    kernels.contain(array(polygon), array(queries), out)
    assert out.tolist() == [naive.contains(polygon, q) for q in queries]


@given(clouds())
def test_minkowski_difference(points):
    """Against the hull of all differences: would catch parallel sides merged into one vertex too
    many, and a lost last side."""
    points = [
        (abs(x), abs(y)) for x, y in points
    ]  # lattice coordinates start at 0: differences stay in range
    polygon = naive.hull(points)
    expected = naive.hull([naive._minus(a, b) for a in polygon for b in polygon])
    assert vertices(kernels.minkowski_difference(array(polygon))) == expected


@given(
    clouds(low=2),
    st.lists(st.tuples(huge, huge), min_size=1, max_size=6),
    st.lists(st.tuples(tiny, tiny), max_size=6),
)
def test_tangents(points, far, near):
    """Edges i..j-1 are exactly those the point sees, and (j, ..., i, point) is the new hull's
    outline.

    Would catch a binary search that stops one edge early, e.g. where the point's ray passes through
    a vertex."""
    polygon = naive.hull([p for x, y in points for p in ((x, y), (-x, -y))])
    assume(len(polygon) > 2)
    h, area = len(polygon), naive.twice_area(polygon)
    stretched = [(2 * x, 2 * y) for x, y in polygon if 2 * max(abs(x), abs(y)) <= SPAN]
    for p in [q for q in far + near + stretched if not naive.contains(polygon, q)]:
        sides = list(zip(polygon, polygon[1:] + polygon[:1]))
        seen = {
            k
            for k, (a, b) in enumerate(sides)
            if naive.cross(naive._minus(b, a), naive._minus(p, a)) < 0
        }
        i, j = kernels.tangents(array(polygon), *p)
        assert {k % h for k in range(i, j)} == seen
        assert j - i == len(seen)
        outline = [polygon[k % h] for k in range(j, i + h + 1)] + [p]
        assert naive.twice_area(outline) == naive.twice_area(naive.hull([*polygon, p])) > area


@given(clouds(low=2), st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 2), min_size=1, max_size=5))
def test_gauge_kernel(points, xy):
    polygon = naive.hull([p for x, y in points for p in ((x, y), (-x, -y))])
    assume(len(polygon) > 2)
    xy, out = np.array(xy + polygon, float), np.empty(len(xy) + len(polygon))
    kernels.gauge(array(polygon).astype(float), xy, out)
    assert out == pytest.approx(naive.gauge(polygon, xy), rel=1e-9, abs=1e-300)
    assert out[len(out) - len(polygon) :] == pytest.approx(np.ones(len(polygon)), rel=1e-6)
