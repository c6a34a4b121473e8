"""Voronoi regions cut out of cones, on cases that can be solved by hand."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.noise import voronoi_regions

SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
WHOLE = 1, 0, 0, 1  # the plain frame
EAST = 1, 2  # the edge of the square that faces east


def around(z, stretch=1.0, frame=WHOLE):
    """Bisectors of a site of a 3 x 3 grid."""
    sites = pf.Grid(3, 3).lattice.astype(np.int64)
    near = np.empty(9, np.int64)
    n = voronoi_regions.voronoi_neighbours(sites, z, stretch, near)
    return voronoi_regions.bisectors(z, sites, near[:n], stretch, SQUARE, *frame)


def region(z, source, edge=EAST):
    """Vertices of z's region in the cone from an offset of z over an edge of the square."""
    found, (x, y) = around(z), source
    c, n = found.lines[:, 2].copy(), len(found.lines)
    beyond = found.lines[:, 0] * x + found.lines[:, 1] * y - c
    cutting, points, rays = np.empty(n, np.int64), np.empty((4, n + 10)), np.empty((2, 5))
    n = voronoi_regions.find_cutting(found.climbs, beyond, *edge, cutting)
    if n < 0:
        return set(), False
    m, open_ = voronoi_regions.cone_region(
        found, c, cutting, n, SQUARE, SQUARE, *edge, float(x), float(y), points, rays
    )
    return set(zip(points[0, :m].tolist(), points[1, :m].tolist(), strict=True)), open_


@pytest.mark.parametrize("stretch", [1.0, 0.25, 7.0])
def test_neighbours_of_a_grid(stretch):
    near = np.empty(25, np.int64)
    sites = pf.Grid(5, 5).lattice.astype(np.int64)
    n = voronoi_regions.voronoi_neighbours(sites, 12, stretch, near)
    assert sorted(near[:n]) == [7, 11, 13, 17]
    n = voronoi_regions.voronoi_neighbours(sites, 0, stretch, near)
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
    voronoi_regions.from_source(found, 2, -1, c)
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


def pieces(sites, z, source, K):
    """For each cone from a site: the part of z's region in it as its two rays tell it (None where
    they do not), and as clipping finds it; vertices in order, and whether it is open."""
    near = np.empty(len(sites), np.int64)
    near = near[: voronoi_regions.voronoi_neighbours(sites, z, 1.0, near)]
    found = voronoi_regions.bisectors(z, sites, near, 1.0, K, *WHOLE)
    x, y = (sites[source] - sites[z]).astype(float).tolist()
    c = found.lines[:, 2].copy()
    beyond = found.lines[:, :2] @ [x, y] - c
    ends, cutting = np.empty((len(K), 4)), np.empty(len(c), np.int64)
    voronoi_regions.ray_ends(found.climbs, beyond, ends)
    for i in range(len(K)):
        edge = i, (i + 1) % len(K)
        points, rays = np.empty((4, len(c) + 10)), np.empty((2, 5))
        m, open_ = voronoi_regions.between_rays(ends, *edge, K, x, y, points, rays)
        told = (points[:2, :m].T.copy(), open_, rays[:, :2].copy()) if m >= 0 else None
        n = voronoi_regions.find_cutting(found.climbs, beyond, *edge, cutting)
        clipped = np.zeros((0, 2)), False, rays[:, :2]
        if n >= 0:
            m, open_ = voronoi_regions.cone_region(
                found, c, cutting, n, K, K, *edge, x, y, points, rays
            )
            clipped = points[:2, :m].T.copy(), open_, rays[:, :2].copy()
        yield told, clipped


def seen(sites, z, source, K):
    """(the cones that may meet z's region as its rays tell it, whether some ray meets it)."""
    near = np.empty(len(sites), np.int64)
    near = near[: voronoi_regions.voronoi_neighbours(sites, z, 1.0, near)]
    found = voronoi_regions.bisectors(z, sites, near, 1.0, K, *WHOLE)
    beyond = found.lines[:, :2] @ (sites[source] - sites[z]).astype(float) - found.lines[:, 2]
    ends = np.empty((len(K), 4))
    voronoi_regions.ray_ends(found.climbs, beyond, ends)
    first, count = voronoi_regions.cones_that_meet(ends)
    return {(first + n) % len(K) for n in range(count)}, bool((ends[:, 0] < ends[:, 2]).any())


NARROW = np.array([(4, -1), (4, 1), (-4, 1), (-4, -1)], float)


def test_what_two_rays_tell():
    """Three sites in a row, from the first: a triangle, a strip's part, and one that is open."""
    row = np.array([(0, 0), (1, 0), (2, 0)])
    expected = {
        0: ([(0, 0), (0.5, -0.125), (0.5, 0.125)], False),
        1: ([(-0.5, 0.125), (-0.5, -0.125), (0.5, -0.375), (0.5, 0.375)], False),
        2: ([(-0.5, 0.375), (-0.5, -0.375)], True),
    }
    for z, (vertices, is_open) in expected.items():
        points, open_, rays = next(pieces(row, z, 0, NARROW))[0]
        assert [tuple(p) for p in points] == vertices
        assert open_ == is_open
        if is_open:
            assert rays.tolist() == [[4, 1], [4, -1]]
    assert next(pieces(row, 0, 1, NARROW))[0] is None  # the cone to the east looks away


def outline(points):
    """Corners of a polygon in order from the lowest, without those that are twice there."""
    kept = [p for p, q in zip(points, np.roll(points, 1, axis=0), strict=True)
            if abs(p - q).max() > 1e-9]  # fmt: skip
    return np.roll(kept, -min(range(len(kept)), key=lambda k: tuple(kept[k].round(6))), axis=0)


@pytest.mark.parametrize("sides", [4, 12, 64])
def test_two_rays_tell_what_clipping_finds(sides):
    """Where both rays cross the same sides, for random sites and polygons; most cones of a many
    sided polygon are such."""
    rng, told, met = np.random.default_rng(sides), 0, 0
    angles = 2 * np.pi * (np.arange(sides) + 0.1) / sides
    K = np.stack([7 * np.cos(angles), 5 * np.sin(angles)], axis=1)
    for _ in range(40):
        sites = np.unique(rng.integers(0, 6, (6, 2)), axis=0)
        z, source = rng.integers(0, len(sites), 2)
        for quick, (points, open_, rays) in pieces(sites, z, source, K):
            met += len(points) > 0
            if quick is None:
                continue
            told += 1
            assert quick[1] == open_
            if open_:
                assert quick[0] == pytest.approx(points, abs=1e-9)
                assert quick[2].tolist() == rays.tolist()
            else:
                assert outline(quick[0]) == pytest.approx(outline(points), abs=1e-9)
    assert told > (0.7 if sides == 64 else 0.05) * met


def test_cones_by_rays():
    """Rays 3, 0 and 1 of four meet the region: the cones before, between and after them."""
    ends = np.array(
        [(1.0, 0, 2.0, 1), (1.0, 0, 2.0, 1), (0.0, -1, -1.0, -1), (0.0, -1, np.inf, -1)]
    )
    assert voronoi_regions.cones_that_meet(ends) == (2, 4)
    assert voronoi_regions.cones_that_meet(ends[[0, 2, 2, 2]]) == (3, 2)
    assert voronoi_regions.cones_that_meet(ends[[2, 2, 2, 2]]) == (0, 4)  # it may lie within any
    assert voronoi_regions.cones_that_meet(ends[[0, 0, 0, 0]]) == (0, 4)
    assert voronoi_regions.cones_that_meet(ends[[0, 2, 0, 2]]) == (
        0,
        4,
    )  # not convex, but for rounding


@pytest.mark.parametrize("sides", [4, 12, 64])
def test_cones_that_rays_rule_out_meet_nothing(sides):
    rng, out = np.random.default_rng(sides), 0
    angles = 2 * np.pi * (np.arange(sides) + 0.1) / sides
    K = np.stack([7 * np.cos(angles), 5 * np.sin(angles)], axis=1)
    for _ in range(60):
        sites = np.unique(rng.integers(0, 6, (9, 2)), axis=0)
        z, source = rng.integers(0, len(sites), 2)
        kept, hit = seen(sites, z, source, K)
        assert hit or len(kept) == sides
        for i, (_, (points, open_, _)) in enumerate(pieces(sites, z, source, K)):
            if i not in kept:
                assert not open_ and (not len(points) or np.ptp(points, axis=0).min() < 1e-9)
                out += 1
    assert out > 60 * sides / 4
