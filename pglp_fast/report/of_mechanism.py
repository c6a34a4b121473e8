"""The report on a mechanism and its single releases."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.evaluation.headline import headline

from . import inputs, limits, measures as gather, page, picture, sections, trails, words
from .balance import balance_section
from .embedded import embedded
from .measures import Figures

_LAYERS = [("possible", "Possible"), ("belief", "How likely"), ("policy", "Policy")]


def report_mechanism(
    m: pf.Mechanism,
    released: Any,
    truth: Any,
    title: str | None,
    users: Any,
    labels: Any,
    times: Any,
    prior: Any,
    categories: Any,
    note: str | None,
    seeded: bool,
    sample: str | None,
) -> tuple[str, bool]:
    """(the page, whether it contains true locations)."""
    given, true = _pairs(m, released, truth)
    inside = np.flatnonzero(m.groups.address[:, 0] >= 0)
    flat = None if given is None else given.reshape(-1)
    rows = _shown_rows(m, users, flat, inside)
    what, total = ("location", m.locations.size) if flat is None else ("release", len(flat))
    when = inputs.one_each(times, total, "times", what)
    who = inputs.one_each(labels, total, "labels", what)
    names = inputs.names_of(when, what, rows)
    if who is not None:
        owners = inputs.names_of(who, what, rows)
        names = [f"{name}, {text}" for name, text in zip(owners, names, strict=True)]
    places = trails.make_places(m, flat, None if true is None else true.reshape(-1), rows, prior)

    f = _figures(m, given, true, _clusters(given, who), prior, categories)
    by = escape(words.mechanism(m.source, f["remapped"]))
    called = _words(flat is None)
    drawn = picture.policy_picture(m.graph, _near(flat, inside))
    main = (
        sections.tiles(f)
        + sections.map_section(f, called, _legend(flat is None, true is not None), _LAYERS, 1)
        + balance_section(f)
        + sections.certificate_section(f)
        + sections.policy_section(f, _settings(m, by, len(inside), prior), drawn)
    )
    notes = [*filter(None, [words.sampled(sample)])]
    if flat is not None and len(rows) < len(flat):
        notes.append(
            f"The map shows {len(rows):,} of {len(flat):,} releases; all figures are of all of "
            "them."
        )
    if true is None:
        notes.append("This file contains no true locations.")
    lead = f"Single releases by {by} at &epsilon; = {m.epsilon:g} under a policy graph"
    lead += "." if flat is None else f": {len(flat):,} of them."
    told = headline(m.graph, m.epsilon, calibration=m.calibration, outputs=m.outputs)
    lead = f'{told}</p><p class="note">{words.sampled(sample)}{lead}'
    data = embedded(f, called, m.graph, places, names)
    banners = words.unproved(note)
    banners += words.PRIVATE if true is not None else ""
    banners += words.SEEDED if seeded else ""
    text = page.assemble(title or "Single releases", lead, banners, main, notes, data)
    return text, true is not None


def _pairs(
    m: pf.Mechanism, released: Any, truth: Any
) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
    """Released and true cells, checked: of one shape, and some of them known in pairs."""
    size = m.locations.size
    given = None if released is None else inputs.cells_of(released, size, "result")
    true = None if truth is None else inputs.cells_of(truth, size, "truth")
    if true is None:
        return given, None
    if given is None:
        raise pf.InvalidParameter(
            "truth needs the released cells beside it: pass what mechanism.release(truth) gave as "
            "the result"
        )
    if given.shape != true.shape:
        raise pf.InvalidParameter(
            f"released cells have shape {given.shape}, truth {true.shape}: they must be pairs"
        )
    if not ((given >= 0) & (true >= 0)).any():
        raise pf.InvalidParameter(
            "truth is unknown (-1) wherever something was released: leave it out"
        )
    return given, true


def _shown_rows(
    m: pf.Mechanism, users: Any, flat: NDArray[np.int32] | None, inside: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Which releases the map shows; without any, which locations.

    Unless told: places from all over the map that are hidden among others.
    """
    if flat is not None:
        return inputs.rows_of(users, len(flat), np.flatnonzero(flat >= 0))
    hidden = inside[m.graph.degrees()[inside] > 0]
    some = hidden if len(hidden) else inside
    spread = np.linspace(0, max(len(some) - 1, 0), min(limits.SHOWN, len(some))).astype(int)
    return inputs.rows_of(users, m.locations.size, some[np.unique(spread)])


def _figures(
    m: pf.Mechanism,
    given: NDArray[np.int32] | None,
    true: NDArray[np.int32] | None,
    clusters: Any,
    prior: Any,
    categories: Any,
) -> Figures:
    """All figures of the page."""
    expected, curve = gather.exact_utility(m, prior, categories)
    estimated, curves = None, {} if curve is None else {"release": curve}
    if given is not None and true is not None:
        found = pf.estimate_utility(
            m.locations, true, given, clusters=clusters, level=gather.LEVEL, categories=categories
        )
        estimated = gather.utility_figures(found)
        distance = gather.distances(m.locations, true, given)
        curves = curves or {"release": gather.cumulative(distance[~np.isnan(distance)])}
    remapped, kind = m.source is not m, type(m.source).__name__
    return {
        "mode": "single",
        "has_truth": true is not None,
        "remapped": remapped,
        "prior": prior is not None,
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


def _settings(m: pf.Mechanism, by: str, inside: int, prior: Any) -> list[tuple[str, str]]:
    size = page.value(m.locations.size)
    some = f"{page.value(inside)} of {size} locations"
    return [
        ("Epsilon", f"{page.epsilon(m.epsilon)} for each release"),
        ("Mechanism", by),
        ("Calibration", words.calibration(m.calibration, m.outputs)),
        ("Domain", "the whole map" if m.domain is None else some),
        ("Prior", "even" if prior is None else "given"),
    ]


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
        return out | {
            "step": "Place",
            "true": "Location",
            "domain": "May be released as",
            "intro": intro,
        }
    intro = (
        "Releases one by one, and what the adversary believes about the true location after each."
    )
    return out | {
        "step": "Release",
        "true": "True location",
        "domain": "Thought possible",
        "intro": intro,
    }


def _legend(example: bool, true: bool) -> list[tuple[str, str]]:
    if example:
        return [("true", "location"), ("possible", "may be released"), ("belief", "how likely")]
    first = [("true", "true location")] if true else []
    return [
        *first,
        ("released", "released"),
        ("possible", "may be the true one"),
        ("belief", "how likely"),
    ]
