"""Writing the report: what is asked for is checked, gathered, and put in one file that is whole or not there."""

import os
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from ..attacks import attack as attack_traces
from ..errors import InvalidEvidence, InvalidParameter
from ..evidence import Evidence
from ..locations import Locations
from ..mechanisms import Remapped
from ..mechanisms.base import Mechanism
from ..metrics import estimate_utility
from ..stream import TraceResult
from ..traces import TraceReleaser
from . import figures as gather
from . import limits, page, svg, trails
from .figures import Figures

_NAMES = {
    "ppim": "P-PIM", "plm": "P-LM", "planar-laplace": "planar Laplace", "pim": "PIM", "lm": "LM", "krr": "k-ary randomised response",
    "graph-exponential": "graph exponential", "optimal": "optimal (least expected loss)",
    "PPIM": "P-PIM", "PLM": "P-LM", "PlanarLaplace": "planar Laplace", "PIM": "PIM", "LM": "LM", "KRR": "k-ary randomised response",
    "GraphExponential": "graph exponential", "Optimal": "optimal (least expected loss)",
}  # fmt: skip
_CALIBRATIONS = {
    "component": "component: noise from the edges of the own component, and an output there",
    "graph": "graph: noise from all edges of the policy, any possible location as output",
}
_PRIVATE = page.banner(
    "Keep this file private.",
    "It contains true locations. Whoever reads it needs no attack. Leave <code>truth</code> out for a report that can be shared.",
)
_POINT = page.banner(
    "Keep this file private.",
    "The users' first true locations were given to the adversary (priors=&quot;point&quot;), and so this file contains them.",
)
_SEEDED = page.banner(
    "Seeded release.",
    "The noise came from a seed, so that results repeat. It protects nobody against who knows or finds the seed.",
)


def write_report(
    path: str | os.PathLike[str],
    release: TraceReleaser | Mechanism,
    result: TraceResult | Evidence | ArrayLike | None = None,
    truth: ArrayLike | None = None,
    *,
    title: str | None = None,
    users: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    times: Sequence[Any] | NDArray[Any] | None = None,
    prior: ArrayLike | None = None,
    categories: ArrayLike | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file on a release, which any browser opens without a network.

    It holds the policy and a picture of it, the certificate, utility beside what an adversary learns, and a map on which a few
    users can be followed step by step.

    Parameters
    ----------
    path : of the file; readable by its owner only where it contains true locations
    release : what released: a ``TraceReleaser``, or a mechanism for single releases
    result : of traces what ``run(..., evidence=True)`` or ``observe`` gave; of a mechanism the released cells, or None for a report
        on the mechanism alone
    truth : true cells, -1 for unknown, in the shape of what was released. They are then *in the file*, which says so. Without
        them, everything in the file follows from what was released and from what is public.
    title : heading of the page
    users : rows that the map shows, at most 50; the first dozen with a release unless told. For a mechanism: which releases; or
        which locations, if there are none
    labels : a name for each user (each row of the result); "user 0", ... unless told
    times : a name for each step: strings, numbers or datetimes
    prior : of a mechanism: how likely each location is, as for ``pf.utility``
    categories : one integer for each location, for the error E_poi
    overwrite : replace a file that exists

    Returns
    -------
    The path. The file appears whole or not at all.
    """
    target = _target(path, overwrite)
    if title is not None and not isinstance(title, str):
        raise InvalidParameter(f"title must be a string, got {type(title).__name__}")
    if isinstance(release, TraceReleaser):
        if prior is not None:
            raise InvalidParameter("prior is for a single mechanism: what the adversary thinks of a trace is in its evidence")
        text, private = _traces(release, result, truth, title, users, labels, times, categories)
    elif isinstance(release, Mechanism):
        if labels is not None:
            raise InvalidParameter("labels name the users of traces: for single releases give times, one name for each release")
        text, private = _single(release, result, truth, title, users, times, prior, categories)
    else:
        raise InvalidParameter(
            f"the second argument must be a TraceReleaser or a mechanism, got {type(release).__name__}: pass what released"
        )
    _write(target, text, private, overwrite)
    return target


# -- traces


def _traces(
    releaser: TraceReleaser, result: Any, truth: Any, title: str | None, users: Any, labels: Any, times: Any, categories: Any
) -> tuple[str, bool]:
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
    names = _names(labels, n, "labels", "user")
    step_names = None if times is None else _names(times, T, "times", "step")
    rows = _rows(users, n, np.flatnonzero(made.any(axis=1)), "users")
    whole = result if isinstance(result, TraceResult) else trails.counts_of(releaser, evidence)
    surrogate = whole.surrogate if true is not None and isinstance(result, TraceResult) else None
    found = trails.make_trails(releaser, whole, attack, rows, [names[u] for u in rows], true, surrogate)
    locations = releaser.locations
    estimated = None
    if true is not None and (made & (true >= 0)).any():
        estimated = gather.utility_figures(
            estimate_utility(locations, true, evidence.released, clusters="rows", level=gather.LEVEL, categories=categories)
        )
    spent = made.sum(axis=1)[made.any(axis=1)] * releaser.epsilon
    f: Figures = {
        "mode": "traces", "users": n, "steps": T, "has_truth": true is not None, "remapped": releaser.remap is not None,
        "map": gather.map_figures(locations), "policy": gather.policy_figures(releaser.graph),
        "settings": {
            "epsilon": releaser.epsilon, "mechanism": releaser.mechanism, "calibration": releaser.calibration,
            "repair": releaser.repair, "delta": releaser.delta, "likelihood": releaser.likelihood, "budget": releaser.budget,
        },
        "certificate": gather.certificate_figures(found.certificates),
        "composition": {
            "epsilon": {"low": float(spent.min()), "median": float(np.median(spent)), "high": float(spent.max())},
            "budget": releaser.budget, "users": found.spent,
        },
        "utility": estimated,
        "attack": gather.attack_figures(attack.table()),
        "curves": gather.error_curves(attack, true),
        "flags": gather.flag_figures(whole, evidence.released, surrogate),
    }  # fmt: skip
    delta = "0: every location that is possible at all counts" if releaser.delta == 0 else f"{releaser.delta:g}: the smallest set of mass 1 - delta"
    settings = [
        ("Epsilon", f"{page.epsilon(releaser.epsilon)} for each release"),
        ("Mechanism", _NAMES[releaser.mechanism] + (", answers remapped" if releaser.remap is not None else "")),
        ("Calibration", _CALIBRATIONS[releaser.calibration]),
        ("Repair", releaser.repair),
        ("Delta", delta),
        ("Likelihood", releaser.likelihood),
        ("Budget", "none" if releaser.budget is None else page.epsilon(releaser.budget)),
    ]
    words = {
        "step": "Step", "first": 0, "true": "True location", "domain": "Thought possible before", "whole": "Whole trace",
        "heading": "Map", "example": False, "view": "trace",
    }  # fmt: skip
    legend = [("released", "released"), ("guess", "best guess so far"), ("belief", "belief after the release"), ("possible", "possible before it (C_t)"), ("repaired", "edge added by repair")]  # fmt: skip
    if true is not None:
        legend.insert(0, ("true", "true location"))
    layers = [("possible", "Possible"), ("belief", "Belief"), ("guess", "Best guess"), ("trail", "Trail"), ("repaired", "Repairs"), ("policy", "Policy")]
    private = true is not None or evidence.priors.point
    banners = (_PRIVATE if true is not None else _POINT if private else "") + (_SEEDED if releaser.rng is not None else "")
    notes = list(found.notes)
    if len(rows) < n:
        notes.insert(0, f"The map shows {len(rows):,} of {n:,} users; all figures but those of the map and of the certificate are of all users.")
    if surrogate is None:
        notes.append("Everything in this file follows from the releases and from what is public: how people move, the policy, the mechanism.")
    lead = (
        f"{n:,} {'user' if n == 1 else 'users'}, {T:,} {'step' if T == 1 else 'steps'}, {_NAMES[releaser.mechanism]} at &epsilon; = {releaser.epsilon:g} "
        "for each step, under a policy graph and against an adversary who knows how people move."
    )
    main = (
        page.tiles(f)
        + page.map_section(f, words, legend, layers, len(rows))
        + page.balance_section(f)
        + page.certificate_section(f)
        + page.flags_section(f)
        + page.policy_section(f, settings, svg.policy_picture(releaser.graph, _middle(evidence.released)))
    )
    data = _data(f, words, releaser, found.users, None if step_names is None else step_names[: limits.STEPS])
    return page.assemble(title or "Released traces", lead, banners, main, _footer(notes, data), data), private


# -- single releases


def _single(
    m: Mechanism, released: Any, truth: Any, title: str | None, users: Any, times: Any, prior: Any, categories: Any
) -> tuple[str, bool]:
    size = m.locations.size
    given = None if released is None else _cells(released, size, "result")
    true = None if truth is None else _cells(truth, size, "truth")
    if given is None and true is not None:
        raise InvalidParameter("truth needs the released cells beside it: pass what mechanism.release(truth) gave as the result")
    if given is not None and true is not None and given.shape != true.shape:
        raise InvalidParameter(f"released cells have shape {given.shape}, truth {true.shape}: they must be pairs")
    estimated, curves, clustered = None, {}, given is not None and given.ndim == 2
    expected, curve = gather.exact_utility(m, prior, categories)
    if given is not None and true is not None and ((given >= 0) & (true >= 0)).any():
        estimated = gather.utility_figures(
            estimate_utility(m.locations, true, given, clusters="rows" if clustered else None, level=gather.LEVEL, categories=categories)
        )
        distance = gather.distances(m.locations, true, given)
        curves = {"release": gather.cumulative(distance[~np.isnan(distance)])}
    if curve is not None:
        curves = {"release": curve}
    inside = np.flatnonzero(m.groups.address[:, 0] >= 0)
    flat = None if given is None else given.reshape(-1)
    if flat is None:
        spread = inside[np.unique(np.linspace(0, len(inside) - 1, min(limits.SHOWN, len(inside))).astype(int))] if len(inside) else inside
        rows = _rows(users, size, spread, "users")
    else:
        rows = _rows(users, len(flat), np.flatnonzero(flat >= 0), "users")
    places = trails.make_places(m, flat, None if true is None else true.reshape(-1), rows, prior)
    names = None if times is None else _names(times, size if flat is None else len(flat), "times", "release")
    shown = [names[k] for k in rows] if names is not None else [f"location {k}" if flat is None else f"release {k}" for k in rows.tolist()]
    kind = type(m.mechanism).__name__ + " remapped" if isinstance(m, Remapped) else type(m).__name__
    plainly = _NAMES.get(kind.removesuffix(" remapped"), kind.removesuffix(" remapped")) + (", answers remapped" if isinstance(m, Remapped) else "")
    f: Figures = {
        "mode": "single", "has_truth": true is not None, "remapped": isinstance(m, Remapped), "clustered": clustered,
        "map": gather.map_figures(m.locations), "policy": gather.policy_figures(m.graph),
        "settings": {"epsilon": m.epsilon, "mechanism": kind, "calibration": m.calibration},
        "certificate": gather.exact_certificate(m),
        "expected": expected, "utility": estimated, "privacy": gather.exact_privacy(m, prior), "curves": curves,
    }  # fmt: skip
    settings = [
        ("Epsilon", f"{page.epsilon(m.epsilon)} for each release"),
        ("Mechanism", escape(plainly)),
        ("Calibration", _CALIBRATIONS[m.calibration]),
        ("Domain", "the whole map" if m.domain is None else f"{page.value(len(inside))} of {page.value(size)} locations"),
        ("Prior", "even" if prior is None else "given"),
    ]
    example = flat is None
    intro = (
        "From a few places of the map: where a release may fall, and how likely."
        if example
        else "Releases one by one, and what the adversary believes about the true location after each."
    )
    words = {
        "step": "Place" if example else "Release", "first": 1, "true": "Location" if example else "True location",
        "domain": "May be released as" if example else "Thought possible", "whole": "All shown", "heading": "Map", "example": example, "intro": intro, "view": "near",
    }  # fmt: skip
    legend = [("possible", "may be released" if example else "may be the true one"), ("belief", "how likely")]
    legend = ([] if example else [("released", "released")]) + legend
    if example or true is not None:
        legend.insert(0, ("true", "location" if example else "true location"))
    layers = [("possible", "Possible"), ("belief", "How likely"), ("policy", "Policy")]
    notes = [] if example or len(rows) == len(flat) else [f"The map shows {len(rows):,} of {len(flat):,} releases; all figures are of all of them."]  # type: ignore[arg-type]
    if true is None:
        notes.append("This file contains no true locations.")
    lead = f"Single releases by {escape(plainly)} at &epsilon; = {m.epsilon:g} under a policy graph" + (f": {flat.size:,} of them." if flat is not None else ".")
    near = _middle(flat) if flat is not None and (flat >= 0).any() else int(inside[len(inside) // 2]) if len(inside) else 0
    main = (
        page.tiles(f)
        + page.map_section(f, words, legend, layers, 1)
        + page.balance_section(f)
        + page.certificate_section(f)
        + page.policy_section(f, settings, svg.policy_picture(m.graph, near))
    )
    data = _data(f, words, m, places, shown)
    return page.assemble(title or "Single releases", lead, _PRIVATE if true is not None else "", main, _footer(notes, data), data), true is not None


# -- what both need


def _data(f: Figures, words: Figures, release: Any, users: list[Figures], steps: Any) -> Figures:
    """All that the page's script reads, and all figures, for other programs."""
    place, lines = dict(f["map"]), svg.outline(release.graph)
    if place["kind"] == "points":
        place |= _used_points(release.locations, users, lines[0] if lines else [])
    return {"mode": f["mode"], "figures": f, "words": words, "map": place, "outline": lines, "steps": steps, "users": users}


def _used_points(locations: Locations, users: list[Figures], ends: list[int]) -> Figures:
    """Coordinates of the locations that the map shows."""
    found = set(ends)
    for u in users:
        for name in ("true", "released", "guess", "hindsight"):
            found.update(np.asarray(u.get(name, [])).tolist())
        for runs in u["domain"]:
            for first, count in zip((runs or [])[::2], (runs or [])[1::2], strict=True):
                found.update(range(first, first + count))
        for belief in u["belief"]:
            found.update((belief or [])[::2])
        for edges in u["edges"]:
            found.update(edges or [])
    cells = np.array(sorted(found - {-1}), np.int64)
    xy = locations.lattice[cells] * np.asarray(locations.scale)
    x0, y0 = locations.offset_km
    return {"cells": cells, "x": np.round(xy[:, 0], 6), "y": np.round(xy[:, 1], 6), "x0": x0, "y0": y0}


def _middle(cells: NDArray[Any]) -> int:
    """A location that was released, near the middle of all that were."""
    some = cells[cells >= 0]
    return int(np.sort(some.reshape(-1))[some.size // 2])


def _footer(notes: list[str], data: Figures) -> str:
    size = len(page.embed(data)) / 1e3
    said = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f"<h2>About this file</h2><ul>{said}<li>One file, nothing is fetched: it holds {size:,.0f} kB of figures as JSON, in the element "
        f"with the id &quot;data&quot;.</li></ul><p>{page.made_with()}</p>"
    )


def _names(values: Any, n: int, what: str, each: str) -> list[str]:
    if values is None:
        return [f"{each} {k}" for k in range(n)]
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = np.datetime_as_string(values, unit="auto")
    names = [str(v).replace("T", " ") if isinstance(v, np.str_) else str(v) for v in values]
    if len(names) != n:
        raise InvalidParameter(f"{what} has {len(names)} names for {n}: give one for each {each}")
    return names


def _rows(users: Any, n: int, usual: NDArray[Any], what: str) -> NDArray[np.int64]:
    if users is None:
        return np.asarray(usual[: limits.SHOWN], np.int64)
    rows = np.atleast_1d(check.integers(users, what)).astype(np.int64)
    if rows.ndim != 1 or not rows.size or len(np.unique(rows)) != len(rows):
        raise InvalidParameter(f"{what} must be different row numbers, at least one")
    if len(rows) > limits.MOST_SHOWN:
        raise InvalidParameter(f"{what} asks for {len(rows)} on the map, a report shows at most {limits.MOST_SHOWN}: choose some")
    bad = rows[(rows < 0) | (rows >= n)]
    if bad.size:
        raise InvalidParameter(f"{what} has {bad[0]}, but rows are 0..{n - 1}")
    return rows


def _cells(values: Any, size: int, name: str) -> NDArray[np.int32]:
    array = np.atleast_1d(check.integers(values, name))
    bad = np.flatnonzero((array.reshape(-1) < -1) | (array.reshape(-1) >= size))
    if bad.size:
        raise InvalidParameter(f"{name} has {array.reshape(-1)[bad[0]]} at {bad[0]}: cells are 0..{size - 1}, and -1 for unknown")
    return array.astype(np.int32)


def _target(path: Any, overwrite: bool) -> Path:
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidParameter(f"{os.fspath(target.parent)} is not a folder: make it first, or write elsewhere")
    if target.is_dir():
        raise InvalidParameter(f"{os.fspath(target)} is a folder: give the name of a file in it")
    if target.exists() and not overwrite:
        raise InvalidParameter(f"{os.fspath(target)} exists: pass overwrite=True to replace it, or another name")
    return target


def _write(target: Path, text: str, private: bool, overwrite: bool) -> None:
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
        _target(target, overwrite)  # somebody may have been faster
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


