"""Rows laid end to end against slices."""

import numpy as np

from pglp_fast._kernels.base import rows


def test_rows():
    start, cells = np.array([0, 2, 2, 5]), np.array([7, 8, 1, 2, 3], np.int32)
    assert [rows.row_cells(start, cells, r).tolist() for r in range(3)] == [[7, 8], [], [1, 2, 3]]
    edges = np.arange(10).reshape(5, 2)
    assert rows.row_cells(start, edges, 0).tolist() == [[0, 1], [2, 3]]
