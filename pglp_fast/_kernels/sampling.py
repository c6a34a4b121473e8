"""The two samplers. Both write the released cells of requests start..stop-1 and touch nothing else.

A location's address is (group, place in the group); a group has a shape, members from ``starts[group]`` on, and the shape tells
how it is sampled. Locations whose shape belongs to the other sampler are left alone.
"""

import numpy as np

from .chacha import CHUNK, GEOMETRIC, LANES, TABLE, draw
from .jit import kernel
from .nearest import DEPTH, nearest_site, round_down
from .weights import pick

_TO_UNIT = 2.0**-53


@kernel
def first_outside(cells, n, address):
    """Position of the first cell that is not one of the n locations, or in no group; -1 if all are well."""
    for i in range(cells.shape[0]):
        if cells[i] < 0 or cells[i] >= n or address[cells[i], 0] < 0:
            return i
    return -1


@kernel
def mark_shapes(cells, address, shape_of, used):
    for cell in cells:
        used[shape_of[address[cell, 0]]] = True


@kernel
def release_table(key, users, times, cells, start, stop, address, starts, members, shape_of, bits, offset, cut, alias, out):
    """Draw from the alias rows: row of place p of a shape at ``offset[shape] + p * 2**bits[shape]``; offset -1: not a table."""
    counters, scratch = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words = np.empty((CHUNK, 1), np.uint64)
    group, place, target = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    for begin in range(start, stop, CHUNK):
        n = min(CHUNK, stop - begin)
        draw(key, users, times, begin, begin + n, 0, TABLE, counters, scratch, words)
        for i in range(n):  # short loops keep many cache misses in flight at once
            group[i], place[i] = address[cells[begin + i], 0], address[cells[begin + i], 1]
        for i in range(n):
            shape = shape_of[group[i]]
            row = offset[shape] + (place[i] << bits[shape])
            if offset[shape] >= 0:
                target[i] = starts[group[i]] + pick(words[i, 0], cut, alias, row, bits[shape])
            else:
                target[i] = -1
        for i in range(n):
            if target[i] >= 0:
                out[begin + i] = members[target[i]]


@kernel
def _unit(word):
    """A number in (0, 1): the middle of one of 2**53 equal steps."""
    return min((np.float64(word >> np.uint64(11)) + 0.5) * _TO_UNIT, 1.0 - _TO_UNIT)


@kernel
def noise(words, body, cut, alias, cut_at, bits, epsilon):
    """K-norm noise in lattice units, spec section 4: a boundary point of K by cone measure times a Gamma(2, 1/eps) radius.

    Rank 1: a Laplace(1/eps) multiple of the segment's end. Rank 0: none. No rejection: four words always suffice.
    """
    h = body.shape[0]
    if h == 1:
        return 0.0, 0.0
    if h == 2:
        r = -np.log(_unit(words[2])) / epsilon
        end = np.int64(words[0] >> np.uint64(63))
        return r * body[end, 0], r * body[end, 1]
    i = pick(words[0], cut, alias, cut_at, bits)
    j = i + 1 if i + 1 < h else 0
    t = _unit(words[1])
    r = -np.log(_unit(words[2]) * _unit(words[3])) / epsilon
    return r * (body[i, 0] + t * (body[j, 0] - body[i, 0])), r * (body[i, 1] + t * (body[j, 1] - body[i, 1]))


@kernel
def _snap_box(x, y, columns, box, address, group):
    """The cell nearest to (x, y) among the cells of a grid's box, if it belongs to the group (then none is nearer), else -1."""
    col = np.int64(min(max(round_down(x), np.float64(box[0])), np.float64(box[1])))
    row = np.int64(min(max(round_down(y), np.float64(box[2])), np.float64(box[3])))
    cell = row * columns + col
    return cell if address[cell, 0] == group else -1


@kernel
def release_geometric(
    key, users, times, cells, start, stop, epsilon, columns, stretch, lattice, address, starts, members, shape_of,
    offset, bodies, body_starts, cut, alias, cut_starts, cut_bits, extents, sites, site_starts, order, boxes, box_starts, out,
):  # fmt: skip
    """Draw the continuous noise and snap it to the nearest location of the group.

    ``columns``: of the grid, or 0 for scattered points. ``sites`` are a shape's offsets from its first member, ``order`` and
    ``boxes`` their k-d tree; on a grid the clamped cell is tried first, and is the answer unless the shape has holes there.
    """
    counters, scratch = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words = np.empty((CHUNK, 4), np.uint64)
    box, stack = np.empty(4, np.int64), np.empty((DEPTH, 3), np.int64)
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        draw(key, users, times, begin, end, 2, GEOMETRIC, counters, scratch, words)
        for i in range(begin, end):
            cell = cells[i]
            group = address[cell, 0]
            shape = shape_of[group]
            if offset[shape] >= 0:
                continue
            body = bodies[body_starts[shape] : body_starts[shape + 1]]
            dx, dy = noise(words[i - begin], body, cut, alias, cut_starts[shape], cut_bits[shape], epsilon)
            if body.shape[0] == 1:
                out[i] = cell
                continue
            anchor = members[starts[group]]
            ax, ay = lattice[anchor, 0], lattice[anchor, 1]
            if columns > 0:
                box[0], box[1] = extents[shape, 0] + ax, extents[shape, 1] + ax
                box[2], box[3] = extents[shape, 2] + ay, extents[shape, 3] + ay
                found = _snap_box(lattice[cell, 0] + dx, lattice[cell, 1] + dy, columns, box, address, group)
                if found >= 0:
                    out[i] = found
                    continue
            a, b = site_starts[shape], site_starts[shape + 1]
            tree = boxes[box_starts[shape] : box_starts[shape + 1]]
            x, y = lattice[cell, 0] - ax + dx, lattice[cell, 1] - ay + dy
            out[i] = members[starts[group] + nearest_site(sites[a:b], order[a:b], tree, stretch, x, y, stack)]
