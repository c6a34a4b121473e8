"""First releases from a shared prior: components are kept, and released from as they are."""

import numpy as np
import pytest

from pglp_fast._kernels.trace import first_release as kernels
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import LOGS, make_outputs, make_step_workspace
from pglp_fast._kernels.trace.table_cache import Tables

CELLS = np.array([1, 4, 5, 9], np.int32)
P = np.array([[0.75, 0.25], [0.5, 0.5]])  # of positions 1 and 3
COUNTS = np.array([2, 1, 0, 1])


def tables():
    none = np.empty(0, np.int64)
    sums = (np.cumsum(P, axis=1) * 2.0**63).astype(np.uint64).ravel()
    return Tables(
        1, none, none, none, np.array([0]), sums, P.T.ravel().copy(), np.log(P.T).ravel(),
        np.empty(0),
    )  # fmt: skip


def known():
    starts = make_step_workspace(10, 1, 2).starts
    kernels.begin(starts, 1, 7, COUNTS)
    kernels.learn_component(starts, 1, 7, CELLS, np.array([0, 2], np.int32), 3)
    kernels.learn_component(starts, 1, 7, CELLS, np.array([1, 3], np.int32), 0)
    return starts


def test_components_of_the_prior_that_is_kept():
    starts = known()
    assert [kernels.component_at(starts, 1, 7, s) for s in (1, 4, 5, 9, 2)] == [0, 1, 0, 1, -1]
    assert kernels.component_at(starts, 1, 6, 4) == -1  # of another prior
    assert kernels.component_at(starts, 0, 7, 4) == -1  # under another policy
    kernels.begin(starts, 1, 8, COUNTS)
    assert kernels.component_at(starts, 1, 8, 4) == -1


def test_a_component_is_kept_once():
    """Else those who do not look it up would fill the room of all others."""
    starts = known()
    for _ in range(20):
        kernels.learn_component(starts, 1, 7, CELLS, np.array([1, 3], np.int32), 0)
    assert starts.number.tolist() == [0, 2]


def test_what_was_repaired_or_has_no_table_is_not_kept():
    starts = known()
    kernels.begin(starts, 1, 7, np.array([1, 1, 1, 0]))
    kernels.learn_component(starts, 1, 7, CELLS, np.array([1, 3], np.int32), 0)
    assert kernels.component_at(starts, 1, 7, 4) == -1
    kernels.begin(starts, 1, 7, COUNTS)
    kernels.learn_component(starts, 1, 7, CELLS, np.array([1, 3], np.int32), -1)
    assert kernels.component_at(starts, 1, 7, 4) == -1


@pytest.mark.parametrize(("s", "row"), [(4, 0), (9, 1)])
@pytest.mark.parametrize("z", [0, 1])
def test_a_release_and_the_belief_after_it(s, row, z):
    prior = Belief(LOGS, CELLS, np.log([0.1, 0.2, 0.3, 0.4]))
    word = np.uint64(0 if z == 0 else 2**64 - 1)
    own = np.empty(10, np.int32), np.empty(10)
    found = kernels.take_first(known(), 1, 1, tables(), prior, s, word, *own)
    assert (found.cell, found.entry) == ([4, 9][z], 0)
    assert found.belief.cells.tolist() == [4, 9]
    wanted = np.array([0.2, 0.4]) * P[:, z]
    assert found.belief.values == pytest.approx(wanted / wanted.sum(), rel=1e-14)


def test_what_is_told():
    out = make_outputs(2)
    kernels.tell_first(known(), 1, 4, 1, out)
    assert out.counts.tolist() == [[0, 0, 0, 0], [4, 2, 1, 0]]
    assert out.exposed.tolist() == [False, True]
