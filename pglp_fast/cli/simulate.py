"""``pglp-fast simulate``: people who move about a made-up city, as a table."""

import argparse
from typing import Any

from .options import (
    Commands,
    add_json,
    add_output,
    bounds,
    cell_km,
    command,
    count_from,
    duration,
    share,
)

_TEXT = """
Write a table (user, time, lat, lon, place) of people who move about a made-up city with a centre,
four suburbs and a river. People stay or step to a cell beside theirs, more readily towards where
many people are. The same seed gives the same table; another seed gives other people in the same
city.

With --days the city has a district for every so many cells, and people have homes, go to work in
the morning, go out and come home. They are made and written some at a time: a city of millions
takes no more memory than a town. -o FOLDER (a name without an ending) then has Parquet parts. With
--model, what is publicly known of how they move goes with it, for each period of the day.
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast simulate -o week.csv.gz --users 20 --steps 2016 --step 5min --start 2026-03-02 \\
    --missing 0.3 --seed 3
pglp-fast simulate -o small.csv --users 10 --bounds 52.48,52.55,13.35,13.45 --cell-km 0.5 \\
    --places places.csv
pglp-fast simulate -o city --users 2000 --steps 288 --days --model city.npz --periods 6
"""


def add(commands: Commands) -> None:
    parser = command(commands, "simulate", "write a table of made-up people", _TEXT, _EXAMPLES)
    add_output(parser, "the table: .csv, .csv.gz or .parquet; with --days also a folder")
    parser.add_argument(
        "--users", type=count_from(1), default=100, metavar="N", help="people (default: 100)"
    )
    parser.add_argument(
        "--steps", type=count_from(1), default=100, metavar="N", help="steps of each (default: 100)"
    )
    parser.add_argument(
        "--step",
        type=duration,
        default=300_000,
        metavar="TIME",
        help="duration of a step (default: 5min)",
    )
    parser.add_argument(
        "--start",
        default="2026-01-05",
        metavar="TIME",
        help="of the first step, UTC (default: 2026-01-05)",
    )
    parser.add_argument(
        "--missing",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="rows to leave out at random (default: 0)",
    )
    parser.add_argument(
        "--bounds",
        type=bounds,
        default=(35.68, 35.82, 139.60, 139.77),
        metavar="LAT0,LAT1,LON0,LON1",
        help="where the city lies (default: 35.68,35.82,139.60,139.77)",
    )
    parser.add_argument(
        "--cell-km",
        type=cell_km,
        default=(0.34, 0.34),
        metavar="KM",
        help="size of a step on the ground (default: 0.34)",
    )
    parser.add_argument(
        "--places",
        metavar="FILE",
        help="also write the city's places: a table of lat,lon,category for --labels",
    )
    parser.add_argument(
        "--seed",
        type=count_from(0),
        default=0,
        metavar="N",
        help="other numbers give other people (default: 0)",
    )
    _add_days(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _add_days(parser: Any) -> None:
    days = parser.add_argument_group("days with homes, work and leisure")
    days.add_argument(
        "--days", action="store_true", help="people follow the time of day, in a city of districts"
    )
    days.add_argument(
        "--model",
        metavar="FILE",
        help="with --days: also write a mobility model, of how people of this city move in general",
    )
    days.add_argument(
        "--periods",
        type=count_from(1),
        metavar="N",
        help="with --model: matrices, one for each Nth of the day, at most 24 (default: 6)",
    )


def _run(options: argparse.Namespace) -> None:
    from .simulate_run import simulate

    simulate(options)
