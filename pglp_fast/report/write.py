"""Writing the report: what is asked for is checked, gathered, and put in one file that is whole
or not there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util.storage import SECRET, replacing

from .of_mechanism import report_mechanism
from .of_traces import report_traces


def write_report(
    path: str | os.PathLike[str],
    release: pf.TraceReleaser | pf.Mechanism,
    result: pf.TraceResult | pf.Evidence | ArrayLike | None = None,
    truth: ArrayLike | None = None,
    *,
    title: str | None = None,
    users: ArrayLike | None = None,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    times: Sequence[Any] | NDArray[Any] | None = None,
    prior: ArrayLike | None = None,
    categories: ArrayLike | None = None,
    note: str | None = None,
    seeded: bool = False,
    sample: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file on a release, which any browser opens without a network.

    It holds the policy and a picture of it, the certificate, utility beside what an adversary
    learns, and a map on which a few users can be followed step by step.

    Parameters
    ----------
    path : of the file; readable by its owner only where it contains true locations
    release : what released: a ``TraceReleaser``, or a mechanism for single releases
    result : of traces what ``run(..., evidence=True)`` or ``observe`` gave; of a mechanism the
        released cells, or None for a report on the mechanism alone
    truth : true cells, -1 for unknown, in the shape of what was released. They are then *in the
        file*, which says so. Without them, everything in the file follows from what was released
        and from what is public.
    title : heading of the page
    users : rows that the map shows, at most 50; the first dozen with a release unless told. For a
        mechanism: which releases; or which locations, if there are none
    labels : whose each row of the result is (of a run of events: each of ``events.ids``), text or
        numbers; "user 0", ... unless told. What is of one user counts as one sample in intervals.
        For a mechanism: whose each release is
    times : a name for each step (for a mechanism: for each release): text, numbers or datetimes; or
        an array of them, (rows, T), where traces do not share their clock; of a run of events for
        each event
    prior : of a mechanism: how likely each location is, as for ``pf.utility``
    categories : one integer for each location, for the error E_poi
    note : put at the head of the page: what was taken on trust
    seeded : whether the noise came from a seed, which the page then warns of; of a releaser with a
        seed it is known
    sample : of what the result is a part, such as "3 of 8 persons"; the page says so
    overwrite : replace a file that exists

    Returns
    -------
    The path. The file appears whole or not at all.
    """
    target = _target(path, overwrite)
    if title is not None and not isinstance(title, str):
        raise pf.InvalidParameter(f"title must be a string, got {type(title).__name__}")
    if isinstance(release, pf.TraceReleaser):
        if prior is not None:
            raise pf.InvalidParameter(
                "prior is for a single mechanism: what the adversary thinks of a trace is in its "
                "evidence"
            )
        text, private = report_traces(
            release, result, truth, title, users, labels, times, categories, note, seeded, sample
        )
    elif isinstance(release, pf.Mechanism):
        text, private = report_mechanism(
            release, result, truth, title, users, labels, times, prior, categories, note, seeded,
            sample,
        )  # fmt: skip
    else:
        raise pf.InvalidParameter(
            "the second argument must be a TraceReleaser or a mechanism, got "
            f"{type(release).__name__}: pass what released"
        )
    with replacing(target, SECRET if private else 0o666) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")
        _target(target, overwrite)  # somebody may have been faster
    return target


def _target(path: Any, overwrite: bool) -> Path:
    target = Path(path)
    if not target.parent.is_dir():
        raise pf.InvalidParameter(
            f"{os.fspath(target.parent)} is not a folder: make it first, or write elsewhere"
        )
    if target.is_dir():
        raise pf.InvalidParameter(f"{os.fspath(target)} is a folder: give the name of a file in it")
    if target.exists() and not overwrite:
        raise pf.InvalidParameter(
            f"{os.fspath(target)} exists: pass overwrite=True to replace it, or another name"
        )
    return target
