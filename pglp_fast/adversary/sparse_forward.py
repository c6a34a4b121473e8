"""One forward step of a distribution that is zero nearly everywhere.

The step takes a microsecond or two: what is checked is checked in the same call of the kernel, and
looked at again only where that refuses it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.base import markov
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter, InvalidTransition

Floats = NDArray[np.float64]


class Scratch(NamedTuple):
    """Work space for one map: an empty bitmask of locations, and a number for each."""

    words: NDArray[np.uint64]
    sums: Floats


def make_scratch(locations: int) -> Scratch:
    return Scratch(np.zeros(-(-locations // 64), np.uint64), np.zeros(locations))


def _is_scratch(given: Any, locations: int) -> bool:
    """Whether kernels may write to it."""
    if type(given) is Scratch:
        return len(given.sums) == locations
    wanted = [(np.dtype(np.uint64), (-(-locations // 64),)), (np.dtype(np.float64), (locations,))]
    parts = given if isinstance(given, tuple) else ()
    return [(getattr(a, "dtype", None), np.shape(a)) for a in parts] == wanted


def forward_sparse(
    chain: markov.Chain, cells: ArrayLike, p: ArrayLike, workspace: Any
) -> tuple[check.Cells, Floats]:
    """p M for a p that is zero but at ``cells``: (cells, probabilities)."""
    locations = len(chain.indptr) - 1
    if workspace is None:
        workspace = make_scratch(locations)
    elif not _is_scratch(workspace, locations):
        raise InvalidParameter("workspace must be what workspace() of this model gave")
    at: Any = cells
    values: Any = p
    if not (_is_plain(at, np.int64) and _is_plain(values, np.float64) and len(at) == len(values)):
        at, values = _checked(cells, p, locations)
    found, moved = markov.forward_sparse(*chain, at, values, *workspace)
    if not len(found):
        _checked(cells, p, locations)  # says what is wrong, unless there are no cells
    return found, moved


def _is_plain(given: Any, dtype: Any) -> bool:
    """Whether kernels take it as it is."""
    return (
        type(given) is np.ndarray
        and given.dtype == dtype
        and given.ndim == 1
        and (given.flags.carray)
    )


def _checked(cells: ArrayLike, p: ArrayLike, locations: int) -> tuple[NDArray[np.int64], Floats]:
    at, values = check.cells(cells, locations).reshape(-1), finite(p)
    if values.shape != at.shape:
        raise InvalidTransition(
            f"p has shape {values.shape} for {at.size} cells: give one probability for each"
        )
    return at.astype(np.int64), values


def finite(p: ArrayLike) -> Floats:
    """Numbers to multiply with the matrix."""
    array = check.floats(p, "p", InvalidTransition)
    if not np.isfinite(array).all():
        raise InvalidTransition("p has an entry that is not finite: it must be probabilities")
    return array
