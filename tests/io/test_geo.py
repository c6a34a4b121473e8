"""Files that GDAL reads: the same fixes as from a table."""

import numpy as np
import pytest

import pglp_fast as pf
from table_cases import frame, model, plan

geopandas = pytest.importorskip("geopandas")
pytest.importorskip("pyogrio")
parquet = pytest.importorskip("pyarrow.parquet")


def points(n=60):
    given = frame(n).reset_index(drop=True)
    at = geopandas.points_from_xy(given["lon"], given["lat"], crs=4326)
    return given, geopandas.GeoDataFrame(given[["user", "time", "venue_id"]], geometry=at)


@pytest.mark.parametrize("end", ["geojson", "gpkg", "fgb"])
def test_the_same_releases(tmp_path, end):
    given, geo = points()
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"t.{end}"
    geo.to_file(path)
    read = pf.read_table(path)
    order = np.argsort(read.columns["venue"].values())  # FlatGeobuf sorts its points
    assert np.allclose(read.lat[order], given["lat"]) and np.allclose(read.lon[order], given["lon"])
    p = plan(mobility=model(), keep=["user", "venue_id"])
    said = pf.release_files(tmp_path / "in", tmp_path / "out", p)
    out = parquet.read_table(tmp_path / "out" / "t.parquet").sort_by("venue_id")
    expected = pf.release_table(given, p)
    assert out["released_status"].to_pylist() == expected["released_status"].tolist()
    assert said.kept == ["user", "venue_id"] and "geometry" not in out.column_names
    if end == "geojson":
        with pytest.raises(pf.InvalidParameter, match=r"is released as Parquet: name it .parquet"):
            pf.release_files(path, tmp_path / "o.geojson", p)


def test_what_is_refused(tmp_path):
    _, geo = points()
    geo.to_crs(3857).to_file(tmp_path / "m.gpkg")
    with pytest.raises(pf.InvalidTable, match=r"m\.gpkg: its points are in EPSG:3857, not in deg"):
        pf.read_table(tmp_path / "m.gpkg")
    geo.assign(geometry=geo.to_crs(3857).buffer(10).to_crs(4326)).to_file(tmp_path / "areas.gpkg")
    with pytest.raises(pf.InvalidTable, match="must hold points, one for each fix, got Polygon"):
        pf.read_table(tmp_path / "areas.gpkg")
    (tmp_path / "none.geojson").write_text("user,time\n")
    with pytest.raises(pf.InvalidTable, match=r"none\.geojson cannot be read"):
        pf.read_table(tmp_path / "none.geojson")
    with pytest.raises(pf.InvalidParameter, match="delimiter is for text files"):
        pf.read_table(tmp_path / "m.gpkg", delimiter=";")


def test_geoparquet_out_where_it_came_in(tmp_path):
    """Released points are what the released latitudes and longitudes say; true ones go, and so does
    the box of them that the file's metadata has."""
    _, geo = points()
    geo.to_parquet(tmp_path / "t.parquet", write_covering_bbox=False)
    p = plan()
    pf.release_files(tmp_path / "t.parquet", tmp_path / "o.parquet", p)
    out = geopandas.read_parquet(tmp_path / "o.parquet")
    assert out.geometry.name == "released_geometry" and "geometry" not in out.columns
    assert out.crs.to_epsg() == 4326 or out.crs.to_string() == "OGC:CRS84"
    there = out["released_cell"].notna()
    assert there.any() and not there.all()
    assert (out.geometry.y[there] == out["released_lat"][there]).all()
    assert (out.geometry.x[there] == out["released_lon"][there]).all()
    assert out.geometry[~there].isna().all()
    assert b"bbox" not in parquet.read_schema(tmp_path / "o.parquet").metadata[b"geo"]
    frame_out = pf.release_table(geo, p)
    assert isinstance(frame_out, geopandas.GeoDataFrame)
    assert frame_out.geometry[there].tolist() == out.geometry[there].tolist()
    everything = plan(keep="all")
    pf.release_files(tmp_path / "t.parquet", tmp_path / "all.parquet", everything)
    whole = geopandas.read_parquet(tmp_path / "all.parquet")
    assert whole["geometry"].tolist() == geo.geometry.tolist()
    assert whole.geometry.name == "released_geometry"
    arrow = pf.release_table(parquet.read_table(tmp_path / "t.parquet"), p)
    assert arrow["released_geometry"].null_count == (~there).sum()
