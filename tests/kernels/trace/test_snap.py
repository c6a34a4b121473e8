"""Nearest locations to f(s) plus noise, against exact distances in fractions."""

from fractions import Fraction

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.geometry.kdtree import ROUNDING
from pglp_fast._kernels.trace import snap
from pglp_fast.policy.kernel_arrays import kernel_policy

MAPS = {
    "grid": pf.Grid(5, 7, cell_km=(1.0, 0.5)),
    "points": pf.Points([[0, 0], [3, 1], [9, 2], [4, 4], [0, 6], [5, 5]], resolution_km=1.0),
}


@pytest.mark.parametrize("places", MAPS.values(), ids=MAPS.keys())
def test_nearest(places):
    """Halves give ties, which go to the lower index; some points lie far off the map."""
    policy, rng = kernel_policy(pf.complete(places)), np.random.default_rng(0)
    dx, dy = map(Fraction, places.scale)
    for _ in range(150):
        size = int(rng.integers(1, places.size + 1))
        cells = np.sort(rng.choice(places.size, size, replace=False)).astype(np.int32)
        words = pf.Domain(places, cells).words.copy()
        s, reach = int(rng.integers(places.size)), int(rng.choice([3, 40]))
        x, y = (Fraction(int(v), 2) for v in rng.integers(-reach, reach, 2))
        at = [Fraction(int(v)) + w for v, w in zip(places.lattice[s], (x, y))]
        away = [
            ((int(a) - at[0]) * dx) ** 2 + ((int(b) - at[1]) * dy) ** 2
            for a, b in places.lattice[cells]
        ]
        expected = cells[away.index(min(away))]
        noise = (s, float(x), float(y), ROUNDING)
        assert snap.nearest_member(policy, cells, *noise) == expected
        assert snap.nearest_in_domain(policy, cells, words, *noise) == expected
