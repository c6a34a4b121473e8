"""What the map goes through: for a few users, step by step, what was released and what the
adversary made of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast.evaluation.exact_utility import location_weights
from pglp_fast.traces.results import COUNTS, empty_results

from . import limits
from .inputs import names_of
from .laid import Followed, Laid
from .measures import Figures

_COUNTS = (*COUNTS, "exposed")  # what an observer can count too
_SEEN = ("domain", "belief", "edges")  # of each step, on the map


@dataclass
class Trails:
    """What was found along the steps.

    Attributes
    ----------
    counts : what ``run`` counts and proves, of all users
    users : those on the map, for JSON
    notes : what was left out
    """

    counts: pf.TraceResult
    users: list[Figures]
    notes: list[str]


def follow(
    releaser: pf.TraceReleaser,
    followed: Followed,
    given: pf.TraceResult | None,
    rows: NDArray[np.int64],
    labels: list[str],
    times: NDArray[Any] | None,
) -> Trails:
    """Walk all users through their steps once more, and look at those at ``rows``.

    Whether a surrogate was released cannot be seen from releases. Where ``given`` counts otherwise,
    it came from another releaser, and the report would be wrong everywhere. ``times``:
    (1, columns) of all, or of each."""
    laid, released = followed.laid, followed.released
    at = {row: shown_steps(released[row]) for row in rows.tolist()}
    shown = np.zeros(released.shape, np.bool_)
    for row, columns in at.items():
        shown[row, columns] = True
    made = int((shown & (released >= 0)).sum())
    room = dict.fromkeys(at, limits.NUMBERS // max(1, len(at)))
    seen: dict[tuple[int, int], list[Any]] = {}
    out, last = empty_results(*released.shape), None
    for stream, step, users, columns in _walk(releaser, laid):
        last = stream
        for name in _COUNTS:
            out[name][users, columns] = getattr(step, name)[users]
        on_map = shown[users, columns]
        for u, column in zip(users[on_map].tolist(), columns[on_map].tolist(), strict=True):
            looked = _look(stream, u)
            room[u] -= sum(map(len, looked))
            if room[u] >= 0:
                seen[u, column] = looked
    assert last is not None
    out["released"] = released
    if given is not None:
        _compare(out, given, laid)
    counts = pf.TraceResult(evidence=laid.evidence, certificate=last.certificate, **out)
    found = [
        _series(counts, followed, row, label, columns, times) | _seen(seen, row, columns)
        for (row, columns), label in zip(at.items(), labels, strict=True)
    ]
    left = int((released[rows] >= 0).sum()) - made
    return Trails(counts, found, list(_left_out(left, made - len(seen), made)))


def _walk(
    releaser: pf.TraceReleaser, laid: Laid
) -> Iterator[tuple[pf.Stream, pf.TraceResult, NDArray[np.int64], NDArray[np.int64]]]:
    """Step by step: the stream of all users, its counts, who released, and in which columns."""
    evidence = laid.evidence
    steps = evidence.by_step(np.arange(evidence.persons))
    for (_, cells, at), (stream, step) in zip(steps, releaser.replay(evidence), strict=True):
        users = np.flatnonzero(cells >= 0)
        yield stream, step, users, laid.column[at[users]]


def _seen(
    looked: dict[tuple[int, int], list[Any]], row: int, columns: NDArray[np.int64]
) -> Figures:
    """What is seen on the map at each step of a user; None where nothing is."""
    nothing: list[Any] = [None] * len(_SEEN)
    of_steps = [looked.get((row, column), nothing) for column in columns.tolist()]
    return {name: [one[k] for one in of_steps] for k, name in enumerate(_SEEN)}


def _series(
    result: pf.TraceResult,
    followed: Followed,
    row: int,
    label: str,
    columns: NDArray[np.int64],
    times: NDArray[Any] | None,
) -> Figures:
    """The numbers of one user along the steps."""
    at, surrogate = (row, columns), followed.surrogate
    own: Figures = {"label": label, "row": row, "at": followed.laid.steps[at]}
    own["released"] = followed.released[at]
    if times is not None:
        own["times"] = names_of(times[0 if len(times) == 1 else row], "step", columns)
    if followed.truth is not None:
        own["true"] = followed.truth[at]
    if surrogate is not None:
        own["surrogate"] = surrogate[at].astype(int)
    own |= {name: np.asarray(getattr(result, name)[at]).astype(int) for name in _COUNTS}
    own |= {"guess": followed.online_bayes[at], "guess_km": _rounded(followed.online_error[at])}
    own |= {"bits": _rounded(followed.online_entropy[at])}
    return own | {"release_km": _rounded(followed.release_error[at])}


def shown_steps(released: NDArray[Any]) -> NDArray[np.int64]:
    """The steps of a trace that the map goes through: from the first release to the last, short
    silence too; long silence is skipped."""
    made = np.flatnonzero(released >= 0)
    if not made.size:
        return made
    gap = np.diff(made, append=made[-1])
    silent = [np.arange(t + 1, t + k) for t, k in zip(made, gap) if 1 < k <= limits.SILENCE + 1]
    return np.sort(np.concatenate([made, *silent]))[: limits.STEPS]


_DRAWN = {"possible": "domain", "belief": "belief", "repaired": "edges"}


def is_there(users: list[Figures], key: str) -> bool:
    """Whether the map ever shows what an entry of the legend, or a layer, stands for."""
    name = _DRAWN.get(key, key)
    if name in _SEEN:
        return any(one for own in users for one in own[name])
    if name in ("true", "released", "guess"):
        return any((np.asarray(own[name]) >= 0).any() for own in users if name in own)
    return True


def _look(stream: pf.Stream, u: int) -> list[Any]:
    """Where user u may be, what the adversary believes, and the edges that the repair added."""
    added = stream.added(u).ravel().tolist()
    return [_runs(stream.domain(u).cells()), _belief(stream.posterior(u)), added]


def _left_out(left: int, cut: int, made: int) -> Iterator[str]:
    if left:
        yield (
            f"The map goes through the first {limits.STEPS:,} steps of each user; {left:,} further "
            "releases are in all figures, but not on the map."
        )
    if cut:
        yield (
            f"Where users may be is left out of {cut:,} of the {made:,} steps on the map, to keep "
            "the file small: show fewer users."
        )


def _compare(found: Figures, given: pf.TraceResult, laid: Laid) -> None:
    for name in _COUNTS:
        differs = np.argwhere(found[name] != laid.of(getattr(given, name), 0))
        if len(differs):
            u, t = differs[0].tolist()
            raise pf.InvalidEvidence(
                f"{name} of user {u} at step {laid.steps[u, t]} is not what this releaser gives: "
                "pass the releaser that the result came from"
            )


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(values, 6)


def _runs(cells: NDArray[Any]) -> list[int]:
    """Ascending cells as (first, how many) pairs, end to end."""
    if not len(cells):
        return []
    breaks = np.flatnonzero(np.diff(cells) != 1)
    first = cells[np.concatenate([[0], breaks + 1])]
    last = cells[np.concatenate([breaks, [len(cells) - 1]])]
    return np.stack([first, last - first + 1], axis=1).astype(int).ravel().tolist()


def _belief(p: NDArray[np.float64]) -> list[float]:
    """(cell, probability) pairs, the likeliest first; as many as a map can show."""
    cells = np.flatnonzero(p)
    order = np.argsort(-p[cells], kind="stable")[: limits.HEAT]
    cells = cells[order]
    shown = np.round(p[cells], 5)
    return [
        x
        for cell, value in zip(cells.tolist(), shown.tolist(), strict=True)
        if value > 0
        for x in (cell, value)
    ]


def make_places(
    m: pf.Mechanism,
    released: NDArray[Any] | None,
    truth: NDArray[Any] | None,
    rows: NDArray[np.int64],
    prior: ArrayLike | None,
) -> list[Figures]:
    """Single releases one after the other: what the adversary believes given each; without
    releases, what may be released."""
    weight = location_weights(prior, m.groups.address[:, 0] >= 0)
    own: Figures = {"label": "", "domain": [], "belief": [], "edges": []}
    if released is None:
        own |= {"true": rows, "released": np.full(len(rows), -1)}
    else:
        own["released"] = released[rows]
        if truth is not None:
            own["true"] = truth[rows]
    own["domain_size"] = []
    anchor = rows if released is None else released[rows]
    for s in anchor.tolist():
        inside = s >= 0 and m.groups.address[s, 0] >= 0
        outputs = m.groups.of(s) if inside else np.empty(0, np.int32)
        own["domain_size"].append(len(outputs))
        own["domain"].append(_runs(outputs) if inside else None)
        own["belief"].append(_believed(m, s, weight, released is None) if inside else None)
        own["edges"].append([])
    return [own]


def _believed(
    m: pf.Mechanism, s: int, weight: NDArray[np.float64], forward: bool
) -> list[float] | None:
    p = np.zeros(m.locations.size)
    try:
        if forward:
            outputs, row = m.pmf(s)
            p[outputs] = row
        else:
            outputs, P = m.matrix(s)
            joint = P[:, int(np.searchsorted(outputs, s))] * weight[outputs]
            p[outputs] = joint / joint.sum() if joint.sum() > 0 else 0.0
    except pf.TooLarge:
        return None
    return _belief(p)
