"""A table of the user's own as data of the experiments."""

from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast import io as readers

from .data import STEPS, USERS, Movement, Town, draw_tested


def own_town(path: Path) -> Town:
    """The places of a table: visited cells, those of the commonest category if it has any."""
    fixes = readers.read_table(path, on_error="skip")
    grid = box_of(fixes, 0.27)
    cells = grid.locate(fixes.lat, fixes.lon)
    everywhere = np.bincount(cells[cells >= 0], minlength=grid.size).astype(np.int64)
    visits, what = everywhere, "visited cells"
    if "category" in fixes.columns:
        codes = fixes.columns["category"].codes
        named = np.bincount(codes[(codes >= 0) & (cells >= 0)])
        chosen = (codes == named.argmax()) & (cells >= 0)
        visits = np.bincount(cells[chosen], minlength=grid.size).astype(np.int64)
        what = f"cells of category {fixes.columns['category'].labels[named.argmax()]}"
    restaurants = np.where(visits > 0, 0, -1).astype(np.int32)
    source = (
        f"{path.name}: {grid.rows} x {grid.cols} cells of 0.27 km, {len(fixes):,} fixes; for "
        f"restaurants stand {int((visits > 0).sum()):,} {what}."
    )
    return Town(path.name, source, grid, restaurants, visits, everywhere, users=everywhere)


def box_of(fixes: readers.Tracks, cell_km: float) -> pf.Grid:
    """A map around what lies between the 1st and the 99th percentile of a table's places."""
    lat, lon = fixes.lat[np.isfinite(fixes.lat)], fixes.lon[np.isfinite(fixes.lon)]
    if not lat.size:
        raise pf.InvalidTable("the table has no place: is it the right one?")
    (south, north), (west, east) = (np.percentile(v, (1, 99)) for v in (lat, lon))
    box = {"lat": (south - 0.003, north + 0.003), "lon": (west - 0.003, east + 0.003)}
    if (north - south) * (east - west) > 4:
        raise pf.TooLarge("the table covers more than a few cities: give one with the rows of one")
    return pf.Grid.from_bounds(**box, cell_km=cell_km)


def own_movement(path: Path, seed: int) -> Movement:
    """Traces of a table at steps of 5 minutes, as long as two persons at least have them."""
    fixes = readers.read_table(path, on_error="skip")
    grid = box_of(fixes, 0.34)
    traces = fixes.clean(grid).resample(grid, "5min", max_gap="1h", carry="1h")
    for steps in (STEPS, 50, 20, 10):
        pieces = traces.cut(steps, observed=1.0)
        users = np.unique(pieces.user.codes)
        if len(users) > 2:
            break
    else:
        raise pf.InvalidTable(
            f"{path.name} has no three persons with 10 steps of 5 minutes in a row, which traces "
            "need: give a table with more of them"
        )
    found = draw_tested(grid, traces, pieces, min(USERS, len(users) // 2), seed)
    source = (
        f"{path.name}: {grid.rows} x {grid.cols} cells of 0.34 km, steps of 5 minutes, "
        f"{len(fixes):,} fixes; tested are {len(found[0])} of {len(users)} users with {steps} "
        "steps in a row"
    )
    return Movement(path.name, source, grid, *found)
