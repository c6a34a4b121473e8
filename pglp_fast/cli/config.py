"""``--config job.toml``: options from a file, overridden by those on the command line."""

import difflib
import json
import tomllib
from collections.abc import Mapping
from typing import Any

from pglp_fast.errors import InvalidParameter


def with_config(arguments: list[str], kinds: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The arguments of ``COMMAND --config FILE ...`` with the file's own put in front of them;
    others as they are.

    ``kinds``: for each command the keys that a file may have, each "flag" or "value"."""
    if not arguments or arguments[0] not in kinds:
        return arguments
    path, rest = _taken(arguments[1:])
    if path is None:
        return arguments
    return [arguments[0], f"--config={path}", *_arguments(path, kinds[arguments[0]]), *rest]


def _taken(arguments: list[str]) -> tuple[str | None, list[str]]:
    """(path, other arguments)."""
    for at, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--config" and at + 1 < len(arguments):
            return arguments[at + 1], arguments[:at] + arguments[at + 2 :]
        if argument.startswith("--config="):
            return argument.removeprefix("--config="), arguments[:at] + arguments[at + 1 :]
    return None, arguments


def _arguments(path: str, kinds: Mapping[str, str]) -> list[str]:
    from pglp_fast.pipeline.paths import reading  # here: --help needs no NumPy

    with open(path, "rb") as file, reading(path, "TOML", InvalidParameter):
        found = tomllib.load(file)
    out: list[str] = []
    for key, value in found.items():
        name = key.replace("_", "-")
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, 1)
            hint = (
                f": did you mean {near[0]}?"
                if near
                else f": the keys are {', '.join(sorted(kinds))}"
            )
            raise InvalidParameter(f"{path}: unknown key {key!r}{hint}")
        if kinds[name] == "flag":
            if not isinstance(value, bool):
                raise InvalidParameter(f"{path}: {key} must be true or false, got {value!r}")
            out += [f"--{name}"] if value else []
        else:
            out.append(f"--{name}={_text(path, key, value)}")
    return out


def _text(path: str, key: str, value: Any) -> str:
    """A value as it would be typed: lists with commas, tables as name=value; schedules as JSON."""
    if key in ("policies", "schedule") and isinstance(value, dict):
        return json.dumps(value, default=str)
    if isinstance(value, dict):
        return ",".join(f"{k}={_joined(path, key, v, '+')}" for k, v in value.items())
    return _joined(path, key, value, ",")


def _joined(path: str, key: str, value: Any, by: str) -> str:
    """Text or a number, or a list of them."""
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, str | int | float):
            raise InvalidParameter(f"{path}: {key} must be text or a number, got {value!r}")
    return by.join(repr(part) if isinstance(part, float) else str(part) for part in parts)
