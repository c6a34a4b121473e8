"""Integers in order, as NumPy's stable sort has them."""

import numpy as np
import pytest

from pglp_fast._kernels.base import sorting as kernels

SIZES = [0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 100, 1000, 4097]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("top", [1, 5, 2**62])
def test_numbers_are_sorted_in_place(n, top):
    rng = np.random.default_rng(n)
    for values in (rng.integers(-top, top, n), np.arange(n), np.arange(n)[::-1].copy()):
        wanted = np.sort(values)
        kernels.sort_numbers(values)
        assert np.array_equal(values, wanted)
    for values in (rng.random(n), rng.integers(0, 2**31 - 1, n).astype(np.int32)):
        wanted = np.sort(values)
        kernels.sort_numbers(values)
        assert np.array_equal(values, wanted)


@pytest.mark.parametrize("n", SIZES)
def test_positions_of_one_label_stay_in_order(n):
    rng = np.random.default_rng(n)
    for top in (1, 4, 2**31 - 1):
        labels = rng.integers(-1, top, n).astype(np.int32)
        assert np.array_equal(kernels.order_of_labels(labels), np.argsort(labels, kind="stable"))


@pytest.mark.parametrize("n", SIZES)
def test_positions_of_equal_values_stay_in_order(n):
    rng = np.random.default_rng(n)
    for values in (rng.random(n), rng.integers(0, 4, n) / 4.0, -np.arange(float(n))):
        order, room = np.empty(n, np.int64), np.empty(n, np.int64)
        kernels.order_by(values, order, room)
        assert np.array_equal(order, np.argsort(values, kind="stable"))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_some_are_sorted_without_further_room(n, kind):
    rng = np.random.default_rng(n)
    for values in (rng.integers(0, 9, n), rng.integers(0, 2**31 - 1, n), np.arange(n)[::-1]):
        values = np.append(values, [-7, -8]).astype(kind)  # what lies behind stays as it is
        wanted = np.append(np.sort(values[:n]), [-7, -8])
        kernels.sort_in_place(values, n)
        assert values.tolist() == wanted.tolist()


def test_places_in_ascending_values():
    values = np.array([1, 3, 3, 8], np.int32)
    for value in range(10):
        assert kernels.lower_bound(values, value) == np.searchsorted(values, value)
    assert kernels.lower_bound(values[:0], 5) == 0
