"""The lattice points of a hull against counting."""

import numpy as np
from hypothesis import given, strategies as st

import naive
from cases import random_hull, random_views
from pglp_fast._kernels.exposure import neighbourhood
from pglp_fast._kernels.geometry import hull


@given(st.integers(0, 2**32 - 1))
def test_footprint_holds_exactly_the_lattice_points_of_a_hull(seed):
    K = random_hull(np.random.default_rng(seed))
    spans = neighbourhood.footprint(K)
    top = len(spans) // 2
    comp = {
        (x, y - top) for y, (low, high) in enumerate(spans.tolist()) for x in range(low, high + 1)
    }
    ref = {
        (x, y) for x in range(-13, 14) for y in range(-13, 14) if naive.contains(K.tolist(), (x, y))
    }
    assert comp == ref


def test_who_is_isolated():
    """On grids by spans and masks, elsewhere by a tree: nobody else in f(s) + K."""
    kinds = set()
    for graph, _, policy, view in random_views(range(60), side=5):
        if not len(view.cells):
            continue
        rng = np.random.default_rng(len(view.cells))
        K = random_hull(rng) // int(rng.integers(1, 6))
        K = hull.chain(np.concatenate([K, -K]))
        around = neighbourhood.make_neighbourhood(policy, view, K)
        other = neighbourhood.with_hull(around, policy, np.zeros((1, 2), np.int64))
        everybody = np.arange(len(view.cells), dtype=np.int32)
        for ready, polygon in (around, K), (other, np.zeros((1, 2), np.int64)):
            out = np.zeros(len(everybody), bool)
            neighbourhood.mark_isolated(policy, view, ready, polygon, everybody, out)
            sites = graph.locations.lattice[view.cells].tolist()
            for p, (x, y) in enumerate(sites):
                reached = [
                    q != p and naive.contains(polygon.tolist(), (a - x, b - y))
                    for q, (a, b) in enumerate(sites)
                ]
                assert out[p] == (not any(reached))
        kinds.add(policy.rows > 0)
    assert kinds == {True, False}
