"""Points in polygons, solved by hand and against fractions."""

import numpy as np
import pytest

import naive
from pglp_fast._kernels.geometry.raster import points_inside


def sides_of(*rings):
    return np.concatenate(
        [np.concatenate([r, np.roll(r, -1, axis=0)], axis=1) for r in map(np.asarray, rings)]
    ).astype(float)


def lattice_rows(n):
    """An n x n lattice as rows."""
    return np.arange(float(n)), np.arange(n + 1) * n, np.tile(np.arange(float(n)), n)


def test_a_square_holds_its_west_and_south_side():
    square = sides_of([(1, 1), (3, 1), (3, 3), (1, 3)])
    found = points_inside(square, *lattice_rows(5))
    assert sorted(found.tolist()) == [6, 7, 11, 12]


def test_a_hole_is_outside():
    outer, hole = [(0, 0), (5, 0), (5, 5), (0, 5)], [(1, 1), (4, 1), (4, 4), (1, 4)]
    found = points_inside(sides_of(outer, hole), *lattice_rows(5))
    assert len(found) == 25 - 9


def test_nothing_meets_a_polygon_between_rows_or_off_the_map():
    for ring in ([(0.2, 0.2), (0.8, 0.2), (0.5, 0.9)], [(9, 9), (12, 9), (9, 12)]):
        assert points_inside(sides_of(ring), *lattice_rows(5)).size == 0


@pytest.mark.parametrize("seed", range(20))
def test_against_fractions(seed):
    """Corners on the lattice itself: rows pass through corners, sides through points."""
    rng = np.random.default_rng(seed)
    rings = [rng.integers(-1, 9, (rng.integers(3, 8), 2)).tolist() for _ in range(2)]
    found = points_inside(sides_of(*rings), *lattice_rows(8))
    wanted = [p for p in range(64) if naive.in_polygon(rings, p % 8, p // 8)]
    assert sorted(found.tolist()) == wanted
