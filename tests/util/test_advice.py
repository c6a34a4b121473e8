"""Errors whose advice works: what they tell to do is what helps."""

import re

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.cli.error_text import as_options

GRID = pf.Grid(6, 6, cell_km=1.0)


@pytest.mark.parametrize(
    "cells, advice",
    [
        (["a", "b"], "not text"),
        ([1.0, np.nan], "-1 for missing"),
        ([[39.9, 116.3]], r"Grid.locate\(lat, lon\)"),
        ([1.0, 2.0], r"\.astype\(np\.int32\)"),
    ],
)
def test_cells_that_are_no_integers(cells, advice):
    """Of these, .astype(np.int32) helps the last alone."""
    m = pf.PPIM(pf.blocks(GRID, 3), epsilon=1.0)
    with pytest.raises(pf.InvalidLocation, match=advice) as told:
        m.release(cells)
    assert (".astype" in str(told.value)) == (cells == [1.0, 2.0])


def test_ragged_traces_are_named_as_such():
    model = pf.MobilityModel.fit(GRID, [[0, 1]])
    releaser = pf.TraceReleaser(pf.blocks(GRID, 3), model, epsilon=1.0)
    with pytest.raises(pf.InvalidTransition, match=r"different lengths, 2 to 3 .* pad"):
        releaser.run([[0, 1], [2, 3, 4]])


def test_identical_points_are_not_told_to_use_a_finer_resolution():
    with pytest.raises(pf.InvalidLocation, match="are the same place: merge them"):
        pf.Points([[0, 0], [0, 0], [1, 1]])
    with pytest.raises(pf.InvalidLocation, match="finer resolution_km"):
        pf.Points([[0, 0], [0, 0.0002], [1, 1]])


def test_a_doubled_header_is_not_told_to_name_the_column(tmp_path):
    path = tmp_path / "doubled.csv"
    path.write_text("user,time,lat,lat,lon\na,2024-12-25 10:00,35.7,35.7,139.7\n")
    with pytest.raises(pf.InvalidTable, match="give each its own name in the header line"):
        pf.read_table(path)
    path.write_text(path.read_text().replace("lat,lat", "lat,lat2"))
    assert len(pf.read_table(path)) == 1, "the advice works"


def test_times_that_are_none_say_how_to_write_them(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("user,time,lat,lon\na,25/12/2024 10:00,35.7,139.7\n")
    with pytest.raises(pf.InvalidTable, match="write the column as 2024-12-25 10:00") as told:
        pf.read_table(path)
    form = re.search(r"time_format='(.*?)'", str(told.value))[1]
    assert len(pf.read_table(path, time_format=form)) == 1, "the advice works"
    assert f"--time-format '{form}'" in as_options(told.value)


def test_a_model_of_nobody_is_refused():
    for nobody in ([], np.empty((0, 5), int), [[]]):
        with pytest.raises(pf.InvalidTransition, match="no traces to fit"):
            pf.MobilityModel.fit(GRID, nobody)


def test_users_of_geolife_by_number(tmp_path):
    folder = tmp_path / "003" / "Trajectory"
    folder.mkdir(parents=True)
    row = "39.9,116.3,0,492,39745.1,2008-10-23,02:53:04\n"
    (folder / "20081023025304.plt").write_text("header\n" * 6 + row)
    assert pf.read_geolife(tmp_path, users=[3]).users.tolist() == ["003"]
    with pytest.raises(pf.InvalidTable, match="no trajectories of user '140'"):
        pf.read_geolife(tmp_path, users=[140])


def test_privacy_says_where_the_adversary_guesses():
    """Three cells at the corners of a triangle: the middle is a better guess than any of them, and
    ``error`` is of those alone."""
    assert "upper bound" in pf.Privacy.__doc__ and "output set" in pf.privacy.__doc__
    graph = pf.PolicyGraph.from_edges(GRID, [[0, 4], [4, 26], [0, 26]])
    told = pf.privacy(pf.KRR(graph, epsilon=1e-6), prior=np.isin(np.arange(36), [0, 4, 26]))
    best = min(GRID.distance(np.array([0, 4, 26]), np.full(3, w)).mean() for w in range(36))
    assert told.error > best * 1.05
