"""Policies by their spelling: "blocks:3", "neighbours8", "categories:6", "regions:FILE"."""

import csv
import gzip
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import need
from pglp_fast.errors import InvalidParameter, InvalidPolicy, InvalidTable
from pglp_fast.io.pois import leading_category, read_peopleflow_pois
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.named import blocks, categories, complete, neighbours8
from pglp_fast.policy.places import hide
from pglp_fast.policy.regions import regions
from pglp_fast.policy.weighted_edges import LARGEST, read_fraction
from pglp_fast.space.grid import Grid

from .maps import describe
from .paths import reading

_BY_LABELS, _FROM_FILE = ("categories", "hide"), ("edges", "regions", "saved")
_MEANING = {
    "blocks": "the side K of a block in cells",
    "categories": "the side K of a block in cells",
    "hide": "the number K of other cells that each sensitive one is joined with",
}


def spelt_policy(
    policy: str, grid: Grid, labels: str | os.PathLike[str] | None = None
) -> PolicyGraph:
    """The policy that a spelling says, on a map; ``labels``: the file for categories:K and
    hide:K."""
    kind, colon, value = policy.partition(":")
    if labels is not None and kind not in _BY_LABELS:
        raise InvalidParameter(f"labels is for policy='categories:K', not for {policy}")
    if kind in ("blocks", *_BY_LABELS):
        if not (value.isascii() and value.isdigit() and len(value) < 10) or int(value) < 1:
            raise InvalidPolicy(
                f"policy={policy!r}: write {kind}:K with {_MEANING[kind]}, e.g. {kind}:3"
            )
        if kind == "blocks":
            return blocks(grid, int(value))
        if labels is None:
            raise InvalidPolicy(
                f"policy='{kind}:K' needs labels=FILE, a table of lat,lon,category or of "
                "cell,category"
            )
        found = read_labels(os.fspath(labels), grid)[0]
        if kind == "hide":
            return hide(grid, found >= 0, int(value))
        return categories(grid, found, int(value))
    if kind in _FROM_FILE and value:
        return _of_file(kind, value, grid)
    if colon or kind not in ("neighbours8", "complete"):
        raise InvalidPolicy(
            f"policy={policy!r} is not known: write blocks:K, neighbours8, complete, "
            "categories:K, hide:K, regions:FILE, edges:FILE or saved:FILE"
        )
    return neighbours8(grid) if kind == "neighbours8" else complete(grid)


def files_of(policy: object, labels: str | os.PathLike[str] | None) -> list[str]:
    """Files that a policy is read from."""
    found = [] if labels is None else [os.fspath(labels)]
    if isinstance(policy, str) and policy.partition(":")[0] in _FROM_FILE:
        found.append(policy.partition(":")[2])
    return found


def absolute(policy: PolicyGraph | str) -> PolicyGraph | str:
    """A policy whose file, if it is read from one, is named whole, for processes elsewhere."""
    if isinstance(policy, str) and policy.partition(":")[0] in _FROM_FILE:
        kind, _, path = policy.partition(":")
        return f"{kind}:{Path(path).absolute()}"
    return policy


def _of_file(kind: str, path: str, grid: Grid) -> PolicyGraph:
    """A policy that is read from a file."""
    if kind == "edges":
        return _edges_of(path, grid)
    if kind == "regions":
        return regions(grid, path)
    graph = PolicyGraph.load(path)
    if not graph.locations.same_map(grid):
        raise InvalidPolicy(
            f"{path} holds a policy of another map than the release: "
            f"{graph.locations.difference(grid)}"
        )
    return graph


def _edges_of(path: str, grid: Grid) -> PolicyGraph:
    if path.endswith(".npz"):
        import scipy.sparse

        what = "a sparse matrix saved by scipy.sparse.save_npz"
        with open(path, "rb") as file, reading(path, what, InvalidPolicy):
            return PolicyGraph.from_scipy(grid, scipy.sparse.load_npz(file))
    if path.endswith(".npy"):
        with open(path, "rb") as file, reading(path, "an array saved by numpy.save", InvalidPolicy):
            array = np.load(file, allow_pickle=False)
        if array.ndim == 2 and array.shape[1] == 3 and array.dtype.kind in "iuf":
            ends = array[:, :2].astype(np.int64)  # the third column has the weights
            wrong = np.flatnonzero((ends != array[:, :2]).any(axis=1))
            if wrong.size:
                raise InvalidPolicy(f"{path}, row {wrong[0]}: the first two columns are cells")
            return PolicyGraph.from_edges(grid, ends, array[:, 2])
        return PolicyGraph.from_edges(grid, array)
    pairs: list[tuple[int, int]] = []
    weights: list[Fraction] = []
    for line, row in _text_rows(path):
        try:
            a, b = (int(v) for v in row[:2])
        except ValueError:
            if line == 1:  # a header
                continue
            raise InvalidPolicy(
                f"{path}, line {line}: {','.join(row)[:60]!r} is not two cells"
            ) from None
        if not (0 <= a < grid.size and 0 <= b < grid.size):
            raise InvalidPolicy(
                f"{path}, line {line}: cells are 0..{grid.size - 1}, got {a} and {b}"
            )
        pairs.append((a, b))
        weights.append(_weight_of(row[2] if len(row) > 2 else "", path, line))
    if not pairs:
        raise InvalidPolicy(f"{path} has no edges: write two cells on each line, e.g. 3,4")
    return PolicyGraph.from_edges(grid, np.array(pairs, np.int64), np.array(weights, object))


def _weight_of(text: str, path: str, line: int) -> Fraction:
    """The weight in the third column: a number such as 0.5, or a fraction such as 2/3; 1 where
    there is none."""
    try:
        return read_fraction(Fraction(text or 1))
    except (ValueError, ZeroDivisionError, InvalidPolicy):
        raise InvalidPolicy(
            f"{path}, line {line}: the third column is the weight of the edge, a fraction of whole "
            f"numbers from 1 to {LARGEST} such as 0.5 or 2/3, got {text[:60]!r}"
        ) from None


def _text_rows(path: str) -> list[tuple[int, list[str]]]:
    """(line, fields) of a small text table, zipped or not; empty lines are passed over."""
    raw = Path(path).read_bytes()
    with reading(path, "a table"):
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
    """Category of each cell (the one that most places in it have, ties to the first by name), -1
    for none; and the names."""
    rows, header = _label_rows(path)
    if header[:4] == ["poi_id", "y", "x", "category"]:
        places = read_peopleflow_pois(path)
        labels = places.cell_categories(grid)
        by_id = dict(
            zip(places.category_id.tolist(), places.category.values().tolist(), strict=True)
        )
        return labels, [by_id.get(k, str(k)) for k in range(int(labels.max(initial=-1)) + 1)]
    cells, named = _cells_and_names(path, rows, header, grid)
    kinds, number = np.unique(np.array(named, dtype=str), return_inverse=True)
    on = (cells >= 0) & (np.array(named, dtype=str) != "")
    out = leading_category(cells[on], number[on], np.ones(int(on.sum())), grid.size)
    if (out < 0).all():
        raise InvalidTable(f"{path} has no place on the map ({describe(grid)})")
    return out, kinds.tolist()


def _label_rows(path: str) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """((line, fields) of each row, names of the columns)."""
    if path.endswith(".parquet"):
        parquet = need("pyarrow.parquet")
        with reading(path, "a Parquet table"):
            table = parquet.read_table(path)
            each = enumerate(table.to_pylist())
            rows = [(k + 1, [str(v) for v in row.values()]) for k, row in each]
            return rows, list(table.column_names)
    rows = _text_rows(path)
    if not rows:
        raise InvalidTable(
            f"{path} is empty: it must have columns lat,lon,category or cell,category"
        )
    return rows[1:], rows[0][1]


def _cells_and_names(
    path: str, rows: list[tuple[int, list[str]]], header: list[str], grid: Grid
) -> tuple[NDArray[np.int64], list[str]]:
    """(cell, -1 off the map; name of the category) of each row."""
    plain = [name.lower() for name in header]

    def column(*wanted: str) -> int:
        return next((plain.index(name) for name in wanted if name in plain), -1)

    lat, lon = column("lat", "latitude"), column("lon", "lng", "longitude")
    cell = column("cell", "released_cell")
    label = column("category", "label", "venue_category", "venuecategory")
    if label < 0 or (cell < 0 and min(lat, lon) < 0):
        raise InvalidTable(
            f"{path} must have columns lat,lon,category or cell,category, got {', '.join(header)}"
        )
    cells, named = np.empty(len(rows), np.int64), []
    for k, (line, row) in enumerate(rows):
        try:
            cells[k] = (
                int(row[cell]) if cell >= 0 else int(grid.locate(float(row[lat]), float(row[lon])))
            )
            named.append(row[label])
        except (ValueError, IndexError, OverflowError):
            raise InvalidTable(
                f"{path}, line {line}: {','.join(row)[:60]!r} cannot be read as a place and its "
                "category"
            ) from None
        if cells[k] >= grid.size or (cell >= 0 and cells[k] < 0):
            raise InvalidTable(f"{path}, line {line}: cells are 0..{grid.size - 1}, got {cells[k]}")
    return cells, named
