"""Transition probabilities learnt from traces: moves are counted and rows divided by their sums."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.markov import Chain
from pglp_fast._kernels.policy import graph as graph_kernels
from pglp_fast._util import validate as check
from pglp_fast._util.times import MAX_PERIODS
from pglp_fast.errors import InvalidParameter, InvalidTransition
from pglp_fast.io.labels import person_codes
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_locations, require_on_map

from .private_counts import Private
from .transitions import split_periods, stay

_MOST_COUNTED = 2**53  # moves that float64 counts exactly


def fit_chains(
    locations: Locations,
    traces: Any,
    period_of_step: Any,
    *,
    minimum_count: int,
    unseen: str,
    smoothing: str | None,
    pseudo_count: float,
    periods: int,
    private: Private | None = None,
    persons: Any = None,
) -> list[Chain]:
    """One matrix for each period; see ``MobilityModel.fit``."""
    import scipy.sparse

    n = require_locations(locations).size
    require_on_map(traces, locations, InvalidTransition)
    check.whole(minimum_count, "minimum_count", 1, _MOST_COUNTED)
    check.choice(unseen, "unseen", ("stay", "neighbours8"))
    if smoothing is not None:
        check.choice(smoothing, "smoothing", ("neighbours8",))
    why = "beyond that it drowns the counts, or drowns in them"
    extra = check.within(pseudo_count, "pseudo_count", 1e-12, 1e12, why)
    check.whole(periods, "periods", 1, MAX_PERIODS)
    origin, target, period, row = _moves(locations, traces, period_of_step, periods)
    if private is not None:
        smoothing = "neighbours8"
    around: Any = _around(locations) if "neighbours8" in (unseen, smoothing) else None
    moves = _Moves(period * n + origin, target, row)
    if private is None:
        counts: Any = moves.counted((periods * n, n))
    else:
        candidates = scipy.sparse.csr_array(scipy.sparse.vstack([around] * periods))
        counts = _private_counts(moves, candidates, private, _persons_of(traces, persons))
    counts.data[counts.data < minimum_count] = 0
    counts.eliminate_zeros()
    if smoothing is not None:
        counts = counts + extra * scipy.sparse.vstack([around] * periods)
    bare = stay(np.asarray(counts.sum(axis=1)).reshape(-1) == 0, n)
    counts = scipy.sparse.csr_array(counts + (bare @ around if unseen == "neighbours8" else bare))
    counts.data /= np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
    return split_periods(counts)


class _Moves(NamedTuple):
    """Moves one by one: rows and columns of the matrix of counts, and the trace of each."""

    origin: NDArray[np.int64]
    target: NDArray[np.int64]
    trace: NDArray[np.int64]

    def counted(self, shape: tuple[int, int]) -> Any:
        """How often each was made, CSR."""
        import scipy.sparse

        ones = np.ones(len(self.origin))
        return scipy.sparse.coo_array((ones, (self.origin, self.target)), shape=shape).tocsr()


def _private_counts(
    moves: _Moves, candidates: Any, private: Private, person: NDArray[np.int64] | None
) -> Any:
    """Bounded counts of candidate moves with noise on every candidate; below 0 is 0."""
    import scipy.sparse

    # entries of the candidates are numbered, row by row: columns ascend within a row
    candidates.sort_indices()
    row = np.repeat(np.arange(candidates.shape[0]), np.diff(candidates.indptr))
    width = np.int64(candidates.shape[1])
    keys, wanted = row * width + candidates.indices, moves.origin * width + moves.target
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    among = keys[at] == wanted
    who = moves.trace if person is None else person[moves.trace]
    kept = private.bounded(who[among])
    exact = np.bincount(at[among][kept], minlength=len(keys))
    noisy = np.maximum(exact + private.noise(len(keys)), 0).astype(np.float64)
    shape = candidates.indices, candidates.indptr
    return scipy.sparse.csr_array((noisy, *shape), shape=candidates.shape)


def _persons_of(traces: Any, given: Any) -> NDArray[np.int64] | None:
    """A number for the person of each trace; None: each trace is of a person of its own."""
    if given is None:
        own = getattr(traces, "user", None)
        return None if own is None else np.asarray(own.codes, np.int64)
    names = check.listed(given, "persons", InvalidTransition)
    if len(names) != len(traces):
        raise InvalidTransition(
            f"persons has {len(names)} names for {len(traces)} traces: give one for each trace"
        )
    try:
        return person_codes(names)
    except ValueError as error:
        raise InvalidTransition(f"persons must be whole numbers or text: {error}") from None


def _periods_of(
    row: NDArray[Any], k: int, given: Any, together: bool, periods: int
) -> NDArray[Any]:
    """Period of each entry of a row of traces."""
    if given is None:
        return np.broadcast_to(np.arange(row.shape[1]) % periods, row.shape)
    labels = check.integers(given if together else given[k], "period_of_step", InvalidTransition)
    if labels.shape not in (row.shape, row.shape[1:]) or (
        labels.size and (labels.min() < 0 or labels.max() >= periods)
    ):
        where = "" if together else f" of trace {k}"
        raise InvalidTransition(
            f"period_of_step{where} must be numbers in 0..{periods - 1}, one for each entry of "
            "the traces"
        )
    return np.broadcast_to(labels, row.shape)


def _moves(
    locations: Locations, traces: Any, given: Any, periods: int
) -> tuple[NDArray[np.int64], ...]:
    """(from, to, period, number of the trace) of every two observed cells in a row."""
    together = isinstance(traces, np.ndarray) and traces.ndim == 2
    rows = [traces] if together else check.listed(traces, "traces", InvalidTransition)
    if not together and given is not None:
        given = check.listed(given, "period_of_step", InvalidTransition)
        if len(given) != len(rows):
            raise InvalidTransition(
                f"period_of_step is for {len(given)} traces, but there are {len(rows)}"
            )
    parts = []
    for k, row in enumerate(rows):

        def where(cell: int, u: int, t: int, k: int = k) -> str:
            return f"trace {k if len(rows) > 1 else u} has {cell} at step {t}"

        cells = check.integers(row, "traces")
        if not together and cells.ndim != 1:
            raise InvalidTransition(
                "traces must be an array (users, T) or a list of 1-d arrays: one trace is "
                "trace[None, :]"
            )
        array = check.cells_or_missing(
            np.atleast_2d(cells), locations.size, "traces", error=InvalidTransition, where=where
        )
        origin, target = array[:, :-1], array[:, 1:]
        seen = (origin >= 0) & (target >= 0)
        steps = _periods_of(array, k, given, together, periods)[:, :-1]
        which = np.broadcast_to(k + np.arange(len(array))[:, None], seen.shape)
        parts.append((origin[seen], target[seen], steps[seen], which[seen]))
    if not sum(np.size(row) for row in rows):
        raise InvalidTransition(
            "there are no traces to fit: give at least one, as an array (users, T) or a list of "
            "1-d arrays"
        )
    return tuple(np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))


def _around(locations: Locations) -> Any:
    """Each cell and the eight around it."""
    import scipy.sparse

    if not isinstance(locations, Grid):
        raise InvalidParameter(
            "neighbours8 needs a Grid: on Points use unseen='stay' and no smoothing"
        )
    indptr, indices = graph_kernels.neighbours8(locations.rows, locations.cols)
    n = locations.size
    ones = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    return ones + scipy.sparse.eye_array(n, format="csr")
