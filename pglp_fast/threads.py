"""Running a kernel over a range in plain threads.

Kernels release the GIL and write to disjoint parts of their output, so threads need no locks and the result does not
depend on how many there are. (Numba's own thread pool is not used: its default layer may not be entered from two
threads at once.)
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ._validate import whole

_SMALLEST = 1 << 15  # a thread's share below this is not worth a thread


def _available() -> int:
    wanted = os.environ.get("PGLP_FAST_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


_threads = _available()


def set_num_threads(n: int) -> None:
    """Use at most n threads for a release. Results do not depend on it."""
    global _threads
    _threads = whole(n, "n", 1)


def get_num_threads() -> int:
    """Threads used for a release: what was set, or PGLP_FAST_THREADS, or the cores this process may use."""
    return _threads


def run_ranges(kernel: Callable[[int, int], object], n: int, smallest: int = _SMALLEST) -> None:
    """Call ``kernel(start, stop)`` on parts that together cover 0..n-1."""
    parts = max(1, min(_threads, n // smallest))
    if parts == 1:
        kernel(0, n)
        return
    bounds = [n * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(kernel, bounds[:-1], bounds[1:]))
