"""Choosing a policy, a mechanism and epsilon on one's own data, before anything is released."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter, InvalidPolicy, InvalidTable, TooLarge
from pglp_fast.io import Tracks, read_table
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.registry import MECHANISMS, find
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_locations

from .mean_error import expected_error
from .privacy import privacy

_CANDIDATES = 4_000  # places that an adversary without a release chooses among, the likeliest
_CHUNK = 1 << 22  # distances held at once


@dataclass(frozen=True)
class AdviceRow:
    """One way to release the data.

    Attributes
    ----------
    policy, mechanism, epsilon : which
    error_km : expected distance between true and released place: what users pay; NaN where the
        mechanism cannot have components as large as the policy's
    adversary_km : expected error of the best guess of an adversary who knows how common each place
        is in the data and sees one release; NaN where output sets are too large for an exact answer
    told_km : the same if only the component were known, which the policy lets be known
    edges, kept_edges : of the policy; and those whose two ends both occur in the data. An adversary
        who knows where nobody ever is can tell the others apart
    epsilon_median, epsilon_most : sum of epsilon of the median person and of the one with most
        rows, if every row is released; NaN where persons are not known
    seconds : to build the mechanism and to release all rows once, here
    """

    policy: str
    mechanism: str
    epsilon: float
    error_km: float
    adversary_km: float
    told_km: float
    edges: int
    kept_edges: int
    epsilon_median: float
    epsilon_most: float
    seconds: float


@dataclass(frozen=True)
class Advice:
    """Ways to release the data, side by side.

    Attributes
    ----------
    rows : tuple of AdviceRow
    no_release_km : expected error of the best guess without any release
    places, count, persons : distinct places, rows and persons that were counted; persons is 0
        where they are not known
    """

    rows: tuple[AdviceRow, ...]
    no_release_km: float
    places: int
    count: int
    persons: int

    def __iter__(self) -> Iterator[AdviceRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def as_rows(self) -> list[dict[str, Any]]:
        """One flat dict for each way, for a table, CSV or pandas."""
        return [asdict(row) for row in self.rows]

    def curves(self) -> tuple[list[float], dict[Any, list[float]], dict[Any, list[float]]]:
        """(epsilons, errors, adversary's errors) by (policy, mechanism), as
        ``pf.plot.privacy_utility`` takes them; those without an adversary's error are left out."""
        epsilons = sorted({row.epsilon for row in self.rows})
        errors: dict[Any, list[float]] = {}
        adversary: dict[Any, list[float]] = {}
        for row in sorted(self.rows, key=lambda row: row.epsilon):
            if not math.isnan(row.adversary_km):
                key = row.policy, find(row.mechanism).label
                errors.setdefault(key, []).append(row.error_km)
                adversary.setdefault(key, []).append(row.adversary_km)
        return epsilons, errors, adversary

    def __str__(self) -> str:
        head = ("policy", "mechanism", "epsilon", "error km", "adversary km", "kept edges",
                "epsilon, median", "most", "seconds")  # fmt: skip
        lines: list[tuple[str, ...]] = [head]
        for r in self.rows:
            kept = f"{r.kept_edges:,} of {r.edges:,}"
            numbers = (f"{v:.3f}" for v in (r.error_km, r.adversary_km))
            spent = (f"{v:g}" for v in (r.epsilon_median, r.epsilon_most))
            lines.append((r.policy, r.mechanism, f"{r.epsilon:g}", *numbers, kept, *spent,
                          f"{r.seconds:.2f}"))  # fmt: skip
        cells = [[cell if cell != "nan" else "-" for cell in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        body = "\n".join(
            "  ".join(
                cell.ljust(w) if k < 2 else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        )
        text = (
            f"{body}\nerror: of the release, less is more useful. adversary: of the best guess "
            f"after one release, more is more private; {self.no_release_km:.3f} km without any.\n"
            f"{self.count:,} rows at {self.places:,} places"
        )
        if self.persons:
            who = "person" if self.persons == 1 else "persons"
            text += f" of {self.persons:,} {who}; epsilon adds up over a person's rows"
        if any(math.isnan(row.adversary_km) for row in self.rows):
            text += "\n-: output sets are too large for an exact answer; release traces and attack"
        return text


def advise(
    data: Any,
    *,
    grid: Locations,
    policies: Mapping[str, PolicyGraph],
    epsilons: Sequence[float],
    mechanisms: Sequence[str] = ("ppim",),
    columns: Mapping[str, Any] | None = None,
) -> Advice:
    """What each policy, mechanism and epsilon would cost and buy on one's own data.

    Nothing is released: errors are expectations over the places of the data.

    Parameters
    ----------
    data : table or array_like of int
        A path, DataFrame, Arrow table or ``Tracks`` with latitude and longitude; or cells, in any
        shape, -1 for missing. Rows of an array (persons, T) are persons.
    grid : Grid or Points
        The map; a Grid with latitude and longitude for tables.
    policies : mapping
        Policies by name.
    epsilons : sequence of float
        For each release.
    mechanisms : sequence of str
        Names such as "ppim", "plm", "optimal", or "module:Class".
    columns : mapping, optional
        Which columns are which, as in ``read_table``.

    Returns
    -------
    Advice
        A table, in the order policies, mechanisms, epsilons.

    Notes
    -----
    The answer tells of the data, as any statistic does: it is for whoever holds them.
    """
    cells, spent = _places(data, require_locations(grid), columns)
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidParameter("policies must be a mapping by name, at least one: {'k9': blocks}")
    for name, graph in policies.items():
        require_policy(graph)
        if not graph.locations.same_map(grid):
            raise InvalidPolicy(f"policy {name!r} is over another map than the data")
    eps = [check.epsilon(e) for e in check.listed(epsilons, "epsilons")]
    kinds = [
        k if ":" in str(k) else check.choice(k, "mechanisms", tuple(MECHANISMS))
        for k in check.listed(mechanisms, "mechanisms")
    ]
    classes = [find(kind) for kind in kinds]
    if not eps or not kinds:
        raise InvalidParameter("epsilons and mechanisms must have at least one entry each")
    counts = np.bincount(cells, minlength=grid.size)
    domain = Domain(grid, np.flatnonzero(counts))
    median, most = (math.nan, math.nan) if spent is None else (np.median(spent), spent.max())
    rows = []
    for name, graph in policies.items():
        edges = graph.n_edges, graph.constrain(domain).n_edges
        for kind, made in zip(kinds, classes, strict=True):
            for e in eps:
                error, guess, told, seconds = _figures(graph, made, e, cells, counts)
                spends = float(median * e), float(most * e)
                rows.append(
                    AdviceRow(str(name), kind, e, error, guess, told, *edges, *spends, seconds)
                )
    persons = 0 if spent is None else len(spent)
    return Advice(tuple(rows), _unseen(grid, counts), len(domain), len(cells), persons)


def _places(
    data: Any, grid: Locations, columns: Mapping[str, Any] | None
) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
    """(cells of all rows on the map, how many each person has); None where persons are not
    known."""
    if isinstance(data, np.ndarray | list | tuple):
        if columns is not None:
            raise InvalidParameter("columns is for tables, these are cells: leave it out")
        array = check.cells_or_missing(
            check.integers(data, "data"), grid.size, error=InvalidTable,
            where=lambda cell, *at: f"data has {cell} at {at}",
        )  # fmt: skip
        cells = array[array >= 0]
        spent = (array >= 0).sum(axis=1) if array.ndim == 2 else None
    else:
        tracks = data if isinstance(data, Tracks) else read_table(data, columns=columns)
        if not isinstance(grid, Grid) or grid.projection is None:
            raise InvalidParameter(
                "grid must have latitude and longitude for a table: make it with Grid.from_bounds"
            )
        found = grid.locate(tracks.lat, tracks.lon)
        if 2 * (found >= 0).sum() < len(found):
            raise InvalidTable(
                f"{int((found < 0).sum()):,} of {len(found):,} places are off the map: are "
                "latitude and longitude swapped, or the map's bounds wrong?"
            )
        cells = found[found >= 0]
        spent = np.bincount(tracks.user.codes[found >= 0])
    if not cells.size:
        raise InvalidTable("data has no place on the map: there is nothing to advise on")
    return cells, None if spent is None else np.asarray(spent[spent > 0], np.int64)


def _figures(
    graph: PolicyGraph,
    kind: type[Mechanism],
    epsilon: float,
    cells: NDArray[np.int32],
    counts: NDArray[Any],
) -> tuple[float, float, float, float]:
    """(expected error, adversary's error, error if told the component, seconds)."""
    started = time.perf_counter()
    made = kind.for_components(graph.locations, epsilon=epsilon)
    try:
        mechanism: Mechanism = made.bound_to(graph)
        mechanism.release(cells, rng=0)  # thrown away: only to be timed
    except TooLarge:  # this mechanism cannot have this policy: the others can be compared
        return math.nan, math.nan, math.nan, math.nan
    seconds = time.perf_counter() - started
    try:
        left = privacy(mechanism, prior=counts)
        guess, told = left.error, left.told_error
    except TooLarge:
        guess = told = math.nan
    return expected_error(mechanism, prior=counts), guess, told, seconds


def _unseen(locations: Locations, counts: NDArray[Any]) -> float:
    """Expected error of the best guess among the likeliest places, without any release."""
    places = np.flatnonzero(counts)
    weight = counts[places] / counts.sum()
    xy = locations.lattice * np.asarray(locations.scale)
    best = math.inf
    candidates = places[np.argsort(-weight, kind="stable")][:_CANDIDATES]
    for part in np.array_split(candidates, -(-len(candidates) * len(places) // _CHUNK)):
        away = np.hypot(*(xy[part][:, None] - xy[places][None]).transpose(2, 0, 1))
        best = min(best, float((away @ weight).min()))
    return best
