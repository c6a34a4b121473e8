"""Sorting of integers. NumPy's sorts, translated by Numba, take a second each to compile."""

import numpy as np

from .jit import kernel

_FEW = 16  # numbers that are sorted by insertion


@kernel
def _insert(values, first, last):
    """Sort values[first:last]."""
    for i in range(first + 1, last):
        value, at = values[i], i
        while at > first and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@kernel
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


@kernel
def sort_numbers(values):
    """Sort int64 numbers in place: runs by insertion, merged two by two."""
    n = values.shape[0]
    for first in range(0, n, _FEW):
        _insert(values, first, min(first + _FEW, n))
    room, width = np.empty(n if n > _FEW else 0, np.int64), _FEW
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
