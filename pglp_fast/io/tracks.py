"""Fixes of users: who was where, when, column by column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.io import fixes as kernels
from pglp_fast._util.packages import need
from pglp_fast.errors import InvalidTable

from .columns import OPTIONAL
from .labels import Coded
from .reading_report import Report

if TYPE_CHECKING:
    from pglp_fast.space.grid import Grid
    from pglp_fast.space.locations import Locations

    from .traces import Traces


@dataclass(frozen=True, repr=False)
class Tracks:
    """Fixes (GPS points, check-ins) of users. Read with ``read_table`` and its kin, or made with
    ``Tracks.of``.

    Attributes
    ----------
    user : who, as codes and labels
    time : datetime64[ms], UTC; NaT where the table has none
    lat, lon : degrees; NaN where the table has none
    columns : further columns of labels, of "trajectory", "venue", "category" those that the table
        has
    report : rows read and rows left out, step by step
    number : line of each row in its text file (from 1) or row of its table (from 0); only from
        ``iter_table``
    """

    user: Coded
    time: NDArray[np.datetime64]
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    columns: Mapping[str, Coded] = field(default_factory=dict)
    report: Report = field(default_factory=lambda: Report(0))
    number: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls, user: ArrayLike, time: ArrayLike, lat: ArrayLike, lon: ArrayLike, **columns: ArrayLike
    ) -> "Tracks":
        """From arrays of equal length: users as whole numbers or text, times as datetime64 (UTC),
        degrees.

        ``columns``: trajectory, venue, category.
        """
        strange = set(columns) - set(OPTIONAL)
        if strange:
            raise InvalidTable(
                f"no column {sorted(strange)[0]!r}: further columns are {', '.join(OPTIONAL)}"
            )
        try:
            when = np.asarray(time, "datetime64[ms]").reshape(-1)
            north, east = (
                np.array(np.asarray(values, np.float64).reshape(-1)) for values in (lat, lon)
            )
        except (TypeError, ValueError) as error:
            raise InvalidTable(f"time must be datetime64, lat and lon numbers: {error}") from None
        coded = {name: Coded.of(values) for name, values in columns.items()}
        who = Coded.of(user)
        lengths = {len(who), len(when), len(north), len(east), *map(len, coded.values())}
        if len(lengths) != 1:
            raise InvalidTable(f"columns must be equally long, got {sorted(lengths)}")
        return cls(who, np.array(when), north, east, coded, Report(len(when)))

    @property
    def users(self) -> NDArray[Any]:
        """The users' labels, by code."""
        return self.user.labels

    @property
    def ms(self) -> NDArray[np.int64]:
        """Times as milliseconds since 1970."""
        return self.time.view(np.int64)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: Any) -> "Tracks":
        """Some of the rows: a slice, a mask or an array of row numbers.

        The report is that of all.
        """
        if isinstance(rows, int | np.integer):
            raise InvalidTable(
                "take rows with a slice, a mask or an array of row numbers: tracks[5:6] is row 5"
            )
        number = None if self.number is None else self.number[rows]
        time, lat, lon = (
            np.ascontiguousarray(column[rows]) for column in (self.time, self.lat, self.lon)
        )
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Tracks(self.user[rows], time, lat, lon, columns, self.report, number)

    def sorted(self) -> "Tracks":
        """By user (in the order they first appear), then time; fixes of one moment stay in the
        order of the table."""
        if kernels.in_order(self.user.codes, self.ms):
            return self
        low, high = int(self.ms.min()), int(self.ms.max())
        width = high - low + 1
        if (int(self.user.codes.max()) + 1) * width < 1 << 62:  # one key is twice as fast as two
            return self[
                np.argsort(self.user.codes * np.int64(width) + (self.ms - low), kind="stable")
            ]
        return self[np.lexsort((self.ms, self.user.codes))]

    def clean(
        self,
        grid: "Grid | None" = None,
        *,
        window: tuple[Any, Any] | None = ("2001-01-01", "2100-01-01"),
        duplicates: str = "first",
        max_speed_kmh: float | None = None,
    ) -> "Tracks":
        """Leave out what cannot be true; ``report`` says how much, step by step. The result is
        sorted.

        In this order: (1) coordinates that are missing or not on Earth; (2) times that are missing
        or outside the window; (3) points outside the grid; (4) duplicates; (5) impossible speeds.

        Parameters
        ----------
        grid : the map; None: points anywhere are kept
        window : (first moment, first moment after), UTC, either may be None. Loggers that lost
            their clock stamp 1970, 1980 or 2000: the default leaves these out
        duplicates : of fixes with the same user and time keep the "first" of the table, the "last",
            or "all"
        max_speed_kmh : leave out a fix that can only be reached faster than this from the last fix
            kept of its user (great circle); a user's first fix is believed
        """
        from .clean import clean

        return clean(self, grid, window=window, duplicates=duplicates, max_speed_kmh=max_speed_kmh)

    def resample(
        self,
        locations: "Locations",
        step: Any,
        *,
        rule: str = "last",
        carry: Any = None,
        max_gap: Any = None,
        split_trajectories: bool = False,
        min_steps: int = 1,
        origin: Any = "1970-01-01",
    ) -> "Traces":
        """One cell for each step of time: traces as ``MobilityModel.fit`` and ``TraceReleaser.run``
        take them.

        Step k is the time [origin + k step, origin + (k + 1) step). A trace runs from the step of
        its first fix to that of its last; a step without a fix, or whose fix is off the map, is -1.

        Parameters
        ----------
        locations : a Grid (the cell that holds the fix), or Points with latitude and longitude (the
            nearest)
        step : "5min", "30s", "1h", "1d" or a timedelta
        rule : the fix that speaks for a step: its "last", its "first", or the "nearest" to the
            moment origin + k step, of those from half a step before it to half a step after (just
            half a step after belongs to the next; ties go to the earlier fix)
        carry : fill a step without a fix with the cell of the last step that has one, if that is at
            most this long ago (in whole steps). Never over a step whose fix is off the map
        max_gap : a user silent for longer than this starts a new trace
        split_trajectories : a change of the trajectory column starts a new trace
        min_steps : traces of fewer steps are left out, and counted
        origin : where steps are counted from: with steps of a day, local midnight
        """
        from .resample import resample

        return resample(
            self,
            locations,
            step,
            rule=rule,
            carry=carry,
            max_gap=max_gap,
            split_trajectories=split_trajectories,
            min_steps=min_steps,
            origin=origin,
        )

    # -- to other libraries

    def to_arrow(self) -> Any:
        """A pyarrow table: user, time (UTC), lat, lon and further columns; text as dictionaries."""
        pa = need("pyarrow")
        named = {"user": self.user, **self.columns}

        def column(coded: Coded) -> Any:
            labels = coded.labels
            if labels.dtype.kind == "i":
                return (
                    pa.array(labels[coded.codes], mask=coded.codes < 0)
                    if len(labels)
                    else pa.nulls(len(coded), pa.int64())
                )
            return pa.DictionaryArray.from_arrays(
                pa.array(coded.codes, mask=coded.codes < 0),
                pa.array(labels.astype(object), pa.string()),
            )

        arrays = {name: column(coded) for name, coded in named.items()}
        arrays["time"] = pa.array(self.time, pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
        arrays["lat"], arrays["lon"] = pa.array(self.lat), pa.array(self.lon)
        return pa.table(
            {name: arrays[name] for name in ("user", "time", "lat", "lon", *self.columns)}
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame: user, time (UTC), lat, lon and further columns; text as
        categories."""
        need("pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        seen = self.time[~np.isnat(self.time)]
        span = (
            f", {seen.min().astype('datetime64[s]')}..{seen.max().astype('datetime64[s]')}"
            if len(seen)
            else ""
        )
        more = "".join(f", {name}" for name in self.columns)
        return (
            f"Tracks({len(self):,} fixes of {len(np.unique(self.user.codes)):,} users{span}{more})"
        )
