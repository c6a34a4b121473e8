"""Work space, outputs and ends: the sizes that kernels rely on."""

from itertools import combinations

import numpy as np
import pytest

from pglp_fast._kernels.trace import patterns, records


def test_work_space():
    space = records.make_step_workspace(130, 0)
    assert space.domain.words.tolist() == [0, 0, 0]
    assert space.domain.head.tolist() == [-1]
    assert space.large.words.tolist() == 2 * [[0, 0, 0]]  # of a prior, and of a belief
    assert space.large.head.tolist() == 2 * [[-1]]
    assert not np.shares_memory(space.domain.words, space.large.words)
    wide = "cells values sums flagged own_cells own_values kept edges likelihood chances"
    assert {len(getattr(space, name)) for name in wide.split()} == {130}
    small = patterns.MAX_CELLS
    assert [len(space.key), len(space.new_cells), len(space.new_values)] == [small] * 3
    assert len(space.positions) == small + 1  # ``glide`` writes one beyond the last member
    assert not space.flagged.any()
    assert not space.told.any()
    assert len(space.told) == records.TOLD
    assert not space.patterns.size.any()


def test_work_space_of_several_policies():
    space = records.make_step_workspace(130, 4, 70)
    assert space.large.words.shape == (140, 3)
    assert space.large.head.shape == (140, 4)
    assert space.large.position.shape == (140, 130)
    assert space.large.rows.shape == (140, 4, 130)
    assert space.large.cells.shape == (140, 130)
    assert len(space.edges) == 70 * 130
    assert len(space.used) == records.words_for(70) == 2
    assert records.make_ends(3, 70).used.shape == (3, 2)


@pytest.mark.parametrize("made", [records.make_outputs(3), records.make_ends(3)])
def test_results_do_not_share_memory(made):
    assert {len(part) for part in made} == {3}
    assert not any(np.shares_memory(a, b) for a, b in combinations(made, 2))


def test_nothing_is_released_yet():
    out = records.make_outputs(3)
    assert out.released.tolist() == out.table.tolist() == [-1, -1, -1]
    assert out.counts.tolist() == [[0] * 4] * 3
    assert not (out.surrogate.any() or out.exposed.any() or out.row_length.any())
