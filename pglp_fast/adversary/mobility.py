"""How people move: a Markov chain that the adversary knows (spec section 7).

The transition matrix of the paper's section "Location Release via Hidden Markov Model"."""

import os
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.base import markov
from pglp_fast._util import validate as check
from pglp_fast._util.storage import read_arrays, write_arrays
from pglp_fast._util.threads import run_ranges
from pglp_fast._util.times import day_period
from pglp_fast.errors import InvalidParameter, InvalidState, InvalidTransition
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_locations
from pglp_fast.space.map_files import map_digest, place, told_place

from .fitting import fit_chains
from .private_counts import Private
from .sparse_forward import finite, forward_sparse, make_scratch
from .stationary import stationary_distribution
from .transitions import as_sparse, chains_of, fault_of, split_periods, stack

if TYPE_CHECKING:
    import sparse

_KIND = "mobility model"
_RESTORE = "it was changed after it was written; restore it from a copy, or fit it again"


class MobilityModel:
    """Transition probabilities between locations, for all times or for each period of the day.

    Parameters
    ----------
    locations : Grid or Points
        The map.
    transitions : SciPy sparse, ``sparse`` array or array_like
        Row-stochastic; (N, N), or (period, from, to) as a ``sparse`` COO or GCXS, or dense. The
        entries that are there, and not zero, are the moves that exist: the adversary's domain is
        built from those, never from how small they are. Rows sum to 1 within 1e-9; rows in float32
        or float16 within 16 units of their rounding, and are divided by their sums in float64.
    unseen : {"error", "stay"}
        What a row without any entry means; "stay": the user stays there.

    Attributes
    ----------
    notes : mapping
        What ``save`` was told to keep beside the model, empty otherwise.
    chains : list of Chain
        The matrix of each period in CSR, as kernels take it.
    """

    notes: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, locations: Locations, transitions: Any, *, unseen: str = "error"):
        check.choice(unseen, "unseen", ("error", "stay"))
        self.locations = require_locations(locations)
        self.chains = chains_of(transitions, locations.size, unseen)

    @classmethod
    def _of(cls, locations: Locations, chains: list[markov.Chain]) -> "MobilityModel":
        """A model of matrices that are known to be sound."""
        model = cls.__new__(cls)
        model.locations, model.chains = locations, chains
        return model

    @property
    def periods(self) -> int:
        """Number of matrices.

        The move from step t to t + 1 takes number ``t % periods`` unless periods are given."""
        return len(self.chains)

    @property
    def stacked(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """(indptr by period, indices, data) of all matrices end to end, as kernels take them."""
        if "_stacked" not in self.__dict__:
            self._stacked = stack(self.chains)
        return self._stacked

    def matrix(self, period: int = 0) -> Any:
        """Transitions of a period as a SciPy CSR array."""
        import scipy.sparse

        chain = self.chains[check.whole(period, "period", 0, self.periods - 1)]
        n = self.locations.size
        return scipy.sparse.csr_array((chain.data, chain.indices, chain.indptr), shape=(n, n))

    @property
    def transitions(self) -> "sparse.COO":
        """Transitions of all periods as a ``sparse.COO`` array (period, from, to), a copy."""
        return as_sparse(self.chains)

    def period_of(self, times: ArrayLike) -> NDArray[np.int64]:
        """The period of each moment, the day cut into ``periods`` equal parts.

        For ``periods=`` in ``TraceReleaser.run``.

        Parameters
        ----------
        times : array_like
            datetime64 (or anything NumPy makes one of), or seconds since some midnight. Time zones
            are the caller's.
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
        private: float | None = None,
        contribution: int = 20,
        persons: ArrayLike | None = None,
        rng: int | None = None,
    ) -> "MobilityModel":
        """Count moves in traces.

        Parameters
        ----------
        locations : Grid or Points
            The map.
        traces : array_like of int
            (users, T) with -1 for missing, or a list of 1-d arrays; a move is two observed cells in
            a row. ``Traces`` must have been resampled on the same map.
        minimum_count : int
            Moves seen less often are dropped.
        unseen : {"stay", "neighbours8"}
            Rows never seen: stay, or stay or go to one of the eight around, evenly (on a Grid).
        smoothing : {None, "neighbours8"}
            None: no move is made possible that was not seen. "neighbours8": ``pseudo_count`` more
            of staying and of each move to one of the eight around, in every row.
        pseudo_count : float
            1e-12 to 1e12.
        periods : int
            Matrices to learn, at most one for each second of a day; the move from step t goes to
            matrix ``t % periods`` unless told.
        period_of_step : array_like of int, optional
            Period of each entry of ``traces``, in the same form, or (T,) for all users of an array;
            from timestamps with ``day_period``.
        private : float, optional
            An epsilon: the model then satisfies epsilon-differential privacy for persons who are
            added or removed, and may be published. Noise is added to the counts of staying and of
            the moves to the eight around (on a Grid), seen or not, and other moves are left out;
            ``pseudo_count`` is then always added. Kept as ``notes["private"]``.
        contribution : int
            With ``private``: moves that a person counts for, the first ones. More is more signal
            of active persons and more noise for all: its standard deviation is about 1.4
            ``contribution / private``.
        persons : array_like, optional
            With ``private``: whose each trace is. ``Traces`` know; else each trace is of a person
            of its own.
        rng : int, optional
            With ``private``: for a model that repeats; whoever knows it can subtract the noise.

        Notes
        -----
        M(i, j) = n(i, j) / sum_k n(i, k), the maximum likelihood estimate. A model fitted on the
        very traces that are then released is not public knowledge; fit it on other people's.
        """
        how = None if private is None else Private(private, contribution, rng)
        if how is None and (persons is not None or rng is not None):
            raise InvalidParameter("persons and rng are for private=EPSILON: leave them out")
        chains = fit_chains(
            locations,
            traces,
            period_of_step,
            minimum_count=minimum_count,
            unseen=unseen,
            smoothing=smoothing,
            pseudo_count=pseudo_count,
            periods=periods,
            private=how,
            persons=persons,
        )
        model = cls._of(locations, chains)
        if how is not None:
            model.notes = {"private": {"epsilon": how.epsilon, "contribution": how.contribution}}
        return model

    # -- using

    def forward(self, p: ArrayLike, *, period: int = 0) -> NDArray[np.float64]:
        """p M: the distribution one step later, of one dense distribution (N,) or of many.

        Parameters
        ----------
        p : array_like of float
            (N,) or (users, N).
        period : int
        """
        chain = self._transposed(check.whole(period, "period", 0, self.periods - 1))
        array = finite(p)
        n = self.locations.size
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise InvalidTransition(f"p must have shape ({n},) or (users, {n}), got {array.shape}")
        if array.ndim == 1:
            out = np.empty(n)
            run_ranges(lambda start, stop: markov.gather(*chain, array, start, stop, out), n)
            return out
        columns, result = np.empty((n, len(array))), np.empty((n, len(array)))
        run_ranges(
            lambda start, stop: markov.transpose(array, start, stop, columns), n, smallest=1 << 12
        )
        run_ranges(
            lambda start, stop: markov.gather_batch(*chain, columns, start, stop, result),
            n,
            smallest=1 << 12,
        )
        return result.T

    def forward_sparse(
        self, cells: ArrayLike, p: ArrayLike, *, period: int = 0, workspace: Any = None
    ) -> tuple[check.Cells, NDArray[np.float64]]:
        """p M for a p that is zero but at ``cells``: (cells, probabilities).

        Costs what is touched; pass ``workspace()`` when calling often."""
        k = check.whole(period, "period", 0, self.periods - 1)
        return forward_sparse(self.chains[k], cells, p, workspace)

    def workspace(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Scratch space for ``forward_sparse``."""
        return make_scratch(self.locations.size)

    def _transposed(self, period: int) -> markov.Chain:
        cache: dict[int, markov.Chain] = self.__dict__.setdefault("_transposes", {})
        if period not in cache:
            cache[period] = split_periods(self.matrix(period).T.tocsr())[0]
        return cache[period]

    def stationary(self, *, tolerance: float = 1e-12, steps: int = 2000) -> NDArray[np.float64]:
        """Where people are in the long run, of a uniform start; worked out once.

        A distribution that the chain keeps. It is exact but for rounding, by detailed balance or
        elimination, and on large maps by aggregation until it is estimated to be less than
        ``tolerance`` off in L1. A warning says where that is not reached.

        Notes
        -----
        A chain that falls into parts keeps in each part who begins or arrives there. A place that
        can only be left has 1e-290, for it is possible. With several periods
        it is the distribution at the first of them, once days repeat. ``steps`` bounds the work
        where more than 20,000 places can be left for ever."""
        how = check.positive(tolerance, "tolerance"), check.whole(steps, "steps", 0)
        found: dict[Any, tuple[NDArray[np.float64], float]] = self.__dict__.setdefault(
            "_stationary", {}
        )
        if how not in found:
            matrices = [self.matrix(period) for period in range(self.periods)]
            lattice = self.locations.lattice.astype(np.int64)
            found[how] = stationary_distribution(matrices, lattice, *how)
        p, off = found[how]
        if off > how[0]:
            warnings.warn(
                f"the stationary distribution is still {off:.1g} off in L1, not {how[0]:g}: the "
                "chain settles slowly. Give priors=, or more steps=",
                RuntimeWarning,
                stacklevel=2,
            )
        return p.copy()

    # -- keeping

    def __getstate__(self) -> dict[str, Any]:
        """Without what is quickly made again: a model is sent to many processes."""
        dropped = ("_stacked", "_transposes", "_stationary_rows")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the model to one file, atomically; a Grid goes with it.

        ``notes``: anything JSON takes, kept as ``.notes``."""
        arrays = {
            f"{name}{k}": getattr(c, name) for k, c in enumerate(self.chains) for name in c._fields
        }
        facts = {
            "periods": self.periods,
            "locations": self.locations.size,
            "map": map_digest(self.locations),
            "place": place(self.locations),
        }
        if isinstance(self.locations, Grid):
            facts["grid"] = self.locations.to_dict()
        told = self.notes if notes is None else notes
        check.instance(told, Mapping, "notes must be a mapping", "use a dict")  # type: ignore[type-abstract]
        write_arrays(path, _KIND, arrays, {**facts, "notes": dict(told)})

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "MobilityModel":
        """Read a model together with the Grid it was saved over."""
        arrays, facts = read_arrays(path, _KIND)
        if facts.get("grid") is None:
            raise InvalidTransition(
                f"{os.fspath(path)} does not hold its map: give it to "
                "MobilityModel.load(locations, path)"
            )
        return cls._read(Grid.from_dict(facts["grid"]), path, arrays, facts)

    @classmethod
    def load(cls, locations: Locations, path: str | os.PathLike[str]) -> "MobilityModel":
        """Read a model that was saved over the same map."""
        return cls._read(locations, path, *read_arrays(path, _KIND))

    @classmethod
    def _read(
        cls,
        locations: Locations,
        path: str | os.PathLike[str],
        arrays: dict[str, NDArray[Any]],
        facts: dict[str, Any],
    ) -> "MobilityModel":
        name, size = os.fspath(path), require_locations(locations).size
        if facts.get("locations") != size:
            raise InvalidTransition(
                f"{name} is a model of {check.brief(facts.get('locations'))} locations, the map "
                f"has {size}"
            )
        chains = _chains(name, arrays, size)
        notes = facts.get("notes", {})
        if facts.get("periods") != len(chains) or not isinstance(notes, dict):
            raise InvalidState(f"{name} contradicts itself: {_RESTORE}")
        if facts.get("map") != map_digest(locations):
            raise InvalidTransition(
                f"{name} is a model of another map: give the map it was saved with"
            )
        if told_place(facts) not in (None, place(locations)):
            raise InvalidTransition(
                f"{name} is a model of a map of the same shape that lies elsewhere: give the map "
                "it was saved with"
            )
        model = cls._of(locations, chains)
        model.notes = notes
        return model

    def __repr__(self) -> str:
        return (
            f"MobilityModel({self.locations!r}, {sum(len(c.data) for c in self.chains)} moves, "
            f"periods={self.periods})"
        )


def _chains(name: str, arrays: dict[str, NDArray[Any]], size: int) -> list[markov.Chain]:
    """The matrices of a file, each checked whole."""
    fields = markov.Chain._fields
    chains = []
    for k in range(max(1, len(arrays) // len(fields))):
        try:
            chain = markov.Chain(*(arrays[f"{field}{k}"] for field in fields))
        except KeyError as missing:
            raise InvalidState(f"{name} has no array {missing}: {_RESTORE}") from None
        fault = fault_of(chain, size)
        if fault:
            raise InvalidState(f"the matrix of period {k} in {name} is none: {fault}; {_RESTORE}")
        chains.append(chain)
    return chains
