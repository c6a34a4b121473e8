"""Plans as TOML: one key for each field; the grid as a table of plain numbers."""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pglp_fast._util import times
from pglp_fast._util.storage import replacing
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.grid import Grid


def write(path: str | os.PathLike[str], fields: dict[str, Any]) -> None:
    """Write what is given; None is left out."""
    lines = [f"{k} = {_value(v)}\n" for k, v in fields.items() if v is not None and v is not False]
    with replacing(path) as part:
        part.write_text("".join(lines), encoding="utf-8")


def read(path: str | os.PathLike[str], known: Sequence[str]) -> dict[str, Any]:
    """Fields and their values; unknown keys are errors."""
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"{os.fspath(path)} is not TOML: {error}") from None
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
            raise InvalidParameter(f"{os.fspath(path)}: unknown key {key!r}: {hint}")
    if "epsilon" not in found or "policy" not in found:
        raise InvalidParameter(f"{os.fspath(path)} must say epsilon and policy")
    if "grid" in found:
        found["grid"] = _grid(found["grid"], path)
    return found


def _grid(said: Any, path: str | os.PathLike[str]) -> Grid:
    try:
        if "projection" in said:
            return Grid.from_dict(said)
        side = said["cell_km"]
        return Grid.from_bounds(
            lat=tuple(said["lat"]),
            lon=tuple(said["lon"]),
            cell_km=tuple(side) if isinstance(side, list) else side,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{os.fspath(path)}: grid must be {{lat = [south, north], lon = [west, east], cell_km "
            f"= 0.34}}: {error}"
        ) from None


def _value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Grid):
        value = {k: v for k, v in value.to_dict().items() if v is not None}
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(k))} = {_value(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, timedelta):
        value = times.shown(times.duration(value, "step"))
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return json.dumps(value)
