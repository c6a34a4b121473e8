"""Transition probabilities in any form, checked, and as kernels take them.

All periods are one CSR matrix of shape (period x from, to) while they are worked on."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.markov import Chain
from pglp_fast._util import validate as check
from pglp_fast._util.matrices import as_csr
from pglp_fast.errors import InvalidTransition

if TYPE_CHECKING:
    import sparse

_ROW_SUM = 1e-9  # how far from 1 a row may sum ...
_UNITS = 16  # ... and, in float32 or float16, how many units of rounding


def chains_of(transitions: Any, n: int, unseen: str) -> list[Chain]:
    """One row-stochastic matrix for each period over n locations.

    Parameters
    ----------
    transitions : SciPy sparse, ``sparse`` array or array_like
        (from, to) or (period, from, to).
    unseen : {"error", "stay"}
        What a row without any entry means.

    Notes
    -----
    Rows must sum to 1 within 1e-9. Rows in single or half precision must within 16 units of their
    rounding, and are divided by their sums in double precision.
    """
    array = _as_numbers(transitions)
    shape = array.shape
    several = len(shape) == 3 and shape[0] != 1
    if shape[:-2] == (0,):
        raise InvalidTransition("transitions has no period at all: give one matrix or more")
    if shape[-2:] != (n, n):
        where = " of period 0" if several else ""
        raise InvalidTransition(
            f"the matrix{where} is {shape[-2]} x {shape[-1]}, but there are {n} locations: "
            f"it must be {n} x {n}"
        )
    coarse = array.dtype.kind == "f" and array.dtype.itemsize < 8
    within = _UNITS * float(np.finfo(array.dtype).eps) if coarse else _ROW_SUM
    csr = _validated(_stacked(array), n, several, unseen, within)
    if coarse:
        csr.data /= np.repeat(csr.sum(axis=1), np.diff(csr.indptr))
    return split_periods(csr)


def split_periods(stacked: Any) -> list[Chain]:
    """The matrix of each period of a stacked CSR matrix."""
    n = stacked.shape[1]
    stacked.sum_duplicates()
    stacked.sort_indices()
    starts = stacked.indptr[::n]
    return [
        Chain(
            (stacked.indptr[k * n : (k + 1) * n + 1] - a).astype(np.int64),
            stacked.indices[a:b].astype(np.int32),
            stacked.data[a:b].astype(np.float64),
        )
        for k, (a, b) in enumerate(pairwise(starts))
    ]


def stay(rows: NDArray[np.bool_], n: int) -> Any:
    """A stacked matrix with 1 for staying in each of the rows that are marked."""
    import scipy.sparse

    at = np.flatnonzero(rows)
    ones = scipy.sparse.coo_array((np.ones(len(at)), (at, at % n)), shape=(len(rows), n))
    return ones.tocsr()


def as_sparse(chains: list[Chain]) -> "sparse.COO":
    """The matrices of all periods as one ``sparse`` array (period, from, to)."""
    import sparse

    n = len(chains[0].indptr) - 1
    period = np.repeat(np.arange(len(chains)), [len(c.data) for c in chains])
    origin = np.concatenate([np.repeat(np.arange(n), np.diff(c.indptr)) for c in chains])
    target = np.concatenate([c.indices for c in chains])
    return sparse.COO(
        np.stack([period, origin, target]),
        np.concatenate([c.data for c in chains]),
        shape=(len(chains), n, n),
        has_duplicates=False,
        sorted=True,
    )


def _as_numbers(transitions: Any) -> Any:
    """Real numbers (from, to) or (period, from, to): SciPy sparse, ``sparse.COO`` or dense."""
    import scipy.sparse

    if scipy.sparse.issparse(transitions):
        array = transitions
    # nobody can have made such an array without importing the package: do not pay for it otherwise
    elif type(transitions).__module__.partition(".")[0] == "sparse":
        import sparse

        by_rows = isinstance(transitions, sparse.GCXS) and transitions.compressed_axes == (0, 1)
        array = transitions if by_rows and transitions.ndim == 3 else sparse.asCOO(transitions)
        if array.fill_value != 0:
            raise InvalidTransition(
                f"transitions has {array.fill_value} where it has no entry: that must be 0"
            )
    else:
        array = check.as_array(transitions, "transitions", InvalidTransition)
    if array.dtype.kind not in "biuf":
        raise InvalidTransition(
            "transitions must be a matrix of real numbers, got "
            f"{type(transitions).__name__} of dtype {array.dtype}"
        )
    if array.ndim not in (2, 3):
        raise InvalidTransition(
            f"transitions must be (from, to) or (period, from, to), got {array.ndim} dimensions"
        )
    return array


def _stacked(array: Any) -> Any:
    """All periods as one CSR matrix of our own."""
    if hasattr(array, "compressed_axes"):  # a GCXS that is laid out like that
        import scipy.sparse

        shape = (array.shape[0] * array.shape[1], array.shape[2])
        rows = scipy.sparse.csr_array((array.data, array.indices, array.indptr), shape=shape)
        return as_csr(rows, "transitions", InvalidTransition)
    flat = array if array.ndim == 2 else array.reshape((-1, array.shape[-1]))
    if hasattr(flat, "to_scipy_sparse"):
        flat = flat.to_scipy_sparse()
    return as_csr(flat, "transitions", InvalidTransition)


def _validated(csr: Any, n: int, several: bool, unseen: str, within: float) -> Any:
    def where(row: int) -> str:
        return f" of period {row // n}" if several else ""

    csr.sum_duplicates()
    bad = np.flatnonzero(~(csr.data >= 0) | ~np.isfinite(csr.data))
    if bad.size:
        row = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
        raise InvalidTransition(
            f"entry ({row % n}, {csr.indices[bad[0]]}){where(row)} is {csr.data[bad[0]]}: "
            "probabilities are finite and not negative"
        )
    csr.eliminate_zeros()
    empty = np.diff(csr.indptr) == 0
    if empty.any() and unseen == "stay":
        csr = csr + stay(empty, n)
    sums = np.asarray(csr.sum(axis=1)).reshape(-1)
    off = np.flatnonzero(np.abs(sums - 1) > within)
    if off.size:
        row = int(off[0])
        hint = "give it an entry, or pass unseen='stay'" if empty[row] else "divide it by its sum"
        raise InvalidTransition(
            f"row {row % n}{where(row)} sums to {sums[row]:.12g}, not 1: {hint}"
        )
    return csr


def stack(
    chains: list[Chain],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """(indptr by period, indices, data) of all matrices end to end; no copy of a single one."""
    if len(chains) == 1:
        return chains[0].indptr[None], chains[0].indices, chains[0].data
    offsets = np.cumsum([0] + [len(c.data) for c in chains[:-1]])
    return (
        np.stack([c.indptr + offset for c, offset in zip(chains, offsets, strict=True)]),
        np.concatenate([c.indices for c in chains]),
        np.concatenate([c.data for c in chains]),
    )


def fault_of(chain: Chain, n: int) -> str:
    """What is wrong with a matrix that was read from a file, in words; empty if it is sound.

    Kernels trust their arrays: indices off the map would read and write anywhere."""
    indptr, indices, data = chain
    if (indptr.dtype, indices.dtype, data.dtype) != (np.int64, np.int32, np.float64):
        return f"it has arrays of {indptr.dtype}, {indices.dtype} and {data.dtype}"
    if indptr.shape != (n + 1,) or indices.shape != data.shape or data.ndim != 1:
        return f"its arrays do not fit {n} locations"
    if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 1).any():
        return "its rows do not lie end to end"
    if len(data) and (indices.min() < 0 or indices.max() >= n):
        return f"it moves to location {indices[(indices < 0) | (indices >= n)][0]}"
    begins = np.zeros(len(indices), bool)
    begins[indptr[:-1]] = True  # the first entry of a row may be below the last of the one before
    if not begins[1:][indices[1:] <= indices[:-1]].all():
        return "the moves of a row are not in order"
    if not (np.isfinite(data) & (data > 0)).all():
        return "it has a probability that is not above 0"
    sums = np.add.reduceat(data, indptr[:-1])
    if np.abs(sums - 1).max() > _ROW_SUM:
        return f"row {np.argmax(np.abs(sums - 1))} does not sum to 1"
    return ""
