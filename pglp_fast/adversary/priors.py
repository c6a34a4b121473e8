"""Where the adversary thinks users are when first seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidTransition

from .mobility import MobilityModel


@dataclass(frozen=True)
class Priors:
    """Distinct priors and which of them each user has.

    Attributes
    ----------
    rows : Rows
        Cells and logarithms of each distinct prior; of "point" and "move" one for each location.
    of : int64 array
        The row of each user.
    point : bool
        A user's prior is the row of its first true cell.
    """

    rows: Rows
    of: NDArray[np.int64]
    point: bool

    def part(self, block: slice) -> "Priors":
        """The priors of some users."""
        return Priors(self.rows, self.of[block], self.point)


def make_priors(model: MobilityModel, priors: Any, n: int) -> Priors:
    """What the adversary thinks at the first observation of n users.

    Parameters
    ----------
    model : MobilityModel
    priors : optional
        As in ``TraceReleaser.start``.
    n : int
    """
    import scipy.sparse

    size = model.locations.size
    if isinstance(priors, str):
        known = check.choice(priors, "priors", ("point", "move"))
        rows = Rows(np.arange(size + 1), np.arange(size, dtype=np.int32), np.zeros(size))
        if known == "move":
            rows = _after_one_move(model)
        return Priors(rows, np.zeros(n, np.int64), True)
    if priors is not None and not scipy.sparse.issparse(priors) and np.ndim(priors) not in (1, 2):
        raise InvalidTransition(
            f"priors must have shape ({n}, {size}) or ({size},), got {np.shape(priors)}"
        )
    if priors is None:
        return Priors(_stationary_rows(model), np.zeros(n, np.int64), False)
    shared = not scipy.sparse.issparse(priors) and np.ndim(priors) == 1
    csr = scipy.sparse.csr_array(
        np.atleast_2d(priors) if not scipy.sparse.issparse(priors) else priors
    ).astype(np.float64)
    if csr.shape != ((1 if shared else n), size):
        raise InvalidTransition(
            f"priors must have shape ({n}, {size}) or ({size},), got {np.shape(priors)}"
        )
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    sums = np.asarray(csr.sum(axis=1)).reshape(-1)
    bad = np.flatnonzero(
        ~(np.abs(sums - 1) <= 1e-9) | (np.minimum(csr.min(axis=1).toarray().reshape(-1), 0) < 0)
    )
    if bad.size:
        raise InvalidTransition(
            f"the prior of user {bad[0]} sums to {sums[bad[0]]:.12g} or has a negative entry: it "
            "must be a distribution"
        )
    rows = Rows(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), np.log(csr.data))
    return Priors(rows, np.zeros(n, np.int64) if shared else np.arange(n), False)


def _stationary_rows(model: MobilityModel) -> Rows:
    """The stationary distribution, as the prior of everybody; made once for a model: a job that
    is cut into many parts asks for it with each."""
    p = model.stationary()  # with its warning, if it has one
    held: list[Rows] = model.__dict__.setdefault("_stationary_rows", [])
    if not held:
        cells = np.flatnonzero(p).astype(np.int32)
        held.append(Rows(np.array([0, len(cells)]), cells, np.log(p[cells])))
    return held[0]


def _after_one_move(model: MobilityModel) -> Rows:
    """Where somebody is one move after each location."""
    if model.periods > 1:
        raise InvalidTransition(
            f"priors='move' needs one matrix, the model has {model.periods} periods: give the row "
            "of each user's start in the right period as a (users, N) array"
        )
    chain = model.chains[0]
    return Rows(chain.indptr, chain.indices, np.log(chain.data))
