"""Reading fixes: original formats in their exact syntax, tables of other libraries, and files
that are not as they should be."""

import bz2
import csv
import gzip
import io
import json
import lzma
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import pglp_fast as pf
from cases import DATA, large, real
from pglp_fast._util.times import NO_TIME, to_utc
from pglp_fast.errors import InvalidParameter, InvalidTable, MissingPackage
from pglp_fast.io.labels import Coded, canonical
from pglp_fast.io.values import read_numbers, read_times

SIMPLE = (
    "user,time,lat,lon\nann,2020-01-02T03:04:05Z,35.5,139.25\nbob,2020-01-02 "
    "03:04:06,35.625,-139.75\n"
)


def write(path, text, *, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def rows_of(tracks):
    """(user, time, lat, lon) of each row."""
    times = [str(t) for t in tracks.time.astype("datetime64[s]")]
    return list(
        zip(
            tracks.user.values().tolist(),
            times,
            tracks.lat.tolist(),
            tracks.lon.tolist(),
            strict=True,
        )
    )


SIMPLE_ROWS = [
    ("ann", "2020-01-02T03:04:05", 35.5, 139.25),
    ("bob", "2020-01-02T03:04:06", 35.625, -139.75),
]


# Original formats

PLT = (
    "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My "
    "Track,0,0,2,8421376\r\n0\r\n"
    "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r\n"
    "39.984683,116.31845,0,-777,39744.1202546296,2008-10-23,02:53:10\r\n"
)


def geolife(folder):
    write(
        folder / "Data/001/Trajectory/20081024000000.plt", PLT.replace("2008-10-23", "2008-10-24")
    )
    write(folder / "Data/000/Trajectory/20081023025304.plt", PLT)
    write(folder / "Data/000/labels.txt", "Start Time\tEnd Time\tTransportation Mode\r\n")
    write(
        folder / "Data/100/Trajectory/20000101000000.plt", PLT.replace("2008-10-23", "2000-01-01")
    )
    return folder


def test_geolife_folder(tmp_path):
    """Catches: header lines read as rows, users by order of the disk, names such as 000 turned
    into numbers."""
    tracks = pf.read_geolife(geolife(tmp_path))
    assert rows_of(tracks) == [
        ("000", "2008-10-23T02:53:04", 39.984702, 116.318417),
        ("000", "2008-10-23T02:53:10", 39.984683, 116.31845),
        ("001", "2008-10-24T02:53:04", 39.984702, 116.318417),
        ("001", "2008-10-24T02:53:10", 39.984683, 116.31845),
        ("100", "2000-01-01T02:53:04", 39.984702, 116.318417),
        ("100", "2000-01-01T02:53:10", 39.984683, 116.31845),
    ]
    assert tracks.columns["trajectory"].values().tolist()[::2] == [
        "20081023025304",
        "20081024000000",
        "20000101000000",
    ]
    assert tracks.report.to_dict() == {
        "rows": 6,
        "dropped": {"malformed rows": 0},
        "kept": 6,
        "malformed": [],
    }
    assert len(tracks.clean()) == 4  # the year-2000 stamps go by default


def test_geolife_some_users(tmp_path):
    """Labels are folder names, whichever are picked: "100" alone stays text."""
    geolife(tmp_path)
    assert pf.read_geolife(tmp_path, users=["100"]).users.tolist() == ["100"]
    assert pf.read_geolife(tmp_path / "Data" / "001").users.tolist() == ["001"]
    with pytest.raises(InvalidTable, match="no trajectories of user '007'"):
        pf.read_geolife(tmp_path, users=["000", "007"])
    with pytest.raises(InvalidTable, match=r"holds no <user>/Trajectory/\*.plt"):
        pf.read_geolife(tmp_path / "nowhere")


def test_geolife_malformed(tmp_path):
    """A broken line is named by file and line of the file, header included; a file cut off in
    its header too."""
    folder = geolife(tmp_path)
    write(
        folder / "Data/002/Trajectory/a.plt",
        PLT + "39.9,116.3,0,492,39744.12,2008-10-23,25:00:00\r\n39.9,116.3\r\n",
    )
    write(folder / "Data/003/Trajectory/b.plt", "Geolife trajectory\r\nWGS 84\r\n")
    with pytest.raises(
        InvalidTable,
        match=r"002/Trajectory/a.plt, line 9: time '2008-10-23' '25:00:00' is not a time; on_error",
    ):
        pf.read_geolife(folder)
    tracks = pf.read_geolife(folder, on_error="skip")
    assert len(tracks) == 8
    assert tracks.report.rows == 11
    assert [str(m) for m in tracks.report.malformed] == [
        "002/Trajectory/a.plt, line 9: time '2008-10-23' '25:00:00' is not a time",
        "002/Trajectory/a.plt, line 10: 2 fields where 7 are due",
        "003/Trajectory/b.plt, line 3: the file ends within its six lines of header",
    ]
    assert "002" in tracks.users  # and 003 is not, in the rows
    assert "003" not in tracks.user.values()


def test_geolife_progress(tmp_path, capsys):
    pf.read_geolife(geolife(tmp_path), progress=True)
    assert "3 of 3 files" in capsys.readouterr().err


GOWALLA = (
    "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
    "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315\n"
)


def test_gowalla(tmp_path):
    tracks = pf.read_gowalla(write(tmp_path / "loc-gowalla_totalCheckins.txt", GOWALLA))
    assert rows_of(tracks) == [
        (0, "2010-10-19T23:55:27", 30.2359091167, -97.7951395833),
        (0, "2010-10-18T22:17:43", 30.2691029532, -97.7493953705),
    ]
    assert tracks.columns["venue"].values().tolist() == [22847, 420315]
    assert tracks.sorted().time[0] < tracks.sorted().time[1]


FOURSQUARE = (
    "470,49bbd6c0f964a520f4531fe3,4bf58dd8d48988d127951735,Arts & Crafts "
    "Store,40.719810375488535,-74.00258103213994,-240,"
    "Tue Apr 03 18:00:09 +0000 2012\r\n"
)
FOURSQUARE_HEADER = (
    "userId,venueId,venueCategoryId,venueCategory,latitude,longitude,"
    "timezoneOffset,utcTimestamp\r\n"
)


@pytest.mark.parametrize("form", ["csv", "csv without header", "txt"])
def test_foursquare(tmp_path, form):
    """The .csv, and the original .txt: tabs, Latin-1, quotes that mean nothing.

    More digits than a double has.
    """
    more = (
        FOURSQUARE.replace("Arts & Crafts Store", "Café")
        .replace("Apr 03", "Feb 29")
        .replace("470,", "95,")
    )
    text, encoding = FOURSQUARE + more, "utf-8"
    if form == "csv":
        text = FOURSQUARE_HEADER + text
    if form == "txt":
        text, encoding = (
            text.replace(",", "\t").replace("\r\n", "\n").replace("Arts", '"Arts'),
            "latin-1",
        )
    tracks = pf.read_foursquare(write(tmp_path / "dataset_TSMC2014_NYC.x", text, encoding=encoding))
    place = (40.719810375488535, -74.00258103213994)
    assert rows_of(tracks) == [
        (470, "2012-04-03T18:00:09", *place),
        (95, "2012-02-29T18:00:09", *place),
    ]
    quote = '"' if form == "txt" else ""
    assert tracks.columns["category"].values().tolist() == [f"{quote}Arts & Crafts Store", "Café"]
    assert tracks.columns["venue"].labels.tolist() == ["49bbd6c0f964a520f4531fe3"]


POIS = (
    "poi_id,y,x,category,y_id,x_id,2D_id,count\n"
    "0,35.005,139.005,arts_entertainment/Art Gallery/4,7,7,231,3\n"
    "1,35.005,139.006,food/Ramen / Noodle House/3,6,7,199,2\n"
    "2,35.005,139.007,food/Cafe/3,6,7,199,1\n"
    "3,35.005,139.025,food/Brazilian Restaurant/,6,7,199,9\n"
    "4,36.500,139.025,home/departure/8,6,7,199,9\n"
)


def test_peopleflow_pois(tmp_path):
    """A category may hold slashes and miss its number; a cell takes what leads by visits (a tie:
    the lower id) or by places."""
    pois = pf.read_peopleflow_pois(write(tmp_path / "POI_TK.csv", POIS))
    assert pois.category.values().tolist() == ["arts_entertainment", "food", "food", "food", "home"]
    assert pois.subcategory.values().tolist()[1] == "Ramen / Noodle House"
    assert pois.category_id.tolist() == [4, 3, 3, -1, 8]
    assert pois.visits.tolist() == [3, 2, 1, 9, 9]
    assert pois.venue.values().tolist() == [0, 1, 2, 3, 4]
    grid = pf.Grid.from_bounds(lat=(35.0, 35.02), lon=(139.0, 139.04), cell_km=1.0)
    assert set(pois.cell_categories(grid).tolist()) == {3, -1}
    assert (
        pois.cell_categories(grid)[grid.locate(35.005, 139.005)] == 3
    )  # 3 visits each: the lower id
    assert pois.cell_categories(grid, weight="places")[grid.locate(35.005, 139.006)] == 3
    more = write(
        tmp_path / "more.csv", POIS + "5,35.005,139.007,arts_entertainment/Zoo/4,6,7,199,1\n"
    )
    assert pf.read_peopleflow_pois(more).cell_categories(grid)[grid.locate(35.005, 139.005)] == 4
    points, location = pois.points()
    assert points.size == 5
    assert np.allclose(points.latlon(location), np.stack([pois.lat, pois.lon], axis=1), atol=1e-5)
    coarse, together = pois.points(resolution_km=1.0)
    assert (coarse.size, together[0] == together[1]) == (3, True)
    assert pf.categories(grid, pois.cell_categories(grid), 6).n_edges == 0
    with pytest.raises(InvalidTable, match="line 7: category 'food' is not name/name/number"):
        pf.read_peopleflow_pois(write(tmp_path / "bad.csv", POIS + "5,35,139,food,1,1,1,1\n"))
    skipped = pf.read_peopleflow_pois(
        write(tmp_path / "bad.csv", POIS + "5,35,139,food,1,1,1,1\n6,35,,food/a/3,1,1,1,1\n"),
        on_error="skip",
    )
    assert len(skipped) == 5
    assert [m.number for m in skipped.report.malformed] == [7, 8]
    with pytest.raises(InvalidTable, match="must have the columns poi_id, y, x"):
        pf.read_peopleflow_pois(write(tmp_path / "other.csv", SIMPLE))


# Which column is which


@pytest.mark.parametrize(
    "header",
    [
        "user,time,lat,lon",
        "uid,datetime,lat,lng",
        "user_id,tracked_at,latitude,longitude",
        "userId,utcTimestamp,Latitude,Longitude",
        "User ID, Time UTC ,LAT,Long",
        "device_id,timestamp,lat,lon",
    ],
)
def test_usual_names(tmp_path, header):
    path = write(tmp_path / "a.csv", SIMPLE.replace("user,time,lat,lon", header))
    assert rows_of(pf.read_table(path)) == SIMPLE_ROWS


def test_names_given(tmp_path):
    """By name, by number, in part, without a header line, and in any order."""
    text = (
        "y;who;x;when;user\n35.5;ann;139.25;2020-01-02T03:04:05Z;zoe\n"
        "35.625;bob;-139.75;2020-01-02T03:04:06Z;zoe\n"
    )
    path = write(tmp_path / "a.csv", text)
    columns = {"user": "who", "time": "when", "lat": "y", "lon": "x"}
    assert rows_of(pf.read_table(path, columns=columns)) == SIMPLE_ROWS
    assert (
        rows_of(pf.read_table(path, columns={"user": 1, "time": 3, "lat": 0, "lon": 2}))
        == SIMPLE_ROWS
    )
    bare = write(tmp_path / "b.csv", text.split("\n", 1)[1])
    assert (
        rows_of(pf.read_table(bare, names=["lat", "user", "lon", "time", "other"])) == SIMPLE_ROWS
    )
    with pytest.raises(
        InvalidTable,
        match=r"a.csv: no column 'y2' for the lat among 'y', 'who', 'x', 'when', 'user'",
    ):
        pf.read_table(path, columns=columns | {"lat": "y2"})
    with pytest.raises(InvalidTable, match="column 'who' cannot be both the user and the venue"):
        pf.read_table(path, columns=columns | {"venue": 1})
    with pytest.raises(
        InvalidTable, match="no role 'latitude': the roles are user, time, lat, lon, trajectory"
    ):
        pf.read_table(path, columns={"latitude": "y"})


def test_missing_columns_say_what_was_found_and_what_is_needed(tmp_path):
    path = write(tmp_path / "a.csv", "who,time,y,lon\n1,2020-01-01,2,3\n")
    with pytest.raises(
        InvalidTable,
        match=r"a.csv: no column for user, lat among 'who', 'time', 'y', 'lon': name it with "
        r"columns=",
    ):
        pf.read_table(path)


def test_two_candidates_are_not_guessed_between(tmp_path):
    path = write(tmp_path / "a.csv", "user,time,datetime,lat,lon\n1,2020-01-01,2021-01-01,2,3\n")
    with pytest.raises(
        InvalidTable,
        match=r"'time', 'datetime' may all be the time: say which with columns=\{'time': 'time'\}",
    ):
        pf.read_table(path)
    assert rows_of(pf.read_table(path, columns={"time": "datetime"})) == [
        (1, "2021-01-01T00:00:00", 2.0, 3.0)
    ]


def test_further_columns(tmp_path):
    """Trajectory, venue and category come along; None leaves one out; an empty label is none."""
    path = write(
        tmp_path / "a.csv",
        "uid,tid,time,lat,lng,venue_id,category\n1,7,2020-01-01,2,3,v,food\n1,8,2020-01-01,2,3,,food\n",
    )
    tracks = pf.read_table(path)
    assert {name: column.values().tolist() for name, column in tracks.columns.items()} == {
        "trajectory": [7, 8], "venue": ["v", None], "category": ["food", "food"],
    }  # fmt: skip
    assert set(pf.read_table(path, columns={"venue": None, "category": None}).columns) == {
        "trajectory"
    }


def test_date_and_clock_in_two_columns(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "user,date,clock,lat,lon\nann,2020/1/2,3:04:05,35.5,139.25\nbob,2020-01-02,03:04:06.5,35.625,-139.75\n",
    )
    tracks = pf.read_table(path, columns={"time": ("date", "clock")})
    assert rows_of(tracks) == SIMPLE_ROWS
    assert tracks.time[1] == np.datetime64("2020-01-02T03:04:06.500")


# Odd files


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: "\ufeff" + t,
        lambda t: t.rstrip("\n"),
        lambda t: t.replace("\n", "\n\n"),
        lambda t: "\n\r\n" + t,
        lambda t: t.replace(",", "\t"),
        lambda t: t.replace(",", " | ").replace("|", "|"),
        lambda t: '"' + t.replace(",", '","').replace("\n", '"\n"')[:-1],
        lambda t: t.replace("ann", '"ann"').replace("35.5", "+3.55e1 "),
    ],
    ids=[
        "windows",
        "bom",
        "no last newline",
        "blank lines",
        "blank lines first",
        "tabs",
        "bars",
        "quoted",
        "some quoted",
    ],
)
def test_ways_to_write_it(tmp_path, change):
    tracks = pf.read_table(write(tmp_path / "a.csv", change(SIMPLE)))
    assert [(u.strip(), *rest) for u, *rest in rows_of(tracks)] == SIMPLE_ROWS


def test_gzipped_under_any_name(tmp_path):
    path = tmp_path / "table.dat"
    path.write_bytes(gzip.compress(SIMPLE.encode()))
    assert rows_of(pf.read_table(path)) == SIMPLE_ROWS
    path.write_bytes(gzip.compress(SIMPLE.encode() * 50)[:-20])
    with pytest.raises(InvalidTable, match=r"table.dat cannot be unzipped"):
        pf.read_table(path)


def test_empty(tmp_path):
    for text in ("", "\n\n", "\ufeff"):
        with pytest.raises(InvalidTable, match=r"a.csv is empty: a table has a header line"):
            pf.read_table(write(tmp_path / "a.csv", text))
    tracks = pf.read_table(write(tmp_path / "a.csv", "user,time,lat,lon\n"))
    assert len(tracks) == 0
    assert tracks.users.tolist() == []
    assert len(pf.read_gowalla(write(tmp_path / "g.txt", ""))) == 0
    assert "0 fixes of 0 users" in repr(tracks)
    assert str(tracks.clean().report).splitlines()[-1].strip() == "0 rows kept"
    grid = pf.Grid(2, 2, origin=(0.0, 0.0))
    traces = tracks.clean(grid).resample(grid, "1h")
    assert (len(traces), traces.to_array().shape, traces.periods(2)) == (0, (0, 0), [])


def test_not_a_table(tmp_path):
    with pytest.raises(InvalidTable, match="is not there"):
        pf.read_table(tmp_path / "nothing.csv")
    with pytest.raises(InvalidTable, match=r"a.csv is UTF-16: save it as UTF-8"):
        pf.read_table(write(tmp_path / "a.csv", SIMPLE, encoding="utf-16"))
    with pytest.raises(
        InvalidTable, match="line 2: longer than 1,048,576 bytes: is this a text table"
    ):
        pf.read_table(write(tmp_path / "a.csv", SIMPLE.splitlines()[0] + "\n" + "x" * (1 << 23)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidTable, match="nor the folders <user>/Trajectory of Geolife"):
        pf.read_table(tmp_path / "empty")
    plt = geolife(tmp_path / "geolife")
    assert np.array_equal(pf.read_table(plt).lat, pf.read_geolife(plt).lat)
    with pytest.raises(InvalidTable, match=r"not list: make arrays one with Tracks.of"):
        pf.read_table([1, 2])
    with pytest.raises(InvalidTable, match=r"nothing.txt cannot be read"):
        pf.read_gowalla(tmp_path / "nothing.txt")


@pytest.mark.parametrize(
    ("name", "octets", "said"),
    [
        ("a.parquet", SIMPLE.encode(), r"a.parquet is not Parquet"),
        ("a.parquet", b"", r"a.parquet is not Parquet"),
        ("a.csv", b"PK\x03\x04" + SIMPLE.encode(), "a.csv is a zip archive: unpack it"),
        ("a.csv.gz", gzip.compress(b"PK\x03\x04..."), "a.csv.gz is a zip archive"),
        ("a.csv.gz", gzip.compress(b"PAR1..."), "is Parquet inside of gzip"),
        ("a.csv", bz2.compress(SIMPLE.encode()), "packed by bzip2"),
        ("a.csv", lzma.compress(SIMPLE.encode()), "packed by xz"),
        ("a.csv", SIMPLE.encode() + b"a\0b\n", "has bytes that no text has"),
        ("a.csv", b'"' + b"x" * 200_000 + b'"' + SIMPLE.encode(), "header line cannot be read"),
    ],
    ids=["text", "empty", "zip", "zip in gzip", "parquet in gzip", "bzip2", "xz", "nul", "header"],
)
def test_what_is_not_as_its_name_says(tmp_path, name, octets, said):
    """Refused, and not read as text."""
    (tmp_path / name).write_bytes(octets)
    with pytest.raises(InvalidTable, match=said):
        pf.read_table(tmp_path / name)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("octet", [b"x", b"\n", b"\r\n"])
def test_a_gzip_bomb_takes_bounded_memory(tmp_path, octet, before):
    """64 MB in 64 kB: one endless line is refused at its first MB, blank lines are passed over."""
    path, table = tmp_path / "a.csv.gz", SIMPLE.encode()
    bomb = octet * ((1 << 26) // len(octet))
    path.write_bytes(gzip.compress(bomb + table if before else table + bomb, 1))
    del bomb
    tracemalloc.start()
    try:
        if octet == b"x":
            with pytest.raises(InvalidTable, match=r"line \d: longer than 1,048,576 bytes"):
                pf.read_table(path)
        else:
            assert rows_of(pf.read_table(path)) == SIMPLE_ROWS
        assert tracemalloc.get_traced_memory()[1] < 32_000_000
    finally:
        tracemalloc.stop()


HINT = ": write the column as 2024-12-25 10:00, or as seconds since 1970"
BAD = [
    ("ann,2020-13-02,1,2", "time '2020-13-02' is not a time" + HINT),
    ("ann,2021-02-29,1,2", "time '2021-02-29' is not a time" + HINT),
    ("ann,2020-01-01T24:00:00,1,2", "time '2020-01-01T24:00:00' is not a time" + HINT),
    ("ann,2020-01-01T00:00:00 CET,1,2", "time '2020-01-01T00:00:00 CET' is not a time" + HINT),
    ("ann,2020-01-01T00:00:61,1,2", "time '2020-01-01T00:00:61' is not a time" + HINT),
    ("ann,2020-01-01T00:60:00,1,2", "time '2020-01-01T00:60:00' is not a time" + HINT),
    ("ann,1900-02-29T00:00:00,1,2", "time '1900-02-29T00:00:00' is not a time" + HINT),
    ("ann,2020-01-01T00:00:00Zoo,1,2", "time '2020-01-01T00:00:00Zoo' is not a time" + HINT),
    (
        "ann,2020-01-01T00:00:00+00:000,1,2",
        "time '2020-01-01T00:00:00+00:000' is not a time" + HINT,
    ),
    ("ann,yesterday,1,2", "time 'yesterday' is not a time" + HINT),
    ("ann,20200101000000,1,2", "time '20200101000000' is not a time" + HINT),
    ("ann,2020-01-01,north,2", "lat 'north' is not a number"),
    ("ann,2020-01-01,1,2.3.4", "lon '2.3.4' is not a number"),
    ("ann,2020-01-01,1,inf", "lon 'inf' is not a number"),
    (",2020-01-01,1,2", "no user"),
    ("ann,2020-01-01,1", "3 fields where 4 are due"),
    ("ann,2020-01-01,1,2,3", "5 fields where 4 are due"),
    ('"ann,2020-01-01,1,2', "a quote is not closed on its line"),
    ('"ann"x,2020-01-01,1,2', "text after a closing quote"),
    ('ann,"2020-01-01,1,2', "a quote is not closed on its line"),
    ('"ann""",2020-01-01,"1""2"3,2', "text after a closing quote"),
    ('"ann"",2020-01-01,1,2', "a quote is not closed on its line"),
    ('"an""n,2020-01-01,1,"', "1 fields where 4 are due"),
    ("ann,2020-01-01\r,1,2", "a carriage return within the line"),
    ("ann,1e9,1,nan(1)", "lon 'nan(1)' is not a number"),
]


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_malformed_rows(tmp_path, row, reason):
    """Catches: a broken row that shifts the line numbers, spoils its neighbours, or leaves its
    label behind."""
    lines = SIMPLE.splitlines()
    path = write(
        tmp_path / "a.csv",
        "\n".join([lines[0], "", lines[1], row.replace("ann", "eve"), lines[2]]) + "\n",
    )
    with pytest.raises(InvalidTable) as error:
        pf.read_table(path)
    assert (
        str(error.value)
        == f"a.csv, line 4: {reason}; on_error='skip' leaves such rows out and reports them"
    )
    tracks = pf.read_table(path, on_error="skip")
    assert rows_of(tracks) == SIMPLE_ROWS
    assert tracks.users.tolist() == ["ann", "bob"]
    assert tracks.report.rows == 3
    assert tracks.report.to_dict()["dropped"] == {"malformed rows": 1}
    assert [str(m) for m in tracks.report.malformed] == [f"a.csv, line 4: {reason}"]
    assert f"malformed: a.csv, line 4: {reason}" in str(tracks.report)


def test_many_malformed_rows_are_counted_and_the_first_named(tmp_path):
    path = write(tmp_path / "a.csv", "user,time,lat,lon\n" + "x\n" * 250 + "1,2020-01-01,2,3\n")
    report = pf.read_table(path, on_error="skip").report
    assert (report.rows, report.kept, len(report.malformed), report.malformed[-1].number) == (
        251,
        1,
        100,
        101,
    )
    assert str(report).splitlines()[-1].strip() == "and 245 more"


def test_missing_values_are_not_malformed(tmp_path):
    """A fix without time or place is read, and left to cleaning."""
    rows = [
        "a,,1,2",
        "a,2020-01-01,,2",
        "a,2020-01-01,NaN,2",
        "a,NaT,1,null",
        "a,2020-01-01,NA,None",
        "a,2020-01-01,n/a,2",
        "a,2020-01-01,1,2",
    ]
    tracks = pf.read_table(write(tmp_path / "a.csv", "user,time,lat,lon\n" + "\n".join(rows)))
    assert np.isnat(tracks.time).tolist() == [True, False, False, True, False, False, False]
    assert np.isnan(tracks.lat).tolist() == [False, True, True, False, True, True, False]
    assert np.isnan(tracks.lon).tolist() == [False, False, False, True, True, False, False]
    assert len(tracks.clean()) == 1


def test_options_are_checked(tmp_path):
    path = write(tmp_path / "a.csv", SIMPLE)
    for options in (
        {"on_error": "ignore"},
        {"timezone": "Mars/Olympus"},
        {"delimiter": ";;"},
        {"delimiter": "\n"},
    ):
        with pytest.raises(InvalidParameter):
            pf.read_table(path, **options)
    with pytest.raises(InvalidParameter):
        pf.iter_table(path, batch_rows=0)


# Labels


def test_labels(tmp_path):
    """Numbers only where every label is one as it stands; quotes off, doubled quotes undone, in
    the order of appearance."""

    def users(*names):
        text = "user,time,lat,lon\n" + "".join(f"{name},2020-01-01,1,2\n" for name in names)
        tracks = pf.read_table(write(tmp_path / "a.csv", text))
        return tracks.users.tolist(), tracks.user.codes.tolist()

    assert users("7", "-3", "7", "12") == ([7, -3, 12], [0, 1, 0, 2])
    assert users("7", "007") == (["7", "007"], [0, 1])
    assert users("1", "x") == (["1", "x"], [0, 1])
    assert users("9" * 18) == ([10**18 - 1], [0])
    assert users("9" * 30) == (["9" * 30], [0])
    assert users('"a,b"', '"say ""hi"""', "é東", '"é東"') == (
        ["a,b", 'say "hi"', "é東"],
        [0, 1, 2, 2],
    )
    assert users("snap:2", "snap:10", "snap:2") == (["snap:2", "snap:10"], [0, 1, 0])


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
        max_size=40,
    ),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
)
def test_labels_are_numbered_as_they_first_appear(texts, numbers):
    """Catches: labels merged, reordered, or taken for what they are not (quotes, digits)."""
    for said, values in ((texts, [canonical(text) for text in texts]), (numbers, numbers)):
        if values:
            coded = Coded.of(said)
            assert coded.labels.tolist() == list(dict.fromkeys(values))
            assert coded.values().tolist() == values


@pytest.mark.parametrize("n", [3_000, pytest.param(100_000, marks=large)])
def test_more_labels_than_the_table_had_room_for(n):
    """Catches: codes lost or changed when the hash table, the arena or the bounds grow."""
    rng = np.random.default_rng(0)
    values = [f"user-{k:x}" * (1 + k % 7) for k in rng.integers(0, n // 3, n)]
    coded = Coded.of(values)
    first = {label: code for code, label in enumerate(dict.fromkeys(values))}
    assert coded.codes.tolist() == [first[v] for v in values]
    assert coded.values().tolist() == values


# Numbers and times, against Python's own


@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.floats(-180, 180).map(lambda x: f"{x:.7f}"),
            st.tuples(st.integers(0, 10**25), st.integers(-330, 320)).map(
                lambda p: f"{p[0]}e{p[1]}"
            ),
            st.tuples(st.integers(-(10**20), 10**20), st.integers(0, 10**20)).map(
                lambda p: f"{p[0]}.{p[1]:020d}"
            ),
            st.sampled_from(
                [
                    "0",
                    "-0",
                    "+1.",
                    ".5",
                    "1e5",
                    "1E-3",
                    "00012.50",
                    "9007199254740993",
                    "9007199254740992",
                ]
            ),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_numbers_are_the_nearest_doubles(texts):
    """To the last bit, as float() has them; catches a rounding error in the fast path and a slow
    path that never runs."""
    values, bad = read_numbers(pa.array(texts))
    assert not bad.any()
    assert [v.hex() for v in values.tolist()] == [float(t).hex() for t in texts]


def test_numbers_close_to_half_a_unit():
    """Exactly between two doubles, and one digit to either side: where a quotient in doubles
    alone would guess."""
    rng = np.random.default_rng(0)
    texts = [
        ".9999999999999999999",
        "9999999999999999999",
        "-.9999999999999999999",
        "999999999999999999.9",
    ]
    for mantissa, places in zip(
        rng.integers(2**52, 2**53, 300).tolist(), rng.integers(1, 3, 300).tolist(), strict=True
    ):
        middle = (2 * mantissa + 1) * 5**places
        for digits in (str(middle - 1), str(middle), str(middle + 1)):
            texts += [f"{digits}e-{places}", f"{digits[:-places]}.{digits[-places:]}"]
    values, bad = read_numbers(pa.array(texts))
    assert not bad.any()
    assert [v.hex() for v in values.tolist()] == [float(t).hex() for t in texts]


@given(st.lists(st.text("0123456789+-.eE_ xinfa", max_size=8), min_size=1, max_size=20))
def test_what_is_a_number(texts):
    """Accepts what float() does, but for underscores, inf and words; never reads another value."""
    values, bad = read_numbers(pa.array(texts))
    for text, value, wrong in zip(texts, values.tolist(), bad.tolist(), strict=True):
        plain = text.strip(" ")
        try:
            expected = float(plain) if not set(plain) & set("_ifa") else None
        except ValueError:
            expected = None
        if plain == "" or plain.lower() in ("na", "nan"):
            assert np.isnan(value)
            assert not wrong
        elif expected is None:
            assert wrong
        elif not wrong:
            assert value == expected
        else:
            assert "e" in plain.lower()
            assert len(plain.lower().split("e")[1]) > 4  # exponents of five digits are refused


@given(
    st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), min_size=1, max_size=10),
    st.integers(-15 * 60, 15 * 60),
)
def test_iso_times(moments, minutes):
    """All ways to write a moment give the same milliseconds as Python's datetime."""
    zone = timezone(timedelta(minutes=minutes))
    expected = [int((m - datetime(1970, 1, 1)) // timedelta(milliseconds=1)) for m in moments]
    forms = {
        "T": lambda m: m.isoformat(),
        "space": lambda m: m.isoformat(" ", "milliseconds"),
        "Z": lambda m: m.isoformat() + "Z",
        "UTC": lambda m: m.isoformat(" ") + " UTC",
        "slashes": lambda m: m.isoformat(" ").replace("-", "/"),
    }
    for name, form in forms.items():
        got, bad = read_times(pa.array([form(m) for m in moments]), "UTC")
        assert not bad.any(), name
        assert got.tolist() == expected, name
    for sign in (lambda s: s, lambda s: s[:-3] + s[-2:]):  # +09:00 and +0900
        texts = [sign(m.replace(tzinfo=zone).isoformat(timespec="milliseconds")) for m in moments]
        got, bad = read_times(pa.array(texts), "UTC")
        assert not bad.any()
        assert got.tolist() == [e - minutes * 60_000 for e in expected]
    texts = [m.strftime("%a %b %d %H:%M:%S +0000 ") + f"{m.year:04d}" for m in moments]
    got, bad = read_times(pa.array(texts), "UTC")
    assert not bad.any()
    assert got.tolist() == [e // 1000 * 1000 for e in expected]


def test_leap_days_and_seconds():
    texts = [
        "2000-02-29T00:00:00",
        "2000-02-29",
        "2008-12-31T23:59:60Z",
        "2008-12-31 23:59:60 UTC",
        "2009-01-01T00:00",
    ]
    got, bad = read_times(pa.array(texts), "UTC")
    assert not bad.any()
    leap, new_year = (int(np.datetime64(t, "ms").astype(int)) for t in ("2000-02-29", "2009-01-01"))
    assert got.tolist() == [leap, leap, new_year, new_year, new_year]


def test_numbers_since_1970():
    moment = int(datetime(2012, 4, 3, 18, 17, 18, tzinfo=UTC).timestamp())
    texts = [
        f"{moment}",
        f"{moment}.25",
        f"{moment}000",
        f"{moment}000000",
        f"{moment}000000000",
        "0",
        "-1",
    ]
    got, bad = read_times(pa.array(texts), "UTC")
    assert not bad.any()
    assert got.tolist() == [
        moment * 1000,
        moment * 1000 + 250,
        moment * 1000,
        moment * 1000,
        moment * 1000,
        0,
        -1000,
    ]


@pytest.mark.parametrize(
    "zone",
    ["Asia/Tokyo", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe"],
)
def test_local_times(zone):
    """As zoneinfo has it, over years with all their clock changes (in St John's they were at a
    minute past midnight)."""
    rng = np.random.default_rng(0)
    base = int(datetime(2005, 1, 1, tzinfo=UTC).timestamp()) * 1000
    local = base + rng.integers(0, 8 * 365 * 86_400_000, 3000)
    around = [
        int((datetime(2008, 11, 2) - datetime(1970, 1, 1)).total_seconds()) * 1000 + k * 60_000
        for k in range(-200, 200)
    ]
    local = np.concatenate([local, around, [NO_TIME]])
    got = to_utc(local, ZoneInfo(zone))
    start = datetime(1970, 1, 1)
    expected = [
        ms
        - round(ZoneInfo(zone).utcoffset(start + timedelta(milliseconds=ms)).total_seconds() * 1000)
        for ms in local[:-1].tolist()
    ]
    assert got.tolist() == [*expected, NO_TIME]


def test_timezone_only_moves_times_that_have_none(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "user,time,lat,lon\n1,2020-01-01T09:00:00,1,2\n1,2020-01-01T00:00:00Z,1,2\n1,1577836800,1,2\n",
    )
    times = pf.read_table(path, timezone="Asia/Tokyo").time
    assert (times == np.datetime64("2020-01-01T00:00:00")).all()


# Batches


def many_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (f"u{u}", int(t), float(la), float(lo))
        for u, t, la, lo in zip(
            rng.integers(0, 9, n),
            rng.integers(10**8, 10**9, n),
            rng.uniform(-90, 90, n),
            rng.uniform(-180, 180, n),
            strict=True,
        )
    ]


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 1000])
def test_batches(tmp_path, batch_rows, monkeypatch):
    """The same rows whatever the batches and the blocks read from disk; codes and lines go
    through from batch to batch."""
    from pglp_fast.io import text_lines

    monkeypatch.setattr(text_lines, "_BLOCK", 100)
    rows = many_rows(200)
    out = io.StringIO()
    csv.writer(out).writerows([("user", "time", "lat", "lon"), *rows])
    lines = out.getvalue().splitlines()
    lines[50] = "broken"
    path = write(tmp_path / "a.csv", "\r\n".join(lines))
    whole = pf.read_table(path, on_error="skip")
    assert rows_of(whole) == [
        (u, str(np.datetime64(t, "s")), la, lo) for k, (u, t, la, lo) in enumerate(rows) if k != 49
    ]  # fmt: skip
    batches = list(pf.iter_table(path, on_error="skip", batch_rows=batch_rows))
    assert all(len(b) <= batch_rows for b in batches)
    assert sum(b.report.rows for b in batches) == 200
    assert np.concatenate([b.number for b in batches]).tolist() == [
        k + 2 for k in range(200) if k != 49
    ]
    assert [str(m) for b in batches for m in b.report.malformed] == [
        "a.csv, line 51: 1 fields where 4 are due"
    ]
    assert np.concatenate([b.user.codes for b in batches]).tolist() == whole.user.codes.tolist()
    assert batches[-1].users.tolist() == whole.users.tolist()
    for name in ("time", "lat", "lon"):
        assert np.array_equal(
            np.concatenate([getattr(b, name) for b in batches]), getattr(whole, name)
        )


def test_a_batch_raises_with_the_line_in_the_file(tmp_path):
    path = write(tmp_path / "a.csv", "user,time,lat,lon\n" + "1,2020-01-01,2,3\n" * 10 + "oops\n")
    batches = pf.iter_table(path, batch_rows=3)
    assert [len(next(batches)) for _ in range(3)] == [3, 3, 3]
    with pytest.raises(InvalidTable, match=r"a.csv, line 12: 1 fields where 4 are due"):
        next(batches)


@large
def test_batches_of_a_long_file_take_bounded_memory(tmp_path):
    """Catches: a reader that keeps what it has given away.

    A 24 MB file through batches of 1,000 rows.
    """
    path = write(
        tmp_path / "a.csv", "user,time,lat,lon\n" + "1,2020-01-01T00:00:00Z,2.5,3.5\n" * 800_000
    )
    next(pf.iter_table(path, batch_rows=1000))
    tracemalloc.start()
    assert sum(len(b) for b in pf.iter_table(path, batch_rows=1000)) == 800_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


def test_folder_of_files(tmp_path):
    """In the order of names; a column that one file lacks is none there; progress in bytes."""
    write(
        tmp_path / "part-2.csv",
        "user,time,lat,lon,venue\nbob,2020-01-02T03:04:06Z,35.625,-139.75,v\n",
    )
    (tmp_path / "part-1.csv.gz").write_bytes(
        gzip.compress(SIMPLE.splitlines(True)[0].encode() + SIMPLE.splitlines(True)[1].encode())
    )
    write(tmp_path / "_SUCCESS", "")
    tracks = pf.read_table(tmp_path)
    assert rows_of(tracks) == SIMPLE_ROWS
    assert tracks.columns["venue"].values().tolist() == [None, "v"]


def test_progress(tmp_path, capsys):
    path = write(tmp_path / "a.csv", SIMPLE)
    pf.read_table(path, progress=True)
    assert f"{path.stat().st_size:,} of {path.stat().st_size:,} bytes" in capsys.readouterr().err


# Tables in memory, and Parquet


def frame(**changes):
    pd = pytest.importorskip("pandas")
    columns = {
        "user": ["ann", "bob"],
        "time": pd.to_datetime(["2020-01-02T03:04:05", "2020-01-02T03:04:06"]),
        "lat": [35.5, 35.625],
        "lon": [139.25, -139.75],
    }
    return pd.DataFrame(columns | changes)


def test_pandas():
    pd = pytest.importorskip("pandas")
    assert rows_of(pf.read_table(frame())) == SIMPLE_ROWS
    assert rows_of(pf.read_table(frame().set_index(["user", "time"]))) == SIMPLE_ROWS
    assert (
        rows_of(pf.read_table(frame().rename(columns={"time": "t"}).set_index("t"))) == SIMPLE_ROWS
    )
    assert [len(b) for b in pf.iter_table(frame(), batch_rows=1)] == [1, 1]
    assert (
        rows_of(
            pf.read_table(frame().rename(columns={"user": "uid", "time": "datetime", "lon": "lng"}))
        )
        == SIMPLE_ROWS
    )
    assert rows_of(pf.read_table(frame(user=pd.Categorical(["ann", "bob"])))) == SIMPLE_ROWS
    assert (
        rows_of(
            pf.read_table(
                frame(lat=["35.5", "35.625"], time=["2020-01-02T03:04:05Z", "2020/01/02 03:04:06"])
            )
        )
        == SIMPLE_ROWS
    )
    assert rows_of(pf.read_table(frame(time=[1577934245, 1577934246]))) == SIMPLE_ROWS
    assert rows_of(pf.read_table(frame(time=[1577934245.0, 1577934246.25]))) == SIMPLE_ROWS
    tokyo = frame()["time"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    assert rows_of(pf.read_table(frame(time=tokyo), timezone="Europe/Berlin")) == SIMPLE_ROWS
    local = tokyo.dt.tz_localize(None)
    assert rows_of(pf.read_table(frame(time=local), timezone="Asia/Tokyo")) == SIMPLE_ROWS
    assert pf.read_table(frame(user=["1", "2"])).users.tolist() == [
        "1",
        "2",
    ]  # typed as text, so text
    assert pf.read_table(frame(user=[7.0, 9.0])).users.tolist() == [7, 9]
    assert pf.read_table(frame(user=np.array([7, 9], np.uint16))).users.tolist() == [7, 9]


def test_pandas_gaps_and_faults():
    pd = pytest.importorskip("pandas")
    tracks = pf.read_table(
        frame(lat=[np.nan, 35.625], time=[pd.NaT, pd.Timestamp("2020-01-02T03:04:06")])
    )
    assert np.isnat(tracks.time[0])
    assert np.isnan(tracks.lat[0])
    with pytest.raises(InvalidTable, match="DataFrame, row 1: no user"):
        pf.read_table(frame(user=["ann", None]))
    assert rows_of(pf.read_table(frame(user=["ann", None]), on_error="skip")) == SIMPLE_ROWS[:1]
    assert pf.read_table(frame(user=[7.0, np.nan]), on_error="skip").users.tolist() == [7]
    with pytest.raises(InvalidTable, match="row 1: time 'soon' is not a time"):
        pf.read_table(frame(time=["2020-01-01", "soon"]))
    with pytest.raises(InvalidTable, match="row 0: lat 'x' is not a number"):
        pf.read_table(frame(lat=["x", "1"]))
    with pytest.raises(InvalidTable, match="user must be whole numbers or text"):
        pf.read_table(frame(user=[1.5, 2.5]))
    with pytest.raises(InvalidTable, match="lat must be numbers"):
        pf.read_table(frame(lat=[True, False]))
    with pytest.raises(InvalidTable, match="time must be timestamps, text or numbers"):
        pf.read_table(frame(time=[True, False]))
    with pytest.raises(InvalidTable, match="no column for lat among 'user', 'time', 'y', 'lon'"):
        pf.read_table(frame().rename(columns={"lat": "y"}))
    with pytest.raises(InvalidTable, match="join date and time of day into one column"):
        pf.read_table(frame(date=["a", "b"]), columns={"time": ("date", "time")})
    with pytest.raises(InvalidParameter, match="names is for text files, and this is a DataFrame"):
        pf.read_table(frame(), names=["a"])


def test_arrow_and_back():
    """Through every kind of text and dictionary; out to Arrow and pandas and in again."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table(frame())
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ):
        given = table.set_column(0, "user", table["user"].cast(kind))
        assert rows_of(pf.read_table(given)) == SIMPLE_ROWS
    assert rows_of(pf.read_table(table.to_batches()[0])) == SIMPLE_ROWS
    assert (
        rows_of(pf.read_table(pa.concat_tables([table.slice(0, 1), table.slice(1, 1)])))
        == SIMPLE_ROWS
    )
    tracks = pf.Tracks.of(
        ["b", "a", "b"],
        ["2020-01-01", "2020-01-02", "NaT"],
        [1, 2, np.nan],
        [4, 5, 6],
        venue=[7, 7, 8],
        category=["x", "y", "x"],
    )
    for out in (tracks.to_arrow(), tracks.to_pandas()):
        back = pf.read_table(out)
        assert back.user.values().tolist() == ["b", "a", "b"]
        assert np.array_equal(back.time, tracks.time, equal_nan=True)
        assert np.array_equal(back.lat, tracks.lat, equal_nan=True)
        assert back.columns["venue"].values().tolist() == [7, 7, 8]
        assert back.columns["category"].values().tolist() == ["x", "y", "x"]
    assert str(tracks.to_pandas()["time"].dt.tz) == "UTC"


def test_any_arrow_stream():
    """What polars, duckdb and others offer."""
    pa = pytest.importorskip("pyarrow")

    class Stream:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    assert rows_of(pf.read_table(Stream(pa.table(frame())))) == SIMPLE_ROWS


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = many_rows(500)
    table = pa.table(
        {
            "user_id": [r[0] for r in rows],
            "tracked_at": pa.array([r[1] for r in rows], pa.timestamp("s", "UTC")),
            "latitude": [r[2] for r in rows],
            "longitude": [r[3] for r in rows],
            "rest": [None] * 500,
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=130)
    whole = pf.read_table(tmp_path / "a.parquet")
    assert rows_of(whole) == [(u, str(np.datetime64(t, "s")), la, lo) for u, t, la, lo in rows]
    batches = list(pf.iter_table(tmp_path / "a.parquet", batch_rows=64))
    assert max(len(b) for b in batches) <= 64
    assert np.concatenate([b.number for b in batches]).tolist() == list(range(500))
    assert np.concatenate([b.user.codes for b in batches]).tolist() == whole.user.codes.tolist()
    with pytest.raises(
        InvalidParameter, match=r"delimiter is for text files, and a.parquet is Parquet"
    ):
        pf.read_table(tmp_path / "a.parquet", delimiter=",")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:900])
    with pytest.raises(InvalidTable, match=r"b.parquet cannot be read as Parquet"):
        pf.read_table(tmp_path / "b.parquet")
    write(tmp_path / "b.parquet", "").unlink()
    numbers = table.set_column(0, "user_id", pa.array(range(500)))
    parquet.write_table(numbers, tmp_path / "c.parquet")
    with pytest.raises(
        InvalidTable,
        match=r"c.parquet: the user is integer, and text in the files before: make them alike",
    ):
        pf.read_table(tmp_path)


def test_points_in_a_geometry_column():
    """GeoParquet's two ways to write points, and what is no plain point."""
    pa = pytest.importorskip("pyarrow")
    shared = {"user": ["ann", "bob"], "time": frame()["time"]}
    head = b"\x01\x01\x00\x00\x00"
    wkb = [head + np.array([139.25, 35.5]).tobytes(), head + np.array([-139.75, 35.625]).tobytes()]
    assert rows_of(pf.read_table(pa.table(shared | {"geometry": wkb}))) == SIMPLE_ROWS
    points = pa.array([{"x": 139.25, "y": 35.5}, {"x": -139.75, "y": 35.625}])
    assert rows_of(pf.read_table(pa.table(shared | {"geom": points}))) == SIMPLE_ROWS
    gap = pf.read_table(pa.table(shared | {"geometry": [None, wkb[1]]}))
    assert np.isnan(gap.lat[0])
    assert gap.lon[1] == -139.75
    for wrong in ([b"\x00" + w[1:] for w in wkb], [w + b"\0" * 8 for w in wkb]):
        with pytest.raises(InvalidTable, match="must be plain 2-d points"):
            pf.read_table(pa.table(shared | {"geometry": wrong}))
    with pytest.raises(InvalidTable, match="must be points"):
        pf.read_table(pa.table(shared | {"geometry": [1, 2]}))


CRS = {
    "degrees": {"type": "GeographicCRS", "name": "WGS 84 (CRS84)"},
    "degrees and height": {
        "type": "CompoundCRS",
        "name": "WGS 84 + EGM96",
        "components": [{"type": "GeographicCRS", "name": "WGS 84"}, {"type": "VerticalCRS"}],
    },
    "metres": {"type": "ProjectedCRS", "name": "WGS 84 / Pseudo-Mercator"},
    "metres and height": {
        "type": "CompoundCRS",
        "name": "JGD2011 + height",
        "components": [{"type": "ProjectedCRS", "name": "JGD2011"}, {"type": "VerticalCRS"}],
    },
    "name of degrees": "OGC:CRS84",
    "name of metres": "EPSG:3857",
    "none": None,
}


@pytest.mark.parametrize("crs", CRS)
@pytest.mark.parametrize("where", ["GeoParquet", "GeoArrow"])
def test_points_must_be_in_degrees(tmp_path, crs, where):
    """Catches: metres of a projection read as degrees."""
    parquet = pytest.importorskip("pyarrow.parquet")
    head = b"\x01\x01\x00\x00\x00"
    wkb = [head + np.array([139.25, 35.5]).tobytes(), head + np.array([-139.75, 35.625]).tobytes()]
    table = pa.table({"user": ["ann", "bob"], "time": frame()["time"], "geometry": wkb})
    told = {"encoding": "WKB", "crs": CRS[crs]}
    if where == "GeoParquet":
        facts = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": told}}
        table = table.replace_schema_metadata({"geo": json.dumps(facts)})
    else:
        field = table.schema.field("geometry")
        field = field.with_metadata({"ARROW:extension:metadata": json.dumps(told)})
        table = table.cast(table.schema.set(2, field))
    parquet.write_table(table, tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", table):
        if "metres" not in crs:
            assert rows_of(pf.read_table(source)) == SIMPLE_ROWS
            continue
        name = CRS[crs]["name"] if isinstance(CRS[crs], dict) else CRS[crs]
        with pytest.raises(InvalidTable) as error:
            pf.read_table(source)
        assert f"'geometry' are in {name}, not in degrees: bring them to" in str(error.value)


def test_users_that_are_objects():
    """UUIDs, NumPy strings and mixtures are labels as their text."""
    users = [UUID(int=1), UUID(int=2)]
    texts = [str(user) for user in users]
    assert pf.read_table(frame(user=users)).users.tolist() == texts
    assert pf.read_table(frame(user=[*map(np.str_, texts)])).users.tolist() == texts
    assert pf.read_table(frame(user=np.array([7, "x"], object))).users.tolist() == ["7", "x"]
    column = pa.array([user.bytes for user in users], pa.binary(16))
    if hasattr(pa, "uuid"):
        table = pa.table(frame()).set_column(0, "user", column.cast(pa.uuid()))
        assert pf.read_table(table).users.tolist() == texts
    with pytest.raises(InvalidTable, match="row 1: no user"):
        pf.read_table(frame(user=[users[0], None]))


def test_geodataframe():
    geopandas = pytest.importorskip("geopandas")
    given = frame().drop(columns=["lat", "lon"])
    geo = geopandas.GeoDataFrame(
        given, geometry=geopandas.points_from_xy(frame()["lon"], frame()["lat"]), crs=4326
    )
    assert rows_of(pf.read_table(geo)) == SIMPLE_ROWS
    assert (
        rows_of(
            pf.read_table(
                geo.rename_geometry("geom").rename(
                    columns={"user": "user_id", "time": "tracked_at"}
                )
            )
        )
        == SIMPLE_ROWS
    )
    with pytest.raises(InvalidTable, match=r"not in degrees: use .to_crs"):
        pf.read_table(geo.to_crs(3857))


def test_missing_packages(tmp_path, monkeypatch):
    """What needs a package says how to get it; arrays need none."""
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    tracks = pf.Tracks.of(*zip(*SIMPLE_ROWS, strict=True))
    assert rows_of(tracks) == SIMPLE_ROWS
    text = write(tmp_path / "a.csv", SIMPLE)
    write(tmp_path / "a.parquet", "PAR1...")
    for call in (
        tracks.to_arrow,
        tracks.to_pandas,
        lambda: pf.read_table(text),
        lambda: pf.read_gowalla(text),
        lambda: pf.read_table(tmp_path / "a.parquet"),
        lambda: pf.read_table([1]),
    ):
        with pytest.raises(MissingPackage, match=r"pip install pyarrow|pip install \w+"):
            call()
    assert issubclass(MissingPackage, ImportError)


def test_tracks_of_arrays():
    tracks = pf.Tracks.of(
        [5, 3, 5],
        np.array(["2020-01-01", "2020-01-02", "2019-01-01"], "datetime64[D]"),
        [1, 2, 3],
        [4, 5, 6],
    )
    assert tracks.users.tolist() == [5, 3]
    assert tracks.sorted().lat.tolist() == [3.0, 1.0, 2.0]  # users in the order they first appear
    assert tracks[1:].user.values().tolist() == [3, 5]
    assert tracks[tracks.lat > 1].lon.tolist() == [5.0, 6.0]
    for wrong in (
        lambda: pf.Tracks.of([1], ["x"], [1], [2]),
        lambda: pf.Tracks.of([1, 2], ["2020-01-01"], [1], [2]),
        lambda: pf.Tracks.of([1.5], ["2020-01-01"], [1], [2]),
        lambda: pf.Tracks.of([1], ["2020-01-01"], [1], [2], speed=[3]),
        lambda: tracks[0],
    ):
        with pytest.raises(InvalidTable):
            wrong()


# The real files


@real
@large
def test_real_gowalla():
    tracks = pf.read_gowalla(DATA / "raw/gowalla/loc-gowalla_totalCheckins.txt")
    assert len(tracks) == 10_000
    assert rows_of(tracks)[0] == (0, "2010-10-19T23:55:27", 30.2359091167, -97.7951395833)
    world = pf.read_table(DATA / "gowalla_all.csv.gz")
    assert len(world) == 356_110
    angeles = pf.read_table(DATA / "gowalla_la.csv.gz")
    assert (len(angeles), len(angeles.users)) == (3_103, 357)


@real
@large
def test_real_foursquare():
    """The raw file is cut off in its last line; the rest equals the table made from it by other
    means."""
    path = DATA / "raw/foursquare/dataset_TSMC2014_TKY.csv"
    with pytest.raises(InvalidTable, match="line 8263: 3 fields where 8 are due"):
        pf.read_foursquare(path)
    raw, made = (
        pf.read_foursquare(path, on_error="skip"),
        pf.read_table(DATA / "foursquare_tokyo.csv.gz"),
    )
    assert rows_of(raw) == rows_of(made)
    assert raw.columns["category"].values().tolist() == made.columns["category"].values().tolist()


@real
@large
def test_real_peopleflow():
    pois = pf.read_peopleflow_pois(DATA / "raw/peopleflow/POI_TK.csv")
    assert (len(pois), pois.report.kept) == (17_820, 17_820)
    assert int((pois.category_id == 3).sum()) > 5_000
    with gzip.open(DATA / "peopleflow_tokyo_pois.csv.gz", "rt", newline="") as file:
        made = list(csv.DictReader(file))
    assert [int(r["category_id"] or -1) for r in made] == pois.category_id.tolist()
    assert [r["subcategory"] for r in made] == pois.subcategory.values().tolist()
    assert [float(r["lat"]) for r in made] == pois.lat.tolist()
    points, location = pois.points()
    assert (
        points.size == len(np.unique(location)) < len(pois)
    )  # some are within a metre of each other
    names = {"lat": "lat_cell_center", "lon": "lon_cell_center"}
    utc = pf.read_table(
        DATA / "peopleflow_tokyo_cells.csv.gz", columns=names | {"time": "time_utc"}
    )
    tokyo = pf.read_table(
        DATA / "peopleflow_tokyo_cells.csv.gz",
        columns=names | {"time": "time_jst"},
        timezone="Asia/Tokyo",
    )
    assert np.array_equal(utc.time, tokyo.time)


@real
@large
def test_real_geolife_folder_equals_the_table():
    """The raw PLT files, against the same points in the table (inside the box that the table was
    cut to)."""
    pytest.importorskip("pyarrow")
    raw = pf.read_geolife(DATA / "raw/geolife")
    assert raw.users.tolist() == ["000", "003", "085", "128"]
    inside = raw[
        (raw.lat >= 39.83) & (raw.lat <= 39.99) & (raw.lon >= 116.27) & (raw.lon <= 116.47)
    ]
    table = pf.read_table(DATA / "geolife_beijing.parquet")
    keys = set(
        zip(
            inside.user.values().astype(int).tolist(),
            inside.columns["trajectory"].values().astype(int).tolist(),
            strict=True,
        )
    )
    for user, trajectory in sorted(keys):
        ours = inside[
            (inside.user.values() == f"{user:03d}")
            & (inside.columns["trajectory"].values() == str(trajectory))
        ]
        theirs = table[(table.user.codes == table.users.tolist().index(user))]
        theirs = theirs[theirs.columns["trajectory"].values() == trajectory]
        assert np.array_equal(ours.time, theirs.time)
        assert np.array_equal(ours.lat, theirs.lat)
        assert np.array_equal(ours.lon, theirs.lon)


@pytest.mark.parametrize(
    "values",
    [[7, 7.0], [7.0, "7"], [np.float64(7), "7"], [7.0, b"7", 7], [np.str_("7"), np.int32(7)],
     [Decimal("7.00"), 7], [Decimal("7"), "7", 7.0], [True, "true"], [np.bool_(True), "true"],
     [UUID(int=7), str(UUID(int=7))]],
)  # fmt: skip
def test_a_label_has_one_name_whatever_types_its_column_mixes(values):
    """A person has one budget: 7, 7.0, b"7" and "7" are one."""
    pd = pytest.importorskip("pandas")
    objects = np.empty(len(values), object)
    objects[:] = values
    for column in (pd.Series(objects), pd.Series(objects).astype("category")):
        frame = pd.DataFrame({"user": column, "time": pd.Timestamp("2024-01-01"), "lat": 1.0,
                              "lon": 1.0})  # fmt: skip
        assert len({str(v) for v in pf.read_table(frame).users.tolist()}) == 1
    assert len({str(v) for v in Coded.of(values).labels.tolist()}) == 1


@pytest.mark.parametrize(
    "values", [[7.5, "x"], [float("inf"), "x"], [1e16, 10**16], [object(), "x"], [(1, 2), "x"]]
)
def test_labels_of_which_nothing_says_who_is_meant_are_refused(values):
    pd = pytest.importorskip("pandas")
    objects = np.empty(len(values), object)
    objects[:] = values
    frame = pd.DataFrame({"user": objects, "time": pd.Timestamp("2024-01-01"), "lat": 1.0,
                          "lon": 1.0})  # fmt: skip
    with pytest.raises(InvalidTable, match="whole numbers or text"):
        pf.read_table(frame)


def test_columns_of_objects_of_polars_are_refused():
    """They cross to Arrow as addresses."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"user": pl.Series([7.0, "7"], dtype=pl.Object), "time": [0, 0],
                          "lat": [1.0, 1.0], "lon": [1.0, 1.0]})  # fmt: skip
    with pytest.raises(InvalidTable, match="objects of any type"):
        pf.read_table(frame)
