"""The figures of utility: the paper's E_eu, E_r and E_poi, expected or estimated.

Here is what ``utility`` and ``estimate_utility`` share: the result, and what they ask for. The
formulae are in docs/metrics.md."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.stats import Interval
from pglp_fast.errors import InvalidParameter
from pglp_fast.policy.named import block_labels
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations

REGION = 5  # cells a side, as in the paper
QUANTILES = (0.5, 0.9, 0.99)

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
    e_r : probability that the released location lies in another region; None where there are no
        regions
    e_poi : probability that the released location has another category; None where there are no
        categories
    worst : the largest mean distance from one location, and which; over the locations that occur
    largest : the largest distance that has a probability above 0 (exact) or was seen (estimate), km
    quantiles : {q: the smallest distance in km that is not exceeded with probability q or more}
    by_location : {"e_eu", "e_r", "e_poi": that mean for each true location, (N,)}; nan outside the
        domain, or where none was seen
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
        """All single figures under plain names, for a table or JSON; intervals as ``e_eu_low``,
        ``e_eu_high``, ..."""
        out: dict[str, Any] = {"e_eu": self.e_eu, "e_r": self.e_r, "e_poi": self.e_poi}
        out |= {"worst": self.worst.error, "worst_location": self.worst.location}
        out |= {"largest": self.largest}
        out |= {quantile_name(q): value for q, value in self.quantiles.items()}
        out |= {"count": self.count, "missing": self.missing, "level": self.level}
        for name, (low, high) in self.intervals.items():
            out |= {f"{name}_low": low, f"{name}_high": high}
        return out

    def __str__(self) -> str:
        exact = self.level is None
        lines = [
            f"{'':20}{'expected' if exact else 'estimate':>12}"
            + ("" if exact else f"   {100 * (self.level or 0):g} % interval")
        ]
        within = [
            (f"{100 * q:g} % within (km)", quantile_name(q), v) for q, v in self.quantiles.items()
        ]
        for label, name, value in [
            ("E_eu (km)", "e_eu", self.e_eu),
            ("E_r", "e_r", self.e_r),
            ("E_poi", "e_poi", self.e_poi),
            *within,
            ("worst mean (km)", "worst", self.worst.error),
            ("largest (km)", "largest", self.largest),
        ]:
            if value is None:
                continue
            line = f"{label:20}{value:12.5g}"
            if name in self.intervals:
                low, high = self.intervals[name]
                line += f"   {low:.5g} .. {high:.5g}"
            if name == "worst":
                line += f"   at location {self.worst.location}"
            lines.append(line)
        pairs = f"{self.count:,} pairs, {self.missing:,} more with a cell missing"
        return "\n".join([*lines, f"over {f'{self.count:,} locations' if exact else pairs}"])


def quantile_name(q: float) -> str:
    """As in ``as_dict`` and ``intervals``."""
    return f"q{q!r}"


def labels_of(locations: Locations, region: Any, categories: Any) -> dict[str, NDArray[np.int64]]:
    """What E_r and E_poi compare, for each location, where asked for."""
    out = {}
    if region is None and isinstance(locations, Grid):
        region = REGION
    if region is not None and check.as_array(region, "region", InvalidParameter).ndim == 0:
        side = check.whole(region, "region", 1)
        if not isinstance(locations, Grid):
            raise InvalidParameter(
                f"region = {check.brief(side)} cells a side needs a Grid, got {locations!r}: give "
                "one integer for each location instead"
            )
        out["e_r"] = np.ascontiguousarray(block_labels(locations, side), np.int64)
    elif region is not None:
        out["e_r"] = check.labels(region, locations.size, "region", InvalidParameter)
    if categories is not None:
        out["e_poi"] = check.category_labels(
            categories, locations.size, "categories", InvalidParameter
        )
    return out


def asked_quantiles(values: Sequence[float]) -> list[float]:
    try:
        out = [check.real(q, "quantiles") for q in check.listed(values, "quantiles")]
    except InvalidParameter:
        raise InvalidParameter(
            f"quantiles must be numbers between 0 and 1, got {check.brief(values)}"
        ) from None
    for q in out:
        if not 0 < q < 1:
            raise InvalidParameter(
                f"quantiles must lie between 0 and 1, got {q}: the largest error is in .largest"
            )
    return list(dict.fromkeys(out))
