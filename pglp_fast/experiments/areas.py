"""Repair as the authors ran it: restaurant cells joined within 700 m, in areas of growing size."""

import numpy as np

import pglp_fast as pf

from .data import Town, load_town
from .figures import Panel, draw, lines_of
from .repair import CALIBRATIONS, EPSILON, STRATEGIES, Measures, isolated_share
from .result import Result
from .rows import Names, Row
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
    found, told = Measures(graph), []
    for side in sides:
        setup.say(f"areas: {side} x {side} cells")
        domains = draw_areas(town, side, setup)
        told.append(
            f"{np.mean([len(d) for d in domains]):.0f} cells ({isolated_share(graph, domains):.0%} "
            f"isolated) in {_km2(town, side):.3g} km^2"
        )
        found.add(KIND, side, domains, setup, ("areas", side))

    def series(_: str, calibration: str, strategy: str, side: int) -> tuple[Names, str, float]:
        return (town.name, POLICY, strategy, calibration), "km2", _km2(town, side)

    rows, times = found.rows(series)
    notes, figures = [_note(setup, told)], {"areas": lambda: _figure(rows, times)}
    return Result(
        "areas", TITLE, town.source, rows, found.claims(), figures, notes, times, town.credit
    )


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
            lines = lines_of(source, "mechanism", STRATEGIES, setting=calibration)
            timed = source is times
            panels.append(Panel(calibration, lines, "area (km^2)", what, logx=True, logy=timed))
    return draw(panels, columns=4)
