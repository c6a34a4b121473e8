"""One bar, in terminals and where it is asked for."""

import os
import subprocess
import sys

import pytest

from pglp_fast._util.progress import Progress


def test_a_bar_says_what_is_done(capsys):
    bar = Progress(1200, "rows", "reading ")
    bar.advance(200)
    bar.reach(1200)
    bar.close()
    out, err = capsys.readouterr()
    assert out == "" and "reading" in err and "100%" in err and "1,200 of 1,200 rows" in err


def test_no_bar_where_nobody_looks(capsys):
    """Standard error is no terminal here."""
    for shown in (None, False):
        bar = Progress(10, "rows", shown=shown)
        bar.advance(10)
        bar.close()
    assert capsys.readouterr() == ("", "")


HELD = """
import os, signal, tqdm
from pglp_fast._util.progress import Progress
Progress(10, shown={shown}).close()
lock = tqdm.tqdm.get_lock()
child = os.fork()
if not child:
    lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
child = os.fork()
if not child:
    signal.alarm(60)  # it ends, whatever it waits for
    bar = Progress(10, shown={shown})
    bar.advance(10)
    bar.close()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("shown", [True, False])
def test_a_worker_that_was_killed_keeps_nobody_waiting(shown):
    """tqdm's lock is shared by all forks, and is not opened when one dies: the next worker waited
    for it for ever, whether it had a bar to show or not."""
    script = HELD.format(shown=shown)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert done.stdout.split() == [b"7"], done.stderr
