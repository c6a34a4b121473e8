"""Budgets of a plan: in total, and over windows of steps or of time."""

from collections.abc import Mapping
from typing import Any

from pglp_fast._util import times, validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.traces.spending import Limits

TOTAL = "total"


def read_budgets(budget: Any, window: Any) -> dict[int | str | None, float]:
    """Budgets by window: a number of steps, a duration (text), or None for the total."""
    if budget is None or isinstance(budget, Mapping):
        if window is not None:
            raise InvalidParameter("window goes with one budget: give the epsilon that it allows")
        given: Mapping[Any, Any] = budget or {}
    else:
        given = {TOTAL if window is None else window: budget}
    return {_window(key): check.positive(value, "budget") for key, value in given.items()}


def _window(key: Any) -> int | str | None:
    if key is None or key == TOTAL:
        return None
    text = str(key).strip()
    if text.isascii() and text.isdigit():
        return check.whole(int(text), "window", 1, check.MAX_TIME)
    if isinstance(key, str):
        times.duration(key, "window")
        return text
    raise InvalidParameter(
        f"window must be a number of steps, or a duration such as '1d', got {check.brief(key)}"
    )


def limits_of(budgets: Mapping[int | str | None, float], step_ms: int | None) -> Limits:
    """The same in steps; ``step_ms``: duration of one, None for rows released one by one."""
    limits: dict[int | None, float] = {}
    for window, budget in budgets.items():
        if window is not None and step_ms is None:
            raise InvalidParameter(
                f"a budget over a window ({window}) is for users who move: give mobility=MODEL, or "
                "a budget in total"
            )
        steps = window if isinstance(window, int | None) else _steps(window, step_ms or 1)
        limits[steps] = min(budget, limits.get(steps, budget))
    return Limits(limits or None, step_ms=step_ms)


def _steps(window: str, step_ms: int) -> int:
    ms = times.duration(window, "window")
    if ms % step_ms:
        raise InvalidParameter(
            f"the window {window} is not a multiple of a step, which is {times.shown(step_ms)}"
        )
    return ms // step_ms


def in_words(budgets: Mapping[int | str | None, float]) -> str:
    """Budgets of a person, in words."""
    parts = [
        f"{budget:g} for a person"
        if window is None
        else f"{budget:g} over any {window}{' steps' if isinstance(window, int) else ''}"
        for window, budget in budgets.items()
    ]
    return " and ".join(parts)
