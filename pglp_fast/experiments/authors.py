"""Traces as the authors ran them: raw fixes, a start that is known, and nobody is repaired."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf

from .claims import Claim, judge, paired, unpaired
from .data import (
    STEPS,
    USERS,
    Movement,
    beijing,
    has_checkins,
    load_movements,
    los_angeles,
    read_beijing,
)
from .figures import Panel, draw, lines_of
from .result import Result
from .rows import Row, band_rows, mean_row
from .setup import Setup
from .single import EPSILONS
from .trace_claims import slopes
from .trace_series import SIDES, Floats, distances, put_means, repeated

TITLE = "Traces as the authors ran them: raw fixes, a known start, no repair"
NONE, REPAIRED = "none", "min-area"
_SAID = {NONE: "nobody is repaired", REPAIRED: "min-area repair"}


@dataclass(frozen=True)
class Raw:
    """Steps as they stand in the data, and a model learned from everyone, those tested too."""

    name: str
    source: str
    truth: NDArray[np.int32]
    model: pf.MobilityModel


@dataclass(frozen=True)
class Errors:
    """E_eu of users at timestamps (means over repetitions), by what was released how; the shares of
    C_t that were isolated, and of releases that are the true cell."""

    data: str
    policy: str
    mechanism: str
    repair: str
    epsilon: float
    error: Floats
    isolated: float
    hits: float

    @property
    def by_user(self) -> Floats:
        return np.asarray(np.nanmean(self.error, axis=1))


def run(setup: Setup) -> Result:
    """Errors by timestamp, by epsilon, and of two data sets with and without repair."""
    sets, credit = _load(setup)
    gps = sets[0]
    wanted = [
        (one, policy, "P-PIM", repair, 1.0)
        for one in sets for repair in (NONE, REPAIRED) for policy in SIDES
    ]  # fmt: skip
    wanted += [(gps, policy, "P-LM", NONE, 1.0) for policy in SIDES]
    wanted += [
        (gps, policy, "P-PIM", NONE, epsilon)
        for policy in SIDES for epsilon in EPSILONS if epsilon != 1
    ]  # fmt: skip
    series = []
    for one, policy, name, repair, epsilon in wanted:
        setup.say(f"authors: {one.name}, {policy}, {name}, {_SAID[repair]}, epsilon {epsilon:g}")
        series.append(_release(one, policy, name, repair, epsilon, setup))
    series.sort(key=lambda s: s.epsilon)  # lines go from left to right
    rows = [row for s in series for row in _rows(s)]
    claims = [_better(series, gps.name), _grows(series, gps.name), _least(series, gps.name)]
    if len(sets) > 1:
        claims += [_between(series, gps.name, sets[1].name, repair) for repair in (NONE, REPAIRED)]
    names = [one.name for one in sets]
    figures = {
        "timestamps": lambda: _by_time(rows, names[0]),
        "epsilons": lambda: _by_epsilon(rows, names[0]),
        "datasets": lambda: _by_data(rows, names),
    }
    source = "; ".join(one.source for one in sets) + "."
    notes = [_note(setup, gps), _table(series)]
    return Result("authors", TITLE, source, rows, claims, figures, notes, credit=credit)


def _load(setup: Setup) -> tuple[list[Raw], str]:
    """The data sets: GPS fixes one by one, and check-ins if there are any."""
    folder = setup.folder
    if folder is None or folder.is_file():
        found = load_movements(folder, quick=setup.quick, seed=setup.seed)
        return [_of(one) for one in found if one is not None], ""
    sets = [_raw_beijing(folder, setup.seed)]
    if not has_checkins(folder):
        return sets, ""
    checkins = los_angeles(folder)  # raw as they are
    return [*sets, _of(checkins)], checkins.credit


def _of(movement: Movement) -> Raw:
    return Raw(movement.name, movement.source, movement.truth, movement.everyone.model)


def _raw_beijing(folder: Path, seed: int) -> Raw:
    """Geolife, a step a fix, whatever the time between two."""
    (path, fixes), grid = read_beijing(folder), beijing()
    fixes = fixes.clean(grid)
    cells = grid.locate(fixes.lat, fixes.lon)
    codes, first, counts = np.unique(fixes.user.codes, return_index=True, return_counts=True)
    traces, rng = np.split(cells, first[1:]), np.random.default_rng(seed)
    able = np.flatnonzero(counts > STEPS)
    test = rng.choice(able, min(USERS, len(able)), replace=False)
    begin = [int(rng.integers(0, counts[u] - STEPS)) for u in test]
    truth = np.stack([traces[u][b : b + STEPS] for u, b in zip(test, begin, strict=True)])
    source = (
        f"Geolife in Beijing ({path.name}), a step is a fix: {len(fixes):,} fixes of {len(codes)} "
        f"users, {len(test)} of them drawn at random with {STEPS} fixes in a row"
    )
    return Raw("Geolife", source, truth.astype(np.int32), pf.MobilityModel.fit(grid, traces))


def _release(
    raw: Raw, policy: str, mechanism: str, repair: str, epsilon: float, setup: Setup
) -> Errors:
    grid = raw.model.locations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is unsafe is what is shown here
        releaser = pf.TraceReleaser(
            pf.blocks(grid, SIDES[policy]), raw.model, epsilon=epsilon, repair=repair,
            mechanism={"P-PIM": "ppim", "P-LM": "plm"}[mechanism],
            rng=setup.seed_of("authors", raw.name, policy, mechanism, repair, epsilon),
        )  # fmt: skip
    error, isolated, hits, n = np.full(raw.truth.shape, np.nan), 0.0, 0, 0
    for some, truth, found in repeated(releaser, raw.truth, setup.repetitions, priors="move"):
        there = truth >= 0
        put_means(error, some, truth, distances(grid, truth, found.released))
        isolated += float((found.isolated[there] / np.maximum(found.domain_size[there], 1)).sum())
        hits, n = hits + int((found.released == truth)[there].sum()), n + int(there.sum())
    return Errors(raw.name, policy, mechanism, repair, epsilon, error, isolated / n, hits / n)


def _rows(s: Errors) -> list[Row]:
    """By timestamp at epsilon 1; the mean over timestamps by epsilon."""
    series = s.data, s.policy, s.mechanism, s.repair
    rows = [mean_row(s.by_user, series, "mean_e_eu", "epsilon", s.epsilon)]
    return rows + (band_rows(s.error, series, "e_eu") if s.epsilon == 1 else [])


def _pick(
    series: list[Errors], data: str, policy: str, mechanism: str, repair: str, epsilon: float = 1.0
) -> Errors:
    wanted = data, policy, mechanism, repair, epsilon
    return next(s for s in series if (s.data, s.policy, s.mechanism, s.repair, s.epsilon) == wanted)


_HOLD = "intervals over users hold together at 95 %."


def _better(series: list[Errors], data: str) -> Claim:
    differences = []
    for policy in SIDES:
        plm, ppim = (_pick(series, data, policy, m, NONE) for m in ("P-LM", "P-PIM"))
        differences.append(paired(policy, ppim.by_user - plm.by_user, len(SIDES)))
    return judge(
        f"P-PIM errs less than P-LM over traces ({data}, raw fixes, no repair)",
        "mean over users of (E_eu of P-PIM less that of P-LM, over all timestamps) is at most 0 "
        f"for each policy; {_HOLD}",
        differences,
    )


def _grows(series: list[Errors], data: str) -> Claim:
    differences = []
    for policy in SIDES:
        s = _pick(series, data, policy, "P-PIM", NONE)
        steps = s.error.shape[1] - 1
        differences.append(paired(policy, -slopes(s.error) * steps, len(SIDES)))
    return judge(
        f"The error grows along the timestamps ({data}, raw fixes, known start, no repair)",
        "mean over users of the fall of E_eu from the first timestamp to the last, along the "
        f"least-squares line, is at most 0 for each policy; {_HOLD}",
        differences,
        why="A release tells the component, so that domains stop growing after a few fixes.",
    )


def _least(series: list[Errors], data: str) -> Claim:
    differences = []
    for epsilon in EPSILONS:
        best = _pick(series, data, "G_k9", "P-PIM", NONE, epsilon)
        for policy in list(SIDES)[1:]:
            other = _pick(series, data, policy, "P-PIM", NONE, epsilon)
            gap = best.by_user - other.by_user
            differences.append(paired(f"against {policy}, eps {epsilon:g}", gap, 2 * len(EPSILONS)))
    return judge(
        f"G_k9 has the least mean error at every epsilon ({data}, raw fixes, no repair)",
        f"mean over users of (E_eu of G_k9 less that of G_k16 and of G_k25) is at most 0; {_HOLD}",
        differences,
    )


def _between(series: list[Errors], gps: str, checkins: str, repair: str) -> Claim:
    differences, told = [], []
    for policy in SIDES:
        a, b = (_pick(series, name, policy, "P-PIM", repair) for name in (checkins, gps))
        differences.append(unpaired(policy, a.by_user, b.by_user, len(SIDES)))
        told.append(f"{policy} {a.isolated:.0%} and {b.isolated:.0%}")
    return judge(
        f"{checkins} errs less than {gps} ({_SAID[repair]})",
        f"mean E_eu over users of {checkins} less that of {gps} is at most 0 for each policy; "
        f"{_HOLD}",
        differences,
        why=f"Isolated share of a domain, {checkins} and {gps}: {', '.join(told)}.",
    )


def _note(setup: Setup, gps: Raw) -> str:
    users, steps = gps.truth.shape
    return (
        f"{users} users, {steps} timestamps, {setup.repetitions} repetitions; the model is learned "
        "from everyone, the adversary knows where users were one step before the first. Component "
        "calibration. With repair='none' a location that is alone in its component is released as "
        "it is: errors look small because nothing is hidden. Never do that to people."
    )


def _table(series: list[Errors]) -> str:
    lines = [
        "Means over users and timestamps at epsilon 1:", "",
        "| data | repair | policy | mechanism | E_eu (km) | isolated share of C_t | true cell "
        "released |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {s.data} | {s.repair} | {s.policy} | {s.mechanism} | {s.by_user.mean():.3f} | "
        f"{s.isolated:.0%} | {s.hits:.0%} |"
        for s in series if s.epsilon == 1
    ]  # fmt: skip
    return "\n".join(lines)


def _by_time(rows: list[Row], data: str) -> object:
    panels = []
    for policy in SIDES:
        shown = {"data": data, "policy": policy, "setting": NONE, "metric": "e_eu"}
        lines = lines_of(rows, "mechanism", ("P-LM", "P-PIM"), **shown)
        title = f"{data}, {policy}"
        panels.append(Panel(title, lines, "timestamp", "E_eu (km)", markers=False))
    return draw(panels, same_y=True)


def _by_epsilon(rows: list[Row], data: str) -> object:
    shown = {"data": data, "mechanism": "P-PIM", "setting": NONE, "metric": "mean_e_eu"}
    lines = lines_of(rows, "policy", SIDES, **shown)
    return draw([Panel(f"{data}, P-PIM", lines, "epsilon", "mean E_eu (km)")], columns=1)


def _by_data(rows: list[Row], names: list[str]) -> object:
    panels = []
    for repair in (NONE, REPAIRED):
        for data in names:
            shown = {"data": data, "mechanism": "P-PIM", "setting": repair, "metric": "e_eu"}
            lines = lines_of(rows, "policy", SIDES, **shown)
            title = f"{data}, {_SAID[repair]}"
            panels.append(Panel(title, lines, "timestamp", "E_eu (km)", markers=False))
    return draw(panels, columns=2)
