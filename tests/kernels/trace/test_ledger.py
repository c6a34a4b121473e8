"""What composition keeps, against intersections of sets."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import chosen_of, trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.exposure.repaired_domain import make_repaired_domain
from pglp_fast._kernels.trace import ledger as kernels
from pglp_fast._kernels.trace.records import (
    NOT_STARTED,
    OWN,
    LedgerRows,
    make_step_workspace,
)
from pglp_fast.policy.kernel_arrays import kernel_policy

PRIORS = Rows(np.array([0, 4]), np.array([1, 3, 5, 200], np.int32), np.zeros(4))
CELLS = np.array([1, 2, 5], np.int32)
N = 500
USED = [5, 1]  # bitmasks of policies
EMPTY = np.empty((0, 2), np.int32)


def rows_of(*users):
    """Rows of (kind, cells, edges) of each user."""
    edges = [np.array(e, np.int32).reshape(-1, 2) for _, _, e in users]
    return LedgerRows(
        np.array([kind for kind, _, _ in users]),
        np.cumsum([0, *(len(c) for _, c, _ in users)]),
        np.concatenate([np.array(c, np.int32) for _, c, _ in users]),
        np.cumsum([0, *map(len, edges)]),
        np.concatenate(edges),
        np.array([[used] for used in USED[: len(users)]], np.uint64),
    )


def opened(kind, cells=(), edges=()):
    """(account, work space) of the second of two users."""
    space = make_step_workspace(N, 1, 3)
    ledger = rows_of((OWN, [0, 7], [(0, 7)]), (kind, cells, edges))
    return kernels.open_account(ledger, 1, space), space


def chosen(graphs, number=0):
    return chosen_of(graphs, trace_settings(), number)


def test_an_account_is_a_copy():
    account, space = opened(OWN, [3, 4], [(3, 9), (4, 1)])
    assert account.kind == OWN
    assert (account.cells.tolist(), account.edges.tolist()) == ([3, 4], [[3, 9], [4, 1]])
    assert np.shares_memory(account.cells, space.kept)
    assert np.shares_memory(account.edges, space.edges)
    assert space.used.tolist() == [1]


def test_intersections_of_sets_in_place():
    """By a merge, and by a search where one of them is long; ``kept`` may be ``before``."""
    rng = np.random.default_rng(0)
    for size in (0, 1, 5, 60, 3000):
        before = np.unique(rng.integers(0, 4000, size)).astype(np.int32)
        cells = np.unique(rng.integers(0, 4000, 40)).astype(np.int32)
        expected = sorted(set(before.tolist()) & set(cells.tolist()))
        apart = np.empty(4000, np.int32)
        assert apart[: kernels.intersect(cells, before, apart)].tolist() == expected
        assert before[: kernels.intersect(cells, before, before)].tolist() == expected


@pytest.mark.parametrize(
    ("kind", "cells", "prior", "new_kind", "kept"),
    [
        (NOT_STARTED, [], 0, 0, []),  # the prior's number says it all
        (NOT_STARTED, [], -1, OWN, [1, 2, 5]),
        (0, [], -1, OWN, [1, 5]),
        (OWN, [2, 3, 5, 9], -1, OWN, [2, 5]),
        (OWN, [2, 3, 5, 9], 0, OWN, [2, 5]),
        (OWN, range(3, 400), -1, OWN, [5]),  # long enough to be searched
        (OWN, [], -1, OWN, []),
    ],
)
def test_cells(kind, cells, prior, new_kind, kept):
    account, space = opened(kind, cells, [(1, 2)])
    account = kernels.keep_cells(account, CELLS, prior, PRIORS, space)
    assert (account.kind, account.cells.tolist()) == (new_kind, kept)
    assert account.edges.tolist() == [[1, 2]]


def test_edges():
    """On 1 x 5 with blocks of 2, cells 1 and 3 lose their mates and are joined."""
    graph = pf.blocks(pf.Grid(1, 5), 2)
    place, cells = make_step_workspace(5, graph.n_cliques).domain, np.array([1, 3], np.int32)
    set_cells(place.words, cells)
    added = make_repaired_domain(kernel_policy(graph), 0, 0, place, cells).added
    assert added.tolist() == [[1, 3]]
    for fresh, edges, kept in (
        (True, [], [[1, 3]]),
        (False, [(0, 2), (1, 3)], [[1, 3]]),
        (False, [(3, 1)], [[3, 1]]),
        (False, [(1, 4)], []),
        (False, [], []),
    ):
        account, space = opened(NOT_STARTED if fresh else OWN, [], edges)
        account = kernels.keep_edges(account, chosen([graph]), added, cells, PRIORS, space)
        assert account.edges.tolist() == kept


def test_edges_of_many_repairs():
    """Locations are joined in ascending order, each once: sets say the same."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        firsts = np.flatnonzero(rng.random(30) < 0.5)
        added = np.stack([firsts, rng.integers(30, 33, len(firsts))], axis=1).astype(np.int32)
        edges = [(i, j) if rng.random() < 0.5 else (j, i) for i in range(30) for j in (30, 32)]
        account, space = opened(OWN, [], edges)
        no_policy = chosen([pf.PolicyGraph.from_edges(pf.Grid(1, 40), EMPTY)])
        found = kernels.keep_edges(account, no_policy, added, CELLS, PRIORS, space).edges
        joined = {frozenset(e) for e in added.tolist()}
        assert found.tolist() == [list(e) for e in edges if frozenset(e) in joined]


LINE = pf.Grid(1, 8)
PAIRS = pf.PolicyGraph.from_edges(LINE, [(0, 1), (2, 3), (4, 5)])
OTHERS = pf.PolicyGraph.from_edges(LINE, [(2, 3), (1, 2), (6, 7)])


@pytest.mark.parametrize(
    ("before", "cells", "number", "added", "kept"),
    [
        # an edge that was repaired once stays while the policy has it and both ends are possible
        ([(1, 2)], [1, 2, 3], 1, [], [[1, 2]]),
        ([(1, 2)], [1, 3], 1, [], []),
        ([(1, 2)], [1, 2, 3], 0, [], []),
        # the first repair under another policy may add what all policies so far had
        ([], [4, 5], 1, [(4, 5)], [[4, 5]]),
        ([], [0, 1], 1, [(0, 1)], []),  # not both ends were in every domain
        ([], [4, 6], 1, [(4, 6)], []),  # the first policy has no such edge
        ([], [4, 5], 0, [(4, 5)], []),  # cannot be: a policy's repairs never add what it has
    ],
)
def test_edges_of_several_policies(before, cells, number, added, kept):
    """The second user has released under the first policy, from domains with 1 .. 5 in common."""
    account, space = opened(OWN, range(1, 6), before)
    added = np.array(added, np.int32).reshape(-1, 2)
    cells = np.array(cells, np.int32)
    how = chosen([PAIRS, OTHERS], number)
    account = kernels.keep_edges(account, how, added, cells, PRIORS, space)
    assert account.edges.tolist() == kept
