"""How far a long run is, in terminals and notebooks."""

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
        from tqdm.auto import tqdm  # here: importing the package must stay light

        self._bar: Any = tqdm(
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
