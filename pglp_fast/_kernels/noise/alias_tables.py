"""Alias tables of shapes: made of probabilities, and drawn from."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.chacha import CHUNK, LANES, TABLE, draw, draw_one
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.policy.shapes import protected_of

from .alias_rows import build_alias, pick
from .integer_weights import prove_weights

# What is to be released: the generator's key, who asks and when (one for each cell, or one for all:
# see ``chacha.draw``), and the true cells.
Requests = namedtuple("Requests", "key users times cells")
# What a single release reads: of the groups and of the tables, and which shapes' are not made yet
Rows = namedtuple("Rows", "address shape_of starts members missing bits offset cut alias")


@kernel
def first_outside(cells, n, address):
    """Position of the first cell that is not one of the n locations, or in no group; -1 if all are
    well."""
    for i in range(cells.shape[0]):
        if cells[i] < 0 or cells[i] >= n or address[cells[i], 0] < 0:
            return i
    return -1


@kernel
def mark_shapes(cells, groups, used):
    """used[shape] = True for the shapes that these cells belong to."""
    for cell in cells:
        used[groups.shape_of[groups.address[cell, 0]]] = True


@kernel
def _write_rows(W, shape, tables):
    """Alias rows of a shape's weights."""
    bits = tables.bits[shape]
    columns = 1 << bits
    for s in range(W.shape[0]):
        at = tables.offset[shape] + s * columns
        build_alias(W[s], bits, tables.cut[at : at + columns], tables.alias[at : at + columns])


@kernel
def fill_tables(which, start, stop, groups, hulls, reached, probabilities, at, bound, tables, out):
    """Proved weights and alias rows of shapes ``which[start:stop]``.

    ``probabilities`` holds Pr(z|s), that of ``which[w]`` row by row from ``at[w]`` on; ``reached``:
    prove the bound for all pairs that the sensitivity hull reaches, not for edges alone. out[shape]
    = (the distance of what is drawn from P, see ``prove_weights``, the largest distance of a row's
    sum from 1)."""
    for w in range(start, stop):
        shape = which[w]
        g = groups.representative[shape]
        k = groups.starts[g + 1] - groups.starts[g]
        P = probabilities[at[w] : at[w] + k * k].reshape(k, k)
        W = np.empty((k, k), np.uint64)
        out[shape, 0] = prove_weights(P, protected_of(groups, shape, hulls, reached), bound, W)
        _write_rows(W, shape, tables)
        out[shape, 1] = 0.0
        for s in range(k):
            total = 0.0
            for z in range(k):
                total += P[s, z]
            out[shape, 1] = max(out[shape, 1], abs(total - 1.0))


@kernel
def release_table(requests, start, stop, groups, tables, out):
    """Draw requests start..stop-1 from alias rows; those whose shape has none are left alone.

    What is looked up is unsigned: no index is asked whether it counts from the end."""
    cells, address = requests.cells, groups.address
    bits, offset = tables.bits, tables.offset
    shape_of, starts, members = groups.shape_of, groups.starts, groups.members
    counters, scratch = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words = np.empty((CHUNK, 1), np.uint64)
    group, place = np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.uint32)
    target = np.empty(CHUNK, np.int64)
    key, users, times = requests.key, requests.users, requests.times
    for begin in range(start, stop, CHUNK):
        n = min(CHUNK, stop - begin)
        draw(key, users, times, begin, begin + n, 0, TABLE, counters, scratch, words)
        for i in range(n):  # short loops keep many cache misses in flight at once
            cell = np.uint32(cells[begin + i])
            group[i], place[i] = np.uint32(address[cell, 0]), np.uint32(address[cell, 1])
        for i in range(n):
            shape = np.uint32(shape_of[group[i]])
            row = offset[shape] + (np.int64(place[i]) << bits[shape])
            target[i] = -1
            if offset[shape] >= 0:
                output = pick(words[i, 0], tables.cut, tables.alias, row, bits[shape])
                target[i] = starts[group[i]] + output
        for i in range(n):
            if target[i] >= 0:
                out[begin + i] = members[np.uint64(target[i])]


@kernel
def release_one(key, user, t, cell, rows):
    """``release_table`` for one request; -1 where the cell is in no group, or has no table."""
    group, place = rows.address[cell, 0], rows.address[cell, 1]
    if group < 0:
        return np.int64(-1)
    shape = rows.shape_of[group]
    if rows.offset[shape] < 0 or rows.missing[shape]:
        return np.int64(-1)
    bits = rows.bits[shape]
    row = rows.offset[shape] + (place << bits)
    output = pick(draw_one(key, user, t, TABLE), rows.cut, rows.alias, row, bits)
    return np.int64(rows.members[rows.starts[group] + output])
