"""Repair as the authors ran it: restaurant cells joined within 700 m, in areas of growing size."""

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast._util.stats import mean_interval

from .claims import LEVEL
from .data import Town, load_town
from .figures import Line, Panel, draw
from .repair import (
    CALIBRATIONS,
    EPSILON,
    STRATEGIES,
    Errors,
    Spell,
    better,
    error_after,
    grows,
    isolated_share,
    measure_times,
    slower,
    takes_longer,
)
from .result import Result
from .rows import Row, select
from .setup import Setup

TITLE = "Repair as the authors ran it: restaurants of an area, joined within 700 m"
REACH_KM = 0.7
SIDES = (5, 6, 10, 17, 25)  # cells a side: 1.8 to 45.6 km^2 of 0.27 km cells
POLICY, KIND = "restaurants within 700 m", "area"


def run(setup: Setup) -> Result:
    """Errors after repair and running times, by size of the area."""
    town = load_town(setup.folder, quick=setup.quick, seed=setup.seed)
    graph = restaurant_policy(town)
    sides = (5, 10) if setup.quick else SIDES
    errors: Errors = {}
    spells: list[Spell] = []
    told = []
    for side in sides:
        setup.say(f"areas: {side} x {side} cells")
        domains = draw_areas(town, side, setup)
        told.append(
            f"{np.mean([len(d) for d in domains]):.0f} cells ({isolated_share(graph, domains):.0%} "
            f"isolated) in {_km2(town, side):.3g} km^2"
        )
        for (calibration, strategy), ms in measure_times(graph, domains).items():
            spells.append(Spell(KIND, calibration, strategy, side, ms))
        for calibration in CALIBRATIONS:
            for strategy in STRATEGIES:
                # the strategies share their noise: what is compared is paired
                errors[KIND, calibration, strategy, side] = np.array(
                    [
                        error_after(
                            graph, d, strategy, calibration, setup.seed_of("areas", side, i)
                        )
                        for i, d in enumerate(domains)
                    ]
                )
    rows = [_row(town, c, s, side, "e_eu", v) for (_, c, s, side), v in errors.items()]
    times = [_row(town, p.calibration, p.strategy, p.size, "milliseconds", p.ms) for p in spells]
    claims = [better(errors, calibration) for calibration in CALIBRATIONS]
    claims += [slower(spells, calibration) for calibration in CALIBRATIONS]
    claims += [grows(errors, KIND, calibration) for calibration in CALIBRATIONS]
    claims += [takes_longer(spells)]
    figures = {"areas": lambda: _figure(rows, times)}
    notes = [_note(setup, told)]
    return Result("areas", TITLE, town.source, rows, claims, figures, notes, times, town.credit)


def restaurant_policy(town: Town) -> pf.PolicyGraph:
    """Cells with a restaurant, each joined with those whose middle is within 700 m."""
    from scipy.spatial import cKDTree

    cells = np.flatnonzero(town.restaurants >= 0)
    near = cKDTree(town.grid.xy(cells)).query_pairs(REACH_KM, output_type="ndarray")
    return pf.PolicyGraph.from_edges(town.grid, cells[near].reshape(-1, 2))


def draw_areas(town: Town, side: int, setup: Setup) -> list[pf.Domain]:
    """The restaurant cells of a square area, one for each repetition, of those areas that have two
    or more."""
    grid, rng = town.grid, np.random.default_rng(setup.seed_of("areas", side))
    side = min(side, grid.rows, grid.cols)
    there = (town.restaurants >= 0).reshape(grid.rows, grid.cols)
    total = np.pad(there.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    count = (
        total[side:, side:] - total[:-side, side:] - total[side:, :-side] + total[:-side, :-side]
    )
    corners = np.argwhere(count >= 2)
    chosen = corners[rng.integers(0, len(corners), setup.repetitions)]
    domains = []
    for row, col in chosen.tolist():
        mask = np.zeros_like(there)
        mask[row : row + side, col : col + side] = there[row : row + side, col : col + side]
        domains.append(pf.Domain.from_mask(grid, mask))
    return domains


def _km2(town: Town, side: int) -> float:
    dx, dy = town.grid.scale
    return round(side * side * dx * dy, 1)


def _row(
    town: Town, calibration: str, strategy: str, side: int, metric: str, values: NDArray[np.float64]
) -> Row:
    interval = mean_interval(values, LEVEL)
    where = town.name, POLICY, strategy, calibration, metric, "km2", _km2(town, side)
    return Row(*where, float(values.mean()), *interval, len(values))


def _note(setup: Setup, told: list[str]) -> str:
    return (
        f"P-PIM, epsilon {EPSILON:g}. The policy joins cells with a restaurant within 700 m of "
        "each other; the domain is the cells with a restaurant in a square area that has two or "
        f"more, placed at random: {setup.repetitions} areas of each size are the independent "
        f"units. On average {'; '.join(told)}. Running times are of this run, on one thread; they "
        "are in times.csv."
    )


def _figure(rows: list[Row], times: list[Row]) -> object:
    panels = []
    for source, what in ((rows, "E_eu (km)"), (times, "ms an area")):
        for calibration in CALIBRATIONS:
            lines = [
                Line(s, select(source, mechanism=s, setting=calibration), i)
                for i, s in enumerate(STRATEGIES)
            ]
            timed = source is times
            panels.append(Panel(calibration, lines, "area (km^2)", what, logx=True, logy=timed))
    return draw(panels, columns=4)
