"""Which policy and which epsilon hold for whom and when (spec section 10)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.threads import ForkLock
from pglp_fast.errors import InvalidParameter, TooLarge

from .policies import PolicySet
from .schedule import Moment, Schedule

MAX_EPSILONS = 1 << 16
Ints = NDArray[np.int64]


class Choices(NamedTuple):
    """Of some events.

    Attributes
    ----------
    number : that of the policy, plus the number of policies times that of the epsilon
    epsilon : of each event
    places : the policy for each place that was released last, -1 for that of ``number``; empty
        where it does not matter
    """

    number: NDArray[np.int32]
    epsilon: NDArray[np.float64]
    places: NDArray[np.int32]

    def part(self, some: slice) -> "Choices":
        return Choices(self.number[some], self.epsilon[some], self.places)


class Epsilons:
    """Distinct epsilons by number. They are only ever added to."""

    def __init__(self, first: float):
        self._lock = ForkLock()
        self.values = np.array([first])

    def numbers(self, wanted: NDArray[np.float64]) -> Ints:
        """The number of each, new ones added."""
        with self._lock:
            missing = np.unique(wanted[~self._find(wanted)[1]])
            count = len(self.values) + len(missing)
            if count > MAX_EPSILONS:
                raise TooLarge(
                    f"{count} distinct epsilons, each with tables of its own, are more than "
                    f"{MAX_EPSILONS}: round them"
                )
            if missing.size:
                self.values = np.append(self.values, missing)
            return self._find(wanted)[0]

    def _find(self, wanted: NDArray[np.float64]) -> tuple[Ints, NDArray[np.bool_]]:
        """(the number of each, whether it is there)."""
        order = np.argsort(self.values)
        at = np.minimum(np.searchsorted(self.values, wanted, sorter=order), len(order) - 1)
        return order[at], self.values[order[at]] == wanted


class Asked(NamedTuple):
    """Where choices are asked for: results have this shape, and event e lies at ``where[e]``.

    Attributes
    ----------
    shape, where : as in ``layout.Layout``
    ids : numbers of the users
    user : of each event, its place among these
    moment : step and period of each event
    """

    shape: tuple[int, ...]
    where: Any
    ids: Ints
    user: Ints
    moment: Moment


def choices_of(
    policies: PolicySet, epsilons: Epsilons, policy: Any, epsilon: Any, asked: Asked, periods: int
) -> Choices:
    """What ``policy=`` and ``epsilon=`` of a run or a step ask for, event by event, with a model of
    so many periods."""
    n = len(asked.user)
    places = np.empty(0, np.int32)
    if isinstance(policy, Schedule):
        policy.check_periods(periods)
        numbers = np.array([policies.number(name) for name in policy.names])
        which = numbers[policy.at(asked.moment)]
        if policy.released is not None:
            at = policy.by_place(policies.locations.size)
            places = np.where(at >= 0, numbers[at], -1).astype(np.int32)
    elif policy is None:
        which = np.full(n, policies.default)
    else:
        which = _by_name(policies, policy, asked)
    if epsilon is None:
        number, value = np.zeros(n, np.int64), np.full(n, epsilons.values[0])
    else:
        if check.holds_booleans(epsilon):
            raise InvalidParameter("epsilon must be numbers, not booleans: True is no epsilon")
        value = check.floats(_spread(epsilon, "epsilon", asked), "epsilon")
        _check_epsilons(value, asked)
        number = epsilons.numbers(value) if n else np.zeros(0, np.int64)
    return Choices((which + len(policies) * number).astype(np.int32), value, places)


def numbered(
    policies: PolicySet, epsilons: Epsilons, which: Ints, value: NDArray[np.float64]
) -> Choices:
    """Choices by numbers of policies and by epsilons."""
    number = epsilons.numbers(value)
    choice = (which + len(policies) * number).astype(np.int32)
    return Choices(choice, value, np.empty(0, np.int32))


def _by_name(policies: PolicySet, policy: Any, asked: Asked) -> Ints:
    if callable(policy):
        raise InvalidParameter(
            "policy= is a name, names, or a pf.Schedule, not a function: a choice must follow from "
            "public facts (who, when, what was released), never from where somebody is"
        )
    if isinstance(policy, str):
        return np.full(len(asked.user), policies.number(policy))
    names = _spread(policy, "policy", asked)
    out = np.full(len(names), -1)
    for k, name in enumerate(policies.names):
        out[names == name] = k
    bad = np.flatnonzero(out < 0)
    if bad.size:
        e = int(bad[0])
        raise InvalidParameter(
            f"user {asked.ids[asked.user[e]]} has policy {check.brief(names[e])} at step "
            f"{asked.moment.steps[e]}: there are {', '.join(policies.names)}"
        )
    return out


def _spread(values: Any, name: str, asked: Asked) -> NDArray[Any]:
    """One value for each event: of one, one for each user (or row), or one for each event."""
    if isinstance(values, Mapping):
        missing = [int(i) for i in asked.ids if int(i) not in values]
        if missing:
            raise InvalidParameter(f"{name} has none for user {missing[0]}: give one for each")
        of = np.array([values[int(i)] for i in asked.ids])
        return of[asked.user] if of.size else np.empty(0)
    array = check.as_array(values, name, InvalidParameter)
    shape = asked.shape
    if array.ndim == 0:
        return np.full(len(asked.user), array[()])
    if array.shape == shape:
        return np.asarray(array[asked.where]).reshape(-1)
    if len(shape) == 2 and array.shape == shape[:1]:
        return np.asarray(np.broadcast_to(array[:, None], shape)[asked.where]).reshape(-1)
    takes = " or ".join(str(s) for s in ([shape] if len(shape) == 1 else [shape[:1], shape]))
    raise InvalidParameter(
        f"{name} has shape {array.shape}: give one, a mapping by user number, or an array of shape "
        f"{takes}"
    )


def _check_epsilons(values: NDArray[np.float64], asked: Asked) -> None:
    bad = np.flatnonzero(~((values >= check.LEAST_EPSILON) & (values <= check.MOST_EPSILON)))
    if bad.size:
        e = int(bad[0])
        raise InvalidParameter(
            f"epsilon of user {asked.ids[asked.user[e]]} at step {asked.moment.steps[e]} is "
            f"{values[e]}: it must be in {check.LEAST_EPSILON:g}..{check.MOST_EPSILON:g}"
        )
