"""Which points lie in a polygon with holes: by the even-odd rule, one row of points at a time.

Points are laid out in rows of one y, ascending, and by x within a row. A polygon holds its west and
south boundary, not its east and north: of two polygons with a common side, exactly one holds a
point on it."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.sorting import sort_numbers


@kernel
def _lower(values, low, high, x):
    """The first position in low..high whose value is not below x; ``values`` ascend."""
    while low < high:
        mid = (low + high) >> 1
        if values[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low


@kernel
def _crossing(ax, ay, bx, by, y):
    """Where a side meets a row. The ends are taken in one order: two polygons that share a side
    get the same number."""
    if by < ay or (by == ay and bx < ax):
        ax, ay, bx, by = bx, by, ax, ay
    return ax + (y - ay) / (by - ay) * (bx - ax)


@kernel
def _row_spans(sides, rows):
    """Rows first..last-1 that each side crosses: those with south end <= y < north end."""
    out = np.empty((sides.shape[0], 2), np.int64)
    for i in range(sides.shape[0]):
        south, north = min(sides[i, 1], sides[i, 3]), max(sides[i, 1], sides[i, 3])
        out[i, 0] = _lower(rows, 0, rows.shape[0], south)
        out[i, 1] = _lower(rows, out[i, 0], rows.shape[0], north)
    return out


@kernel
def points_inside(sides, rows, starts, xs):
    """Positions of the points inside the polygon with these sides (m, 4), both ends of each; those
    of all its rings. The points of row r, at y = rows[r], are xs[starts[r]:starts[r + 1]]."""
    spans = _row_spans(sides, rows)
    first, last = rows.shape[0], 0
    for i in range(sides.shape[0]):
        if spans[i, 0] < spans[i, 1]:
            first, last = min(first, spans[i, 0]), max(last, spans[i, 1])
    at = np.zeros(max(last - first, 0) + 1, np.int64)
    for i in range(sides.shape[0]):
        for r in range(spans[i, 0], spans[i, 1]):
            at[r - first + 1] += 1
    for r in range(at.shape[0] - 1):
        at[r + 1] += at[r]
    crossings, free = np.empty(at[-1]), at[:-1].copy()
    for i in range(sides.shape[0]):
        for r in range(spans[i, 0], spans[i, 1]):
            crossings[free[r - first]] = _crossing(
                sides[i, 0], sides[i, 1], sides[i, 2], sides[i, 3], rows[r]
            )
            free[r - first] += 1
    return _between(crossings, at, first, starts, xs)


@kernel
def _between(crossings, at, first, starts, xs):
    """Positions of the points between the first and the second crossing of their row, the third
    and the fourth, and so on."""
    spans, total = np.empty((crossings.shape[0] >> 1, 2), np.int64), 0
    for r in range(at.shape[0] - 1):
        row = crossings[at[r] : at[r + 1]]
        sort_numbers(row)
        low, high = starts[first + r], starts[first + r + 1]
        for k in range(0, row.shape[0], 2):  # rings are closed: a row meets them evenly often
            a = _lower(xs, low, high, row[k])
            b = _lower(xs, a, high, row[k + 1])
            spans[(at[r] + k) >> 1, 0], spans[(at[r] + k) >> 1, 1] = a, b
            total += b - a
    out = np.empty(total, np.int64)
    n = 0
    for s in range(spans.shape[0]):
        for p in range(spans[s, 0], spans[s, 1]):
            out[n] = p
            n += 1
    return out
