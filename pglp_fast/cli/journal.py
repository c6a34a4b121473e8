"""The journal of a release: what an interrupted job needs to go on as if it had never stopped.

It stands beside the output while the job runs, readable by its owner only, for it contains the key of the noise: whoever reads
it can subtract the noise. It is deleted at the end. Its first line says which job it is (input, options, model, by digest) and
the key; each further line, a batch that is done. A resumed job must be the same job: so a draw never serves two inputs.
"""

import json
import os
from pathlib import Path
from typing import Any

from ..errors import InvalidState

_KIND, _VERSION = "pglp_fast release journal", 1


class Journal:
    """Made by ``Journal.start`` or ``Journal.resume``.

    Attributes
    ----------
    seed : what the generator is keyed from
    done : records of what is done
    part, steps : files that are still being written: the output, and the releases of users who move
    """

    def __init__(self, out: Path, handle: int, seed: int, done: list[dict[str, Any]]):
        self.part, self.steps, self._path = part_of(out), steps_of(out), journal_of(out)
        self._handle, self.seed, self.done = handle, seed, done

    @classmethod
    def start(cls, out: Path, job: str, seed: int, overwrites: bool) -> "Journal":
        """A new job; what an interrupted one left is removed."""
        try:
            stale = os.open(journal_of(out), os.O_RDWR)
        except FileNotFoundError:
            clear(journal_of(out))
        else:
            try:
                _lock(stale, out)
                clear(journal_of(out))
            finally:
                os.close(stale)
        handle = os.open(journal_of(out), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(handle, out)
        journal = cls(out, handle, seed, [])
        journal._write({"kind": _KIND, "version": _VERSION, "job": job, "seed": str(seed), "overwrites": overwrites})
        return journal

    @classmethod
    def resume(cls, out: Path, job: str) -> "Journal":
        """The job that was interrupted, if it is this very one."""
        path = journal_of(out)
        handle = os.open(path, os.O_RDWR)
        try:
            _lock(handle, out)
            text = _read_all(handle)
            whole = text[: text.rfind(b"\n") + 1]  # a line that was cut off says nothing
            try:
                records = [json.loads(line) for line in whole.splitlines()]
            except ValueError:
                records = []
            if not records or records[0].get("kind") != _KIND or records[0].get("version") != _VERSION:
                raise InvalidState(f"{path} is not a journal of this version: --force starts the job anew")
            head = records[0]
            if head["job"] != job:
                raise InvalidState(
                    f"the interrupted job at {path} had another input, model or other options: give those to resume it, "
                    "or start anew with --force"
                )
            if out.exists() and not head["overwrites"]:
                raise InvalidState(f"{out} appeared since the job was interrupted: move it away, or start anew with --force")
            os.ftruncate(handle, len(whole))
            os.lseek(handle, 0, os.SEEK_END)
            return cls(out, handle, int(head["seed"]), records[1:])
        except BaseException:
            os.close(handle)
            raise

    def record(self, **what: Any) -> None:
        """Something is done, and on disk."""
        self._write(what)
        self.done.append(what)

    def _write(self, what: dict[str, Any]) -> None:
        os.write(self._handle, json.dumps(what).encode() + b"\n")
        os.fsync(self._handle)

    def close(self, *, finished: bool) -> None:
        """``finished``: nothing of it is left; else it can be resumed."""
        if finished:
            clear(self._path)
        os.close(self._handle)


def journal_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.journal")


def part_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.part")


def steps_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.steps")


def clear(journal: Path) -> None:
    """Remove a journal and what belongs to it; the key last, when nothing is left that it could unlock."""
    out = journal.with_name(journal.name.removesuffix(".journal"))
    for path in (part_of(out), steps_of(out), journal):
        path.unlink(missing_ok=True)


def _read_all(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _lock(handle: int, out: Path) -> None:
    """Two processes must not write one output."""
    try:
        import fcntl
    except ImportError:  # not on this system: the exclusive creation of the journal stands alone
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidState(f"another process is releasing {out} right now: wait for it, or choose another output") from None
