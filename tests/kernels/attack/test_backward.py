"""Smoothing against every path there is."""

import numpy as np
import pytest

from cases import HiddenWalk
from pglp_fast._kernels.attack import backward as kernels, forward_viterbi, records


@pytest.mark.parametrize("seed", range(4))
def test_back_through_all_rows(seed):
    """Pr(s_t | all z), and the entropy of what follows the first row."""
    walk = HiddenWalk(seed)
    space = walk.workspace()
    how = walk.moves, walk.moves, walk.seen, 0, space
    messages, _, _ = forward_viterbi.filter_person(
        *how, records.make_messages(walk.steps), np.empty(walk.steps)
    )
    kernels.smooth_person(*how, messages, walk.steps - 1)
    for t in range(walk.steps - 1, -1, -1):
        begin, end = messages.start[t], messages.start[t + 1]
        kernels.smoothed(messages.logs, messages.beta, begin, end, space.p)
        p = np.zeros(walk.size)
        p[messages.cells[begin:end]] = space.p[: end - begin]
        exact = [float(x) for x in walk.paths.smoothed(t)]
        assert p == pytest.approx(exact, rel=1e-11, abs=1e-300)
    first = np.array([float(x) for x in walk.paths.smoothed(0)])
    n = messages.start[1]
    entropy = (space.p[:n] * space.future[:n]).sum()
    entropy -= (first[first > 0] * np.log(first[first > 0])).sum()
    assert entropy / np.log(2) == pytest.approx(walk.paths.path_entropy(), rel=1e-10)
    assert not space.layers.here.value.any()
    assert not space.layers.words.any()


def test_a_dead_end():
    """Cell 1 leads nowhere that the release allows; cell 2 leads to what is e^-2000 of the rest."""
    indptr, indices = np.array([[0, 1, 2, 3]]), np.array([0, 1, 2], np.int32)
    moves = records.Moves(indptr, indices, np.ones(3), np.zeros(3))
    likelihood = np.array([0.0, 0.0, 0.0, 0.0, -2000.0])
    messages = records.Messages(
        np.array([0, 3, 5]), np.array([0, 1, 2, 0, 2], np.int32), np.zeros(5, np.int32),
        np.full(5, 0.2), np.zeros(5), likelihood, np.empty(5),
    )  # fmt: skip
    one = np.zeros(1, np.int64)
    seen = records.Observations(one, np.array([0, 2]), np.arange(2), *(one,) * 7)
    space = records.make_workspace(3, 1.0, 1.0, 3)
    kernels.smooth_person(moves, moves, seen, 0, space, messages, 1)
    assert messages.beta.tolist() == [0.0, -np.inf, -2000.0, 0.0, 0.0]
    assert space.future[:3].tolist() == [0.0, 0.0, 0.0]
