"""What became of the rows of a release, told."""

import argparse
from dataclasses import asdict

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


def _expected_error(plan: Plan) -> float | None:
    """In km, of the policy on the whole map; None where only traces can have the mechanism, or it
    would have to be solved for the map."""
    if plan.model is not None and find(plan.mechanism).slow:
        return None
    try:
        return expected_error(plan.for_rows())
    except PGLPError:
        return None


def _error_in_words(plan: Plan, km: float, under: str) -> str:
    when = "" if plan.model is None else " and none is ruled out"
    return (
        f"expected error of a release{under}: {km:.3f} km, if each cell of the map is as "
        f"likely{when}"
    )


def tell(options: argparse.Namespace, plan: Plan, outcome: Outcome) -> None:
    """The result, and what the user should know besides."""
    facts, told = plan.facts, headline_of(plan, outcome.used)
    spent, usual = outcome.most * plan.epsilon, outcome.median * plan.epsilon
    if outcome.epsilons is not None:
        spent, usual = outcome.epsilons
    error, several = _expected_error(plan), " under policy default" if plan.policies else ""
    document = {
        "output": options.output,
        "rows": outcome.rows,
        "released": outcome.released,
        "status": outcome.by_status,
        "malformed": outcome.malformed,
        "kept": outcome.kept,
        "left_out": outcome.left,
        "headline": " ".join(told),
        "expected_error_km": error,
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
        *([] if error is None else [_error_in_words(plan, error, several)]),
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
