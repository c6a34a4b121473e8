"""Errors estimated from true and released cells, with confidence intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.evaluation import errors as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.stats import (
    Clusters,
    Interval,
    mean_interval,
    quantile_interval,
    quantile_rank,
    share_interval,
)
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.locations import Locations, require_locations, require_on_map

from .utility_result import (
    QUANTILES,
    Floats,
    Utility,
    Worst,
    asked_quantiles,
    labels_of,
    quantile_name,
)


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
    true, released : cells, arrays of one shape; a pair with a -1 on either side is left out and
        counted in ``missing``
    region, categories, quantiles : as for ``utility``
    level : how sure each interval is, on its own
    clusters : which pairs belong together, for traces: "rows" (each row of a 2-d array is one
        user), or one integer or string for each pair or for each row. None: all pairs are
        independent. The steps of a user are not: where a user dwells decides on the error, and
        intervals that ignore it are far too narrow.

    Notes
    -----
    Intervals: E_eu by Student's t; E_r and E_poi by Wilson's; quantiles between order statistics,
    free of any distribution. With clusters, by the variance between clusters: see docs/metrics.md.
    ``worst`` is the largest of the means at the locations seen, each as noisy as its few pairs make
    it, and so tends to be too large; ``largest`` is what was seen and tends to be too small."""
    require_locations(locations)
    for cells in (true, released):
        require_on_map(cells, locations, InvalidParameter)
    cells = [
        check.cells_or_missing(true, locations.size, "true"),
        check.cells_or_missing(released, locations.size, "released"),
    ]
    shape = cells[0].shape
    if shape != cells[1].shape:
        raise InvalidParameter(
            f"true has shape {shape} and released {cells[1].shape}: they must be pairs"
        )
    labels = labels_of(locations, region, categories)
    wanted = asked_quantiles(quantiles)
    level = check.positive(level, "level")
    if level >= 1:
        raise InvalidParameter(f"level must be between 0 and 1, got {level}: 0.95 is customary")
    together = _cluster_codes(clusters, shape)
    s, distance, other = _errors(locations, cells[0].reshape(-1), cells[1].reshape(-1), labels)
    seen = distance >= 0
    count = int(np.count_nonzero(seen))
    if count == 0:
        raise InvalidParameter(
            f"none of the {s.size} pairs has both cells: there is nothing to estimate from"
        )
    if count < s.size:
        s, distance = s[seen], distance[seen]
        other = {name: hits[seen] for name, hits in other.items()}
    groups = None if together is None else Clusters.of(together[seen])
    ordered = np.sort(distance)
    by_location = _by_location(s, {"e_eu": distance} | other, locations.size)
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
        intervals=_intervals(distance, ordered, other, wanted, level, groups),
        level=level,
    )


def _errors(
    locations: Locations, true: check.Cells, released: check.Cells, labels: dict[str, Any]
) -> tuple[check.Cells, Floats, dict[str, NDArray[np.bool_]]]:
    """(true cells, distance of each pair or -1, whether each label differs)."""
    none, no_flags = np.empty(0, np.int64), np.empty(0, np.bool_)
    other = {name: np.empty(true.size, np.bool_) for name in labels}
    names = ("e_r", "e_poi")
    samples = kernels.Samples(
        true, released, np.empty(true.size), tuple(other.get(name, no_flags) for name in names)
    )
    asked = tuple(labels.get(name, none) for name in names)

    def part(start: int, stop: int) -> None:
        kernels.sample_errors(samples, start, stop, locations.lattice, *locations.scale, asked)

    run_ranges(part, true.size)
    return true, samples.distance, other


def _intervals(
    distance: Floats,
    ordered: Floats,
    other: dict[str, NDArray[np.bool_]],
    wanted: list[float],
    level: float,
    groups: Clusters | None,
) -> dict[str, Interval]:
    out = {"e_eu": mean_interval(distance, level, groups)}
    out |= {name: share_interval(hits, level, groups) for name, hits in other.items()}
    for q in wanted:
        out[quantile_name(q)] = quantile_interval(ordered, q, level, groups, distance)
    return out


def _by_location(
    cells: check.Cells, errors: dict[str, NDArray[Any]], size: int
) -> dict[str, Floats]:
    """The mean of each error at each true location, nan where none was seen."""
    where = cells.astype(np.intp)  # once: counting would do it each time
    visits = np.bincount(where, minlength=size)
    return {name: _means(where, values, visits) for name, values in errors.items()}


def _means(cells: NDArray[np.intp], values: NDArray[Any], visits: NDArray[np.int64]) -> Floats:
    sums = np.bincount(cells, weights=values, minlength=visits.size)
    return np.asarray(np.divide(sums, visits, out=np.full(visits.size, np.nan), where=visits > 0))


def _cluster_codes(
    clusters: str | ArrayLike | None, shape: tuple[int, ...]
) -> NDArray[np.int64] | None:
    """A number for the cluster of each pair, in one dimension."""
    if clusters is None:
        return None
    if isinstance(clusters, str):
        check.choice(clusters, "clusters", ("rows",))
        if len(shape) < 2:
            raise InvalidParameter(
                f'clusters="rows" needs arrays (users, T), got shape {shape}: give one label for '
                "each pair"
            )
        labels: NDArray[Any] = np.arange(shape[0])
    else:
        labels = check.as_array(clusters, "clusters", InvalidParameter)
    if labels.dtype.kind not in "iuUS":
        raise InvalidParameter(f"clusters must be integers or strings, got dtype {labels.dtype}")
    by_row = len(shape) > 1 and labels.shape == shape[:1]
    if labels.shape != shape and not by_row:
        rows = f", or {shape[:1]}, one for each row" if len(shape) > 1 else ""
        raise InvalidParameter(
            f"clusters has shape {labels.shape}: it must be {shape}, one for each pair{rows}"
        )
    code = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.repeat(code, math.prod(shape[1:])) if by_row else code
