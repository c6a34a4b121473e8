"""How people of a made-up city move at each time of the day, as the public knows it.

People are at home at night (p), go towards work and other places in the morning (p A), move about
by day without changing how many are where, and come back in the evening by the same ways: the
evening is the time reversal of the morning, so that days repeat exactly."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .grid import Grid

if TYPE_CHECKING:
    import sparse

Floats = NDArray[np.float64]
_QUIET = (0.05, 0.05, 0.05, 0.05, 0.05, 0.08, 0.15)  # share of people who move, from 0 to 6 h,
_BUSY = (0.5, 0.5, 0.3, 0.15, 0.12, 0.15, 0.15, 0.12, 0.12, 0.2, 0.4, 0.5, 0.45, 0.3)  # to 20 h,
_MOVING = np.array([*_QUIET, *_BUSY, 0.2, 0.15, 0.1])  # and to midnight
_AROUND = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]  # ascending cells
_STAY = 4  # the number of (0, 0) among these
_SMOOTH = 9  # cells over which places attract


def daily_moves(grid: Grid, attractions: Floats, periods: int) -> "sparse.GCXS":
    """(period, from, to), row-stochastic; all moves to the eight around are possible."""
    import sparse
    from scipy.ndimage import uniform_filter

    home, by_day = (
        uniform_filter(a.reshape(grid.rows, grid.cols), _SMOOTH, mode="nearest").reshape(-1)
        for a in (attractions[0], attractions.sum(axis=0))
    )
    around = _Around(grid)
    night, data = _positive(home), list[Floats]()
    mornings, evenings = _rush_hours(periods)
    before = [night]  # where people are before each morning period, and after the last
    for k, moving in enumerate(_moving(periods)):
        if k in mornings:
            data.append(around.steps(_positive(by_day), moving))
            before.append(around.moved(before[-1], data[-1]))
        elif k in evenings:
            turn = mornings[len(evenings) - 1 - evenings.index(k)]
            now, then = before[mornings.index(turn)], before[mornings.index(turn) + 1]
            data.append(around.reversed(now, then, data[turn]))
        else:
            by_now = before[-1] if mornings and mornings[-1] < k < evenings[0] else night
            data.append(around.steps(by_now, moving))
    indptr = np.concatenate([[0], np.cumsum(np.tile(around.there.sum(axis=1), periods))])
    indices = np.tile(around.targets[around.there].astype(np.int32), periods)
    whole = np.concatenate([p[around.there] for p in data])
    n = grid.size
    return sparse.GCXS((whole, indices, indptr), shape=(periods, n, n), compressed_axes=(0, 1))


def _positive(pull: Floats) -> Floats:
    p = np.maximum(pull, 1e-3 * pull.mean())
    return np.asarray(p / p.sum())


def _moving(periods: int) -> list[float]:
    """Share of people who move in a step of each period."""
    hours = np.arange(24) * periods // 24
    return [float(_MOVING[hours == k].mean()) for k in range(periods)]


def _rush_hours(periods: int) -> tuple[list[int], list[int]]:
    """Periods of the morning (about 6 to 10 h), and as many of the evening (from 16 h on)."""
    middle = (np.arange(periods) + 0.5) * 24 / periods
    morning = [k for k in range(1, periods) if 6 <= middle[k] < 10]
    evening = [k for k in range(periods) if middle[k] >= 16][: len(morning)]
    return morning[: len(evening)], evening


class _Around:
    """Moves to the eight cells around and staying, as arrays (N, 9)."""

    def __init__(self, grid: Grid):
        row, col = np.divmod(np.arange(grid.size), grid.cols)
        self.there = np.stack(
            [
                (row + dy >= 0) & (row + dy < grid.rows) & (col + dx >= 0) & (col + dx < grid.cols)
                for dy, dx in _AROUND
            ],
            axis=1,
        )
        self.shift = np.array([dy * grid.cols + dx for dy, dx in _AROUND])
        self.targets = np.where(self.there, np.arange(grid.size)[:, None] + self.shift, 0)

    def steps(self, pull: Floats, moving: float) -> Floats:
        """A step of Metropolis' walk, which leaves ``pull`` as it is: of those who move, each
        tries one of the eight around."""
        p = moving / 8 * np.minimum(1.0, pull[self.targets] / pull[:, None]) * self.there
        return self._completed(p)

    @staticmethod
    def _completed(p: Floats) -> Floats:
        p[:, _STAY] = 0.0
        p[:, _STAY] = 1.0 - p.sum(axis=1)
        return p

    def moved(self, p: Floats, moves: Floats) -> Floats:
        """p M."""
        flow = p[:, None] * moves
        return np.asarray(np.bincount(self.targets[self.there], flow[self.there], len(p)), float)

    def reversed(self, before: Floats, after: Floats, moves: Floats) -> Floats:
        """The moves that bring those who moved back: M'(j, i) = p(i) M(i, j) / (p M)(j)."""
        back = np.empty_like(moves)
        for k in range(len(_AROUND)):  # the way back of k is 8 - k
            origin = self.targets[:, k]
            back[:, k] = before[origin] * moves[origin, len(_AROUND) - 1 - k] / after
        return self._completed(np.where(self.there, back, 0.0))
