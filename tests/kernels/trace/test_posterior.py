"""The adversary's update and the likelihoods that are kept, against products."""

import numpy as np
import pytest

from cases import tables_of
from pglp_fast._kernels.base.growing import Pool, contents
from pglp_fast._kernels.trace import posterior as kernels
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import LOGS, OWN, make_step_workspace
from pglp_fast._kernels.trace.release import Release

PRIOR = np.array([0.1, 0.2, 0.3, 0.4])
CELLS = np.array([2, 4, 7, 9], np.int32)
MEMBERS = np.array([0, 2, 3], np.int32)
# column 1 rules the second member out
P = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.25, 0.5, 0.25]])


def release_of(column, entry=0):
    return Release(np.int64(4), MEMBERS, np.int64(entry), np.int64(column), np.empty(0, np.int64))


def belief_of(kind, prior=PRIOR):
    return Belief(kind, CELLS, prior.copy() if kind == OWN else np.log(prior))


def plain(belief):
    return np.exp(belief.values) if belief.kind == LOGS else belief.values


@pytest.mark.parametrize("kind", [OWN, LOGS])
@pytest.mark.parametrize("column", [0, 1, 2, -1])
def test_products_over_the_members(kind, column):
    """By a column of a table, or by likelihoods in the work space (column -1)."""
    space = make_step_workspace(12, 1)
    with np.errstate(divide="ignore"):
        space.likelihood[:3], space.chances[:3] = np.log(P[:, 1]), P[:, 1]
    chance = P[:, column] if column >= 0 else P[:, 1]
    tables = tables_of([([1], P)])
    found = kernels.posterior(release_of(column), belief_of(kind), tables, space)
    product = PRIOR[MEMBERS] * chance
    assert found.cells.tolist() == CELLS[MEMBERS[product > 0]].tolist()
    assert plain(found) == pytest.approx(product[product > 0] / product.sum(), rel=1e-12)
    assert np.shares_memory(found.cells, space.own_cells)


def test_the_column_of_the_entry_that_was_drawn_from():
    space, other = make_step_workspace(12, 1), np.full((2, 2), 0.5)
    tables = tables_of([([1], other), ([2], P)])
    found = kernels.posterior(release_of(2, entry=1), belief_of(OWN), tables, space)
    product = PRIOR[MEMBERS] * P[:, 2]  # 0.25, 0, 0.25
    assert plain(found) == pytest.approx(product[product > 0] / product.sum())


@pytest.mark.parametrize("tiny", [1e-290, 1e-230, 5e-324])
def test_nothing_possible_is_lost_to_underflow(tiny):
    """Products below what float64 keeps go on as logarithms, in the same room."""
    prior = np.array([0.0, tiny, 0.5, 0.5])
    prior[0] = tiny
    space, Q = make_step_workspace(12, 1), np.array([[1e-100, 1.0], [1.0, 1.0]])
    two = Release(
        np.int64(2), np.array([0, 2], np.int32), np.int64(0), np.int64(0), np.empty(0, np.int64)
    )
    found = kernels.posterior(two, belief_of(OWN, prior), tables_of([([1], Q)]), space)
    assert (found.kind, found.cells.tolist()) == (LOGS, [2, 7])
    assert found.values == pytest.approx([np.log(tiny) - 100 * np.log(10) - np.log(0.5), 0.0])


def test_nobody_can_have_released_it():
    space = make_step_workspace(12, 1)
    space.likelihood[:3], space.chances[:3] = -np.inf, 0.0
    assert len(kernels.posterior(release_of(-1), belief_of(LOGS), tables_of([]), space).cells) == 0


@pytest.mark.parametrize("column", [1, -1])
def test_likelihoods_are_kept_behind_others(column):
    space = make_step_workspace(12, 1)
    with np.errstate(divide="ignore"):
        space.likelihood[:3], space.chances[:3] = np.log(P[:, 1]), P[:, 1]
    cells, logs = Pool(np.array([5], np.int32), 1), Pool(np.array([-9.0]), 1)
    how = release_of(column), belief_of(OWN), tables_of([([1], P)]), space
    cells, logs = kernels.keep_likelihoods(*how, cells, logs)
    assert contents(cells).tolist() == [5, 2, 9]
    assert contents(logs) == pytest.approx([-9.0, np.log(0.25), np.log(0.5)])
    found, _, at = kernels.likelihoods_of(how[0], *how[2:])
    assert found[at + 1] == -np.inf
