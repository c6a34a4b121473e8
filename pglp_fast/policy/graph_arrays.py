"""Arrays that a policy graph is made of."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.policy import graph as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import for_kernels
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.locations import Locations, require_locations


def checked_pairs(locations: Locations, pairs: ArrayLike) -> NDArray[np.int32]:
    array = check.integers(pairs, "edges", InvalidPolicy)
    if array.size == 0:
        return np.empty((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidPolicy(f"edges must have shape (m, 2), got {array.shape}")
    n = locations.size
    bad = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if bad.size:
        raise InvalidPolicy(
            f"edge {bad[0]} = {array[bad[0]].tolist()} leaves the {n} locations 0..{n - 1}"
        )
    return for_kernels(array, np.int32)


def tidy(cliques: NDArray[np.int32]) -> NDArray[np.int32]:
    """Labels numbered by lowest member; a label with one member is no clique."""
    if cliques.size:
        counts = np.bincount(cliques[cliques >= 0], minlength=1)
        cliques = np.where((cliques >= 0) & (counts[cliques] > 1), cliques, np.int32(-1))
    out = np.empty(cliques.size, np.int32)
    kernels.relabel(cliques, False, out)
    return out


def no_rows(locations: Locations) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The CSR of no edges."""
    require_locations(locations)
    return np.zeros(locations.size + 1, np.int64), np.empty(0, np.int32)
