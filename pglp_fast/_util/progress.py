"""How far a long run is, in terminals and notebooks."""

import os
from functools import cache
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
        self._bar: Any = _kind()(
            total=total,
            unit=unit,
            desc=what,
            disable=None if shown is None else not shown,
            bar_format=_FORMAT,
            mininterval=0.2,
        )

    def advance(self, n: int) -> None:
        """So many more units are done."""
        self._bar.update(n)

    def reach(self, n: int) -> None:
        """So many units are done in all."""
        self._bar.update(n - self._bar.n)

    def close(self) -> None:
        """Draw the bar as it is now, and end its line."""
        self._bar.refresh()
        self._bar.close()


@cache
def _kind() -> Any:
    """Bars with a lock of this process alone.

    Forked processes share the lock that tqdm would take, shown or not: one that is killed with it
    in its hands stops the bars of all others, for ever."""
    from tqdm.auto import tqdm  # here: importing the package must stay light

    class Bar(tqdm):  # type: ignore[type-arg, misc, unused-ignore]
        """Of tqdm's, with a lock of its own."""

    Bar.set_lock(RLock())
    if hasattr(os, "register_at_fork"):  # a thread that is not there holds the lock in a child
        os.register_at_fork(after_in_child=lambda: Bar.set_lock(RLock()))
    return Bar
