"""Polygons laid end to end."""

import numpy as np

from pglp_fast._kernels.geometry.polygons import Polygons, polygon_of


def test_each_has_its_own_vertices():
    together = Polygons(np.arange(14).reshape(7, 2), np.array([0, 1, 3, 7]))
    assert [polygon_of(together, k).tolist() for k in range(3)] == [
        [[0, 1]],
        [[2, 3], [4, 5]],
        [[6, 7], [8, 9], [10, 11], [12, 13]],
    ]
