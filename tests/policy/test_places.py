"""Hidden places and disclosed ones, against sorted lists and sets of edges."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import edge_set

MAPS = {
    "square cells": pf.Grid(9, 11, cell_km=0.5),
    "flat cells": pf.Grid(8, 9, cell_km=(0.7, 0.3)),
    "points": pf.Points(np.random.default_rng(5).integers(0, 40, (50, 2)) * 0.1, twins="merge"),
}


def joined(locations, cells, k, among=None):
    among = range(locations.size) if among is None else among
    pairs = (
        (min(s, i), max(s, i))
        for s in cells
        for i in naive.nearest_others(locations.lattice.tolist(), locations.scale, s, k, among)
    )
    return set(pairs)


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("name", MAPS)
def test_each_is_joined_with_its_nearest(name, k):
    places = MAPS[name]
    cells = np.random.default_rng(k).permutation(places.size)[:6]
    assert edge_set(pf.hide(places, cells, k)) == joined(places, cells, k)
    among = np.setdiff1d(np.arange(places.size), cells)
    assert edge_set(pf.hide(places, cells, k, among=among)) == joined(places, cells, k, among)


def test_eight_nearest_of_a_cell_are_the_cells_around_it():
    g = pf.Grid(5, 5)
    assert pf.hide(g, [12]).neighbours(12).tolist() == pf.neighbours8(g).neighbours(12).tolist()


def test_a_base_policy_holds_beside():
    g = MAPS["square cells"]
    base = pf.blocks(g, 3)
    both = pf.hide(g, [40, 41], 5, base=base)
    assert edge_set(both) == edge_set(base) | joined(g, [40, 41], 5)
    assert pf.certify(pf.PPIM(both, epsilon=1.0)).ok


def test_a_mask_says_the_same_as_numbers():
    g = MAPS["square cells"]
    mask = np.zeros((g.rows, g.cols), bool)
    mask[2, 3] = mask[4, 4] = True
    cells = np.flatnonzero(mask.ravel())
    assert pf.hide(g, mask, 4) == pf.hide(g, cells, 4)
    base = pf.blocks(g, 3)
    assert pf.contact_tracing(base, mask) == pf.contact_tracing(base, cells)
    assert pf.contact_tracing(base, pf.Domain(g, cells)) == pf.contact_tracing(base, cells)


def test_disclosed_places_have_no_edges_and_the_others_keep_theirs():
    g = MAPS["square cells"]
    base = pf.blocks(g, 3).with_edges([(0, 50), (7, 8)])
    shown = {0, 1, 30}
    traced = pf.contact_tracing(base, sorted(shown))
    assert edge_set(traced) == {e for e in edge_set(base) if not shown & set(e)}
    m = pf.PPIM(traced, epsilon=0.5)
    assert m.release(sorted(shown), rng=3).tolist() == sorted(shown)
    assert pf.certify(m).ok


def test_nothing_to_hide_or_to_disclose_changes_nothing():
    g = MAPS["flat cells"]
    base = pf.blocks(g, 2)
    assert pf.hide(g, [], 8, base=base) == base == pf.contact_tracing(base, [])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda g: pf.hide(g, [3], 99), "98 others"),
        (lambda g: pf.hide(g, [3], 3, among=[3, 4]), "1 others"),
        (lambda g: pf.hide(g, [99], 3), "not one of the 99 locations"),
        (lambda g: pf.hide(g, [True, False], 3), "mask of 2"),
        (lambda g: pf.hide(g, [3], 3, base=pf.blocks(pf.Grid(2, 2), 2)), "different maps"),
        (lambda g: pf.contact_tracing(pf.blocks(g, 3), [-1]), "not one of the 99"),
        (lambda g: pf.contact_tracing(g, [1]), "must be a PolicyGraph"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(pf.InvalidPolicy, match=words):
        call(MAPS["square cells"])
    with pytest.raises(pf.InvalidParameter, match="k must be an integer"):
        pf.hide(MAPS["square cells"], [1], 0)


def test_flags_may_change_with_time():
    """Who is in a flagged cell while the flag holds is disclosed, and before and after is not: the
    domain of the others has no edge to that cell at those steps."""
    g = pf.Grid(3, 3)
    base = pf.complete(g)
    made = pf.contact_tracing(base, {"monday": [4], "tuesday": [0, 8]})
    assert made["monday"] == pf.contact_tracing(base, [4])
    T = pf.TraceReleaser(
        {"default": base, **made}, pf.MobilityModel(g, np.full((9, 9), 1 / 9)), epsilon=0.1, rng=1
    )
    traces = np.full((200, 3), 4)
    when = np.tile(["default", "monday", "tuesday"], (200, 1))
    R = T.run(traces, policy=when)
    assert (R.released[:, 1] == 4).all()
    for t in (0, 2):
        assert (R.released[:, t] != 4).mean() > 0.5
