"""From files to traces."""

import tempfile
from pathlib import Path

import numpy as np

import pglp_fast as pf


def _million():
    """A million fixes of 1,000 users, some 5 s apart, sorted."""
    rng = np.random.default_rng(0)
    base = np.datetime64("2020-01-01", "ms") + rng.integers(0, 10**9, 1000).astype(
        "timedelta64[ms]"
    )
    steps = np.cumsum(rng.integers(1000, 9000, (1000, 1000)), axis=1).astype("timedelta64[ms]")
    walk = np.cumsum(rng.normal(0, 1e-4, (2, 1000, 1000)), axis=2) + rng.uniform(
        0.02, 0.08, (2, 1000, 1)
    )
    user = np.repeat(np.arange(1000), 1000)
    return pf.Tracks.of(
        user,
        (base[:, None] + steps).reshape(-1),
        35.0 + walk[0].reshape(-1),
        139.0 + walk[1].reshape(-1),
    )


class Fixes:
    """A million fixes, cleaned and resampled."""

    def setup(self):
        self.tracks = _million()
        self.shuffled = self.tracks[np.random.default_rng(1).permutation(len(self.tracks))]
        self.grid = pf.Grid.from_bounds(lat=(35.0, 35.1), lon=(139.0, 139.1), cell_km=0.3)
        self.time_clean(), self.time_resample(), self.time_sort()

    def time_clean(self):
        self.tracks.clean(self.grid, max_speed_kmh=500)

    def time_sort(self):
        self.shuffled.sorted()

    def time_resample(self):
        self.tracks.resample(self.grid, "1min")


class Tables:
    """300,000 rows of text, and of Parquet; peak memory of a pass in batches."""

    params = ["csv", "parquet"]
    param_names = ["kind"]

    def setup(self, kind):
        from pyarrow import csv, parquet

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, f"table.{kind}")
        table = _million()[:300_000].to_arrow()
        (csv.write_csv if kind == "csv" else parquet.write_table)(table, self.path)
        self.time_read(kind)

    def teardown(self, kind):
        self.folder.cleanup()

    def time_read(self, kind):
        pf.read_table(self.path)

    def peakmem_batches(self, kind):
        for _ in pf.iter_table(self.path, batch_rows=10_000):
            pass
