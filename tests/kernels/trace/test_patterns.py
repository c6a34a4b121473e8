"""Domains remembered by their pattern: translates share one, nothing else does."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.trace import patterns as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy

GRID = pf.Grid(6, 6)


def described(graph, cells, anchored=False, choice=0):
    """(slot, key) of a domain's pattern."""
    head = np.full(max(graph.n_cliques, 1), -1, np.int32)
    key = np.zeros(kernels.MAX_CELLS, np.int64)
    cells = np.array(cells, np.int32)
    anchor = kernels.anchor_of(choice, anchored, cells)
    slot = kernels.describe(kernel_policy(graph), cells, head, anchor, key)
    assert (head == -1).all(), "the work space is left clean"
    return slot, key[: len(cells)].tolist()


def test_translates_look_alike():
    G = pf.blocks(GRID, 2)
    here, there = described(G, [0, 1, 9]), described(G, [14, 15, 23])
    assert here == there
    assert here[0] >= 0
    assert described(G, [0, 1, 10])[1] != here[1]
    assert described(G, [1, 2, 10])[1] != here[1]  # cut by the blocks in another way


def test_what_is_anchored_is_alike_nowhere_else():
    """The slot and what ``is_known`` compares tell translates apart."""
    G = pf.blocks(GRID, 2)
    (here, key), (there, same) = (described(G, c, anchored=True) for c in ([0, 1], [14, 15]))
    assert key == same
    memory, label = kernels.make_patterns(), np.zeros(2, np.int32)
    kernels.remember(
        memory, here, np.array(key), np.int64(0), np.empty(36, np.int32),
        np.empty((0, 2), np.int32), np.zeros(4, np.int64), label,
    )  # fmt: skip
    assert kernels.is_known(memory, here, np.array(key), 2, np.int64(0))
    assert not kernels.is_known(memory, here, np.array(key), 2, np.int64(14))
    assert here != there or not kernels.is_known(memory, there, np.array(key), 2, np.int64(14))


def test_each_choice_of_policy_and_epsilon_has_patterns_of_its_own():
    """Their tables differ; no choice and no place may be taken for another."""
    cells = [np.array([c], np.int32) for c in (0, 1, 2**31 - 2)]
    seen = {
        kernels.anchor_of(choice, anchored, c)
        for choice in (0, 1, 2**31 - 1)
        for anchored in (False, True)
        for c in cells
    }
    assert len(seen) == 3 * (1 + 3)
    G = pf.blocks(GRID, 2)
    assert described(G, [0, 1, 9], choice=1)[0] != described(G, [0, 1, 9])[0]


@pytest.mark.parametrize("edge", [(0, 35), (9, 35)])
def test_further_edges_are_not_kept(edge):
    """A pattern says nothing of edges outside cliques: such a domain is looked at each time."""
    G = pf.blocks(GRID, 2).with_edges([edge])
    assert described(G, [0, 1, 9])[0] == -1
    assert described(G, [3, 4])[0] >= 0


def test_a_cell_alone_in_the_policy_is_not_one_cut_off_from_its_mates():
    """Cell 15 of 4 x 4 in blocks of 3 has no mates: it may be told. Cell 0 has, and may not."""
    G = pf.blocks(pf.Grid(4, 4), 3)
    assert described(G, [0])[1] != described(G, [15])[1]
    assert described(G, [0])[1] == described(G, [3])[1]


def test_too_many_or_too_far_is_not_kept():
    large = pf.Grid(9, 9)
    G = pf.blocks(large, 3)
    assert described(G, range(kernels.MAX_CELLS))[0] >= 0
    assert described(G, range(kernels.MAX_CELLS + 1))[0] == -1
    assert described(G, [])[0] == -1
    for apart, kept in ((2**20 - 1, True), (2**20, False)):
        two = pf.Points([[0.0, 0.0], [0.0, 0.001 * apart]])
        assert (described(pf.complete(two), [0, 1])[0] >= 0) == kept


def test_far_offsets_do_not_run_into_each_other():
    """Columns, rows and cliques have bits of their own, for either sign."""
    rng = np.random.default_rng(0)
    offsets = np.concatenate([rng.integers(-(2**20) + 1, 2**20, (200, 2)), [[1, 0], [0, 1]]])
    seen = set()
    for dx, dy in offsets.tolist():
        sites = np.array([[0, 0], [dx, dy]]) + 2**20
        two = pf.Points(sites * 0.001)
        assert (two.lattice[1] - two.lattice[0]).tolist() == [dx, dy]
        for graph in (pf.complete(two), pf.PolicyGraph.from_edges(two, np.empty((0, 2), int))):
            seen.add(tuple(described(graph, [0, 1])[1]))
    assert len(seen) == 2 * len({tuple(o) for o in offsets.tolist()})


def test_what_is_remembered_is_known():
    memory, key = kernels.make_patterns(), np.array([11, 22, 33])
    counts, label = np.array([2, 1, 1, 0]), np.array([0, 1, 0], np.int32)
    position = np.empty(36, np.int32)
    position[[7, 8, 19]] = [0, 1, 2]
    added = np.array([[7, 19], [0, 0], [0, 0]], np.int32)
    anchor = np.int64(0)
    assert not kernels.is_known(memory, 5, key, 3, anchor)
    assert kernels.remember(memory, 5, key, anchor, position, added, counts, label)
    assert kernels.is_known(memory, 5, key, 3, anchor)
    assert memory.counts[5].tolist() == counts.tolist()
    assert memory.edges[5, 0].tolist() == [0, 2]
    assert memory.label[5, :3].tolist() == [0, 1, 0]
    assert memory.entries[5, :3].tolist() == [-1, -1, -1]
    assert not kernels.is_known(memory, 5, np.array([11, 22, 34]), 3, anchor)
    assert not kernels.is_known(memory, 5, key, 2, anchor)
    assert not kernels.is_known(memory, 4, key, 3, anchor)
    # a newcomer replaces what had the slot
    assert kernels.remember(memory, 5, key + 1, anchor, position, added, counts, label)
    assert not kernels.is_known(memory, 5, key, 3, anchor)


def test_too_many_repairs_are_not_remembered():
    memory, n = kernels.make_patterns(), kernels.MAX_CELLS
    key, label = np.arange(n), np.zeros(n, np.int32)
    position = np.arange(n).astype(np.int32)
    added = np.stack([position, position[::-1]], axis=1)
    for count, fits in ((kernels.MAX_ADDED, True), (kernels.MAX_ADDED + 1, False)):
        counts = np.array([count, count, count, 0])
        how = memory, count, key, np.int32(-1), position, added, counts, label
        assert kernels.remember(*how) == fits
        assert kernels.is_known(memory, count, key, n, np.int32(-1)) == fits


def test_tables_numbered_anew_are_forgotten():
    memory = kernels.make_patterns()
    kernels.refresh(memory, 3)
    memory.size[7] = 2
    kernels.refresh(memory, 3)
    assert memory.size[7] == 2
    kernels.refresh(memory, 4)
    assert not memory.size.any()
    assert memory.version[0] == 4


def _remember(memory, slot, key):
    none = np.empty((0, 2), np.int32)
    kernels.remember(
        memory, slot, key, np.int64(0), np.empty(0, np.int32), none, np.zeros(4, np.int64),
        np.zeros(len(key), np.int32),
    )  # fmt: skip


def test_a_set_holds_as_many_patterns_as_it_has_slots_and_then_replaces_them_in_turn():
    memory, first, ways = kernels.make_patterns(), 3 * kernels.WAYS, kernels.WAYS
    keys = [np.array([k, k + 1]) for k in range(2 * ways)]
    for key in keys[:ways]:
        slot, known = kernels.seek(memory, first, key, 2, np.int64(0))
        assert not known
        _remember(memory, slot, key)
    held = [kernels.seek(memory, first, key, 2, np.int64(0)) for key in keys[:ways]]
    assert sorted(slot for slot, _ in held) == list(range(first, first + ways))
    assert all(known for _, known in held)
    assert not kernels.seek(memory, first, keys[0], 2, np.int64(1))[1]  # of another choice
    for key in keys[ways:]:
        _remember(memory, kernels.seek(memory, first, key, 2, np.int64(0))[0], key)
    after = [kernels.seek(memory, first, key, 2, np.int64(0))[1] for key in keys]
    assert after == [False] * ways + [True] * ways
    assert np.count_nonzero(memory.size) == ways, "no other set is touched"


def test_domains_of_one_set_begin_at_the_same_slot():
    G = pf.blocks(GRID, 2)
    slots = {described(G, [a, b])[0] for a in range(6) for b in range(7, 36)}
    assert all(slot % kernels.WAYS == 0 and 0 <= slot < kernels.SLOTS for slot in slots)
    assert len(slots) > 20, "patterns are spread over the sets"
