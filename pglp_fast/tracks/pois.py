"""Points of interest of the People Flow data (Nightley), for policies by category."""

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from ..errors import InvalidLocation, InvalidTable
from ..locations import Grid, Points
from ..projection import Equirectangular
from .batch import Reading
from .labels import Coded
from .report import MALFORMED, SHOWN, Malformed, Report
from .text import Layout, Source, batches

_COLUMNS = ("poi_id", "y", "x", "category", "y_id", "x_id", "2D_id", "count")
_LAYOUT = Layout({"venue": 0, "lat": 1, "lon": 2, "category": 3, "visits": 7}, fields=len(_COLUMNS))
_ROWS = 1 << 15


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
        """The category_id that leads in each cell, -1 where no place has one: the labels that ``pf.categories`` takes.

        ``weight``: leading by "visits", or by the number of "places"; ties go to the lower id.
        """
        check.choice(weight, "weight", ("visits", "places"))
        cells = grid.locate(self.lat, self.lon)
        on = np.flatnonzero((cells >= 0) & (self.category_id >= 0))
        if not on.size:
            return np.full(grid.size, -1, np.int32)
        width = int(self.category_id.max()) + 1
        pairs, which = np.unique(cells[on].astype(np.int64) * width + self.category_id[on], return_inverse=True)
        score = np.bincount(which, weights=self.visits[on] if weight == "visits" else None)
        order = np.lexsort((-pairs, score))  # of a cell the last is the best: highest score, then lowest id
        out = np.full(grid.size, -1, np.int32)
        out[pairs[order] // width] = pairs[order] % width
        return out

    def points(self, *, resolution_km: float = 0.001) -> tuple[Points, NDArray[np.int32]]:
        """The places as a map of their own, and the location of each place: places on one lattice site are one location."""
        step = check.positive(resolution_km, "resolution_km")
        if not len(self):
            raise InvalidLocation("there are no places: a map needs at least one location")
        low, high = float(self.lat.min()), float(self.lat.max())
        projection = Equirectangular(low, float(self.lon.min()), (low + high) / 2)
        sites, location = np.unique(np.rint(projection.to_km(self.lat, self.lon) / step), axis=0, return_inverse=True)
        points = Points(sites * step, resolution_km=step)
        points.projection = projection
        return points, location.reshape(-1).astype(np.int32)

    def __repr__(self) -> str:
        return f"POIs({len(self):,} places, {len(self.category.labels)} categories)"


def read_peopleflow_pois(path: str | os.PathLike[str], *, on_error: str = "raise") -> POIs:
    """Places of POI_TK.csv: poi_id, y (latitude), x (longitude), category as "food/Japanese Restaurant/3", cells, visits.

    ``on_error``: a row that cannot be read: "raise" an error that says which line, or "skip" it and report it.
    """
    check.choice(on_error, "on_error", ("raise", "skip"))
    reading = Reading(on_error, "UTC")
    with Source(path) as source:
        header = (source.take_line() or "").split(",")
        if tuple(name.strip() for name in header) != _COLUMNS:
            raise InvalidTable(f"{source.name} must have the columns {', '.join(_COLUMNS)}, got {', '.join(header)}")
        parts = list(batches(source, _LAYOUT, reading, _ROWS))
        name = source.name

    def column(get: Any, dtype: type) -> NDArray[Any]:
        return np.concatenate([np.empty(0, dtype), *(get(part) for part in parts)])

    codes = column(lambda part: part.codes["venue"], np.int32)
    whole = column(lambda part: part.codes["category"], np.int32)
    lat, lon, visits = (column(lambda part, role=role: part.numbers[role], np.float64) for role in ("lat", "lon", "visits"))
    lines = column(lambda part: part.number, np.int64)
    rows, malformed = sum(part.rows for part in parts), [m for part in parts for m in part.malformed]

    # "food/Ramen / Noodle House/3": the first part, the last, and what is between them; the number may be missing
    texts = [str(text) for text in reading.labeller("category", "field", name).labels()]
    split = [(text.split("/")[0], "/".join(text.split("/")[1:-1]), text.split("/")[-1]) for text in texts]
    known = np.array(
        [text.count("/") >= 2 and re.fullmatch(r"\d{0,4}", n) is not None for text, (*_, n) in zip(texts, split)] + [False]
    )
    fine = known[whole] & np.isfinite(lat) & np.isfinite(lon) & (visits >= 0)
    for row in np.flatnonzero(~fine):
        text = texts[whole[row]] if whole[row] >= 0 else ""
        reason = f"category {text!r} is not name/name/number" if not known[whole[row]] else "lat, lon or count is missing"
        malformed.append(Malformed(name, "line", int(lines[row]), reason))
        if on_error == "raise":
            raise InvalidTable(f"{malformed[-1]}; on_error='skip' leaves such rows out and reports them")
    ids = np.array([int(n) if good and n else -1 for (*_, n), good in zip(split, known)], np.int32)
    whole = whole[fine]
    category, subcategory = (Coded.of([parts[k] for parts in split])[whole] for k in (0, 1))
    report = Report(rows, malformed=tuple(sorted(malformed, key=lambda m: m.number)[:SHOWN])).then(
        MALFORMED, rows - int(fine.sum())
    )
    venue = Coded(codes[fine], reading.labeller("venue", "field", name))
    return POIs(venue, lat[fine], lon[fine], category, subcategory, ids[whole], visits[fine].astype(np.int64), report)
