"""Short gaps from both sides, against the whole layer and against matrix powers."""

import numpy as np
import pytest

from cases import attack_moves, ring
from pglp_fast._kernels.attack import gaps, records, short_gaps


def walk(rng, n=60, far=1):
    """Steps to either side on a ring, of random probability; or on a sparse random graph."""
    A = (ring(n, 0.4) + ring(n, 0.4).T) * rng.random((n, n))
    for _ in range(far - 1):
        A += rng.random((n, n)) * (rng.random((n, n)) < 0.03)
    return A / A.sum(axis=1, keepdims=True)


def clean(layers):
    """All of the work space but the layer itself is as it was."""
    assert not layers.hops.any()
    assert not layers.words.any()
    assert not layers.there.value.any()


@pytest.mark.parametrize("kind", [gaps.SUM, gaps.BEST, gaps.BACK])
@pytest.mark.parametrize("tiny", [1.0, 1e-250], ids=["plain", "underflow"])
@pytest.mark.parametrize("far", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 9, 12])
def test_only_what_leads_to_the_end_is_followed(kind, tiny, far, count):
    """To one location in so many moves: where the last move is made from, all is as without, to the
    last bit."""
    A = walk(np.random.default_rng(1), far=far)
    ends = np.array([12], np.int32)
    found = []
    for toward in (True, False):
        layers = records.make_workspace(60, 1.0, 1.0, 0).layers
        cells, logs = np.array([5, 7, 40], np.int32), np.log([0.5, 0.3 * tiny, 0.2])
        now = gaps.place(cells, logs, kind, layers.here)
        how = *attack_moves(A), np.array([0]), 3, 1, count, now, 3, layers
        layers, m, now, *_ = short_gaps.pass_towards(*how, ends) if toward else gaps.pass_gap(*how)
        clean(layers)
        here, at = layers.here, np.sort(layers.here.cells[:m])
        last = at[A[at, 12] > 0]
        origin = here.origin[last] if kind == gaps.BEST else last
        found.append((now, last, here.value[last], here.other[last], origin))
        if toward:  # the ends themselves may be there, too
            assert set(at) - set(last) <= {12}
        assert np.count_nonzero(here.value) <= m
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    if (far, count) == (1, 9):
        assert len(found[0][1]) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("far", [1, 3])
def test_sums_and_best_paths_at_once(count, far):
    """The same bits as of each by itself, at the targets of the last move."""
    rng = np.random.default_rng(count)
    A = walk(rng, far=far)
    cells = np.array([3, 4, 31], np.int32)
    logs, scores = np.log(rng.dirichlet(np.ones(3))), np.log(rng.random(3))
    ends, n = np.array([1, 8, 35], np.int32), len(A)
    moves, turned = attack_moves(A)
    layers, both = (records.make_workspace(n, 1.0, 1.0, 0) for _ in range(2))
    assert short_gaps.is_short(moves, count, ends, layers.layers)
    assert short_gaps.place_both(cells, logs, scores, both.layers.here)
    how = moves, turned, np.array([0]), 0, 1, count
    after, m, kind, *_ = short_gaps.pass_towards(*how, gaps.BOTH, 3, both.layers, ends)
    assert kind == gaps.BOTH
    clean(after)
    assert short_gaps.gather_both(turned, after.here, ends, both.arrivals)
    gaps.empty_layer(after.here, m)
    assert not after.here.value.any()
    sums, best, back = layers.arrivals
    for kind, given in ((gaps.SUM, logs), (gaps.BEST, scores)):
        gaps.place(cells, given, kind, layers.layers.here)
        one, m, *_ = gaps.pass_gap(*how, kind, 3, layers.layers)
        at = turned.indptr[0], turned, one.here, m, ends
        if kind == gaps.SUM:
            gaps.gather_sums(*at, kind, one.words, sums)
        else:
            gaps.gather_best(*at, one.words, best, back)
        gaps.empty_layer(one.here, m)
        layers = layers._replace(layers=one)
    reached = back[ends] >= 0
    assert (both.arrivals.back[ends] == back[ends]).all()
    assert (both.arrivals.best[ends] == best[ends])[reached].all()
    assert (both.arrivals.sum[ends] == sums[ends])[reached].all()
    p = np.zeros(n)
    p[cells] = np.exp(logs)
    expected = (p @ np.linalg.matrix_power(A, count + 1))[ends]
    assert np.exp(sums[ends][reached]) == pytest.approx(expected[reached], rel=1e-12)
    assert (expected[~reached] == 0.0).all()


def test_an_underflow_parts_sums_from_best_paths():
    """Nothing is left behind; what cannot be placed is not."""
    A = walk(np.random.default_rng(0)) * 1e-60
    layers = records.make_workspace(60, 1.0, 1.0, 0).layers
    cells, zero, ends = np.array([5], np.int32), np.zeros(1), np.array([7], np.int32)
    assert not short_gaps.place_both(cells, zero - 700.0, zero, layers.here)
    assert short_gaps.place_both(cells, zero, zero, layers.here)
    layers, m, kind, *_ = short_gaps.pass_towards(
        *attack_moves(A), np.array([0]), 0, 1, 9, gaps.BOTH, 1, layers, ends
    )
    assert kind == gaps.SPLIT
    clean(layers)
    gaps.empty_layer(layers.here, m)
    assert not layers.here.value.any()
    space = records.make_workspace(60, 1.0, 1.0, 0)
    assert short_gaps.place_both(cells, zero - 600.0, zero, space.layers.here)
    turned = attack_moves(A)[1]
    assert not short_gaps.gather_both(turned, space.layers.here, cells, space.arrivals)


def test_how_far_locations_are_from_the_ends():
    """On a ring of which only one direction is open: as many moves as they are before an end."""
    _, turned = attack_moves(ring(20, 0.5))
    hops, queue, levels = np.zeros(20, np.int32), np.empty(20, np.int32), np.empty(5, np.int64)
    ends = np.array([3, 10], np.int32)
    n = short_gaps.count_hops(turned.indptr[0], turned.indices, ends, hops, queue, levels)
    assert levels.tolist() == [2, 4, 6, 8, 10]
    assert n == 10
    assert sorted(queue[:n]) == [*range(0, 4), *range(6, 11), 19]
    assert [hops[i] for i in (3, 2, 1, 0, 19, 18, 10, 6, 5)] == [1, 2, 3, 4, 5, 0, 1, 5, 0]


def test_when_a_gap_is_short():
    moves, _ = attack_moves(ring(20, 0.5))
    two, _ = attack_moves(ring(20, 0.5), ring(20, 0.2))
    layers = records.make_workspace(20, 1.0, 1.0, 0).layers
    one, many = np.zeros(1, np.int32), np.zeros(2, np.int32)
    assert short_gaps.is_short(moves, 64, one, layers)
    assert not short_gaps.is_short(moves, 65, one, layers)
    assert not short_gaps.is_short(moves, 0, one, layers)
    assert not short_gaps.is_short(moves, 9, many, layers)
    assert not short_gaps.is_short(two, 9, one, layers)
