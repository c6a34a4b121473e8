"""The policies that have names: blocks, categories, 8-neighbours, complete."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.policy import graph as kernels
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.grid import Grid
from pglp_fast.space.locations import Locations, require_locations

from .graph import PolicyGraph, from_labels

_NO_VALUE = ("nan", "<NA>", "NaT")  # what NumPy and pandas call a value that is missing


def block_labels(grid: Grid, k: int) -> NDArray[np.int64]:
    """Which k x k block each cell lies in, counted from the south-west."""
    k = min(k, max(grid.rows, grid.cols))  # a larger block is the whole map
    across = -(-grid.cols // k)
    return ((np.arange(grid.rows) // k)[:, None] * across + np.arange(grid.cols) // k).reshape(-1)


def blocks(grid: Locations, k: int) -> PolicyGraph:
    """Cells of each k x k block fully connected: G_k9, G_k16, G_k25 for k = 3, 4, 5.

    Blocks at the edge are cut off.
    """
    grid = _grid_only(grid, "blocks")
    return from_labels(grid, block_labels(grid, check.whole(k, "k", 1)))


def categories(locations: Locations, labels: ArrayLike, block: float | None = 6) -> PolicyGraph:
    """Same category within the same block, fully connected: G_poi.

    Parameters
    ----------
    labels : the category of each location: numbers, -1 for none; or text, with None, NaN or "" for
        none. One without a category has no edges.
    block : cells a side on a Grid (6 in the paper), km a side on Points, None for the whole map
    """
    label = _category_numbers(labels, require_locations(locations).size)
    if block is None:
        region = np.zeros(locations.size, np.int64)
    elif isinstance(locations, Grid):
        region = block_labels(locations, check.whole(block, "block", 1))
    else:
        side = check.within(block, "block", 1e-9, 1e9, "it is km a side on Points")
        tiles = np.floor(locations.lattice * np.asarray(locations.scale) / side)
        # at most one region for each location: the products below do not overflow
        region = np.unique(tiles, axis=0, return_inverse=True)[1].reshape(-1)
    own = np.unique(label, return_inverse=True)[1].astype(np.int64)
    joint = np.unique(region * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return from_labels(locations, np.where(label >= 0, joint, -1))


def neighbours8(grid: Locations) -> PolicyGraph:
    """Each cell joined to the eight around it: G_1, which implies Geo-Indistinguishability."""
    grid = _grid_only(grid, "neighbours8")
    indptr, indices = kernels.neighbours8(grid.rows, grid.cols)
    return PolicyGraph(grid, np.full(grid.size, -1, np.int32), indptr, indices)


def complete(locations: Locations, cells: ArrayLike | None = None) -> PolicyGraph:
    """All of the cells (or of the map) joined: G_2, which implies delta-Location Set Privacy."""
    labels = np.full(require_locations(locations).size, -1 if cells is not None else 0, np.int32)
    if cells is not None:
        labels[check.cells(cells, locations.size, error=InvalidPolicy)] = 0
    return from_labels(locations, labels)


def _grid_only(locations: Locations, what: str) -> Grid:
    if not isinstance(locations, Grid):
        raise InvalidPolicy(
            f"{what} needs a Grid, got {check.brief(locations)}: use complete, categories or "
            "from_edges on Points"
        )
    return locations


def _category_numbers(labels: ArrayLike, size: int) -> NDArray[np.int64]:
    """Categories as numbers, -1 for none; text is numbered in its order."""
    if isinstance(labels, list | tuple) and any(isinstance(v, str) for v in labels):
        labels = np.array(labels, object)  # else NumPy makes text of NaN and of numbers
    array = check.as_array(labels, "labels", InvalidPolicy)
    if array.dtype.kind not in "UOT":
        return check.category_labels(array, size, "labels", InvalidPolicy)
    if array.shape != (size,):
        raise InvalidPolicy(
            f"labels has shape {array.shape}: give one category for each of the {size} locations"
        )
    named = array.tolist()
    for k, value in enumerate(named):
        if not isinstance(value, str):
            if value is not None and str(value) not in _NO_VALUE:
                raise InvalidPolicy(
                    f"labels[{k}] = {check.brief(value)}: categories are all text, or all whole "
                    "numbers"
                )
            named[k] = ""
    text = np.array(named, str)
    out = np.full(size, -1, np.int64)
    out[text != ""] = np.unique(text[text != ""], return_inverse=True)[1]
    return out
