"""All subcommands and their options."""

import argparse
import re
from collections.abc import Sequence

from .._version import __version__
from . import attack, certify, demo, experiment, fit, plot, release, report, simulate, warmup
from .config import with_config

_COMMANDS = (demo, simulate, fit, release, certify, attack, report, plot, experiment, warmup)
_EXAMPLES = """\
examples:
  pglp-fast demo
  pglp-fast simulate -o trips.csv --users 50
  pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --cell-km 0.34
  pglp-fast certify --epsilon 1 --policy blocks:3 --bounds 35.68,35.80,139.60,139.75 --cell-km 0.34

'pglp-fast COMMAND --help' tells more. Exit codes: 0 fine, 1 the answer is no, 2 bad usage or input, 130 interrupted."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pglp-fast",
        description="Private locations under Policy Graph based Location Privacy: tables in, tables out.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pglp-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser


def arguments_of(arguments: Sequence[str]) -> list[str]:
    """The arguments, with those of a --config file in front, and values that start with a minus tied to their option."""
    return _tied(with_config(list(arguments)))


def _tied(arguments: list[str]) -> list[str]:
    """``--bounds -34,-33,18,19`` as ``--bounds=-34,-33,18,19``: argparse would take the value for an option."""
    out: list[str] = []
    for argument in arguments:
        if out and out[-1] in ("--bounds", "--utc-offset") and re.match(r"-[\d.]", argument):
            out[-1] += f"={argument}"
        else:
            out.append(argument)
    return out
