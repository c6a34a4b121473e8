"""People of a made-up city as a table, made block by block: memory does not grow with the city."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import replacing
from pglp_fast.space.grid import Grid
from pglp_fast.space.synthetic import CATEGORIES, City

pa, parquet = Later("pyarrow"), Later("pyarrow.parquet")
_BLOCK_ROWS = 1 << 20  # made at a time, about


@dataclass(frozen=True)
class Simulation:
    """Rows (user, time, lat, lon, place) of people who follow their routines.

    Attributes
    ----------
    city : City
    users, steps : int
    step_ms, start_ms : int
        Duration of a step, and the first moment.
    missing : float
        Share of the rows to leave out at random.
    seed : int
        Other numbers give other people.
    """

    city: City
    users: int
    steps: int
    step_ms: int = 300_000
    start_ms: int = 1_767_571_200_000  # 2026-01-05
    missing: float = 0.0
    seed: int = 0

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Columns of the rows of some persons at a time, by person and time."""
        some = max(1, min(1 << 12, _BLOCK_ROWS // self.steps))
        start, step = np.datetime64(self.start_ms, "ms"), np.timedelta64(self.step_ms, "ms")
        for number, first in enumerate(range(0, self.users, some)):
            n = min(some, self.users - first)
            cells = self.city.days(
                n, self.steps, step=step, start=start, seed=self.seed, first=first
            )
            rng = np.random.default_rng([self.seed, 12, number])
            keep = rng.random(cells.size) >= self.missing
            yield self._columns(first, cells, keep, rng.random((int(keep.sum()), 2)))

    def walks(self) -> Iterator[dict[str, Any]]:
        """The same of people who walk about at random, all at once."""
        rng = np.random.default_rng([self.seed, 1])
        cells = _walk(self.city, self.users, self.steps, rng)
        keep = rng.random(cells.size) >= self.missing
        yield self._columns(0, cells, keep, rng.random((cells.size, 2))[keep])

    def _columns(
        self,
        first: int,
        cells: NDArray[np.int32],
        keep: NDArray[np.bool_],
        within: NDArray[np.float64],
    ) -> dict[str, Any]:
        """A table of people at cells (persons, steps): named by their numbers from ``first`` on,
        anywhere in the cell, with its use."""
        n, kept, width = len(cells), cells.reshape(-1)[keep], len(str(self.users - 1))
        names = np.array([f"u{k:0{width}d}" for k in range(first, first + n)])
        when = self.start_ms + np.arange(self.steps) * self.step_ms
        place = degrees(self.city.grid, kept, (within - 0.5) * 0.999)
        return {
            "user": np.repeat(names, self.steps)[keep],
            "time": np.tile(when, n)[keep].astype("datetime64[ms]"),
            "lat": place[:, 0],
            "lon": place[:, 1],
            "place": np.array([*CATEGORIES, ""])[self.city.categories[kept]],
        }


def _walk(city: City, users: int, steps: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """(users, steps) cells: Metropolis' walk over the eight around, which visits cells as often
    as the density says."""
    grid, density = city.grid, city.density
    out = np.empty((users, steps), np.int32)
    cell = rng.choice(grid.size, users, p=density)
    for t in range(steps):
        out[:, t] = cell
        row, col = (at + rng.integers(-1, 2, users) for at in np.divmod(cell, grid.cols))
        on = (row >= 0) & (row < grid.rows) & (col >= 0) & (col < grid.cols)
        there = np.where(on, row * grid.cols + col, cell)
        go = on & (rng.random(users) * density[cell] < density[there])
        cell = np.where(go, there, cell)
    return out


def degrees(grid: Grid, cells: NDArray[Any], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Latitude and longitude of the middle of each cell, moved by a share of its side."""
    assert grid.projection is not None
    return grid.projection.to_latlon(grid.xy(cells) + (0.5 + shift) * np.asarray(grid.scale))


def arrow_table(columns: dict[str, Any]) -> Any:
    """The columns as they go into Parquet, degrees to the sixth digit."""
    return pa.table(
        {
            **columns,
            "time": pa.array(columns["time"], pa.timestamp("ms", "UTC")),
            "lat": columns["lat"].round(6),
            "lon": columns["lon"].round(6),
        }
    )


def write_parts(folder: Path, simulation: Simulation) -> Iterator[int]:
    """Write Parquet parts into a folder, each whole or not there; the rows of each as it ends.

    Parts that an earlier city left there are removed first."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("part-*.parquet"):
        old.unlink()
    for number, columns in enumerate(simulation.blocks()):
        with replacing(folder / f"part-{number:05d}.parquet") as part:
            parquet.write_table(arrow_table(columns), part)
        yield len(columns["lat"])
