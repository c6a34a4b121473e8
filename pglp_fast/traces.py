"""Releasing traces: Algorithm 5 for a whole city at once, or one step at a time."""

import hashlib
import os
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import knorm, local, patterns
from ._kernels import repair as repair_kernels
from .book import TableBook
from .errors import BudgetExceeded, InvalidParameter, InvalidPolicy, InvalidState, InvalidTransition
from .evidence import Evidence, EvidenceRows
from .exposure import STRATEGIES, kernel_policy
from .files import read_arrays
from .groups import CALIBRATIONS
from .losses import make_loss
from .mechanisms.knorm import Noise
from .mechanisms.optimal import LeastLoss
from .mechanisms.recipe import Recipe
from .mechanisms.response import HopDecay, RandomisedResponse
from .mobility import MobilityModel
from .policy import PolicyGraph, require_policy
from .priors import Priors, make_priors
from .progress import Progress
from .randomness import make_key
from .stream import KIND, Stream, TraceResult, empty_results

BODIES = {"ppim": knorm.HULL, "plm": knorm.DIAMOND, "planar-laplace": knorm.DISC, "pim": knorm.HULL, "lm": knorm.DIAMOND}
TABLES: dict[str, Any] = {"krr": RandomisedResponse, "graph-exponential": HopDecay, "optimal": LeastLoss}
_BLOCK = 4096  # users that ``run`` takes through all steps together
_DISC_TABLE = 128  # the integrals over a many-sided K are dear: components of up to so many are looked up by shape instead
_BUDGET = 1 + 1e-12  # so that ten times 0.1 fits in 1


class TraceReleaser:
    """Private traces under a policy and against an adversary who knows how people move (Algorithm 5).

    Parameters
    ----------
    graph : the policy G; at each step the constrained graph is made from it anew
    model : what the adversary knows about movement
    epsilon : for each release
    mechanism : "ppim", "plm" or "planar-laplace", which add noise; "krr", "graph-exponential" or "optimal", which draw from
        tables; "pim" and "lm" are P-PIM and P-LM for a policy that joins every pair (``pf.complete``)
    calibration : "component" or "graph"; mechanisms by table know "component" only
    repair : strategy for isolated locations: "min-area", "nearest", "arbitrary", "min-error"
    delta : 0: C_t is everything possible. Above: the smallest set of mass 1 - delta
    likelihood : "exact", or "density": the density at the released location, faster; it changes the adversary's
        posterior, never the guarantee
    budget : total epsilon for each user of a stream (or a ``run``, which is one); a step that would exceed it is refused
        before any noise is drawn
    rng : None for a fresh key from the operating system for each stream; a seed for reproducible research
    remap : a loss ("euclidean", "squared", a matrix or a function, as for ``pf.Optimal``): what is drawn is post-processed to the
        location of least expected loss under the adversary's own p_t^-. The guarantee stays, the error shrinks; the posterior
        is that of who sees the remapped location.
    options : for "optimal": prior, loss, cache, as for ``pf.Optimal``

    Notes
    -----
    Noise is drawn by the geometric sampler; "krr", "graph-exponential", "optimal" and whatever is remapped by integer weights,
    proved like those of a mechanism that is certified, for each distinct component once. A release at step t of user u is a
    pure function of (key, u, t, input).
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
        remap: Any = None,
        options: dict[str, Any] | None = None,
    ):
        require_policy(graph)
        if not isinstance(model, MobilityModel):
            raise InvalidTransition(f"the second argument must be a MobilityModel, got {type(model).__name__}")
        if not model.locations.same_map(graph.locations):
            raise InvalidTransition(f"the model is over {model.locations.size} locations, the policy over {graph.locations.size}")
        self.graph, self.model, self.locations = graph, model, graph.locations
        self.epsilon = check.epsilon(epsilon)
        self.mechanism = check.choice(mechanism, "mechanism", [*BODIES, *TABLES])
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
        self.remap = None if remap is None else make_loss(graph.locations, remap)
        if options is not None and not isinstance(options, dict):
            raise InvalidParameter(f"options must be a dict such as {{'loss': 'squared'}}, got {type(options).__name__}")
        recipe = self._recipe(options or {})
        self._book = TableBook(recipe, self.epsilon, self.remap, everyone=self.calibration == "graph")
        by_table = self.mechanism in TABLES
        if by_table and self.calibration == "graph":
            raise InvalidParameter(f"mechanism={mechanism!r} knows calibration='component' only: for 'graph' use 'ppim' or 'plm'")
        if (by_table or remap is not None) and self.likelihood == "density":
            raise InvalidParameter("likelihood='density' is for noise alone: tables know their exact likelihoods, leave it out")
        tables = _DISC_TABLE if self.mechanism == "planar-laplace" and self.likelihood == "exact" else 0
        if by_table or remap is not None:
            tables = check.MAX_LOCATIONS
        self._settings = local.Settings(
            self.epsilon, BODIES.get(self.mechanism, knorm.HULL),
            repair_kernels.GRAPH if self.calibration == "graph" else repair_kernels.COMPONENT,
            STRATEGIES[self.repair], self.delta, self.likelihood == "exact",
            tables, recipe.wants_hull, self._book.anchored, remap is not None,
        )  # fmt: skip
        self._spare: SimpleQueue[local.Scratch] = SimpleQueue()

    def _recipe(self, options: dict[str, Any]) -> Recipe:
        known = {"prior": None, "loss": "euclidean", "cache": None} if self.mechanism == "optimal" else {}
        extra = set(options) - set(known)
        if extra:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise InvalidParameter(f"mechanism={self.mechanism!r} has no option {sorted(extra)[0]!r}: it {takes}")
        if self.mechanism in ("pim", "lm") and (self.graph.n_cliques != 1 or len(self.graph.extra_indices)):
            raise InvalidPolicy(f"mechanism={self.mechanism!r} is for a policy that joins every pair of a set: use pf.complete")
        if self.mechanism == "optimal":
            return LeastLoss(self.locations, self.epsilon, **{**known, **options})
        if self.mechanism in TABLES:
            by_graph: Recipe = TABLES[self.mechanism](self.epsilon)
            return by_graph
        return Noise(BODIES[self.mechanism], self.locations, self.epsilon)

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
            repr((self.locations.scale, self.locations.offset_km, tuple(self._settings), self.budget, *self._how())).encode()
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

    def _how(self) -> tuple[str, str, str]:
        recipe = self._book.recipe
        return recipe.name, recipe.describe(), "" if self.remap is None else self.remap.describe()

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
        evidence: bool = False,
    ) -> TraceResult:
        """Release whole traces.

        Parameters
        ----------
        traces : int array (users, T), -1 for missing; before a user's first cell nothing happens to them
        priors : as in ``start``
        users : numbers of the users, 0, 1, ... unless told
        periods : the model's period at each step, ``t % model.periods`` unless told
        progress : show a line with the rate and the time left on standard error
        evidence : keep what the releases say about where users were, for ``pf.attack``: some 12 bytes for each location that is
            possible at each step
        """
        return self._run(traces, priors, users, periods, progress, evidence, replay=False)

    def observe(
        self, released: ArrayLike, priors: Any = None, *, periods: ArrayLike | None = None, progress: bool = False
    ) -> Evidence:
        """What released traces say to somebody who knows everything about this releaser but its key.

        Parameters
        ----------
        released : int array (users, T) of released cells, -1 for none, as in ``run(...).released``
        priors, periods, progress : as in ``run``; "point" is not known to an observer: give the cells as a sparse matrix
        """
        if isinstance(priors, str):
            raise InvalidParameter("priors='point' is where users truly were, which no observer sees: give an array")
        found = self._run(released, priors, None, periods, progress, True, replay=True).evidence
        assert found is not None
        return found

    def _run(
        self, traces: Any, priors: Any, users: Any, periods: Any, progress: bool, evidence: bool, *, replay: bool
    ) -> TraceResult:
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
        if not replay:
            self._check_budget(np.zeros(n, np.int64), (array >= 0).sum(axis=1), ids)
        shared, key = make_priors(self.model, priors, n), make_key(self.rng)
        out = empty_results(n, T)
        rows = EvidenceRows(n, T) if evidence else None
        bar = Progress(n * T) if progress else None
        for first in range(0, n, _BLOCK):
            block = slice(first, min(first + _BLOCK, n))
            stream = Stream(self, ids[block], shared.part(block), key)
            for t in range(T):
                step, said = stream._step(array[block, t], None if when is None else int(when[t]), replay)
                if rows:
                    rows.add(first, t, *said)
                for name, column in out.items():
                    column[block, t] = getattr(step, name)
                if bar:
                    bar.advance(block.stop - block.start)
        if bar:
            bar.close()
        found = None
        if rows:
            moves = (np.arange(T) - 1) % self.model.periods if when is None else when
            found = rows.finish(self.model, _at_first_release(shared, array), moves, out["released"])
        return TraceResult(evidence=found, **out)

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


def _at_first_release(priors: Priors, traces: NDArray[Any]) -> Priors:
    """Priors with the row of each user known: with "point", the first cell."""
    if not priors.point:
        return priors
    first = np.argmax(traces >= 0, axis=1) if traces.shape[1] else np.zeros(len(traces), np.int64)
    cell = traces[np.arange(len(traces)), first] if traces.size else np.zeros(len(traces), np.int64)
    return Priors(priors.rows, np.maximum(cell, 0).astype(np.int64), True)


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
