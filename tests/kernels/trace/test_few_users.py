"""A step of few users: the state as one array of words, before and after."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.trace import few_users as kernels
from pglp_fast.traces.packed_state import PackedState, packed

GRID = pf.Grid(1, 8)
GRAPH = pf.blocks(GRID, 2)
A = np.kron(np.eye(2), np.full((4, 4), 0.25))  # left and right half, each its own world
TRACES = np.array([[0, 1, 3, 2, 0], [5, 4, 7, 6, 6], [2, 2, 1, 0, 3]], np.int32)
NO_LIMIT = np.inf


class Users:
    """Users of a stream who released twice, and what the kernel takes."""

    def __init__(self):
        self.releaser = pf.TraceReleaser(GRAPH, pf.MobilityModel(GRID, A), epsilon=1.0, rng=7)
        self.stream = self.releaser.start(users=3)
        for step in range(2):
            self.stream.step(TRACES[:, step].copy())
        self.state, self.engine = self.stream._state, self.stream._engine
        self.words = packed(self.state.now)

    def step(self, words, t, cells, limit=NO_LIMIT):
        told = np.full((kernels.TOLD, 3), -9, np.int64)
        users, cache = self.state.users, self.engine.tables.bound
        cells = np.array(cells, np.int32)
        with self.engine.worlds.one() as world:
            after = kernels.step_few(
                world, cache, users.key, users.ids, self.state.cycle, words, cells, t, limit, told
            )
        return after, told


@pytest.fixture
def users():
    return Users()


def test_steps_are_those_of_whole_traces(users):
    whole = users.releaser.run(TRACES)
    words = users.words
    for t in (2, 3, 4):
        words, told = users.step(words, t, TRACES[:, t])
        assert told[0].tolist() == whole.released[:, t].tolist()
        for row, counts in enumerate((whole.domain_size, whole.disconnected, whole.isolated), 1):
            assert told[row].tolist() == counts[:, t].tolist()
        assert (told[-1] >= 0).all()
    state = PackedState(words, users.state.now)
    assert state.spending.releases.tolist() == [5, 5, 5]
    blocks = whole.released[:, -1] // 2  # a release gives the block of two away
    assert state.beliefs.cells.tolist() == [c for b in blocks for c in (2 * b, 2 * b + 1)]


def test_who_is_not_seen_stays_as_they_are(users):
    before = users.words.copy()
    after, told = users.step(users.words, 2, [3, -1, 1])
    assert users.words.tolist() == before.tolist()
    assert told[:, 1].tolist() == [-1, 0, 0, 0, 0, 0, -1]
    assert after[after[1] : after[2]].tolist() == before[before[1] : before[2]].tolist()
    assert after[after[0] + kernels.RELEASES] == before[before[0] + kernels.RELEASES] + 1


@pytest.mark.parametrize(
    ("why", "t", "cells", "limit"),
    [
        ("a gap", 3, [3, 7, 1], NO_LIMIT),
        ("over the budget", 2, [3, 7, 1], 2.5),
        ("the model calls it impossible", 2, [3, 7, 6], NO_LIMIT),
    ],
)
def test_nothing_has_happened_where_one_event_is_not_common(users, why, t, cells, limit):
    before = users.words.copy()
    after, _ = users.step(users.words, t, cells, limit)
    assert len(after) == 0
    assert users.words.tolist() == before.tolist()
    assert len(users.step(users.words, 2, TRACES[:, 2])[0]) > 0


def test_tables_of_another_version(users):
    with users.engine.worlds.one() as world:
        world.value.space.patterns.version[0] += 1
    assert len(users.step(users.words, 2, TRACES[:, 2])[0]) == 0
