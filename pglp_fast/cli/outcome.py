"""What became of the rows of a release, told."""

import argparse
from dataclasses import asdict
from typing import Any, NamedTuple

from pglp_fast.adversary.attack_table import OFTEN, warning
from pglp_fast.errors import PGLPError
from pglp_fast.evaluation.mean_error import expected_error
from pglp_fast.mechanisms.registry import find
from pglp_fast.pipeline.fingerprint import OWN
from pglp_fast.pipeline.maps import describe
from pglp_fast.pipeline.plan import Plan
from pglp_fast.pipeline.plan_facts import choices_in_words
from pglp_fast.pipeline.released import MALFORMED, STEP, Outcome

from .plans import headline_of
from .terminal import note, result

_MEANING = {
    "alone": "released one by one",
    "step": "released as steps",
    "repeat": "repeat the release of their step",
    "outside": "off the map",
    "missing": "without a place or time",
    "budget": "beyond the budget",
    "malformed": "malformed",
}


class _Error(NamedTuple):
    """Mean error in km under a policy, at the largest epsilon that it was used with."""

    policy: str
    epsilon: float
    km: float


def _expected_errors(plan: Plan, outcome: Outcome) -> list[_Error]:
    """Of each policy that was used, on the whole map; without those of which only traces can have
    the mechanism, or it would have to be solved for the map."""
    names = plan.policy_set.names
    used = outcome.used if plan.chooses else {plan.policy_set.default: plan.epsilon}
    found = [(k, epsilon, _expected_error(plan, k, epsilon)) for k, epsilon in sorted(used.items())]
    return [_Error(names[k], epsilon, km) for k, epsilon, km in found if km is not None]


def _expected_error(plan: Plan, policy: int, epsilon: float) -> float | None:
    own = plan.model is None and (policy, epsilon) == (plan.policy_set.default, plan.epsilon)
    if find(plan.mechanism).slow and not own:
        return None
    try:
        return expected_error(plan.for_rows(policy, epsilon))
    except PGLPError:
        return None


def _errors_as_json(plan: Plan, errors: list[_Error]) -> Any:
    """One figure; where policies or epsilons differ, one for each policy, by its name."""
    if plan.chooses:
        return {e.policy: {"epsilon": e.epsilon, "km": e.km} for e in errors}
    return errors[0].km if errors else None


def _error_in_words(plan: Plan, error: _Error) -> str:
    under = f" under policy {error.policy}" if plan.policies else ""
    km = f"{error.km:.3f} km"
    if plan.many_epsilons:  # a smaller one errs by more
        km = f"at least {km}, that at epsilon {error.epsilon:g}, the largest used"
    when = "" if plan.model is None else " and none is ruled out"
    return f"expected error of a release{under}: {km}, if each cell of the map is as likely{when}"


def tell(options: argparse.Namespace, plan: Plan, outcome: Outcome) -> None:
    """The result, and what the user should know besides."""
    facts, told = plan.facts, headline_of(plan, outcome.used)
    spent, usual = outcome.most * plan.epsilon, outcome.median * plan.epsilon
    if outcome.epsilons is not None:
        spent, usual = outcome.epsilons
    errors = _expected_errors(plan, outcome)
    document = {
        "output": options.output,
        "rows": outcome.rows,
        "released": outcome.released,
        "status": outcome.by_status,
        "malformed": outcome.malformed,
        "kept": outcome.kept,
        "left_out": outcome.left,
        "headline": " ".join(told),
        "expected_error_km": _errors_as_json(plan, errors),
        "largest_epsilon_of_a_user": spent,
        "median_epsilon_of_a_user": usual,
        **facts,
        "plan": plan.digest,
    }
    if plan.model is not None:
        document["exposed"], document["repaired"] = outcome.exposed, outcome.repaired
    if outcome.certificate is not None:
        document["certificate"] = asdict(outcome.certificate)
    if outcome.truth:  # these tell of the true places
        document["from_cells_without_an_edge"] = outcome.bare
        document["surrogate"] = outcome.surrogates
        document["model_fitted_on_these_traces"] = outcome.own
    _warn(options, plan, outcome)
    parts = [f"{n:,} {_MEANING[name]}" for name, n in outcome.by_status.items()]
    lines = [*told, f"{options.output}: {outcome.rows:,} rows: {', '.join(parts) or 'none'}"]
    lines += [f"  malformed: {text}" for text in outcome.malformed]
    hidden = int(outcome.statuses[MALFORMED]) - len(outcome.malformed)
    lines += [f"  and {hidden:,} more"] if hidden > 0 and outcome.malformed else []
    surrogates = f"{outcome.surrogates:,} surrogates, " if outcome.truth else ""
    lines += [
        f"kept: {', '.join(outcome.kept) or 'none'}; left out: {', '.join(outcome.left) or 'none'}",
        f"map: {describe(plan.map)}",
        f"policy {facts['policy']} ({facts['edges']:,} edges), {plan.mechanism}, epsilon "
        f"{plan.epsilon:g} a release",
        *choices_in_words(plan),
        *(_error_in_words(plan, error) for error in errors),
        f"epsilon adds up: {usual:g} for the median user ({outcome.median:g} releases), {spent:g} "
        f"for the one with most ({outcome.most:,})",
        "adversary: none. Rows were released one by one; who knows how people move may learn "
        "more (--mobility)"
        if plan.model is None
        else f"adversary: knows {options.mobility}; {surrogates}{outcome.repaired:,} steps "
        f"repaired, {outcome.exposed:,} exposed",
    ]
    if outcome.certificate is not None:
        lines.append(f"certificate: {outcome.certificate.text}")
    result(options.json, document, "\n".join(lines))


def _warn(options: argparse.Namespace, plan: Plan, outcome: Outcome) -> None:
    """Of what the policy leaves open, of true places in the output, of a model of the very people,
    and of a seed."""
    policies = plan.policy_set
    for k in sorted(outcome.used) or [policies.default]:
        bare = int((policies.graphs[k].degrees() == 0).sum())
        if bare:
            which = options.policy if k == policies.default else f"policy {policies.names[k]}"
            note(
                f"{bare:,} of {plan.map.size:,} cells have no edge in {which}: the policy lets "
                "such cells be known, and they are released as they are"
            )
    if outcome.truth:
        note(
            f"{options.output} STILL HAS THE TRUE PLACES beside the released ones: name the "
            "columns that shall stay with --keep, without these, before you share it"
        )
    steps = int(outcome.statuses[STEP])
    if outcome.surrogates > OFTEN * steps:
        note(
            f"{options.mobility}: {warning(outcome.surrogates / steps)}. The nearest cell that it "
            "holds possible was released from instead"
        )
    if outcome.own is not None and outcome.own > OWN:
        note(
            f"{options.mobility} was fitted on the very traces that are released here: such a "
            "model is not public knowledge, and what it knows of these users leaks through it. "
            "Fit it on other people's."
        )
    if plan.seed is not None:
        note(
            "seeded: whoever knows the seed can subtract the noise; leave --seed out to protect "
            "people"
        )
