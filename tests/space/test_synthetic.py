"""The made-up city: the same for the same seed, and people who walk like people."""

import numpy as np

from pglp_fast.synthetic import synthetic_city


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
