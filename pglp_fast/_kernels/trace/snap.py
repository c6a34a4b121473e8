"""Nearest location of a domain, and of a short list, to a location s plus noise.

Distances are those of (difference to s, an integer) minus noise: adding noise to large coordinates
would round away what decides ties."""

import numpy as np

from pglp_fast._kernels.base.bits import first_in_span, last_in_span
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.geometry.kdtree import closer, round_down


@kernel
def _distance(policy, cell, s, dx, dy):
    """Squared distance from f(s) + (dx, dy) to a cell, in the metric col^2 + stretch row^2."""
    col, row = difference(policy.lattice, s, cell)
    x, y = np.float64(col) - dx, np.float64(row) - dy
    return x * x + policy.stretch * (y * y)


@kernel
def nearest_member(policy, members, s, dx, dy, tie):
    """The one of ``members``, in any order, nearest to f(s) + (dx, dy); ties to the lower index."""
    best = np.int64(-1)
    bx, by = np.int64(0), np.int64(0)
    for cell in members:
        ax, ay = difference(policy.lattice, s, cell)
        side = 1
        if best >= 0:
            side = closer(ax, ay, bx, by, policy.stretch, dx, dy, tie)
        if side > 0 or (side == 0 and cell < best):
            best, bx, by = np.int64(cell), ax, ay
    return best


@kernel
def nearest_in_domain(policy, cells, words, s, dx, dy, tie):
    """The location of a domain nearest to f(s) + (dx, dy), lattice units, ties to the lower index.

    On a grid rows are searched outward, each by its nearest bits to the left and to the right;
    elsewhere all cells are looked at."""
    rows, cols = policy.rows, policy.cols
    if rows == 0:
        return nearest_member(policy, cells, s, dx, dy, tie)
    x, y = policy.lattice[s, 0] + dx, policy.lattice[s, 1] + dy
    middle = np.int64(min(max(round_down(y), 0.0), rows - 1.0))
    col = np.int64(min(max(round_down(x), 0.0), cols - 1.0))
    best, best_d = np.int64(-1), np.inf
    for step in range(rows):
        if middle - step < 0 and middle + step >= rows:
            break
        # rows further out are at least this far: past the map's edge all of them lie on one side
        off = abs(y - middle)
        least = max(step - off, 0.0) if 0.0 <= y <= rows - 1.0 else step + off
        if policy.stretch * least * least > best_d * (1.0 + 1e-9):
            break
        for side in range(2 if step > 0 else 1):
            row = middle - step if side == 0 else middle + step
            if row < 0 or row >= rows:
                continue
            left = last_in_span(words, row * cols, row * cols + col + 1)
            right = first_in_span(words, row * cols + col + 1, (row + 1) * cols)
            for cell in (left, right):
                if cell < 0:
                    continue
                side = 1
                if best >= 0:
                    ax, ay = difference(policy.lattice, s, cell)
                    bx, by = difference(policy.lattice, s, best)
                    side = closer(ax, ay, bx, by, policy.stretch, dx, dy, tie)
                if side > 0 or (side == 0 and cell < best):
                    best, best_d = np.int64(cell), _distance(policy, cell, s, dx, dy)
    return best
