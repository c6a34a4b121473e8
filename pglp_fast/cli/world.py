"""From options to objects: the map, the policy, the mechanism, the model."""

import argparse
import csv
import gzip
import hashlib
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidLocation, InvalidParameter, InvalidPolicy, InvalidTable, PGLPError, TooLarge
from ..locations import Grid
from ..mechanisms import KRR, PLM, PPIM, GraphExponential, Mechanism, Optimal, PlanarLaplace, Remapped
from ..mobility import MobilityModel
from ..policy import PolicyGraph, blocks, categories, complete, neighbours8
from ..projection import KM_PER_DEGREE
from ..traces import TraceReleaser
from ..tracks import Tracks, read_peopleflow_pois

_MECHANISMS: dict[str, Any] = {
    "ppim": PPIM, "plm": PLM, "planar-laplace": PlanarLaplace, "krr": KRR, "graph-exponential": GraphExponential,
    "optimal": Optimal, "pim": PPIM, "lm": PLM,
}  # fmt: skip
_BY_TABLE = ("krr", "graph-exponential", "optimal")
_MOST_CELLS = 50_000_000
_MARGIN = 0.01  # degrees: the map of a table is its box, outward to a multiple of this
DAY_MS = 86_400_000


# -- the map


class Box:
    """The box of latitudes and longitudes around what has been seen."""

    def __init__(self) -> None:
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)

    def add(self, tracks: Tracks) -> None:
        at = np.stack([tracks.lat, tracks.lon])
        with np.errstate(invalid="ignore"):
            on_earth = (np.abs(at[0]) <= 90) & (np.abs(at[1]) <= 180)
        if on_earth.any():
            at = at[:, on_earth]
            self.low, self.high = np.minimum(self.low, at.min(axis=1)), np.maximum(self.high, at.max(axis=1))

    def bounds(self, source: str) -> tuple[float, float, float, float]:
        if not np.isfinite(self.low).all():
            raise InvalidTable(f"{source} has no place on Earth: is --columns right? Else give the map with --bounds")
        steps = 1 / _MARGIN
        south, west = (math.floor(v * steps) / steps for v in self.low)
        north, east = (math.ceil(v * steps) / steps for v in self.high)
        return south, max(north, south + _MARGIN), west, max(east, west + _MARGIN)


def grid_of(bounds: tuple[float, float, float, float], cell_km: tuple[float, float]) -> Grid:
    south, north, west, east = bounds
    dx, dy = cell_km
    wide = (east - west) * KM_PER_DEGREE * math.cos(math.radians((south + north) / 2)) / dx
    high = (north - south) * KM_PER_DEGREE / dy
    if wide * high > _MOST_CELLS:
        raise TooLarge(
            f"lat {south:g}..{north:g}, lon {west:g}..{east:g} is {high:,.0f} x {wide:,.0f} cells of {dx:g} km: "
            "give the box you mean with --bounds, or a larger --cell-km"
        )
    return Grid.from_bounds(lat=(south, north), lon=(west, east), cell_km=cell_km)


def given_grid(options: argparse.Namespace) -> Grid | None:
    """The grid that --bounds and --cell-km say; None where one of them is missing."""
    return None if options.bounds is None or options.cell_km is None else grid_of(options.bounds, options.cell_km)


def need_grid(options: argparse.Namespace) -> Grid:
    """The grid of --bounds and --cell-km, or that of the model; where both are given they must agree."""
    model = open_model(options.mobility) if getattr(options, "mobility", None) else None
    if model is not None:
        agree(options, model, options.mobility)
        return grid_on(model)
    grid = given_grid(options)
    if grid is None:
        what = "--bounds and --cell-km" + (", or --mobility MODEL to take its map" if hasattr(options, "mobility") else "")
        raise InvalidParameter(f"which map? Give {what}")
    return grid


def describe(grid: Grid) -> str:
    """The map in one line."""
    south, north, west, east = box_of(grid)
    dx, dy = grid.scale
    side = f"{dx:g} km" if dx == dy else f"{dx:g} x {dy:g} km"
    return f"{grid.rows} x {grid.cols} cells of {side}, lat {south:.4f}..{north:.4f}, lon {west:.4f}..{east:.4f}"


def box_of(grid: Grid) -> tuple[float, float, float, float]:
    """The box that the cells cover: at least the bounds asked for."""
    assert grid.projection is not None
    far = np.array([grid.cols * grid.scale[0], grid.rows * grid.scale[1]])
    (south, west), (north, east) = grid.projection.to_latlon(np.stack([np.zeros(2), far]))
    return float(south), float(north), float(west), float(east)


# -- the model


def open_model(path: str) -> MobilityModel:
    try:
        model = MobilityModel.open(path)
    except OSError as error:
        raise InvalidParameter(f"{path}: {error.strerror}: make a model with 'pglp-fast fit'") from None
    if grid_on(model).projection is None:
        raise InvalidLocation(f"{path}: the model's grid has no latitude and longitude: fit it on Grid.from_bounds")
    return model


def grid_on(model: MobilityModel) -> Grid:
    assert isinstance(model.locations, Grid)
    return model.locations


def agree(options: argparse.Namespace, model: MobilityModel, path: str) -> None:
    """--bounds and --cell-km beside a model must say the model's map."""
    own, cell = grid_on(model), options.cell_km
    if cell is not None and tuple(cell) != own.scale:
        raise InvalidParameter(f"--cell-km {cell[0]:g},{cell[1]:g} is not the model's: {path} has {describe(own)}. Leave it out")
    if options.bounds is not None:
        grid = grid_of(options.bounds, own.scale)
        if grid.to_dict() != own.to_dict():
            raise InvalidParameter(f"--bounds are not the model's: {path} has {describe(own)}. Leave them out")


def step_of(options: argparse.Namespace, model: MobilityModel) -> int:
    """Duration of a step in ms."""
    known = model.notes.get("step_ms")
    if options.step is None and known is None:
        raise InvalidParameter(f"{options.mobility} does not say how long its steps are: give --step, e.g. --step 5min")
    if options.step is not None and known is not None and options.step != known:
        raise InvalidParameter(f"--step is {options.step / 1000:g} s, the model's steps are {known / 1000:g} s: leave --step out")
    step = int(options.step or known or 0)
    if model.periods > 1 and DAY_MS % step:
        raise InvalidParameter(
            f"the model has {model.periods} periods of a day: steps must divide the day, {step / 1000:g} s do not"
        )
    return step


# -- the policy


def make_policy(options: argparse.Namespace, grid: Grid) -> PolicyGraph:
    kind, colon, value = options.policy.partition(":")
    if options.labels is not None and kind != "categories":
        raise InvalidParameter(f"--labels is for --policy categories:K, not for {options.policy}")
    if kind in ("blocks", "categories"):
        if not (value.isascii() and value.isdigit() and len(value) < 10) or int(value) < 1:
            raise InvalidPolicy(f"--policy {options.policy}: write {kind}:K with the side K of a block in cells, e.g. {kind}:3")
        if kind == "blocks":
            return blocks(grid, int(value))
        if options.labels is None:
            raise InvalidPolicy("--policy categories:K needs --labels FILE, a table of lat,lon,category or of cell,category")
        return categories(grid, read_labels(options.labels, grid)[0], int(value))
    if kind == "edges" and value:
        return _edges_of(value, grid)
    if colon or kind not in ("neighbours8", "complete"):
        raise InvalidPolicy(
            f"--policy {options.policy} is not known: write blocks:K, neighbours8, complete, categories:K or edges:FILE"
        )
    return neighbours8(grid) if kind == "neighbours8" else complete(grid)


def _edges_of(path: str, grid: Grid) -> PolicyGraph:
    if path.endswith(".npz"):
        import scipy.sparse

        try:
            return PolicyGraph.from_scipy(grid, scipy.sparse.load_npz(path))
        except (ValueError, KeyError) as error:
            if isinstance(error, PGLPError):
                raise
            raise InvalidPolicy(f"{path} is not a sparse matrix saved by scipy.sparse.save_npz: {error}") from None
    if path.endswith(".npy"):
        try:
            return PolicyGraph.from_edges(grid, np.load(path, allow_pickle=False))
        except ValueError as error:
            if isinstance(error, PGLPError):
                raise
            raise InvalidPolicy(f"{path} is not an array saved by numpy.save: {error}") from None
    pairs: list[tuple[int, int]] = []
    for line, row in _text_rows(path):
        try:
            a, b = (int(v) for v in row[:2])
        except ValueError:
            if line == 1:  # a header
                continue
            raise InvalidPolicy(f"{path}, line {line}: {','.join(row)[:60]!r} is not two cells") from None
        if not (0 <= a < grid.size and 0 <= b < grid.size):
            raise InvalidPolicy(f"{path}, line {line}: cells are 0..{grid.size - 1}, got {a} and {b}")
        pairs.append((a, b))
    return PolicyGraph.from_edges(grid, np.array(pairs, np.int64).reshape(-1, 2))


def _text_rows(path: str) -> list[tuple[int, list[str]]]:
    """(line, fields) of a small text table, zipped or not; empty lines are passed over."""
    raw = Path(path).read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    head = text.split("\n", 1)[0]
    reader = csv.reader(text.splitlines(), delimiter=max(",\t;|", key=head.count))
    return [(reader.line_num, [field.strip() for field in row]) for row in reader if row]


def read_labels(path: str, grid: Grid) -> tuple[NDArray[np.int32], list[str]]:
    """Category of each cell (the one that most places in it have, ties to the first by name), -1 for none; and the names."""
    if path.endswith(".parquet"):
        from ..tracks.optional import need

        need("pyarrow")
        from pyarrow import parquet

        table = parquet.read_table(path)
        rows = [(k + 1, [str(v) for v in row.values()]) for k, row in enumerate(table.to_pylist())]
        header: list[str] = list(table.column_names)
    else:
        rows = _text_rows(path)
        if not rows:
            raise InvalidTable(f"{path} is empty: it must have columns lat,lon,category or cell,category")
        header = rows.pop(0)[1]
    if header[:4] == ["poi_id", "y", "x", "category"]:
        places = read_peopleflow_pois(path)
        labels = places.cell_categories(grid)
        by_id = dict(zip(places.category_id.tolist(), places.category.values().tolist(), strict=True))
        return labels, [by_id.get(k, str(k)) for k in range(int(labels.max(initial=-1)) + 1)]
    plain = [name.lower() for name in header]

    def column(*wanted: str) -> int:
        return next((plain.index(name) for name in wanted if name in plain), -1)

    lat, lon, cell = column("lat", "latitude"), column("lon", "lng", "longitude"), column("cell", "released_cell")
    label = column("category", "label", "venue_category", "venuecategory")
    if label < 0 or (cell < 0 and min(lat, lon) < 0):
        raise InvalidTable(f"{path} must have columns lat,lon,category or cell,category, got {', '.join(header)}")
    cells, named = np.empty(len(rows), np.int64), []
    for k, (line, row) in enumerate(rows):
        try:
            cells[k] = int(row[cell]) if cell >= 0 else int(grid.locate(float(row[lat]), float(row[lon])))
            named.append(row[label])
        except (ValueError, IndexError, OverflowError):
            raise InvalidTable(
                f"{path}, line {line}: {','.join(row)[:60]!r} cannot be read as a place and its category"
            ) from None
        if cells[k] >= grid.size or (cell >= 0 and cells[k] < 0):
            raise InvalidTable(f"{path}, line {line}: cells are 0..{grid.size - 1}, got {cells[k]}")
    kinds, number = np.unique(np.array(named, dtype=str), return_inverse=True)
    on = (cells >= 0) & (np.array(named, dtype=str) != "")
    out = np.full(grid.size, -1, np.int32)
    if on.any():
        pairs, counts = np.unique(cells[on] * len(kinds) + number[on], return_counts=True)
        order = np.lexsort((-pairs, counts))  # of a cell the last is the best
        out[pairs[order] // len(kinds)] = pairs[order] % len(kinds)
    if (out < 0).all():
        raise InvalidTable(f"{path} has no place on the map ({describe(grid)})")
    return out, kinds.tolist()


# -- the mechanism


def make_mechanism(options: argparse.Namespace, graph: PolicyGraph) -> Mechanism:
    """For rows released one by one."""
    name = options.mechanism
    if name in ("pim", "lm") and options.policy != "complete":
        raise InvalidPolicy(f"--mechanism {name} is for --policy complete: use {'ppim' if name == 'pim' else 'plm'} for others")
    how: dict[str, Any] = {"epsilon": options.epsilon}
    if name in _BY_TABLE:
        if options.calibration != "component":
            raise InvalidParameter(f"--mechanism {name} knows --calibration component only: for graph use ppim or plm")
    else:
        how["calibration"] = options.calibration
    mechanism: Mechanism = _MECHANISMS[name](graph, **how)
    return mechanism if options.remap is None else Remapped(mechanism, loss=options.remap)


def make_releaser(options: argparse.Namespace, graph: PolicyGraph, model: MobilityModel, rng: int | None) -> TraceReleaser:
    """For users who move."""
    return TraceReleaser(
        graph, model, epsilon=options.epsilon, mechanism=options.mechanism, calibration=options.calibration,
        repair=options.repair or "min-area", delta=options.delta or 0.0, likelihood=options.likelihood or "exact",
        remap=options.remap, rng=rng,
    )  # fmt: skip


def only_with_mobility(options: argparse.Namespace) -> None:
    """Options that mean nothing for rows released one by one are refused, not ignored."""
    for name in ("delta", "repair", "likelihood", "step", "max_missing"):
        if getattr(options, name) is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} is for users who move: give --mobility MODEL, or leave it out")


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``read_table`` and ``iter_table``."""
    return {
        "columns": options.columns, "names": options.names, "delimiter": options.delimiter, "timezone": options.timezone
    }  # fmt: skip


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
