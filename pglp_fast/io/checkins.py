"""Check-ins: Gowalla as SNAP has it, Foursquare as the TSMC2014 set has it."""

import os

from pglp_fast._util import validate as check

from .fix_batches import Reading, join
from .parse import parse
from .table_batches import BATCH_ROWS
from .text import Layout, read_text
from .text_lines import Source
from .tracks import Tracks

_GOWALLA = ("user", "time", "lat", "lon", "venue")
_FOURSQUARE = ("user", "venue", "category id", "category", "lat", "lon", "minutes", "time")


def read_gowalla(path: str | os.PathLike[str], *, on_error: str = "raise") -> Tracks:
    """Check-ins of loc-gowalla_totalCheckins.txt (gzipped or not): user, time, lat, lon, venue
    between tabs, no header.

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and
    report it."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    with Source(path) as source:
        return _tracks(source, Layout.of_roles(_GOWALLA, "\t", quoted=False), on_error)


def read_foursquare(path: str | os.PathLike[str], *, on_error: str = "raise") -> Tracks:
    """Check-ins of dataset_TSMC2014_NYC or _TKY: the original .txt (tabs, no header, Latin-1) or
    the .csv (commas, header).

    Eight columns: user, venue, category id, category name, lat, lon, minutes ahead of UTC, UTC
    time. Kept are user, time, lat, lon, venue and category (the name).

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and
    report it."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    with Source(path) as source:
        head = source.peek_line()
        tabs = head.count("\t") >= 7
        if head.lower().startswith("userid"):
            source.take_line()
        delimiter = "\t" if tabs else ","
        layout = Layout.of_roles(_FOURSQUARE, delimiter, quoted=not tabs)
        return _tracks(source, layout, on_error)


def _tracks(source: Source, layout: Layout, on_error: str) -> Tracks:
    reading = Reading(on_error, "UTC")
    raw = read_text(source, layout, BATCH_ROWS)
    return join((parse(batch, source.name, reading) for batch in raw), reading)
