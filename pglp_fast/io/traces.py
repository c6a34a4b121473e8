"""Traces: cells at equal steps of time, each row with its user and its start."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast._util.times import day_period, duration, shown
from pglp_fast.errors import InvalidTable, TooLarge
from pglp_fast.space.locations import Locations

from .labels import Coded
from .reading_report import Report
from .tracks import Tracks

_MOST_ENTRIES = 1 << 29  # of a padded array: 2 GiB


@dataclass(frozen=True)
class ResampleReport:
    """What became of the fixes.

    Attributes
    ----------
    fixes : fixes that went in
    traces, steps : traces that came out, and steps of all together
    observed : steps with a cell from a fix of their own
    outside : steps whose fix is off the map (-1)
    carried : steps filled with the cell of a step before
    short : of the traces, those left out as shorter than ``min_steps``
    """

    fixes: int
    traces: int
    steps: int
    observed: int
    outside: int
    carried: int
    short: int

    def to_dict(self) -> dict[str, int]:
        """Plain numbers, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        missing = self.steps - self.observed - self.carried
        return (
            f"{self.fixes:,} fixes to {self.traces:,} traces of {self.steps:,} steps in all: "
            f"{self.observed:,} observed, {self.carried:,} carried forward, {missing:,} missing "
            f"({self.outside:,} of them off the map); {self.short:,} short traces left out"
        )


@dataclass(frozen=True, repr=False)
class Traces:
    """Rows of cells at equal steps, -1 for missing, each with its user and the time of its first
    step.

    A sequence of int32 arrays, as ``MobilityModel.fit`` takes; as an array (``np.asarray``) it is
    (rows, steps), rows flush left and padded with -1, as ``TraceReleaser.run`` takes.

    Attributes
    ----------
    cells : all rows end to end; row i is cells[starts[i]:starts[i+1]]
    user : whose each row is, as codes and labels
    start : when each row's first step begins (with rule="nearest": the moment it stands for), UTC
    step : from one step to the next
    locations : the map
    report : what resampling made of the fixes; rows that are picked or cut later do not change it
    """

    cells: check.Cells
    starts: NDArray[np.int64]
    user: Coded
    start: NDArray[np.datetime64]
    step: np.timedelta64
    locations: Locations
    report: ResampleReport

    @property
    def users(self) -> NDArray[Any]:
        """The users' labels, by code."""
        return self.user.labels

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each row."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, rows: int) -> check.Cells: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any] | list[int]) -> "Traces": ...
    def __getitem__(self, rows: Any) -> Any:
        """One row's cells, or some rows (a slice, a mask or row numbers)."""
        if isinstance(rows, int | np.integer):
            row = range(len(self))[rows]
            return self.cells[self.starts[row] : self.starts[row + 1]]
        which = np.arange(len(self))[rows]
        return self._rows(self.starts[which], self.lengths[which], which)

    def _rows(
        self, begin: NDArray[np.int64], lengths: NDArray[np.int64], of: NDArray[np.int64]
    ) -> "Traces":
        """Rows cut out of these: ``lengths`` steps from ``begin`` on, out of row ``of``."""
        moved = (begin - self.starts[of]) * self.step
        return replace(
            self,
            cells=self.cells[ranges_of(begin, lengths)],
            starts=starts_of(lengths),
            user=self.user[of],
            start=self.start[of] + moved,
        )

    def __iter__(self) -> Iterator[check.Cells]:
        bounds = self.starts.tolist()
        return (self.cells[a:b] for a, b in pairwise(bounds))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.to_array(), dtype)

    def to_array(self) -> check.Cells:
        """(rows, steps of the longest), flush left, -1 behind a row's end."""
        width = int(self.lengths.max(initial=0))
        if len(self) * width > _MOST_ENTRIES:
            raise TooLarge(
                f"{len(self):,} rows of up to {width:,} steps make an array of "
                f"{len(self) * width:,} entries: cut them with .cut(steps), or resample with "
                "max_gap"
            )
        out = np.full((len(self), width), -1, check.CELL)
        out[np.arange(width) < self.lengths[:, None]] = self.cells
        return out

    def times(self) -> NDArray[np.datetime64]:
        """When each step of each row begins, end to end as ``cells``."""
        within = np.arange(len(self.cells)) - np.repeat(self.starts[:-1], self.lengths)
        return np.asarray(np.repeat(self.start, self.lengths) + within * self.step)

    def periods(self, periods: int, *, ahead: Any = None) -> list[NDArray[np.int64]]:
        """Period of the day of each step, row by row: ``period_of_step=`` of ``MobilityModel.fit``.

        ``ahead``: how far local time is ahead of UTC, such as "8h"; None for UTC.
        """
        shift = np.timedelta64(0 if ahead is None else duration(ahead, "ahead"), "ms")
        return (
            np.split(day_period(self.times() + shift, periods), self.starts[1:-1])
            if len(self)
            else []
        )

    def at_least(self, steps: int, *, observed: float = 0.0) -> "Traces":
        """Rows of at least so many steps, with at least this share of them observed."""
        check.whole(steps, "steps", 1)
        keep = self.lengths >= steps
        if observed > 0:
            keep &= self._observed() >= observed * self.lengths
        return self[keep]

    def _observed(self) -> NDArray[np.int64]:
        """Steps of each row that have a cell."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.cells >= 0)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])

    def cut(self, steps: int, *, observed: float = 0.0) -> "Traces":
        """Rows of exactly ``steps`` steps, one behind the other out of each row, with at least this
        share observed.

        What is left over at a row's end is left out.
        """
        check.whole(steps, "steps", 1)
        pieces = self.lengths // steps
        of = np.repeat(np.arange(len(self)), pieces)
        nth = np.arange(len(of)) - np.repeat(starts_of(pieces)[:-1], pieces)
        out = self._rows(self.starts[of] + nth * steps, np.full(len(of), steps, np.int64), of)
        return out[out._observed() >= observed * steps] if observed > 0 else out

    def to_tracks(self, cells: ArrayLike | None = None) -> Tracks:
        """Back to a table: user, time and the middle of the cell of each step that has one.

        ``cells``: others in place of these, such as what was released: end to end, or (rows, steps)
        as ``to_array`` gives them."""
        flat = self.cells if cells is None else check.integers(cells, "cells")
        if flat.ndim == 2:
            width = int(self.lengths.max(initial=0))
            if flat.shape != (len(self), width):
                raise InvalidTable(
                    f"cells must have shape {(len(self), width)} as to_array() has, got "
                    f"{flat.shape}"
                )
            flat = flat[np.arange(width) < self.lengths[:, None]]
        if flat.shape != self.cells.shape:
            raise InvalidTable(
                f"cells must be {len(self.cells)} numbers, one for each step, got shape "
                f"{flat.shape}"
            )
        rows = np.flatnonzero(flat >= 0)
        latlon = self.locations.latlon(flat[rows])
        user = self.user[np.repeat(np.arange(len(self)), self.lengths)[rows]]
        return Tracks(
            user,
            self.times()[rows],
            latlon[:, 0].copy(),
            latlon[:, 1].copy(),
            {},
            Report(len(rows)),
        )

    def __repr__(self) -> str:
        seen = (self.cells >= 0).mean() if len(self.cells) else 0.0
        who, step = len(np.unique(self.user.codes)), shown(int(self.step.astype(np.int64)))
        return (
            f"Traces({len(self):,} rows of {who:,} users, {len(self.cells):,} steps of {step}, "
            f"{seen:.0%} observed)"
        )
