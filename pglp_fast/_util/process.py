"""Noise belongs to one process: a fork must not draw it a second time."""

import os

from pglp_fast.errors import InvalidState


class OwnProcess:
    """The process that something was made in.

    A forked copy has the same key and stands at the same step: its noise would serve two inputs.

    Parameters
    ----------
    what : str
        What was made, such as "this stream was made".
    remedy : str
        What to do instead.
    """

    __slots__ = ("_number", "_remedy", "_what")

    def __init__(self, what: str, remedy: str):
        self._number, self._what, self._remedy = os.getpid(), what, remedy

    def require(self) -> None:
        """Refuse to go on in a fork."""
        if os.getpid() != self._number:
            raise InvalidState(
                f"{self._what} in another process and forked: both would release with the same "
                f"noise. {self._remedy}"
            )
