"""The work folder of a release: what an interrupted job needs to go on as if it had never stopped.

It stands beside the output while the job runs, for its owner only, and one process holds its lock.
It has the key of the noise, what tasks leave for each other, and outputs that are written. Draws
are functions of the key: whatever is not there is made again, bit for bit. The key is bound to the
job (plan and inputs, by digest), so that one draw never serves two inputs. At the end the outputs
are renamed and the folder is removed, the key last."""

import hashlib
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from pglp_fast._util.storage import (
    SECRET,
    file_digest,
    keep,
    let_go,
    publish,
    replacing,
)
from pglp_fast.errors import InvalidParameter, InvalidState

from .paths import refuse_existing

_KIND = "pglp_fast release job"
BEFORE = "ledger-before"  # the ledger file as it was when the job began


def work_of(out: Path) -> Path:
    """The work folder of an output."""
    return Path(f"{out}.work")


class Job:
    """A job whose folder is locked by this process.

    Parameters
    ----------
    out : Path
        A file, or a folder of many.
    targets : list of Path
        The files that will be written.
    sidecars : list of Path
        Those that will be written beside them.
    digest : str
        Of everything that they depend on but the key.
    seed : int or None
        What the key is made from; None for a fresh one.
    resume, force : bool
        Go on with a job that was interrupted; overwrite what is there, and start anew.

    Attributes
    ----------
    seed : int
    name : str
        Of this job and no other; the same when it is resumed.
    digest : str
        Of everything that the outputs depend on, the key included.
    """

    def __init__(
        self,
        out: Path,
        targets: list[Path],
        sidecars: list[Path],
        digest: str,
        *,
        seed: int | None,
        resume: bool,
        force: bool,
    ):
        self.out, self.targets, self.sidecars = out, targets, sidecars
        self.folder, self._resumed = work_of(out), False
        self._head_path = self.folder / "job.json"
        refuse_existing(out, True, folder=out not in targets)
        self._handle = _locked(self.folder, out)
        started = False
        try:
            started = self._head_path.exists()
            self._take(digest, seed, resume, force, started)
        except BaseException:
            self._release(remove=not started)
            raise

    def _take(
        self, digest: str, seed: int | None, resume: bool, force: bool, started: bool
    ) -> None:
        """Go on with what is there, or start."""
        if not started:
            strangers = [p.name for p in self.folder.iterdir() if not p.name.startswith(".")]
            if strangers:
                raise InvalidParameter(
                    f"{self.folder} is in the way, and nothing in it says that it is a release's: "
                    "move it away, or name another output"
                )
            there = [p for p in self.targets if os.path.lexists(p)]
            if resume and there:
                raise InvalidParameter(
                    f"{there[0]} is there and no job is left to resume: it is complete. "
                    "force=True without resume=True starts anew"
                )
            for path in (*there, *filter(os.path.lexists, self.sidecars)):
                refuse_existing(path, force)
        elif not (resume or force):
            self._read()
            raise InvalidParameter(
                f"a job for {self.out} was interrupted: resume=True goes on with it, force=True "
                "starts anew"
            )
        if started and resume:
            self._head, self._resumed = self._read(), True
            if self._head["job"] != digest:
                raise InvalidState(
                    f"the interrupted job at {self.folder} had another input, model or other "
                    "options, or another ledger: give those to resume it, or start anew with "
                    "force=True"
                )
            for target in self.targets:
                self._check_resumed(target)
        else:
            self.clear()
            key = secrets.randbits(256) if seed is None else seed
            self._head = {"kind": _KIND, "job": digest, "seed": str(key), "overwrites": force}
            self._head["name"] = secrets.token_hex(8)  # in a ledger file
            self._write()
        self.seed, self.name = int(self._head["seed"]), str(self._head.get("name", ""))
        # of all that decides what tasks leave in the folder, the key too
        self.digest = hashlib.sha256(f"{digest} {self.seed}".encode()).hexdigest()

    def _check_resumed(self, target: Path) -> None:
        """What stands at a target must be nothing, ours, or known to be overwritten."""
        done = self._head.get("finished", {}).get(target.name)
        if not target.exists() or self.is_done(target):
            return
        if done is not None and not self.written(target).exists():
            raise InvalidState(
                f"{target} was finished and is no longer what the job wrote: move it away to "
                "write it again, or start anew with force=True"
            )
        if not self._head["overwrites"]:
            raise InvalidState(
                f"{target} appeared since the job was interrupted: move it away, or start anew "
                "with force=True"
            )

    # -- what others know of it

    @property
    def booked(self) -> bool:
        """Whether a ledger file holds what it releases."""
        return bool(self._head.get("booked"))

    def note_booked(self) -> None:
        """Before anything is drawn."""
        if not self.booked:
            self._head["booked"] = True
            self._write()

    @property
    def matters(self) -> bool:
        """Whether an error must leave it: it was begun before, budgets were spent on it, or some
        of its outputs are in their places. With another key they would be drawn twice."""
        return self._resumed or self.booked or "finished" in self._head

    # -- outputs

    def written(self, target: Path) -> Path:
        """Where an output is, once it is whole, until all are."""
        return self.folder / f"output-{target.name}"

    def is_done(self, target: Path) -> bool:
        """Whether an output is in its place."""
        done = self._head.get("finished", {}).get(target.name)
        return done is not None and target.is_file() and [*_look(target)] == done

    def finish(self, extras: dict[str, bytes], modes: dict[str, int]) -> None:
        """Put all outputs in their places, each with a sidecar if it has one; then nothing of the
        job is left."""
        new = {t.name: _look(self.written(t)) for t in self.targets if self.written(t).exists()}
        self._head["finished"] = {**self._head.get("finished", {}), **new}
        self._write()
        for target in self.targets:
            if not self.written(target).exists():
                continue
            if target.name in extras:  # written in the folder: nothing is ever left beside it
                with replacing(self.folder / "sidecar", SECRET) as part:
                    part.write_bytes(extras[target.name])
                self._place(self.folder / "sidecar", sidecar_of(target), modes[target.name])
            self._place(self.written(target), target, modes[target.name])
        self.close(finished=True)

    @staticmethod
    def _place(made: Path, target: Path, mode: int) -> None:
        made.chmod(mode | stat.S_IWUSR)  # or it could not be synced
        publish(made, target)
        if not mode & stat.S_IWUSR:
            target.chmod(mode)

    # -- the folder

    def _write(self) -> None:
        with replacing(self._head_path, SECRET) as part:
            part.write_text(json.dumps(self._head))

    def _read(self) -> dict[str, Any]:
        try:
            head = json.loads(self._head_path.read_text())
            known = head["kind"] == _KIND and {"job", "seed", "overwrites"} <= head.keys()
        except (ValueError, LookupError, TypeError, AttributeError, OSError):
            known = False
        if not known:
            raise InvalidState(
                f"{self._head_path} is not of this version, or is damaged, so no job can go on "
                "from it: force=True, without resume=True, removes it and starts anew"
            )
        return dict(head)

    def forget_results(self) -> None:
        """Remove what was made from an input that is no longer the one the job is bound to."""
        for path in self.folder.iterdir():
            if path.name not in (self._head_path.name, BEFORE):
                path.unlink()

    def clear(self) -> None:
        """Remove what is in the folder; the key last, when nothing is left that it could unlock."""
        for path in self.folder.iterdir():
            if path != self._head_path:
                path.unlink()
        self._head_path.unlink(missing_ok=True)

    def close(self, *, finished: bool) -> None:
        """``finished``: nothing of it is left; else it can be resumed."""
        if finished:
            self.clear()
        self._release(remove=finished)

    def _release(self, *, remove: bool) -> None:
        if remove and not any(self.folder.iterdir()):
            self.folder.rmdir()
        if self._handle is not None:
            let_go(self._handle)


def sidecar_of(target: Path) -> Path:
    """Where a text table says how it was released."""
    return Path(f"{target}.json")


def _look(path: Path) -> list[Any]:
    return [path.stat().st_size, file_digest(path)]


def _locked(folder: Path, out: Path) -> int | None:
    """Make the folder if need be and lock it: two processes must not write one output."""
    try:
        import fcntl
    except ImportError:  # no locks on this system
        folder.mkdir(0o700, exist_ok=True)
        return None
    while True:
        try:
            folder.mkdir(0o700, exist_ok=True)
            handle = keep(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        except FileNotFoundError:  # removed in between
            continue
        except (FileExistsError, NotADirectoryError):
            raise InvalidParameter(
                f"{folder}, where the job would keep its work, is not a folder: move it away, or "
                "name another output"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            let_go(handle)
            raise InvalidState(
                f"another process is releasing {out} right now: wait for it, or choose another "
                "output"
            ) from None
        there = os.fstat(handle)
        if there.st_uid != os.geteuid() or stat.S_IMODE(there.st_mode) & 0o022:
            let_go(handle)
            raise InvalidParameter(
                f"{folder}, where the job would keep its key, is open to others: remove it, or "
                "name another output"
            )
        if folder.exists() and os.path.samestat(there, os.stat(folder)):
            return handle
        let_go(handle)
