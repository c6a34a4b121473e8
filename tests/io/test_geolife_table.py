"""Geolife folders as a source of releases, and how people travelled."""

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import run
from pglp_fast.io.geolife_modes import read_modes

parquet = pytest.importorskip("pyarrow.parquet")
HEAD = "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255\r\n0\r\n"
BOX = {"lat": (39.8, 39.9), "lon": (116.3, 116.4), "cell_km": 0.5}
LABELS = (
    "Start Time\tEnd Time\tTransportation Mode\n"
    "2008/10/24 02:01:00\t2008/10/24 02:02:00\tbus\n"
    "2008/10/23 02:00:00\t2008/10/23 02:01:00\twalk\n"
)


def fixes(day, n, seed=0):
    rng = np.random.default_rng(seed)
    return [
        f"{39.8 + 0.1 * rng.random():.6f},{116.3 + 0.1 * rng.random():.6f},0,{k},39744.1,"
        f"2008-10-{day},02:{k:02d}:00\r\n"
        for k in range(n)
    ]


@pytest.fixture
def data(tmp_path):
    for user, days in (("000", (23, 24)), ("010", (23,))):
        at = tmp_path / "Data" / user / "Trajectory"
        at.mkdir(parents=True)
        for day in days:
            lines = fixes(day, 5, int(user) + day)
            (at / f"200810{day}020000.plt").write_text(HEAD + "".join(lines), newline="")
    (tmp_path / "Data" / "000" / "labels.txt").write_text(LABELS)
    return tmp_path / "Data"


def test_modes(data):
    tracks = pf.read_geolife(data, modes=True)
    assert tracks.columns["category"].values().tolist() == [
        "walk", "walk", None, None, None, None, "bus", "bus", None, None, *[None] * 5,
    ]  # fmt: skip
    assert "category" not in pf.read_geolife(data).columns
    for line, text, reason in (
        (2, "2008/10/23 02:00:00\twalk\n", "must be start, end and mode"),
        (2, "yesterday\t2008/10/23 02:01:00\twalk\n", "'yesterday' is not a time"),
    ):
        (data / "000" / "labels.txt").write_text(LABELS.split("\n")[0] + "\n" + text)
        with pytest.raises(pf.InvalidTable, match=rf"000/labels.txt, line {line}: {reason}"):
            read_modes(data / "000")


@pytest.mark.parametrize("rows", [3, 1000])
def test_a_folder_is_released_a_file_a_user(data, tmp_path, rows):
    p = pf.Plan(grid=pf.Grid.from_bounds(**BOX), policy="blocks:3", epsilon=1.0, seed=4, keep="all")
    said = pf.release_files(data, tmp_path / "out", p, batch_rows=rows)
    assert said.rows == 15 and said.persons == 2
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == ["000.parquet", "010.parquet"]
    out = parquet.read_table(tmp_path / "out" / "000.parquet")
    read = pf.read_geolife(data, users=[0], modes=True)
    assert out["lat"].to_pylist() == read.lat.tolist()
    assert out["mode"].to_pylist() == read.columns["category"].values().tolist()
    assert out["trajectory"].to_pylist() == ["20081023020000"] * 5 + ["20081024020000"] * 5
    assert out["altitude"].to_pylist() == [0, 1, 2, 3, 4] * 2
    frame = out.select(["user", "time", "lat", "lon"])
    assert pf.release_table(frame, p)["released_cell"].equals(out["released_cell"])


def test_bad_rows_are_named_by_file_and_line(data, tmp_path):
    bad = data / "000" / "Trajectory" / "20081024020000.plt"
    lines = fixes(24, 3)
    lines[1] = lines[1].replace("39.", "x")
    bad.write_text(HEAD + "".join(lines), newline="")
    (data / "010" / "Trajectory" / "20081023020000.plt").write_text("one line\n")
    where = r"000/Trajectory/20081024020000\.plt, line 8: lat 'x"
    p = pf.Plan(grid=pf.Grid.from_bounds(**BOX), policy="blocks:3", epsilon=1.0)
    with pytest.raises(pf.InvalidTable, match=where):
        pf.release_files(data, tmp_path / "out", p)
    skip = pf.Plan(grid=p.grid, policy="blocks:3", epsilon=1.0, on_error="skip", keep="all")
    said = pf.release_files(data, tmp_path / "out", skip)
    assert said.by_status == {"alone": 7, "malformed": 2}
    assert said.malformed[1].endswith("line 2: the file ends within its six lines of header")
    out = parquet.read_table(tmp_path / "out" / "000.parquet").slice(5)
    assert out["released_status"].to_pylist() == ["alone", "malformed", "alone"]
    assert out["lat"].null_count == 1


def test_from_the_command_line(data, tmp_path, capsys):
    out = tmp_path / "private"
    run("release", data, "-o", out, "--epsilon", 1, "--policy", "blocks:3", "--cell-km", 0.5)
    assert {f.name for f in out.iterdir()} == {"000.parquet", "010.parquet"}
    assert parquet.read_schema(out / "010.parquet").names[:2] == ["user", "time"]
