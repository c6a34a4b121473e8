"""A policy in words and numbers."""

import numpy as np
import pytest

import naive
import pglp_fast as pf


def test_numbers_of_a_policy_against_the_oracle():
    g = pf.Grid(6, 7, cell_km=(0.5, 0.8))
    G = pf.contact_tracing(pf.blocks(g, 3), [0, 1, 2, 40]).with_edges([(3, 40), (40, 41)])
    found = G.describe(epsilons=[1.0, 4.0])
    edges = [tuple(e) for e in G.edges().tolist()]
    components = [
        c for c in {tuple(sorted(naive.component(g.size, edges, s))) for s in range(g.size)}
        if len(c) > 1
    ]  # fmt: skip
    sizes = sorted(map(len, components))
    total = 0.0
    for c in components:
        inside = [e for e in edges if e[0] in c]
        vertices = naive.sensitivity_hull(g.lattice.tolist(), inside)
        body = [(x * g.scale[0], y * g.scale[1]) for x, y in vertices]
        total += len(c) * naive.expected_noise(body)
    assert found.locations == 42
    assert found.protected == sum(sizes)
    assert found.disclosed == 42 - sum(sizes)
    assert found.edges == len(edges)
    assert found.components == len(sizes)
    assert found.sizes == (sizes[0], float(np.median(sizes)), sizes[-1])
    assert found.most_neighbours == G.degrees().max()
    assert found.expected_error_km[1.0] == pytest.approx(total / sum(sizes), rel=1e-9)
    assert found.expected_error_km[4.0] == pytest.approx(total / sum(sizes) / 4, rel=1e-9)


def test_the_words_say_what_is_disclosed():
    g = pf.Grid(4, 4)
    text = str(pf.complete(g, [0, 1, 2]).describe())
    assert "3 of 16 locations are protected (18.8 %), by 3 edges, up to 2 at one location" in text
    assert "13 locations have no edge: they are released as they are" in text
    assert "at epsilon 0.5" in text
    assert str(pf.PolicyGraph.from_edges(g, []).describe()).endswith("released as they are")


def test_what_is_no_epsilon_is_refused():
    with pytest.raises(pf.InvalidParameter, match="epsilon must be"):
        pf.blocks(pf.Grid(3, 3), 3).describe(epsilons=[0])
