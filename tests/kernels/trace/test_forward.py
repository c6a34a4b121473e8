"""Moves, silence and domains of sparse beliefs against dense NumPy."""

import numpy as np
import pytest

import naive
from cases import moves_of
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.trace import forward as kernels
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import LOGS, OWN, make_step_workspace

N = 70


def walk(n=N, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random((n, n)) * (rng.random((n, n)) < 0.08) + np.eye(n) * 0.1
    return A / A.sum(axis=1, keepdims=True)


def belief_of(p):
    cells = np.flatnonzero(p).astype(np.int32)
    return Belief(OWN, cells, np.ascontiguousarray(p[cells]))


def dense(belief, n=N):
    out = np.zeros(n)
    out[belief.cells] = np.exp(belief.values) if belief.kind == LOGS else belief.values
    return out


@pytest.mark.parametrize("cells", [[5], [0, 63, 64], list(range(N))])
@pytest.mark.parametrize("kind", [OWN, LOGS])
def test_one_move(cells, kind):
    A, B, p = walk(), walk(seed=1), np.random.default_rng(1).random(len(cells))
    space, cells = make_step_workspace(N, 1), np.array(cells, np.int32)
    for period, M in enumerate((A, B)):  # the work space serves again
        before = Belief(kind, cells, np.log(p) if kind == LOGS else p)
        after = kernels.forward(moves_of([A, B]), period, before, space)
        expected = p @ M[cells]
        assert after.kind == OWN
        assert after.cells.tolist() == np.flatnonzero(expected).tolist()
        values = after.values / after.values.sum()  # known up to a factor
        assert values == pytest.approx(expected[after.cells] / expected.sum(), rel=1e-12)
        bits = sum(int(w) << (64 * k) for k, w in enumerate(space.domain.words))
        assert bits == sum(1 << int(c) for c in after.cells)
        space.domain.words[:] = 0


def test_nothing_possible_is_lost_to_underflow():
    """exp(-2000) is 0 in float64; its logarithm is not."""
    A = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    space, cells = make_step_workspace(3, 1), np.array([0, 1], np.int32)
    after = kernels.forward(moves_of([A]), 0, Belief(LOGS, cells, np.array([-2000.0, 0.0])), space)
    assert after.kind == LOGS
    assert after.cells.tolist() == [0, 1, 2]
    assert after.values == pytest.approx([-2000 + np.log(0.5), -2000 + np.log(0.5), 0.0])
    assert not space.flagged.any()


def test_plain_products_that_underflow_become_logarithms():
    A = np.array([[1e-200, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    space, p = make_step_workspace(3, 1), np.array([1e-150, 1.0])
    before = Belief(OWN, np.array([0, 1], np.int32), p)
    after = kernels.forward(moves_of([A]), 0, before, space)
    assert (after.kind, after.cells.tolist()) == (LOGS, [0, 1])
    assert after.values == pytest.approx([-350 * np.log(10), 0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("values", "kind"), [([3.0, 1.0], OWN), ([1.0, 1e-230], LOGS), ([1e-270, 1e-271], OWN)]
)
def test_settling(values, kind):
    """Probabilities that sum to one; as logarithms where a small one may yet underflow."""
    cells, p = np.array([4, 7], np.int32), np.array(values)
    for before in (Belief(OWN, cells, p.copy()), Belief(LOGS, cells, np.log(p))):
        after = kernels.settle(before)
        assert after.kind == kind
        found = after.values if kind == LOGS else np.log(after.values)
        assert found == pytest.approx(np.log(p) - np.log(p.sum()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("cycle", [(0,), (0, 1, 1)])
@pytest.mark.parametrize("gap", [0, 1, 2, 3, 7, 40, 300])
def test_silence_is_moves_one_by_one(cycle, gap):
    matrices, at = [walk(), walk(seed=1)], 11
    p = np.random.default_rng(5).random(N) * (np.arange(N) % 9 == 0)
    p /= p.sum()
    space = make_step_workspace(N, 1)
    after = kernels.through_silence(moves_of(matrices, cycle), belief_of(p), at, at + gap, space)
    support = p > 0
    for t in range(at, at + gap):
        M = matrices[cycle[t % len(cycle)]]
        p, support = p @ M, support @ (M > 0)
    assert after.cells.tolist() == np.flatnonzero(support).tolist()
    assert np.abs(dense(after) - p).max() < 1e-12
    assert not space.domain.words.any()


@pytest.mark.parametrize(("cycle", "round_in"), [((0,), 5), ((0, 1), 10), ((0, 1, 1, 0), 10)])
def test_who_goes_round_and_round_is_where_the_clock_says(cycle, round_in):
    """Between two looks everything may be as it was but for the place, or for the next move."""
    ring = np.roll(np.eye(5), 1, axis=1)
    space, moves = make_step_workspace(5, 1), moves_of([ring, np.eye(5)], cycle)
    for gap in (1, 2, 6, 33, 500, 10**12, 10**12 + 7):
        after = kernels.through_silence(moves, belief_of(np.eye(5)[2]), 0, gap, space)
        turns = sum(cycle[t % len(cycle)] == 0 for t in range(gap % (len(cycle) * round_in)))
        assert after.cells.tolist() == [(2 + turns) % 5]


def test_a_slow_drift_is_not_taken_for_rest():
    """One in 10^14 moves on at each step: hardly a change, but for as long as it lasts."""
    q = 1e-14
    A = np.array([[1 - q, q], [0.0, 1.0]])
    space, start = make_step_workspace(2, 1), np.array([1.0, 0.0])
    for gap in (200, 20_000):
        after = kernels.through_silence(moves_of([A]), belief_of(start), 0, gap, space)
        assert after.values[1] == pytest.approx(-np.expm1(gap * np.log1p(-q)), abs=1e-12)


def test_the_move_to_a_step_is_that_of_the_step_before():
    A, B = walk(), walk(seed=1)
    space, before = make_step_workspace(N, 1), belief_of(np.eye(N)[7])
    for step, M in ((1, A), (2, B), (3, A)):
        after = kernels.predict(moves_of([A, B], (0, 1)), before, step, space)
        assert dense(after) == pytest.approx(M[7], rel=1e-12)
        space.domain.words[:] = 0


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.25, 0.5, 0.99])
@pytest.mark.parametrize("kind", [OWN, LOGS])
def test_the_smallest_set_of_the_mass(delta, kind):
    p = np.array([0.1, 0.3, 0.0, 0.3, 0.05, 0.25])
    cells = np.flatnonzero(p).astype(np.int32)
    words = np.zeros(1, np.uint64)
    set_cells(words, cells)
    values = np.log(p[cells]) if kind == LOGS else 8 * p[cells]  # up to a factor
    kept = kernels.cut_domain(delta, words, Belief(kind, cells, values))
    assert set(kept.cells.tolist()) == naive.constrained_domain(p, delta)
    assert int(words[0]) == sum(1 << int(c) for c in kept.cells)
    assert dense(kept, 6)[kept.cells] == pytest.approx(p[kept.cells] * (1 if kind == LOGS else 8))


@pytest.mark.parametrize("gap", [60, 400, 900])
def test_what_is_nearly_impossible_after_silence_is_as_right_as_the_rest(gap):
    """A location that loses half of its probability at each move, long after the sum of all
    changes is below rounding: releases multiply, and make it likely again."""
    A = np.array([[0.5, 0.5], [0.0, 1.0]])
    space = make_step_workspace(2, 1)
    after = kernels.through_silence(moves_of([A]), belief_of(np.array([0.9, 0.1])), 0, gap, space)
    logs = after.values if after.kind == LOGS else np.log(after.values)
    assert logs[0] == pytest.approx(np.log(0.9) - gap * np.log(2), rel=1e-12)


def test_silence_of_a_billion_steps_ends():
    """What fades away for ever is followed to e^-700, and stays possible."""
    A = np.array([[0.5, 0.5], [0.0, 1.0]])
    space = make_step_workspace(2, 1)
    after = kernels.through_silence(moves_of([A]), belief_of(np.array([0.9, 0.1])), 0, 10**9, space)
    assert after.cells.tolist() == [0, 1]
    assert -1500 < after.values[0] < -700
