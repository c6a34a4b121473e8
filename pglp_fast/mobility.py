"""How people move: a Markov chain that the adversary knows (spec section 7)."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import graph as graph_kernels
from ._kernels import hmm
from .errors import InvalidParameter, InvalidTransition
from .files import read_arrays, write_arrays
from .locations import Grid, Locations
from .threads import run_ranges

_ROW_SUM = 1e-9  # how far from 1 a row may sum
_KIND = "mobility model"


class MobilityModel:
    """Transition probabilities between locations, one matrix for all times or one for each period of the day.

    Parameters
    ----------
    locations : the map
    transitions : row-stochastic; a SciPy sparse matrix or dense array (N, N), or a ``sparse`` array (period, from, to).
        The entries that are there, and not zero, are the moves that exist: the adversary's domain is built from those,
        never from how small they are.
    unseen : what a row without any entry means: "error", or "stay" (the user stays there)

    Attributes
    ----------
    notes : what ``save`` was told to keep beside the model, empty otherwise
    """

    notes: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, locations: Locations, transitions: Any, *, unseen: str = "error"):
        check.choice(unseen, "unseen", ("error", "stay"))
        self.locations = locations
        matrices = _split(transitions)
        self.chains = [
            _validated(locations.size, m, period if len(matrices) > 1 else None, unseen) for period, m in enumerate(matrices)
        ]

    @property
    def periods(self) -> int:
        """Number of matrices: the move from step t to t + 1 takes number ``t % periods`` unless periods are given."""
        return len(self.chains)

    def matrix(self, period: int = 0) -> Any:
        """Transitions of a period as a SciPy CSR array."""
        import scipy.sparse

        chain = self.chains[check.whole(period, "period", 0, self.periods - 1)]
        n = self.locations.size
        return scipy.sparse.csr_array((chain.data, chain.indices, chain.indptr), shape=(n, n))

    def period_of(self, times: ArrayLike) -> NDArray[np.int64]:
        """The period of each moment, the day cut into ``periods`` equal parts: for ``periods=`` in ``TraceReleaser.run``.

        ``times``: datetime64 (or anything NumPy makes one of), or seconds since some midnight. Time zones are the caller's.
        """
        return day_period(times, self.periods)

    # -- learning

    @classmethod
    def fit(
        cls,
        locations: Locations,
        traces: ArrayLike | Sequence[ArrayLike],
        *,
        minimum_count: int = 1,
        unseen: str = "stay",
        smoothing: str | None = None,
        pseudo_count: float = 1.0,
        periods: int = 1,
        period_of_step: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> "MobilityModel":
        """Count moves in traces.

        Parameters
        ----------
        traces : an int array (users, T) with -1 for missing, or a list of int arrays; a move is two observed cells in a row
        minimum_count : moves seen less often are dropped
        unseen : rows never seen: "stay", or "neighbours8" (stay or go to one of the eight around, evenly; on a Grid)
        smoothing : None: no move is made possible that was not seen. "neighbours8": ``pseudo_count`` more of staying
            and of each move to one of the eight around, in every row
        periods : matrices to learn; the move from step t goes to matrix ``t % periods`` unless told
        period_of_step : period of each entry of ``traces``, in the same form, or (T,) for all users of an array; from
            timestamps with ``day_period``

        Notes
        -----
        A model fitted on the very traces that are then released is not public knowledge; fit it on other people's.
        """
        import scipy.sparse

        n = locations.size
        check.whole(minimum_count, "minimum_count", 1)
        check.choice(unseen, "unseen", ("stay", "neighbours8"))
        if smoothing is not None:
            check.choice(smoothing, "smoothing", ("neighbours8",))
        check.positive(pseudo_count, "pseudo_count")
        check.whole(periods, "periods", 1)
        origin, target, step = _moves(locations, traces, period_of_step, periods)
        around: Any = _around(locations) if "neighbours8" in (unseen, smoothing) else None
        matrices = []
        for period in range(periods):
            now = step == period
            ones = np.ones(int(now.sum()))
            counts = scipy.sparse.coo_array((ones, (origin[now], target[now])), shape=(n, n)).tocsr()
            counts.data[counts.data < minimum_count] = 0
            counts.eliminate_zeros()
            if smoothing is not None:
                counts = counts + pseudo_count * around
            total = counts.sum(axis=1)
            bare = scipy.sparse.diags_array((total == 0).astype(float))
            counts = counts + (bare @ around if unseen == "neighbours8" else bare)
            counts = scipy.sparse.csr_array(counts)
            counts.data /= np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
            matrices.append(counts)
        model = cls.__new__(cls)
        model.locations = locations
        model.chains = [_chain(m) for m in matrices]
        return model

    # -- using

    def forward(self, p: ArrayLike, *, period: int = 0) -> NDArray[np.float64]:
        """p M: the distribution one step later, for one dense distribution (N,) or for many (users, N)."""
        chain = self._transposed(check.whole(period, "period", 0, self.periods - 1))
        array = np.ascontiguousarray(p, dtype=np.float64)
        n = self.locations.size
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise InvalidTransition(f"p must have shape ({n},) or (users, {n}), got {array.shape}")
        if array.ndim == 1:
            out = np.empty(n)
            run_ranges(lambda start, stop: hmm.gather(*chain, array, start, stop, out), n)
            return out
        columns, result = np.empty((n, len(array))), np.empty((n, len(array)))
        run_ranges(lambda start, stop: hmm.transpose(array, start, stop, columns), n, smallest=1 << 12)
        run_ranges(lambda start, stop: hmm.gather_batch(*chain, columns, start, stop, result), n, smallest=1 << 12)
        return result.T

    def forward_sparse(
        self, cells: ArrayLike, p: ArrayLike, *, period: int = 0, workspace: Any = None
    ) -> tuple[check.Cells, NDArray[np.float64]]:
        """p M for a p that is zero but at ``cells``: (cells, probabilities).

        Costs what is touched; pass ``workspace()`` when calling often.
        """
        chain = self.chains[check.whole(period, "period", 0, self.periods - 1)]
        at = check.cells(cells, self.locations.size).reshape(-1)
        values = np.ascontiguousarray(p, dtype=np.float64)
        if values.shape != at.shape:
            raise InvalidTransition(f"p has shape {values.shape} for {at.size} cells: give one probability for each")
        found, moved = hmm.forward_few(*chain, at, values, *(self.workspace() if workspace is None else workspace))
        return found, moved

    def workspace(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Scratch space for ``forward_sparse``."""
        n = self.locations.size
        return np.zeros(-(-n // 64), np.uint64), np.zeros(n)

    def _transposed(self, period: int) -> hmm.Chain:
        cache: dict[int, hmm.Chain] = self.__dict__.setdefault("_transposes", {})
        if period not in cache:
            cache[period] = _chain(self.matrix(period).T.tocsr())
        return cache[period]

    def stationary(self, *, tolerance: float = 1e-12, steps: int = 1000) -> NDArray[np.float64]:
        """A distribution that the chain keeps: exact where the chain is reversible, else what is left after many lazy
        steps from uniform.

        A step is lazy, half of it stays, so that a periodic chain settles too and a place that can only be left keeps
        some mass. With several periods a step is a whole day.
        """
        if self.periods == 1:
            exact = _reversible(self.matrix())
            if exact is not None:
                return exact
        p = np.full(self.locations.size, 1.0 / self.locations.size)
        for _ in range(steps):
            moved = p
            for period in range(self.periods):
                moved = self.forward(moved, period=period)
            moved = 0.5 * (p + moved)
            moved /= moved.sum()
            change = float(np.abs(moved - p).sum())
            p = moved
            if change < tolerance:
                break
        return p

    # -- keeping

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the model to one file, atomically; a Grid goes with it. ``notes``: anything JSON takes, kept as ``.notes``."""
        arrays = {f"{name}{k}": getattr(c, name) for k, c in enumerate(self.chains) for name in c._fields}
        facts = {"periods": self.periods, "locations": self.locations.size, "map": _map_digest(self.locations)}
        if isinstance(self.locations, Grid):
            facts["grid"] = self.locations.to_dict()
        write_arrays(path, _KIND, arrays, {**facts, "notes": dict(self.notes if notes is None else notes)})

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "MobilityModel":
        """Read a model together with the Grid it was saved over."""
        arrays, facts = read_arrays(path, _KIND)
        if "grid" not in facts:
            raise InvalidTransition(f"{os.fspath(path)} does not hold its map: give it to MobilityModel.load(locations, path)")
        return cls._read(Grid.from_dict(facts["grid"]), path, arrays, facts)

    @classmethod
    def load(cls, locations: Locations, path: str | os.PathLike[str]) -> "MobilityModel":
        """Read a model that was saved over the same map."""
        return cls._read(locations, path, *read_arrays(path, _KIND))

    @classmethod
    def _read(
        cls, locations: Locations, path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], facts: dict[str, Any]
    ) -> "MobilityModel":
        if facts["locations"] != locations.size:
            raise InvalidTransition(
                f"{os.fspath(path)} is a model of {facts['locations']} locations, the map has {locations.size}"
            )
        if facts["map"] != _map_digest(locations):
            raise InvalidTransition(f"{os.fspath(path)} is a model of another map: give the map it was saved with")
        model = cls.__new__(cls)
        model.locations = locations
        model.chains = [hmm.Chain(*(arrays[f"{name}{k}"] for name in hmm.Chain._fields)) for k in range(facts["periods"])]
        model.notes = facts.get("notes", {})
        return model

    def __repr__(self) -> str:
        return f"MobilityModel({self.locations!r}, {sum(len(c.data) for c in self.chains)} moves, periods={self.periods})"


def _map_digest(locations: Locations) -> str:
    digest = hashlib.sha256(repr(locations.scale).encode())
    digest.update(np.ascontiguousarray(locations.lattice).tobytes())
    return digest.hexdigest()


def _chain(csr: Any) -> hmm.Chain:
    csr.sum_duplicates()
    csr.sort_indices()
    return hmm.Chain(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data.astype(np.float64))


def _split(transitions: Any) -> list[Any]:
    """One two-dimensional matrix for each period."""
    import scipy.sparse

    if scipy.sparse.issparse(transitions):
        return [scipy.sparse.csr_array(transitions, copy=True)]  # tidied in place below
    array = transitions.tocoo() if hasattr(transitions, "tocoo") else transitions
    if hasattr(array, "coords") and hasattr(array, "todense"):  # the ``sparse`` package
        if array.ndim == 2:
            return [scipy.sparse.csr_array(array.to_scipy_sparse())]
        if array.ndim == 3:
            period, origin, target = np.asarray(array.coords)
            parts = [period == k for k in range(array.shape[0])]
            return [
                scipy.sparse.coo_array((np.asarray(array.data)[k], (origin[k], target[k])), shape=array.shape[1:]).tocsr()
                for k in parts
            ]
        raise InvalidTransition(f"transitions must be (from, to) or (period, from, to), got {array.ndim} dimensions")
    try:
        dense = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTransition(f"transitions must be a matrix of numbers, got {type(transitions).__name__}") from None
    if dense.ndim not in (2, 3):
        raise InvalidTransition(f"transitions must be (from, to) or (period, from, to), got {dense.ndim} dimensions")
    return [scipy.sparse.csr_array(m) for m in (dense if dense.ndim == 3 else dense[None])]


def _validated(n: int, csr: Any, period: int | None, unseen: str) -> hmm.Chain:
    import scipy.sparse

    where = "" if period is None else f" of period {period}"
    if csr.shape != (n, n):
        raise InvalidTransition(
            f"the matrix{where} is {csr.shape[0]} x {csr.shape[1]}, but there are {n} locations: it must be {n} x {n}"
        )
    csr.sum_duplicates()
    bad = np.flatnonzero(~(csr.data >= 0) | ~np.isfinite(csr.data))
    if bad.size:
        row = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
        raise InvalidTransition(
            f"entry ({row}, {csr.indices[bad[0]]}){where} is {csr.data[bad[0]]}: probabilities are finite and not negative"
        )
    csr.eliminate_zeros()
    empty = np.diff(csr.indptr) == 0
    if empty.any() and unseen == "stay":
        csr = scipy.sparse.csr_array(csr + scipy.sparse.diags_array(empty.astype(float)))
    sums = np.asarray(csr.sum(axis=1)).reshape(-1)
    off = np.flatnonzero(np.abs(sums - 1) > _ROW_SUM)
    if off.size:
        hint = "give it an entry, or pass unseen='stay'" if empty[off[0]] else "divide it by its sum"
        raise InvalidTransition(f"row {off[0]}{where} sums to {sums[off[0]]:.12g}, not 1: {hint}")
    return _chain(csr)


def day_period(times: ArrayLike, periods: int) -> NDArray[np.int64]:
    """Which of ``periods`` equal parts of the day each moment is in: datetime64, or seconds since some midnight."""
    check.whole(periods, "periods", 1)
    try:
        array = np.asarray(times)
        if array.dtype.kind not in "iufM":
            array = array.astype("datetime64[s]")
    except (TypeError, ValueError):
        raise InvalidTransition("times must be datetime64 or seconds since midnight") from None
    if np.isnat(array).any() if array.dtype.kind == "M" else not np.isfinite(array).all():
        raise InvalidTransition("times has an entry that is not a time: fill or drop it first")
    if array.dtype.kind == "M":
        array = array.astype("datetime64[s]").astype(np.int64)
    return np.asarray(np.floor(np.mod(array, 86400) * periods / 86400).astype(np.int64))


def _periods_of(row: NDArray[Any], k: int, given: Any, together: bool, periods: int) -> NDArray[Any]:
    """Period of each entry of a row of traces."""
    if given is None:
        return np.broadcast_to(np.arange(row.shape[1]) % periods, row.shape)
    labels = check.integers(given if together else np.asarray(given[k]), "period_of_step", InvalidTransition)
    if labels.shape not in (row.shape, row.shape[1:]) or (labels.size and (labels.min() < 0 or labels.max() >= periods)):
        where = "" if together else f" of trace {k}"
        raise InvalidTransition(f"period_of_step{where} must be numbers in 0..{periods - 1}, one for each entry of the traces")
    return np.broadcast_to(labels, row.shape)


def _moves(locations: Locations, traces: Any, given: Any, periods: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """(from, to, period) of every two observed cells in a row."""
    together = isinstance(traces, np.ndarray) and traces.ndim == 2
    if not together and any(np.ndim(t) != 1 for t in traces):
        raise InvalidTransition("traces must be an array (users, T) or a list of 1-d arrays: one trace is trace[None, :]")
    rows = [traces] if together else [np.asarray(t).reshape(1, -1) for t in traces]
    parts = []
    for k, row in enumerate(rows):
        array = check.integers(row, "traces")
        if array.size and (array.min() < -1 or array.max() >= locations.size):
            u, t = np.argwhere((array < -1) | (array >= locations.size))[0]
            who = k if len(rows) > 1 else u
            raise InvalidTransition(
                f"trace {who} has {array[u, t]} at step {t}: cells are 0..{locations.size - 1}, and -1 for missing"
            )
        origin, target = array[:, :-1], array[:, 1:]
        seen = (origin >= 0) & (target >= 0)
        steps = _periods_of(array, k, given, together, periods)[:, :-1]
        parts.append((origin[seen], target[seen], steps[seen]))
    if not parts:
        return (np.empty(0, np.int64),) * 3
    first, second, third = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return first, second, third


def _around(locations: Locations) -> Any:
    """Each cell and the eight around it."""
    import scipy.sparse

    if not isinstance(locations, Grid):
        raise InvalidParameter("neighbours8 needs a Grid: on Points use unseen='stay' and no smoothing")
    indptr, indices = graph_kernels.neighbours8(locations.rows, locations.cols)
    n = locations.size
    return scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n)) + scipy.sparse.eye_array(
        n, format="csr"
    )


def _reversible(csr: Any) -> NDArray[np.float64] | None:
    """The stationary distribution by detailed balance, pi_i M_ij = pi_j M_ji, along a tree.

    None where it does not hold everywhere.
    """
    from scipy.sparse import csgraph

    n = csr.shape[0]
    if n == 1:
        return np.ones(1)
    count, _ = csgraph.connected_components(csr, directed=True, connection="strong")
    if count != 1:
        return None
    order, before = csgraph.breadth_first_order(csr, 0, directed=True)
    children, parents = order[1:], before[order[1:]]
    there, back = np.asarray(csr[parents, children]).reshape(-1), np.asarray(csr[children, parents]).reshape(-1)
    if (back == 0).any():
        return None
    step = np.zeros(n)
    step[children] = np.log(there) - np.log(back)
    logs = np.zeros(n)
    hmm.sum_down(order, before, step, logs)
    pi = np.exp(logs - logs.max())
    pi /= pi.sum()
    flow = csr.multiply(pi[:, None]).tocsr()
    difference = abs(flow - flow.T)
    if difference.max() > 1e-12 * flow.max():
        return None
    return np.asarray(
        np.maximum(pi, np.nextafter(0.0, 1.0))
    )  # every place of an irreducible chain is possible, whatever underflows
