"""Planar Laplace, Geo-Indistinguishability, LM and PIM: the special cases that people know by
name."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import large
from pglp_fast._kernels.noise.noise_polygon import SIDES


def polygon(radius_km):
    """The regular polygon around a disc, written out."""
    angle = (2 * np.arange(SIDES) + 1) * np.pi / SIDES
    return radius_km / np.cos(np.pi / SIDES) * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize("cell", [(1.0, 1.0), (0.5, 0.8)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_planar_laplace_is_a_disc(cell, epsilon):
    """Against the oracle's quadrature with the polygon written out: a wrong radius or squashed
    disc would show at once."""
    g = pf.Grid(3, 4, cell_km=cell)
    m = pf.PlanarLaplace(pf.blocks(g, 4), epsilon=epsilon)
    outputs, P = m.matrix(0)
    longest = np.hypot(3 * cell[0], 2 * cell[1])
    body = [tuple(v) for v in polygon(longest).tolist()]
    ref = naive.pmf_matrix(
        [tuple(p) for p in g.lattice.tolist()], g.scale, outputs.tolist(), body, epsilon
    )
    assert np.abs(P - np.array(ref)).max() < 1e-9
    assert pf.certify(m).ok


@large
def test_planar_laplace_against_textbook_noise():
    """Radius Gamma(2, R / eps), any angle, snapped to the nearest cell: 4 million draws, no cell
    off by more than the polygon's corners (0.12 %) allow and five standard deviations."""
    g = pf.Grid(7, 7, cell_km=0.5)
    epsilon, longest = 2.0, np.hypot(3.0, 3.0)
    m = pf.PlanarLaplace(pf.complete(g), epsilon=epsilon)
    rng = np.random.default_rng(5)
    n = 4_000_000
    r, a = rng.gamma(2.0, longest / epsilon, n), rng.uniform(0, 2 * np.pi, n)
    s = 24
    z = g.nearest(g.xy(s) + np.stack([r * np.cos(a), r * np.sin(a)], axis=1))
    seen = np.bincount(z, minlength=g.size)
    p = m.pmf(s)[1]
    assert (np.abs(seen - n * p) <= 0.0025 * n * p + 5 * np.sqrt(n * p)).all()


def test_geo_indistinguishability_for_every_pair():
    """ln Pr(z|s)/Pr(z|s') <= rate |s - s'| for all pairs and outputs, not only neighbours; and
    nearly attained."""
    g = pf.Grid(5, 6, cell_km=(0.3, 0.4))
    points = pf.Points(np.random.default_rng(0).normal(size=(25, 2)))
    for locations in (g, points):
        m = pf.geo_ind(locations, epsilon_per_km=1.7)
        outputs, logs = m.matrix(0, log=True)
        assert len(outputs) == locations.size
        k = len(outputs)
        d = locations.distance(np.repeat(outputs, k), np.tile(outputs, k)).reshape(k, k)
        ratio = np.abs(logs[:, None] - logs[None]).max(axis=2)
        assert (ratio <= 1.7 * d * (1 + 1e-9) + 1e-9).all()
        assert (ratio / np.where(d > 0, d, np.inf)).max() > 1.5
        assert pf.certify(m).ok


def test_geo_ind_is_proved_for_every_pair():
    """Integers proved for the longest edge alone once broke a short pair's bound by a factor of
    2: no tables here."""
    m = pf.geo_ind(pf.Grid(5, 5, cell_km=(0.1, 1.0)), epsilon_per_km=3.1623e-06)
    c = pf.certify(m)
    assert c.ok
    assert c.proof == "premises"


@large
def test_geo_ind_on_a_city():
    g = pf.Grid(300, 300, cell_km=0.1)
    m = pf.geo_ind(g, epsilon_per_km=2.0)
    n = 100_000
    s = np.full(n, 150 * 300 + 150)
    d = g.distance(s, m.release(s, rng=0))
    assert d.mean() == pytest.approx(2 / 2.0, rel=0.01)  # E|Y| of planar Laplace is 2 / rate


@pytest.mark.parametrize(("special", "general"), [(pf.PIM, pf.PPIM), (pf.LM, pf.PLM)])
def test_location_sets(special, general):
    g = pf.Grid(6, 6)
    C = pf.Domain(g, [1, 2, 8, 20, 33])
    m = special(C, epsilon=1.0)
    same = general(pf.complete(g, C.cells()), epsilon=1.0, domain=C)
    assert np.array_equal(m.matrix(8)[1], same.matrix(8)[1])
    assert m.graph.edges().tolist() == [[i, j] for i in C for j in C if i < j]
    assert pf.certify(m).ok
    with pytest.raises(pf.InvalidDomain, match="a location set is a Domain, got list"):
        special([1, 2], epsilon=1.0)
    with pytest.raises(pf.InvalidDomain, match="outside the domain"):
        m.release([0])


def test_odd_sizes():
    one = pf.geo_ind(pf.Grid(1, 1), epsilon_per_km=1.0)
    assert one.release([0, 0]).tolist() == [0, 0]
    line = pf.geo_ind(pf.Grid(1, 9, cell_km=0.5), epsilon_per_km=3.0)
    assert np.abs(line.matrix(0)[1].sum(axis=1) - 1).max() < 1e-12
    assert line.epsilon == pytest.approx(1.5)
    with pytest.raises(pf.InvalidParameter, match="epsilon_per_km must be a finite number above 0"):
        pf.geo_ind(pf.Grid(2, 2), epsilon_per_km=-1)
