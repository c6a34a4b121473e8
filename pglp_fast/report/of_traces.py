"""The report on released traces."""

from typing import Any

import numpy as np

from ..attacks import attack as attack_traces
from ..errors import InvalidEvidence, InvalidParameter
from ..metrics import estimate_utility
from ..stream import TraceResult
from ..traces import TraceReleaser
from . import figures as gather
from . import inputs, limits, page, picture, sections, trails, words
from .balance import balance_section
from .embedded import embedded
from .figures import Figures

_WORDS: Figures = {
    "step": "Step",
    "first": 0,
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


def report_traces(
    releaser: TraceReleaser, result: Any, truth: Any, title: str | None, users: Any, labels: Any, times: Any, categories: Any
) -> tuple[str, bool]:
    """(the page, whether it contains true locations)."""
    if result is None:
        raise InvalidEvidence("a report on traces needs what was released: pass TraceReleaser.run(..., evidence=True)")
    attack = attack_traces(result, truth)
    evidence, true = attack.evidence, attack.truth
    if not evidence.model.locations.same_map(releaser.locations):
        raise InvalidEvidence("the result is over another map than the releaser: pass the releaser that the result came from")
    n, T = evidence.shape
    made = evidence.released >= 0
    if not made.any():
        raise InvalidEvidence("nothing was released: there is nothing to report on")
    if true is not None and not (made & (true >= 0)).any():
        raise InvalidParameter("truth is unknown (-1) wherever something was released: leave it out")
    who, when = inputs.one_each(labels, n, "labels", "user"), inputs.one_each(times, T, "times", "step")
    user = np.arange(n) if who is None else inputs.codes_of(who)  # traces of one user belong together
    rows = inputs.rows_of(users, n, np.flatnonzero(made.any(axis=1)))
    counts = result if isinstance(result, TraceResult) else trails.counts_of(releaser, evidence)
    surrogate = counts.surrogate if true is not None and isinstance(result, TraceResult) else None
    apart = inputs.told_apart(inputs.names_of(who, "user", np.arange(n)), "trace")
    found = trails.make_trails(releaser, counts, attack, rows, [apart[u] for u in rows], true, surrogate)

    utility = None
    if true is not None:
        utility = estimate_utility(
            releaser.locations, true, evidence.released, clusters=user, level=gather.LEVEL, categories=categories
        )
    spent = made.sum(axis=1)[made.any(axis=1)] * releaser.epsilon
    f: Figures = {
        "mode": "traces",
        "users": n,
        "steps": T,
        "has_truth": true is not None,
        "remapped": releaser.remap is not None,
        "map": gather.map_figures(releaser.locations),
        "policy": gather.policy_figures(releaser.graph),
        "settings": {
            name: getattr(releaser, name)
            for name in ("epsilon", "mechanism", "calibration", "repair", "delta", "likelihood", "budget")
        },
        "certificate": gather.certificate_figures(found.certificates),
        "composition": {
            "epsilon": {"low": float(spent.min()), "median": float(np.median(spent)), "high": float(spent.max())},
            "budget": releaser.budget,
            "users": found.spent,
        },
        "utility": None if utility is None else gather.utility_figures(utility),
        "attack": gather.attack_figures(attack.table()),
        "curves": gather.error_curves(attack, true),
        "flags": gather.flag_figures(counts, evidence.released, surrogate),
    }
    private = true is not None or evidence.priors.point
    legend = _LEGEND if true is not None else _LEGEND[1:]
    drawn = picture.policy_picture(releaser.graph, inputs.middle_of(evidence.released))
    main = (
        sections.tiles(f)
        + sections.map_section(f, _WORDS, legend, _LAYERS, len(rows))
        + balance_section(f)
        + sections.certificate_section(f)
        + sections.flags_section(f)
        + sections.policy_section(f, _settings(releaser), drawn)
    )
    banners = words.PRIVATE if true is not None else words.FIRST_KNOWN if private else ""
    banners += words.SEEDED if releaser.rng is not None else ""
    notes = []
    if len(rows) < n:
        notes.append(
            f"The map shows {len(rows):,} of {n:,} users; so do the certificate and the edges kept. All else is of all users."
        )
    if len(np.unique(user)) < n:
        notes.append(
            f"The {n:,} traces are of {len(np.unique(user)):,} users. The adversary's intervals take traces for the sample."
        )
    notes += found.notes
    if not private:
        notes.append(words.PUBLIC)
    data = embedded(
        f,
        _WORDS,
        releaser.graph,
        found.users,
        None if when is None else inputs.names_of(when, "step", np.arange(min(T, limits.STEPS))),
    )
    return page.assemble(title or "Released traces", _lead(releaser, n, T), banners, main, notes, data), private


def _lead(releaser: TraceReleaser, n: int, T: int) -> str:
    by = words.mechanism(releaser.mechanism, releaser.remap is not None)
    return (
        f"{n:,} {'user' if n == 1 else 'users'}, {T:,} {'step' if T == 1 else 'steps'}, {by} at &epsilon; = {releaser.epsilon:g} "
        "for each step, under a policy graph and against an adversary who knows how people move."
    )


def _settings(releaser: TraceReleaser) -> list[tuple[str, str]]:
    exact = "0: every location that is possible at all counts"
    return [
        ("Epsilon", f"{page.epsilon(releaser.epsilon)} for each release"),
        ("Mechanism", words.mechanism(releaser.mechanism, releaser.remap is not None)),
        ("Calibration", words.CALIBRATIONS[releaser.calibration]),
        ("Repair", releaser.repair),
        (
            "Delta",
            exact if releaser.delta == 0 else f"{releaser.delta:g}: the smallest set of mass 1 &minus; {releaser.delta:g} counts",
        ),
        ("Likelihood", releaser.likelihood),
        ("Budget", "none" if releaser.budget is None else page.epsilon(releaser.budget)),
    ]
