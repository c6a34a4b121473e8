"""Reading and resampling, against pandas doing the same in the same run."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import DATA

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def million():
    """A million fixes of 1,000 users, some 5 s apart, sorted."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(1000), 1000)
    base = np.datetime64("2020-01-01", "ms") + (rng.integers(0, 10**9, 1000)).astype(
        "timedelta64[ms]"
    )
    steps = np.cumsum(rng.integers(1000, 9000, (1000, 1000)), axis=1).astype("timedelta64[ms]")
    walk = np.cumsum(rng.normal(0, 1e-4, (2, 1000, 1000)), axis=2) + rng.uniform(
        0.02, 0.08, (2, 1000, 1)
    )
    return pf.Tracks.of(
        user,
        (base[:, None] + steps).reshape(-1),
        35.0 + walk[0].reshape(-1),
        139.0 + walk[1].reshape(-1),
    )


def test_a_million_fixes_resampled_in_a_fifth_of_what_pandas_takes(million, ratio, promise):
    """The last fix of each minute for each user, located: groupby and resample in pandas, then
    the same ``Grid.locate``."""
    grid = pf.Grid.from_bounds(lat=(35.0, 35.1), lon=(139.0, 139.1), cell_km=0.3)
    frame = million.to_pandas().set_index("time")

    def theirs():
        last = frame.groupby("user")[["lat", "lon"]].resample("1min").last()
        return grid.locate(last["lat"].to_numpy(), last["lon"].to_numpy())

    assert np.array_equal(million.resample(grid, "1min").cells, theirs())
    value = ratio(lambda: million.resample(grid, "1min"), theirs, rounds=2)
    promise(value, 0.2)


def test_a_csv_is_read_no_slower_than_twice_pandas(million, tmp_path, ratio, promise):
    """300,000 rows with text times; pandas' C parser, and ours, which knows the line of every
    row that it cannot read."""
    path = tmp_path / "a.csv"
    million[:300_000].to_pandas().to_csv(path, index=False)

    def theirs():
        return pd.read_csv(path, parse_dates=["time"])

    back = theirs()
    ours = pf.read_table(path)
    assert np.array_equal(ours.lat, pd.to_numeric(back["lat"]).to_numpy())
    value = ratio(lambda: pf.read_table(path), theirs, rounds=2)
    promise(value, 2.0)


def test_cleaning_costs_less_than_pandas_does_for_duplicates_alone(million, ratio, promise):
    """All five steps, against ``drop_duplicates`` on user and time."""
    grid = pf.Grid.from_bounds(lat=(35.0, 35.1), lon=(139.0, 139.1), cell_km=0.3)
    frame = million.to_pandas()
    value = ratio(
        lambda: million.clean(grid, max_speed_kmh=500),
        lambda: frame.drop_duplicates(["user", "time"]),
        rounds=2,
    )
    promise(value, 1.0)


@pytest.mark.parametrize(("which", "most"), [("made up", 0.8), ("Geolife", 0.4)])
def test_from_a_table_to_a_model_against_pandas(million, tmp_path, ratio, promise, which, most):
    """Read, clean, resample to 5 minutes, fit; against pandas, which reads the same file, drops
    what is outside and what is there twice, and takes the last fix of each user and step. (It fits
    nothing.)"""
    box = {"lat": (35.0, 35.1), "lon": (139.0, 139.1)}
    path = tmp_path / "fixes.parquet"
    if which == "made up":
        million.to_pandas().to_parquet(path)
    else:
        path = DATA / "geolife_beijing.parquet"
        box = {"lat": (39.831741, 39.988695), "lon": (116.273804, 116.467438)}
        if not path.exists():
            pytest.skip("needs geolife_beijing.parquet")
    grid = pf.Grid.from_bounds(**box, cell_km=0.34)
    columns = ["user", "time", "lat", "lon"]

    def ours():
        fixes = pf.read_table(path, columns={"trajectory": None}).clean(grid)
        return pf.MobilityModel.fit(grid, fixes.resample(grid, "5min", max_gap="1h"))

    def theirs():
        frame = pd.read_parquet(path, columns=columns)
        frame = frame[frame["lat"].between(*box["lat"]) & frame["lon"].between(*box["lon"])]
        frame = frame.drop_duplicates(["user", "time"])
        last = frame.groupby(["user", frame["time"].dt.floor("5min")])[["lat", "lon"]].last()
        return grid.locate(last["lat"].to_numpy(), last["lon"].to_numpy())

    promise(ratio(ours, theirs, rounds=1), most)
