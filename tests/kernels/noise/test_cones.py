"""Cone measure and K-norm noise for chosen words."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import cones
from pglp_fast._kernels.noise.alias_rows import AliasTables, read_alias

HEXAGON = np.array([(-2, -1), (1, -2), (2, -1), (2, 1), (-1, 2), (-2, 1)], float)


def areas(polygon):
    """Shares of the triangles from the centre, in fractions."""
    p = [tuple(map(Fraction, v)) for v in polygon.tolist()]
    each = [a[0] * b[1] - a[1] * b[0] for a, b in zip(p, p[1:] + p[:1])]
    return [e / sum(each) for e in each]


def test_weights_are_the_areas():
    weights = np.empty(6, np.uint64)
    cones.cone_weights(HEXAGON, weights)
    assert sum(weights.tolist()) == 2**63
    for w, share in zip(weights.tolist(), areas(HEXAGON)):
        assert abs(w - share * 2**63) < 2**12  # float64 knows 53 of 63 bits


def test_cones_of_shapes():
    """One row a shape; a segment and a point need none."""
    polygons = Polygons(np.concatenate([HEXAGON, [[-1.0, 0.0], [1.0, 0.0]]]), np.array([0, 6, 8]))
    rows = AliasTables(
        np.array([3, 1]), np.array([0, 8]), np.zeros(10, np.uint64), np.zeros(10, np.int32)
    )
    cones.fill_cones(np.array([0, 1]), polygons, rows)
    weights, back = np.empty(6, np.uint64), np.empty(8, np.uint64)
    cones.cone_weights(HEXAGON, weights)
    read_alias(rows.cut[:8], rows.alias[:8], 3, back)
    assert back.tolist() == [*weights.tolist(), 0, 0]


def words(*units):
    return np.array([int(u * 2**64) for u in units], np.uint64)


def test_noise_of_a_polygon_lies_where_the_words_say():
    """A point of a side times r: its gauge is -ln(u v) / eps."""
    for first in (0.0, 0.2, 0.5, 0.99):
        x, y = cones.draw_noise(words(first, 0.25, 0.5, 0.125), HEXAGON, 2.0)
        sides = zip(HEXAGON, np.roll(HEXAGON, -1, axis=0))
        gauge = max(
            (x * (b[1] - a[1]) - y * (b[0] - a[0])) / (a[0] * b[1] - a[1] * b[0]) for a, b in sides
        )
        assert gauge == pytest.approx(-math.log(0.5 * 0.125) / 2.0, rel=1e-12)


def test_noise_of_a_segment_and_of_a_point():
    segment = np.array([[-3.0, -1.0], [3.0, 1.0]])
    r = -math.log(0.25) / 0.5
    for first, end in (0.0, -1), (0.75, 1):
        found = cones.draw_noise(words(first, 0.0, 0.25, 0.0), segment, 0.5)
        assert found == pytest.approx((3 * r * end, r * end), rel=1e-12)
    assert cones.draw_noise(words(0.1, 0.1, 0.1, 0.1), np.zeros((1, 2)), 1.0) == (0.0, 0.0)


def test_the_weights_that_noise_is_drawn_with_are_read_back():
    """Those of ``cone_weights``, and what the columns beyond the last side hold: nothing."""
    weights = np.empty(6, np.uint64)
    cones.cone_weights(HEXAGON, weights)
    assert cones.drawn_cones(HEXAGON).tolist() == [*weights.tolist(), 0, 0]
    for flat in (np.array([[-3.0, -1.0], [3.0, 1.0]]), np.zeros((1, 2))):
        assert cones.drawn_cones(flat).size == 0


def test_what_is_read_back_is_what_draws():
    """Of evenly spread first words, each side gets its share."""
    n = 1 << 12
    sides = np.zeros(8)
    for k in range(n):
        x, y = cones.draw_noise(words((k + 0.5) / n, 0.5, 0.5, 0.5), HEXAGON, 1.0)
        middles = (HEXAGON + np.roll(HEXAGON, -1, axis=0)) / 2
        along = middles @ (x, y) / np.hypot(*middles.T)
        sides[np.argmax(along)] += 1
    shares = cones.drawn_cones(HEXAGON).astype(float) / 2.0**63
    assert np.abs(sides / n - shares).max() < 8 / n
