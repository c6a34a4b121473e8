"""What privacy costs: how far the released location is from the true one (the paper's E_eu, E_r and E_poi).

``utility`` computes the expected errors from Pr(z|s), ``estimate_utility`` estimates them from pairs of true and released cells.
Both give a ``Utility``. The formulae are in docs/metrics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import metrics as kernels
from .errors import InvalidDomain, InvalidLocation, InvalidParameter, TooLarge
from .intervals import Clusters, Interval, mean_interval, quantile_interval, quantile_rank, share_interval
from .locations import Grid, Locations
from .mechanisms.base import Mechanism
from .mechanisms.recipe import MAX_TABLE
from .policy import block_labels
from .ragged import starts_of
from .threads import run_ranges

REGION = 5  # cells a side, as in the paper
QUANTILES = (0.5, 0.9, 0.99)
_ENTRIES = 1 << 22  # probabilities held at a time
_ROUNDING = 1e-12  # a cumulative probability this little short of q has reached it

Floats = NDArray[np.float64]


class Worst(NamedTuple):
    """The largest expected error in km, and the location that has it (the lowest, if several)."""

    error: float
    location: int


@dataclass(frozen=True, eq=False)
class Utility:
    """Errors of a mechanism, expected or estimated. Less is better.

    Attributes
    ----------
    e_eu : mean Euclidean distance between true and released location, km
    e_r : probability that the released location lies in another region; None where there are no regions
    e_poi : probability that the released location has another category; None where there are no categories
    worst : the largest mean distance from one location, and which; over the locations that occur
    largest : the largest distance that has a probability above 0 (exact) or was seen (estimate), km
    quantiles : {q: the smallest distance in km that is not exceeded with probability q or more}
    by_location : {"e_eu", "e_r", "e_poi": that mean for each true location, (N,)}; nan outside the domain, or where none was seen
    count : locations that occur (exact), pairs (estimate)
    missing : pairs left out because a cell was -1
    intervals : {"e_eu", "e_r", "e_poi", "q0.5", ...: (low, high)}, for an estimate
    level : how sure each interval is on its own; None for exact figures
    """

    e_eu: float
    e_r: float | None
    e_poi: float | None
    worst: Worst
    largest: float
    quantiles: dict[float, float]
    by_location: dict[str, Floats] = field(repr=False)
    count: int
    missing: int = 0
    intervals: dict[str, Interval] = field(default_factory=dict)
    level: float | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        """All single figures under plain names, for a table or JSON; intervals as ``e_eu_low``, ``e_eu_high``, ..."""
        out: dict[str, float | int | None] = {"e_eu": self.e_eu, "e_r": self.e_r, "e_poi": self.e_poi}
        out |= {"worst": self.worst.error, "worst_location": self.worst.location, "largest": self.largest}
        out |= {_name(q): value for q, value in self.quantiles.items()}
        out |= {"count": self.count, "missing": self.missing, "level": self.level}
        for name, (low, high) in self.intervals.items():
            out |= {f"{name}_low": low, f"{name}_high": high}
        return out

    def __str__(self) -> str:
        rows = [("E_eu (km)", "e_eu", self.e_eu), ("E_r", "e_r", self.e_r), ("E_poi", "e_poi", self.e_poi)]
        rows += [(f"{100 * q:g} % within (km)", _name(q), value) for q, value in self.quantiles.items()]
        rows += [("worst mean (km)", "worst", self.worst.error), ("largest (km)", "largest", self.largest)]
        exact = self.level is None
        lines = [
            f"{'':20}{'expected' if exact else 'estimate':>12}" + ("" if exact else f"   {100 * (self.level or 0):g} % interval")
        ]
        for label, name, value in rows:
            if value is None:
                continue
            line = f"{label:20}{value:12.5g}"
            if name in self.intervals:
                low, high = self.intervals[name]
                line += f"   {low:.5g} .. {high:.5g}"
            lines.append(line + (f"   at location {self.worst.location}" if name == "worst" else ""))
        what = f"{self.count:,} locations" if exact else f"{self.count:,} pairs, {self.missing:,} more with a cell missing"
        return "\n".join([*lines, f"over {what}"])


def _name(q: float) -> str:
    return f"q{q!r}"


# -- exact


def utility(
    mechanism: Mechanism,
    *,
    prior: ArrayLike | None = None,
    region: int | ArrayLike | None = None,
    categories: ArrayLike | None = None,
    quantiles: Sequence[float] = QUANTILES,
) -> Utility:
    """Expected errors of a mechanism, from its exact Pr(z|s): nothing is drawn.

    Parameters
    ----------
    mechanism : any mechanism whose output sets have at most 2,048 locations
    prior : how likely each location is to be the true one, (N,), in any unit (counts will do); even over the mechanism's domain
        if None. Must be 0 outside the domain.
    region : cells a side of the square regions of E_r, aligned with ``pf.blocks(grid, region)``; None: 5 on a Grid, no E_r
        on Points. Or one integer for each location, the region it lies in.
    categories : one integer for each location, for E_poi; -1 (no category) counts as a category of its own. None: no E_poi
    quantiles : of the distance, each between 0 and 1

    Notes
    -----
    Matrices are computed once for each distinct shape. The distance needs no more; regions and categories take one pass over the
    pairs (s, z) of each component that has more than one.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(
            f"utility takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...), or use "
            "pf.estimate_utility(locations, true, released) on samples"
        )
    m, g, n = mechanism, mechanism.groups, mechanism.locations.size
    labels = _labels(m.locations, region, categories)
    wanted = _quantiles(quantiles)
    weight = location_weights(prior, g.address[:, 0] >= 0)
    sizes = g.sizes
    if sizes.max() > MAX_TABLE:
        s = g.members[g.starts[g.representative[int(np.argmax(sizes))]]]
        raise TooLarge(
            f"the output set of location {s} has {sizes.max()} locations, exact errors are computed up to {MAX_TABLE}: estimate "
            "them with pf.estimate_utility(locations, true, mechanism.release(true))"
        )

    places = starts_of(sizes)  # every place of every shape has a number
    place_weight, mean, largest = np.zeros(places[-1]), np.empty(places[-1]), np.empty(places[-1])
    kernels.add_by_place(g.members, g.starts, g.shape_of, places, weight, place_weight)
    by_location = {name: np.zeros(n) for name in ("e_eu", *labels)}
    by_shape = np.argsort(g.shape_of, kind="stable")
    group_ends = np.cumsum(np.bincount(g.shape_of, minlength=len(sizes)))
    entries = starts_of(sizes**2)
    spread: list[tuple[Floats, Floats]] = []
    first = 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(entries, entries[first] + _ENTRIES, side="right")) - 1)
        at = entries[first : last + 1] - entries[first]
        logs = m._log_matrices(np.arange(first, last))
        columns, value, mass = np.empty(logs.size), np.empty(logs.size), np.empty(logs.size)
        kernels.shape_errors(
            first, last, g.members, g.starts, g.representative, m.locations.lattice, *m.locations.scale,
            places, place_weight, at, logs, mean, largest, columns, value, mass,
        )  # fmt: skip
        if wanted:
            spread.append(_merged(value, mass))
        groups = by_shape[group_ends[first - 1] if first else 0 : group_ends[last - 1]]
        for name, label in labels.items():
            _other_label(m, groups, first, at, columns, label, by_location[name])
        first = last
    kernels.spread_by_place(g.members, g.starts, g.shape_of, places, mean, by_location["e_eu"])

    expected = {name: float(values @ weight) for name, values in by_location.items()}
    possible = weight > 0
    worst = int(np.argmax(np.where(possible, by_location["e_eu"], -1.0)))
    for values in by_location.values():
        values[g.address[:, 0] < 0] = np.nan
    return Utility(
        e_eu=expected["e_eu"],
        e_r=expected.get("e_r"),
        e_poi=expected.get("e_poi"),
        worst=Worst(float(by_location["e_eu"][worst]), worst),
        largest=float(largest[place_weight > 0].max()),
        quantiles=_weighted_quantiles(spread, wanted),
        by_location=by_location,
        count=int(np.count_nonzero(possible)),
    )


def location_weights(prior: ArrayLike | None, inside: NDArray[np.bool_]) -> Floats:
    """The prior over locations, summing to 1."""
    if not inside.any():
        raise InvalidDomain("the domain is empty: nothing can be released, so there is no error to expect")
    if prior is None:
        return inside / np.count_nonzero(inside)
    try:
        weight = np.asarray(prior, np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"prior must be {inside.size} numbers, one for each location") from None
    if weight.shape != inside.shape:
        raise InvalidParameter(f"prior has shape {weight.shape}: give one number for each of the {inside.size} locations")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise InvalidParameter(f"prior[{bad[0]}] = {weight[bad[0]]}: every entry must be a finite number, 0 or more")
    outside = np.flatnonzero((weight > 0) & ~inside)
    if outside.size:
        raise InvalidDomain(
            f"prior[{outside[0]}] = {weight[outside[0]]}, but location {outside[0]} is outside the domain, where nothing is "
            "released from: set the prior to 0 there, e.g. prior * domain.mask()"
        )
    if not weight.max() > 0:
        raise InvalidParameter("prior is zero everywhere: some location must be possible")
    weight = weight / weight.max()  # so that the sum cannot overflow
    return np.asarray(weight / weight.sum())


def _other_label(
    m: Mechanism,
    groups: NDArray[np.int64],
    first: int,
    at: NDArray[np.int64],
    columns: Floats,
    label: NDArray[np.int64],
    out: Floats,
) -> None:
    g = m.groups
    pairs = int((np.diff(g.starts)[groups] ** 2).sum())

    def part(start: int, stop: int) -> None:
        kernels.label_errors(groups, start, stop, first, g.members, g.starts, g.shape_of, at, columns, label, out)

    run_ranges(part, groups.size, smallest=max(1, (groups.size << 18) // pairs))


def _merged(value: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Distinct values, ascending, and the mass of each; values without mass are dropped."""
    some = mass > 0
    value, mass = value[some], mass[some]
    order = np.argsort(value, kind="stable")
    value, mass = value[order], mass[order]
    new = np.flatnonzero(np.diff(value, prepend=-1.0))
    return value[new], np.add.reduceat(mass, new) if new.size else mass


def _weighted_quantiles(spread: list[tuple[Floats, Floats]], wanted: Sequence[float]) -> dict[float, float]:
    """For each q the smallest value with a cumulative probability of at least q."""
    if not wanted:
        return {}
    value, mass = _merged(*(np.concatenate(parts) for parts in zip(*spread, strict=True)))
    reached = np.cumsum(mass)
    at = np.searchsorted(reached, np.asarray(wanted) * reached[-1] - _ROUNDING)
    return dict(zip(wanted, value[at].tolist(), strict=True))


# -- estimated


def estimate_utility(
    locations: Locations,
    true: ArrayLike,
    released: ArrayLike,
    *,
    region: int | ArrayLike | None = None,
    categories: ArrayLike | None = None,
    quantiles: Sequence[float] = QUANTILES,
    level: float = 0.95,
    clusters: str | ArrayLike | None = None,
) -> Utility:
    """Errors estimated from true and released cells, with confidence intervals.

    Parameters
    ----------
    locations : the map
    true, released : cells, arrays of one shape; a pair with a -1 on either side is left out and counted in ``missing``
    region, categories, quantiles : as for ``utility``
    level : how sure each interval is, on its own
    clusters : which pairs belong together, for traces: "rows" (each row of a 2-d array is one user), or one integer or string
        for each pair or for each row. None: all pairs are independent. The steps of a user are not: where a user dwells
        decides on the error, and intervals that ignore it are far too narrow.

    Notes
    -----
    Intervals: E_eu by Student's t; E_r and E_poi by Wilson's; quantiles between order statistics, free of any distribution. With
    clusters, by the variance between clusters: see docs/metrics.md. ``worst`` is the largest of the means at the locations seen,
    each as noisy as its few pairs make it, and so tends to be too large; ``largest`` is what was seen and tends to be too small.
    """
    if not isinstance(locations, Locations):
        raise InvalidParameter(f"locations must be a Grid or Points, got {type(locations).__name__}")
    start_cells, end_cells = _sample(true, locations.size, "true"), _sample(released, locations.size, "released")
    if start_cells.shape != end_cells.shape:
        raise InvalidParameter(f"true has shape {start_cells.shape} and released {end_cells.shape}: they must be pairs")
    labels = _labels(locations, region, categories)
    wanted = _quantiles(quantiles)
    level = check.positive(level, "level")
    if level >= 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}: 0.95 is customary")
    together = _cluster_codes(clusters, start_cells.shape)

    s, z = start_cells.reshape(-1), end_cells.reshape(-1)
    distance = np.empty(s.size)
    none = np.empty(0, np.int64)
    other = {name: np.empty(s.size, np.bool_) for name in labels}

    def part(start: int, stop: int) -> None:
        kernels.sample_errors(
            s, z, start, stop, locations.lattice, *locations.scale, labels.get("e_r", none), labels.get("e_poi", none),
            distance, other.get("e_r", _NO_FLAGS), other.get("e_poi", _NO_FLAGS),
        )  # fmt: skip

    run_ranges(part, s.size)
    seen = distance >= 0
    count = int(np.count_nonzero(seen))
    if count == 0:
        raise InvalidParameter(f"none of the {s.size} pairs has both cells: there is nothing to estimate from")
    if count < s.size:
        s, distance = s[seen], distance[seen]
        other = {name: hits[seen] for name, hits in other.items()}
    groups = None if together is None else Clusters.of(together[seen])

    ordered = np.sort(distance)
    intervals = {"e_eu": mean_interval(distance, level, groups)}
    intervals |= {name: share_interval(hits, level, groups) for name, hits in other.items()}
    intervals |= {_name(q): quantile_interval(ordered, q, level, groups, distance) for q in wanted}
    where = s.astype(np.intp)  # once: counting would do it each time
    visits = np.bincount(where, minlength=locations.size)
    by_location = {"e_eu": _means(where, distance, visits)} | {name: _means(where, hits, visits) for name, hits in other.items()}
    worst = int(np.nanargmax(by_location["e_eu"]))
    shares = {name: float(hits.mean()) for name, hits in other.items()}
    return Utility(
        e_eu=float(distance.mean()),
        e_r=shares.get("e_r"),
        e_poi=shares.get("e_poi"),
        worst=Worst(float(by_location["e_eu"][worst]), worst),
        largest=float(ordered[-1]),
        quantiles={q: float(ordered[quantile_rank(count, q)]) for q in wanted},
        by_location=by_location,
        count=count,
        missing=seen.size - count,
        intervals=intervals,
        level=level,
    )


_NO_FLAGS = np.empty(0, np.bool_)


def _means(cells: NDArray[np.intp], values: NDArray[Any], visits: NDArray[np.int64]) -> Floats:
    sums = np.bincount(cells, weights=values, minlength=visits.size)
    return np.asarray(np.divide(sums, visits, out=np.full(visits.size, np.nan), where=visits > 0))


def _sample(values: ArrayLike, size: int, name: str) -> check.Cells:
    """Cells in an array of any shape, -1 for missing, as int32."""
    array = check.integers(values, name)
    if array.size and (array.min() < -1 or array.max() >= size):
        flat = array.reshape(-1)
        at = int(np.flatnonzero((flat < -1) | (flat >= size))[0])
        where = ", ".join(map(str, np.unravel_index(at, array.shape)))
        raise InvalidLocation(
            f"{name}[{where}] = {flat[at]} is neither one of the {size} locations 0..{size - 1} nor -1 for missing"
        )
    return np.require(array, check.CELL, ["C", "W"])  # read-only arrays would compile the kernel once more


def _cluster_codes(clusters: str | ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
    """A number for the cluster of each pair, in one dimension."""
    if clusters is None:
        return None
    if isinstance(clusters, str):
        check.choice(clusters, "clusters", ("rows",))
        if len(shape) < 2:
            raise InvalidParameter(f'clusters="rows" needs arrays (users, T), got shape {shape}: give one label for each pair')
        labels: NDArray[Any] = np.arange(shape[0])
    else:
        labels = np.asarray(clusters)
    if labels.dtype.kind not in "iuUS":
        raise InvalidParameter(f"clusters must be integers or strings, got dtype {labels.dtype}")
    by_row = len(shape) > 1 and labels.shape == shape[:1]
    if labels.shape != shape and not by_row:
        rows = f", or {shape[:1]}, one for each row" if len(shape) > 1 else ""
        raise InvalidParameter(f"clusters has shape {labels.shape}: it must be {shape}, one for each pair{rows}")
    code = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.repeat(code, math.prod(shape[1:])) if by_row else code


# -- both


def _labels(locations: Locations, region: Any, categories: Any) -> dict[str, NDArray[np.int64]]:
    """What E_r and E_poi compare, for each location, where asked for."""
    out = {}
    if region is None and isinstance(locations, Grid):
        region = REGION
    if region is not None and np.ndim(region) == 0:
        side = check.whole(region, "region", 1)
        if not isinstance(locations, Grid):
            raise InvalidParameter(
                f"region = {side} cells a side needs a Grid, got {locations!r}: give one integer for each location instead"
            )
        out["e_r"] = np.ascontiguousarray(block_labels(locations, side), np.int64)
    elif region is not None:
        out["e_r"] = _one_each(region, locations.size, "region")
    if categories is not None:
        label = out["e_poi"] = _one_each(categories, locations.size, "categories")
        if label.min() < -1:
            at = int(np.flatnonzero(label < -1)[0])
            raise InvalidParameter(f"categories[{at}] = {label[at]}: categories are 0, 1, ..., and -1 for none")
    return out


def _one_each(values: ArrayLike, size: int, name: str) -> NDArray[np.int64]:
    array = check.integers(values, name, InvalidParameter)
    if array.shape != (size,):
        raise InvalidParameter(f"{name} has shape {array.shape}: give one integer for each of the {size} locations")
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise InvalidParameter(f"{name} has labels above 2^63: number them from 0 on")
    return np.require(array, np.int64, ["C", "W"])


def _quantiles(values: Sequence[float]) -> list[float]:
    try:
        out = [float(q) for q in values]
    except (TypeError, ValueError):
        raise InvalidParameter(f"quantiles must be numbers between 0 and 1, got {values!r}") from None
    for q in out:
        if not 0 < q < 1:
            raise InvalidParameter(f"quantiles must lie between 0 and 1, got {q}: the largest error is in .largest")
    return list(dict.fromkeys(out))
