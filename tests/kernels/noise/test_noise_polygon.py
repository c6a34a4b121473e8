"""Noise polygons of a sensitivity hull: they hold it, and no more than they must."""

import numpy as np
import pytest

import naive
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import noise_polygon as kernels

DX, DY = 0.5, 2.0
HULLS = {
    "plane": [(-3, -1), (-1, -2), (3, 1), (1, 2)],
    "segment": [(-2, -1), (2, 1)],
    "point": [(0, 0)],
}


def array(hull):
    return np.array(hull, np.int64)


@pytest.mark.parametrize("hull", [HULLS["plane"], HULLS["segment"]], ids=["plane", "segment"])
def test_the_diamond_holds_the_hull(hull):
    """|x| dx + |y| dy <= S: its corners are S away along each axis."""
    S = max(abs(x) * DX + abs(y) * DY for x, y in hull)
    K = kernels.diamond(array(hull), DX, DY)
    expected = [(-S / DX, 0), (0, -S / DY), (S / DX, 0), (0, S / DY)]
    assert pytest.approx(np.array(expected), rel=1e-14) == K
    assert naive.gauge([tuple(v) for v in K.tolist()], array(hull).astype(float)).max() <= 1.0


@pytest.mark.parametrize("hull", [HULLS["plane"], HULLS["segment"]], ids=["plane", "segment"])
def test_the_disc_holds_the_hull(hull):
    R = max(np.hypot(x * DX, y * DY) for x, y in hull)
    K = kernels.disc(array(hull), DX, DY)
    radii = np.hypot(K[:, 0] * DX, K[:, 1] * DY)
    assert radii == pytest.approx(np.full(kernels.SIDES, R / np.cos(np.pi / kernels.SIDES)))
    middles = (K + np.roll(K, -1, axis=0)) / 2 * (DX, DY)
    assert np.hypot(*middles.T) == pytest.approx(np.full(kernels.SIDES, R))
    assert (K[: kernels.SIDES // 2] == -K[kernels.SIDES // 2 :]).all()


def test_no_noise_for_a_point():
    for kind in (kernels.HULL, kernels.DIAMOND, kernels.DISC):
        assert kernels.noise_polygon(array([(0, 0)]), kind, DX, DY).tolist() == [[0, 0]]


def test_many_at_once():
    starts = np.cumsum([0, *map(len, HULLS.values())])
    hulls = Polygons(np.concatenate([array(h) for h in HULLS.values()]), starts)
    for kind in (kernels.HULL, kernels.DIAMOND, kernels.DISC):
        vertices, ends = kernels.noise_polygons(hulls, kind, DX, DY)
        for k, hull in enumerate(HULLS.values()):
            one = kernels.noise_polygon(array(hull), kind, DX, DY)
            assert vertices[ends[k] : ends[k + 1]].tolist() == one.tolist()
        assert ends[-1] == len(vertices)
