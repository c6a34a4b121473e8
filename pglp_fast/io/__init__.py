"""From files to traces: read fixes of users, clean them, and bring them to equal steps on a map."""

from .checkins import read_foursquare, read_gowalla
from .geolife import read_geolife
from .labels import Coded
from .pois import POIs, read_peopleflow_pois
from .read import iter_table, read_table
from .reading_report import Malformed, Report
from .traces import ResampleReport, Traces
from .tracks import Tracks

__all__ = [
    "Coded",
    "Malformed",
    "POIs",
    "Report",
    "ResampleReport",
    "Traces",
    "Tracks",
    "iter_table",
    "read_foursquare",
    "read_geolife",
    "read_gowalla",
    "read_peopleflow_pois",
    "read_table",
]
