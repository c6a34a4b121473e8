"""``schedule`` of a plan: which policy and which epsilon hold when, for whom, and after what."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.times import duration
from pglp_fast.errors import InvalidParameter
from pglp_fast.io.labels import person_name
from pglp_fast.traces.policies import DEFAULT
from pglp_fast.traces.schedule import Moment, Schedule

_KEYS = ("times", "periods", "persons", "released", "utc_offset")


class Said(NamedTuple):
    """What a rule says: a policy, an epsilon, or both."""

    policy: str | None
    epsilon: float | None


class Rules:
    """The rules of a schedule, checked.

    Parameters
    ----------
    schedule : mapping
        "times": from spans of the day to what holds then; "periods": from periods of the model;
        "persons": from persons. What holds is the name of a policy, a number (an epsilon), or a
        mapping with "policy" and "epsilon". "released": from names of policies to the cells after
        whose release they hold. "utc_offset": how far the clock of "times" is ahead of UTC.
    names : sequence of str
        Policies that there are.

    Attributes
    ----------
    persons : dict
        By the label's name, what holds for a person at all times.
    spelt : dict
        The schedule, persons and periods by their names.
    released : dict or None
    """

    def __init__(self, schedule: Mapping[str, Any], names: tuple[str, ...]):
        if not isinstance(schedule, Mapping):
            raise InvalidParameter(
                f"schedule must be a mapping with {', '.join(_KEYS)}, got {check.brief(schedule)}"
            )
        if "place" in schedule or "places" in schedule:
            Schedule(DEFAULT, place=True)  # says why not
        strange = [key for key in schedule if key not in _KEYS]
        if strange:
            raise InvalidParameter(
                f"schedule has no {strange[0]!r}: it may have {', '.join(_KEYS)}"
            )
        self._names = names
        times = self._read(schedule, "times")
        periods = {_period(k): v for k, v in self._read(schedule, "periods").items()}
        self.persons = _by_name(self._read(schedule, "persons"))
        spell: dict[str, Any] = {"persons": person_name, "periods": lambda key: str(_period(key))}
        self.spelt = {
            key: {spell[key](k): v for k, v in rules.items()} if rules and key in spell else rules
            for key, rules in schedule.items()
        }
        self.released = schedule.get("released")
        for name in self.released or {}:
            self._policy(name, "released")
        self._ahead = _offset(schedule.get("utc_offset", 0))
        self._policies = _schedule(DEFAULT, times, periods, "policy", self.released)
        self._epsilons = _schedule("", times, periods, "epsilon", None)
        everything = [*times.values(), *periods.values(), *self.persons.values()]
        self.says_policy = bool(self.released) or any(s.policy for s in everything)
        self.says_epsilon = any(s.epsilon is not None for s in everything)
        self.by_period = bool(periods)

    def _policy(self, name: Any, where: str) -> str:
        if name not in self._names:
            raise InvalidParameter(
                f"schedule, {where}: there is no policy {check.brief(name)} among "
                f"{', '.join(self._names)}: name it in policies="
            )
        return str(name)

    def _read(self, schedule: Mapping[str, Any], key: str) -> dict[Any, Said]:
        rules = schedule.get(key) or {}
        if not isinstance(rules, Mapping):
            raise InvalidParameter(f"schedule, {key}: give a mapping, got {check.brief(rules)}")
        return {at: self._said(value, f"{key} {at!r}") for at, value in rules.items()}

    def _said(self, value: Any, where: str) -> Said:
        if isinstance(value, str):
            return Said(self._policy(value, where), None)
        if isinstance(value, Mapping) and value and set(value) <= {"policy", "epsilon"}:
            name, epsilon = value.get("policy"), value.get("epsilon")
            named = None if name is None else self._policy(name, where)
            return Said(named, None if epsilon is None else check.epsilon(epsilon))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return Said(None, check.epsilon(value))
        raise InvalidParameter(
            f"schedule, {where}: give the name of a policy, an epsilon, or both as "
            f'{{policy = "night", epsilon = 0.5}}, got {check.brief(value)}'
        )

    def policy_at(self, ms: NDArray[np.int64], periods: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the policy at moments (ms since 1970, UTC), whoever it is."""
        number = np.array([self._names.index(name) for name in self._policies.names])
        return np.asarray(number[self._policies.at(Moment(ms + self._ahead, periods, 1))])

    def epsilon_at(
        self, ms: NDArray[np.int64], periods: NDArray[np.int64], otherwise: float
    ) -> NDArray[np.float64]:
        """Epsilon at moments, whoever it is."""
        value = np.array([float(name or otherwise) for name in self._epsilons.names])
        return np.asarray(value[self._epsilons.at(Moment(ms + self._ahead, periods, 1))])

    def check_periods(self, count: int) -> None:
        """Refuse periods that a mobility model of so many does not have."""
        self._policies.check_periods(count)
        self._epsilons.check_periods(count)

    def by_place(self, size: int) -> NDArray[np.int64]:
        """For each cell, the policy of who released it last, -1 for none; empty without rules."""
        if not self.released:
            return np.empty(0, np.int64)
        at = self._policies.by_place(size)
        number = np.array([self._names.index(name) for name in self._policies.names])
        return np.asarray(np.where(at >= 0, number[at], -1))


def _by_name(rules: dict[Any, Said]) -> dict[str, Said]:
    """Rules of persons by their labels' names, as tables are read."""
    out, keys = dict[str, Said](), dict[str, Any]()
    for key, said in rules.items():
        try:
            name = person_name(key)
        except ValueError as error:
            raise InvalidParameter(
                f"schedule, persons: {check.brief(key)} must be a whole number or text: {error}"
            ) from None
        if name in out:
            raise InvalidParameter(
                f"schedule, persons: {check.brief(keys[name])} and {check.brief(key)} are one "
                f"person, {name!r}: give one rule"
            )
        out[name], keys[name] = said, key
    return out


def _schedule(
    default: str, times: Any, periods: Any, what: str, released: Mapping[str, Any] | None
) -> Schedule:
    """The rules that say a policy, or an epsilon (as text), as a schedule."""

    def of(rules: dict[Any, Said]) -> dict[Any, str]:
        found = {at: getattr(said, what) for at, said in rules.items()}
        return {at: str(value) for at, value in found.items() if value is not None}

    return Schedule(default, times=of(times), periods=of(periods), released=released)


def _period(key: Any) -> int:
    """TOML writes keys as text."""
    text = str(key)
    if not text.isdigit():
        raise InvalidParameter(f"schedule, periods: {check.brief(key)} is not a period's number")
    return int(text)


def _offset(value: Any) -> int:
    """Milliseconds ahead of UTC."""
    if value in (0, "0", "0h"):
        return 0
    text = str(value)
    sign = -1 if text.startswith("-") else 1
    ahead = duration(text.lstrip("+-"), "utc_offset")
    if ahead > 14 * 3_600_000:
        raise InvalidParameter(f"utc_offset is {text}: it must be within 14h of UTC")
    return sign * ahead
