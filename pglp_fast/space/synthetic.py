"""Made-up cities, so that everything can be tried without data, at any size."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import times, validate as check
from pglp_fast.errors import InvalidParameter

from .city_days import Routine, follow_routines
from .city_moves import daily_moves
from .grid import Grid

if TYPE_CHECKING:
    import sparse

CATEGORIES = ("home", "food", "shop", "work", "school")
_ORIGIN = (35.68, 139.60)
# where people live: (x, y, spread) as shares of the map, and how many
_CENTRES = (
    (0.50, 0.52, 0.10, 5.0),
    (0.25, 0.30, 0.07, 2.0),
    (0.72, 0.70, 0.08, 2.5),
    (0.75, 0.25, 0.06, 1.5),
    (0.28, 0.75, 0.09, 1.5),
)
# of a district: what its cells are, by kind of district, in the order of CATEGORIES
_KINDS = (
    (0.70, 0.10, 0.10, 0.05, 0.05),  # people live there
    (0.10, 0.20, 0.15, 0.50, 0.05),  # people work there
    (0.30, 0.25, 0.30, 0.10, 0.05),  # people go out there
)
_KIND_SHARES = (0.6, 0.2, 0.2)
_BLOCK = 4096  # persons whose routines are drawn together


@dataclass(frozen=True)
class City:
    """A city on a grid. ``City.of_size`` makes one of any size.

    Attributes
    ----------
    grid : Grid
    density : float array
        How likely people are in each cell.
    categories : int array
        What each cell is, an index of ``CATEGORIES``; -1 for nothing.
    districts : int array
        The district of each cell.
    """

    grid: Grid
    density: NDArray[np.float64]
    categories: NDArray[np.int32]
    districts: NDArray[np.int32]

    @classmethod
    def of_size(
        cls,
        rows: int,
        cols: int,
        *,
        cell_km: float | tuple[float, float] = 0.27,
        seed: int = 0,
        district: int = 16,
        origin: tuple[float, float] = _ORIGIN,
    ) -> "City":
        """A city of any size, the same for the same seed.

        Parameters
        ----------
        rows, cols, cell_km, origin
            Of its grid.
        seed : int
        district : int
            About how many cells wide a district is. Each has a centre where most people are, and is
            a place to live, to work or to go out. A river that nobody lives in crosses the city.
        """
        grid = Grid(rows, cols, cell_km=cell_km, origin=origin)
        return cls.on(grid, seed=seed, district=district)

    @classmethod
    def on(cls, grid: Grid, *, seed: int = 0, district: int = 16) -> "City":
        """The same on a grid that is there."""
        rng = np.random.default_rng([check.whole(seed, "seed", 0), 10])
        wide = check.whole(district, "district", 2)
        centres, labels, near = _districts(grid, wide, rng)
        # fewer people live further out
        middle = np.array([grid.rows, grid.cols]) / 2
        out = np.hypot(*((centres - middle) / middle).T)
        crowd = rng.gamma(2.0, 0.5, len(centres)) * np.exp(-1.5 * out)
        kind = rng.choice(len(_KINDS), size=len(centres), p=_KIND_SHARES)
        density = (0.05 + crowd[labels] * near) * rng.gamma(4.0, 0.25, grid.size)
        y, x = np.divmod(np.arange(grid.size), grid.cols)
        river = 0.40 + 0.08 * np.sin(7 * (x + 0.5) / grid.cols)
        if grid.rows > 2:
            density[np.abs((y + 0.5) / grid.rows - river) < 0.6 / grid.rows] = 0.0
        shares = np.cumsum(np.array(_KINDS), axis=1)[kind]
        drawn = rng.random(grid.size)
        category = np.zeros(grid.size, np.int32)
        for k in range(len(CATEGORIES) - 1):
            category += drawn >= shares[labels, k]
        category[(rng.random(grid.size) > 0.3 + 0.7 * near) | (density == 0)] = -1
        return cls(grid, density / density.sum(), category, labels)

    # -- people

    def people(self, n: int, seed: int = 0) -> NDArray[np.int32]:
        """Cells of n people."""
        return (
            np.random.default_rng(seed)
            .choice(self.grid.size, size=n, p=self.density)
            .astype(np.int32)
        )

    def walks(self, users: int, steps: int, seed: int = 0) -> NDArray[np.int32]:
        """Cells (users, steps) of people who live somewhere, go to places where others are, stay a
        while and come home.

        A step goes to one of the eight cells around, towards the goal of the day; at the goal
        people stay with probability 0.8 a step, and then set out for another place (or home, every
        other time)."""
        rng = np.random.default_rng(seed)
        grid, n = self.grid, users

        def places() -> NDArray[np.int64]:
            return np.stack(np.divmod(rng.choice(grid.size, size=n, p=self.density), grid.cols))

        home, goal = places(), places()
        at = home.copy()
        out = np.empty((n, steps), np.int32)
        for t in range(steps):
            out[:, t] = at[0] * grid.cols + at[1]
            there = (at == goal).all(axis=0)
            leaves = there & (rng.random(n) < 0.2)
            goes_home = rng.random(n) < 0.5
            goal = np.where(leaves, np.where(goes_home, home, places()), goal)
            strays = rng.integers(-1, 2, (2, n)) * (rng.random(n) < 0.15)
            step = np.where(rng.random(n) < 0.85, np.sign(goal - at), 0) + np.where(
                there, 0, strays
            )
            at = np.clip(at + np.clip(step, -1, 1), 0, np.array([[grid.rows - 1], [grid.cols - 1]]))
        return out

    def visits(self, n: int, steps: int, seed: int = 0, *, places: int = 12) -> NDArray[np.int32]:
        """(n, steps) cells of people checking in: each has a few places, the k-th visited in
        proportion to 1/k."""
        rng = np.random.default_rng(seed)
        favourites = rng.choice(self.grid.size, size=(n, places), p=self.density)
        share = 1 / np.arange(1, places + 1)
        picked = rng.choice(places, size=(n, steps), p=share / share.sum())
        return np.take_along_axis(favourites, picked, axis=1).astype(np.int32)

    @cached_property
    def attractions(self) -> NDArray[np.float64]:
        """(3, N): how much each cell draws people to live, to work and to go out there."""
        near = [0.2, 0.05, 0.05]
        own = [(0,), (3, 4), (1, 2)]
        return np.stack(
            [self.density * (few + np.isin(self.categories, of)) for few, of in zip(near, own)]
        )

    def days(
        self,
        users: int,
        steps: int,
        *,
        step: Any = "5min",
        start: Any = "2026-01-05",
        seed: int = 0,
        first: int = 0,
    ) -> NDArray[np.int32]:
        """Cells (users, steps) of people with a home, a place of work and places to go out to.

        Parameters
        ----------
        users, steps : int
        step, start
            Duration of a step, and moment of the first, by the city's own clock.
        seed : int
        first : int
            Number of the first person. What a person does depends on the seed and this number
            alone: a city of millions can be made piece by piece.

        Notes
        -----
        Most people go to work in the morning of a working day and come home in the evening, some go
        out for lunch or in the evening, and more at weekends. A step goes to one of the eight cells
        around at most: places of work are as near as people can walk to in some 40 minutes.
        """
        for value, name in ((users, "users"), (steps, "steps"), (first, "first"), (seed, "seed")):
            check.whole(value, name, 0)
        step_ms = times.duration(step, "step")
        if step_ms > times.DAY_MS // 4:
            raise InvalidParameter(f"step must be at most 6 h to follow a day, got {step!r}")
        clock = times.moment(start, "start") + np.arange(steps) * step_ms
        out = np.empty((users, steps), np.int32)
        reach = max(2, round(2_400_000 / step_ms))
        for block in range(first // _BLOCK, -(-(first + users) // _BLOCK)):
            rng = np.random.default_rng([seed, 11, block])
            routine = Routine.drawn(self.grid, self.attractions, reach, _BLOCK, rng)
            low, high = block * _BLOCK, (block + 1) * _BLOCK
            a, b = max(low, first), min(high, first + users)
            cells = follow_routines(routine, self.grid, clock, rng)
            out[a - first : b - first] = cells[a - low : b - low]
        return out

    def transitions(self, *, periods: int = 6) -> "sparse.GCXS":
        """How people move in each period of the day, for everybody alike: what is public knowledge
        of the city.

        Parameters
        ----------
        periods : int
            Equal parts of the day, at most 24.

        Returns
        -------
        sparse.GCXS
            (period, from, to), row-stochastic, for ``MobilityModel``. All moves to the eight cells
            around are possible at all times. People go towards work and other places in the
            morning, and back in the evening.
        """
        check.whole(periods, "periods", 1, 24)
        return daily_moves(self.grid, self.attractions, periods)


def _districts(
    grid: Grid, wide: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
    """(centres; the district of each cell, whose centre is nearest; how near it is, 0 to 1).

    One centre stands in each square of ``wide`` cells, so that the nearest is in one of the nine
    squares around."""
    tall, broad = -(-grid.rows // wide), -(-grid.cols // wide)
    corner = np.stack(np.meshgrid(np.arange(tall), np.arange(broad), indexing="ij"), axis=-1)
    centres = (corner + rng.uniform(0.2, 0.8, corner.shape)) * wide
    row, col = np.divmod(np.arange(grid.size), grid.cols)
    best, label = np.full(grid.size, np.inf), np.zeros(grid.size, np.int32)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            i, j = row // wide + dy, col // wide + dx
            there = (i >= 0) & (i < tall) & (j >= 0) & (j < broad)
            i, j = np.clip(i, 0, tall - 1), np.clip(j, 0, broad - 1)
            away = np.hypot(centres[i, j, 0] - row - 0.5, centres[i, j, 1] - col - 0.5)
            nearer = there & (away < best)
            best = np.where(nearer, away, best)
            label = np.where(nearer, (i * broad + j).astype(np.int32), label)
    return centres.reshape(-1, 2), label, np.exp(-((best / (0.35 * wide)) ** 2) / 2)


def synthetic_city(rows: int = 60, cols: int = 60, *, cell_km: float = 0.27, seed: int = 0) -> City:
    """A centre, four suburbs, a river that nobody lives in, and cells with a main use, the same
    for the same seed. (``City.of_size`` has a district for every so many cells instead.)"""
    grid = Grid(rows, cols, cell_km=cell_km, origin=_ORIGIN)
    rng = np.random.default_rng(seed)
    y, x = np.meshgrid(
        (np.arange(rows) + 0.5) / rows, (np.arange(cols) + 0.5) / cols, indexing="ij"
    )
    density = np.full((rows, cols), 0.08)
    for cx, cy, spread, weight in _CENTRES:
        density += weight * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * spread**2))
    density *= rng.gamma(4.0, 0.25, size=density.shape)
    density[np.abs(y - (0.40 + 0.08 * np.sin(7 * x))) < 0.6 / rows] = 0.0
    busy = np.clip(density / density.max() * 3, 0.15, 1.0)
    kind = rng.choice(len(CATEGORIES), size=density.shape, p=(0.4, 0.2, 0.15, 0.2, 0.05)).astype(
        np.int32
    )
    kind[(rng.random(density.shape) > busy) | (density == 0)] = -1
    away = [np.hypot(x - cx, y - cy) for cx, cy, *_ in _CENTRES]
    districts = np.argmin(away, axis=0).astype(np.int32).reshape(-1)
    return City(grid, (density / density.sum()).reshape(-1), kind.reshape(-1), districts)
