"""``pglp-fast experiment``: the paper's experiments, and ours."""

import argparse

from .options import Commands, add_json, command, count_from

_TEXT = """
Run an experiment by its name, or all of them, and write its tables and pictures to a folder. Without --data it runs on a
made-up city.
"""
_EXAMPLES = """
pglp-fast experiment all --out results --quick
"""


def add(commands: Commands) -> None:
    parser = command(commands, "experiment", "run an experiment, or all of them", _TEXT, _EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="which experiment; 'all' for all")
    parser.add_argument("--out", default="pglp-experiments", metavar="DIR", help="where results go (default: pglp-experiments)")
    parser.add_argument("--data", metavar="PATH", help="a data set to run on, instead of the made-up city")
    parser.add_argument("--repetitions", type=count_from(1), default=200, metavar="N", help="runs to average over (default: 200)")
    parser.add_argument("--seed", type=count_from(0), default=0, metavar="N", help="for results that repeat (default: 0)")
    parser.add_argument("--quick", action="store_true", help="few repetitions on a small city: to see that it works")
    parser.add_argument("--no-progress", action="store_true", help="do not show how far it is")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import contextlib
    import os
    import sys
    from importlib import import_module

    os.environ.setdefault("MPLBACKEND", "Agg")
    from ..errors import InvalidParameter
    from .say import result

    try:
        experiments = import_module("pglp_fast.experiments")
    except ModuleNotFoundError as error:
        if error.name != "pglp_fast.experiments":
            raise
        raise InvalidParameter("this installation has no experiments") from None
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        found = experiments.run(
            options.name, out=options.out, data=options.data, repetitions=options.repetitions, seed=options.seed,
            quick=options.quick, progress=not options.no_progress,
        )  # fmt: skip
    document = {"experiment": options.name, "out": options.out, "result": found}
    result(options.json, document, f"{options.name}: results are in {options.out}")
