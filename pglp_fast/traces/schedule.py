"""Policies that follow from public facts: when it is, and what was released last."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.times import DAY_MS, duration
from pglp_fast.errors import InvalidParameter

Ints = NDArray[np.int64]
_SPAN = re.compile(r"\s*(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\s*")
_MINUTE_MS = 60_000


class Moment(NamedTuple):
    """When events happen: step and period of the model of each, and a step's duration in ms, where
    it is known (steps are then counted from midnight UTC)."""

    steps: Ints
    periods: Ints
    step_ms: int | None = None


class Schedule:
    """Which policy holds when, for ``policy=`` of ``TraceReleaser.run`` and ``Stream.step``.

    A choice must follow from what everybody may know: who, when, and what was released so far. What
    was *released* last may choose the policy, where somebody truly is may not: the choice itself
    would tell it.

    Parameters
    ----------
    default : str
        Name of the policy where nothing else says one.
    times : mapping, optional
        From spans of the day, such as "22:00-06:00", to names. A span includes its first minute,
        not its last.
    periods : mapping, optional
        From periods of the mobility model to names.
    released : mapping, optional
        From names to cells: the policy of a user whose last release is one of them. It wins over
        times, times win over periods. At a user's first release nothing was released before.
    step : str or timedelta, optional
        Duration of a step, for ``times``; known of ``Traces``.
    start : str
        Time of day of step 0.
    place
        Refused: see above.

    Examples
    --------
    >>> import pglp_fast as pf
    >>> night = pf.Schedule("day", times={"22:00-06:00": "night"}, step="1h")
    """

    def __init__(
        self,
        default: str,
        *,
        times: Mapping[str, str] | None = None,
        periods: Mapping[int, str] | None = None,
        released: Mapping[str, Any] | None = None,
        step: Any = None,
        start: str = "00:00",
        place: Any = None,
    ):
        if place is not None:
            raise InvalidParameter(
                "a policy cannot be chosen by the place where somebody is: the choice is public, "
                "and would tell it; use released=, by the place that was released last"
            )
        for name, value in (("times", times), ("periods", periods), ("released", released)):
            if value is not None:
                what = f"{name} must be a mapping"
                check.instance(value, Mapping, what, "use a dict")  # type: ignore[type-abstract]
        self.times = [(*_span(span), name) for span, name in (times or {}).items()]
        self.periods = {check.whole(k, "a period", 0): name for k, name in (periods or {}).items()}
        self.released = None if released is None else dict(released)
        told = [default, *(times or {}).values(), *(periods or {}).values(), *(released or {})]
        odd = [name for name in told if not isinstance(name, str)]
        if odd:
            raise InvalidParameter(f"policies go by name, got {check.brief(odd[0])}: use a string")
        self.names = list(dict.fromkeys(told))
        self.step_ms = None if step is None else duration(step, "step")
        self.start_ms = _span(f"{start}-00:00", f"start must be a time of day, got {start!r}")[0]

    def at(self, moment: Moment) -> Ints:
        """For each event, the place of its policy among ``names``."""
        out = np.zeros(len(moment.steps), np.int64)
        for period, name in self.periods.items():
            out[moment.periods == period] = self.names.index(name)
        if self.times:
            step = self.step_ms or moment.step_ms
            if step is None:
                raise InvalidParameter(
                    "a schedule by times must know how long a step is: give Schedule(step='5min')"
                )
            clock = (moment.steps * step + self.start_ms) % DAY_MS
            for first, last, name in self.times:
                inside = (clock >= first) & (clock < last)
                if last <= first:  # past midnight
                    inside = (clock >= first) | (clock < last)
                out[inside] = self.names.index(name)
        return out

    def check_periods(self, count: int) -> None:
        """Refuse periods that a mobility model of so many does not have: they would never come, and
        their policy never hold."""
        beyond = [period for period in self.periods if period >= count]
        if beyond:
            raise InvalidParameter(
                f"the schedule speaks of period {beyond[0]}, which never comes: the mobility model "
                f"has {count}, from 0 to {count - 1}"
            )

    def by_place(self, size: int) -> Ints:
        """For each location, the place among ``names`` of the policy of who released it last; -1
        where it says nothing."""
        out = np.full(size, -1)
        for name, cells in (self.released or {}).items():
            some = check.cells(cells, size, f"released[{name!r}]").reshape(-1)
            taken = some[out[some] >= 0]
            if taken.size:
                raise InvalidParameter(
                    f"released has location {taken[0]} under two policies, one is {name!r}: keep "
                    "one"
                )
            out[some] = self.names.index(name)
        return out

    def __repr__(self) -> str:
        return f"Schedule({', '.join(self.names)})"


def _span(text: Any, problem: str = "") -> tuple[int, int]:
    """(first, last) of a span of the day, in ms since midnight."""
    found = _SPAN.fullmatch(text) if isinstance(text, str) else None
    if found:
        h0, m0, h1, m1 = map(int, found.groups())
        if h0 < 24 and h1 <= 24 and max(m0, m1) < 60 and 60 * h1 + m1 <= 24 * 60:
            return (60 * h0 + m0) * _MINUTE_MS, (60 * h1 + m1) * _MINUTE_MS
    raise InvalidParameter(
        problem or f'times must be spans of the day such as "22:00-06:00", got {check.brief(text)}'
    )
