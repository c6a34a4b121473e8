"""A plan for processes that run elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from .plan import Plan
from .policies import absolute


def settled(plan: Plan) -> Plan:
    """The plan with absolute paths, for processes that run elsewhere."""
    given: dict[str, Any] = {"policy": absolute(plan.policy)}
    if plan.policies:
        given["policies"] = {name: absolute(policy) for name, policy in plan.policies.items()}
    for name in ("mobility", "labels", "ledger"):
        path = getattr(plan, name)
        given |= {name: Path(path).absolute()} if isinstance(path, str | Path) else {}
    return replace(plan, **given)
