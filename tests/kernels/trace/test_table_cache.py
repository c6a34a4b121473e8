"""Tables found by their keys, drawn from and remapped, against loops."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import tables_of, trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.exposure.repaired_domain import (
    component_hull,
    component_of,
    make_repaired_domain,
    make_workspace,
)
from pglp_fast._kernels.trace import table_cache as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy

P = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]])
LOSS = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])


def three(keys):
    """The same table under each of these keys."""
    return tables_of([(key, P) for key in keys], [LOSS] * len(keys))


def test_keys_are_found():
    keys = [[1, 2, 3], [1, 2], [7], [1, 2, 4]]
    tables = three(keys)
    for entry, key in enumerate(keys):
        assert kernels.find(tables, np.array(key)) == entry
    for key in ([1], [2, 1], [1, 2, 3, 4], [8]):
        assert kernels.find(tables, np.array(key)) == -1


def test_entries_that_meet_in_the_hash_table_are_kept_apart():
    """As many as fit: most find their first slot taken."""
    keys, slots = np.arange(12, dtype=np.int64), np.full(16, -1, np.int64)
    starts = np.arange(13)
    kernels.enter(slots, starts, keys, 0, 5)
    kernels.enter(slots, starts, keys, 5, 12)  # the rest later
    assert sorted(slots[slots >= 0].tolist()) == list(range(12))
    tables = three([[1]])._replace(slots=slots, starts=starts, keys=keys)
    for entry in range(12):
        assert kernels.find(tables, keys[entry : entry + 1]) == entry
    assert kernels.find(tables, np.array([99])) == -1


def test_words_draw_positions():
    """The last word that gives a position, and the first that does not."""
    tables = three([[1]])
    for s in range(3):
        edges = np.cumsum(P[s])
        for z in range(3):
            last = int(edges[z] * 2**63) - 1
            assert kernels.draw_position(tables, 0, 3, s, np.uint64(2 * last)) == z
            if z < 2:
                assert kernels.draw_position(tables, 0, 3, s, np.uint64(2 * last + 2)) == z + 1


def test_remapping():
    prior = np.array([0.7, 0.1, 0.2])
    tables, to = three([[1]]), np.empty(3, np.int64)
    kernels.remap(tables, 0, 3, np.log(prior), to, np.empty(3), np.empty(3))
    cost = np.einsum("s,sz,sw->zw", prior, P, LOSS)
    assert to.tolist() == cost.argmin(axis=1).tolist()
    for w in range(3):
        out = np.empty(3)
        kernels.remapped_column(tables, 0, 3, to, w, out)
        assert np.exp(out) == pytest.approx(P[:, to == w].sum(axis=1))


def key_of(graph, cells, s, anchored=False, with_hull=False):
    policy = kernel_policy(graph)
    space, cells = make_workspace(graph.locations.size, graph.n_cliques), np.array(cells, np.int32)
    set_cells(space.words, cells)
    repaired = make_repaired_domain(policy, 0, 0, space, cells)
    positions = component_of(policy, repaired, list(cells).index(s))
    hull = component_hull(policy, repaired, positions)
    members = cells[positions]
    settings = trace_settings(with_hull=with_hull, anchored=anchored, bits=7)
    found = kernels.component_key(policy, settings, repaired, positions, members, hull)
    return found.tolist()


def test_keys_of_components():
    """Members as (col, row, head of the clique), further edges, the hull, and the members where
    the mechanism is not the same everywhere."""
    G = pf.blocks(pf.Grid(4, 4), 2).with_edges([(5, 6)])
    key = key_of(G, [0, 1, 5, 6], 0)
    members = [0, 0, 0, 1, 0, 0, 1, 1, 0, 2, 1, 3]
    assert key == [4, 1, 0, 0, 7, *members, 2, 3]
    assert key_of(G, [10, 11, 14], 10) == key_of(G, [8, 9, 12], 8)
    assert key_of(G, [10, 11, 14], 10, anchored=True)[-3:] == [10, 11, 14]
    assert key_of(G, [0, 1], 0, with_hull=True) == [2, 0, 2, 0, 7, 0, 0, 0, 1, 0, 0, -1, 0, 1, 0]
    added = key_of(G, [0, 15], 0)  # two cells that the repair joins
    assert added == [2, 1, 0, 0, 7, 0, 0, 0, 3, 3, 1, 0, 1]
