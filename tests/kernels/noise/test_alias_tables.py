"""Tables of shapes: filled from probabilities, read back, and drawn from word by word."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import words
from pglp_fast._kernels.base.chacha import TABLE
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._kernels.noise import alias_rows, alias_tables
from pglp_fast.mechanisms.exp_bound import exp_lower_bound
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.policy.groups import make_groups

P = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]])


@pytest.fixture
def groups():
    """Two rows of three that share a shape, and a pair without a table; location 8 is outside."""
    g = pf.Grid(3, 3)
    graph = pf.PolicyGraph.from_edges(g, [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)])
    return make_groups(graph, pf.Domain(g, range(8)), "component").arrays


@pytest.fixture
def filled(groups):
    bits, offset = np.array([2, 1]), np.array([0, -1])
    rows = alias_rows.AliasTables(bits, offset, np.zeros(12, np.uint64), np.zeros(12, np.int32))
    none, out = (np.zeros((0, 2), np.int64), np.zeros(3, np.int64)), np.empty((2, 2))
    bound = exp_lower_bound(1.0)
    which, at = np.array([0]), np.array([0])
    args = groups, Polygons(*none), False, P.ravel().copy(), at, bound, rows
    alias_tables.fill_tables(which, 0, 1, *args, out)
    assert out[0, 1] == pytest.approx(0.0, abs=1e-15)
    return rows


def test_weights_are_the_probabilities(filled):
    W = np.empty((3, 3), np.uint64)
    assert alias_rows.read_rows(filled, 0, W)
    assert pytest.approx(P, abs=2e-6) == W / 2**63


def test_who_is_outside(groups):
    address = groups.address
    assert alias_tables.first_outside(np.array([0, 7]), 9, address) == -1
    assert alias_tables.first_outside(np.array([0, 8, 1]), 9, address) == 1
    assert alias_tables.first_outside(np.array([-1]), 9, address) == 0
    assert alias_tables.first_outside(np.array([0, 9]), 9, address) == 1
    used = np.zeros(2, bool)
    alias_tables.mark_shapes(np.array([6, 7]), groups, used)
    assert used.tolist() == [False, True]


def test_releases_are_what_the_words_pick(groups, filled):
    """More than a chunk of requests; those without a table are left alone."""
    key, n = make_key(3), 300
    cells = np.arange(n, dtype=np.int32) % 8
    out = np.full(n, -7, np.int32)
    zero = np.zeros(1, np.int64)
    alias_tables.release_table(
        alias_tables.Requests(key, zero, zero, cells), 0, n, groups, filled, out
    )
    for user, cell in enumerate(cells.tolist()):
        if cell >= 6:
            assert out[user] == -7
            continue
        (word,) = words(key, user, 0, 0, TABLE)
        row = 4 * (cell % 3)
        place = alias_rows.pick(np.uint64(word), filled.cut, filled.alias, row, 2)
        assert out[user] == cell // 3 * 3 + place
