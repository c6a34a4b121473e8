"""A fork while another thread works: the child neither waits for ever nor finds things half done.

Each script runs in a process of its own, with an alarm in the child."""

import os
import subprocess
import sys

import pytest

from cases import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

CHILD = """
import os, signal, sys, threading, time
import numpy as np
import pglp_fast as pf

def child_says(call):
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)  # a child that waits is killed
        try:
            os._exit(0 if call() else 3)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

TABLES = """
parent, started, go_on = os.getpid(), threading.Event(), threading.Event()

class Slow(pf.KRR):
    def log_probabilities(self, component):
        if os.getpid() == parent:
            started.set()
            go_on.wait(150)
        return super().log_probabilities(component)

m = Slow(pf.blocks(pf.Grid(4, 4), 2), epsilon=1.0)
builder = threading.Thread(target=m.release, args=([0],))
builder.start()
assert started.wait(60)
code = child_says(lambda: m.release([0, 5], rng=1).shape == (2,) and pf.certify(m).ok)
go_on.set()
builder.join()
assert m.release([0, 5], rng=1).shape == (2,)
sys.exit(code)
"""

GEOMETRY = """
m = pf.PPIM(pf.blocks(pf.Grid(20, 20), 20), epsilon=1.0, sampler="geometric")
started, go_on = threading.Event(), threading.Event()

def hold():
    with m.geometry._lock:
        started.set()
        go_on.wait(150)

holder = threading.Thread(target=hold)
holder.start()
assert started.wait(60)
code = child_says(lambda: m.release([0, 5], rng=1).shape == (2,))
go_on.set()
holder.join()
sys.exit(code)
"""

COMPILER = """
from numba.core.compiler_lock import global_compiler_lock
from pglp_fast._kernels.base.bits import popcount

started = threading.Event()

def compile_for_a_while():
    with global_compiler_lock:
        started.set()
        time.sleep(0.5)

thread = threading.Thread(target=compile_for_a_while)
thread.start()
assert started.wait(60)
code = child_says(lambda: int(popcount(np.array([3, 5], np.uint64))) == 4)
thread.join()
assert int(popcount(np.array([3], np.uint64))) == 2  # the parent may compile again
sys.exit(code)
"""

BARS = """
from pglp_fast._util.progress import Progress

class Deadly:
    encoding = "utf-8"
    def write(self, text):
        os.kill(os.getpid(), signal.SIGKILL)

def draw():
    bar = Progress(10, "rows")
    bar.advance(10)
    bar.close()
    return True

draw()

def die_drawing():
    sys.stderr = Deadly()
    return draw()

assert child_says(die_drawing) == -signal.SIGKILL
signal.alarm(100)  # the parent may wait for ever too
draw(), Progress(10, "rows", shown=False).close()

from pglp_fast._util.progress import _bars

held, go_on = threading.Event(), threading.Event()

def hold():
    with _bars(os.getpid()).get_lock():
        held.set()
        go_on.wait(150)

holder = threading.Thread(target=hold)
holder.start()
assert held.wait(60)
code = child_says(draw)
go_on.set()
holder.join()
sys.exit(code)
"""


FILES = """
import tempfile
from pathlib import Path
from pglp_fast._util.storage import alone_with, let_go, locked
from pglp_fast.pipeline.work_folder import _locked

folder = Path(tempfile.mkdtemp())
(folder / "there").write_text("")
children, (hear, say) = [], os.pipe()

def child_that_stays():
    children.append(os.fork())
    if not children[-1]:
        signal.alarm(100)
        os.write(say, b"x")
        signal.pause()
    os.read(hear, 1)

with alone_with(folder / "ledger"), locked(folder / "there"):
    child_that_stays()
job = _locked(folder / "work", folder / "out")
child_that_stays()
let_go(job)
signal.signal(signal.SIGALRM, lambda *_: [os.kill(child, signal.SIGKILL) for child in children])
signal.alarm(60)
with alone_with(folder / "ledger"), locked(folder / "there"):
    assert signal.alarm(0)
    let_go(_locked(folder / "work", folder / "out"))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


SCRIPTS = {"tables": TABLES, "noise": GEOMETRY, "compiler": COMPILER, "bars": BARS, "files": FILES}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_child_of_a_busy_process_works(name):
    """The locks of a thread that is not in the child used to stay closed; those of files stayed
    closed as long as a child lived."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD + SCRIPTS[name]],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
