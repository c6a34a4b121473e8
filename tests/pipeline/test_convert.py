"""Tables from format to format, and policies for programs that show maps."""

import json

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import BOUNDS, answer, read, run, the_grid, trips, write_csv

pytestmark = pytest.mark.usefixtures("here")

pytest.importorskip("pyarrow")


def released(tmp_path, *more):
    """A released table of 60 rows, one of them off the map."""
    trips(tmp_path / "t.csv", 60, 4, inside=0.98)
    box = ",".join(map(str, BOUNDS))
    how = ["--epsilon", "1", "--policy", "blocks:3", "--bounds", box, "--cell-km", "0.4"]
    run("release", tmp_path / "t.csv", "-o", tmp_path / "r.csv", *how, *more)
    return read(tmp_path / "r.csv")


@pytest.mark.parametrize("end", ["parquet", "geojson", "geoparquet", "tsv.gz", "gpkg"])
@pytest.mark.parametrize("keep", [[], ["--keep", "all"]])
def test_a_released_table_goes_there_and_back(tmp_path, end, keep):
    """Nothing is lost, nothing is put in another column, and true places are not points."""
    if end in ("geojson", "gpkg"):
        pytest.importorskip("pyogrio")
    rows = released(tmp_path, *keep)
    run("convert", "r.csv", "-o", f"x.{end}")
    run("convert", f"x.{end}", "-o", "back.csv")
    back = read(tmp_path / "back.csv")
    assert len(back) == len(rows)
    for one, two in zip(rows, back, strict=True):
        assert set(one) == set(two)
        for name in one:
            if name in ("lat", "lon", "released_lat", "released_lon") and one[name]:
                assert abs(float(one[name]) - float(two[name])) < 1e-7, name
            elif name == "time":
                seconds = np.datetime64(two[name].removesuffix("Z"), "s").astype(int)
                assert int(one[name]) == seconds
            else:
                assert one[name] == two[name], name


def test_types_are_what_the_text_says(tmp_path):
    """Numbers with leading zeros are names; an empty field is none."""
    import pyarrow.parquet as parquet

    columns = {
        "user": ["007", "8"],
        "time": [0, 60],
        "lat": [35.7, 35.7],
        "lon": [139.6, 139.61],
        "n": [3, ""],
        "x": [0.5, 2],
        "code": ["01", "02"],
        "flag": ["true", "false"],
        "note": ["a", ""],
    }
    write_csv(tmp_path / "t.csv", columns)
    run("convert", "t.csv", "-o", "t.parquet")
    table = parquet.read_table(tmp_path / "t.parquet")
    kinds = {f.name: str(f.type) for f in table.schema}
    assert kinds == {
        "user": "string", "time": "timestamp[ms, tz=UTC]", "lat": "double", "lon": "double",
        "n": "int64", "x": "double", "code": "string", "flag": "bool", "note": "string",
    }  # fmt: skip
    assert table["n"].to_pylist() == [3, None]


def test_points_of_a_released_table_are_the_released_places(tmp_path, capsys):
    rows = released(tmp_path, "--keep", "all")
    said = answer(capsys, "convert", "r.csv", "-o", "r.geojson")
    assert said["places"] == "released" and said["rows"] == 60
    features = json.loads((tmp_path / "r.geojson").read_text())["features"]
    for row, feature in zip(rows, features, strict=True):
        at = feature["geometry"]
        assert (at is None) == (row["released_lat"] == "")
        if at is not None:
            assert at["coordinates"] == [float(row["released_lon"]), float(row["released_lat"])]
    run("convert", "r.csv", "-o", "g.geojson", "--places", "given")
    first = json.loads((tmp_path / "g.geojson").read_text())["features"][0]
    assert first["geometry"]["coordinates"] == [float(rows[0]["lon"]), float(rows[0]["lat"])]
    run("convert", "r.csv", "-o", "again.geojson")
    assert "still has the true places" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.csv", "-o", "t.xlsx"], "name it .csv"),
        (["t.csv", "-o", "t.csv"], "is the input"),
        (["t.csv", "-o", "x.csv", "--places", "released"], "has no columns released_lat"),
        (["gone.csv", "-o", "x.csv"], "gone.csv cannot be read"),
        (["bad.csv", "-o", "x.csv"], "line 2"),
    ],
)
def test_what_cannot_be_converted_is_told_and_nothing_is_written(
    tmp_path, capsys, arguments, message
):
    trips(tmp_path / "t.csv", 5, 2)
    (tmp_path / "bad.csv").write_text("user,time,lat,lon\nu,noon,35,139\n")
    before = sorted(tmp_path.iterdir())
    run("convert", *arguments, code=2)
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("end", ["geojson", "parquet"])
def test_a_policy_is_read_back_by_regions(tmp_path, end):
    """Would catch swapped degrees, cells half a cell off, and components mixed up."""
    g = the_grid()
    G = pf.blocks(g, 3)
    path = pf.write_geo(tmp_path / f"p.{end}", G, values={"n": np.arange(g.size)})
    polygons = path
    if end == "parquet":
        polygons = pytest.importorskip("geopandas").read_parquet(path)
        assert polygons.is_valid.all() and polygons["n"].tolist() == list(range(g.size))
    assert pf.regions(g, polygons, by="component") == G


def test_edges_and_points_of_a_map(tmp_path):
    p = pf.Points.from_latlon([35.0, 35.001, 35.0], [139.0, 139.0, 139.001])
    G = pf.PolicyGraph.from_edges(p, [[0, 1], [1, 2]], weights=[1, 2.5])
    path = pf.write_geo(tmp_path / "e.geojson", G, edges=True)
    features = json.loads(path.read_text())["features"]
    assert [f["properties"] for f in features] == [
        {"from": 0, "to": 1, "weight": 1.0},
        {"from": 1, "to": 2, "weight": 2.5},
    ]
    lat, lon = p.latlon([1, 2]).T
    want = np.stack([lon, lat], axis=1)
    assert np.allclose(features[1]["geometry"]["coordinates"], want, atol=1e-7)
    dots = json.loads(pf.write_geo(tmp_path / "p.geojson", p).read_text())["features"]
    assert [f["geometry"]["type"] for f in dots] == ["Point"] * 3


def test_a_frame_is_written_as_points(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"user": ["a", "b"], "lat": [1.0, 2.0], "lon": [3.0, 4.0], "released_lat": [5.0, None],
         "released_lon": [6.0, None]}
    )  # fmt: skip
    made = json.loads(pf.write_geo(tmp_path / "f.geojson", frame).read_text())["features"]
    assert [f["geometry"] for f in made] == [{"type": "Point", "coordinates": [6.0, 5.0]}, None]
    assert made[0]["properties"] == {"user": "a", "lat": 1.0, "lon": 3.0}


def test_refusals(tmp_path):
    g = the_grid()
    for make, message in (
        (lambda: pf.write_geo(tmp_path / "a.geojson", pf.Grid(2, 2)), "no latitude"),
        (lambda: pf.write_geo(tmp_path / "a.shp", g), "name it .geojson"),
        (lambda: pf.write_geo(tmp_path / "a.geojson", g, values={"n": [1]}), "has 1 values"),
        (lambda: pf.write_geo(tmp_path / "a.geojson", 7), "not int"),
    ):
        with pytest.raises(pf.PGLPError, match=message):
            make()
    assert not list(tmp_path.iterdir())
