"""Rows on their way between tasks: Arrow files with one batch for each task that will read them.

A file is whole or not there; every batch carries a checksum, and the schema says what the file is.
True cells are among the rows: files are their owner's only, and lie in the work folder."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import SECRET, replacing
from pglp_fast.errors import InvalidState

pa, ipc = Later("pyarrow"), Later("pyarrow.ipc")
Columns = Sequence[NDArray[Any]]
_FACTS, _SUM = b"pglp_fast", b"crc32"


def write_spill(path: Path, batches: Sequence[Columns], facts: dict[str, Any]) -> None:
    """Batches of columns of the same types, and what there is to say of them."""
    kinds = [pa.from_numpy_dtype(column.dtype) for column in batches[0]]
    fields = [(str(k), kind) for k, kind in enumerate(kinds)]
    schema = pa.schema(fields, metadata={_FACTS: json.dumps(facts).encode()})
    with (
        replacing(path, SECRET) as part,
        pa.OSFile(os.fspath(part), "wb") as file,
        ipc.new_file(file, schema) as writer,
    ):
        for columns in batches:
            batch = pa.record_batch([pa.array(c) for c in columns], schema=schema)
            writer.write_batch(batch, custom_metadata={_SUM: str(_sum(columns)).encode()})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with pa.memory_map(os.fspath(path), "r") as file:
        yield ipc.open_file(file)


def read_spill(path: Path, k: int) -> list[NDArray[Any]]:
    """The columns of a batch."""
    with _opened(path) as reader:
        return _checked(reader, k, path)


def spill_facts(path: Path, **said: Any) -> dict[str, Any] | None:
    """What a file says of itself; None if it is not there, damaged, or says other things than
    these."""
    try:
        with _opened(path) as reader:
            facts = json.loads(reader.schema.metadata[_FACTS])
            for k in range(reader.num_record_batches):
                _checked(reader, k, path)
    except (OSError, ValueError, LookupError, TypeError, InvalidState, pa.ArrowException):
        return None
    return facts if all(facts.get(name) == value for name, value in said.items()) else None


def _checked(reader: Any, k: int, path: Path) -> list[NDArray[Any]]:
    found = reader.get_batch_with_custom_metadata(k)
    columns = [np.array(column) for column in found.batch.columns]  # copies: the file is closed
    if found.custom_metadata.get(_SUM) != str(_sum(columns)).encode():
        raise InvalidState(f"{path} is damaged: start the job again with force=True")
    return columns


def _sum(columns: Columns) -> int:
    total = 0
    for column in columns:
        total = crc32(column.tobytes(), total)
    return total
