"""priors="move": the start is known, one move ago; and repair="none", which protects nobody."""

import numpy as np
import pytest
import scipy.sparse
import sparse

import pglp_fast as pf

GRID = pf.Grid(6, 7, cell_km=0.5)
POLICY = pf.blocks(GRID, 3)


def walks(users, steps, seed):
    rng = np.random.default_rng(seed)
    at = np.stack([rng.integers(0, 6, users), rng.integers(0, 7, users)])
    out = np.empty((users, steps), int)
    for t in range(steps):
        out[:, t] = at[0] * 7 + at[1]
        at = np.clip(at + rng.integers(-1, 2, at.shape), 0, np.array([[5], [6]]))
    return out


TRUE = walks(12, 9, 1)
MODEL = pf.MobilityModel.fit(GRID, walks(60, 40, 2))


def same(a, b):
    fields = ("released", "domain_size", "disconnected", "isolated", "added", "surrogate")
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in fields)


def rows_of(cells):
    chain = MODEL.chains[0]
    matrix = scipy.sparse.csr_array((chain.data, chain.indices, chain.indptr), shape=(42, 42))
    return matrix[cells]


def test_a_move_after_the_start_is_the_row_of_the_matrix():
    T = pf.TraceReleaser(POLICY, MODEL, epsilon=1.0, rng=3)
    named = T.run(TRUE, priors="move", evidence=True)
    given = T.run(TRUE, priors=rows_of(TRUE[:, 0]), evidence=True)
    assert same(named, given)
    assert (named.domain_size[:, 0] > 1).all()
    attacks = [pf.attack(R.evidence) for R in (named, given)]
    assert np.array_equal(attacks[0].online_error, attacks[1].online_error, equal_nan=True)


def test_step_by_step_and_after_a_restart(tmp_path):
    T = pf.TraceReleaser(POLICY, MODEL, epsilon=1.0, rng=3)
    whole = T.run(TRUE, priors="move").released
    S = T.start(users=len(TRUE), priors="move")
    with pytest.raises(pf.InvalidParameter, match="'move'"):
        S.domain(0)
    first = [S.step(TRUE[:, t]).released for t in range(4)]
    S.save(tmp_path / "stream")
    S = T.resume(tmp_path / "stream")
    rest = [S.step(TRUE[:, t]).released for t in range(4, TRUE.shape[1])]
    assert np.array_equal(np.stack(first + rest, axis=1), whole)


def test_periods_have_no_one_move():
    matrix = rows_of(np.arange(42)).toarray()
    by_day = pf.MobilityModel(GRID, sparse.COO(np.stack([matrix, matrix])))
    T = pf.TraceReleaser(POLICY, by_day, epsilon=1.0)
    with pytest.raises(pf.InvalidTransition, match="2 periods"):
        T.run(TRUE, priors="move")
    with pytest.raises(pf.InvalidParameter, match="'point', 'move'"):
        T.run(TRUE, priors="jump")


def test_an_observer_does_not_know_the_start():
    T = pf.TraceReleaser(POLICY, MODEL, epsilon=1.0, rng=3)
    released = T.run(TRUE, priors="move").released
    with pytest.raises(pf.PGLPError, match="priors='move' is where users truly were"):
        T.observe(released, priors="move")


def unsafe(**options):
    with pytest.warns(pf.UnsafeWarning, match="repair='none' repairs nothing"):
        return pf.TraceReleaser(POLICY, MODEL, epsilon=1.0, rng=4, repair="none", **options)


@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_without_repair_isolated_locations_are_exposed(calibration):
    T = unsafe(calibration=calibration)
    R = T.run(TRUE, priors="move")
    assert not R.added.any()
    assert np.array_equal(R.exposed, R.isolated > 0)
    assert R.certificate.exposed == R.exposed.sum()
    if calibration == "component":  # K of the whole graph reaches somebody here, always
        assert R.exposed.any()
        assert f"{R.exposed.sum()} releases of a location" in str(R.certificate)


def test_who_is_isolated_is_released_as_they_are():
    """Would catch a repair that is still made: with one, an isolated location has a partner."""
    T, S, alone = unsafe(), None, 0
    S = T.start(users=len(TRUE), priors="move")
    for t in range(TRUE.shape[1]):
        out = S.step(TRUE[:, t])
        for u in range(len(TRUE)):
            G, C = S.policy(u), S.domain(u)
            assert POLICY.constrain(C) == G
            left = pf.isolated(POLICY, C)
            assert len(left) == out.isolated[u]
            if TRUE[u, t] in left and not out.surrogate[u]:
                alone += 1
                assert out.released[u] == TRUE[u, t]
    assert alone > 0
