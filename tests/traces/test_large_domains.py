"""Beliefs that cover much of the map: beyond patterns and tables, by the dense path."""

import numpy as np
import pytest

import pglp_fast as pf

GRID = pf.Grid(9, 10)  # 90 cells: more than a pattern holds, and than a table is made for
MODEL = pf.MobilityModel.fit(GRID, np.zeros((1, 1), np.int64), unseen="neighbours8")
TRACES = np.array([[11, 12, 22, 23, 33, 43], [80, 79, 78, 68, 67, 77], [45, 45, 46, 47, 57, 58]])


def posteriors(P, prior, released):
    """p_t^+ by the definition: p^- times the column of what was released, divided by the sum."""
    p, out = prior, []
    for t, z in enumerate(released):
        p = P[:, z] * (p if t == 0 else p @ MODEL.matrix())
        p = p / p.sum()
        out.append(p)
    return out


@pytest.mark.parametrize("mechanism", ["ppim", "plm"])
def test_the_whole_map_is_possible(mechanism):
    """One repair serves all steps of all users, and one column of likelihoods many cells: their
    posteriors are those of the mechanism's own matrix, made cell by cell."""
    graph = pf.neighbours8(GRID)
    T = pf.TraceReleaser(graph, MODEL, epsilon=1.0, mechanism=mechanism, rng=3)
    prior = np.random.default_rng(0).dirichlet(np.ones(GRID.size))
    S, R = T.start(3, prior), T.run(TRACES, prior)
    P = T.step_mechanism(graph).matrix(0)[1]
    wanted = [posteriors(P, prior, row) for row in R.released]
    for t in range(TRACES.shape[1]):
        assert S.step(TRACES[:, t]).released.tolist() == R.released[:, t].tolist()
        for u in range(3):
            assert S.posterior(u) == pytest.approx(wanted[u][t], rel=1e-12, abs=1e-15)
    assert (R.domain_size == GRID.size).all()
    assert R.certificate.ok


def test_a_domain_that_changes_is_repaired_anew():
    """Users in turns, some with a hole in their prior: what one leaves behind is not taken for
    another's. Each alone gets what all get together."""
    graph = pf.blocks(GRID, 4) | pf.neighbours8(GRID).constrain(pf.Domain(GRID, range(45)))
    T = pf.TraceReleaser(graph, MODEL, epsilon=1.0, rng=5)
    priors = np.random.default_rng(1).dirichlet(np.ones(GRID.size), 3)
    priors[1, [3, 4, 14, 50]] = 0
    priors[2, 20:24] = 0
    priors /= priors.sum(axis=1, keepdims=True)
    R = T.run(TRACES, priors)
    for u in range(3):
        alone = T.run(TRACES[u : u + 1], priors[u : u + 1], users=[u])
        for name in ("released", "domain_size", "disconnected", "added", "surrogate"):
            assert np.array_equal(getattr(alone, name)[0], getattr(R, name)[u]), name
    assert R.domain_size[:, 0].tolist() == [90, 86, 86]  # two as large, of other cells
