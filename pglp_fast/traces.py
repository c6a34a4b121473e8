"""Releasing traces: Algorithm 5 for a whole city at once, or one step at a time."""

import hashlib
import os
import sys
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import patterns
from ._kernels import repair as repair_kernels
from ._kernels import trace as kernels
from .domain import Domain
from .errors import BudgetExceeded, InvalidParameter, InvalidPolicy, InvalidState, InvalidTransition
from .exposure import STRATEGIES, kernel_policy
from .files import read_arrays, write_arrays
from .groups import CALIBRATIONS
from .ledger import Ledger
from .mobility import MobilityModel
from .policy import PolicyGraph
from .randomness import make_key
from .threads import run_ranges

MECHANISMS = {"ppim": kernels.PPIM, "plm": kernels.PLM}
_KIND = "stream"
_BLOCK = 4096  # users that ``run`` takes through all steps together
_BUDGET = 1 + 1e-12  # so that ten times 0.1 fits in 1


@dataclass(frozen=True)
class StepResult:
    """One step: arrays over users. -1 is released where the input was missing; counts are then 0."""

    released: check.Cells
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]
    isolated: NDArray[np.int64]
    added: NDArray[np.int64]
    surrogate: NDArray[np.bool_]
    exposed: NDArray[np.bool_]


@dataclass(frozen=True)
class TraceResult:
    """All steps: arrays (users, T).

    Attributes
    ----------
    released : released cells, -1 where the input was missing
    domain_size : |C_t|
    disconnected, isolated : locations of C_t without neighbours in it, and those of them that needed repair
    added : edges that the repair added
    surrogate : the true location was not in C_t; the nearest location of C_t was released from
    exposed : C_t was a single location that the policy wants hidden: nothing could be done
    """

    released: check.Cells
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]
    isolated: NDArray[np.int64]
    added: NDArray[np.int64]
    surrogate: NDArray[np.bool_]
    exposed: NDArray[np.bool_]


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
    budget : total epsilon for each user; a step that would exceed it is refused before any noise is drawn
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
        if not isinstance(graph, PolicyGraph):
            raise InvalidPolicy(f"the first argument must be a PolicyGraph, got {type(graph).__name__}")
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
        self.delta = float(delta)
        if not 0 <= self.delta < 1:
            raise InvalidParameter(f"delta must be at least 0 and below 1, got {delta!r}")
        self.budget = None if budget is None else check.positive(budget, "budget")
        make_key(rng)  # a bad seed is refused now
        self.rng = rng
        self._policy = kernel_policy(graph)
        self._settings = kernels.Settings(
            self.epsilon, MECHANISMS[self.mechanism],
            repair_kernels.GRAPH if self.calibration == "graph" else repair_kernels.COMPONENT,
            STRATEGIES[self.repair], self.delta, self.likelihood == "exact",
        )  # fmt: skip
        self._spare: SimpleQueue[kernels.Scratch] = SimpleQueue()

    # -- work space, as large as the map, for each thread at work; kept between steps

    def _borrow(self) -> kernels.Scratch:
        try:
            return self._spare.get_nowait()
        except Empty:
            n = self.locations.size
            return kernels.Scratch(
                np.zeros(-(-n // 64), np.uint64), np.full(max(self.graph.n_cliques, 1), -1, np.int32),
                np.empty(n, np.int32), np.empty(n), np.zeros(n, np.bool_),
                patterns.make_patterns(), np.empty((patterns.MAX_CELLS, 3), np.int64),
            )  # fmt: skip

    def fingerprint(self) -> str:
        """Of everything that a saved stream depends on: policy, map, model and settings."""
        digest = hashlib.sha256(
            repr((self.locations.scale, self.locations.offset_km, tuple(self._settings), self.budget)).encode()
        )
        arrays = [self.locations.lattice, self.graph.indptr, self.graph.indices]
        for array in arrays + [part for chain in self.model.chains for part in chain]:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # -- the two ways to run

    def start(self, users: int | ArrayLike = 1, priors: Any = None) -> "Stream":
        """Users ready for their first step.

        Parameters
        ----------
        users : how many, or an array of their numbers, which key the noise: the same user must keep the same number
        priors : what the adversary thinks at each user's first observation: None the stationary distribution, "point" the
            first true cell, an array (N,) for all, or (users, N), dense or SciPy sparse
        """
        ids = _user_numbers(users)
        return Stream(self, ids, _priors(self, priors, len(ids)), make_key(self.rng))

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
        shared, key = _priors(self, priors, n), make_key(self.rng)
        out = _empty_results(n, T)
        bar = _Progress(n * T) if progress else None
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

    def resume(self, path: str | os.PathLike[str]) -> "Stream":
        """A saved stream, to go on as if it had never stopped."""
        arrays, facts = read_arrays(path, _KIND)
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


@dataclass(frozen=True)
class _Priors:
    """Distinct priors, row by row, and the row of each user; rows of single cells for "point"."""

    rows: kernels.Ragged
    of: NDArray[np.int64]
    point: bool

    def part(self, block: slice) -> "_Priors":
        return _Priors(self.rows, self.of[block], self.point)


class Stream:
    """Users on their way: step by step, with what the adversary knows and what was spent. Made by ``TraceReleaser.start``."""

    def __init__(self, releaser: TraceReleaser, ids: NDArray[np.int64], priors: _Priors, key: NDArray[np.uint32]):
        n = len(ids)
        self.releaser, self.ids, self.t = releaser, ids, 0
        self._key, self._priors, self._point = key, priors.rows, priors.point
        nothing = np.zeros(n + 1, np.int64)
        self._beliefs = kernels.Ragged(priors.of.copy(), nothing, np.empty(0, np.int32), np.empty(0))
        unstarted = np.full(n, kernels.NOT_STARTED, np.int64)
        self._kept = kernels.Ragged(unstarted, nothing, np.empty(0, np.int32), np.empty(0))
        self._edges = kernels.Ragged(unstarted, nothing, np.empty((0, 2), np.int32), np.empty(0))
        self._releases = np.zeros(n, np.int64)
        self._last = (self._beliefs, 0)  # beliefs before the last step, and its period

    @property
    def users(self) -> int:
        return len(self.ids)

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far, and which edges were kept throughout."""
        r = self.releaser
        return Ledger(r.graph, r.epsilon, self._releases, self._kept, self._priors, self._edges)

    def _check(self, u: int) -> int:
        return check.whole(u, "u", 0, self.users - 1)

    def step(self, cells: ArrayLike, *, period: int | None = None) -> StepResult:
        """Release one cell for each user (-1: missing) and move on to the next t. On any error, nothing has changed.

        ``period``: of the model, for the move from the last step to this one; ``(t - 1) % periods`` unless told.
        """
        r, n = self.releaser, self.users
        true = check.integers(cells, "cells", InvalidTransition).reshape(-1)
        if true.size != n:
            raise InvalidTransition(f"cells has {true.size} entries for {n} users: give one for each, -1 for missing")
        bad = np.flatnonzero((true < -1) | (true >= r.locations.size))
        if bad.size:
            raise InvalidTransition(
                f"user {self.ids[bad[0]]} is at {true[bad[0]]}: cells are 0..{r.locations.size - 1}, and -1 for missing"
            )
        true = np.ascontiguousarray(true, dtype=check.CELL)
        count = r.model.periods
        which = (self.t - 1) % count if period is None else check.whole(period, "period", 0, count - 1)
        r._check_budget(self._releases, (true >= 0).astype(np.int64), self.ids)
        beliefs = self._beliefs
        if self._point:  # a user's prior is its first true cell
            fresh = (beliefs.kind >= 0) & (true >= 0)
            beliefs = beliefs._replace(kind=np.where(fresh, true, beliefs.kind).astype(np.int64))

        out = {name: column[:, 0].copy() for name, column in _empty_results(n, 1).items()}
        counts = np.zeros((n, 4), np.int64)
        kinds, lengths = np.empty((2, n), np.int64), np.empty((3, n), np.int64)
        parts: dict[int, tuple[NDArray[Any], ...]] = {}
        times = np.array([self.t], np.int64)

        def part(start: int, stop: int) -> None:
            scratch = r._borrow()
            parts[start] = kernels.step_users(
                r._policy, r.model.chains[which], r._settings, scratch, self._key, self.ids, times, true,
                beliefs, self._priors, self._kept, self._edges, start, stop,
                out["released"], counts, out["surrogate"], out["exposed"], kinds[0], lengths[0], kinds[1], lengths[1], lengths[2],
            )  # fmt: skip
            r._spare.put(scratch)

        run_ranges(part, n, smallest=16)
        ordered = [parts[start] for start in sorted(parts)]
        new_cells, new_logs, kept_cells, edges = (np.concatenate([piece[k] for piece in ordered]) for k in range(4))
        for k, name in enumerate(("domain_size", "disconnected", "isolated", "added")):
            out[name] = counts[:, k]
        # from here on nothing can fail: the step is taken as a whole
        self._last = (beliefs, which)
        self._beliefs = kernels.Ragged(kinds[0], _starts(lengths[0]), new_cells, new_logs)
        self._kept = kernels.Ragged(kinds[1], _starts(lengths[1]), kept_cells, np.empty(0))
        self._edges = kernels.Ragged(kinds[1], _starts(lengths[2]), edges, np.empty(0))
        self._releases = self._releases + (true >= 0)
        self.t += 1
        return StepResult(**out)

    # -- what the adversary knows

    def _look(self, u: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        r = self.releaser
        beliefs, which = self._last
        scratch = r._borrow()
        cells, added = kernels.look(r._policy, r.model.chains[which], r._settings, scratch, beliefs, self._priors, self._check(u))
        r._spare.put(scratch)
        return cells, added

    def domain(self, u: int) -> Domain:
        """C_t of user u at the last step (the prior's, before the first)."""
        return Domain(self.releaser.locations, self._look(u)[0])

    def policy(self, u: int) -> PolicyGraph:
        """The repaired policy G_t of user u at the last step."""
        cells, added = self._look(u)
        return self.releaser.graph.constrain(Domain(self.releaser.locations, cells)).with_edges(added)

    def posterior(self, u: int) -> NDArray[np.float64]:
        """p_t^+ of user u after the last step, dense (N,); the prior, before the first."""
        kind = self._beliefs.kind[self._check(u)]
        rows, row = (self._priors, kind) if kind >= 0 else (self._beliefs, u)
        out = np.zeros(self.releaser.locations.size)
        at = slice(rows.start[row], rows.start[row + 1])
        out[rows.cells[at]] = np.exp(rows.values[at])
        return out

    def memory(self) -> int:
        """Bytes of state kept for all users together: beliefs, ledger cells and repaired edges."""
        held = (self._beliefs, self._kept, self._edges)
        return int(sum(a.nbytes for ragged in held for a in ragged) + self._releases.nbytes + self.ids.nbytes)

    # -- keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to go on, atomically, readable by its owner only: the file contains the key of the noise."""
        arrays: dict[str, NDArray[Any]] = {"key": self._key, "ids": self.ids, "releases": self._releases}
        parts = (("priors", self._priors), ("beliefs", self._beliefs), ("kept", self._kept), ("edges", self._edges))
        for name, ragged in (*parts, ("last", self._last[0])):
            arrays |= {f"{name}_{field}": getattr(ragged, field) for field in ragged._fields}
        facts = {"t": self.t, "point": self._point, "last": self._last[1], "fingerprint": self.releaser.fingerprint()}
        write_arrays(path, _KIND, arrays, facts)

    def _restore(self, releaser: TraceReleaser, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        def ragged(name: str) -> kernels.Ragged:
            return kernels.Ragged(*(arrays[f"{name}_{field}"] for field in kernels.Ragged._fields))

        self.releaser, self.ids, self.t = releaser, arrays["ids"], facts["t"]
        self._key, self._priors, self._point = arrays["key"], ragged("priors"), facts["point"]
        self._beliefs, self._kept, self._edges = ragged("beliefs"), ragged("kept"), ragged("edges")
        self._releases = arrays["releases"]
        self._last = (ragged("last"), facts["last"])

    def __repr__(self) -> str:
        return f"Stream({self.users} users, t={self.t}, {self.releaser!r})"


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _empty_results(n: int, T: int) -> dict[str, NDArray[Any]]:
    out: dict[str, NDArray[Any]] = {"released": np.full((n, T), -1, check.CELL)}
    out |= {name: np.zeros((n, T), np.int64) for name in ("domain_size", "disconnected", "isolated", "added")}
    return out | {name: np.zeros((n, T), np.bool_) for name in ("surrogate", "exposed")}


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


def _priors(releaser: TraceReleaser, priors: Any, n: int) -> _Priors:
    import scipy.sparse

    size = releaser.locations.size
    if isinstance(priors, str):
        check.choice(priors, "priors", ("point",))
        rows = kernels.Ragged(np.empty(0, np.int64), np.arange(size + 1), np.arange(size, dtype=np.int32), np.zeros(size))
        return _Priors(rows, np.zeros(n, np.int64), True)
    shared = priors is None or (not scipy.sparse.issparse(priors) and np.ndim(priors) == 1)
    if priors is None:
        priors = releaser.model.stationary()
    csr = scipy.sparse.csr_array(np.atleast_2d(priors) if not scipy.sparse.issparse(priors) else priors).astype(np.float64)
    if csr.shape != ((1 if shared else n), size):
        raise InvalidTransition(f"priors must have shape ({n}, {size}) or ({size},), got {np.shape(priors)}")
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    sums = np.asarray(csr.sum(axis=1)).reshape(-1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= 1e-9) | (np.minimum(csr.min(axis=1).toarray().reshape(-1), 0) < 0))
    if bad.size:
        raise InvalidTransition(
            f"the prior of user {bad[0]} sums to {sums[bad[0]]:.12g} or has a negative entry: it must be a distribution"
        )
    rows = kernels.Ragged(np.empty(0, np.int64), csr.indptr.astype(np.int64), csr.indices.astype(np.int32), np.log(csr.data))
    return _Priors(rows, np.zeros(n, np.int64) if shared else np.arange(n), False)


class _Progress:
    """One line on standard error: done, rate, time left."""

    def __init__(self, total: int):
        self.total, self.done, self.started, self.shown = total, 0, time.perf_counter(), 0.0

    def advance(self, n: int) -> None:
        self.done += n
        now = time.perf_counter()
        if now - self.shown >= 0.2 or self.done == self.total:
            self.shown = now
            rate = self.done / max(now - self.started, 1e-9)
            left = (self.total - self.done) / max(rate, 1e-9)
            line = f"\r{self.done:,} of {self.total:,} user-steps, {rate:,.0f} a second, {left:.0f} s left "
            print(line, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)
