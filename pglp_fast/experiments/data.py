"""The data of the experiments: real where there is any, a made-up city otherwise.

Each says which it is.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast import io as readers
from pglp_fast.space.synthetic import CATEGORIES, City, synthetic_city

VARIABLE = "PGLP_FAST_DATA"
BESIDE = Path("..", "shared", "data")
SYNTHETIC = "synthetic"
FOOD = 3  # category_id of restaurants in the People Flow places
USERS, STEPS = 20, 100  # of the paper's traces

_PLACES = ("raw/peopleflow/POI_TK.csv", "POI_TK.csv")
_PEOPLE = ("peopleflow_tokyo_cells.csv.gz",)
_GEOLIFE = ("geolife_beijing.parquet", "Geolife Trajectories 1.3/Data", "Data")
_GOWALLA = (
    "gowalla_la.csv.gz",
    "loc-gowalla_totalCheckins.txt.gz",
    "loc-gowalla_totalCheckins.txt",
)
_PEOPLE_FLOW_CREDIT = (
    "People Flow data, CC BY 4.0: Nightley, Inc.; Shibasaki & Sekimoto Laboratory, the University "
    "of Tokyo; Micro Geo Data Forum; People Flow project; Center for Spatial Information Science "
    "at the University of Tokyo."
)
_TRACE_CREDIT = (
    "Geolife GPS trajectories 1.3, Microsoft Research (non-commercial research licence); Gowalla "
    "check-ins, Stanford Network Analysis Project (research use)."
)


def find_folder(data: str | os.PathLike[str] | None) -> Path | None:
    """Where the data is: what is given (a folder, or a table of your own), what the environment
    variable says, ../shared/data; None for the made-up city."""
    if data is not None and os.fspath(data) == SYNTHETIC:
        return None
    told = data if data is not None else os.environ.get(VARIABLE) or None
    if told is None:
        return BESIDE if BESIDE.is_dir() else None
    folder = Path(told)
    if not folder.exists():
        where = (
            f"the environment variable {VARIABLE} says"
            if data is None
            else "the data was said to be in"
        )
        raise pf.InvalidParameter(
            f"{where} {folder}, which is not there: give a folder, a table of your own, or "
            f"{SYNTHETIC!r} for the made-up city"
        )
    return folder


def _file(folder: Path, names: Iterable[str], what: str) -> Path:
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise pf.InvalidTable(
        f"{folder} has no {what}: put {' or '.join(names)} there, or run on data={SYNTHETIC!r}"
    )


# -- one release


@dataclass(frozen=True)
class Town:
    """A map with restaurants and how often each cell is visited.

    Attributes
    ----------
    restaurants : 0 for a cell with a restaurant, -1 for one without: the labels of G_poi and of
        E_poi
    visits : visits to restaurants in each cell
    everywhere : visits to places of any kind
    users : how often users were in each cell, at places or not; None where nobody knows
    """

    name: str
    source: str
    grid: pf.Grid
    restaurants: NDArray[np.int32]
    visits: NDArray[np.int64]
    everywhere: NDArray[np.int64]
    credit: str = ""
    users: NDArray[np.int64] | None = None


def load_town(folder: Path | None, *, quick: bool = False, seed: int = 0) -> Town:
    """Tokyo, a table of the user's own, or the made-up city."""
    if folder is None:
        return _city_town(quick, seed)
    if folder.is_file():
        from .own import own_town  # it stands on this module

        return own_town(folder)
    return _tokyo(folder)


def _tokyo(folder: Path) -> Town:
    path = _file(folder, _PLACES, "People Flow places")
    grid = pf.Grid.from_bounds(lat=(35.679, 35.80), lon=(139.60, 139.75), cell_km=0.27)
    places = readers.read_peopleflow_pois(path, on_error="skip")
    cell = grid.locate(places.lat, places.lon)
    on_map, food = cell >= 0, (cell >= 0) & (places.category_id == FOOD)
    visits, everywhere = (
        np.bincount(cell[some], weights=places.visits[some], minlength=grid.size).astype(np.int64)
        for some in (food, on_map)
    )
    restaurants = np.full(grid.size, -1, np.int32)
    restaurants[cell[food]] = 0
    source = (
        f"People Flow places in Tokyo ({path.name}): {grid.rows} x {grid.cols} cells of 0.27 km; "
        f"{int(food.sum()):,} restaurants (category 3, food) in {int((restaurants >= 0).sum())} "
        f"cells, {int(visits.sum()):,} visits to them. The places cover only the south-east of the "
        f"map. {int((places.category_id < 0).sum()):,} of {len(places):,} places have no category "
        "number and count as places visited, not as restaurants."
    )
    users, credit = _users(folder, grid), _PEOPLE_FLOW_CREDIT
    return Town("Tokyo", source, grid, restaurants, visits, everywhere, credit, users)


def _users(folder: Path, grid: pf.Grid) -> NDArray[np.int64] | None:
    """How often the users of People Flow were in each cell; None without their file."""
    path = next((folder / name for name in _PEOPLE if (folder / name).exists()), None)
    if path is None:
        return None
    columns = {"time": "time_utc", "lat": "lat_cell_center", "lon": "lon_cell_center"}
    fixes = readers.read_table(path, columns=columns, on_error="skip")
    cells = grid.locate(fixes.lat, fixes.lon)
    return np.bincount(cells[cells >= 0], minlength=grid.size).astype(np.int64)


def _city_town(quick: bool, seed: int) -> Town:
    city = _city(quick, seed)
    everyone = np.bincount(city.people(3_000 if quick else 20_000, seed), minlength=city.grid.size)
    eating = city.categories == CATEGORIES.index("food")
    visits = np.where(eating, everyone, 0)
    restaurants = np.where(eating, 0, -1).astype(np.int32)
    source = (
        f"a made-up city (no data was found): {city.grid.rows} x {city.grid.cols} cells of 0.27 "
        f"km, restaurants in {int(eating.sum())} cells, {int(visits.sum()):,} visits to them."
    )
    return Town("synthetic", source, city.grid, restaurants, visits, everyone, users=everyone)


def _city(quick: bool, seed: int) -> City:
    side = 18 if quick else 60
    return synthetic_city(side, side, seed=seed)


# -- traces


@dataclass(frozen=True)
class Knowledge:
    """What the adversary knows before the first release: how people move, and where they are."""

    model: pf.MobilityModel
    prior: NDArray[np.float64]


@dataclass(frozen=True)
class Movement:
    """Traces to release, and what is known about how people move.

    Attributes
    ----------
    truth : (users, T) cells, -1 for missing
    others : learned from all users but those of ``truth``: public knowledge
    everyone : learned from all users, those of ``truth`` among them, as in the paper: not public
        knowledge
    """

    name: str
    source: str
    grid: pf.Grid
    truth: NDArray[np.int32]
    others: Knowledge
    everyone: Knowledge
    credit: str = ""


def load_movements(
    folder: Path | None, *, quick: bool = False, seed: int = 0
) -> tuple[Movement, Movement | None]:
    """(GPS traces, check-ins if there are any)."""
    if folder is None:
        return _city_movements(quick, seed)
    if folder.is_file():
        from .own import own_movement  # it stands on this module

        return own_movement(folder, seed), None
    return _beijing(folder, seed), los_angeles(folder) if has_checkins(folder) else None


def has_checkins(folder: Path) -> bool:
    """Whether the Gowalla check-ins are there."""
    return any((folder / name).exists() for name in _GOWALLA)


@lru_cache(maxsize=1)
def read_beijing(folder: Path) -> tuple[Path, readers.Tracks]:
    """(file, fixes) of Geolife, read once in a process."""
    path = _file(folder, _GEOLIFE, "Geolife data")
    return path, (readers.read_geolife if path.is_dir() else readers.read_table)(path)


def beijing() -> pf.Grid:
    """The Fourth Ring."""
    return pf.Grid.from_bounds(
        lat=(39.831741, 39.988695), lon=(116.273804, 116.467438), cell_km=0.34
    )


def knowledge_of(grid: pf.Grid, traces: list[NDArray[np.int32]]) -> Knowledge:
    """Counts of moves, none invented; the prior is where people were."""
    if not traces:
        raise pf.InvalidTable(
            f"the data has no users but the {USERS} that are tested: nothing is left to learn how "
            "people move from"
        )
    seen = np.concatenate(traces)
    count = np.bincount(seen[seen >= 0], minlength=grid.size)
    return Knowledge(pf.MobilityModel.fit(grid, traces), count / count.sum())


def _beijing(folder: Path, seed: int) -> Movement:
    (path, fixes), grid = read_beijing(folder), beijing()
    traces = fixes.clean(grid, max_speed_kmh=200).resample(
        grid, "1min", max_gap="10min", carry="10min"
    )
    pieces = traces.cut(STEPS, observed=1.0)
    users = np.unique(pieces.user.codes)
    truth, others, everyone = draw_tested(grid, traces, pieces, min(USERS, len(users)), seed)
    source = (
        f"Geolife in Beijing ({path.name}): {grid.rows} x {grid.cols} cells of 0.34 km, a step is "
        f"a minute (the last fix of it, carried on for at most 10 minutes), {len(fixes):,} fixes "
        f"of {len(np.unique(fixes.user.codes))} users; tested are {len(truth)} users drawn at "
        f"random of the {len(users)} who have {STEPS} steps in a row, with one such piece each"
    )
    return Movement("Geolife", source, grid, truth, others, everyone, _TRACE_CREDIT)


def draw_tested(
    grid: pf.Grid, traces: readers.Traces, pieces: readers.Traces, n: int, seed: int
) -> tuple[NDArray[np.int32], Knowledge, Knowledge]:
    """(a piece of each of n users at random, what is learned from the others, and from all)."""
    rng = np.random.default_rng(seed)
    test = np.sort(rng.choice(np.unique(pieces.user.codes), n, replace=False))
    rows = np.array([rng.choice(np.flatnonzero(pieces.user.codes == user)) for user in test])
    others = knowledge_of(grid, list(traces[~np.isin(traces.user.codes, test)]))
    return pieces[rows].to_array(), others, knowledge_of(grid, list(traces))


def los_angeles(folder: Path) -> Movement:
    path = _file(folder, _GOWALLA, "Gowalla check-ins")
    grid = pf.Grid.from_bounds(lat=(34.02, 34.18), lon=(-118.4, -118.2), cell_km=0.37)
    raw = readers.read_gowalla(path) if "totalCheckins" in path.name else readers.read_table(path)
    checkins = raw.clean(grid)  # sorted by user and time
    cells = grid.locate(checkins.lat, checkins.lon)
    codes, first, counts = np.unique(checkins.user.codes, return_index=True, return_counts=True)
    everyone = np.split(cells, first[1:])
    test = np.argsort(-counts, kind="stable")[:USERS]
    truth = np.full((len(test), STEPS), -1, np.int32)
    for row, user in enumerate(test):
        trace = everyone[user][:STEPS]
        truth[row, : len(trace)] = trace
    others = [trace for user, trace in enumerate(everyone) if user not in set(test.tolist())]
    source = (
        f"Gowalla in Los Angeles ({path.name}): {grid.rows} x {grid.cols} cells of 0.37 km, a step "
        f"is a check-in, {len(checkins):,} check-ins of {len(codes)} users; tested are the first "
        f"{STEPS} check-ins of the {len(test)} users who have most, but only "
        f"{int((counts >= STEPS).sum())} have as many (the last of the {len(test)} has "
        f"{counts[test[-1]]})"
    )
    return Movement(
        "Gowalla",
        source,
        grid,
        truth,
        knowledge_of(grid, others),
        knowledge_of(grid, everyone),
        _TRACE_CREDIT,
    )


def _city_movements(quick: bool, seed: int) -> tuple[Movement, Movement]:
    city = _city(quick, seed)
    users, steps, crowd = (4, 8, 40) if quick else (USERS, STEPS, 300)

    def made(name: str, kind: str, cells: NDArray[np.int32]) -> Movement:
        known, everyone = list(cells[users:]), list(cells)
        source = (
            f"a made-up city (no data was found): {kind} of {len(cells)} people, {users} of them "
            f"tested over {steps} steps"
        )
        truth = np.ascontiguousarray(cells[:users, :steps])
        return Movement(
            name,
            source,
            city.grid,
            truth,
            knowledge_of(city.grid, known),
            knowledge_of(city.grid, everyone),
        )

    walks, visits = city.walks(crowd, 3 * steps, seed), city.visits(crowd, 3 * steps, seed)
    return made("walks", "walks", walks), made(
        "check-ins", "check-ins at a dozen places each", visits
    )
