"""What a plan says about itself: as facts for a released table, and in words."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import times
from pglp_fast.policy.graph import PolicyGraph

from . import plan_budgets
from .maps import describe

if TYPE_CHECKING:
    from .plan import Plan


def facts_of(plan: "Plan") -> dict[str, Any]:
    """What a released table says about how it was released."""
    model, graph = plan.model, plan.graph
    return {
        "epsilon": plan.epsilon,
        "policy": plan.policy if isinstance(plan.policy, str) else "a graph",
        "edges": graph.n_edges,
        "edges_digest": edges_digest(graph),
        "mechanism": plan.mechanism,
        "calibration": plan.calibration,
        "remap": plan.remap,
        "map": plan.map.to_dict(),
        "adversary": "none: rows were released one by one"
        if model is None
        else "knows the mobility model",
        "mobility": None if model is None else _digest(*(a for c in model.chains for a in c)),
        **(plan.moving | {"step_ms": plan.step_ms} if model is not None else {}),
        "budget": plan.budget,
        **_chosen_facts(plan),
        "seeded": plan.seed is not None,
    }


def _chosen_facts(plan: "Plan") -> dict[str, Any]:
    """The same of policies, epsilons and budgets that are not one for all."""
    names = ("policies", "schedule", "policy_column", "epsilon_column", "window")
    given = {name: getattr(plan, name) for name in names}
    out = {name: value for name, value in given.items() if value is not None}
    if plan.rules is not None:  # who is named in it is nobody's business
        out["schedule"] = {k: v for k, v in plan.rules.spelt.items() if k != "persons"}
    if plan.policies:
        graphs = plan.policy_set.graphs[1:]
        out["policies"] = {
            name: {
                "policy": one if isinstance(one, str) else "a graph",
                "edges": graph.n_edges,
                "edges_digest": edges_digest(graph),
            }
            for (name, one), graph in zip(plan.policies.items(), graphs, strict=True)
        }
    return out | ({"ledger": True} if plan.ledger is not None else {})


def digest_of(plan: "Plan", names: Sequence[str]) -> str:
    """SHA-256 of everything that decides the output; ``names``: fields that are no facts."""
    plain = {name: getattr(plan, name) for name in names}
    ahead = None if plan.model is None else plan.model.notes.get("ahead_ms")
    said = [plan.facts, plain, ahead, plan.allow_outside, plan.seed]
    said += [] if plan.rules is None else [plan.rules.spelt]
    text = json.dumps(said, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """For JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else list(value)


def describe_plan(plan: "Plan") -> str:
    """The plan in words."""
    facts, limited = plan.facts, plan_budgets.read_budgets(plan.budget, plan.window)
    lines = [
        f"map: {describe(plan.map)}",
        f"policy {facts['policy']} ({facts['edges']:,} edges), {plan.mechanism}, epsilon "
        f"{plan.epsilon:g} a release"
        + (f", at most {plan_budgets.in_words(limited)}" if limited else ""),
        *choices_in_words(plan),
        "adversary: none; rows are released one by one"
        if plan.model is None
        else "adversary: knows how people move; a person releases once in "
        f"{times.shown(plan.step_ms)}",
        f"kept: {kept_words(plan.keep)}",
    ]
    if plan.model is not None and plan.moving["delta"]:
        delta = plan.moving["delta"]
        lines.append(
            f"delta {delta:g}: the least likely places, of mass up to that, are left out at each "
            "step, and nothing is promised of them"
        )
    lines += [] if plan.seed is None else ["seeded: for research, not for people"]
    return "\n".join(lines)


def choices_in_words(plan: "Plan") -> list[str]:
    """What differs by person and time, in words; nothing if nothing does."""
    out = []
    if plan.policies:
        by = f"column {plan.policy_column}" if plan.policy_column else "schedule"
        out.append(f"policies by {by}: {', '.join(plan.policy_names)}")
    if plan.many_epsilons:
        by = f"column {plan.epsilon_column}" if plan.epsilon_column else "schedule"
        out.append(f"epsilon by {by}")
    return out + ([] if plan.ledger is None else [f"ledger: {os.fspath(plan.ledger)}"])


def kept_words(keep: Sequence[str] | str | None) -> str:
    """Which columns stay, in words."""
    if keep is None:
        return "the user and the time"
    return "every column, the true places too" if keep == "all" else ", ".join(keep) or "none"


def edges_digest(graph: PolicyGraph) -> str:
    """SHA-256 of a policy's edges, and of their weights."""
    w = graph.weights
    weights = () if w is None else (w.numerator, w.denominator)
    return _digest(graph.cliques, graph.extra_indptr, graph.extra_indices, *weights)


def _digest(*arrays: NDArray[Any]) -> str:
    """SHA-256 of arrays, with their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
