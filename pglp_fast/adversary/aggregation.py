"""The stationary distribution of a large chain, by aggregation and disaggregation.

Steps of the chain itself smooth what is wrong between neighbours at once, and what is wrong between
far places hardly at all: on a map of a million cells that takes a million steps. So places are
grouped, the groups are taken for places of a smaller chain, which is solved the same way, and each
group's share is corrected (Koury, McAllister and Stewart, SIAM Journal on Algebraic Discrete
Methods 5, 1984; by several levels, Horton and Leutenegger, SIGMETRICS 1994). The cycles are
accelerated by Anderson's method (Journal of the ACM 12, 1965)."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIRECT = 400  # states up to which a chain is solved by elimination
SOLVED = 20_000  # places up to which a sparse direct solver is asked
_GROUP = 4  # places in a group: on a grid, 2 x 2 cells
_SMOOTHING, _LAZY = 2, 0.3  # steps before and after a correction, and the share that stays
_REMEMBERED = 8  # cycles that the acceleration looks back on
_CYCLES = 200
# how much further off than what the last cycle moved it a distribution may be: a cycle leaves some
# nine tenths of what is wrong on a narrow strip, where it is at its worst
_SLOW = 30


def eliminate(matrix: Any) -> Floats:
    """The stationary distribution of an irreducible chain, state by state.

    Nothing is subtracted, so that every entry is right to a few units of rounding, however nearly
    the chain falls apart (Grassmann, Taksar and Heyman, Operations Research 33, 1985)."""
    flow = matrix.toarray()
    n = len(flow)
    for k in range(n - 1, 0, -1):
        flow[:k, k] /= flow[k, :k].sum()
        flow[:k, :k] += np.outer(flow[:k, k], flow[k, :k])
    x = np.ones(n)
    for k in range(1, n):
        x[k] = x[:k] @ flow[:k, k]
    return np.asarray(x / x.sum())


@dataclass(frozen=True)
class _Level:
    """A chain and its groups; which entry of the smaller chain each of its entries adds to.

    The pattern of the smaller chain stays, its values follow the distribution."""

    rows: Ints
    group: Ints
    entry: Ints
    pattern: tuple[NDArray[np.int32], NDArray[np.int32]]  # indices, indptr of the smaller chain

    @classmethod
    def of(cls, matrix: Any, group: Ints) -> "_Level":
        from scipy.sparse import coo_matrix

        n = int(group.max()) + 1
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        pair = group[rows] * n + group[matrix.indices]
        pairs, entry = np.unique(pair, return_inverse=True)
        small = coo_matrix((np.ones(len(pairs)), np.divmod(pairs, n)), (n, n)).tocsr()
        return cls(rows, group, entry.astype(np.int64), (small.indices, small.indptr))

    def smaller(self, matrix: Any, x: Floats) -> Any:
        """The chain of the groups, under a distribution of the places."""
        from scipy.sparse import csr_matrix

        indices, indptr = self.pattern
        flow = np.bincount(self.entry, x[self.rows] * matrix.data, len(indices))
        total = np.add.reduceat(flow, indptr[:-1])
        n = len(indptr) - 1
        return csr_matrix((flow / np.repeat(total, np.diff(indptr)), indices, indptr), (n, n))


def _levels(matrix: Any, order: Ints) -> list[_Level]:
    """Groups of places that follow each other in the order, then groups of these, and so on."""
    found = []
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    x = np.ones(matrix.shape[0])
    while matrix.shape[0] > DIRECT:
        found.append(_Level.of(matrix, rank // _GROUP))
        matrix = found[-1].smaller(matrix, x)
        rank, x = np.arange(matrix.shape[0]), np.ones(matrix.shape[0])
    return found


def _smooth(matrix: Any, x: Floats) -> Floats:
    for _ in range(_SMOOTHING):
        x = _LAZY * x + (1 - _LAZY) * (matrix.T @ x)
    return np.asarray(x / x.sum())


def _cycle(matrix: Any, levels: list[_Level], x: Floats) -> Floats:
    if not levels:
        return eliminate(matrix)
    level = levels[0]
    x = _smooth(matrix, x)
    share: Floats = np.bincount(level.group, x).astype(np.float64, copy=False)
    corrected = _cycle(level.smaller(matrix, x), levels[1:], share)
    return _smooth(matrix, x * (corrected / share)[level.group])


def _accelerated(x: Floats, steps: list[Floats], found: list[Floats]) -> Floats:
    """Anderson's mixture of what the last cycles gave, of which the mixed steps cancel best; the
    last one where a mixture would have negative entries."""
    if len(steps) < 2:
        return found[-1]
    weight = 1 / np.sqrt(found[-1])
    turns = np.stack([(steps[-1] - s) * weight for s in steps[:-1]], axis=1)
    share = np.linalg.lstsq(turns, steps[-1] * weight, rcond=None)[0]
    mixed = found[-1] - sum(c * (found[-1] - f) for c, f in zip(share, found[:-1]))
    return np.asarray(mixed / mixed.sum()) if mixed.min() > 0 else found[-1]


def _first_guess(matrix: Any) -> Floats:
    """Where the cycles begin: a direct solver's answer, which is right but for cancellation, on
    maps that it takes; else the same everywhere."""
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    if n <= SOLVED:
        system = (identity(n) - matrix.T).tocsc()
        with contextlib.suppress(RuntimeError):  # it is singular, but for rounding
            x = np.append(splu(system[:-1, :-1]).solve(-system[:-1, [-1]].toarray()[:, 0]), 1.0)
            if np.isfinite(x).all() and (x > 0).all():
                return np.asarray(x / x.sum())
    return np.full(n, 1 / n)


def aggregate(matrix: Any, order: Ints, tolerance: float) -> tuple[Floats, float]:
    """(distribution, how far it may be off in L1) of an irreducible chain.

    ``order``: neighbours stand near each other in it."""
    levels, x = _levels(matrix, order), _first_guess(matrix)
    steps: list[Floats] = []
    found: list[Floats] = []
    off = np.inf
    for _ in range(_CYCLES):
        after = _cycle(matrix, levels, x)
        steps, found = [*steps, after - x][-_REMEMBERED:], [*found, after][-_REMEMBERED:]
        off = _SLOW * float(np.abs(steps[-1]).sum())
        if off <= tolerance:
            return after, off
        x = _accelerated(x, steps, found)
    return found[-1], off


def near_order(lattice: Ints) -> Ints:
    """Places along a Z-shaped curve: those that follow each other are near each other."""
    low, span = lattice.min(axis=0), np.ptp(lattice, axis=0).max()
    shift = max(int(span).bit_length() - 16, 0)
    x, y = ((lattice - low) >> shift).T.astype(np.int64)
    code = np.zeros(len(lattice), np.int64)
    for bit in range(16):
        code |= ((x >> bit) & 1) << (2 * bit) | ((y >> bit) & 1) << (2 * bit + 1)
    return np.argsort(code, kind="stable")
