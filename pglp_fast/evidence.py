"""What released traces say about where users were: the adversary's likelihoods, kept to be attacked later."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _validate as check
from .mobility import MobilityModel
from .priors import Priors
from .ragged import starts_of


@dataclass(frozen=True)
class Evidence:
    """ln Pr(z_t | s) of every release, for every location s that the adversary thought possible then.

    Row ``u * T + t`` is ``cells[start[row] : start[row + 1]]``, ascending, with ``logs`` beside it; it is empty where user u
    released nothing at t. A location that is not listed has likelihood 0, or was ruled out before (by the model, or by delta).

    Attributes
    ----------
    model : how people move
    priors : what the adversary thought at each user's first release; before that, nothing moves
    periods : (T,) the model's period for the move from step t - 1 to step t; the first is not used
    released : (users, T) released cells, -1 where there is none
    start, cells, logs : the rows; logs may be short of a constant in each row (``likelihood="density"``)
    """

    model: MobilityModel
    priors: Priors
    periods: NDArray[np.int64]
    released: check.Cells
    start: NDArray[np.int64]
    cells: NDArray[np.int32]
    logs: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        return self.released.shape[0], self.released.shape[1]


class EvidenceRows:
    """Evidence on its way: rows come step by step for blocks of users, and are wanted user by user."""

    def __init__(self, users: int, steps: int):
        self.lengths = np.zeros((users, steps), np.int64)
        self.parts: list[tuple[slice, int, NDArray[np.int32], NDArray[np.float64]]] = []

    def add(
        self,
        first: int,
        t: int,
        told: NDArray[np.bool_],
        lengths: NDArray[np.int64],
        cells: NDArray[np.int32],
        logs: NDArray[np.float64],
    ) -> None:
        """Step t of the users from ``first`` on; rows of those who released nothing are left out."""
        block = slice(first, first + len(lengths))
        self.lengths[block, t] = np.where(told, lengths, 0)
        kept = slice(None) if told.all() else np.repeat(told, lengths)
        self.parts.append((block, t, cells[kept], logs[kept]))

    def finish(self, model: MobilityModel, priors: Priors, periods: NDArray[np.int64], released: check.Cells) -> Evidence:
        start = starts_of(self.lengths.ravel())
        cells, logs = np.empty(start[-1], np.int32), np.empty(start[-1])
        steps = self.lengths.shape[1]
        for block, t, some_cells, some_logs in self.parts:
            lengths = self.lengths[block, t]
            row = np.arange(block.start, block.stop) * steps + t
            to = np.repeat(start[row] - starts_of(lengths)[:-1], lengths) + np.arange(len(some_cells))
            cells[to], logs[to] = some_cells, some_logs
        return Evidence(model, priors, np.asarray(periods, np.int64), released, start, cells, logs)
