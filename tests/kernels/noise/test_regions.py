"""Voronoi regions cut out of cones, on cases that can be solved by hand."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.noise import regions

SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
WHOLE = 1, 0, 0, 1  # the plain frame
EAST = 1, 2  # the edge of the square that faces east


def around(z, stretch=1.0, frame=WHOLE):
    """Bisectors of a site of a 3 x 3 grid."""
    sites = pf.Grid(3, 3).lattice.astype(np.int64)
    near = np.empty(9, np.int64)
    n = regions.voronoi_neighbours(sites, z, stretch, near)
    return regions.bisectors(z, sites, near[:n], stretch, SQUARE, *frame)


def region(z, source, edge=EAST):
    """Vertices of z's region in the cone from an offset of z over an edge of the square."""
    found, (x, y) = around(z), source
    c, n = found.lines[:, 2].copy(), len(found.lines)
    outside = found.lines[:, 0] * x + found.lines[:, 1] * y > c
    cutting, points, rays = np.empty(n, np.int64), np.empty((4, n + 10)), np.empty((2, 5))
    n = regions.find_cutting(found.climbs, outside, *edge, cutting)
    if n < 0:
        return set(), False
    m, open_ = regions.cone_region(
        found, c, cutting, n, SQUARE, SQUARE, *edge, float(x), float(y), points, rays
    )
    return set(zip(points[0, :m].tolist(), points[1, :m].tolist(), strict=True)), open_


@pytest.mark.parametrize("stretch", [1.0, 0.25, 7.0])
def test_neighbours_of_a_grid(stretch):
    near = np.empty(25, np.int64)
    sites = pf.Grid(5, 5).lattice.astype(np.int64)
    n = regions.voronoi_neighbours(sites, 12, stretch, near)
    assert sorted(near[:n]) == [7, 11, 13, 17]
    n = regions.voronoi_neighbours(sites, 0, stretch, near)
    assert sorted(near[:n]) == [1, 5]


def test_bisectors():
    """z on the side n.x <= c; climbs are inner products with K's vertices in the metric."""
    found = around(4, stretch=0.25)
    rows = {tuple(e): k for k, e in enumerate(found.offsets.tolist())}
    assert sorted(rows) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    assert found.lines[rows[1, 0]].tolist() == [1.0, 0.0, 0.5]
    assert found.lines[rows[0, 1]].tolist() == [0.0, 0.25, 0.125]
    assert found.climbs[rows[1, 0]].tolist() == [-1.0, 1.0, 1.0, -1.0]
    assert found.climbs[rows[0, 1]].tolist() == [-0.25, -0.25, 0.25, 0.25]


def test_bisectors_in_another_frame():
    """n.x is the same number in the frame T: n T^-1 for T x."""
    frame = 1, 2, 0, 1
    plain, other = around(0), around(0, frame=frame)
    x = np.array([3.0, 5.0])
    image = np.array([[1, 2], [0, 1]]) @ x
    assert other.lines[:, :2] @ image == pytest.approx(plain.lines[:, :2] @ x)
    assert other.lines[:, 2].tolist() == plain.lines[:, 2].tolist()


def test_constants_from_a_source():
    """The same side of each bisector, whether x is counted from z or from the source."""
    found, c = around(4), np.empty(4)
    regions.from_source(found, 2, -1, c)
    assert c == pytest.approx(found.lines[:, 2] - found.lines[:, :2] @ [2, -1])


def test_the_cone_of_the_centre_cell():
    assert region(4, (0, 0)) == ({(0.0, 0.0), (0.5, -0.5), (0.5, 0.5)}, False)


def test_a_corner_cell_is_open():
    """From cell 8, the north-east corner, the cone to the east is cut by the row below alone."""
    vertices, open_ = region(8, (0, 0))
    assert open_
    assert vertices == {(0.0, 0.0), (0.5, -0.5)}


def test_a_cone_that_turns_its_back_meets_nothing():
    """Two cells to the east of cell 3; from two cells to its west it is the whole width."""
    assert region(3, (2, 0)) == (set(), False)
    west = {(-2.0, 0.0), (-1.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-1.5, 0.5)}
    assert region(3, (-2, 0)) == (west, False)
