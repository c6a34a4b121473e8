"""Differences at the ends of int32, where int32 itself would wrap."""

import numpy as np

from pglp_fast._kernels.base import lattice


def test_differences_do_not_wrap():
    corners = np.array([[0, 0], [2**31 - 1, -(2**31)], [-(2**31), 2**31 - 1]], np.int32)
    for i in range(3):
        for j in range(3):
            expected = tuple(int(corners[j, k]) - int(corners[i, k]) for k in range(2))
            assert lattice.difference(corners, i, j) == expected
