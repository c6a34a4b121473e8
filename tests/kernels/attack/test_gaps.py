"""Many moves in a row against matrix powers, and gaps so long that they must be skipped."""

import numpy as np
import pytest

from cases import attack_moves, ring
from pglp_fast._kernels.attack import gaps, records

FOREVER = 10**13  # moves: nobody makes so many


def passed(A, cycle, kind, count, start, step=0):
    """(cells, values, others, origins, shift) after ``count`` moves from values by location."""
    n = len(A[0])
    layers = records.make_workspace(n, 1.0, 1.0, 0).layers
    cells = np.array(sorted(start), np.int32)
    logs = np.log([start[c] for c in sorted(start)])
    kind = gaps.place(cells, logs, kind, layers.here)
    layers, m, kind, shift, gain = gaps.pass_gap(
        *attack_moves(*A), np.asarray(cycle), step, 1, count, kind, len(cells), layers
    )
    at = layers.here.cells[:m]
    value = layers.here.value[at]
    assert not layers.words.any()
    assert not layers.there.value.any()
    if kind == gaps.LOGS:
        value = np.exp(value)
    return at.tolist(), value, layers.here.other[at] + gain, layers.here.origin[at], shift


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40, 163])
@pytest.mark.parametrize("cycle", [[0], [0, 1], [1, 0, 0]])
def test_sums_are_products_with_powers(count, cycle):
    rng = np.random.default_rng(0)
    A = [(rng.random((5, 5)) < 0.5) * rng.random((5, 5)) + 0.3 * ring(5, 0.0) for _ in range(2)]
    A = [a / a.sum(axis=1, keepdims=True) for a in A]
    p = np.zeros(5)
    p[[1, 3]] = 0.25, 0.75
    cells, values, _, _, shift = passed(A, cycle, gaps.SUM, count, {1: 0.25, 3: 0.75}, step=4)
    for t in range(4, 4 + count):
        p = p @ A[cycle[t % len(cycle)]]
    assert cells == np.flatnonzero(p).tolist()
    assert values * np.exp(shift) == pytest.approx(p[p > 0], rel=1e-12)


def test_a_gap_without_end_settles():
    """Would go on for years if it did not: to the stationary distribution, to the right phase of a
    periodic one, and to that of several matrices."""
    A = ring(5, 0.3)
    A[2] = [0.1, 0.2, 0.3, 0.4, 0.0]
    _, values, _, _, shift = passed([A], [0], gaps.SUM, FOREVER, {1: 1.0})
    kept = np.linalg.matrix_power(A, 4096)[0]
    assert values * np.exp(shift) == pytest.approx(kept, rel=1e-11)
    for more in range(7):
        cells, values, _, _, _ = passed([ring(7, 0.0)], [0], gaps.SUM, 7 * FOREVER + more, {1: 1.0})
        assert (cells, values.tolist()) == ([(1 + more) % 7], [1.0])
    two, later = [A, ring(5, 0.6)], np.eye(5)
    for t in range(4096):
        later = later @ two[t % 2]
    _, values, _, _, _ = passed(two, [0, 1], gaps.SUM, 2 * FOREVER, {0: 1.0})
    assert values == pytest.approx(later[0], rel=1e-11)


def test_the_best_path_of_a_gap_without_end():
    """Waiting in location 2 costs least: every best path goes there, waits and goes on."""
    A = np.diag([0.5, 0.5, 0.9, 0.5]) + np.diag([0.5, 0.5, 0.1], 1)
    A[3, 0] = 0.5
    cells, scores, _, origin, _ = passed([A], [0], gaps.BEST, FOREVER, {0: 0.2, 3: 0.8})
    assert cells == [0, 1, 2, 3]
    # through 2: to 3 costs ln 0.1, to 0 another ln 0.5, each instead of a wait of ln 0.9
    on = np.log([0.1 / 0.9, 0.5 / 0.9, 0.5 / 0.9])
    assert scores - scores[2] == pytest.approx([on[:2].sum(), on.sum(), 0.0, on[0]], rel=1e-9)
    assert origin.tolist() == [1, 1, 1, 1]  # 0.8 x 0.5^3 beats 0.2 x 0.5^2 x 0.9


def test_entropy_grows_with_the_gap():
    """Fair coins: one bit a move, however many; b stays as it is."""
    A = np.full((2, 2), 0.5)
    _, values, others, _, _ = passed([A], [0], gaps.BACK, 10**6, {0: 0.5, 1: 0.5})
    assert values == pytest.approx([0.5, 0.5])
    # F = E - ln b; it starts at 0 here
    assert others == pytest.approx(np.full(2, 10**6 * np.log(2)), rel=1e-12)


def test_what_underflows_goes_on_by_logarithms():
    """A place that is left with probability 1/2 at each move keeps 2^-2000; plain probabilities
    would lose it."""
    A = np.array([[0.5, 0.5], [0.0, 1.0]])
    n, layers = 2, records.make_workspace(2, 1.0, 1.0, 0).layers
    kind = gaps.place(np.array([0], np.int32), np.zeros(1), gaps.SUM, layers.here)
    layers, n, kind, shift, _ = gaps.pass_gap(
        *attack_moves(A), np.zeros(1, np.int64), 0, 1, 2000, kind, 1, layers
    )
    assert (n, kind, shift) == (2, gaps.LOGS, 0.0)
    assert layers.here.value == pytest.approx([2000 * np.log(0.5), 0.0], rel=1e-12, abs=1e-12)
    values = passed([A], [0], gaps.SUM, 3, {0: 1e-300, 1: 1e-300})[1]
    assert values == pytest.approx([1e-300 / 8, 1e-300 * 15 / 8], rel=1e-10)


def test_gathering_at_targets():
    """The last move of a gap, from the targets' side."""
    rng = np.random.default_rng(1)
    A = rng.dirichlet(np.ones(4), 4) * (rng.random((4, 4)) < 0.7)
    p = np.array([0.2, 0.0, 0.8, 0.0])
    (_, turned), layer = attack_moves(A), records.make_layer(4)
    words, cells = np.zeros(1, np.uint64), np.array([0, 2], np.int32)
    targets = np.array([0, 1, 2, 3], np.int32)
    for logs, kind in ((np.log(p[cells]), gaps.SUM), (np.log(p[cells]) - 5000, gaps.SUM)):
        out, best, back = np.empty(4), np.empty(4), np.empty(4, np.int32)
        kind = gaps.place(cells, logs, kind, layer)
        gaps.gather_sums(turned.indptr[0], turned, layer, 2, targets, kind, words, out)
        with np.errstate(divide="ignore"):
            exact, paths = np.log(p @ A), np.log(p[:, None] * A)
        assert out - (logs[0] - np.log(0.2)) == pytest.approx(exact, rel=1e-10)
        gaps.place(cells, logs, gaps.BEST, layer)
        gaps.gather_best(turned.indptr[0], turned, layer, 2, targets, words, best, back)
        assert best - (logs[0] - np.log(0.2)) == pytest.approx(paths.max(axis=0), rel=1e-10)
        found = np.where(np.isfinite(exact), paths.argmax(axis=0) // 2, -1)
        assert back.tolist() == found.tolist()
        assert not words.any()


@pytest.mark.parametrize("kind", [gaps.SUM, gaps.BEST, gaps.BACK])
@pytest.mark.parametrize("n", [5, 8])
def test_pulling_is_pushing(kind, n):
    """Both ways to move a layer, of some locations and of all: same locations, same numbers."""
    rng = np.random.default_rng(n)
    A = (rng.random((8, 8)) < 0.4) * rng.random((8, 8))
    A[:, 3] = 0.0  # nothing leads there
    moves, turned = attack_moves(A)
    cells = np.sort(rng.choice(8, n, replace=False)).astype(np.int32)
    words, found = np.zeros(1, np.uint64), []
    for pull in (False, True):
        here, there = records.make_layer(8), records.make_layer(8)
        gaps.place(cells, np.log(np.linspace(0.1, 0.9, n)), kind, here)
        here.other[cells] = np.linspace(1, 2, n)
        if pull:
            m, _ = gaps.pull_layer(turned, 0, here, n, there, words, kind)
        else:
            m, _ = gaps.move_layer(moves.indptr[0], *moves[1:], here, n, there, words, kind)
        at = there.cells[:m]
        found.append((at.tolist(), there.value[at], there.other[at], there.origin[at].tolist()))
        assert not np.delete(there.value, at).any()
        assert not words.any()
        assert pull <= (not here.value.any() or kind != gaps.BEST)
    assert found[0][0] == found[1][0] != list(range(8))
    assert found[1][1] == pytest.approx(found[0][1], rel=1e-12)
    if kind == gaps.BACK:
        assert found[1][2] == pytest.approx(found[0][2], rel=1e-12)
    if kind == gaps.BEST:
        assert found[0][3] == found[1][3]
