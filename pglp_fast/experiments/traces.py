"""Traces released step by step against an adversary who knows how people move: by mechanism, by
policy, on two data sets."""

from dataclasses import replace

import numpy as np

from pglp_fast._util.stats import signed_mean_interval

from .claims import LEVEL
from .data import load_movements
from .figures import Line, Panel, draw, lines_of
from .result import Result
from .rows import Row, band_rows
from .setup import Setup
from .trace_claims import checkins_lower, grows, ppim_better, smaller_domain, smallest_best
from .trace_series import (
    EPSILON,
    EVERYONE,
    LETTER,
    METRICS,
    OPTIONS,
    OTHERS,
    SIDES,
    Series,
    release,
)

TITLE = "Traces: releases over time"


def run(setup: Setup) -> Result:
    """Errors of the releases and of the adversary at each timestamp."""
    gps, checkins = load_movements(setup.folder, quick=setup.quick, seed=setup.seed)
    wanted = [(gps, OTHERS, policy, name) for policy in SIDES for name in ("P-LM", "P-PIM")]
    wanted += [(gps, OTHERS, "G_k9", name) for name in ("P-PIM remapped", "Optimal")]
    wanted += [(gps, LETTER, "G_k9", "P-PIM")]
    wanted += [(gps, EVERYONE, policy, "P-PIM") for policy in SIDES]
    if checkins is not None:
        both = (EVERYONE, OTHERS)
        wanted += [(checkins, s, policy, "P-PIM") for s in both for policy in SIDES]
    series = []
    for movement, setting, policy, name in wanted:
        setup.say(f"traces: {movement.name}, {policy}, {name}, {setting}")
        series.append(release(movement, setting, policy, name, setup))
    rows = [row for one in series for row in _rows(one)]
    names = [gps.name] if checkins is None else [gps.name, checkins.name]
    claims = [ppim_better(series, names[0])]
    claims += [grows(series, names[0], setting) for setting in (OTHERS, EVERYONE, LETTER)]
    claims += [grows(series, name, EVERYONE) for name in names[1:]]
    claims += [smallest_best(series, names[0], OTHERS)]
    claims += [smallest_best(series, name, EVERYONE) for name in names[1:]]
    if checkins is not None:
        claims += [checkins_lower(series, *names), smaller_domain(series, *names)]
    figures = {
        "mechanisms": lambda: _by_mechanism(rows, names[0]),
        "policies": lambda: _by_policy(rows, names),
        "letter": lambda: _letter(rows, names[0]),
    }
    source = f"{gps.source}; {checkins.source}." if checkins is not None else f"{gps.source}."
    return Result(
        "traces",
        TITLE,
        source,
        rows,
        claims,
        figures,
        [_note(setup, series), _table(series)],
        credit=gps.credit,
    )


def _rows(s: Series) -> list[Row]:
    given = ((getattr(s, kind), metric) for kind, metric in METRICS.items())
    series = s.data, s.policy, s.mechanism, s.setting
    return [row for v, metric in given if v is not None for row in band_rows(v, series, metric)]


def _note(setup: Setup, series: list[Series]) -> str:
    users, steps = series[0].error.shape
    lost = {
        (s.data, s.setting): f"{np.nanmean(s.surrogate):.1%} ({s.data}, {s.setting})"
        for s in series
        if s.policy == "G_k9" and s.mechanism == "P-PIM" and s.setting != LETTER
    }
    return (
        f"Epsilon {EPSILON:g} for each release, {users} users, {steps} timestamps, "
        f"{setup.repetitions} repetitions. Users are the independent units: bands and intervals "
        "say how far other users could be from these. Unless said otherwise the model is "
        f"{OTHERS}: all users but those tested; what is {EVERYONE} (as in the paper) holds the "
        "tested traces and is not public knowledge. No move is made possible that nobody made; a "
        "true location that the model calls impossible is replaced by the nearest possible one, "
        f"which happened in {', '.join(lost.values())} of the releases under G_k9. The prior is "
        "where the users of the model are. The adversary's error is the distance from the truth of "
        "its best guess once all releases are known."
    )


def _table(series: list[Series]) -> str:
    lines = [
        "Means over users and timestamps:",
        "",
        "| data | model | policy | mechanism | E_eu (km) | 95 % | adversary (km) | domain |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in series:
        low, high = signed_mean_interval(s.by_user, LEVEL)
        guess = "-" if s.adversary is None else f"{np.nanmean(np.nanmean(s.adversary, axis=1)):.3f}"
        lines.append(
            f"| {s.data} | {s.setting} | {s.policy} | {s.mechanism} | {s.by_user.mean():.3f} | "
            f"{max(low, 0):.3f} .. {high:.3f} | {guess} | "
            f"{np.nanmean(np.nanmean(s.domain, axis=1)):.0f} |"
        )
    return "\n".join(lines)


_LABELS = {
    "e_eu": "E_eu (km)",
    "adversary": "adversary's error (km)",
    "domain_size": "locations in C_t",
}


def _panel(title: str, lines: list[Line], metric: str) -> Panel:
    return Panel(title, lines, "timestamp", _LABELS[metric], markers=False)


def _by_mechanism(rows: list[Row], data: str) -> object:
    panels = []
    for metric in ("e_eu", "adversary"):
        for policy in SIDES:
            names = OPTIONS if policy == "G_k9" else ("P-LM", "P-PIM")
            shown = {"data": data, "setting": OTHERS, "policy": policy, "metric": metric}
            lines = lines_of(rows, "mechanism", names, **shown)
            panels.append(_panel(f"{data}, {policy}", lines, metric))
    return draw(panels, same_y=True)


def _by_policy(rows: list[Row], names: list[str]) -> object:
    panels = []
    shown = [(names[0], OTHERS), (names[0], EVERYONE)]
    shown += [(name, setting) for name in names[1:] for setting in (EVERYONE, OTHERS)]
    for metric in ("e_eu", "adversary"):
        for data, setting in shown:
            wanted = {"data": data, "setting": setting, "mechanism": "P-PIM", "metric": metric}
            lines = lines_of(rows, "policy", SIDES, **wanted)
            panels.append(_panel(f"{data}, {setting}", lines, metric))
    return draw(panels, columns=len(shown))


def _letter(rows: list[Row], data: str) -> object:
    panels = []
    for metric in ("e_eu", "domain_size"):
        wanted = {"data": data, "policy": "G_k9", "mechanism": "P-PIM", "metric": metric}
        lines = lines_of(rows, "setting", (OTHERS, LETTER), **wanted)
        lines[0] = replace(lines[0], label="component calibration")
        panels.append(_panel(f"{data}, G_k9, P-PIM", lines, metric))
    return draw(panels, columns=2)
