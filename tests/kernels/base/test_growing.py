"""Growing arrays against slices."""

import numpy as np

from pglp_fast._kernels.base import growing


def test_rows_are_copied_in_the_width_that_both_have():
    source = np.arange(12).reshape(4, 3)
    target = np.full((5, 2), -1)
    growing.copy_rows(source, 2, target, 1)
    assert target.tolist() == [[-1, -1], [0, 1], [3, 4], [-1, -1], [-1, -1]]


def test_a_pool_grows_when_it_must():
    pool, used = np.empty((1, 2), np.int64), 0
    expected = []
    for n in (0, 1, 1, 3, 0, 7):
        rows = np.arange(100 * n, 100 * n + 2 * (n + 1)).reshape(-1, 2)
        before = pool
        pool, used = growing.append_rows(pool, used, rows, n)
        expected += rows[:n].tolist()
        assert pool[:used].tolist() == expected
        assert (pool is before) == (len(expected) <= len(before))


def test_a_pool_of_values():
    pool = growing.Pool(np.empty(2, np.int32), 0)
    expected = []
    for values in ([1], [2, 3], [], [4, 5, 6, 7]):
        pool = growing.append(pool, np.array(values, np.int32))
        expected += values
        assert growing.contents(pool).tolist() == expected
    assert growing.contents(pool).dtype == np.int32
    room = growing.with_room(pool.values, pool.used, 100)
    assert room[: pool.used].tolist() == expected
    assert len(room) >= pool.used + 100
