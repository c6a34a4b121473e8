"""How a table was released, as it says itself: in Parquet's metadata, or in a sidecar of text."""

import json
import os
from pathlib import Path
from typing import Any

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import file_digest
from pglp_fast.errors import InvalidParameter, InvalidTable

from .plan import Plan
from .work_folder import sidecar_of

pa, parquet = Later("pyarrow"), Later("pyarrow.parquet")
# what a reader must say as the release did
_OPTIONS = ("epsilon", "mechanism", "calibration", "remap", "delta", "repair", "likelihood")


def released_facts(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What a released table says about itself; None if it says nothing."""
    at = Path(path)
    with at.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        try:
            said = (parquet.read_schema(at).metadata or {}).get(b"pglp_fast")
        except pa.ArrowException as error:
            raise InvalidTable(f"{at} cannot be read as Parquet: {error}") from None
        return None if said is None else _parsed(said)
    try:
        found = _parsed(sidecar_of(at).read_bytes())
    except OSError:
        return None
    if found is not None and found.get("sha256") != file_digest(at):
        raise InvalidTable(
            f"{at} is not what was released: {sidecar_of(at).name} tells of another content. "
            "Restore it; or remove that file, and nothing will be checked"
        )
    return found


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "epsilon" in found else None


def check_facts(path: str | os.PathLike[str], facts: dict[str, Any], plan: Plan) -> None:
    """Refuse a plan that a released table contradicts."""
    name, said = os.fspath(path), plan.facts
    if facts["edges_digest"] != said["edges_digest"]:
        other = "other edges" if facts["policy"] == said["policy"] else said["policy"]
        raise InvalidParameter(f"{name} was released with policy='{facts['policy']}', not {other}")
    others, own = facts.get("policies", {}), said.get("policies", {})
    if {k: v["edges_digest"] for k, v in others.items()} != {
        k: v["edges_digest"] for k, v in own.items()
    }:
        told = ", ".join(f"{k}={v['policy']}" for k, v in others.items()) or "none"
        raise InvalidParameter(f"{name} was released with policies='{told}': give the same")
    for key in _OPTIONS:
        if facts.get(key) != said.get(key) and key in facts:
            raise InvalidParameter(
                f"{name} was released with {key}='{facts[key]}', not {said.get(key)}"
            )
    if facts["map"] != said["map"]:
        raise InvalidParameter(
            f"{name} was released on another map: give the bounds and the side of a cell, or the "
            "model, of that"
        )
    if facts["mobility"] != said["mobility"]:
        raise InvalidParameter(f"{name} was released with another mobility model, or with none")
