"""How far a long run is, in terminals and notebooks."""

import os
import sys
from functools import lru_cache
from threading import RLock
from typing import Any

_FORMAT = (
    "{desc}{percentage:3.0f}% |{bar:24}| {n:,.0f} of {total:,.0f} {unit}, {rate_noinv_fmt}, "
    "{remaining} left"
)


class Progress:
    """A bar of tqdm's: on standard error, or in the notebook.

    Parameters
    ----------
    total : units of work
    unit : what a unit is called
    what : what is being done
    shown : None shows the bar only where standard error is a terminal
    """

    def __init__(
        self, total: int, unit: str = "user-steps", what: str = "", *, shown: bool | None = True
    ):
        if shown is None:
            shown = sys.stderr is not None and sys.stderr.isatty()
        self._bar: Any = None
        if shown:
            self._bar = _bars(os.getpid())(
                total=total, unit=unit, desc=what, bar_format=_FORMAT, mininterval=0.2
            )

    def advance(self, n: int) -> None:
        """So many more units are done."""
        if self._bar is not None:
            self._bar.update(n)

    def reach(self, n: int) -> None:
        """So many units are done in all."""
        if self._bar is not None:
            self._bar.update(n - self._bar.n)

    def close(self) -> None:
        """Draw the bar as it is now, and end its line."""
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()


@lru_cache(maxsize=1)
def _bars(process: int) -> Any:
    """tqdm's bars, with a lock of this process.

    Their own is shared by all forks of a process: one that is killed while it has it, as a worker
    may be, would keep the others waiting for ever."""
    from tqdm.auto import tqdm  # here: importing the package must stay light

    class Bars(tqdm):  # type: ignore[misc]
        pass

    Bars.set_lock(RLock())
    return Bars
