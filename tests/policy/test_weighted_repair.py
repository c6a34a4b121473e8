"""Domains and repair of policies with weights, against a literal implementation in fractions."""

from fractions import Fraction

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import random_weights, weighted_policy, weights_of

GRID = pf.Grid(4, 5, cell_km=(1.0, 0.6))
PLACES = pf.Points(np.random.default_rng(1).integers(0, 900, (14, 2)) * 0.004)
STRATEGIES = ("min-area", "min-error", "nearest", "arbitrary")


@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("places", [GRID, PLACES], ids=["grid", "points"])
def test_repair_is_the_literal_one(places, calibration):
    """Would catch an added edge of a weight other than 1, a hull without weights, and a test of who
    lies in f(s) + K on another scale than K's."""
    joined = {"min-area": set(), "nearest": set()}
    added = isolated = reached = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        weights = random_weights(places, seed, 14)
        if seed % 3 == 0:  # a clique, whose edges have weight 1
            four = naive.complete(rng.permutation(places.size)[:4])
            weights |= dict.fromkeys(four, Fraction(1))
        G = weighted_policy(places, weights)
        if seed % 3 == 0:
            G = pf.complete(places, sorted({c for e in four for c in e})) & G | G
        assert weights_of(G) == weights
        domain = np.sort(rng.permutation(places.size)[: rng.integers(1, 10)])
        C, lattice = pf.Domain(places, domain), places.lattice.tolist()
        alone = naive.disconnected(places.size, set(weights), domain.tolist())
        assert pf.disconnected(G, C).tolist() == alone
        kept = {e: w for e, w in weights.items() if set(e) <= set(domain.tolist())}
        wanted = [
            s
            for s in alone
            if naive.weighted_isolated(lattice, kept, domain.tolist(), s, calibration)
        ]
        assert pf.isolated(G, C, calibration=calibration).tolist() == wanted
        isolated, reached = isolated + len(wanted), reached + len(alone) - len(wanted)
        for strategy in STRATEGIES:
            r = pf.repair(G, C, strategy=strategy, calibration=calibration)
            ref = naive.weighted_repair(
                lattice, places.scale, weights, domain.tolist(), strategy, calibration
            )
            assert [tuple(e) for e in r.added.tolist()] == ref[0], (seed, strategy)
            assert weights_of(r.graph) == ref[1]
            assert r.exposed.tolist() == ref[2]
            added += len(ref[0])
            if strategy in joined:
                joined[strategy] |= {(seed, *e) for e in ref[0]}
    assert added > 20
    assert isolated > 5
    assert (reached > 0) == (calibration == "graph")
    assert joined["min-area"] != joined["nearest"]


def test_many_domains_at_once():
    weights = random_weights(GRID, 3, 20)
    G, rng = weighted_policy(GRID, weights), np.random.default_rng(0)
    domains = [pf.Domain(GRID, rng.permutation(20)[:7]) for _ in range(9)]
    many = pf.repair_many(G, np.stack([C.words for C in domains]), calibration="graph")
    for d, C in enumerate(domains):
        rows = slice(many.added_starts[d], many.added_starts[d + 1])
        assert many.added[rows].tolist() == pf.repair(G, C, calibration="graph").added.tolist()


def test_a_heavy_edge_reaches_less():
    """0 and 1 are joined, 4 stands alone, one step from 3. With weight 2 the hull of the edge
    reaches half a step, with weight 1/2 two steps: then 4 is hidden by 3."""
    line = pf.Grid(1, 5)
    C = pf.Domain(line, [0, 1, 3, 4])
    for w, wanted in ((2, [3, 4]), (1, []), (Fraction(1, 2), [])):
        G = pf.PolicyGraph.from_edges(line, [(0, 1), (2, 3), (2, 4)], weights=[w, 1, 1])
        assert pf.isolated(G, C, calibration="graph").tolist() == wanted
        assert pf.isolated(G, C).tolist() == [3, 4]
