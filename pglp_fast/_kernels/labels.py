"""Numbering labels: the first one seen is 0, the next new one 1, ... A hash table over spans of bytes.

Labels lie end to end in an ``arena``; label k is arena[bounds[k]:bounds[k+1]]. Tables are never full beyond a half.
"""

import numpy as np

from .jit import kernel


@kernel
def hash_bytes(data, start, end):
    """FNV-1a, 64 bit, with a last shuffle so that the low bits can be used as they are."""
    h = np.uint64(14695981039346656037)
    for i in range(start, end):
        h = (h ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return h ^ (h >> np.uint64(29))


@kernel
def same_bytes(data, start, end, arena, first, last):
    if end - start != last - first:
        return False
    for i in range(end - start):
        if data[start + i] != arena[first + i]:
            return False
    return True


@kernel
def number_spans(data, spans, row, table, arena, bounds, count, codes):
    """Code of each span from ``row`` on, -1 for a span that starts below 0: (row, labels known).

    Stops before a row that needs more room in the table, the arena or ``bounds``: make it and call again.
    """
    mask = np.uint64(len(table) - 1)
    last = np.int32(-1)
    while row < len(spans):
        start, end = spans[row, 0], spans[row, 1]
        if start < 0:
            codes[row] = -1
            row += 1
            continue
        # rows of one user mostly come together
        if last < 0 or not same_bytes(data, start, end, arena, bounds[last], bounds[last + 1]):
            at = hash_bytes(data, start, end) & mask
            while table[at] >= 0 and not same_bytes(data, start, end, arena, bounds[table[at]], bounds[table[at] + 1]):
                at = (at + np.uint64(1)) & mask
            if table[at] < 0:
                used = bounds[count]
                if 2 * (count + 1) > len(table) or count + 2 > len(bounds) or used + end - start > len(arena):
                    break
                for i in range(end - start):
                    arena[used + i] = data[start + i]
                bounds[count + 1] = used + end - start
                table[at] = count
                count += 1
            last = table[at]
        codes[row] = last
        row += 1
    return row, count


@kernel
def rehash(arena, bounds, count, table):
    """Fill an empty table (-1 everywhere) with the labels known."""
    mask = np.uint64(len(table) - 1)
    for k in range(count):
        at = hash_bytes(arena, bounds[k], bounds[k + 1]) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = k
