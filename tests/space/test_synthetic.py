"""The made-up city: the same for the same seed, and people who walk like people."""

import numpy as np
import pytest
import sparse

import pglp_fast as pf
from pglp_fast.space.synthetic import synthetic_city


def test_walks():
    city = synthetic_city(30, 40)
    walks = city.walks(200, 50, seed=3)
    assert walks.shape == (200, 50)
    assert walks.dtype == np.int32
    assert np.array_equal(walks, city.walks(200, 50, seed=3))
    assert not np.array_equal(walks, city.walks(200, 50, seed=4))
    row, col = np.divmod(walks, city.grid.cols)
    assert walks.min() >= 0
    assert walks.max() < city.grid.size
    assert max(np.abs(np.diff(row)).max(), np.abs(np.diff(col)).max()) == 1  # one cell at a time
    assert 0.05 < (np.diff(walks) == 0).mean() < 0.8  # people stay, and move
    assert (city.density[walks[:, 0]] > 0).all()  # nobody lives in the river
    assert city.walks(0, 5).shape == (0, 5)


def test_a_city_of_any_size():
    city = pf.synthetic.City.of_size(50, 37, cell_km=(0.2, 0.3), seed=4, district=10)
    again = pf.synthetic.City.of_size(50, 37, cell_km=(0.2, 0.3), seed=4, district=10)
    other = pf.synthetic.City.of_size(50, 37, cell_km=(0.2, 0.3), seed=5, district=10)
    for name in ("density", "categories", "districts"):
        assert np.array_equal(getattr(city, name), getattr(again, name))
        assert not np.array_equal(getattr(city, name), getattr(other, name))
    assert abs(city.density.sum() - 1) < 1e-12 and (city.density == 0).any()  # a river
    assert set(np.unique(city.categories)) == {-1, 0, 1, 2, 3, 4}
    assert len(np.unique(city.districts)) == 5 * 4
    # the nearest centre is in a square beside: a district is where it should be
    row, col = np.divmod(np.arange(city.grid.size), 37)
    assert (np.abs(city.districts // 4 - row // 10) <= 1).all()
    assert (np.abs(city.districts % 4 - col // 10) <= 1).all()
    assert pf.synthetic.City.of_size(1, 1).density.tolist() == [1.0]


def test_days():
    """People have homes, go to work and come back, one cell a step; who they are does not depend
    on how many are made at once."""
    city = pf.synthetic.City.of_size(40, 40, seed=1)
    days = city.days(300, 7 * 96, step="15min", seed=2)
    assert days.dtype == np.int32 and days.shape == (300, 672)
    row, col = np.divmod(days, 40)
    assert max(np.abs(np.diff(row)).max(), np.abs(np.diff(col)).max()) == 1
    night, noon = days[:, 3 * 4 :: 96], days[:, 12 * 4 :: 96]
    assert (night[:, 1:] == night[:, :-1]).mean() > 0.7  # the same bed
    working, weekend = noon[:, :5] == noon[:, :1], noon[:, 5:] == noon[:, :1]
    assert working.mean() > weekend.mean() + 0.2
    work = np.isin(city.categories, [3, 4])
    assert work[noon[:, 1]].mean() > 2 * work[night[:, 1]].mean()
    some = city.days(50, 40, step="15min", seed=2, first=100)
    assert np.array_equal(some, days[100:150, :40])
    assert np.array_equal(
        city.days(2, 5, seed=3, first=4095)[1:], city.days(1, 5, seed=3, first=4096)
    )
    assert city.days(0, 5).shape == (0, 5)
    with pytest.raises(pf.InvalidParameter, match="step must be at most 6 h"):
        city.days(3, 3, step="1d")


@pytest.mark.parametrize("periods", [1, 2, 4, 6, 24])
def test_transitions_by_the_time_of_day(periods):
    """Row-stochastic, all moves to the eight around, and days that repeat: the night's distribution
    comes back. Would catch an evening that does not undo the morning."""
    city = pf.synthetic.City.of_size(13, 17, seed=3, district=5)
    moves = city.transitions(periods=periods)
    assert isinstance(moves, sparse.GCXS) and moves.shape == (periods, 221, 221)
    model = pf.MobilityModel(city.grid, moves)
    dense = moves.todense()
    near = pf.neighbours8(city.grid)
    around = np.eye(221, dtype=bool)
    around[np.repeat(np.arange(221), np.diff(near.indptr)), near.indices] = True
    assert all(np.array_equal(m > 0, around) for m in dense)
    assert all(np.array_equal(model.matrix(k).toarray(), m) for k, m in enumerate(dense))
    p = model.stationary()
    after = p
    for m in dense:
        after = after @ m
    assert np.abs(after - p).sum() < 1e-12
    if periods > 3:  # people leave where they live
        assert max(np.abs(p @ m - p).sum() for m in dense[: periods // 2]) > 1e-3
