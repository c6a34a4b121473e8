"""Tasks here, in a pool of ``concurrent.futures``, or on a cluster of Dask."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, as_completed
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from pglp_fast._util.packages import need
from pglp_fast._util.threads import map_ahead
from pglp_fast.errors import InvalidParameter

_AHEAD = 64  # tasks that wait in a pool: their arguments are in memory
_LIVES = 10  # workers of Dask that one task may outlive
PATIENCE_S = 60.0  # that a cluster may be without workers
_LOOK_S = 2.0  # between looks at the workers

Task = tuple[Any, ...]


def check_executor(executor: Any) -> None:
    """Refuse what tasks cannot be given to."""
    if executor is not None and not isinstance(executor, Executor) and not _is_dask(executor):
        raise InvalidParameter(
            "executor must be an Executor of concurrent.futures or a dask.distributed.Client, got "
            f"{type(executor).__name__}"
        )


def _is_dask(executor: Any) -> bool:
    return any(kind.__module__.startswith("distributed.") for kind in type(executor).__mro__)


def on_every_worker(executor: Any, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Start a call on each worker that a cluster of Dask has now; nobody waits for it. What is
    returned must be held for as long as it is wanted."""
    if not _is_dask(executor):
        return []
    return [
        executor.submit(function, *arguments, workers=[worker], pure=False)
        for worker in executor.nthreads()
    ]


def run_tasks(
    executor: Any,
    function: Callable[..., Any],
    tasks: Sequence[Task],
    done: Callable[[int], None] = lambda k: None,
    *,
    beside: bool = False,
) -> list[Any]:
    """What the function makes of each task, in their order; ``done`` is told of each as it ends.

    ``beside``: without an executor some of them run side by side, in threads.

    Tasks must be functions of their arguments and files: one whose worker was killed is run again.
    """
    out: list[Any] = [None] * len(tasks)
    for k, result in _ended(executor, function, tasks, beside):
        out[k] = result
        done(k)
    return out


def _ended(
    executor: Any, function: Callable[..., Any], tasks: Sequence[Task], beside: bool
) -> Iterator[tuple[int, Any]]:
    if executor is None and beside:
        yield from enumerate(map_ahead(lambda task: function(*task), tasks))
    elif executor is None:
        yield from ((k, function(*task)) for k, task in enumerate(tasks))
    elif _is_dask(executor):
        yield from _on_dask(executor, function, tasks)
    else:
        yield from _in_pool(executor, function, tasks)


def _in_pool(
    pool: Executor, function: Callable[..., Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Some tasks at a time. A pool that lost a process is of no more use: the rest is done here."""
    rest, open_tasks = iter(range(len(tasks))), dict[Any, int]()
    left = set(range(len(tasks)))
    try:
        while left:
            for k in islice(rest, _AHEAD - len(open_tasks)):
                open_tasks[pool.submit(function, *tasks[k])] = k
            future = next(as_completed(open_tasks))
            k = open_tasks.pop(future)
            result = future.result()
            left.remove(k)
            yield k, result
    except BrokenExecutor:
        _warn(f"a worker process died; the {len(left)} tasks that are left are")
        yield from ((k, function(*tasks[k])) for k in sorted(left))
    finally:
        for future in open_tasks:
            future.cancel()


def _on_dask(
    client: Any, function: Callable[..., Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Dask runs the tasks of a lost worker again by itself, a few times; then we do. Dask waits
    for ever for workers that do not come back: after a while, the rest is done here."""
    distributed = need("distributed")
    ended: SimpleQueue[Any] = SimpleQueue()
    number, lives = dict[Any, int](), [_LIVES] * len(tasks)

    def submit(k: int) -> None:
        future = client.submit(function, *tasks[k], pure=False)
        number[future] = k
        future.add_done_callback(ended.put)

    try:
        for k in range(len(tasks)):
            submit(k)
        while number:
            future = _patiently(client, ended.get)
            k = number[future]
            error = _patiently(client, future.exception)
            if isinstance(error, distributed.KilledWorker) and lives[k]:
                lives[k] -= 1
                del number[future]
                submit(k)
                continue
            result = _patiently(client, future.result) if error is None else future.result()
            del number[future]
            yield k, result
    except _NoWorkers:
        left = sorted(number.values())
        _warn(f"the cluster has no workers any more; the {len(left)} tasks that are left are")
        yield from ((k, function(*tasks[k])) for k in left)
    finally:
        if client.status == "running":
            client.cancel(list(number))


class _NoWorkers(Exception):
    """A cluster on which nothing will ever run."""


def _patiently(client: Any, wait: Callable[..., Any]) -> Any:
    """What a call with a time-out answers, however long that takes while there are workers."""
    since = monotonic()
    while True:
        try:
            return wait(timeout=_LOOK_S)
        except (Empty, TimeoutError):
            if _has_workers(client):
                since = monotonic()
        except CancelledError:
            if _has_workers(client):
                raise
            raise _NoWorkers from None
        if monotonic() - since > PATIENCE_S:
            raise _NoWorkers


def _has_workers(client: Any) -> bool:
    try:
        return client.status == "running" and bool(client.nthreads())
    except (OSError, TimeoutError):  # nor a scheduler
        return False


def _warn(what: str) -> None:
    warnings.warn(f"{what} done in this process", RuntimeWarning, stacklevel=4)
