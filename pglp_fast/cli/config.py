"""``--config job.toml``: options from a file, overridden by those on the command line."""

import difflib
import tomllib
from typing import Any

from ..errors import InvalidParameter

_TAKES = "release"


def with_config(arguments: list[str]) -> list[str]:
    """The arguments of ``release --config FILE ...`` with the file's own put in front of them; others as they are."""
    if not arguments or arguments[0] != _TAKES:
        return arguments
    path, rest = _taken(arguments[1:])
    if path is None:
        return arguments
    return [_TAKES, f"--config={path}", *_arguments(path), *rest]


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


def _arguments(path: str) -> list[str]:
    from .release import option_kinds

    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"{path} is not TOML: {error}") from None
    kinds = option_kinds()
    out: list[str] = []
    for key, value in found.items():
        name = key.replace("_", "-")
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, 1)
            hint = f": did you mean {near[0]}?" if near else f": the keys are {', '.join(sorted(kinds))}"
            raise InvalidParameter(f"{path}: unknown key {key!r}{hint}")
        if kinds[name] == "flag":
            if not isinstance(value, bool):
                raise InvalidParameter(f"{path}: {key} must be true or false, got {value!r}")
            out += [f"--{name}"] if value else []
        else:
            out.append(f"--{name}={_text(path, key, value)}")
    return out


def _text(path: str, key: str, value: Any) -> str:
    """A value as it would be typed: lists with commas, tables as name=value."""
    if isinstance(value, list) and not any(isinstance(v, list | dict) for v in value):
        return ",".join(str(v) for v in value)
    if isinstance(value, dict):
        return ",".join(f"{k}={'+'.join(v) if isinstance(v, list) else v}" for k, v in value.items())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidParameter(f"{path}: {key} must be text or a number, got {value!r}")
    return repr(value) if isinstance(value, float) else str(value)
