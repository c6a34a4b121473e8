"""All subcommands and their options."""

import argparse
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pglp_fast._version import __version__

from . import (
    attack,
    certify,
    city,
    compare,
    completion,
    convert,
    demo,
    experiment,
    fit,
    plot,
    release,
    report,
    simulate,
    warmup,
)
from .config import with_config

_COMMANDS = (
    demo,
    simulate,
    city,
    compare,
    fit,
    release,
    certify,
    attack,
    report,
    plot,
    experiment,
    convert,
    warmup,
    completion,
)
_EXAMPLES = """\
examples:
  pglp-fast demo
  pglp-fast simulate -o trips.csv --users 50
  pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --cell-km 0.34
  pglp-fast certify --epsilon 1 --policy blocks:3 --bounds 35.68,35.80,139.60,139.75 --cell-km 0.34

'pglp-fast COMMAND --help' tells more. Exit codes: 0 fine, 1 the answer is no, 2 bad usage or
input, 130 interrupted."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pglp-fast",
        description=(
            "Private locations under Policy Graph based Location Privacy: tables in, tables out."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="version, and facts for a report of a bug"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser


def arguments_of(arguments: Sequence[str]) -> list[str]:
    """The arguments, with those of a --config file in front, and values that start with a minus
    tied to their option."""
    return _tied(with_config(list(arguments), _kinds() if "--config" in str(arguments) else {}))


def _kinds() -> dict[str, dict[str, str]]:
    """For each command the keys that a --config file may have: "flag" or "value"."""
    parser = make_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {
        name: {
            option.removeprefix("--"): "flag" if action.nargs == 0 else "value"
            for action in one._actions
            for option in action.option_strings
            if option.startswith("--") and option not in ("--config", "--help")
        }
        for name, one in commands.choices.items()
    }


class _Version(argparse.Action):
    """The version of this and of what it stands on, and the machine."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import platform
        from importlib.metadata import PackageNotFoundError, version

        found = []
        for name in ("numba", "llvmlite", "numpy", "scipy", "pyarrow", "matplotlib"):
            try:
                found.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                found.append(f"{name} not installed")
        print(f"pglp-fast {__version__}")
        print(f"Python {platform.python_version()}; {', '.join(found)}")
        print(f"{platform.platform()}, {platform.machine()}")
        print(_processor())
        parser.exit()


def _processor() -> str:
    """The processor by its own name and by LLVM's, and how many cores and threads there are."""
    import os
    import platform

    from llvmlite.binding import get_host_cpu_name  # what Numba compiles for

    named = platform.processor()
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        model = re.search(r"^model name\s*: *(.+)$", text, re.M)
        named = model[1].strip() if model else named
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    asked = os.environ.get("PGLP_FAST_THREADS")
    threads = f"; PGLP_FAST_THREADS={asked}" if asked else ""
    return (
        f"CPU {named or 'unknown'} (LLVM: {get_host_cpu_name()}), {os.cpu_count()} cores, "
        f"{usable} usable{threads}"
    )


def _tied(arguments: list[str]) -> list[str]:
    """``--bounds -34,-33,18,19`` as ``--bounds=-34,-33,18,19``: argparse would take the value
    for an option."""
    out: list[str] = []
    for argument in arguments:
        if out and out[-1] in ("--bounds", "--utc-offset") and re.match(r"-[\d.]", argument):
            out[-1] += f"={argument}"
        else:
            out.append(argument)
    return out
