"""A policy and domains, checked, as kernels take them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.exposure import domain_view
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import for_kernels
from pglp_fast.errors import InvalidDomain
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import require_same_map

from .domain import Domain, require_domain
from .graph import PolicyGraph, require_policy
from .weighted_edges import fine_lattice


def kernel_policy(graph: PolicyGraph) -> domain_view.Policy:
    """A policy as kernels take it: with weights over scattered points of a finer lattice."""
    locations, weights = graph.locations, graph.weights
    lattice, (extent, widest, tallest) = locations.lattice, graph.clique_extents
    rows, cols = (locations.rows, locations.cols) if isinstance(locations, Grid) else (0, 0)
    (dx, dy), L = locations.scale, graph.denominator
    fractions = np.empty((0, 2), np.int64)
    if weights is not None:
        lattice, rows, cols, dx, dy = fine_lattice(graph), 0, 0, dx / L, dy / L
        extent, widest, tallest = extent * np.int32(L), widest * L, tallest * L
        fractions = weights.fractions
    return domain_view.Policy(
        lattice, graph.cliques, extent, widest, tallest, graph.extra_indptr, graph.extra_indices,
        rows, cols, dx, dy, locations.stretch, fractions, 0 if weights is None else L,
    )  # fmt: skip


def words_of(graph: PolicyGraph, domain: Domain) -> NDArray[np.uint64]:
    """One domain over the map of a policy, as a matrix of one row."""
    maps = require_domain(domain).locations, require_policy(graph).locations
    require_same_map(*maps, "the domain and the policy", InvalidDomain)
    return domain.words[None, :]


def checked_words(graph: PolicyGraph, words: ArrayLike) -> NDArray[np.uint64]:
    """Domains over the map of a policy: rows as in ``Domain.words``."""
    array = check.as_array(words, "words", InvalidDomain)
    n = require_policy(graph).locations.size
    width = -(-n // 64)
    if array.dtype.newbyteorder("=") != np.uint64 or array.ndim != 2 or array.shape[1] != width:
        raise InvalidDomain(
            f"words must be uint64 of shape (domains, {width}) for {n} locations, got "
            f"{array.dtype} of shape {array.shape}"
        )
    if n % 64 and (array[:, -1] >> np.uint64(n % 64)).any():
        at = int(np.flatnonzero(array[:, -1] >> np.uint64(n % 64))[0])
        raise InvalidDomain(f"domain {at} has bits beyond the last of {n} locations: clear them")
    return for_kernels(array, np.uint64)


def largest_of(matrix: NDArray[np.uint64]) -> int:
    """How many locations the largest domain has."""
    return int(np.bitwise_count(matrix).sum(axis=1, dtype=np.int64).max(initial=0))


def scratch_for(graph: PolicyGraph, largest: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Work space for domains of up to this many locations, and an empty head for each clique."""
    return np.empty((4, largest), np.int32), np.full(max(graph.n_cliques, 1), -1, np.int32)
