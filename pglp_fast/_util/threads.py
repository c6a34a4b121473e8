"""Running a kernel over a range in plain threads.

Kernels release the GIL and write to disjoint parts of their output, so threads need no locks and
the result does not depend on how many there are. (Numba's own thread pool is not used: its default
layer may not be entered from two threads at once.)"""

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import chain, islice
from threading import Lock, local
from types import TracebackType
from typing import Any, ClassVar

from .validate import whole

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
    """Threads used for a release: what was set, or PGLP_FAST_THREADS, or the cores this process
    may use."""
    return _threads


class _Pool:
    """Threads that stay for the life of the process: starting some takes longer than a small step.

    A child after a fork has none of them, and makes its own."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0
        self._here = local()
        self._lock = ForkLock()

    def _mark(self) -> None:
        self._here.inside = True

    def is_inside(self) -> bool:
        """Whether this thread is one of the pool: it must not wait for others of the pool."""
        return getattr(self._here, "inside", False)

    def submit(self, size: int, calls: list[Callable[[], object]]) -> list[Future[object]]:
        """Start some calls in at least so many threads."""
        with self._lock:
            if self._executor is None or self._size < size:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)  # it still does what was submitted
                self._size = size
                self._executor = ThreadPoolExecutor(size, "pglp_fast", self._mark)
            return [self._executor.submit(call) for call in calls]

    def forget(self) -> None:
        """In a child after a fork: the threads are not there."""
        self._executor = None


def run_ranges(kernel: Callable[[int, int], object], n: int, smallest: int = _SMALLEST) -> None:
    """Call ``kernel(start, stop)`` on parts that together cover 0..n-1."""
    parts = max(1, min(_threads, n // smallest))
    if parts == 1 or _pool.is_inside():
        kernel(0, n)
        return
    bounds = [n * i // parts for i in range(parts + 1)]
    calls = [partial(kernel, bounds[i], bounds[i + 1]) for i in range(1, parts)]
    futures = _pool.submit(_threads, list(calls))
    try:
        kernel(0, bounds[1])
    finally:
        wait(futures)  # nothing is written any more once this returns, whatever happened
    for future in futures:
        future.result()


def map_ahead(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
    """``function`` of each item, in order, while the next ones are at work in threads.

    At most four items are held. What is short is done without a thread."""
    rest, ahead = iter(items), min(_threads, 3)
    waiting = deque(islice(rest, 2))
    if len(waiting) < 2 or ahead == 1:
        yield from map(function, chain(waiting, rest))
        return
    with ThreadPoolExecutor(ahead) as pool:
        futures = deque(pool.submit(function, item) for item in waiting)
        for item in rest:
            futures.append(pool.submit(function, item))
            if len(futures) > ahead:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


class ForkLock:
    """A lock that is open in a forked child, whoever held it.

    The thread that held it is not there any more, so that the child would wait for ever. What it
    guards must be sound at every moment: marked as done only once it is."""

    _all: ClassVar["weakref.WeakSet[ForkLock]"] = weakref.WeakSet()

    def __init__(self) -> None:
        self._lock = Lock()
        self._all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["ForkLock"], tuple[()]]:
        """A copy, in this process or another one, has a lock of its own, open."""
        return ForkLock, ()

    @classmethod
    def open_all(cls) -> None:
        """All of them, new: in a child, where no thread but this one runs."""
        for lock in cls._all:
            lock._lock = Lock()


_pool = _Pool()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=ForkLock.open_all)
    os.register_at_fork(after_in_child=_pool.forget)
