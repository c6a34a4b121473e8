"""The report on released traces."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.evaluation.headline import explained, headlines

from . import inputs, measures as gather, page, picture, sections, trails, words
from .balance import balance_section
from .embedded import embedded
from .laid import Followed
from .measures import Figures

_WORDS: Figures = {
    "step": "Step",
    "first": 1,
    "true": "True location",
    "domain": "Thought possible before",
    "whole": "Whole trace",
    "example": False,
    "view": "trace",
    "intro": "Step through what was released, and what the adversary made of it at that moment.",
}
_LEGEND = [
    ("true", "true location"),
    ("released", "released"),
    ("guess", "best guess so far"),
    ("belief", "belief after the release"),
    ("possible", "possible before it (C_t)"),
    ("repaired", "edge added by repair"),
]
_LAYERS = [
    ("possible", "Possible"),
    ("belief", "Belief"),
    ("guess", "Best guess"),
    ("trail", "Trail"),
    ("repaired", "Repairs"),
    ("policy", "Policy"),
]
_SETTINGS = ("epsilon", "mechanism", "calibration", "repair", "delta", "likelihood", "budget")


def report_traces(
    releaser: pf.TraceReleaser,
    result: Any,
    truth: Any,
    title: str | None,
    users: Any,
    labels: Any,
    times: Any,
    categories: Any,
    note: str | None,
    seeded: bool,
    sample: str | None,
) -> tuple[str, bool]:
    """(the page, whether it contains true locations)."""
    attack = _checked_attack(releaser, result, truth)
    followed = Followed.of(attack)
    evidence, true, released = attack.evidence, followed.truth, followed.released
    n, laid = evidence.persons, followed.laid
    who = inputs.one_each(labels, n, "labels", "trace")
    when = inputs.times_of(times, laid)
    # traces of one person belong together: a person is the independent unit of every interval
    person = np.arange(n) if who is None else inputs.codes_of(who)
    rows = inputs.rows_of(users, n, np.flatnonzero((released >= 0).any(axis=1)))
    given = result if isinstance(result, pf.TraceResult) else None
    apart = inputs.told_apart(inputs.names_of(who, "user", np.arange(n)), "trace")
    found = trails.follow(releaser, followed, given, rows, [apart[u] for u in rows], when)
    counts = found.counts
    assert counts.certificate is not None
    labelled = {own["row"]: own["label"] for own in found.users}
    f = _figures(releaser, followed, counts.certificate, labelled, person, categories)
    f["curves"]["own_clocks"] = evidence.shape is None or (when is not None and len(when) > 1)
    f["curves"]["closed"] = laid.closed
    f["flags"] = gather.flag_figures(counts, followed)
    private = true is not None or evidence.priors.point
    legend = [entry for entry in _LEGEND if trails.is_there(found.users, entry[0])]
    layers = [entry for entry in _LAYERS if trails.is_there(found.users, entry[0])]
    drawn = picture.policy_picture(releaser.graph, inputs.middle_of(released))
    main = (
        sections.tiles(f)
        + sections.map_section(f, _WORDS, legend, layers, len(rows))
        + balance_section(f)
        + sections.certificate_section(f)
        + sections.flags_section(f)
        + sections.policy_section(f, _settings(releaser), drawn)
    )
    banners = words.unproved(note)
    banners += words.PRIVATE if true is not None else words.FIRST_KNOWN if private else ""
    banners += words.SEEDED if seeded or releaser.rng is not None else ""
    notes = [*filter(None, [words.sampled(sample)])]
    notes += _notes(n, len(rows), f["users"], found.notes, private)
    data = embedded(f, _WORDS, releaser.graph, found.users, None)
    lead = words.sampled(sample) + _lead(releaser, evidence, n, f["users"], f["flags"]["steps"])
    told = _told(releaser, evidence)
    meant = f"{explained(releaser.repair, releaser.delta)} {_happened(f['flags'])}"
    lead = f'{told} {_learnt(f["attack"])}</p><p class="note">{meant}</p><p class="note">{lead}'
    return page.assemble(title or "Released traces", lead, banners, main, notes, data), private


def _checked_attack(releaser: pf.TraceReleaser, result: Any, truth: Any) -> pf.Attack:
    """What the adversary makes of the releases, if they are releases of this releaser."""
    if result is None:
        raise pf.InvalidEvidence(
            "a report on traces needs what was released: pass TraceReleaser.run(..., evidence=True)"
        )
    attack = pf.attack(result, truth)
    if not attack.evidence.model.locations.same_map(releaser.locations):
        raise pf.InvalidEvidence(
            "the result is over another map than the releaser: pass the releaser that the result "
            "came from"
        )
    made = attack.released >= 0
    if not made.any():
        raise pf.InvalidEvidence("nothing was released: there is nothing to report on")
    if attack.truth is not None and not (made & (attack.truth >= 0)).any():
        raise pf.InvalidParameter(
            "truth is unknown (-1) wherever something was released: leave it out"
        )
    return attack


def _figures(
    releaser: pf.TraceReleaser,
    followed: Followed,
    certificate: pf.TraceCertificate,
    labelled: dict[int, str],
    person: NDArray[np.int64],
    categories: Any,
) -> Figures:
    """All figures of the page but the counts of flags; ``person`` of each trace, and what those on
    the map are called."""
    attack, true, released = followed.attack, followed.truth, followed.released
    utility = None
    if true is not None:
        found_utility = pf.estimate_utility(
            releaser.locations,
            true,
            released,
            clusters=person,
            level=gather.LEVEL,
            categories=categories,
        )
        utility = gather.utility_figures(found_utility)
    # what is spent on one person adds up over that person's traces
    releases = np.bincount(person, (released >= 0).sum(axis=1))
    spent = releases[releases > 0] * releaser.epsilon
    if attack.evidence.epsilon is not None:
        rows = np.where(attack.evidence.released >= 0, attack.evidence.epsilon, 0.0)
        spent = np.asarray(np.bincount(person[attack.evidence.person], rows)[releases > 0])
    low, median, high = float(spent.min()), float(np.median(spent)), float(spent.max())
    return {
        "mode": "traces",
        "users": len(np.unique(person)),
        "traces": released.shape[0],
        "steps": released.shape[1],
        "has_truth": true is not None,
        "remapped": releaser.remap is not None,
        "map": gather.map_figures(releaser.locations),
        "policy": gather.policy_figures(releaser.graph),
        "settings": {name: getattr(releaser, name) for name in _SETTINGS},
        "certificate": gather.trace_certificate(certificate),
        "composition": {
            "epsilon": {"low": low, "median": median, "high": high},
            "budget": _budget(releaser) if releaser.engine.limits else None,
            **gather.kept_figures(certificate.ledger, labelled),
        },
        "utility": utility,
        "attack": gather.attack_figures(attack.table(persons=person)),
        "curves": gather.error_curves(followed, person),
    }


def _notes(n: int, shown: int, persons: int, more: list[str], private: bool) -> list[str]:
    notes = []
    if shown < n:
        notes.append(f"The map shows {shown:,} of {n:,} traces. All figures are of all of them.")
    if persons < n:
        notes.append(
            f"The {n:,} traces are of {persons:,} {'person' if persons == 1 else 'persons'}. Each "
            "interval takes persons, not traces, for the sample."
            + (" Of one person none can be given." if persons == 1 else "")
        )
    return [*notes, *more, *([] if private else [words.PUBLIC])]


def _learnt(a: Figures) -> str:
    """From where to where the releases bring the adversary."""
    km = {row["estimator"]: row for row in a["rows"]}
    name = "error_km" if np.isfinite(a["ruled_out"]) else "expected_km"
    before, after = (km[row][name] for row in ("no release", "bayes"))
    how = "on average" if name == "error_km" else "on average, if people move as the model says"
    return (
        f"Over the whole trace, {how}, the releases bring the adversary's best guess from "
        f"{page.value(before)} km off (no release) to {page.value(after)} km."
    )


def _happened(g: Figures) -> str:
    """How often a release may lie outside its group; of the truth only where it is told."""
    wrong = g["surrogate"]
    return (
        f"Here {g['repaired']:,} of {g['steps']:,} steps were repaired"
        + ("" if wrong is None else f", and the model was wrong at {wrong:,}")
        + "."
    )


def _told(releaser: pf.TraceReleaser, evidence: pf.Evidence) -> str:
    """What releases give away and what they hide, under the policies and epsilons they had."""
    made = evidence.released >= 0
    policy = np.full(len(made), releaser.policies.default)
    epsilon = np.full(len(made), releaser.epsilon)
    policy = policy if evidence.policy is None else evidence.policy
    epsilon = epsilon if evidence.epsilon is None else evidence.epsilon
    used = {
        releaser.policies.names[k]: (
            releaser.policies.graphs[k], float(epsilon[made][policy[made] == k].max()),
        )
        for k in np.unique(policy[made]).tolist()
    }  # fmt: skip
    return headlines(
        used,
        calibration=releaser.calibration,
        repair=releaser.repair,
        delta=releaser.delta,
    )


def _at(epsilon: NDArray[np.float64] | None, own: float) -> str:
    """The epsilons of releases."""
    least, most = (own, own) if epsilon is None else (np.nanmin(epsilon), np.nanmax(epsilon))
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _lead(
    releaser: pf.TraceReleaser, evidence: pf.Evidence, n: int, persons: int, made: int
) -> str:
    by = words.mechanism(releaser.per_component, releaser.remap is not None)
    traces = "" if persons == n else f" in {n:,} traces"
    return (
        f"{persons:,} {'user' if persons == 1 else 'users'}{traces}, {made:,} "
        f"{'release' if made == 1 else 'releases'}, {by} at &epsilon; = "
        f"{_at(evidence.epsilon, releaser.epsilon)} for each step, "
        "under a policy graph and against an adversary who knows how people move."
    )


def _budget(releaser: pf.TraceReleaser) -> str:
    """Each limit in words."""
    limits = releaser.engine.limits.limits
    told = (
        page.epsilon(most) + ("" if steps is None else f" over any {steps:,} steps")
        for steps, most in limits.items()
    )
    return ", ".join(told) or "none"


def _settings(releaser: pf.TraceReleaser) -> list[tuple[str, str]]:
    exact = "0: every location that is possible at all counts"
    names, own = releaser.policies.names, releaser.policies.names[releaser.policies.default]
    several = ", ".join(escape(name) for name in names) + f"; the page shows {escape(own)}"
    return [
        *([("Policies", several)] if len(names) > 1 else []),
        (
            "Epsilon",
            f"{page.epsilon(releaser.epsilon)} for each release"
            + (", unless a policy or a run says another" if len(names) > 1 else ""),
        ),
        ("Mechanism", words.mechanism(releaser.per_component, releaser.remap is not None)),
        ("Calibration", words.calibration(releaser.calibration)),
        ("Repair", releaser.repair),
        (
            "Delta",
            exact
            if releaser.delta == 0
            else (
                f"{releaser.delta:g}: the smallest set of mass 1 &minus; {releaser.delta:g} counts"
            ),
        ),
        ("Likelihood", releaser.likelihood),
        ("Budget", _budget(releaser)),
    ]
