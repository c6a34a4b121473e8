"""Policies and points in files: read back to the last bit, and refused where damaged."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import put
from pglp_fast._util.storage import read_arrays, write_arrays

GRID = pf.Grid(7, 9, cell_km=(0.5, 0.25), origin=(35.6, 139.6))
PLACES = pf.Points.from_latlon([35.6, 35.61, 35.607, 35.64], [139.6, 139.62, 139.601, 139.7])

POLICIES = {
    "blocks": pf.blocks(GRID, 3),
    "neighbours8": pf.neighbours8(GRID),
    "cliques and edges": pf.blocks(GRID, 3).with_edges([(0, 62), (5, 6)]),
    "no edges": pf.PolicyGraph.from_edges(GRID, []),
    "points": pf.PolicyGraph.from_edges(PLACES, [(0, 3), (1, 2)]),
    "points in km": pf.complete(pf.Points([(0.1, 7.3), (1e5 / 3, 2.0)], resolution_km=0.01)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_comes_back_with_its_map(name, tmp_path):
    G = POLICIES[name]
    G.save(tmp_path / "G.npz")
    H = pf.PolicyGraph.load(tmp_path / "G.npz")
    assert H == G
    assert H.locations.same_map(G.locations)
    assert (H.cliques == G.cliques).all()  # cliques stay cliques


@pytest.mark.parametrize("points", [PLACES, pf.Points([(0.1, 7.3), (1e5 / 3, 2.0)])])
def test_points_come_back_to_the_last_bit(points, tmp_path):
    points.save(tmp_path / "points.npz")
    again = pf.Points.load(tmp_path / "points.npz")
    assert again.same_map(points)
    assert (again.xy == points.xy).all()
    assert again.location_of.tolist() == list(range(points.size))


def test_another_kind_of_file_is_refused(tmp_path):
    PLACES.save(tmp_path / "points.npz")
    with pytest.raises(pf.InvalidState, match="holds a points, not a policy"):
        pf.PolicyGraph.load(tmp_path / "points.npz")
    (tmp_path / "text").write_text("cliques")
    with pytest.raises(pf.InvalidState, match="not written by pglp_fast"):
        pf.PolicyGraph.load(tmp_path / "text")


def forged(path, change):
    """A file with a valid checksum whose arrays were changed."""
    POLICIES["cliques and edges"].save(path)
    arrays, facts = read_arrays(path, "policy")
    change(arrays, facts)
    for name in ("kind", "version"):
        facts.pop(name)
    write_arrays(path, "policy", arrays, facts)


@pytest.mark.parametrize(
    "change, words",
    [
        (put("indices", 0, 10**6), "leaves the map"),
        (put("indices", 0, 0), "itself"),
        (put("indices", 0, 61), "no mirror image"),
        (put("cliques", 0, 77), "clique labels"),
        (put("cliques", slice(None), -2), "clique labels"),
        (put("indptr", -1, 1), "not in order"),
        (lambda arrays, facts: arrays.pop("indptr"), "indptr is missing"),
        (lambda arrays, facts: arrays.update(cliques=np.zeros(3, np.int32)), "not of 63 locations"),
        (lambda arrays, facts: facts["grid"].update(rows=-1), "does not hold a map"),
        (lambda arrays, facts: facts.pop("grid"), "does not hold a map"),
    ],
)
def test_a_forged_file_is_refused(change, words, tmp_path):
    """A checksum does not tell who wrote it: indices off the map would crash a kernel."""
    forged(tmp_path / "G.npz", change)
    with pytest.raises(pf.InvalidState, match=words):
        pf.PolicyGraph.load(tmp_path / "G.npz")


def test_an_edge_inside_a_clique_is_refused(tmp_path):
    POLICIES["blocks"].save(tmp_path / "G.npz")
    arrays, facts = read_arrays(tmp_path / "G.npz", "policy")
    arrays["indptr"][1:] = np.r_[1, np.full(62, 2)]
    arrays["indices"] = np.array([1, 0], np.int32)
    write_arrays(tmp_path / "G.npz", "policy", arrays, {"grid": facts["grid"]})
    with pytest.raises(pf.InvalidState, match="in a clique too"):
        pf.PolicyGraph.load(tmp_path / "G.npz")


def test_forged_points_are_refused(tmp_path):
    PLACES.save(tmp_path / "p.npz")
    arrays, facts = read_arrays(tmp_path / "p.npz", "points")
    for lattice in (arrays["lattice"][[0, 0]], arrays["lattice"][:0], -arrays["lattice"] - 1):
        write_arrays(
            tmp_path / "p.npz", "points", {"lattice": lattice}, {"points": facts["points"]}
        )
        with pytest.raises(pf.InvalidState, match="does not hold a map"):
            pf.Points.load(tmp_path / "p.npz")
