"""What the map goes through: for a few users, step by step, what was released and what the adversary made of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..attacks import Attack
from ..certify import Certificate, certify
from ..domain import Domain
from ..errors import InvalidEvidence, TooLarge
from ..evidence import Evidence
from ..exposure import repair
from ..mechanisms import PLM, PPIM, Mechanism, PlanarLaplace
from ..mechanisms.tabled import Tabled
from ..metrics import location_weights
from ..policy import PolicyGraph
from ..priors import Priors
from ..randomness import make_key
from ..stream import Stream, TraceResult, empty_results
from ..traces import TABLES, TraceReleaser
from . import limits
from .figures import Figures

_NOISE: dict[str, Any] = {"ppim": PPIM, "pim": PPIM, "plm": PLM, "lm": PLM, "planar-laplace": PlanarLaplace}
_COUNTS = ("domain_size", "disconnected", "isolated", "added", "exposed")


def replayed(
    releaser: TraceReleaser, evidence: Evidence, rows: NDArray[np.int64], steps: int
) -> Iterator[tuple[Stream, TraceResult]]:
    """The stream of these users as any observer can work it out again from what was released, step by step."""
    priors = Priors(evidence.priors.rows, evidence.priors.of[rows], False)
    stream = Stream(releaser, np.arange(len(rows)), priors, make_key(0))  # nothing is drawn
    for t in range(steps):
        yield stream, stream._step(evidence.released[rows, t], int(evidence.periods[t]), replay=True)[0]


def counts_of(releaser: TraceReleaser, evidence: Evidence) -> TraceResult:
    """What ``run`` counts, of evidence that came without it; who was a surrogate is not to be seen from releases."""
    n, T = evidence.shape
    out = empty_results(n, T)
    for t, (_, step) in enumerate(replayed(releaser, evidence, np.arange(n), T)):
        for name in _COUNTS:
            out[name][:, t] = getattr(step, name)
    out["released"] = evidence.released
    return TraceResult(evidence=evidence, **out)


@dataclass(frozen=True)
class Trails:
    """users: for JSON; certificates: of the steps that were looked at; spent: for each user what composition says."""

    users: list[Figures]
    certificates: list[Certificate]
    spent: list[Figures]
    notes: list[str]


def make_trails(
    releaser: TraceReleaser,
    result: TraceResult,
    attack: Attack,
    rows: NDArray[np.int64],
    labels: list[str],
    truth: NDArray[Any] | None,
    surrogate: NDArray[np.bool_] | None,
) -> Trails:
    """Walk the users at ``rows`` through their steps once more."""
    evidence = attack.evidence
    total = evidence.shape[1]
    steps = min(total, limits.STEPS)
    users: list[Figures] = []
    for row, label in zip(rows.tolist(), labels, strict=True):
        own: Figures = {"label": label, "row": row, "released": evidence.released[row, :steps]}
        if truth is not None:
            own["true"] = truth[row, :steps]
        if surrogate is not None:
            own["surrogate"] = surrogate[row, :steps].astype(int)
        own |= {name: np.asarray(getattr(result, name)[row, :steps]).astype(int) for name in _COUNTS}
        own |= {"guess": attack.online_bayes[row, :steps], "guess_km": _rounded(attack.online_error[row, :steps])}
        own |= {"bits": _rounded(attack.online_entropy[row, :steps])}
        own |= {"release_km": _rounded(attack.errors["released"][row, :steps])}
        users.append(own | {"domain": [], "belief": [], "edges": []})
    room = [limits.NUMBERS // max(1, len(users))] * len(users)
    cut = 0
    made = [(u, t) for u in range(len(rows)) for t in range(steps) if evidence.released[rows[u], t] >= 0]
    most = limits.CERTIFIED_SOLVED if releaser.mechanism == "optimal" else limits.CERTIFIED
    wanted = {made[k] for k in np.unique(np.linspace(0, len(made) - 1, min(most, len(made))).astype(int))} if made else set()
    certificates: list[Certificate] = []
    stream: Stream | None = None
    for t, (stream, step) in enumerate(replayed(releaser, evidence, rows, total)):
        if t >= steps:
            continue
        _compare(step, result, rows, t)
        for u, own in enumerate(users):
            if evidence.released[rows[u], t] < 0:
                for name in ("domain", "belief", "edges"):
                    own[name].append(None)
                continue
            domain = stream.domain(u)
            fixed = repair(releaser.graph, domain, strategy=releaser.repair, calibration=releaser.calibration)
            if (u, t) in wanted:
                certificates.append(certify(step_mechanism(releaser, fixed.graph, domain)))
            seen: list[Any] = [_runs(domain.cells()), _belief(stream.posterior(u)), fixed.added.ravel().tolist()]
            room[u] -= sum(map(len, seen))
            if room[u] < 0:
                seen, cut = [None, None, None], cut + 1
            for name, value in zip(("domain", "belief", "edges"), seen, strict=True):
                own[name].append(value)
    if not certificates:  # users who come later than the map goes
        certificates.append(certify(step_mechanism(releaser, releaser.graph, None)))
    spent = []
    for u in range(len(rows)):
        assert stream is not None
        kept = stream.ledger.graph(u)
        spent.append({"label": labels[u], "epsilon": stream.ledger.epsilon(u), "edges": kept.n_edges})
    notes = []
    if total > steps:
        notes.append(f"The map goes through the first {steps:,} of {total:,} steps; all figures are of all steps.")
    if cut:
        notes.append(
            f"Where users may be is left out of {cut:,} of the {len(made):,} steps on the map, to keep the file small: "
            "show fewer users."
        )
    if len(wanted) < len(made):
        notes.append(f"{len(wanted):,} of the {len(made):,} steps on the map were certified one by one.")
    return Trails(users, certificates, spent, notes)


def _compare(step: TraceResult, result: TraceResult, rows: NDArray[np.int64], t: int) -> None:
    """A result of another releaser would give a report that is wrong everywhere."""
    for name in _COUNTS:
        if (getattr(step, name) != getattr(result, name)[rows, t]).any():
            u = int(rows[np.flatnonzero(getattr(step, name) != getattr(result, name)[rows, t])[0]])
            raise InvalidEvidence(
                f"{name} of user {u} at step {t} is not what this releaser gives: pass the releaser that the result came from"
            )


def step_mechanism(releaser: TraceReleaser, graph: PolicyGraph, domain: Domain | None) -> Mechanism:
    """What draws a release of a trace, over the repaired policy of that step; of a remapped one, what is remapped."""
    if releaser.mechanism in TABLES:
        return Tabled(graph, releaser._book.recipe, epsilon=releaser.epsilon, domain=domain)
    made: Mechanism = _NOISE[releaser.mechanism](
        graph, epsilon=releaser.epsilon, domain=domain, calibration=releaser.calibration,
        sampler="geometric" if releaser.remap is None else "auto",
    )  # fmt: skip
    return made


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
    return [x for cell, value in zip(cells.tolist(), shown.tolist(), strict=True) if value > 0 for x in (cell, value)]


def make_places(
    m: Mechanism, released: NDArray[Any] | None, truth: NDArray[Any] | None, rows: NDArray[np.int64], prior: ArrayLike | None
) -> list[Figures]:
    """Single releases one after the other: what the adversary believes given each; without releases, what may be released."""
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


def _believed(m: Mechanism, s: int, weight: NDArray[np.float64], forward: bool) -> list[float] | None:
    p = np.zeros(m.locations.size)
    try:
        if forward:
            outputs, row = m.pmf(s)
            p[outputs] = row
        else:
            outputs, P = m.matrix(s)
            joint = P[:, int(np.searchsorted(outputs, s))] * weight[outputs]
            p[outputs] = joint / joint.sum() if joint.sum() > 0 else 0.0
    except TooLarge:
        return None
    return _belief(p)
