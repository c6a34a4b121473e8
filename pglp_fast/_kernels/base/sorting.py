"""Sorting of integers. NumPy's sorts, translated by Numba, take a second each to compile."""

import numpy as np

from .jit import bare, kernel

_FEW = 16  # numbers that are sorted by insertion


@bare
def lower_bound(values, value):
    """Where a value is in ascending ones, or would be put."""
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@bare
def insert(values, first, last):
    """Sort values[first:last]."""
    for i in range(first + 1, last):
        value, at = values[i], i
        while at > first and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@bare
def _merge(source, first, middle, last, out):
    """Merge source[first:middle] and source[middle:last], both sorted, to the same places."""
    a, b = first, middle
    for k in range(first, last):
        if b >= last or (a < middle and source[a] <= source[b]):
            out[k] = source[a]
            a += 1
        else:
            out[k] = source[b]
            b += 1


@bare
def order_by(values, order, room):
    """order = the positions of the values, ascending, those of equal ones in their order; ``room``
    is as long. Runs by insertion, merged two by two."""
    n, width = values.shape[0], _FEW
    for i in range(n):
        at = i
        while at % _FEW > 0 and values[order[at - 1]] > values[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    while width < n:
        for first in range(0, n, 2 * width):
            a, middle, last = first, min(first + width, n), min(first + 2 * width, n)
            b = middle
            for k in range(first, last):
                left = b >= last or (a < middle and values[order[a]] <= values[order[b]])
                room[k] = order[a] if left else order[b]
                a, b = a + left, b + (not left)
        for k in range(n):
            order[k] = room[k]
        width *= 2


@bare
def _sift(values, root, n):
    """Let values[root] sink in the heap values[:n] until no child is larger."""
    value = values[root]
    child = 2 * root + 1
    while child < n:
        if child + 1 < n and values[child + 1] > values[child]:
            child += 1
        if values[child] <= value:
            break
        values[root] = values[child]
        root, child = child, 2 * child + 1
    values[root] = value


@bare
def sort_in_place(values, n):
    """Sort values[:n] without further room: heapsort (Williams, Communications of the ACM 7,
    1964)."""
    for root in range(n // 2 - 1, -1, -1):
        _sift(values, root, n)
    for last in range(n - 1, 0, -1):
        values[0], values[last] = values[last], values[0]
        _sift(values, 0, last)


@kernel
def sort_numbers(values):
    """Sort in place: runs by insertion, merged two by two."""
    n = values.shape[0]
    for first in range(0, n, _FEW):
        insert(values, first, min(first + _FEW, n))
    room, width = np.empty(n if n > _FEW else 0, values.dtype), _FEW
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            _merge(values, first, middle, last, room)
        for k in range(n):
            values[k] = room[k]
        width *= 2


@kernel
def order_of_labels(labels):
    """The positions by label, ascending, those of one label in their order; labels are int32."""
    n = labels.shape[0]
    keys = np.empty(n, np.int64)
    for k in range(n):
        keys[k] = np.int64(labels[k]) * n + k
    sort_numbers(keys)
    for k in range(n):
        keys[k] -= keys[k] // n * n
    return keys
