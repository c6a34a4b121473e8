"""Nearest location of a domain, and of a short list."""

import numpy as np

from .bits import first_in_span, last_in_span
from .jit import kernel
from .nearest import TIE, round_down


@kernel
def nearest_in_domain(policy, cells, words, x, y):
    """The location of a domain nearest to (x, y), lattice units, ties to the lower index.

    On a grid rows are searched outward, each by its nearest bits to the left and to the right; elsewhere all cells are looked at.
    """
    lattice, stretch, rows, cols = policy.lattice, policy.stretch, policy.rows, policy.cols
    best, best_d = np.int64(-1), np.inf
    if rows == 0:
        for cell in cells:
            dx, dy = lattice[cell, 0] - x, lattice[cell, 1] - y
            d = dx * dx + stretch * dy * dy
            if d < best_d * (1.0 - TIE) or (d <= best_d * (1.0 + TIE) and cell < best):
                best, best_d = np.int64(cell), min(d, best_d)
        return best
    middle = np.int64(min(max(round_down(y), 0.0), rows - 1.0))
    col = np.int64(min(max(round_down(x), 0.0), cols - 1.0))
    for step in range(rows):
        if middle - step < 0 and middle + step >= rows:
            break
        off = abs(y - middle)  # rows further out are at least this far: past the map's edge all of them lie on one side
        least = max(step - off, 0.0) if 0.0 <= y <= rows - 1.0 else step + off
        if stretch * least * least > best_d * (1.0 + TIE):
            break
        for side in range(2 if step > 0 else 1):
            row = middle - step if side == 0 else middle + step
            if row < 0 or row >= rows:
                continue
            left = last_in_span(words, row * cols, row * cols + col + 1)
            right = first_in_span(words, row * cols + col + 1, (row + 1) * cols)
            for cell in (left, right):
                if cell >= 0:
                    dx, dy = cell - row * cols - x, row - y
                    d = dx * dx + stretch * dy * dy
                    if d < best_d * (1.0 - TIE) or (d <= best_d * (1.0 + TIE) and cell < best):
                        best, best_d = np.int64(cell), min(d, best_d)
    return best


@kernel
def nearest_member(lattice, members, stretch, x, y):
    """Place in ``members``, ascending locations, of the one nearest to (x, y); ties to the lower index."""
    best, best_d = 0, np.inf
    for k in range(members.shape[0]):
        dx, dy = lattice[members[k], 0] - x, lattice[members[k], 1] - y
        d = dx * dx + stretch * dy * dy
        if d < best_d * (1.0 - TIE):
            best, best_d = k, d
    return best
