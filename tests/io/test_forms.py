"""Forms that users have: times by a format, decimal commas, points as well-known text."""

import gzip

import numpy as np
import pytest

import pglp_fast as pf
from table_cases import plan

pd = pytest.importorskip("pandas")


def rows(tracks):
    return list(zip(tracks.time.astype(str), tracks.lat.tolist(), tracks.lon.tolist()))


@pytest.mark.parametrize("whole", [True, False], ids=["read_table", "iter_table"])
def test_times_by_a_format(tmp_path, whole):
    """Text like ISO that means something else: would catch a format that is ignored."""
    path = tmp_path / "t.csv"
    path.write_text("user,time,lat,lon\na,2026-03-04,35.7,139.7\nb,2026-31-12,35.7,139.7\nc,,1,2\n")
    how = {"time_format": "%Y-%d-%m", "timezone": "Asia/Tokyo"}
    read = pf.read_table(path, **how) if whole else next(pf.iter_table(path, **how))
    expected = ["2026-04-02T15:00:00.000", "2026-12-30T15:00:00.000", "NaT"]
    assert read.time.astype(str).tolist() == expected
    frame = pd.read_csv(path)
    assert pf.read_table(frame, **how).time.astype(str).tolist() == expected


def test_formats_with_zones_and_fractions(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "user;time;lat;lon\na;04.03.26 07:08:09,125 +0100;35,7;139,7\n"
        "b;31.02.26 0:0:0,0 +0000;1;2\n"
    )
    how = {"time_format": "%d.%m.%y %H:%M:%S,%f %z", "decimal": ",", "timezone": "Asia/Tokyo"}
    with pytest.raises(pf.InvalidTable, match=r"line 3: time '31\.02\.26 .* is not a time"):
        pf.read_table(path, **how)
    read = pf.read_table(path, on_error="skip", **how)
    assert rows(read) == [("2026-03-04T06:08:09.125", 35.7, 139.7)]
    with pytest.raises(pf.InvalidParameter, match="time_format must be as datetime"):
        pf.read_table(path, time_format="iso")
    with pytest.raises(pf.InvalidParameter, match="decimal must be"):
        pf.read_table(path, decimal="'")


def test_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user;time;lat;lon\na;1;35,70;139,7\nb;2;35;+1,5e2\nc;3;1.000,5;3\n")
    read = pf.read_table(path, decimal=",", on_error="skip")
    assert read.lat.tolist() == [35.7, 35.0] and read.lon.tolist() == [139.7, 150.0]
    assert "line 4: lat '1.000,5' is not a number" in str(read.report.malformed[0])
    with pytest.raises(pf.InvalidTable, match="line 2: lat '35,70' is not a number"):
        pf.read_table(path)


def test_points_as_text(tmp_path):
    path = tmp_path / "t.csv"
    texts = [
        "POINT (139.7 35.7)",
        "SRID=4326;point(-1.5e1 +2)",
        "",
        "POINT EMPTY",
        "POINT Z (1 2 3)",
    ]
    frame = pd.DataFrame({"user": list("abcde"), "time": range(5), "wkt": texts})
    frame.to_csv(path, index=False)
    for given in (path, frame):
        read = pf.read_table(given, on_error="skip")
        assert read.lat.tolist()[:2] == [35.7, 2.0] and read.lon.tolist()[:2] == [139.7, -15.0]
        assert np.isnan(read.lat[2:]).all() and len(read) == 4
        with pytest.raises(pf.InvalidTable, match=r"'POINT Z \(1 2 3\)' is not a point in WKT"):
            pf.read_table(given)


def test_a_plan_reads_as_it_says(tmp_path):
    text = "user;time;wkt\na;04.03.2026 08:00;POINT (139.62 35.7)\nb;04.03.2026 08:05;POINT (1 2)\n"
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    p = plan(time_format="%d.%m.%Y %H:%M")
    said = pf.release_files(tmp_path / "t.csv.gz", tmp_path / "o.csv", p)
    assert said.by_status == {"alone": 1, "outside": 1} and said.kept == ["user", "time"]
    assert p.digest != plan().digest != plan(decimal=",").digest
    p.to_toml(tmp_path / "p.toml")
    assert pf.Plan.from_toml(tmp_path / "p.toml").digest == p.digest
    out = (tmp_path / "o.csv").read_text()
    assert "POINT" not in out and out.startswith("user;time;released_lat")
