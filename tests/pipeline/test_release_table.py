"""``pf.release_table`` and ``pf.release_files``: the same releases for every kind of table."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import read, the_grid, trips, write_csv
from table_cases import frame, model, plan

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
G = the_grid()
NEW = ["released_lat", "released_lon", "released_cell", "released_status"]


@pytest.fixture(scope="module")
def moving():
    return model()


@pytest.mark.parametrize("mobility", [False, True])
@pytest.mark.parametrize("keep", [None, ["venue_id", "user"], "all"])
def test_pandas_and_arrow_in_the_same_kind_out(moving, mobility, keep):
    """The oracle for rows is the mechanism by row number; for steps, the file's release."""
    p = plan(keep=keep, mobility=moving if mobility else None)
    given = frame()
    out, table = pf.release_table(given, p), pf.release_table(pa.Table.from_pandas(given), p)
    flags = [] if not mobility else ["released_exposed"]
    flags = ["released_surrogate", *flags] if mobility and keep == "all" else flags
    kept = {None: ["user", "time"], "all": list(given.columns)}.get(
        None if keep is None else str(keep), ["user", "venue_id"]
    )
    assert list(out.columns) == [*kept, *NEW, *flags]
    pd.testing.assert_index_equal(out.index, given.index)
    pd.testing.assert_frame_equal(out[kept], given[kept])
    assert table.column_names[: len(kept)] == kept
    assert table["released_cell"].to_pylist() == [
        None if np.isnan(v) else int(v) for v in out["released_cell"]
    ]
    assert table["released_status"].to_pylist() == out["released_status"].tolist()
    assert b"plan" in table.schema.metadata[b"pglp_fast"]
    cells = G.locate(given["lat"].to_numpy(), given["lon"].to_numpy())
    assert ((out["released_status"] == "outside") == (cells < 0)).all()
    if not mobility:
        m = pf.PPIM(pf.blocks(G, 3), epsilon=1.0)
        drawn = m.release(np.maximum(cells, 0), users=np.arange(len(cells)), rng=3)
        inside = cells >= 0
        assert (out["released_cell"][inside] == drawn[inside]).all()


def test_polars_in_polars_out(moving):
    pl = pytest.importorskip("polars")
    given = pl.from_pandas(frame())
    out = pf.release_table(given, plan(mobility=moving))
    assert isinstance(out, pl.DataFrame)
    expected = pf.release_table(frame(), plan(mobility=moving))
    assert out["released_status"].to_list() == expected["released_status"].tolist()
    assert out.columns == list(expected.columns)


def test_geodataframes(moving):
    geopandas = pytest.importorskip("geopandas")
    given = frame()
    points = geopandas.points_from_xy(given["lon"], given["lat"], crs=4326)
    geo = geopandas.GeoDataFrame(given[["user", "time"]], geometry=points)
    out, expected = (pf.release_table(f, plan(mobility=moving)) for f in (geo, given))
    assert "geometry" not in out.columns
    pd.testing.assert_series_equal(out["released_cell"], expected["released_cell"])
    kept = pf.release_table(geo, plan(mobility=moving, keep="all"))
    assert isinstance(kept, geopandas.GeoDataFrame) and "released_surrogate" in kept.columns


def test_files_and_frames_agree(tmp_path, moving):
    given = frame()
    given.to_parquet(tmp_path / "t.parquet", index=False)
    p = plan(mobility=moving)
    said = pf.release_files(tmp_path / "t.parquet", tmp_path / "o.parquet", p, batch_rows=30)
    out, expected = pd.read_parquet(tmp_path / "o.parquet"), pf.release_table(given, p)
    for name in ("released_cell", "released_status", "released_exposed"):
        assert out[name].astype(str).tolist() == expected[name].astype(str).tolist()
    statuses = expected["released_status"].astype(str).value_counts().to_dict()
    assert said.rows == 200 and said.by_status == statuses
    assert said.persons == 6 and said.outputs == [str(tmp_path / "o.parquet")]


def test_results_do_not_depend_on_threads(tmp_path):
    trips(tmp_path / "t.csv", 300, users=40, inside=0.9)
    model().save(tmp_path / "m.npz")
    p = plan(mobility=tmp_path / "m.npz")
    pf.release_files(tmp_path / "t.csv", tmp_path / "a.csv", p, batch_rows=20)
    with ThreadPoolExecutor(3) as pool:
        pf.release_files(tmp_path / "t.csv", tmp_path / "b.csv", p, pool, batch_rows=20)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_each_call_without_a_seed_is_fresh():
    a, b = (pf.release_table(frame(), plan(seed=None))["released_cell"] for _ in range(2))
    assert (a != b).any()


def test_named_levels_of_an_index_are_columns():
    given = frame().set_index(["user", "time"])
    out = pf.release_table(given, plan())
    assert list(out.columns) == ["user", "time", *NEW]
    whole = pf.release_table(frame(), plan())
    assert out["released_status"].tolist() == whole["released_status"].tolist()


def test_rows_that_cannot_be_read(moving):
    given = frame(20, inside=1.0).astype({"user": object})
    given.loc[103, "user"] = None
    with pytest.raises(pf.InvalidTable, match="row 3: no user"):
        pf.release_table(given, plan())
    out = pf.release_table(given, plan(on_error="skip", keep=["time", "venue_id"]))
    assert out["released_status"].tolist()[3] == "malformed"
    assert out.iloc[3, :2].isna().all() and not out.iloc[4, :2].isna().any()


@pytest.mark.parametrize("kind", ["rows", "steps"])
def test_a_table_off_the_map_is_refused(tmp_path, moving, kind):
    """Swapped columns, above all. Would catch a job that releases nothing and says nothing."""
    p = plan(mobility=moving if kind == "steps" else None)
    swapped = frame().rename(columns={"lat": "lon", "lon": "lat"})
    with pytest.raises(pf.InvalidTable, match="are latitude and longitude swapped"):
        pf.release_table(swapped, p)
    swapped.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(pf.InvalidTable, match="200 of 200 places are off the map"):
        pf.release_files(tmp_path / "t.csv", tmp_path / "o.csv", p)
    assert [f.name for f in tmp_path.iterdir()] == ["t.csv"]
    more = plan(allow_outside=True, mobility=p.mobility)
    assert set(pf.release_table(swapped, more)["released_status"]) == {"outside"}
    half = frame(2, inside=1.0)
    half.iloc[1, 2] = 0.0  # half of them is not more than half
    assert pf.release_table(half, p)["released_status"].tolist()[1] == "outside"


def test_one_person_in_two_kinds_of_files(tmp_path, moving):
    """7 in a Parquet file is "7" in a text file: one budget, one number."""
    given = frame(6, inside=1.0).assign(user=7, time=pd.date_range("2020", periods=6, freq="5min"))
    given[:3].to_parquet(tmp_path / "a.parquet", index=False)
    given[3:].to_csv(tmp_path / "b.csv", index=False)
    p = plan(mobility=moving, budget=4, on_error="skip")
    said = pf.release_files([tmp_path / "a.parquet", tmp_path / "b.csv"], tmp_path / "out", p)
    assert said.by_status == {"step": 4, "budget": 2} and said.persons == 1
    whole = pf.release_table(given, p)
    released = [r["released_cell"] for r in read(tmp_path / "out" / "b.csv")]
    assert released == [f"{v:.0f}" if v == v else "" for v in whole["released_cell"][3:]]


def test_bad_sources_and_sinks(tmp_path):
    write_csv(tmp_path / "t.csv", {"user": [1], "time": [1], "lat": [35.7], "lon": [139.62]})
    with pytest.raises(pf.InvalidParameter, match="use release_table"):
        pf.release_files(frame(), tmp_path / "o.csv", plan())
    with pytest.raises(pf.InvalidParameter, match="two files are called t"):
        pf.release_files([tmp_path / "t.csv"] * 2, tmp_path / "out", plan())
    with pytest.raises(pf.InvalidParameter, match="is the input"):
        pf.release_files(tmp_path, tmp_path, plan())
    with pytest.raises(pf.InvalidParameter, match="names is for text files"):
        pf.release_table(frame(), plan(names=["user"]))


def test_half_of_a_place_is_a_place(tmp_path):
    """Would catch an output that keeps a latitude, or a second point, and is said to hold none."""
    given = frame(20, inside=1.0).assign(geometry="POINT (139.6 35.7)")
    given.to_csv(tmp_path / "t.csv", index=False)
    for keep, truth in ((["user"], False), (["lat"], True), (["geometry"], True)):
        out = pf.release_files(tmp_path / "t.csv", tmp_path / "o.csv", plan(keep=keep), force=True)
        assert out.truth == truth, keep


def test_what_was_blanked_is_gone():
    """Categories, and an index, may hold the text of a row of which nothing shall stay."""
    given = frame(4, inside=1.0)
    when = given["time"].astype(str).tolist()
    when[1] = "35.0111,139.0222"
    given["time"] = pd.Categorical(when)
    given.index = ["home", "clinic", "work", "home of a"]
    out = pf.release_table(given, plan(on_error="skip"))
    assert out["released_status"][1] == "malformed"
    assert when[1] not in out["time"].cat.categories
    assert out.index.tolist() == [0, 1, 2, 3]
    assert pf.release_table(given, plan(on_error="skip", keep="all")).index[1] == "clinic"


def test_polars_with_categories_and_rows_that_cannot_be_read():
    pl = pytest.importorskip("polars")
    given = frame(6, inside=1.0)
    when = given["time"].astype(str).tolist()
    when[2] = "never"
    table = pl.DataFrame({"user": given["user"].tolist(), "time": when, "note": list("abcdef")}
                         | {name: given[name].tolist() for name in ("lat", "lon")})  # fmt: skip
    table = table.with_columns(pl.col("user").cast(pl.Categorical))
    out = pf.release_table(table, plan(on_error="skip", keep=["note", "time"]))
    assert out["note"].to_list() == ["a", "b", None, "d", "e", "f"]
    out = pf.release_table(table, plan(on_error="skip"))  # the categories themselves
    assert out.schema["user"] == table.schema["user"]
    assert out["user"].to_list() == [*given["user"][:2], None, *given["user"][3:]]
    labels = pa.array(["a", "b", "at home", "a", "b", "c"]).dictionary_encode()
    kind, arrow = pa.dictionary(pa.uint32(), pa.string_view()), table.to_arrow()
    arrow = arrow.set_column(arrow.column_names.index("user"), "user", labels.cast(kind))
    out = pf.release_table(arrow, plan(on_error="skip"))
    assert out["user"].type == kind
    assert out["user"].chunk(0).dictionary.to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("keep", [["user"], ["user", "shape"], ["home"], "all"])
def test_geometry_that_stays_is_declared(tmp_path, keep):
    """How a column is written, so that others read it as geometry; not the box of its places."""
    shapely = pytest.importorskip("shapely")
    given = frame(4, inside=1.0)
    wkb = [shapely.Point(x, y).wkb for x, y in zip(given["lon"], given["lat"], strict=True)]
    crs = {"type": "GeographicCRS", "id": {"authority": "OGC", "code": "CRS84"}}
    about = {"encoding": "WKB", "geometry_types": ["Point"], "crs": crs}
    geo = {"version": "1.1.0", "primary_column": "shape", "columns": {
        name: {**about, "bbox": [1, 2, 3, 4], "covering": {}} for name in ("shape", "home")
    }}  # fmt: skip
    table = pa.table({"user": list("abcd"), "time": given["time"], "shape": wkb, "home": wkb})
    table = table.replace_schema_metadata({"geo": json.dumps(geo), "other": "of all"})
    pq.write_table(table, tmp_path / "t.parquet")
    p = plan(keep=keep, columns={"geometry": "shape"})
    pf.release_files(tmp_path / "t.parquet", tmp_path / "o.parquet", p)
    said = pq.read_schema(tmp_path / "o.parquet").metadata
    told = json.loads(said[b"geo"])
    names = [n for n in ("shape", "home") if keep == "all" or n in keep]
    assert list(told["columns"]) == [*names, "released_geometry"]
    assert told["primary_column"] == "released_geometry"
    if keep != "all":
        assert b"other" not in said and all(told["columns"][n] == about for n in names)


@pytest.mark.parametrize("kind", ["csv", "parquet", "table", "categories", "bytes"])
def test_a_blank_user_is_nobody(tmp_path, kind):
    """Of whatever white space: several persons would share one name, and one budget."""
    blank = [chr(k) for k in range(sys.maxunicode) if chr(k).isspace() and chr(k) not in "\r\n"]
    users = ["a", "", "\ufeff", " \u00a0 ", "b c", *blank, "\u00e9", "\u180e"]
    given = pd.DataFrame({"user": users, "time": 1.6e9, "lat": 35.7, "lon": 139.62})
    expected = ["malformed" if u in ["", "\ufeff", " \u00a0 ", *blank] else "alone" for u in users]
    p = plan(on_error="skip")
    if kind in ("csv", "parquet"):
        write = given.to_csv if kind == "csv" else given.to_parquet
        write(tmp_path / f"t.{kind}", index=False)
        out = pf.release_files(tmp_path / f"t.{kind}", tmp_path / f"o.{kind}", p)
        assert (out.by_status["malformed"], out.persons) == (expected.count("malformed"), 4)
        return
    if kind == "categories":
        given["user"] = given["user"].astype("category")
    if kind == "bytes":
        given["user"] = [user.encode() for user in users]
    assert pf.release_table(given, p)["released_status"].tolist() == expected


def test_a_work_folder_of_others_is_refused(tmp_path):
    frame(4).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "o.csv.work").mkdir()
    (tmp_path / "o.csv.work").chmod(0o777)
    with pytest.raises(pf.InvalidParameter, match="is open to others"):
        pf.release_files(tmp_path / "t.csv", tmp_path / "o.csv", plan())
    with pytest.raises(pf.InvalidTable, match="the list of files is empty"):
        pf.release_files([], tmp_path / "o", plan())
    assert not (tmp_path / "o").exists()


def test_one_column_is_no_table():
    with pytest.raises(pf.InvalidTable, match="this is a Series"):
        pf.release_table(pd.Series([1.0]), plan())
