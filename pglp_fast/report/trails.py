"""What the map goes through: for a few users, step by step, what was released and what the
adversary made of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
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


def retrace(releaser: pf.TraceReleaser, laid: Laid, given: pf.TraceResult | None) -> pf.TraceResult:
    """What ``run`` counts and proves, worked out again from the releases of all users.

    Whether a surrogate was released cannot be seen from releases. Where ``given`` says otherwise,
    it came from another releaser, and the report would be wrong everywhere."""
    evidence, last = laid.evidence, None
    out = empty_results(*laid.steps.shape)
    for stream, step, some, rows in _walk(releaser, evidence, np.arange(evidence.persons)):
        last = stream
        for name in _COUNTS:
            out[name][laid.row[rows], laid.column[rows]] = getattr(step, name)[some]
    assert last is not None
    out["released"] = laid.of_rows(evidence.released, -1)
    if given is not None:
        _compare(out, given, laid)
    return pf.TraceResult(evidence=evidence, certificate=last.certificate, **out)


@dataclass
class Trails:
    """What was found along the steps.

    Attributes
    ----------
    users : for JSON
    notes : what was left out
    """

    users: list[Figures]
    notes: list[str] = field(default_factory=list)


def make_trails(
    releaser: pf.TraceReleaser,
    result: pf.TraceResult,
    followed: Followed,
    rows: NDArray[np.int64],
    labels: list[str],
    times: NDArray[Any] | None,
) -> Trails:
    """Walk the users at ``rows`` through their steps once more; ``times``: (1, columns) of all, or
    of each."""
    released, laid = followed.released, followed.laid
    at = [shown_steps(released[row]) for row in rows.tolist()]
    found = Trails(
        [
            _series(result, followed, row, label, columns, times)
            for row, label, columns in zip(rows.tolist(), labels, at, strict=True)
        ]
    )
    shown = np.zeros((len(rows), released.shape[1]), np.bool_)
    for u, columns in enumerate(at):
        shown[u, columns] = True
    made = np.argwhere(shown & (released[rows] >= 0))
    room = np.full(len(rows), limits.NUMBERS // max(1, len(rows)))
    cut = 0
    for stream, _, some, which in _walk(releaser, laid.evidence, rows):
        columns = laid.column[which]
        on_map = shown[some, columns]
        for u, column in zip(some[on_map].tolist(), columns[on_map].tolist(), strict=True):
            looked = _look(stream, u)
            room[u] -= sum(map(len, looked))
            if room[u] < 0:
                cut += 1
                continue
            place = int(np.searchsorted(at[u], column))
            for name, value in zip(_SEEN, looked, strict=True):
                found.users[u][name][place] = value
    left = int((released[rows] >= 0).sum()) - len(made)
    found.notes += _left_out(left, cut, len(made))
    return found


def _walk(
    releaser: pf.TraceReleaser, evidence: pf.Evidence, users: NDArray[np.int64]
) -> Iterator[tuple[pf.Stream, pf.TraceResult, NDArray[np.int64], NDArray[np.int64]]]:
    """Step by step: the stream, its counts, which of the users released, and the rows of that."""
    replayed = releaser.replay(evidence, users)
    for (_, cells, at), (stream, step) in zip(evidence.by_step(users), replayed, strict=True):
        some = np.flatnonzero(cells >= 0)
        yield stream, step, some, at[some]


def _series(
    result: pf.TraceResult,
    followed: Followed,
    row: int,
    label: str,
    columns: NDArray[np.int64],
    times: NDArray[Any] | None,
) -> Figures:
    """The numbers of one user along the steps, and room for what is seen on the map."""
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
    own |= {"release_km": _rounded(followed.release_error[at])}
    return own | {name: [None] * len(columns) for name in _SEEN}


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
