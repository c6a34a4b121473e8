"""Points of interest of the People Flow data (Nightley), for policies by category."""

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidLocation, InvalidTable
from pglp_fast.space.grid import Grid
from pglp_fast.space.points import Points
from pglp_fast.space.projection import Equirectangular

from .fix_batches import Reading
from .labels import Coded
from .parse import parse
from .reading_report import MALFORMED, SHOWN, Malformed, Report
from .table_batches import BATCH_ROWS
from .text import Layout, read_text
from .text_lines import Source

_COLUMNS = ("poi_id", "y", "x", "category", "y_id", "x_id", "2D_id", "count")
_ROLES = ("venue", "lat", "lon", "category", "y_id", "x_id", "2D_id", "visits")


@dataclass(frozen=True, repr=False)
class POIs:
    """Places with a category and how often they were visited.

    Attributes
    ----------
    venue : the place's id, as codes and labels
    lat, lon : degrees
    category, subcategory : such as "food" and "Japanese Restaurant"
    category_id : the category's number in the data (3 is food), -1 for none
    visits : of all users together
    report : rows read and rows left out
    """

    venue: Coded
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    category: Coded
    subcategory: Coded
    category_id: NDArray[np.int32]
    visits: NDArray[np.int64]
    report: Report

    def __len__(self) -> int:
        return len(self.lat)

    def cell_categories(self, grid: Grid, *, weight: str = "visits") -> NDArray[np.int32]:
        """The category_id that leads in each cell, -1 where no place has one: the labels that
        ``pf.categories`` takes.

        ``weight``: leading by "visits", or by the number of "places"; ties go to the lower id.
        """
        check.choice(weight, "weight", ("visits", "places"))
        cells = grid.locate(self.lat, self.lon)
        on = np.flatnonzero((cells >= 0) & (self.category_id >= 0))
        score = self.visits[on] if weight == "visits" else np.ones(on.size)
        return leading_category(cells[on], self.category_id[on], score, grid.size)

    def points(self, *, resolution_km: float = 0.001) -> tuple[Points, NDArray[np.int32]]:
        """The places as a map of their own, and the location of each place: places on one
        lattice site are one location."""
        step = check.positive(resolution_km, "resolution_km")
        if not len(self):
            raise InvalidLocation("there are no places: a map needs at least one location")
        low, high = float(self.lat.min()), float(self.lat.max())
        projection = Equirectangular(low, float(self.lon.min()), (low + high) / 2)
        sites, location = np.unique(
            np.rint(projection.to_km(self.lat, self.lon) / step), axis=0, return_inverse=True
        )
        points = Points(sites * step, resolution_km=step)
        points.projection = projection
        return points, location.reshape(-1).astype(np.int32)

    def __repr__(self) -> str:
        return f"POIs({len(self):,} places, {len(self.category.labels)} categories)"


def leading_category(
    cells: NDArray[Any], category: NDArray[Any], score: NDArray[Any], size: int
) -> NDArray[np.int32]:
    """The category with the highest total score in each of ``size`` cells, -1 where there is none.

    Ties go to the lower category.
    """
    out = np.full(size, -1, np.int32)
    width = int(category.max(initial=0)) + 1
    pairs, which = np.unique(cells.astype(np.int64) * width + category, return_inverse=True)
    order = np.lexsort((-pairs, np.bincount(which, weights=score, minlength=len(pairs))))
    out[pairs[order] // width] = pairs[order] % width  # of a cell the last is the best
    return out


def read_peopleflow_pois(path: str | os.PathLike[str], *, on_error: str = "raise") -> POIs:
    """Places of POI_TK.csv: poi_id, y (latitude), x (longitude), category as "food/Japanese
    Restaurant/3", cells, visits.

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and
    report it."""
    check.choice(on_error, "on_error", ("raise", "skip"))
    reading = Reading(on_error, "UTC")
    with Source(path) as source:
        header = (source.take_line() or "").split(",")
        if tuple(name.strip() for name in header) != _COLUMNS:
            raise InvalidTable(
                f"{source.name} must have the columns {', '.join(_COLUMNS)}, got "
                f"{', '.join(header)}"
            )
        raw = read_text(source, Layout.of_roles(_ROLES), BATCH_ROWS)
        parts = [parse(batch, source.name, reading) for batch in raw]
        name = source.name

    def column(get: Any, dtype: type) -> NDArray[Any]:
        return np.concatenate([np.empty(0, dtype), *(get(part) for part in parts)])

    codes = column(lambda part: part.codes["venue"], np.int32)
    whole = column(lambda part: part.codes["category"], np.int32)
    lat, lon, visits = (
        column(lambda part, role=role: part.numbers[role], np.float64)
        for role in ("lat", "lon", "visits")
    )
    lines = column(lambda part: part.number, np.int64)
    texts = [str(text) for text in reading.labeller("category", "field", name).labels()]
    split, ids, known = _categories(texts)
    fine = known[whole] & np.isfinite(lat) & np.isfinite(lon) & (visits >= 0)
    malformed = [m for part in parts for m in part.malformed]
    for row in np.flatnonzero(~fine):
        text = texts[whole[row]] if whole[row] >= 0 else ""
        reason = (
            f"category {text!r} is not name/name/number"
            if not known[whole[row]]
            else "lat, lon or count is missing"
        )
        malformed.append(Malformed(name, "line", int(lines[row]), reason))
    if malformed and on_error == "raise":
        raise InvalidTable(f"{malformed[0]}; on_error='skip' leaves such rows out and reports them")
    rows, whole = sum(part.rows for part in parts), whole[fine]
    named = tuple(sorted(malformed, key=lambda m: m.number)[:SHOWN])
    return POIs(
        Coded(codes[fine], reading.labeller("venue", "field", name)),
        lat[fine],
        lon[fine],
        Coded.of([pair[0] for pair in split])[whole],
        Coded.of([pair[1] for pair in split])[whole],
        ids[whole],
        visits[fine].astype(np.int64),
        Report(rows, malformed=named).then(MALFORMED, rows - int(fine.sum())),
    )


def _categories(
    texts: list[str],
) -> tuple[list[tuple[str, str]], NDArray[np.int32], NDArray[np.bool_]]:
    """((category, subcategory), number or -1, whether it is sound) of each text.

    "food/Ramen / Noodle House/3": the first part, what is between, and the last; the number may be
    missing. A further entry stands for rows without a text.
    """
    split = [text.split("/") for text in texts]
    sound = [len(p) > 2 and re.fullmatch(r"\d{0,4}", p[-1]) is not None for p in split]
    ids = [int(p[-1]) if good and p[-1] else -1 for p, good in zip(split, sound)]
    names = [(p[0], "/".join(p[1:-1])) for p in split]
    return names, np.array(ids, np.int32), np.array([*sound, False])
