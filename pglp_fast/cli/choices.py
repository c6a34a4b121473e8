"""Options for policies, epsilons and budgets by person and time."""

import argparse
import json
import tomllib
from typing import Any

from .options import Adder, positive


def add_choices(parser: Adder, *, columns: bool = False) -> None:
    """Policies and epsilons by person and time; ``columns``: by columns of the table too."""
    group = parser.add_argument_group("by person and time")
    group.add_argument(
        "--policies",
        type=policies,
        metavar="NAME=POLICY,...",
        help="further policies by name; --policy is the one called 'default'",
    )
    group.add_argument(
        "--schedule",
        type=schedule,
        metavar="FILE",
        help="TOML: which policy and epsilon hold when ([times], [periods]), for whom ([persons]) "
        "and after which release ([released])",
    )
    for name in ("policy", "epsilon") if columns else ():
        what = "names of policies" if name == "policy" else "epsilons"
        group.add_argument(
            f"--{name}-column",
            metavar="NAME",
            help=f"column of TABLE with {what}; empty: as --{name} says. They are published",
        )


def policies(text: str) -> dict[str, str]:
    """Policies by name, as typed or (from a --config file) as JSON."""
    if text.startswith("{"):
        return dict(_from_json(text))
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, policy = (piece.strip() for piece in part.partition("="))
        if not (name and equals and policy) or name in found:
            raise argparse.ArgumentTypeError(
                f"{part!r} is not NAME=POLICY, each name at most once, e.g. night=blocks:5"
            )
        found[name] = policy
    return found


def schedule(text: str) -> dict[str, Any]:
    """The tables of a TOML file, or (from a --config file) JSON."""
    if text.startswith("{"):
        return dict(_from_json(text))
    try:
        with open(text, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text} is not TOML: {error}") from None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not JSON: {error}") from None


def budget(text: str) -> Any:
    """One, or several by window: total=100,24=5,1d=8."""
    if "=" not in text:
        return positive(text)
    found: dict[str, float] = {}
    for part in text.split(","):
        window, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or window in found:
            raise argparse.ArgumentTypeError(
                f"{part!r} is not WINDOW=E, each window once: write total=100,24=5 or 1d=8"
            )
        found[window] = positive(value)
    return found
