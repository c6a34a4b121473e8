"""outputs="map": P-LM and P-PIM to the letter, noise of the component, snapped to the map."""

import numpy as np
import pytest
from scipy import stats

import naive
import pglp_fast as pf
from cases import MECHANISMS, SAMPLERS, SMALL, log_ratio, set_weights

GRID = pf.Grid(5, 6, cell_km=(1.0, 0.6))
PLACES = pf.Points(np.random.default_rng(0).integers(0, 900, (18, 2)) * 0.005)
POLICIES = {
    "blocks": pf.blocks(GRID, 3),
    "clique, path, pair, alone": pf.complete(GRID, [0, 1, 7, 12]).with_edges(
        [(3, 4), (3, 10), (22, 29)]
    ),
    "points": pf.complete(PLACES, [0, 3, 5]).with_edges([(5, 7), (1, 2), (2, 4)]),
    "hexagon": SMALL["hexagon"],
}


@pytest.mark.parametrize("cls", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("name", POLICIES)
def test_probabilities_against_the_oracle(name, epsilon, cls):
    """Would catch noise calibrated to the wrong component, and a region cut off at the
    component's own cells."""
    G = POLICIES[name]
    m = cls(G, epsilon=epsilon, outputs="map")
    edges = {tuple(e) for e in G.edges().tolist()}
    places = G.locations
    wanted = naive.map_emission(places.lattice, places.scale, edges, epsilon, cls.name)
    outputs, P = m.matrix(0)
    assert outputs.tolist() == list(range(places.size))
    assert np.abs(P - wanted).max() < 1e-9
    assert np.abs(P.sum(axis=1) - 1).max() < 1e-12
    assert log_ratio(m, 0) <= epsilon * (1 + 1e-9)
    for s in range(0, places.size, 5):
        assert np.array_equal(m.pmf(s)[1], P[s])


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", ["clique, path, pair, alone", "points"])
@pytest.mark.parametrize("cls", MECHANISMS)
def test_what_is_drawn_is_what_is_computed(cls, name, sampler):
    """A chi-square test of 40,000 releases from one cell of each component."""
    G = POLICIES[name]
    m = cls(G, epsilon=0.8, outputs="map", sampler=sampler)
    for s in (0, 3, 2):
        drawn = np.bincount(m.release(np.full(40_000, s), rng=s + 1), minlength=G.locations.size)
        P = m.pmf(s)[1]
        assert drawn[P == 0].sum() == 0
        likely = P * 40_000 >= 5
        seen = np.append(drawn[likely], drawn[~likely].sum())
        wanted = np.append(P[likely], P[~likely].sum()) * 40_000
        seen, wanted = seen[wanted > 0], wanted[wanted > 0]
        if len(seen) > 1:
            assert stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-4


@pytest.mark.parametrize("name", ["blocks", "clique, path, pair, alone"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_it_is_certified_both_ways(name, sampler):
    G = POLICIES[name]
    for cls in (*MECHANISMS, pf.PlanarLaplace):
        found = pf.certify(cls(G, epsilon=1.3, outputs="map", sampler=sampler))
        assert found.ok, found
        assert found.worst <= 1.3
        assert found.edges == G.n_edges
        assert found.proof == ("table" if sampler == "table" else "premises")


def test_the_certificate_reads_the_tables():
    """A row that was changed breaks the promise with the neighbours of its own component."""
    m = pf.PPIM(POLICIES["clique, path, pair, alone"], epsilon=1.0, outputs="map")
    assert pf.certify(m).ok
    weights = np.zeros(GRID.size, np.uint64)
    weights[29] = 2**63
    set_weights(m, 22, weights)
    found = pf.certify(m)
    assert not found.ok
    assert set(found.edge) == {22, 29}


def test_the_component_is_no_longer_told():
    """E_r = 0 and E_poi = 0 rest on the component, as in the authors' own code."""
    G = POLICIES["blocks"]
    inside, outside = (pf.PPIM(G, epsilon=1.0, outputs=o) for o in ("component", "map"))
    region = G.components
    assert pf.utility(inside, region=region).e_r == 0
    assert pf.utility(outside, region=region).e_r > 0.1
    assert pf.utility(outside).e_eu > pf.utility(inside).e_eu
    assert pf.privacy(outside).error > pf.privacy(inside).error


def test_remapping_and_location_sets_go_on():
    m = pf.PPIM(POLICIES["blocks"], epsilon=1.0, outputs="map")
    remapped = pf.Remapped(m)
    assert pf.utility(remapped).e_eu < pf.utility(m).e_eu
    assert pf.certify(remapped).ok
    assert remapped.release([0, 5], rng=1).shape == (2,)


def test_a_million_cells_are_snapped_by_arithmetic():
    g = pf.Grid(1000, 1000)
    m = pf.PPIM(pf.blocks(g, 3), epsilon=1.0, outputs="map")
    cells = np.arange(g.size)
    released = m.release(cells, rng=5)
    away = g.distance(cells, released)
    inner = (g.lattice.min(axis=1) > 50) & (g.lattice.max(axis=1) < 950)
    hull = pf.sensitivity_hull(m.graph, 0)
    body = [(float(x), float(y)) for x, y in hull.vertices]
    assert away[inner].mean() == pytest.approx(naive.expected_noise(body), rel=0.03)  # but snapped
    assert pf.certify(m).ok


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda G: pf.KRR(G, epsilon=1.0, outputs="map"), "adds no noise"),
        (lambda G: pf.PPIM(G, epsilon=1.0, outputs="all"), "outputs must be one of"),
        (lambda G: pf.PPIM(G, epsilon=1.0, outputs="map", calibration="graph"), "already"),
        (
            lambda G: pf.PLM(G, epsilon=1.0, outputs="map", domain=pf.Domain(GRID, [1, 2])),
            "knows no domain",
        ),
    ],
)
def test_what_it_does_not_go_with_is_refused(call, words):
    with pytest.raises(pf.InvalidParameter, match=words):
        call(POLICIES["blocks"])
