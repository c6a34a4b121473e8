"""The report on a mechanism and its single releases."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidParameter
from ..mechanisms import Remapped
from ..mechanisms.base import Mechanism
from ..metrics import estimate_utility
from . import figures as gather
from . import inputs, limits, page, picture, sections, trails, words
from .balance import balance_section
from .embedded import embedded
from .figures import Figures

_LAYERS = [("possible", "Possible"), ("belief", "How likely"), ("policy", "Policy")]


def report_mechanism(
    m: Mechanism, released: Any, truth: Any, title: str | None, users: Any, labels: Any, times: Any, prior: Any, categories: Any
) -> tuple[str, bool]:
    """(the page, whether it contains true locations)."""
    size = m.locations.size
    given = None if released is None else inputs.cells_of(released, size, "result")
    true = None if truth is None else inputs.cells_of(truth, size, "truth")
    if given is None and true is not None:
        raise InvalidParameter("truth needs the released cells beside it: pass what mechanism.release(truth) gave as the result")
    if given is not None and true is not None and given.shape != true.shape:
        raise InvalidParameter(f"released cells have shape {given.shape}, truth {true.shape}: they must be pairs")
    if given is not None and true is not None and not ((given >= 0) & (true >= 0)).any():
        raise InvalidParameter("truth is unknown (-1) wherever something was released: leave it out")
    inside = np.flatnonzero(m.groups.address[:, 0] >= 0)
    flat = None if given is None else given.reshape(-1)
    if flat is None:  # examples from all over the map, of places that are hidden among others
        hidden = inside[m.graph.degrees()[inside] > 0]
        some = hidden if len(hidden) else inside
        spread = np.linspace(0, max(len(some) - 1, 0), min(limits.SHOWN, len(some))).astype(int)
        rows = inputs.rows_of(users, size, some[np.unique(spread)])
    else:
        rows = inputs.rows_of(users, len(flat), np.flatnonzero(flat >= 0))
    what = "location" if flat is None else "release"
    total = size if flat is None else len(flat)
    when, who = inputs.one_each(times, total, "times", what), inputs.one_each(labels, total, "labels", what)
    names = inputs.names_of(when, what, rows)
    if who is not None:
        names = [f"{name}, {text}" for name, text in zip(inputs.names_of(who, what, rows), names, strict=True)]
    places = trails.make_places(m, flat, None if true is None else true.reshape(-1), rows, prior)

    expected, curve = gather.exact_utility(m, prior, categories)
    estimated, curves = None, {} if curve is None else {"release": curve}
    clusters = _clusters(given, who)
    if given is not None and true is not None:
        estimated = gather.utility_figures(
            estimate_utility(m.locations, true, given, clusters=clusters, level=gather.LEVEL, categories=categories)
        )
        distance = gather.distances(m.locations, true, given)
        curves = curves or {"release": gather.cumulative(distance[~np.isnan(distance)])}
    remapped = isinstance(m, Remapped)
    kind = type(m.mechanism if isinstance(m, Remapped) else m).__name__
    f: Figures = {
        "mode": "single",
        "has_truth": true is not None,
        "remapped": remapped,
        "clustered": clusters is not None,
        "map": gather.map_figures(m.locations),
        "policy": gather.policy_figures(m.graph),
        "settings": {"epsilon": m.epsilon, "mechanism": kind, "calibration": m.calibration},
        "certificate": gather.exact_certificate(m),
        "expected": expected,
        "utility": estimated,
        "privacy": gather.exact_privacy(m, prior),
        "curves": curves,
    }
    by = escape(words.mechanism(kind, remapped))
    settings = [
        ("Epsilon", f"{page.epsilon(m.epsilon)} for each release"),
        ("Mechanism", by),
        ("Calibration", words.CALIBRATIONS[m.calibration]),
        ("Domain", "the whole map" if m.domain is None else f"{page.value(len(inside))} of {page.value(size)} locations"),
        ("Prior", "even" if prior is None else "given"),
    ]
    called = _words(flat is None)
    main = (
        sections.tiles(f)
        + sections.map_section(f, called, _legend(flat is None, true is not None), _LAYERS, 1)
        + balance_section(f)
        + sections.certificate_section(f)
        + sections.policy_section(f, settings, picture.policy_picture(m.graph, _near(flat, inside)))
    )
    notes = []
    if flat is not None and len(rows) < len(flat):
        notes.append(f"The map shows {len(rows):,} of {len(flat):,} releases; all figures are of all of them.")
    if true is None:
        notes.append("This file contains no true locations.")
    lead = f"Single releases by {by} at &epsilon; = {m.epsilon:g} under a policy graph"
    lead += "." if flat is None else f": {len(flat):,} of them."
    data = embedded(f, called, m.graph, places, names)
    banners = words.PRIVATE if true is not None else ""
    return page.assemble(title or "Single releases", lead, banners, main, notes, data), true is not None


def _clusters(given: NDArray[Any] | None, who: NDArray[Any] | None) -> Any:
    """Which releases are of one user: those of one label, else those of one row of a table."""
    if given is None or (who is None and given.ndim != 2):
        return None
    return "rows" if who is None else inputs.codes_of(who).reshape(given.shape)


def _near(flat: NDArray[Any] | None, inside: NDArray[Any]) -> int:
    """Where the policy's picture is taken."""
    if flat is not None and (flat >= 0).any():
        return inputs.middle_of(flat)
    return int(inside[len(inside) // 2]) if len(inside) else 0


def _words(example: bool) -> Figures:
    out: Figures = {"first": 1, "whole": "All shown", "example": example, "view": "near"}
    if example:
        intro = "From a few places of the map: where a release may fall, and how likely."
        return out | {"step": "Place", "true": "Location", "domain": "May be released as", "intro": intro}
    intro = "Releases one by one, and what the adversary believes about the true location after each."
    return out | {"step": "Release", "true": "True location", "domain": "Thought possible", "intro": intro}


def _legend(example: bool, true: bool) -> list[tuple[str, str]]:
    if example:
        return [("true", "location"), ("possible", "may be released"), ("belief", "how likely")]
    first = [("true", "true location")] if true else []
    return [*first, ("released", "released"), ("possible", "may be the true one"), ("belief", "how likely")]
