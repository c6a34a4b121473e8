"""What all mechanisms share: groups of locations, tables by shape, release.

A mechanism answers Pr(z|s) for a *shape*; the release table, the likelihood and the certificate follow from that.
"""

from abc import ABC, abstractmethod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from .._kernels import sampling, weights
from ..domain import Domain
from ..errors import InvalidDomain, InvalidParameter, InvalidPolicy, TooLarge
from ..expbound import exp_lower_bound
from ..groups import CALIBRATIONS, Groups, make_groups
from ..policy import PolicyGraph
from ..randomness import draw_counters, make_key
from ..threads import run_ranges

SAMPLERS = ("auto", "table", "geometric")
AUTO_TABLE = 128  # "auto" uses a table up to this many locations in a component ...
AUTO_ENTRIES = 1 << 24  # ... and fewer where all distinct shapes together would need more entries than this (200 MB)
MAX_TABLE = 2048  # locations in a component for which a table, or ``matrix``, is made at all
_EAGER_ENTRIES = 1 << 16  # tables that are missing and together no larger than this are built without looking who needs them


class Mechanism(ABC):
    """A mechanism that satisfies {epsilon, G^C}-location privacy (Definition 7).

    Parameters
    ----------
    graph : the policy
    epsilon : e^epsilon bounds the ratio of probabilities across an edge
    domain : C, what the adversary thinks possible; the whole map if None
    calibration : "component", or "graph" (Algorithms 3 and 4 to the letter): see the docs on calibrations
    sampler : "table" (64-bit integer weights), "geometric" (continuous noise, then snapped), or "auto": table where a
        component is small enough. It never changes what is promised.
    """

    def __init__(
        self,
        graph: PolicyGraph,
        *,
        epsilon: float,
        domain: Domain | None = None,
        calibration: str = "component",
        sampler: str = "auto",
    ):
        if not isinstance(graph, PolicyGraph):
            raise InvalidPolicy(
                f"the first argument must be a PolicyGraph, got {type(graph).__name__}: "
                "make one with pf.blocks, pf.PolicyGraph.from_edges, ..."
            )
        if domain is not None and not isinstance(domain, Domain):
            raise InvalidDomain(
                f"domain must be a Domain, got {type(domain).__name__}: make one with pf.Domain(locations, cells)"
            )
        self.epsilon = check.epsilon(epsilon)
        self.calibration = check.choice(calibration, "calibration", CALIBRATIONS)
        self.sampler = check.choice(sampler, "sampler", SAMPLERS)
        self.domain = domain
        self.graph = graph if domain is None else graph.constrain(domain)
        self.locations = graph.locations
        self.groups: Groups = make_groups(self.graph, domain, self.calibration)
        self._lay_out_tables()

    # -- what a mechanism answers

    @abstractmethod
    def _log_rows(self, shape: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln Pr(z|s) for the given places s of a shape and every place z."""

    @abstractmethod
    def _fill_tables(self, which: NDArray[np.int64]) -> None:
        """Write the alias rows of these shapes."""

    @abstractmethod
    def _release_geometric(self, key: NDArray[np.uint32], users: Any, times: Any, cells: check.Cells, out: check.Cells) -> None:
        """Release the cells whose shape has no table."""

    # -- probabilities

    def _check_inside(self, s: int) -> int:
        s = check.one_cell(s, self.locations.size)
        if self.groups.address[s, 0] < 0:
            raise InvalidDomain(
                f"location {s} is outside the domain of {len(self.groups.members)} locations: nothing can be released from it"
            )
        return s

    def matrix(self, s: int, *, log: bool = False) -> tuple[check.Cells, NDArray[np.float64]]:
        """Exact probabilities over the output set of s: ``P[i, j] = Pr(outputs[j] | outputs[i])``.

        ``log=True`` gives ln P, which also tells probabilities below 1e-308 apart. Rows of P sum to 1 within 1e-12.
        """
        s = self._check_inside(s)
        outputs = self.groups.of(s).copy()
        if len(outputs) > MAX_TABLE:
            raise TooLarge(
                f"the output set of {s} has {len(outputs)} locations, a matrix is made up to {MAX_TABLE}: "
                "ask for single rows with pmf(s)"
            )
        rows = self._log_rows(self.groups.shape(s), np.arange(len(outputs)))
        return outputs, rows if log else np.exp(rows)

    def pmf(self, s: int, *, log: bool = False) -> tuple[check.Cells, NDArray[np.float64]]:
        """(outputs, Pr(outputs | s)), exact."""
        s = self._check_inside(s)
        row = self._log_rows(self.groups.shape(s), self.groups.address[s, 1:].astype(np.int64))[0]
        return self.groups.of(s).copy(), row if log else np.exp(row)

    def _log_matrices(self, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln Pr(z|s) of these shapes, each (k, k) row by row, end to end."""
        blocks = [self._log_rows(int(shape), np.arange(self.groups.sizes[shape])).reshape(-1) for shape in which]
        return np.concatenate(blocks) if blocks else np.empty(0)

    # -- tables

    def _lay_out_tables(self) -> None:
        """Decide which shapes are sampled from a table and where it goes. It depends on the policy alone, never on requests."""
        sizes = self.groups.sizes
        if self.sampler == "table" and sizes.size and sizes.max() > MAX_TABLE:
            raise TooLarge(
                f"a component has {sizes.max()} locations, a table takes {MAX_TABLE}: use sampler='auto' or 'geometric'"
            )
        bits = np.array([weights.column_bits(int(k)) for k in np.unique(sizes)], np.int64)
        self._bits = bits[np.searchsorted(np.unique(sizes), sizes)] if sizes.size else np.zeros(0, np.int64)
        entries = sizes << self._bits
        limit = {"table": MAX_TABLE, "geometric": 0, "auto": AUTO_TABLE}[self.sampler]
        while self.sampler == "auto" and entries[sizes <= limit].sum() > AUTO_ENTRIES:
            limit //= 2
        tabled = sizes <= limit
        ends = np.cumsum(np.where(tabled, entries, 0))
        self._offset = np.where(tabled, ends - entries, -1)
        total = int(ends[-1]) if ends.size else 0
        self._cut, self._alias = np.empty(total, np.uint64), np.empty(total, np.int32)  # pages are only touched when filled
        self._mixed = np.zeros(sizes.size)
        self._missing = tabled.copy()
        self._lock = Lock()

    @property
    def tabled(self) -> NDArray[np.bool_]:
        """For each shape, whether it is sampled from a table."""
        return np.asarray(self._offset >= 0)

    def _ensure_tables(self, cells: check.Cells | None = None) -> None:
        """Build the tables that releasing these cells needs (None: all of them). Built once, by one thread."""
        if not self._missing.any():
            return
        with self._lock:
            need = self._missing
            if cells is not None and (self.groups.sizes[need] << self._bits[need]).sum() > _EAGER_ENTRIES:
                used = np.zeros(need.size, bool)
                sampling.mark_shapes(cells, self.groups.address, self.groups.shape_of, used)
                need = need & used
            which = np.flatnonzero(need)
            if which.size:
                self._fill_tables(which)
                self._missing[which] = False

    def table(self, s: int) -> tuple[check.Cells, NDArray[np.uint64]]:
        """(outputs, weights): the integers, of sum 2**63, that a release from s is drawn with.

        They are read back from the table itself, and are what ``certify`` checks.
        """
        s = self._check_inside(s)
        shape = self.groups.shape(s)
        if self._offset[shape] < 0:
            raise InvalidParameter(f"location {s} is released by the geometric sampler: there is no table; use sampler='table'")
        return self.groups.of(s).copy(), self._weights(shape)[self.groups.address[s, 1]]

    def _weights(self, shape: int) -> NDArray[np.uint64]:
        """All integer weights of a tabled shape, (k, k)."""
        group = self.groups.representative[shape]
        self._ensure_tables(self.groups.members[self.groups.starts[group] :][:1])
        k, b, at = int(self.groups.sizes[shape]), int(self._bits[shape]), int(self._offset[shape])
        out = np.empty((k, k), np.uint64)
        weights.read_table(self._cut[at : at + (k << b)], self._alias[at : at + (k << b)], b, k, out)
        return out

    @property
    def _exp_bound(self) -> tuple[np.uint64, int]:
        return exp_lower_bound(self.epsilon)

    # -- release

    def release(
        self, cells: ArrayLike, *, users: ArrayLike | None = None, t: ArrayLike = 0, rng: int | None = None
    ) -> check.Cells:
        """Release each cell privately.

        Parameters
        ----------
        cells : true locations: one, many or none
        users, t : number the draws; the draw for (key, user, t) is a pure function of the three, so results do not depend on
            batches, order or threads. ``users`` defaults to 0, 1, 2, ...; ``t`` is one number or one for each cell. No
            (user, t) may repeat.
        rng : None for a fresh key from the operating system at each call; an integer seed for reproducible research. A seeded
            release is not private against anyone who knows the seed.

        Returns
        -------
        Released cells, int32, in the shape of ``cells``.
        """
        true = check.cells(cells, self.locations.size)
        flat = true.reshape(-1)
        who, times = draw_counters(users, t, flat.size)
        key = make_key(rng)
        if self.domain is not None:
            at = sampling.first_outside(flat, self.locations.size, self.groups.address)
            if at >= 0:
                raise InvalidDomain(
                    f"cells[{at}] = {flat[at]} is outside the domain: nothing can be released from a location that is ruled out"
                )
        out = np.empty(flat.size, check.CELL)
        if flat.size:
            self._ensure_tables(flat)
            tabled = self.tabled
            if tabled.any():
                self._release_table(key, who, times, flat, out)
            if not tabled.all():
                self._release_geometric(key, who, times, flat, out)
        return out.reshape(true.shape)[()]

    def _release_table(self, key: NDArray[np.uint32], users: Any, times: Any, cells: check.Cells, out: check.Cells) -> None:
        g = self.groups

        def part(start: int, stop: int) -> None:
            sampling.release_table(
                key, users, times, cells, start, stop, g.address, g.starts, g.members, g.shape_of,
                self._bits, self._offset, self._cut, self._alias, out,
            )  # fmt: skip

        run_ranges(part, cells.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r}, epsilon={self.epsilon}, calibration={self.calibration!r})"
