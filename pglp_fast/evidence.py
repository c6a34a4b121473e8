"""What released traces say about where users were: the adversary's likelihoods, kept to be attacked later."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _validate as check
from .mobility import MobilityModel
from .priors import Priors


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
