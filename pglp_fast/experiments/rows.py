"""The numbers of an experiment: tidy rows, one for each point of each series."""

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.stats import mean_bands, mean_interval
from pglp_fast._util.storage import replacing

from .claims import LEVEL


@dataclass(frozen=True)
class Row:
    """One point of one series.

    Attributes
    ----------
    data : which data
    policy, mechanism, setting : which series
    metric : "e_eu" (km), "e_r", "e_poi" (shares), "adversary" (km), "seconds", ...
    along, x : what runs along the series, and where this point is
    mean, low, high : estimate and 95 % confidence interval
    n : independent units that the estimate is a mean of (see the experiment)
    exact : the expected value, where it is computed without drawing
    """

    data: str
    policy: str
    mechanism: str
    setting: str
    metric: str
    along: str
    x: float
    mean: float
    low: float
    high: float
    n: int
    exact: float | None = None


Names = tuple[str, str, str, str]  # data, policy, mechanism, setting
COLUMNS = tuple(f.name for f in fields(Row))


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows whose fields are as wanted."""
    return [
        row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())
    ]


def mean_row(values: NDArray[np.float64], series: Names, metric: str, along: str, x: float) -> Row:
    """The mean of values with its interval, as a point of a series."""
    return Row(
        *series, metric, along, x, float(values.mean()), *mean_interval(values, LEVEL), len(values)
    )


def band_rows(values: NDArray[np.float64], series: Names, metric: str) -> list[Row]:
    """Means over users (rows, NaN where there is none) at each timestamp, with their bands."""
    bands = zip(*mean_bands(values, LEVEL), strict=True)
    return [
        Row(*series, metric, "timestamp", t, float(mean), float(low), float(high), int(n))
        for t, (mean, low, high, n) in enumerate(bands, 1)
        if n
    ]


def write_csv(path: Path, rows: Iterable[Row]) -> Path:
    """Ten digits are more than the data has, and hide how sums were ordered."""
    with replacing(path) as beside, open(beside, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(
                [
                    "" if v is None else f"{v:.10g}" if isinstance(v, float) else v
                    for v in asdict(row).values()
                ]
            )
    return path
