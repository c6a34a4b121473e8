"""Check-ins: Gowalla as SNAP has it, Foursquare as the TSMC2014 set has it."""

import os

from .. import _validate as check
from .batch import Reading, join
from .read import BATCH_ROWS
from .text import Layout, Source, batches
from .tracks import Tracks

_GOWALLA = Layout({"user": 0, "time": 1, "lat": 2, "lon": 3, "venue": 4}, fields=5, delimiter="\t", quoted=False)
_FOURSQUARE = {"user": 0, "venue": 1, "category": 3, "lat": 4, "lon": 5, "time": 7}


def read_gowalla(path: str | os.PathLike[str], *, on_error: str = "raise") -> Tracks:
    """Check-ins of loc-gowalla_totalCheckins.txt (gzipped or not): user, time, lat, lon, venue between tabs, no header.

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and report it.
    """
    reading = _reading(on_error)
    with Source(path) as source:
        return join(batches(source, _GOWALLA, reading, BATCH_ROWS), reading)


def read_foursquare(path: str | os.PathLike[str], *, on_error: str = "raise") -> Tracks:
    """Check-ins of dataset_TSMC2014_NYC or _TKY: the original .txt (tabs, no header, Latin-1) or the .csv (commas, header).

    Eight columns: user, venue, category id, category name, lat, lon, minutes ahead of UTC, UTC time. Kept are user, time, lat,
    lon, venue and category (the name).

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and report it.
    """
    reading = _reading(on_error)
    with Source(path) as source:
        head = source.peek_line()
        tabs = head.count("\t") >= 7
        if head.lower().startswith("userid"):
            source.take_line()
        layout = Layout(_FOURSQUARE, fields=8, delimiter="\t" if tabs else ",", quoted=not tabs)
        return join(batches(source, layout, reading, BATCH_ROWS), reading)


def _reading(on_error: str) -> Reading:
    check.choice(on_error, "on_error", ("raise", "skip"))
    return Reading(on_error, "UTC")
