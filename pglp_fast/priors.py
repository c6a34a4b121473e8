"""Where the adversary thinks users are when first seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate as check
from ._kernels.trace import Ragged
from .errors import InvalidTransition
from .mobility import MobilityModel


@dataclass(frozen=True)
class Priors:
    """Distinct priors, row by row, and the row of each user; rows of single cells for "point"."""

    rows: Ragged
    of: NDArray[np.int64]
    point: bool

    def part(self, block: slice) -> "Priors":
        return Priors(self.rows, self.of[block], self.point)


def make_priors(model: MobilityModel, priors: Any, n: int) -> Priors:
    """What the adversary thinks at the first observation of n users; see ``TraceReleaser.start``."""
    import scipy.sparse

    size = model.locations.size
    if isinstance(priors, str):
        check.choice(priors, "priors", ("point",))
        rows = Ragged(np.empty(0, np.int64), np.arange(size + 1), np.arange(size, dtype=np.int32), np.zeros(size))
        return Priors(rows, np.zeros(n, np.int64), True)
    if priors is not None and not scipy.sparse.issparse(priors) and np.ndim(priors) not in (1, 2):
        raise InvalidTransition(f"priors must have shape ({n}, {size}) or ({size},), got {np.shape(priors)}")
    shared = priors is None or (not scipy.sparse.issparse(priors) and np.ndim(priors) == 1)
    if priors is None:
        priors = model.stationary()
    csr = scipy.sparse.csr_array(np.atleast_2d(priors) if not scipy.sparse.issparse(priors) else priors).astype(np.float64)
    if csr.shape != ((1 if shared else n), size):
        raise InvalidTransition(f"priors must have shape ({n}, {size}) or ({size},), got {np.shape(priors)}")
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    sums = np.asarray(csr.sum(axis=1)).reshape(-1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= 1e-9) | (np.minimum(csr.min(axis=1).toarray().reshape(-1), 0) < 0))
    if bad.size:
        raise InvalidTransition(
            f"the prior of user {bad[0]} sums to {sums[bad[0]]:.12g} or has a negative entry: it must be a distribution"
        )
    rows = Ragged(np.empty(0, np.int64), csr.indptr.astype(np.int64), csr.indices.astype(np.int32), np.log(csr.data))
    return Priors(rows, np.zeros(n, np.int64) if shared else np.arange(n), False)
