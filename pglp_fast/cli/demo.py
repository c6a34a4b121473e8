"""``pglp-fast demo``: a made-up city, a table of errors and a picture."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from .options import Commands, add_json, command, count_from

_TEXT = """
Release the people of a made-up city under four policies by two mechanisms, print mean errors and
certificates, and draw a picture. Nothing is read; one picture is written.
"""
_EXAMPLES = """
pglp-fast demo
pglp-fast demo --out pictures --people 50000
"""


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "demo",
        "release a made-up city: a table of errors and a picture",
        _TEXT,
        _EXAMPLES,
    )
    parser.add_argument(
        "--out",
        default="pglp-demo",
        metavar="DIR",
        help="where the picture goes (default: pglp-demo)",
    )
    parser.add_argument(
        "--people",
        type=count_from(1),
        default=200_000,
        metavar="N",
        help="people in the city (default: 200000)",
    )
    parser.add_argument(
        "--seed",
        type=count_from(0),
        default=7,
        metavar="N",
        help="for figures that repeat (default: 7)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite a picture that is there")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")  # a picture on disk needs no screen
    from pglp_fast.experiments.demo import run_demo
    from pglp_fast.pipeline.paths import refuse_overwriting

    from .terminal import result

    refuse_overwriting(Path(options.out) / "demo.png", options.force)
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        picture = run_demo(options.out, people=options.people, seed=options.seed)
    if options.json:
        result(True, {"picture": str(picture), "people": options.people, "seed": options.seed}, "")
