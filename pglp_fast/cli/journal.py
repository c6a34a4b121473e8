"""The journal of a release: what an interrupted job needs to go on as if it had never stopped.

It stands beside the output while the job runs, readable by its owner only, for it contains the key of the noise: whoever reads
it can subtract the noise. It is deleted at the end. Its first line says which job it is (input, options, model, by digest) and
the key; each further line, a batch that is done; the last, written before the output takes its place, the size and digest of
the whole. A resumed job must be the same job: so a draw never serves two inputs.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..errors import InvalidParameter, InvalidState

_KIND, _VERSION = "pglp_fast release journal", 2


class Journal:
    """Made by ``Journal.start`` or ``Journal.resume``.

    Attributes
    ----------
    seed : what the generator is keyed from
    done : records of what is done
    part, steps : files that are still being written: the output, and the releases of users who move
    told : what ``finish`` was given, if the output is there, whole, and the journal alone was left; else None
    """

    told: dict[str, Any] | None = None

    def __init__(self, out: Path, handle: int, seed: int, done: list[dict[str, Any]]):
        self.part, self.steps, self._path = part_of(out), steps_of(out), journal_of(out)
        self._handle, self.seed, self.done = handle, seed, done

    @classmethod
    def start(cls, out: Path, job: str, seed: int, overwrites: bool) -> "Journal":
        """A new job; what an interrupted one left is removed."""
        try:
            stale = os.open(journal_of(out), os.O_RDWR)
        except FileNotFoundError:
            if overwrites:
                clear(journal_of(out))
        else:
            try:
                _lock(stale, out)
                clear(journal_of(out))
            finally:
                os.close(stale)
        handle = os.open(journal_of(out), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _lock(handle, out)
            journal = cls(out, handle, seed, [])
            journal._write({"kind": _KIND, "version": _VERSION, "job": job, "seed": str(seed), "overwrites": overwrites})
        except BaseException:  # a full disk: a journal that says nothing would only be in the way
            journal_of(out).unlink(missing_ok=True)
            os.close(handle)
            raise
        return journal

    @classmethod
    def resume(cls, out: Path, job: str) -> "Journal":
        """The job that was interrupted, if it is this very one."""
        path = journal_of(out)
        handle = os.open(path, os.O_RDWR)
        try:
            _lock(handle, out)
            records, size = _records(handle, path)
            head = records[0]
            if head["job"] != job:
                raise InvalidState(
                    f"the interrupted job at {path} had another input, model or other options: give those to resume it, "
                    "or start anew with --force"
                )
            journal = cls(out, handle, int(head["seed"]), records[1:])
            last = next((record for record in reversed(journal.done) if "finished" in record), None)
            if last is not None and out.is_file() and [out.stat().st_size, _digest(out)] == last["finished"]:
                journal.told = last["told"]
            elif out.exists() and last is not None and not journal.part.exists():
                raise InvalidState(
                    f"{out} was finished and is no longer what the job wrote: move it away to write it again, or start anew "
                    "with --force"
                )
            elif out.exists() and not head["overwrites"]:
                raise InvalidState(f"{out} appeared since the job was interrupted: move it away, or start anew with --force")
            os.ftruncate(handle, size)
            os.lseek(handle, 0, os.SEEK_END)
            return journal
        except BaseException:
            os.close(handle)
            raise

    def open_part(self) -> tuple[int, int]:
        """(batches, bytes) of the part that are there: those recorded, as far as the file goes. A new file if there are none."""
        there = self.part.stat().st_size if self.part.is_file() and not self.part.is_symlink() else 0
        ends = {record["batch"]: record["bytes"] for record in self.done if "bytes" in record}
        kept = [end for end in ends.values() if 0 < end <= there]  # 0: a format that cannot be taken up
        if kept:
            self.part.chmod(0o600)
        else:
            self.part.unlink(missing_ok=True)
            os.close(os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return len(kept), max(kept, default=0)

    def finish(self, told: dict[str, Any]) -> None:
        """The part is whole, and about to take the place of the output. ``told``: what to say about it."""
        self.record(finished=[self.part.stat().st_size, _digest(self.part)], told=told)

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


def look(out: Path, *, anew: bool) -> bool:
    """Whether an interrupted job is there; an error if it is running, or its journal says nothing and we do not start anew."""
    path = journal_of(out)
    if path.exists() and not path.is_file():
        raise InvalidParameter(f"{path}, where the journal would stand, is not a file: move it away, or name another output")
    try:
        handle = os.open(path, os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        _lock(handle, out)
        if not anew:
            _records(handle, path)
    finally:
        os.close(handle)
    return True


def refuse_strangers(out: Path) -> None:
    """Without a journal of ours, files with the names that we would use are somebody else's."""
    for path in (part_of(out), steps_of(out)):
        if os.path.lexists(path):
            raise InvalidParameter(
                f"{path} is in the way, and no journal says that it is a release's: move it away, name another output, "
                "or remove it with --force"
            )


def clear(journal: Path) -> None:
    """Remove a journal and what belongs to it; the key last, when nothing is left that it could unlock."""
    out = journal.with_name(journal.name.removesuffix(".journal"))
    for path in (part_of(out), steps_of(out), journal):
        path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _records(handle: int, path: Path) -> tuple[list[dict[str, Any]], int]:
    """(records, bytes of them): the head, then what is done."""
    text = _read_all(handle)
    whole = text[: text.rfind(b"\n") + 1]  # a line that was cut off says nothing
    try:
        records = [json.loads(line) for line in whole.splitlines()]
        known = all(isinstance(record, dict) for record in records) and records[0]["kind"] == _KIND
        known = known and records[0]["version"] == _VERSION and {"job", "seed", "overwrites"} <= records[0].keys()
    except (ValueError, LookupError):
        known = False
    if not known:
        raise InvalidState(
            f"{path} ({len(text):,} bytes) is not a journal of this version, or is damaged, so no job can go on from it: "
            "--force, without --resume, removes it and starts anew"
        )
    return records, len(whole)


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
    if os.fstat(handle).st_nlink == 0:  # removed between opening and locking
        raise InvalidState(f"another process has just finished {out}") from None
