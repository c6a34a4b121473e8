"""Files that are whole or not there: written beside and renamed, versioned, with a checksum, readable by their owner only.

A saved stream contains the key of its generator: whoever reads it can subtract the noise. So no other user of the machine may.
"""

import hashlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidState

_MAGIC = b"pglp_fast\n"
_VERSION = 1


def write_arrays(path: str | os.PathLike[str], kind: str, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
    """Write arrays and facts (anything JSON takes) to ``path``; an earlier file there stays whole until the new one is."""
    buffer = io.BytesIO()
    header = json.dumps({"kind": kind, "version": _VERSION, **facts}).encode()
    everything: dict[str, Any] = {"facts": np.frombuffer(header, np.uint8), **arrays}
    np.savez(buffer, **everything)
    body = buffer.getvalue()
    target = Path(path)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """(arrays, facts) of a file written with the same kind; anything else is refused whole."""
    raw = Path(path).read_bytes()
    name = os.fspath(path)
    if not raw.startswith(_MAGIC):
        raise InvalidState(f"{name} was not written by pglp_fast: give the path that was saved to")
    digest, body = raw[len(_MAGIC) : len(_MAGIC) + 32], raw[len(_MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != digest:
        raise InvalidState(f"{name} is damaged (its checksum does not match): restore it from a copy")
    with np.load(io.BytesIO(body), allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    facts = json.loads(arrays.pop("facts").tobytes())
    if facts["version"] != _VERSION:
        raise InvalidState(
            f"{name} has format version {facts['version']}, this release reads {_VERSION}: use the release that wrote it"
        )
    if facts["kind"] != kind:
        raise InvalidState(f"{name} holds a {facts['kind']}, not a {kind}")
    return arrays, facts
