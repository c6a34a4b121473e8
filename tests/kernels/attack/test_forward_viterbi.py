"""Filtering and the most likely path against every path there is."""

import numpy as np
import pytest

from cases import HiddenWalk
from pglp_fast._kernels.attack import forward_viterbi as kernels, records


@pytest.mark.parametrize("seed", range(4))
def test_all_steps_of_a_user(seed):
    walk = HiddenWalk(seed)
    space = walk.workspace()
    lift = np.empty(walk.steps)
    messages, evidence, failed = kernels.filter_person(
        walk.moves, walk.moves, walk.seen, 0, space, records.make_messages(walk.steps), lift
    )
    assert failed == -1
    assert evidence == pytest.approx(walk.paths.log_evidence(), rel=1e-12)
    for t in range(walk.steps):
        span = slice(messages.start[t], messages.start[t + 1])
        p = np.zeros(walk.size)
        p[messages.cells[span]] = messages.p[span]
        assert messages.p[span] == pytest.approx(np.exp(messages.logs[span]), rel=1e-12)
        assert p == pytest.approx([float(x) for x in walk.paths.filtered(t)], rel=1e-12, abs=1e-300)
        if t != 1:
            assert lift[t] == pytest.approx(walk.paths.lift(t), rel=1e-9, abs=1e-12)
    path, t = [], walk.steps - 1
    at = int(space.score[: messages.start[t + 1] - messages.start[t]].argmax())
    while t >= 0:
        path.append(int(messages.cells[messages.start[t] + at]))
        at, t = messages.back[messages.start[t] + at], t - 1
    assert tuple(path[::-1]) == walk.paths.viterbi()
    assert not space.layers.words.any()


def test_an_impossible_release_is_named():
    walk = HiddenWalk(0)
    logs = walk.seen.logs.copy()
    logs[walk.seen.start[2] : walk.seen.start[3]] = -np.inf
    space = walk.workspace()
    room = records.make_messages(walk.steps), np.empty(walk.steps)
    _, evidence, failed = kernels.filter_person(
        walk.moves, walk.moves, walk.seen._replace(logs=logs), 0, space, *room
    )
    assert (evidence, failed) == (-np.inf, 2)
