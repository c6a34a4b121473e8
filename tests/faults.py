"""Processes that are killed, interrupted or out of disk, for the tests of what they leave."""

import os
import signal
import time
import warnings

from pglp_fast import cli


def forked(work, *, limit=None):
    """The number of a child that does ``work()`` and ends with what it answers; ``limit``: bytes
    that it may write to a file, as on a disk that is full."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child never returns from here
        child = os.fork()
    if child:
        return child
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
        if limit is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        code = work() or 0
    finally:
        os._exit(code)


def command(*arguments, **how):
    """The same for the command line."""
    return forked(lambda: cli.main([str(a) for a in arguments]), **how)


def ended(child):
    """Its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stopped(child, seconds, how=signal.SIGKILL):
    """The same, after a signal that comes so late; it may have ended before."""
    time.sleep(seconds)
    os.kill(child, how)  # until it is waited for, its number is nobody else's
    return ended(child)
