"""The folder of a Geolife user as a table of rows, for releases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pglp_fast._util.packages import Later
from pglp_fast._util.times import NO_TIME

from .fix_batches import RawBatch, Reading
from .geolife import Bodies, files_of, read_bodies
from .geolife_modes import read_modes
from .parse import parse
from .reading_report import Malformed
from .values import read_numbers

pa = Later("pyarrow")
COLUMNS = ("user", "trajectory", "time", "lat", "lon", "altitude", "mode")
_ROLES = {"user": 0, "trajectory": 1, "time": 2, "lat": 3, "lon": 4, "category": 6}


class GeolifeTable:
    """All trajectories of a user, one after the other, with how the user travelled.

    Attributes
    ----------
    columns, schema : names and types
    at : number of the column for each role
    """

    kind, delimiter = "geolife", ""

    def __init__(self, folder: Path, advance: Callable[[int], None] = lambda n: None):
        self.name, self._files, self._advance = folder.name, files_of(folder), advance
        self._modes = read_modes(folder)
        kinds = (pa.string(), pa.string(), pa.timestamp("ms", "UTC"), *[pa.float64()] * 3)
        self.schema = pa.schema(list(zip(COLUMNS, (*kinds, pa.string()))))
        self.columns, self.at = list(COLUMNS), dict(_ROLES)

    def batches(self, rows: int) -> Iterator[RawBatch]:
        """At most ``rows`` rows at a time."""
        first = 0
        for found in read_bodies(self._files, self._advance):
            if isinstance(found, Malformed):
                raw = self._cut_off(found)
            elif found.size:
                raw = self._read(found)
            else:
                continue
            yield from raw._replace(first=first).parts(rows)
            first += len(raw.rows)

    def _read(self, bodies: Bodies) -> RawBatch:
        """Rows with their types; what cannot be read is null, and said."""
        raw = bodies.raw()
        read = parse(raw, "", Reading("skip", "UTC"), bodies.place)
        n = len(raw.rows)
        assert raw.numbers is not None
        bad = np.ones(n, np.bool_)
        bad[read.at] = False
        said = {place: m.reason for m in read.malformed for place in [(m.source, m.number)]}
        broken = {
            row: said.get(bodies.place(int(raw.numbers[row])), "cannot be read")
            for row in np.flatnonzero(bad).tolist()
        }
        lat, lon, ms = np.zeros(n), np.zeros(n), np.full(n, NO_TIME)
        lat[read.at], lon[read.at] = read.numbers["lat"], read.numbers["lon"]
        ms[read.at] = read.time
        stems = np.array([file.stem for file in self._files])
        height = read_numbers(raw.columns["altitude"].cast(pa.string()))[0]
        columns = [
            pa.array(np.full(n, self.name)),
            pa.array(stems[bodies.files(raw.numbers)]),
            pa.array(ms.view("datetime64[ms]"), mask=ms == NO_TIME).cast(self.schema.field(2).type),
            pa.array(lat, mask=bad | np.isnan(lat)),
            pa.array(lon, mask=bad | np.isnan(lon)),
            pa.array(height, mask=np.isnan(height)),
            pa.array(self._modes.names(ms), pa.string()),
        ]
        return self._batch(columns, raw.numbers, broken, bodies.place)

    def _batch(self, columns: list[Any], numbers: Any, broken: Any, place: Any) -> RawBatch:
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        roles = {role: rows.column(k) for role, k in self.at.items()}
        return RawBatch(rows, roles, 0, numbers, broken, place)

    def _cut_off(self, file: Malformed) -> RawBatch:
        """A file that ends within its header counts as one row, malformed."""
        columns = [pa.array([None], field.type) for field in self.schema]
        at = file.source, file.number
        return self._batch(columns, np.array([file.number]), {0: file.reason}, lambda n: at)

    def close(self) -> None:
        """Nothing is held open."""
