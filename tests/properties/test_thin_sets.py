"""Thin triples and near-straight sets up to the limit of the lattice: what is computed, drawn and
certified.

A sample by default; all 100,000 sets with HYPOTHESIS_PROFILE=thorough, which prints the worst
figures (pytest -s).
"""

import os
from itertools import product

import numpy as np
import pytest

import pglp_fast as pf
from cases import LATTICE_LIMIT, large, near_straight_sets, path
from pglp_fast.mechanisms.certificate import MAX_ROUNDING

pytestmark = large

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
SETS = 6_250 if THOROUGH else 125  # of each kind, mechanism, policy and sampler
DRAWS = 4000
FEW = 200  # counts below which a normal approximation has too thin a tail
SIGMAS = 5.0


def thin_triples(rng, count):
    """Two far points and one between them, up to a few units off their line."""
    while count:
        far = np.rint(2.0 ** rng.uniform(1, 28.9, 2) * rng.choice([-1, 1], 2)).astype(np.int64)
        off = rng.integers(-2, 3, 2)
        middle = np.rint(far * rng.random()).astype(np.int64) + off
        sites = np.stack([np.zeros(2, np.int64), far, middle])
        if len(np.unique(sites, axis=0)) == 3 and np.ptp(sites, axis=0).max() <= LATTICE_LIMIT:
            count -= 1
            yield rng.permutation(sites)


CASES = list(
    product(
        [pf.PPIM, pf.PLM],
        ["complete", "path"],
        ["table", "geometric"],
        [thin_triples, near_straight_sets],
    )
)


def mechanism(kind, sites, policy, sampler, rng):
    resolution = (1e-6, 1e-3, 0.02)[rng.integers(3)]
    while np.ptp(sites, axis=0).max() * resolution > 10_000:  # km
        resolution /= 10
    P = pf.Points(sites * resolution, resolution_km=resolution)
    graph = pf.complete(P) if policy == "complete" else path(P, np.arange(len(sites)))
    epsilon = float(np.exp(rng.uniform(np.log(0.05), np.log(8.0))))
    return kind(graph, epsilon=epsilon, sampler=sampler)


def excess(m, seed):
    """The most standard errors by which a measured ratio is above e^epsilon, over all edges and
    outputs that were seen often enough for a normal approximation."""
    n = m.locations.size
    z = m.release(np.repeat(np.arange(n), DRAWS), rng=seed).reshape(n, DRAWS)
    counts = np.stack([np.bincount(row, minlength=n) for row in z]).astype(float)
    i, j = np.concatenate([m.graph.edges(), m.graph.edges()[:, ::-1]]).T
    a, b, factor = counts[i], counts[j], np.exp(m.epsilon)
    above = (a - factor * b) / np.sqrt(np.maximum(a + factor**2 * b, 1.0))
    return float(np.where(b >= FEW, above, 0.0).max(initial=0.0)), counts / DRAWS


def drawn_off(P, shares):
    """The most standard errors by which a share of draws is off its exact probability."""
    error = np.sqrt(np.maximum(P * (1 - P), 0.0) / DRAWS)
    often = (P * DRAWS >= FEW) & ((1 - P) * DRAWS >= FEW)
    return float(np.where(often, abs(shares - P) / np.where(often, error, 1.0), 0.0).max())


@pytest.mark.parametrize(("kind", "policy", "sampler", "sets"), CASES)
def test_thin_sets_are_computed_drawn_and_certified(kind, policy, sampler, sets):
    """None is refused; rows sum to 1; exact and measured ratios keep e^epsilon; draws follow the
    exact probabilities; a certificate holds, or says that float64 proves nothing there."""
    which = CASES.index((kind, policy, sampler, sets))
    rng = np.random.default_rng(which)
    off, ratio, above, apart, unproved, beyond = 0.0, 0.0, 0.0, 0.0, 0, 0
    for number, sites in enumerate(sets(rng, SETS)):
        m = mechanism(kind, sites, policy, sampler, rng)
        L = m.matrix(0, log=True)[1]
        P = np.exp(L)
        off = max(off, abs(P.sum(axis=1) - 1).max())
        i, j = m.graph.edges().T
        with np.errstate(invalid="ignore"):
            difference = np.where(L[i] == L[j], 0.0, abs(L[i] - L[j]))
        ratio = max(ratio, difference.max() / m.epsilon)
        measured, shares = excess(m, which * SETS + number)
        above, apart = max(above, measured), max(apart, drawn_off(P, shares))
        beyond += measured > SIGMAS
        c = pf.certify(m)
        unproved += not c.ok
        assert c.ok == (c.rounding <= MAX_ROUNDING), (sites, c)
        assert c.ok or sampler == "geometric", (sites, c)
        assert c.worst <= m.epsilon
    print(
        f"\n{kind.__name__} {policy} {sampler} {sets.__name__}: {SETS} sets, rows off {off:.1e}, "
        f"ln ratio / epsilon {ratio:.12f}, measured {above:.2f} sigma above, draws {apart:.2f} "
        f"sigma off, {unproved} not proved"
    )
    assert off < 1e-12
    assert ratio <= 1 + 1e-9
    assert beyond == 0, f"a ratio is {above:.2f} sigma above e^epsilon"
    assert apart < 6.0  # 6 sigma: some 30 shares of each of 100,000 sets are looked at
