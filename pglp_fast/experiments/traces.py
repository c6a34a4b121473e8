"""Traces released step by step against an adversary who knows how people move: by mechanism, by policy, on two data sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacks import attack
from ..intervals import difference_interval, mean_bands, signed_mean_interval
from ..policy import blocks
from ..traces import TraceReleaser
from .claims import LEVEL, Claim, Difference, joint_level, judge
from .data import Movement, load_movements
from .figures import Line, Panel, draw
from .result import Result
from .rows import Row, select
from .setup import Setup

TITLE = "Traces: releases over time"
EPSILON = 1.0
SIDES = {"G_k9": 3, "G_k16": 4, "G_k25": 5}
OTHERS, EVERYONE, LETTER = "learned from others", "learned from everyone", "graph calibration, known start"
_OPTIONS: dict[str, dict[str, Any]] = {
    "P-LM": {"mechanism": "plm"},
    "P-PIM": {"mechanism": "ppim"},
    "P-PIM remapped": {"mechanism": "ppim", "remap": "euclidean"},
    "Optimal": {"mechanism": "optimal"},
}
# Algorithms 3 and 4 to the letter, from a start that the adversary knows: the domain then grows from a single location
_TO_THE_LETTER = {"mechanism": "ppim", "calibration": "graph", "likelihood": "density"}

# fields of a series, and what they are called in the table
_METRICS = {
    "error": "e_eu",
    "adversary": "adversary",
    "online": "adversary_online",
    "domain": "domain_size",
    "isolated": "isolated",
    "surrogate": "surrogate",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """What one releaser did to the users of a data set; arrays are (users, T), means over repetitions, NaN where nothing is.

    Attributes
    ----------
    error : E_eu, km
    adversary : distance from the truth of the best guess that knows all releases, km; None where no attack was made
    online : the same, of the best guess that knows the releases so far
    domain : |C_t|
    isolated : share of C_t that stood exposed before the repair
    surrogate : share of releases whose true location the model called impossible
    """

    data: str
    policy: str
    mechanism: str
    setting: str
    error: Floats
    adversary: Floats | None
    online: Floats | None
    domain: Floats
    isolated: Floats
    surrogate: Floats

    @property
    def by_user(self) -> Floats:
        """Mean error of each user, over the timestamps."""
        return np.asarray(np.nanmean(self.error, axis=1))


def run(setup: Setup) -> Result:
    """Errors of the releases and of the adversary at each timestamp."""
    gps, checkins = load_movements(setup.folder, quick=setup.quick, seed=setup.seed)
    wanted = [(gps, OTHERS, policy, name) for policy in SIDES for name in ("P-LM", "P-PIM")]
    wanted += [(gps, OTHERS, "G_k9", name) for name in ("P-PIM remapped", "Optimal")]
    wanted += [(gps, LETTER, "G_k9", "P-PIM")]
    wanted += [(gps, EVERYONE, policy, "P-PIM") for policy in SIDES]
    wanted += [(checkins, setting, policy, "P-PIM") for setting in (EVERYONE, OTHERS) for policy in SIDES]
    series = []
    for movement, setting, policy, name in wanted:
        setup.say(f"traces: {movement.name}, {policy}, {name}, {setting}")
        series.append(release(movement, setting, policy, name, setup))
    rows = [row for one in series for row in _rows(one)]
    names = gps.name, checkins.name
    claims = [
        ppim_better(series, names[0]),
        *(grows(series, names[0], setting) for setting in (OTHERS, EVERYONE, LETTER)),
        grows(series, names[1], EVERYONE),
        *(smallest_best(series, name, setting) for name, setting in ((names[0], OTHERS), (names[1], EVERYONE))),
        checkins_lower(series, *names),
        smaller_domain(series, *names),
    ]
    figures = {
        "mechanisms": lambda: _by_mechanism(rows, names[0]),
        "policies": lambda: _by_policy(rows, names),
        "letter": lambda: _letter(rows, names[0]),
    }
    source = f"{gps.source}; {checkins.source}."
    return Result("traces", TITLE, source, rows, claims, figures, [_note(setup, series), _table(series)], credit=gps.credit)


def release(movement: Movement, setting: str, policy: str, mechanism: str, setup: Setup) -> Series:
    """All users and repetitions at once; each has randomness of its own."""
    letter = setting == LETTER
    known = movement.everyone if setting == EVERYONE else movement.others
    releaser = TraceReleaser(
        blocks(movement.grid, SIDES[policy]), known.model, epsilon=EPSILON,
        rng=setup.seed_of("traces", movement.name, setting, policy, mechanism),
        **(_TO_THE_LETTER if letter else _OPTIONS[mechanism]),
    )  # fmt: skip
    users, steps = movement.truth.shape
    kinds = ("error", "domain", "isolated", "surrogate") if letter else tuple(_METRICS)
    out = {kind: np.full((users, steps), np.nan) for kind in kinds}
    # traces that end earlier apart: beyond its end a belief would spread over the whole map, at great cost and to no use
    lengths = steps - np.argmax(movement.truth[:, ::-1] >= 0, axis=1)
    for length in np.unique(lengths):
        some = np.flatnonzero(lengths == length)
        truth = np.repeat(movement.truth[some, :length], setup.repetitions, axis=0)
        numbers = (some[:, None] * setup.repetitions + np.arange(setup.repetitions)).ravel()
        run = releaser.run(truth, priors="point" if letter else known.prior, users=numbers, evidence=not letter)
        found = {"error": _distance(movement, truth, run.released), "domain": run.domain_size, "surrogate": run.surrogate}
        found["isolated"] = run.isolated / np.maximum(run.domain_size, 1)
        if not letter:
            guesses = attack(run)
            found["adversary"] = _distance(movement, truth, guesses.bayes)
            found["online"] = _distance(movement, truth, guesses.online_bayes)
        for kind, values in found.items():
            seen = np.where(truth >= 0, values, np.nan)
            out[kind][some, :length] = seen.reshape(len(some), setup.repetitions, length).mean(axis=1)
    return Series(
        movement.name, policy, mechanism, setting, out["error"], out.get("adversary"), out.get("online"), out["domain"],
        out["isolated"], out["surrogate"],
    )  # fmt: skip


def _distance(movement: Movement, truth: NDArray[np.int32], cells: NDArray[np.int32]) -> Floats:
    out = np.full(truth.shape, np.nan)
    there = truth >= 0
    out[there] = movement.grid.distance(truth[there], cells[there])
    return out


def _rows(s: Series) -> list[Row]:
    rows = []
    for kind, metric in _METRICS.items():
        values = getattr(s, kind)
        if values is None:
            continue
        for t, (mean, low, high, n) in enumerate(zip(*mean_bands(values, LEVEL), strict=True)):
            if n:
                rows.append(Row(s.data, s.policy, s.mechanism, s.setting, metric, "timestamp", t + 1,
                                float(mean), float(low), float(high), int(n)))  # fmt: skip
    return rows


def _pick(series: list[Series], data: str, setting: str, policy: str, mechanism: str = "P-PIM") -> Series:
    wanted = (data, setting, policy, mechanism)
    return next(s for s in series if (s.data, s.setting, s.policy, s.mechanism) == wanted)


# -- claims; users are the independent units


def ppim_better(series: list[Series], data: str) -> Claim:
    """The paper: P-PIM has higher utility than P-LM over traces."""
    differences = []
    for policy in SIDES:
        plm, ppim = (_pick(series, data, OTHERS, policy, name).by_user for name in ("P-LM", "P-PIM"))
        gap = ppim - plm
        differences.append(Difference(policy, float(gap.mean()), *signed_mean_interval(gap, joint_level(len(SIDES)))))
    return judge(
        f"P-PIM errs less than P-LM over traces ({data})",
        "mean over users of (E_eu of P-PIM less that of P-LM, over all timestamps) is at most 0 for each policy; intervals "
        "over users hold together at 95 %.",
        differences,
    )


def slopes(error: Floats) -> Floats:
    """How much the error of each user rises from one timestamp to the next: least squares over the timestamps there are."""
    t = np.where(np.isnan(error), np.nan, np.arange(error.shape[1], dtype=np.float64))
    t = t - np.nanmean(t, axis=1, keepdims=True)
    return np.asarray(np.nansum(t * error, axis=1) / np.nansum(t * t, axis=1))


def grows(series: list[Series], data: str, setting: str) -> Claim:
    """The paper: "the error E_eu is increasing along with timestamps due to the enlarged constrained domain"."""
    policies = [p for p in SIDES if any((s.data, s.setting, s.policy) == (data, setting, p) for s in series)]
    differences, domains = [], []
    for policy in policies:
        s = _pick(series, data, setting, policy)
        steps = s.error.shape[1] - 1
        fall = -slopes(s.error) * steps
        differences.append(Difference(policy, float(fall.mean()), *signed_mean_interval(fall, joint_level(len(policies)))))
        size = np.nanmean(s.domain, axis=0)
        domains.append(f"{policy} {size[1]:.0f} at timestamp 2, {np.median(size[len(size) // 2 :]):.0f} in the second half")
    return judge(
        f"The error grows along the timestamps ({data}, {setting})",
        "mean over users of the fall of E_eu from the first timestamp to the last, along the least-squares line, is at most 0 "
        "for each policy; intervals over users hold together at 95 %.",
        differences,
        why=f"Domains on average: {'; '.join(domains)}. {_WHY_NOT[setting]}",
    )


_A_COMPONENT = (
    "A release tells the component of the true location, so that the next domain is what can be reached from one component, "
    "however long the trace is: it has no reason to grow. (What does raise the error late in a trace is a user whom the model "
    "has lost, if there are any.)"
)
_WHY_NOT = {
    OTHERS: _A_COMPONENT,
    EVERYONE: _A_COMPONENT,
    LETTER: "From a known start the domain grows, and for some steps the error with it; once nearly the whole map is possible, "
    "hardly anybody is isolated, no long edges are added, and the error falls back to that of a single release.",
}


def smallest_best(series: list[Series], data: str, setting: str) -> Claim:
    """The paper: "The utility of G_k9 is always the best over different timestamps for both datasets"."""
    best = _pick(series, data, setting, "G_k9")
    differences, shares = [], []
    for policy in list(SIDES)[1:]:
        other = _pick(series, data, setting, policy)
        gap = best.by_user - other.by_user
        differences.append(Difference(f"against {policy}", float(gap.mean()), *signed_mean_interval(gap, joint_level(2))))
        lower = np.nanmean(best.error, axis=0) < np.nanmean(other.error, axis=0)
        shares.append(f"below {policy} at {int(lower.sum())} of {lower.size}")
    claim = judge(
        f"G_k9 errs least over traces ({data}, {setting})",
        "mean over users of (E_eu of G_k9 less that of G_k16 and of G_k25, over all timestamps) is at most 0; intervals over "
        "users hold together at 95 %.",
        differences,
    )
    evidence = f"{claim.evidence} Timestamp by timestamp the mean of G_k9 is {' and '.join(shares)}."
    return Claim(claim.text, claim.criterion, claim.verdict, evidence, claim.why)


def _between(series: list[Series], gps: str, checkins: str, value: str) -> list[Difference]:
    differences = []
    for policy in SIDES:
        a, b = (np.nanmean(getattr(_pick(series, name, EVERYONE, policy), value), axis=1) for name in (checkins, gps))
        interval = difference_interval(a, b, joint_level(len(SIDES)))
        differences.append(Difference(policy, float(a.mean() - b.mean()), *interval))
    return differences


def checkins_lower(series: list[Series], gps: str, checkins: str) -> Claim:
    """The paper: "In general, the Gowalla dataset has better utility than the Geolife dataset"."""
    return judge(
        f"{checkins} errs less than {gps}",
        f"mean E_eu over users of {checkins} less that of {gps}, P-PIM, models {EVERYONE}, is at most 0 for each policy; "
        "intervals over users hold together at 95 %.",
        _between(series, gps, checkins, "error"),
        why="Check-ins jump: the locations that can be reached lie far apart, so that many blocks hold a single possible "
        "location, which the repair joins to one elsewhere. Isolated before the repair under G_k9: "
        f"{_isolated(series, checkins):.0%} of a domain of {checkins}, {_isolated(series, gps):.0%} of one of {gps}.",
    )


def _isolated(series: list[Series], data: str) -> float:
    return float(np.nanmean(_pick(series, data, EVERYONE, "G_k9").isolated))


def smaller_domain(series: list[Series], gps: str, checkins: str) -> Claim:
    """The paper's reason: "because the constraint domain of the Gowalla dataset is smaller"."""
    return judge(
        f"The domains of {checkins} are smaller than those of {gps}",
        f"mean |C_t| over users of {checkins} less that of {gps}, P-PIM, models {EVERYONE}, is at most 0 for each policy; "
        "intervals over users hold together at 95 %.",
        _between(series, gps, checkins, "domain"),
        unit="locations",
    )


# -- words and pictures


def _note(setup: Setup, series: list[Series]) -> str:
    users, steps = series[0].error.shape
    lost = {
        (s.data, s.setting): f"{np.nanmean(s.surrogate):.1%} ({s.data}, {s.setting})"
        for s in series
        if s.policy == "G_k9" and s.mechanism == "P-PIM" and s.setting != LETTER
    }
    return (
        f"Epsilon {EPSILON:g} for each release, {users} users, {steps} timestamps, {setup.repetitions} repetitions. Users are "
        f"the independent units: bands and intervals say how far other users could be from these. Unless said otherwise the "
        f"model is {OTHERS}: all users but those tested; what is {EVERYONE} (as in the paper) holds the tested traces and is not "
        "public knowledge. No move is made possible that nobody made; a true location that the model calls impossible is "
        f"replaced by the nearest possible one, which happened in {', '.join(lost.values())} of the releases under G_k9. The "
        "prior is where the users of the model are. The adversary's error is the distance from the truth of its best guess once "
        "all releases are known."
    )


def _table(series: list[Series]) -> str:
    lines = [
        "Means over users and timestamps:", "",
        "| data | model | policy | mechanism | E_eu (km) | 95 % | adversary (km) | domain |", "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for s in series:
        low, high = signed_mean_interval(s.by_user, LEVEL)
        guess = "-" if s.adversary is None else f"{np.nanmean(np.nanmean(s.adversary, axis=1)):.3f}"
        lines.append(
            f"| {s.data} | {s.setting} | {s.policy} | {s.mechanism} | {s.by_user.mean():.3f} | {max(low, 0):.3f} .. {high:.3f} | "
            f"{guess} | {np.nanmean(np.nanmean(s.domain, axis=1)):.0f} |"
        )
    return "\n".join(lines)


_LABELS = {"e_eu": "E_eu (km)", "adversary": "adversary's error (km)", "domain_size": "locations in C_t"}


def _panel(title: str, rows: list[Row], metric: str, lines: dict[str, dict[str, str]]) -> Panel:
    """``lines``: by label, which rows."""
    drawn = [Line(label, select(rows, metric=metric, **wanted), i) for i, (label, wanted) in enumerate(lines.items())]
    return Panel(title, drawn, "timestamp", _LABELS[metric], markers=False)


def _by_mechanism(rows: list[Row], data: str) -> object:
    panels = []
    for metric in ("e_eu", "adversary"):
        for policy in SIDES:
            names = _OPTIONS if policy == "G_k9" else ("P-LM", "P-PIM")
            lines = {name: dict(data=data, setting=OTHERS, policy=policy, mechanism=name) for name in names}
            panels.append(_panel(f"{data}, {policy}", rows, metric, lines))
    return draw(panels, same_y=True)


def _by_policy(rows: list[Row], names: tuple[str, str]) -> object:
    panels = []
    for metric in ("e_eu", "adversary"):
        for data, setting in ((names[0], OTHERS), (names[0], EVERYONE), (names[1], EVERYONE), (names[1], OTHERS)):
            lines = {policy: dict(data=data, setting=setting, policy=policy, mechanism="P-PIM") for policy in SIDES}
            panels.append(_panel(f"{data}, {setting}", rows, metric, lines))
    return draw(panels, columns=4)


def _letter(rows: list[Row], data: str) -> object:
    settings = {"component calibration": OTHERS, LETTER: LETTER}
    lines = {label: dict(data=data, setting=s, policy="G_k9", mechanism="P-PIM") for label, s in settings.items()}
    return draw([_panel(f"{data}, G_k9, P-PIM", rows, metric, lines) for metric in ("e_eu", "domain_size")], columns=2)
