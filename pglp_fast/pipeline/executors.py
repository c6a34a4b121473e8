"""Tasks here, in a pool of ``concurrent.futures``, or on a cluster of Dask."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from itertools import islice
from typing import Any

from pglp_fast._util.packages import need
from pglp_fast.errors import InvalidParameter

_AHEAD = 64  # tasks that wait in a pool: their arguments are in memory
_LIVES = 10  # workers of Dask that one task may outlive

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


def run_tasks(
    executor: Any,
    function: Callable[..., Any],
    tasks: Sequence[Task],
    done: Callable[[int], None] = lambda k: None,
) -> list[Any]:
    """What the function makes of each task, in their order; ``done`` is told of each as it ends.

    Tasks must be functions of their arguments and files: one whose worker was killed is run again.
    """
    out: list[Any] = [None] * len(tasks)
    for k, result in _ended(executor, function, tasks):
        out[k] = result
        done(k)
    return out


def _ended(
    executor: Any, function: Callable[..., Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    if executor is None:
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
        warnings.warn(
            f"a worker process died; the {len(left)} tasks that are left are done in this process",
            RuntimeWarning,
            stacklevel=2,
        )
        yield from ((k, function(*tasks[k])) for k in sorted(left))
    finally:
        for future in open_tasks:
            future.cancel()


def _on_dask(
    client: Any, function: Callable[..., Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Dask runs the tasks of a lost worker again by itself, a few times; then we do."""
    distributed = need("distributed")

    def submitted(k: int) -> Any:
        return client.submit(function, *tasks[k], pure=False)

    number = {submitted(k): k for k in range(len(tasks))}
    lives, ended = [_LIVES] * len(tasks), distributed.as_completed(list(number))
    try:
        for future in ended:
            k = number.pop(future)
            if isinstance(future.exception(), distributed.KilledWorker) and lives[k]:
                lives[k] -= 1
                again = submitted(k)
                number[again] = k
                ended.add(again)
                continue
            yield k, future.result()
    finally:
        client.cancel(list(number))
