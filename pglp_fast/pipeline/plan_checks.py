"""What a plan may say: checked when it is made."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pglp_fast._util import times, validate as check
from pglp_fast.errors import InvalidParameter, InvalidPolicy
from pglp_fast.io.read import check_forms
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.traces.policies import DEFAULT

from . import plan_budgets

if TYPE_CHECKING:
    from .plan import Plan

MOVING = {"repair": "min-area", "delta": 0.0, "likelihood": "exact"}  # only with mobility
_KINDS: dict[str, tuple[Any, str]] = {
    "mechanism": (str, "a name"),
    "prefix": (str, "text"),
    "columns": (Mapping, 'a mapping such as {"user": "uid"}'),
    "keep": (Sequence, "a list of columns, or 'all' for every one"),
}


def check_plan(plan: "Plan") -> None:
    """An error where a plan contradicts itself, or says what nobody could do."""
    check.epsilon(plan.epsilon)
    for name, (kind, words) in _KINDS.items():
        value = getattr(plan, name)
        if value is not None and not isinstance(value, kind):
            raise InvalidParameter(f"{name} must be {words}, got {check.brief(value)}")
    check.choice(plan.calibration, "calibration", CALIBRATIONS)
    check.choice(plan.on_error, "on_error", ("raise", "skip"))
    check_forms(plan.timezone, plan.time_format, plan.decimal)
    plan_budgets.read_budgets(plan.budget, plan.window)
    if plan.seed is not None:
        check.whole(plan.seed, "seed", 0)
    if plan.step is not None:
        times.duration(plan.step, "step")
    if not isinstance(plan.policy, str | PolicyGraph):
        raise InvalidPolicy(
            "policy must be a PolicyGraph or a spelling such as 'blocks:3', got "
            f"{type(plan.policy).__name__}"
        )
    for name, one in (plan.policies or {}).items():
        if not isinstance(one, str | PolicyGraph) or not isinstance(name, str) or not name:
            raise InvalidPolicy(
                f"policies must be graphs or spellings by name, got {name!r}: {one!r}"
            )
    if DEFAULT in (plan.policies or {}):
        raise InvalidPolicy(f"policies has {DEFAULT!r}, which is what policy= is called")
    _check_choices(plan)
    if isinstance(plan.keep, str) and plan.keep != "all":
        raise InvalidParameter(
            f"keep must be a list of columns, or 'all' for every one, got {plan.keep!r}"
        )
    for name in () if plan.mobility is not None else MOVING:
        if getattr(plan, name) is not None:
            raise InvalidParameter(
                f"{name} is for users who move: give mobility=MODEL, or leave it out"
            )


def _check_choices(plan: "Plan") -> None:
    """A policy, and an epsilon, has one source: a column or the schedule."""
    rules = plan.rules
    says = (rules is not None and rules.says_policy, rules is not None and rules.says_epsilon)
    given = zip(("policy_column", "epsilon_column"), says, strict=True)
    for name, said in given:
        if said and getattr(plan, name) is not None:
            raise InvalidParameter(f"the schedule says it, and so would {name}: give one")
    if plan.policies and not says[0] and plan.policy_column is None:
        raise InvalidParameter(
            "policies are there, but nothing says when they hold: give schedule= or policy_column="
        )
    if rules is not None and plan.mobility is None and (rules.by_period or rules.released):
        raise InvalidParameter(
            "a schedule by periods or released places is for users who move: give "
            "mobility=MODEL, or use times and persons"
        )
