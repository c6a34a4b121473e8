"""Ledgers in files, and a budget that several processes share.

A release is written down before any noise is drawn: a process that dies in between has spent what
it did not release, never the other way round. Until a release is settled no edge counts as kept."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace.records import OWN, LedgerRows, words_for
from pglp_fast._util.storage import alone_with, read_arrays, write_arrays
from pglp_fast.errors import InvalidState
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.graph_files import weights_fault
from pglp_fast.policy.weighted_edges import Weights
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_same_map

from .composition import compose, no_sets
from .ledger import EVERYBODY_ELSE, Ledger
from .ledger_rows import unstarted_rows
from .policies import PolicySet
from .spending import Limits, Spending, nothing_spent

KIND = "ledger"
_ROWS = ("kind", "start", "cells", "edge_start", "edges", "used")
_SPENT = (
    "releases", "high", "low", "since", "recent_start", "recent_steps", "recent_epsilons", "shares",
)  # fmt: skip
_GRAPH = ("cliques", "extra_indptr", "extra_indices")
_WEIGHTS = ("numerator", "denominator")
_ROUNDED = 1e-9  # sums of the same numbers in another order differ by less than this share
Ints = NDArray[np.int64]


def pack(ledger: Ledger) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """(arrays, facts) of a ledger; everybody else is its last row."""
    if ledger.others is not None:
        ledger = ledger.with_others()
    locations = ledger.policies.locations
    arrays: dict[str, NDArray[Any]] = {"ids": ledger.ids, "lattice": locations.lattice}
    arrays |= dict(zip(_ROWS, ledger.rows, strict=True))
    arrays |= dict(zip(_SPENT, ledger.spending, strict=True))
    arrays |= {"shared_start": ledger.shared.start, "shared_cells": ledger.shared.cells}
    for k, graph in enumerate(ledger.policies.graphs):
        arrays |= {f"{name}_{k}": getattr(graph, name) for name in _GRAPH}
        if graph.weights is not None:
            arrays |= {f"{name}_{k}": getattr(graph.weights, name) for name in _WEIGHTS}
    if ledger.unsettled is not None:
        arrays["unsettled"] = ledger.unsettled
    p = locations.projection
    facts: dict[str, Any] = {
        "names": list(ledger.policies.names),
        "scale": list(locations.scale),
        "offset": list(locations.offset_km),
        "projection": None if p is None else [p.lat0, p.lon0, p.mid_lat],
        "step_ms": ledger.step_ms,
    }
    if isinstance(locations, Grid):
        facts["grid"] = locations.to_dict()
    return arrays, facts


def unpack(
    arrays: dict[str, NDArray[Any]], facts: dict[str, Any], name: str, locations: Locations | None
) -> Ledger:
    """The ledger of a file, every array checked."""
    where = _map_of(arrays, facts, name, locations)
    try:
        names = tuple(map(str, facts["names"]))
        graphs = []
        for k in range(len(names)):
            cliques, indptr, indices = (arrays[f"{part}_{k}"] for part in _GRAPH)
            if not _is_graph(where.size, cliques, indptr, indices):
                raise ValueError("policy")
            weights = _weights_of(arrays, k, indptr, indices)
            graphs.append(PolicyGraph(where, cliques, indptr, indices, weights))
        policies = PolicySet(tuple(graphs), names)
        rows = LedgerRows(*(arrays[field] for field in _ROWS))
        arrays = {"shares": np.zeros((len(arrays["ids"]), 0))} | arrays  # older files have none
        spending = Spending(*(arrays[field] for field in _SPENT))
        start, cells = arrays["shared_start"], arrays["shared_cells"]
        shared = Rows(start, cells, np.zeros(len(cells)))
        lost, step_ms = arrays.get("unsettled"), facts.get("step_ms")
        ledger = Ledger(arrays["ids"], policies, spending, rows, shared, lost, step_ms=step_ms)
        sound = _sound(ledger, where.size) and (step_ms is None or type(step_ms) is int)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        sound = False
    if not sound:
        raise InvalidState(
            f"{name} contradicts itself: it was changed after it was written; restore it from a "
            "copy"
        )
    others = len(ledger) and ledger.ids[-1] == EVERYBODY_ELSE
    return ledger.without_others() if others else ledger


def _weights_of(arrays: dict[str, NDArray[Any]], k: int, indptr: Any, indices: Any) -> Any:
    """The weights of policy k, checked; None where it has none."""
    own = {name: arrays[f"{name}_{k}"] for name in _WEIGHTS if f"{name}_{k}" in arrays}
    if weights_fault(own, indptr, indices):
        raise ValueError("weights")
    return Weights(own["numerator"], own["denominator"]) if own else None


def _map_of(
    arrays: dict[str, NDArray[Any]], facts: dict[str, Any], name: str, locations: Locations | None
) -> Locations:
    """The map of a file: the one given, if it is the same, or the Grid that it holds."""
    if isinstance(facts.get("grid"), dict):
        grid = Grid.from_dict(facts["grid"])
        if locations is not None:
            require_same_map(locations, grid, f"the map and the ledger {name}", InvalidState)
        return grid if locations is None else locations
    if locations is None:
        raise InvalidState(f"{name} does not hold its map: give it, load(path, points)")
    p = locations.projection
    same = (
        facts.get("scale") == list(locations.scale)
        and facts.get("offset") == list(locations.offset_km)
        and facts.get("projection") == (None if p is None else [p.lat0, p.lon0, p.mid_lat])
        and np.array_equal(arrays.get("lattice", np.empty(0)), locations.lattice)
    )
    if not same:
        raise InvalidState(f"{name} is a ledger of another map: give the map it was saved with")
    return locations


def _is_graph(size: int, cliques: Any, indptr: Any, indices: Any) -> bool:
    labels = np.unique(cliques[cliques >= 0], return_counts=True)
    return (
        cliques.dtype == indices.dtype == np.int32
        and cliques.shape == (size,)
        and bool((cliques >= -1).all())
        and np.array_equal(labels[0], np.arange(len(labels[0])))
        and bool((labels[1] > 1).all())
        and is_rows(indptr, indices, size, size)
    )


def is_rows(start: Any, cells: Any, n: int, size: int) -> bool:
    """Whether rows lie end to end and hold locations only, ascending."""
    whole = (
        start.dtype == np.int64
        and cells.dtype == np.int32
        and start.shape == (n + 1,)
        and cells.ndim == 1
        and start[0] == 0
        and start[-1] == len(cells)
        and (np.diff(start) >= 0).all()
        and (cells >= 0).all()
        and (cells < size).all()
    )
    if not whole or not len(cells):
        return bool(whole)
    follows = np.ones(len(cells), bool)
    follows[start[:-1][np.diff(start) > 0]] = False
    return bool((np.diff(cells, prepend=-1)[follows] > 0).all())


def _sound(ledger: Ledger, size: int) -> bool:
    n, rows, spent = len(ledger.ids), ledger.rows, ledger.spending
    sets = len(ledger.shared.start) - 1
    ints = [ledger.ids, rows.kind]
    if ledger.unsettled is not None:
        ints.append(ledger.unsettled)
    edges = rows.edges
    return (
        all(a.dtype == np.int64 and a.shape == (n,) for a in ints)
        and len(np.unique(ledger.ids)) == n
        and bool((ledger.ids[:-1] >= 0).all() and (ledger.ids[-1:] >= EVERYBODY_ELSE).all())
        and (ledger.unsettled is None or bool((ledger.unsettled >= 0).all()))
        and bool(((rows.kind >= OWN) & (rows.kind < sets)).all())
        and bool((np.diff(rows.start)[rows.kind != OWN] == 0).all())
        and is_rows(rows.start, rows.cells, n, size)
        and is_rows(ledger.shared.start, ledger.shared.cells, sets, size)
        and edges.dtype == np.int32
        and edges.shape == (int(rows.edge_start[-1]), 2)
        and bool((edges >= 0).all() and (edges < size).all())
        and rows.edge_start.shape == (n + 1,)
        and bool((np.diff(rows.edge_start) >= 0).all() and rows.edge_start[0] == 0)
        and rows.used.dtype == np.uint64
        and rows.used.shape == (n, words_for(len(ledger.policies)))
        and is_spending(spent, n, len(ledger.policies))
    )


def is_spending(spent: Spending, n: int, policies: int) -> bool:
    """Whether sums are numbers, and the latest releases lie in rows by person, ascending."""
    start, steps = spent.start, spent.steps
    person = np.repeat(np.arange(n), np.diff(start))
    return (
        all(a.dtype == np.int64 and a.shape == (n,) for a in (spent.releases, spent.since))
        and all(a.dtype == np.float64 and a.shape == (n,) for a in (spent.high, spent.low))
        and bool(np.isfinite(spent.high + spent.low).all() and (spent.high >= 0).all())
        and bool((spent.releases >= 0).all() and (spent.since >= 0).all())
        and start.dtype == steps.dtype == np.int64
        and start.shape == (n + 1,)
        and start[0] == 0
        and start[-1] == len(steps) == len(spent.epsilons)
        and spent.epsilons.dtype == np.float64
        and bool((spent.epsilons > 0).all() and (steps >= spent.since[person]).all())
        and bool((np.diff(steps)[np.diff(person) == 0] >= 0).all())
        and spent.shares.dtype == np.float64
        and spent.shares.shape in ((n, 0), (n, policies))
        and bool((spent.shares >= 0).all() and np.isfinite(spent.shares).all())
    )


def write(ledger: Ledger, path: str | os.PathLike[str]) -> None:
    """Write a ledger to a file, alone with it."""
    with alone_with(path):
        write_arrays(path, KIND, *pack(ledger))


def read(path: str | os.PathLike[str], locations: Locations | None) -> Ledger:
    """The ledger of a file."""
    return unpack(*read_arrays(path, KIND), os.fspath(path), locations)


class LedgerFile:
    """A file in which processes write what they are going to release, before they do.

    Parameters
    ----------
    path : str or path
        Made at the first release.
    policies : PolicySet
        Of the releaser.
    """

    def __init__(self, path: str | os.PathLike[str], policies: PolicySet):
        # by one name, whatever links lead to it: a budget is kept in the file itself
        self.path, self.policies = Path(os.path.realpath(path)), policies

    def read(self) -> Ledger:
        """What it holds now; nobody spent anything where there is no file yet."""
        if self.path.exists():
            return read(self.path, self.policies.locations)
        return empty_ledger(np.empty(0, np.int64), self.policies)

    def read_after(self, ids: Ints, totals: NDArray[np.float64]) -> Ledger:
        """What it holds now, which is no less than these persons are known to have spent: else
        budgets would be had twice."""
        found = self.read()
        short = np.flatnonzero(found.select(ids).epsilons() < totals * (1 - _ROUNDED))
        if short.size:
            raise InvalidState(
                f"{self.path} holds less than was written to it ({short.size} persons have spent "
                "more): it was deleted, or an older one was put back; nothing was released; "
                "restore the latest one"
            )
        return found

    def reserve(
        self,
        limits: Limits,
        ids: Ints,
        start: Ints,
        steps: Ints,
        epsilons: NDArray[np.float64],
        own: Spending,
    ) -> None:
        """Write down events, in rows by person, that are about to be released; refuse them where
        they would exceed a budget. ``own``: what it must hold of these persons already."""
        with alone_with(self.path):
            before = self.read_after(ids, own.total)
            past = before.past_of(ids, limits)
            limits.check(ids, past, start, steps, epsilons)
            more = empty_ledger(ids, self.policies)
            spent = more.spending.after(start, steps, epsilons, limits.window)
            busy = (np.diff(start) > 0).astype(np.int64)
            begun = replace(more, spending=spent, unsettled=busy, step_ms=limits.step_ms)
            after = compose(before, begun)
            after = replace(after, spending=after.spending.remembering(limits.window))
            self.write(after)

    def settle(self, ledger: Ledger, busy: NDArray[np.bool_], shares: NDArray[np.float64]) -> None:
        """Write down which edges were kept by what was reserved, of the persons who released, and
        what of it was spent under each policy (``Spending.shares``)."""
        with alone_with(self.path):
            nothing = nothing_spent(len(ledger)).with_shares(shares)
            done = replace(ledger, spending=nothing, unsettled=-busy.astype(np.int64))
            after = compose(self.read(), done)
            assert after.unsettled is not None
            # below 0 where somebody put an older file back in between
            after = replace(after, unsettled=np.maximum(after.unsettled, 0))
            self.write(after)

    def jobs(self) -> dict[str, str]:
        """How far jobs are that wrote here, by their names."""
        return dict(read_arrays(self.path, KIND)[1].get("jobs", {})) if self.path.exists() else {}

    def write(self, ledger: Ledger, jobs: dict[str, str] | None = None) -> None:
        """Replace what it holds; jobs stay as they are unless given."""
        known = self.jobs() if jobs is None else jobs
        arrays, facts = pack(ledger)
        write_arrays(self.path, KIND, arrays, facts | ({"jobs": known} if known else {}))


def empty_ledger(ids: Ints, policies: PolicySet) -> Ledger:
    """Of persons who have released nothing."""
    n = len(ids)
    return Ledger(ids, policies, nothing_spent(n), unstarted_rows(n, len(policies)), no_sets())
