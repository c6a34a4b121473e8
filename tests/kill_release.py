"""Kill a release (kill -9) at random moments, resume it, and compare with one that never stopped.

    python tests/kill_release.py KILLS SEED release TABLE OPTIONS...

Jobs run in forks of this process, in which everything is imported and compiled: so most kills
strike the work itself, and thousands take minutes."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from pglp_fast import cli

OUT, SIDECAR, WORK = Path("o.csv"), Path("o.csv.json"), Path("o.csv.work")


def run(job, out):
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        return cli.main([*job, "-o", str(out), "--resume"])


def main(kills, seed, job):
    assert run(job, "whole.csv") == 0
    begin = time.monotonic()
    assert run(job, OUT) == 0
    lasts = time.monotonic() - begin
    rng, killed, ends, parts, finished = np.random.default_rng(seed), 0, 0, 0, 0
    while killed < kills:
        if OUT.exists() and not WORK.exists():  # it came to its end
            assert OUT.read_bytes() == Path("whole.csv").read_bytes()
            assert json.loads(SIDECAR.read_text())["epsilon"] == 1
            OUT.unlink(), SIDECAR.unlink()
            ends += 1
        child = os.fork()
        if not child:
            os._exit(run(job, OUT))
        time.sleep(lasts * rng.uniform(0, 1.2))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
            # killed before, when all was done but for removing the empty folder: there is nothing
            # to resume, and it says so
            assert OUT.read_bytes() == Path("whole.csv").read_bytes() and not WORK.exists()
        killed += os.WIFSIGNALED(status)
        parts += any(WORK.glob("part-*"))
        finished += WORK.exists() and OUT.exists()
    assert (OUT.exists() and not WORK.exists()) or run(job, OUT) == 0
    assert OUT.read_bytes() == Path("whole.csv").read_bytes() and not WORK.exists()
    print(f"{killed} kills, {ends} ends, {parts} with parts, {finished} after the output was there")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
