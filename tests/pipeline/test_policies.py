"""Policies by their spelling, read from files."""

import json

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import the_grid
from pglp_fast.pipeline.plan_policies import files_of, spelt_policy

G = the_grid()


def wards(path):
    lat, lon = G.latlon(np.arange(G.size)).T
    middle, far = float(np.median(lon)) + 1e-9, 1.0
    boxes = [(lon.min() - far, middle), (middle, lon.max() + far)]
    polygons = [
        [[[a, lat.min() - 1], [b, lat.min() - 1], [b, lat.max() + 1], [a, lat.max() + 1]]]
        for a, b in boxes
    ]
    path.write_text(json.dumps({"type": "MultiPolygon", "coordinates": polygons[:1]}))
    return np.flatnonzero(lon < middle)


def test_regions_of_a_file(tmp_path):
    west = wards(tmp_path / "wards.geojson")
    name = f"regions:{tmp_path / 'wards.geojson'}"
    assert spelt_policy(name, G) == pf.complete(G, west)
    assert files_of(name, None) == [str(tmp_path / "wards.geojson")]
    assert pf.Plan(grid=G, policy=name, epsilon=1.0).graph == pf.complete(G, west)


def test_hidden_places_of_a_table(tmp_path):
    (tmp_path / "clinics.csv").write_text("cell,category\n3,clinic\n17,hospital\n")
    found = spelt_policy("hide:4", G, tmp_path / "clinics.csv")
    assert found == pf.hide(G, [3, 17], 4)
    with pytest.raises(pf.InvalidPolicy, match="'hide:K' needs labels=FILE"):
        spelt_policy("hide:4", G)
    with pytest.raises(pf.InvalidPolicy, match="write hide:K with the number K of other cells"):
        spelt_policy("hide:x", G, tmp_path / "clinics.csv")


def test_saved_policies(tmp_path):
    graph = pf.blocks(G, 2).with_edges([(0, G.size - 1)])
    graph.save(tmp_path / "G.npz")
    assert spelt_policy(f"saved:{tmp_path / 'G.npz'}", G) == graph
    elsewhere = pf.Grid(G.rows, G.cols, cell_km=G.scale, origin=(1.0, 2.0))
    with pytest.raises(pf.InvalidPolicy, match="another map than the release: one lies"):
        spelt_policy(f"saved:{tmp_path / 'G.npz'}", elsewhere)


def test_weights_are_part_of_a_plan():
    """Two plans that promise different weights must not share parts of a release."""
    plans = [
        pf.Plan(grid=G, policy=pf.PolicyGraph.from_edges(G, [(0, 1)], weights=[w]), epsilon=1.0)
        for w in (0.5, 0.25)
    ]
    assert plans[0].digest != plans[1].digest


def test_edges_with_weights(tmp_path):
    """A third column is the weight: a number or a fraction in text, a number in an array."""
    wanted = pf.PolicyGraph.from_edges(G, [(0, 1), (1, 2), (2, 3)], [(2, 3), (1, 1), (1, 4)])
    (tmp_path / "e.csv").write_text("from,to,weight\n0,1,2/3\n1,2,\n2,3,0.25\n")
    np.save(tmp_path / "e.npy", np.array([[0, 1, 2 / 3], [1, 2, 1], [2, 3, 0.25]]))
    for name in ("e.csv", "e.npy"):
        plan = pf.Plan(grid=G, policy=f"edges:{tmp_path / name}", epsilon=1.0)
        assert plan.graph == wanted
        assert (
            plan.digest != pf.Plan(grid=G, policy=wanted.with_edges([(3, 4)]), epsilon=1.0).digest
        )
    for text, words in (
        ("0,1,0\n", "line 1: the third column is the weight .* got '0'"),
        ("0,1,1/0\n", "got '1/0'"),
        ("0,1\n1,2,north\n", "line 2: .* got 'north'"),
        ("0,1,3.14159265\n", "a fraction of whole numbers"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(pf.InvalidPolicy, match=words):
            spelt_policy(f"edges:{tmp_path / 'bad.csv'}", G)
    np.save(tmp_path / "bad.npy", np.array([[0, 1.5, 2]]))
    with pytest.raises(pf.InvalidPolicy, match="row 0: the first two columns are cells"):
        spelt_policy(f"edges:{tmp_path / 'bad.npy'}", G)
