"""A small made-up city, so that everything can be tried without data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pglp_fast.space.grid import Grid

CATEGORIES = ("home", "food", "shop", "work", "school")
# where people live: (x, y, spread) as shares of the map, and how many
_CENTRES = (
    (0.50, 0.52, 0.10, 5.0),
    (0.25, 0.30, 0.07, 2.0),
    (0.72, 0.70, 0.08, 2.5),
    (0.75, 0.25, 0.06, 1.5),
    (0.28, 0.75, 0.09, 1.5),
)


@dataclass(frozen=True)
class City:
    """A grid, how likely people are in each cell, and what each cell is (an index of
    ``CATEGORIES``, -1 for nothing)."""

    grid: Grid
    density: NDArray[np.float64]
    categories: NDArray[np.int32]

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


def synthetic_city(rows: int = 60, cols: int = 60, *, cell_km: float = 0.27, seed: int = 0) -> City:
    """A centre, four suburbs, a river that nobody lives in, and cells with a main use, the same
    for the same seed."""
    grid = Grid(rows, cols, cell_km=cell_km, origin=(35.68, 139.60))
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
    return City(grid, (density / density.sum()).reshape(-1), kind.reshape(-1))
