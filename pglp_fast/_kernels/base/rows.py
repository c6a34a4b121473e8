"""Sparse rows laid end to end."""

from collections import namedtuple

from .jit import kernel

# row r: cells[start[r] : start[r + 1]], with a value beside each
Rows = namedtuple("Rows", "start cells values")


@kernel
def row_cells(start, cells, r):
    """The part of ``cells`` that is row r."""
    return cells[start[r] : start[r + 1]]
