"""A report on a released table as the command line writes it: user, time and place of each."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.io.labels import Coded
from pglp_fast.space.locations import Locations

from .inputs import in_utc
from .write import write_report


def report_table(
    path: str | os.PathLike[str],
    release: pf.TraceReleaser | pf.Mechanism,
    table: Any,
    truth: Any = None,
    *,
    step: Any = None,
    rule: str = "first",
    max_gap: Any = None,
    priors: Any = None,
    periods: Any = None,
    **options: Any,
) -> Path:
    """``write_report`` for a table of released locations and, if given, the table they were
    released from.

    Parameters
    ----------
    path : of the report
    release : what released: a ``TraceReleaser`` or a mechanism
    table : released locations: ``Tracks``, or anything that ``pf.read_table`` reads
    truth : the same of true locations; matched by user and time. They are then in the report, which
        says so.
    step, rule, max_gap : of traces, as for ``Tracks.resample``: what the traces were made with. The
        command line releases the first fix of a step
    priors, periods : of traces, as for ``TraceReleaser.observe``: what they were released with
    options : title, users, overwrite and so on, as for ``write_report``
    """
    released = table if isinstance(table, pf.Tracks) else pf.read_table(table)
    true = (
        None if truth is None else truth if isinstance(truth, pf.Tracks) else pf.read_table(truth)
    )
    if isinstance(release, pf.TraceReleaser):
        how = {"step": step, "rule": rule, "max_gap": max_gap}
        traces, where = _as_traces(released, true, release.locations, how)
        options.setdefault("labels", traces.user.values())
        row = np.repeat(np.arange(len(traces)), traces.lengths)
        column = np.arange(len(row)) - traces.starts[row]
        made = traces.cells >= 0  # a trace begins with a release: each has one
        options.setdefault("times", in_utc(traces.times()[made]))
        events = pf.Events(row[made], column[made], traces.cells[made])
        seen = release.observe(events, priors, cycle=_periods(periods, traces))
        return write_report(path, release, seen, None if where is None else where[made], **options)
    if not isinstance(release, pf.Mechanism):
        raise pf.InvalidParameter(
            "the second argument must be a TraceReleaser or a mechanism, got "
            f"{type(release).__name__}: pass what released"
        )
    given = {"step": step, "max_gap": max_gap, "priors": priors, "periods": periods}
    for name, value in given.items():
        if value is not None:
            raise pf.InvalidParameter(
                f"{name} is for traces, this table was released one by one: leave it out"
            )
    where = None
    if true is not None:
        where = _matched(
            *_keys((released.user, released.time), (true.user, true.time)),
            _located(release.locations, true),
        )
    options.setdefault("labels", released.user.values())
    options.setdefault("times", in_utc(released.time))
    return write_report(path, release, _located(release.locations, released), where, **options)


def _as_traces(
    released: pf.Tracks, true: pf.Tracks | None, locations: Locations, how: dict[str, Any]
) -> tuple[pf.Traces, NDArray[np.int32] | None]:
    """(released traces, true cells beside theirs)."""
    if how["step"] is None:
        raise pf.InvalidParameter(
            "step is needed for traces: the time from one step to the next, such as '5min'"
        )
    traces = released.resample(locations, **how)
    if not len(traces):
        raise pf.InvalidTable(
            "the table has no release on the map: give the table and the map that belong together"
        )
    if true is None:
        return traces, None
    return traces, _at_the_same_time(traces, true.resample(locations, **how))


def _located(locations: Locations, tracks: pf.Tracks) -> NDArray[np.int32]:
    """The location of each row: the cell that holds it, off a grid the nearest; -1 where there
    is none."""
    if isinstance(locations, pf.Grid):
        return locations.locate(tracks.lat, tracks.lon)
    if locations.projection is None:
        raise pf.InvalidTable(
            "this map has no latitude and longitude, the table has: make it with Points.from_latlon"
        )
    out = np.full(len(tracks), -1, np.int32)
    known = np.isfinite(tracks.lat) & np.isfinite(tracks.lon)
    out[known] = locations.nearest(locations.projection.to_km(tracks.lat[known], tracks.lon[known]))
    return out


Column = tuple[Coded, NDArray[np.datetime64]]


def _keys(wanted: Column, there: Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One number for each (user, time) of both tables, the same for the same."""
    names = [user.labels.astype(str) for user, _ in (wanted, there)]
    code = np.unique(np.concatenate(names), return_inverse=True)[1].reshape(-1)
    both = code[: len(names[0])][wanted[0].codes], code[len(names[0]) :][there[0].codes]
    moment = np.unique(np.concatenate([wanted[1], there[1]]), return_inverse=True)[1].reshape(-1)
    keys = np.concatenate(both) * np.int64(moment.max(initial=0) + 1) + moment
    return keys[: len(both[0])], keys[len(both[0]) :]


def _matched(
    wanted: NDArray[np.int64], keys: NDArray[np.int64], cells: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The cell at each wanted key, -1 where there is none."""
    if np.array_equal(wanted, keys):  # row by row
        return cells
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if twice.size:
        rows = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise pf.InvalidTable(
            f"rows {rows[0]} and {rows[1]} of the true locations are of one user and time: which "
            "was released from is not told; clean the table, or give both tables in the same order"
        )
    at = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    return np.where(keys[order][at] == wanted, cells[order][at], -1).astype(np.int32)


def _at_the_same_time(traces: pf.Traces, there: pf.Traces) -> NDArray[np.int32]:
    def steps(some: pf.Traces) -> Column:
        return some.user[np.repeat(np.arange(len(some)), some.lengths)], some.times()

    return _matched(*_keys(steps(traces), steps(there)), there.cells)


def _periods(periods: Any, traces: pf.Traces) -> Any:
    """The period of each step of the longest trace, as a cycle that is gone through once."""
    longest = int(traces.lengths.max())
    if periods is not None and np.shape(periods) != (longest,):
        raise pf.InvalidTransition(
            f"periods has shape {np.shape(periods)}: give one for each of the {longest} steps of "
            "the longest trace"
        )
    return periods
