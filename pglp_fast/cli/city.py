"""``pglp-fast city``: a made-up city, released, certified, attacked and reported."""

import argparse
from pathlib import Path
from typing import Any

from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_progress,
    add_traces,
    bounds,
    cell_km,
    command,
    count_from,
    duration,
    mechanism,
    positive,
)

_TEXT = f"""
Go all the way with a made-up city: people with homes, work and leisure ('simulate --days'), what is
publicly known of how they move, a release with that model, its certificate, an attack, a report.
OUT is a folder:
  trips/         Parquet parts with the true places (there are no such people: nothing to protect)
  model.npz      how people of this city move, by the period of the day
  private/       the released parts
  report.html    some of the people, on a map
  summary.json   what is printed: throughput, memory, error, exposure, the adversary's error

Memory does not grow with the number of people. Everything repeats for the same seed.

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast city -o town --users 300 --steps 48
pglp-fast city -o busy --users 400 --steps 24 --step 15min --start 2026-01-05T06:00 --workers 2
"""


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "city",
        "a made-up city: released, certified, attacked, reported",
        _TEXT,
        _EXAMPLES,
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="a new folder")
    parser.add_argument(
        "--force", action="store_true", help="overwrite what OUT has of another city"
    )
    people = parser.add_argument_group("people")
    people.add_argument(
        "--users", type=count_from(1), default=1000, metavar="N", help="people (default: 1000)"
    )
    people.add_argument(
        "--steps", type=count_from(2), default=288, metavar="N", help="steps (default: 288)"
    )
    people.add_argument(
        "--step", type=duration, default=300_000, metavar="TIME", help="of a step (default: 5min)"
    )
    people.add_argument(
        "--start", default="2026-01-05", metavar="TIME",
        help="of the first step, by the city's clock (default: 2026-01-05)",
    )  # fmt: skip
    people.add_argument(
        "--bounds", type=bounds, default=(35.68, 35.82, 139.60, 139.77),
        metavar="LAT0,LAT1,LON0,LON1",
        help="where the city lies (default: 35.68,35.82,139.60,139.77)",
    )  # fmt: skip
    people.add_argument(
        "--cell-km", type=cell_km, default=(0.34, 0.34), metavar="KM",
        help="side of a cell (default: 0.34)",
    )  # fmt: skip
    people.add_argument(
        "--periods", type=count_from(1), default=6, metavar="N",
        help="of the day, each with its own transitions, at most 24 (default: 6)",
    )  # fmt: skip
    _add_release(parser)
    add_json(parser)
    add_progress(parser)
    parser.set_defaults(run=_run)


def _add_release(parser: Any) -> None:
    group = parser.add_argument_group("release and attack")
    group.add_argument(
        "--epsilon", type=positive, default=1.0, metavar="E", help="of a release (default: 1)"
    )
    group.add_argument(
        "--policy", default="blocks:3", metavar="POLICY",
        help="what to protect: see 'policies' above (default: blocks:3)",
    )  # fmt: skip
    group.add_argument(
        "--mechanism", type=mechanism, default="ppim", metavar="NAME",
        help="as in 'release' (default: ppim)",
    )  # fmt: skip
    group.add_argument(
        "--workers", type=count_from(1), metavar="N",
        help="release in so many processes (default: in this one, on all its threads)",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=count_from(0), default=0, metavar="N",
        help="of people and of noise (default: 0)",
    )  # fmt: skip
    add_traces(group, "persons that are attacked, evenly picked, at most (default: 500)")


def _run(options: argparse.Namespace) -> int:
    import json

    from pglp_fast._util.json_values import plain
    from pglp_fast._util.storage import replacing
    from pglp_fast.pipeline.paths import refuse_full_folder

    from . import terminal
    from .city_run import CityRun

    out = Path(options.output)
    refuse_full_folder(out, options.force, "name a folder", "overwrites it")
    out.mkdir(exist_ok=True)
    terminal.warn_of_compiling("run.run_users")
    run = CityRun(options, out)
    run.make()
    run.release()
    run.attack()
    document = run.document()
    with replacing(out / "summary.json") as part:
        part.write_text(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")
    terminal.result(options.json, document, run.text())
    return 0 if document["certificate"]["ok"] else 1
