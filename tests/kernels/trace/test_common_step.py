"""The fast loop: one common step by hand, and where it stops."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import chosen_of, moves_of, tables_of, trace_requests, trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.exposure.repaired_domain import discard, make_repaired_domain
from pglp_fast._kernels.trace import common_step as kernels, records, release
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import OWN
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.policy.kernel_arrays import kernel_policy

# 1 x 8 in blocks of 2: from 2 one moves to 2, 3 or 5, the last cut off from its mate and joined
# again
GRAPH = pf.blocks(pf.Grid(1, 8), 2)
POLICY = kernel_policy(GRAPH)
SETTINGS = trace_settings(tables=9, with_hull=False)
A = np.zeros((8, 8))
A[2, [2, 3, 5]] = 0.5, 0.25, 0.25
A[3, [2, 3, 5]] = 0.125, 0.125, 0.75
A[5, [2, 3, 5]] = 0.25, 0.25, 0.5
A[[0, 1, 4, 6, 7], [0, 1, 4, 6, 7]] = 1.0
P = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
CELLS = np.array([2, 3, 5], np.int32)
QUARTERS = (np.arange(4, dtype=np.uint64) << np.uint64(62))[:, None] + np.zeros((4, 4), np.uint64)


def table(matrix=P):
    """A table for the component of CELLS."""
    space = records.make_step_workspace(8, GRAPH.n_cliques)
    set_cells(space.domain.words, CELLS)
    repaired = make_repaired_domain(POLICY, 0, 0, space.domain, CELLS)
    assert repaired.added.tolist() == [[5, 3]]
    belief = Belief(OWN, CELLS, np.full(3, 1 / 3))
    how = repaired, belief, 2, False, QUARTERS[0], space
    key = release.release_from(POLICY, SETTINGS, tables_of([]), *how).key
    return tables_of([(key, matrix)])


class Fast:
    """A user with a belief at step 4 and a ledger, in a work space that knows a few patterns."""

    def __init__(self, steps, cells, *, tables=None, p=(1.0, 0.0, 0.0), known=True, M=A):
        self.tables, self.space = (
            table() if tables is None else tables, records.make_step_workspace(8, GRAPH.n_cliques)
        )  # fmt: skip
        space = self.space
        if known:
            set_cells(space.domain.words, CELLS)
            slot, _ = release.look_up(POLICY, SETTINGS, space, CELLS)
            repaired = make_repaired_domain(POLICY, 0, 0, space.domain, CELLS)
            release.learn(POLICY, SETTINGS, space, slot, repaired)
            discard(repaired)
            space.domain.words[:] = 0
            space.patterns.entries[slot, 0] = 0
        cells_of = CELLS[np.array(p) > 0]
        space.own_cells[: len(cells_of)] = cells_of
        space.own_values[: len(cells_of)] = np.array(p)[np.array(p) > 0]
        space.kept[:4], space.edges[:2] = [1, 2, 5, 7], [[3, 5], [5, 7]]
        self.sizes = np.array([len(cells_of), 4, 2])
        n = len(steps)
        self.out, self.moves = records.make_outputs(n), moves_of([M])
        space.used[0] = 1
        self.requests = trace_requests(
            make_key(1), np.array([0, n]), np.array([0]), np.zeros(n, np.int64),
            np.array(steps), np.array(cells, np.int32), False, False,
        )  # fmt: skip

    def run(self, words=QUARTERS):
        n = len(self.requests.steps)
        found = kernels.glide(
            chosen_of([GRAPH], SETTINGS), self.moves, self.space, self.tables, self.requests,
            words, (0, n, 0, 0), np.int64(4), self.sizes, self.space.kept[: self.sizes[1]],
            self.out,
        )  # fmt: skip
        assert not self.space.domain.words.any()
        assert (self.space.domain.head == -1).all()
        return found

    def belief(self):
        n = self.sizes[0]
        return self.space.own_cells[:n].tolist(), self.space.own_values[:n]


@pytest.mark.parametrize(("truth", "quarter", "z"), [(0, 1, 0), (0, 2, 1), (2, 0, 0), (2, 1, 2)])
def test_a_common_step(truth, quarter, z):
    """One draw, one update, one line of the ledger."""
    fast = Fast([5], [CELLS[truth]])
    words = QUARTERS[quarter:]
    assert fast.run(words) == (1, 5)
    assert fast.out.released.tolist() == [CELLS[z]]
    assert fast.out.table.tolist() == [0]
    assert fast.out.counts.tolist() == [[3, 1, 1, 1]]
    assert not (fast.out.surrogate[0] or fast.out.exposed[0])
    product = A[2, CELLS] * P[:, z]
    cells, values = fast.belief()
    assert cells == CELLS.tolist()
    assert values == pytest.approx(product / product.sum(), rel=1e-14)
    assert fast.space.kept[: fast.sizes[1]].tolist() == [2, 5]
    assert fast.space.edges[: fast.sizes[2]].tolist() == [[3, 5]]


def test_steps_one_after_the_other():
    fast = Fast([5, 6, 7], [2, 3, 5])
    assert fast.run() == (3, 7)
    p, z = np.array([1.0, 0.0, 0.0]), [0, 1, 2]
    assert fast.out.released.tolist() == CELLS[z].tolist()
    for k in z:
        p = (p @ A[np.ix_(CELLS, CELLS)]) * P[:, k]
        p /= p.sum()
    assert fast.belief()[1] == pytest.approx(p, rel=1e-13)


def test_what_cannot_have_been_released_is_left_out():
    Q = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    fast = Fast([5], [5], tables=table(Q))
    fast.run(QUARTERS[1:])
    assert fast.out.released.tolist() == [5]
    assert fast.belief()[0] == [3, 5]


def hardly(p):
    """A table whose last location says the first with this probability."""
    return table(np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [p, 0.0, 1.0]]))


@pytest.mark.parametrize(
    ("why", "options", "steps", "cells", "done"),
    [
        ("a gap", {}, [5, 7], [2, 2], 1),
        ("a truth that is not possible", {}, [5, 6], [2, 7], 1),
        ("a new pattern", {"known": False}, [5], [2], 0),
        ("an underflow of a move", {"p": (1.0, 1e-281, 0.0)}, [5], [2], None),
        ("an underflow of an update", {"tables": hardly(1e-300)}, [5], [2], 0),
        ("an update that may underflow later", {"tables": hardly(1e-230)}, [5], [2], 0),
    ],
)
def test_it_stops_before_what_is_not_common(why, options, steps, cells, done):
    """Nothing of that event is written; belief and ledger are those of the event before."""
    if done is None:  # one of the sums must be tiny: nobody else moves there
        M = A.copy()
        M[2] = np.eye(8)[2]
        options, done = {"p": (1.0, 1e-281, 0.0), "M": M}, 0
    fast = Fast(steps, cells, **options)
    before = fast.belief()[0], fast.belief()[1].copy(), fast.sizes.copy()
    assert fast.run() == (done, 4 + done)
    assert (fast.out.released[done:] == -1).all()
    assert (fast.out.table[done:] == -1).all()
    if done == 0:
        assert fast.belief()[0] == before[0]
        assert fast.belief()[1].tolist() == before[1].tolist()
        assert fast.sizes.tolist() == before[2].tolist()


def test_it_stops_where_a_table_is_missing():
    fast = Fast([5], [2])
    fast.space.patterns.entries[:] = -1
    assert fast.run() == (0, 4)


def test_it_stops_at_a_large_domain():
    n = 80
    grid = pf.Grid(1, n)
    graph = pf.blocks(grid, 2)
    space = records.make_step_workspace(n, graph.n_cliques)
    space.own_cells[0], space.own_values[0] = 0, 1.0
    requests = trace_requests(
        make_key(1), np.array([0, 1]), np.array([0]), np.zeros(1, np.int64), np.array([1]),
        np.zeros(1, np.int32), False, False,
    )  # fmt: skip
    found = kernels.glide(
        chosen_of([graph], SETTINGS), moves_of([np.full((n, n), 1 / n)]), space, table(),
        requests, QUARTERS, (0, 1, 0, 0), np.int64(0), np.array([1, 0, 0]), space.kept[:0],
        records.make_outputs(1),
    )  # fmt: skip
    assert found == (0, 0)
    assert not space.domain.words.any()


def test_a_first_repair_keeps_what_was_kept_so_far():
    """Under a policy that was not used before, the repair adds (5, 3): an edge of all policies so
    far, if both its ends were in every domain."""
    for kept, edges in (([2, 3, 5, 7], [[5, 3]]), ([1, 2, 5, 7], [])):
        fast = Fast([5], [2])
        fast.space.used[0], fast.sizes[2], fast.space.kept[:4] = 2, 0, kept
        assert fast.run() == (1, 5)
        assert fast.space.edges[: fast.sizes[2]].tolist() == edges
        assert fast.space.used[0] == 3


def test_edges_of_the_policy_stay():
    """An edge that another policy's repair added once is kept where this policy has it."""
    fast = Fast([5], [2])
    fast.space.edges[:2] = [[3, 2], [0, 1]]
    fast.run()
    assert fast.space.edges[: fast.sizes[2]].tolist() == [[3, 2]]
