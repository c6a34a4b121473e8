"""What people of a made-up city do all day."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.times import DAY_MS

from .grid import Grid

HOME, WORK, OUT = range(3)
_HOUR = 3_600_000
_CANDIDATES = 24  # cells that a place near home is chosen from


class Routine(NamedTuple):
    """Of n persons.

    Attributes
    ----------
    places : (n, 3, 2) row and column of home, work and a place to go out to
    works : whether a person goes to work
    leaves, returns : hours at which the person sets out for work, and home
    evening : the hour at which the person goes out, if at all
    """

    places: NDArray[np.int64]
    works: NDArray[np.bool_]
    leaves: NDArray[np.float64]
    returns: NDArray[np.float64]
    evening: NDArray[np.float64]

    @classmethod
    def drawn(
        cls,
        grid: Grid,
        attractions: NDArray[np.float64],
        reach: int,
        n: int,
        rng: np.random.Generator,
    ) -> "Routine":
        """Homes where people live, and places within ``reach`` cells of them."""
        far = np.cumsum(attractions[HOME])
        home = np.searchsorted(far, rng.random(n) * far[-1], side="right")
        at = np.stack(np.divmod(np.minimum(home, grid.size - 1), grid.cols), axis=1)
        places = [at, *(_near(grid, at, attractions[k], reach, rng) for k in (WORK, OUT))]
        return cls(
            np.stack(places, axis=1),
            rng.random(n) < 0.7,
            rng.normal(8.0, 0.7, n),
            rng.normal(17.5, 0.8, n),
            rng.normal(19.0, 0.5, n),
        )


def _near(
    grid: Grid,
    home: NDArray[np.int64],
    attraction: NDArray[np.float64],
    reach: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A place within reach of each home, the likelier the more it attracts."""
    far = rng.integers(-reach, reach + 1, (len(home), _CANDIDATES, 2))
    there = np.clip(home[:, None] + far, 0, (grid.rows - 1, grid.cols - 1))
    weight = np.cumsum(attraction[there[..., 0] * grid.cols + there[..., 1]], axis=1)
    total = weight[:, -1:]
    chosen = (weight <= rng.random((len(home), 1)) * total).sum(axis=1)
    chosen = np.where(total[:, 0] > 0, np.minimum(chosen, _CANDIDATES - 1), 0)
    return np.asarray(there[np.arange(len(home)), chosen])


def follow_routines(
    routine: Routine, grid: Grid, clock: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int32]:
    """(n, T) cells at the moments of a clock (ms since 1970), one cell a step at most."""
    n = len(routine.works)
    out = np.empty((n, len(clock)), np.int32)
    day, goes_out, late = -1, np.zeros(n, np.bool_), np.zeros(n)
    most = np.array([grid.rows - 1, grid.cols - 1])
    at = routine.places[:, HOME]
    for t, now in enumerate(clock.tolist()):
        if now // DAY_MS != day:
            day = now // DAY_MS
            weekend = (day + 3) % 7 >= 5  # 1970 began on a Thursday
            goes_out = rng.random(n) < (0.6 if weekend else 0.35)
            late = rng.normal(0.0, 0.3, n)
        goal = _goals(routine, now % DAY_MS / _HOUR + late, weekend, goes_out)
        target = routine.places[np.arange(n), goal]
        at = at if t else target
        out[:, t] = at[:, 0] * grid.cols + at[:, 1]
        there = (at == target).all(axis=1)
        moves = np.where(there, rng.random(n) < 0.04, rng.random(n) < 0.92)
        strays = rng.integers(-1, 2, (n, 2))
        step = np.where(there[:, None], strays, np.sign(target - at))
        at = np.clip(at + step * moves[:, None], 0, most)
    return out


def _goals(
    routine: Routine, hour: NDArray[np.float64], weekend: bool, goes_out: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Where each person wants to be at an hour of the day."""
    if weekend:
        out = goes_out & (hour >= 11) & (hour < 17)
        return np.where(out, OUT, HOME)
    at_work = routine.works & (hour >= routine.leaves) & (hour < routine.returns)
    errand = ~routine.works & goes_out & (hour >= 10) & (hour < 12)
    evening = goes_out & (hour >= routine.evening) & (hour < routine.evening + 2.5)
    return np.where(at_work, WORK, np.where(errand | evening, OUT, HOME))
