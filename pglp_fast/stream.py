"""Users on their way: the state that a trace release carries from step to step."""

import os
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import trace as kernels
from .domain import Domain
from .errors import InvalidParameter, InvalidState, InvalidTransition
from .evidence import Evidence
from .files import write_arrays
from .ledger import Ledger
from .policy import PolicyGraph
from .priors import Priors
from .ragged import starts_of
from .threads import run_ranges

if TYPE_CHECKING:
    from .traces import TraceReleaser

KIND = "stream"


@dataclass(frozen=True)
class TraceResult:
    """What was released: arrays (users, T) of a whole run, (users,) of one step.

    Attributes
    ----------
    released : released cells, -1 where the input was missing; counts are 0 there
    domain_size : |C_t|
    disconnected, isolated : locations of C_t without neighbours in it, and those of them that needed repair
    added : edges that the repair added
    surrogate : the true location was not in C_t; the nearest location of C_t was released from. It depends on the truth: publish
        ``released``, and what follows from it, but not this
    exposed : C_t was a single location that the policy wants hidden: nothing could be done
    evidence : what the releases say about where users were, for ``pf.attack``; kept where it was asked for
    """

    released: check.Cells
    domain_size: NDArray[np.int64]
    disconnected: NDArray[np.int64]
    isolated: NDArray[np.int64]
    added: NDArray[np.int64]
    surrogate: NDArray[np.bool_]
    exposed: NDArray[np.bool_]
    evidence: Evidence | None = None


def empty_results(*shape: int) -> dict[str, NDArray[Any]]:
    """The fields of a TraceResult, to be filled."""
    out: dict[str, NDArray[Any]] = {"released": np.full(shape, -1, check.CELL)}
    out |= {name: np.zeros(shape, np.int64) for name in ("domain_size", "disconnected", "isolated", "added")}
    return out | {name: np.zeros(shape, np.bool_) for name in ("surrogate", "exposed")}


class Likelihoods(NamedTuple):
    """ln Pr(z_t|s) of one step: cells and logarithms of all users end to end, how many each has, and who released at all."""

    told: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    cells: NDArray[np.int32]
    logs: NDArray[np.float64]


class Stream:
    """Users on their way: step by step, with what the adversary knows and what was spent. Made by ``TraceReleaser.start``."""

    def __init__(self, releaser: "TraceReleaser", ids: NDArray[np.int64], priors: Priors, key: NDArray[np.uint32]):
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
        # one step at a time: two would share their draws and their budget. (It also keeps a stream from being copied or pickled.)
        self._lock = RLock()

    @property
    def users(self) -> int:
        return len(self.ids)

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far, and which edges were kept throughout."""
        r = self.releaser
        with self._lock:
            return Ledger(r.graph, r.epsilon, self._releases, self._kept, self._priors, self._edges)

    def _check(self, u: int) -> int:
        u = check.whole(u, "u", 0, self.users - 1)
        if self._point and self._beliefs.kind[u] >= 0:
            raise InvalidParameter(f"user {self.ids[u]} has not started: with priors='point' nothing is known until then")
        return u

    def step(self, cells: ArrayLike, *, period: int | None = None) -> TraceResult:
        """Release one cell for each user (-1: missing) and move on to the next t. On any error, nothing has changed.

        ``period``: of the model, for the move from the last step to this one; ``(t - 1) % periods`` unless told.
        """
        with self._lock:
            return self._step(cells, period)[0]

    def _step(self, cells: ArrayLike, period: int | None, replay: bool = False) -> tuple[TraceResult, Likelihoods]:
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
        if not replay:
            r._check_budget(self._releases, (true >= 0).astype(np.int64), self.ids)
        beliefs = self._beliefs
        if self._point:  # a user's prior is its first true cell
            fresh = (beliefs.kind >= 0) & (true >= 0)
            beliefs = beliefs._replace(kind=np.where(fresh, true, beliefs.kind).astype(np.int64))

        out: dict[str, Any] = empty_results(n)
        counts = np.zeros((n, 4), np.int64)
        kinds, lengths = np.empty((2, n), np.int64), np.empty((3, n), np.int64)
        times = np.array([self.t], np.int64)
        r._book.begin_step()
        parts: dict[int, tuple[NDArray[Any], ...]] = {}

        def part(start: int, stop: int) -> None:
            scratch = r._borrow()
            parts[start] = kernels.step_users(
                r._policy, r.model.chains[which], r._settings, scratch, r._book.book, self._key, self.ids, times, true,
                replay, beliefs, self._priors, self._kept, self._edges, start, stop, out["released"], counts,
                out["surrogate"], out["exposed"], kinds[0], lengths[0], kinds[1], lengths[1], lengths[2],
            )  # fmt: skip
            r._spare.put(scratch)

        while True:
            parts.clear()  # the number of threads, and so the ranges, may have changed since the last pass
            run_ranges(part, n, smallest=16)
            ordered = [parts[start] for start in sorted(parts)]
            new_cells, new_logs, kept_cells, edges, seen, keys = (
                ordered[0] if len(ordered) == 1 else [np.concatenate(column) for column in zip(*ordered, strict=True)]
            )
            if not keys.size:
                break
            r._book.add(keys)  # and once more: a step is a pure function of what is known before it
        if replay and out["surrogate"].any():
            u = int(np.flatnonzero(out["surrogate"])[0])
            raise InvalidTransition(
                f"user {self.ids[u]} cannot have released {true[u]} at step {self.t}: under this policy, model and prior it has "
                "probability 0; give the releaser and the prior it was made with"
            )
        for k, name in enumerate(("domain_size", "disconnected", "isolated", "added")):
            out[name] = counts[:, k]
        # from here on nothing can fail: the step is taken as a whole
        self._last = (beliefs, which)
        self._beliefs = kernels.Ragged(kinds[0], starts_of(lengths[0]), new_cells, new_logs)
        self._kept = kernels.Ragged(kinds[1], starts_of(lengths[1]), kept_cells, np.empty(0))
        self._edges = kernels.Ragged(kinds[1], starts_of(lengths[2]), edges, np.empty(0))
        self._releases = self._releases + (true >= 0)
        self.t += 1
        return TraceResult(**out), Likelihoods(out["released"] >= 0, lengths[0], new_cells, seen)

    # -- what the adversary knows

    def _look(self, u: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        r = self.releaser
        with self._lock:
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
        with self._lock:
            beliefs = self._beliefs
        kind = beliefs.kind[self._check(u)]
        rows, row = (self._priors, kind) if kind >= 0 else (beliefs, u)
        out = np.zeros(self.releaser.locations.size)
        at = slice(rows.start[row], rows.start[row + 1])
        out[rows.cells[at]] = np.exp(rows.values[at])
        return out

    def memory(self) -> int:
        """Bytes of state kept for all users together: beliefs, ledger cells and repaired edges."""
        held = (self._beliefs, self._last[0], self._kept, self._edges)
        return int(sum(a.nbytes for ragged in held for a in ragged) + self._releases.nbytes + self.ids.nbytes)

    # -- keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to go on, atomically, readable by its owner only: the file contains the key of the noise."""
        with self._lock:
            arrays: dict[str, NDArray[Any]] = {"key": self._key, "ids": self.ids, "releases": self._releases}
            parts = (("priors", self._priors), ("beliefs", self._beliefs), ("kept", self._kept), ("edges", self._edges))
            for name, ragged in (*parts, ("last", self._last[0])):
                arrays |= {f"{name}_{field}": getattr(ragged, field) for field in ragged._fields}
            facts = {"t": self.t, "point": self._point, "last": self._last[1], "fingerprint": self.releaser.fingerprint()}
        write_arrays(path, KIND, arrays, facts)

    def _restore(self, releaser: "TraceReleaser", arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        def ragged(name: str) -> kernels.Ragged:
            return kernels.Ragged(*(arrays[f"{name}_{field}"] for field in kernels.Ragged._fields))

        self.releaser, self.ids, self.t = releaser, arrays["ids"], facts["t"]
        self._key, self._priors, self._point = arrays["key"], ragged("priors"), facts["point"]
        self._beliefs, self._kept, self._edges = ragged("beliefs"), ragged("kept"), ragged("edges")
        self._releases = arrays["releases"]
        self._last = (ragged("last"), facts["last"])
        self._lock = RLock()
        self._check_state()

    def _check_state(self) -> None:
        """A file that was tampered with must not reach the kernels, nor earn anybody a budget."""
        n, size = self.users, self.releaser.locations.size
        rows = len(self._priors.start) - 1
        beliefs = (self._beliefs, self._last[0])
        sound = (
            self._key.shape == (8,) and self._key.dtype == np.uint32 and len(np.unique(self.ids)) == n
            and self._releases.shape == (n,) and bool((self._releases >= 0).all() and (self._releases <= self.t).all())
            and 0 <= self._last[1] < self.releaser.model.periods
            and _well_formed(self._priors, rows, size)
            and all(_well_formed(b, n, size) for b in (*beliefs, self._kept, self._edges))
            and all(len(r.values) == len(r.cells) for r in (self._priors, *beliefs))
            and all(bool(((b.kind == kernels.OWN) | ((b.kind >= 0) & (b.kind < rows))).all()) for b in beliefs)
            and bool(((self._kept.kind >= kernels.OWN) & (self._kept.kind < rows)).all())
        )  # fmt: skip
        if not sound:
            raise InvalidState("the saved stream contradicts itself: it was changed after it was written; restore it from a copy")

    def __repr__(self) -> str:
        return f"Stream({self.users} users, t={self.t}, {self.releaser!r})"


def _well_formed(ragged: kernels.Ragged, n: int, size: int) -> bool:
    """Whether rows lie end to end and hold locations only."""
    start, cells = ragged.start, ragged.cells
    if start.dtype != np.int64 or cells.dtype != np.int32 or start.shape != (n + 1,) or start[0] != 0 or start[-1] != len(cells):
        return False
    return bool((np.diff(start) >= 0).all() and (cells >= 0).all() and (cells < size).all())
