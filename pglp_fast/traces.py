"""Releasing traces: Algorithm 5 for a whole city at once, or one step at a time."""

import hashlib
import os
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import local, patterns
from ._kernels import repair as repair_kernels
from ._kernels import trace as kernels
from .errors import BudgetExceeded, InvalidParameter, InvalidState, InvalidTransition
from .exposure import STRATEGIES, kernel_policy
from .files import read_arrays
from .groups import CALIBRATIONS
from .mobility import MobilityModel
from .policy import PolicyGraph, require_policy
from .priors import make_priors
from .progress import Progress
from .randomness import make_key
from .stream import KIND, Stream, TraceResult, empty_results

MECHANISMS = {"ppim": kernels.PPIM, "plm": kernels.PLM}
_BLOCK = 4096  # users that ``run`` takes through all steps together
_BUDGET = 1 + 1e-12  # so that ten times 0.1 fits in 1


class TraceReleaser:
    """Private traces under a policy and against an adversary who knows how people move (Algorithm 5).

    Parameters
    ----------
    graph : the policy G; at each step the constrained graph is made from it anew
    model : what the adversary knows about movement
    epsilon : for each release
    mechanism : "ppim" or "plm"
    calibration : "component" or "graph"
    repair : strategy for isolated locations: "min-area", "nearest", "arbitrary", "min-error"
    delta : 0: C_t is everything possible. Above: the smallest set of mass 1 - delta
    likelihood : "exact", or "density": the density at the released location, faster; it changes the adversary's
        posterior, never the guarantee
    budget : total epsilon for each user of a stream (or a ``run``, which is one); a step that would exceed it is refused
        before any noise is drawn
    rng : None for a fresh key from the operating system for each stream; a seed for reproducible research

    Notes
    -----
    Noise is drawn by the geometric sampler. A release at step t of user u is a pure function of (key, u, t, input).
    """

    def __init__(
        self,
        graph: PolicyGraph,
        model: MobilityModel,
        *,
        epsilon: float,
        mechanism: str = "ppim",
        calibration: str = "component",
        repair: str = "min-area",
        delta: float = 0.0,
        likelihood: str = "exact",
        budget: float | None = None,
        rng: int | None = None,
    ):
        require_policy(graph)
        if not isinstance(model, MobilityModel):
            raise InvalidTransition(f"the second argument must be a MobilityModel, got {type(model).__name__}")
        if not model.locations.same_map(graph.locations):
            raise InvalidTransition(f"the model is over {model.locations.size} locations, the policy over {graph.locations.size}")
        self.graph, self.model, self.locations = graph, model, graph.locations
        self.epsilon = check.epsilon(epsilon)
        self.mechanism = check.choice(mechanism, "mechanism", MECHANISMS)
        self.calibration = check.choice(calibration, "calibration", CALIBRATIONS)
        self.repair = check.choice(repair, "repair", STRATEGIES)
        self.likelihood = check.choice(likelihood, "likelihood", ("exact", "density"))
        try:
            self.delta = float(delta)
        except (TypeError, ValueError):
            raise InvalidParameter(f"delta must be a number, got {delta!r}") from None
        if not 0 <= self.delta < 1:
            raise InvalidParameter(f"delta must be at least 0 and below 1, got {delta!r}")
        self.budget = None if budget is None else check.positive(budget, "budget")
        make_key(rng)  # a bad seed is refused now
        self.rng = rng
        self._policy = kernel_policy(graph)
        self._settings = local.Settings(
            self.epsilon, MECHANISMS[self.mechanism],
            repair_kernels.GRAPH if self.calibration == "graph" else repair_kernels.COMPONENT,
            STRATEGIES[self.repair], self.delta, self.likelihood == "exact",
        )  # fmt: skip
        self._spare: SimpleQueue[local.Scratch] = SimpleQueue()

    # -- work space, as large as the map, for each thread at work; kept between steps

    def _borrow(self) -> local.Scratch:
        try:
            return self._spare.get_nowait()
        except Empty:
            n = self.locations.size
            return local.Scratch(
                np.zeros(-(-n // 64), np.uint64), np.full(max(self.graph.n_cliques, 1), -1, np.int32),
                np.empty(n, np.int32), np.empty(n), np.zeros(n, np.bool_), np.empty((5, n), np.int32), np.empty((2, n)),
                patterns.make_patterns(), np.empty((patterns.MAX_CELLS, 3), np.int64),
            )  # fmt: skip

    def fingerprint(self) -> str:
        """Of everything that a saved stream depends on: policy, map, model and settings."""
        digest = hashlib.sha256(
            repr((self.locations.scale, self.locations.offset_km, tuple(self._settings), self.budget)).encode()
        )
        arrays: list[NDArray[Any]] = [
            self.locations.lattice,
            self.graph.cliques,
            self.graph.extra_indptr,
            self.graph.extra_indices,
        ]
        for array in arrays + [part for chain in self.model.chains for part in chain]:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # -- the two ways to run

    def start(self, users: int | ArrayLike = 1, priors: Any = None) -> Stream:
        """Users ready for their first step.

        Parameters
        ----------
        users : how many, or an array of their numbers, which key the noise: the same user must keep the same number
        priors : what the adversary thinks at each user's first observation: None the stationary distribution, "point" the
            first true cell, an array (N,) for all, or (users, N), dense or SciPy sparse
        """
        ids = _user_numbers(users)
        return Stream(self, ids, make_priors(self.model, priors, len(ids)), make_key(self.rng))

    def run(
        self,
        traces: ArrayLike,
        priors: Any = None,
        *,
        users: ArrayLike | None = None,
        periods: ArrayLike | None = None,
        progress: bool = False,
    ) -> TraceResult:
        """Release whole traces.

        Parameters
        ----------
        traces : int array (users, T), -1 for missing; before a user's first cell nothing happens to them
        priors : as in ``start``
        users : numbers of the users, 0, 1, ... unless told
        periods : the model's period at each step, ``t % model.periods`` unless told
        progress : show a line with the rate and the time left on standard error
        """
        array = check.integers(traces, "traces", InvalidTransition)
        if array.ndim != 2:
            raise InvalidTransition(f"traces must have shape (users, T), got {array.shape}: one user's trace is trace[None, :]")
        n, T = array.shape
        bad = np.argwhere((array < -1) | (array >= self.locations.size))
        if len(bad):
            u, t = bad[0]
            raise InvalidTransition(
                f"user {u} has {array[u, t]} at step {t}: cells are 0..{self.locations.size - 1}, and -1 for missing"
            )
        when = None if periods is None else _periods(self.model, periods, T)
        ids = np.arange(n) if users is None else _user_numbers(np.asarray(users))
        if len(ids) != n:
            raise InvalidParameter(f"users has {len(ids)} numbers for {n} traces")
        self._check_budget(np.zeros(n, np.int64), (array >= 0).sum(axis=1), ids)
        shared, key = make_priors(self.model, priors, n), make_key(self.rng)
        out = empty_results(n, T)
        bar = Progress(n * T) if progress else None
        for first in range(0, n, _BLOCK):
            block = slice(first, min(first + _BLOCK, n))
            stream = Stream(self, ids[block], shared.part(block), key)
            for t in range(T):
                step = stream.step(array[block, t], period=None if when is None else int(when[t]))
                for name, column in out.items():
                    column[block, t] = getattr(step, name)
                if bar:
                    bar.advance(block.stop - block.start)
        if bar:
            bar.close()
        return TraceResult(**out)

    def _check_budget(self, spent: NDArray[np.int64], more: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        if self.budget is None:
            return
        over = np.flatnonzero((more > 0) & ((spent + more) * self.epsilon > self.budget * _BUDGET))
        if over.size:
            u = over[0]
            raise BudgetExceeded(
                f"user {ids[u]} has spent {spent[u] * self.epsilon:g} of {self.budget:g} and asks for "
                f"{more[u] * self.epsilon:g} more ({over.size} users are over): nothing was released; "
                "leave those users out (-1) or raise the budget"
            )

    def resume(self, path: str | os.PathLike[str]) -> Stream:
        """A saved stream, to go on as if it had never stopped."""
        arrays, facts = read_arrays(path, KIND)
        if facts["fingerprint"] != self.fingerprint():
            raise InvalidState(
                f"{os.fspath(path)} was saved under another policy, map, model or setting: make the releaser it was saved with"
            )
        stream = Stream.__new__(Stream)
        stream._restore(self, arrays, facts)
        return stream

    def __repr__(self) -> str:
        how = f"mechanism={self.mechanism!r}, calibration={self.calibration!r}"
        return f"TraceReleaser({self.graph!r}, epsilon={self.epsilon}, {how})"


def _user_numbers(users: Any) -> NDArray[np.int64]:
    if np.ndim(users) == 0:
        return np.arange(check.whole(users, "users", 0))
    ids = check.integers(users, "users", InvalidParameter).astype(np.int64)
    if ids.ndim != 1 or (ids.size and (ids.min() < 0 or ids.max() >= check.MAX_USER)):
        raise InvalidParameter(f"users must be a 1-d array of numbers in 0..{check.MAX_USER - 1}")
    if len(np.unique(ids)) != len(ids):
        values, counts = np.unique(ids, return_counts=True)
        raise InvalidParameter(f"user {values[counts > 1][0]} occurs twice: two users must not share their noise")
    return ids


def _periods(model: MobilityModel, periods: ArrayLike, T: int) -> NDArray[np.int64]:
    array = check.integers(periods, "periods", InvalidTransition).astype(np.int64)
    if array.shape != (T,) or (array.size and (array.min() < 0 or array.max() >= model.periods)):
        raise InvalidTransition(f"periods must be {T} numbers in 0..{model.periods - 1}, one for each step")
    return np.concatenate([array[:1], array[:-1]])  # the move to step t is made in the period of step t - 1
