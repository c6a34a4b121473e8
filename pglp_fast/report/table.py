"""A report on a released table, as the command line writes it: user, time, latitude and longitude of each release."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidParameter, InvalidTable
from ..mechanisms.base import Mechanism
from ..traces import TraceReleaser
from ..tracks import Traces, Tracks, read_table
from .write import write_report


def report_table(
    path: str | os.PathLike[str],
    release: TraceReleaser | Mechanism,
    table: Any,
    truth: Any = None,
    *,
    step: Any = None,
    max_gap: Any = None,
    priors: Any = None,
    periods: Any = None,
    **options: Any,
) -> Path:
    """``write_report`` for a table of released locations and, if given, the table they were released from.

    Parameters
    ----------
    path : of the report
    release : what released: a ``TraceReleaser`` or a mechanism
    table : released locations: ``Tracks``, or anything that ``pf.read_table`` reads
    truth : the same of true locations; matched by user and time. They are then in the report, which says so.
    step, max_gap : of traces, as for ``Tracks.resample``: what the traces were made with
    priors, periods : of traces, as for ``TraceReleaser.observe``: what they were released with
    options : title, users, overwrite and so on, as for ``write_report``
    """
    released = table if isinstance(table, Tracks) else read_table(table)
    true = None if truth is None else truth if isinstance(truth, Tracks) else read_table(truth)
    if isinstance(release, TraceReleaser):
        if step is None:
            raise InvalidParameter("step is needed for traces: the time from one step to the next, such as '5min'")
        traces = released.resample(release.locations, step, max_gap=max_gap)
        if not len(traces):
            raise InvalidTable("the table has no release on the map: give the table and the map that belong together")
        where = None
        if true is not None:
            there = true.resample(release.locations, step, max_gap=max_gap)
            where = _padded(traces, _at_the_same_time(traces, there))
        options.setdefault("labels", [str(label) for label in traces.users[traces.user.codes]])
        return write_report(path, release, release.observe(traces.to_array(), priors, periods=periods), where, **options)
    if not isinstance(release, Mechanism):
        raise InvalidParameter(
            f"the second argument must be a TraceReleaser or a mechanism, got {type(release).__name__}: pass what released"
        )
    given = {"step": step, "max_gap": max_gap, "priors": priors, "periods": periods}
    for name, value in given.items():
        if value is not None:
            raise InvalidParameter(f"{name} is for traces, this table was released one by one: leave it out")
    cells = release.locations.locate(released.lat, released.lon)  # type: ignore[attr-defined]
    where = None
    if true is not None:
        there = release.locations.locate(true.lat, true.lon)  # type: ignore[attr-defined]
        where = _matched(_keys(released.user, released.time), _keys(true.user, true.time), there)
    return write_report(path, release, cells, where, **options)


def _keys(user: Any, time: NDArray[np.datetime64]) -> NDArray[Any]:
    """(user's label, time in ms) of each row, to be sorted and looked up."""
    out = np.empty(len(time), [("user", "U64"), ("time", "i8")])
    out["user"] = user.labels.astype("U64")[user.codes]
    out["time"] = time.astype("datetime64[ms]").astype(np.int64)
    return out


def _matched(wanted: NDArray[Any], keys: NDArray[Any], cells: NDArray[Any]) -> NDArray[np.int32]:
    """The cell at each wanted key, -1 where there is none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, cells[order][at], -1).astype(np.int32)


def _at_the_same_time(traces: Traces, there: Traces) -> NDArray[np.int32]:
    def keys(some: Traces) -> NDArray[Any]:
        return _keys(some.user[np.repeat(np.arange(len(some)), some.lengths)], some.times())

    return _matched(keys(traces), keys(there), there.cells)


def _padded(traces: Traces, cells: NDArray[np.int32]) -> NDArray[np.int32]:
    width = int(traces.lengths.max(initial=0))
    out = np.full((len(traces), width), -1, np.int32)
    out[np.arange(width) < traces.lengths[:, None]] = cells
    return out
