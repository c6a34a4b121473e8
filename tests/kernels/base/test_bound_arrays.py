"""A tuple bound for kernels: the same arrays, read and written in place."""

import pickle
from collections import namedtuple

import numba
import numpy as np
import pytest

from pglp_fast._kernels.base.bound_arrays import bind
from pglp_fast._kernels.base.jit import kernel

Inner = namedtuple("Inner", "matrix flag")
Outer = namedtuple("Outer", "cells inner count share")


def make():
    inner = Inner(np.arange(6.0).reshape(2, 3), True)
    return Outer(np.array([3, 1], np.int32), inner, 7, 0.25)


@kernel
def total(bound):
    cells, inner, count, share = bound.value
    out = share + count
    for k in range(cells.shape[0]):
        out += cells[k]
    for i in range(inner.matrix.shape[0]):
        for j in range(inner.matrix.shape[1]):
            out += inner.matrix[i, j] * (i + 1)
    return -out if inner.flag else out


@kernel
def write(bound):
    cells, inner, _, _ = bound.value
    cells[0], inner.matrix[1, 2] = 9, -1.0


def test_kernels_read_what_was_bound():
    assert total(bind(make())) == -(0.25 + 7 + 4 + 3 + 2 * 12)


def test_kernels_write_to_the_arrays_themselves():
    value = make()
    write(bind(value))
    assert value.cells.tolist() == [9, 1]
    assert value.inner.matrix[1].tolist() == [3.0, 4.0, -1.0]


def test_a_copy_has_arrays_of_its_own():
    bound = bind(make())
    copy = pickle.loads(pickle.dumps(bound))
    write(copy)
    assert bound.value.cells.tolist() == [3, 1]
    assert copy.value.cells.tolist() == [9, 1]
    assert total(copy) != total(bound)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="plain Python reads any array")
def test_arrays_that_are_not_contiguous_are_refused():
    with pytest.raises(ValueError, match="must be contiguous"):
        bind(Inner(np.zeros((4, 4))[:, ::2], False))
