"""The stationary distribution of a chain: by detailed balance, elimination, aggregation, or many
steps, whichever can be had."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.balance import is_balanced
from pglp_fast._kernels.base.markov import sum_down
from pglp_fast._util.arrays import starts_of

from .aggregation import DIRECT, SOLVED, Floats, Ints, aggregate, eliminate, near_order

# what a place has that can only be left, or that underflows: it is possible. Its products with a
# distance or a likelihood must keep their digits, which numbers below 2e-308 do not
_LEAST = 1e-290
_BALANCE = 1e-12  # how far two flows may differ, relative to the largest


def stationary_distribution(
    matrices: list[Any], lattice: Ints, tolerance: float, steps: int
) -> tuple[Floats, float]:
    """(p, how far it may be off in L1): where a uniform start settles, averaged over time.

    A chain ends in one of its closed classes. Each class has one stationary distribution, and the
    share of those who end in it. A place that can only be left has next to nothing: it is
    possible.

    Parameters
    ----------
    matrices : list of csr_matrix
        Row-stochastic, one for each period of a day.
    lattice : int array
        (N, 2) coordinates: who is near whom.
    tolerance : float
        What is aimed at.
    steps : int
        At most so many steps, where more places can be left for ever than a direct solver takes."""
    n = len(lattice)
    known = _of_the_first(matrices) if len(matrices) > 1 else None
    if known is not None:
        return known, 0.0
    chain = _day_chain(matrices)
    classes = _Classes.of(chain)
    start = np.zeros(chain.shape[0])
    start[:n] = 1.0 / n
    share, off = classes.shares(chain, start, tolerance, steps)
    p = np.zeros(len(start))
    near = np.tile(lattice, (len(matrices), 1)), np.repeat(np.arange(len(matrices)), n)
    one = len(classes.closed) == 1
    sorted_chain = chain if one else chain[classes.order][:, classes.order]
    size = np.diff(classes.first)
    alone = classes.closed & (size == 1)
    p[classes.order[classes.first[:-1][alone]]] = share[alone]
    for c in np.flatnonzero(classes.closed & ~alone):
        at = slice(classes.first[c], classes.first[c + 1])
        members = classes.order[at]
        own = sorted_chain if one else sorted_chain[at, at]
        found, left = _irreducible(own, near[0][members], near[1][members], tolerance)
        p[members] = share[c] * found
        off += share[c] * left
    return np.maximum(p[:n] / p[:n].sum(), _LEAST), float(off)


def _of_the_first(matrices: list[Any]) -> Floats | None:
    """The distribution that the first matrix keeps by detailed balance, where a whole day keeps it
    too: None where it does not.

    All places must lead to each other in the first matrix, and be kept by the others (M_ii > 0):
    then they lead to each other over a day, and no other distribution is kept."""
    from scipy.sparse import csgraph

    if not all((m.diagonal() > 0).all() for m in matrices):
        return None
    if csgraph.connected_components(matrices[0], directed=True, connection="strong")[0] > 1:
        return None
    p = reversible_distribution(matrices[0])
    if p is None:
        return None
    after = p
    for m in matrices:
        after = m.T @ after
    off = float(np.abs(after - p).sum())
    return np.maximum(p, _LEAST) if off <= _BALANCE else None


def _day_chain(matrices: list[Any]) -> Any:
    """The chain of (period, location): from each period to the next, and from the last to the
    first."""
    from scipy.sparse import block_array

    k = len(matrices)
    if k == 1:
        return matrices[0]
    blocks = [[m if j == (i + 1) % k else None for j in range(k)] for i, m in enumerate(matrices)]
    return block_array(blocks, format="csr")


@dataclass(frozen=True)
class _Classes:
    """States that lead to each other.

    Attributes
    ----------
    label : the class of each state
    order, first : states by class; those of class c begin at first[c]
    closed : whether nobody leaves the class
    """

    label: Ints
    order: Ints
    first: Ints
    closed: NDArray[np.bool_]

    @classmethod
    def of(cls, chain: Any) -> "_Classes":
        from scipy.sparse import csgraph

        count, label = csgraph.connected_components(chain, directed=True, connection="strong")
        closed = np.ones(count, np.bool_)
        if count > 1:
            rows = np.repeat(label, np.diff(chain.indptr))
            closed[rows[rows != label[chain.indices]]] = False
        order = np.argsort(label, kind="stable")
        first = starts_of(np.bincount(label, minlength=count))
        return cls(label.astype(np.int64), order, first, closed)

    def shares(
        self, chain: Any, start: Floats, tolerance: float, steps: int
    ) -> tuple[Floats, float]:
        """(of each class, who ends in it; how many are still on their way)."""
        count = len(self.closed)
        leaving = ~self.closed[self.label]
        share: Floats = np.zeros(count)
        share += np.bincount(self.label[~leaving], start[~leaving], count)
        if not leaving.any():
            return share, 0.0
        rows = chain[leaving]
        visits = _visits(rows[:, leaving], start[leaving], tolerance, steps)
        arrived = (rows.T @ visits)[~leaving]
        share += np.bincount(self.label[~leaving], arrived, count)
        return share / share.sum(), abs(1.0 - float(share.sum()))


def _visits(between: Any, start: Floats, tolerance: float, steps: int) -> Floats:
    """How often each place that is left for ever is visited: x = start + x Q."""
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    n = len(start)
    if n <= SOLVED:
        return np.asarray(splu((identity(n) - between).T.tocsc()).solve(start))
    total, moved = start.copy(), start
    for _ in range(steps):
        moved = between.T @ moved
        total += moved
        if moved.sum() < tolerance * 1e-2:
            break
    return total


def _irreducible(chain: Any, lattice: Ints, period: Ints, tolerance: float) -> tuple[Floats, float]:
    """(distribution, how far it may be off) of a chain whose states all lead to each other."""
    if chain.shape[0] <= DIRECT:
        with np.errstate(all="ignore"):  # moves near 1e-300 may underflow on the way
            p = eliminate(chain)
        return (p, 0.0) if np.isfinite(p).all() else (np.full(len(p), 1 / len(p)), np.inf)
    if not period.any():
        exact = reversible_distribution(chain)
        if exact is not None:
            return exact, 0.0
    near = near_order(lattice)
    with np.errstate(all="ignore"):
        p, off = aggregate(chain, near[np.argsort(period[near], kind="stable")], tolerance)
    return (p, off) if np.isfinite(p).all() else (np.full(len(p), 1 / len(p)), np.inf)


def reversible_distribution(csr: Any) -> NDArray[np.float64] | None:
    """pi with pi_i M_ij = pi_j M_ji of an irreducible chain, worked out along a spanning tree.

    None where detailed balance does not hold everywhere."""
    from scipy.sparse import csgraph

    n = csr.shape[0]
    if n == 1:
        return np.ones(1)
    order, before = csgraph.breadth_first_order(csr, 0, directed=True)
    children, parents = order[1:], before[order[1:]]
    there = np.asarray(csr[parents, children]).reshape(-1)
    back = np.asarray(csr[children, parents]).reshape(-1)
    if (back == 0).any():
        return None
    step, logs = np.zeros(n), np.zeros(n)
    step[children] = np.log(there) - np.log(back)
    sum_down(order, before, step, logs)
    pi = np.exp(logs - logs.max())
    pi /= pi.sum()
    return np.asarray(pi) if _is_balanced(csr, pi) else None


def _is_balanced(csr: Any, pi: Floats) -> bool:
    """Whether as many go from i to j as from j to i, everywhere."""
    csr.sort_indices()
    indptr = csr.indptr.astype(np.int64, copy=False)
    indices = csr.indices.astype(np.int32, copy=False)
    return bool(is_balanced(indptr, indices, csr.data, pi, _BALANCE))
