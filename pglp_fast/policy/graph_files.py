"""Policies in files: the map, the clique labels and the other edges, each checked when read."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.policy import graph as kernels
from pglp_fast._util.storage import read_arrays, write_arrays
from pglp_fast.errors import InvalidPolicy, InvalidState
from pglp_fast.space.map_files import pack_map, unpack_map

from .graph import PolicyGraph
from .weighted_edges import LARGEST, Weights, entries_of

_KIND = "policy"


def save_policy(graph: PolicyGraph, path: str | os.PathLike[str]) -> None:
    """Write a policy and its map to one file, atomically."""
    arrays, facts = pack_map(graph.locations)
    arrays = {
        **arrays,
        "cliques": graph.cliques,
        "indptr": graph.extra_indptr,
        "indices": graph.extra_indices,
    }
    if graph.weights is not None:
        arrays |= {
            "numerator": graph.weights.numerator,
            "denominator": graph.weights.denominator,
        }
    write_arrays(path, _KIND, arrays, facts)


def load_policy(path: str | os.PathLike[str]) -> PolicyGraph:
    """The policy that ``save_policy`` wrote, on its map."""
    arrays, facts = read_arrays(path, _KIND)
    name = os.fspath(path)
    locations = unpack_map(name, arrays, facts)
    fault = _fault(arrays, locations.size)
    if fault:
        raise InvalidState(f"{name} does not hold a policy: {fault}; restore it from a copy")
    weights = None
    if "numerator" in arrays:
        weights = Weights(arrays["numerator"], arrays["denominator"])
    try:
        return PolicyGraph(
            locations, arrays["cliques"], arrays["indptr"], arrays["indices"], weights
        )
    except InvalidPolicy as problem:
        raise InvalidState(f"{name} does not hold a policy: {problem}") from None


def _fault(arrays: dict[str, NDArray[Any]], n: int) -> str:
    """What is wrong with the arrays of a policy over n locations; empty if nothing is."""
    wanted = {"cliques": np.int32, "indptr": np.int64, "indices": np.int32}
    for field, dtype in wanted.items():
        if field not in arrays or arrays[field].dtype != dtype or arrays[field].ndim != 1:
            return f"{field} is missing or of another type"
    cliques, indptr, indices = (arrays[field] for field in wanted)
    if len(cliques) != n or len(indptr) != n + 1:
        return f"its arrays are not of {n} locations"
    counts = np.bincount(cliques[(cliques >= 0) & (cliques < n)])
    if cliques.min() < -1 or cliques.max() >= n or (counts < 2).any():
        return "its clique labels are not numbered 0, 1, ... with two members or more"
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        return "its rows are not in order"
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        return "an edge leaves the map"
    row = np.repeat(np.arange(n), np.diff(indptr))
    if (np.diff(row * n + indices) <= 0).any() or (row == indices).any():
        return "a row repeats an edge, is not sorted, or joins a location to itself"
    if kernels.first_asymmetry(indptr, indices)[0] >= 0:
        return "an edge has no mirror image"
    if ((cliques[row] >= 0) & (cliques[row] == cliques[indices])).any():
        return "an edge is in a clique too"
    return weights_fault(arrays, indptr, indices)


def weights_fault(
    arrays: dict[str, NDArray[Any]], indptr: NDArray[np.int64], indices: NDArray[np.int32]
) -> str:
    """What is wrong with the weights, if there are any."""
    fields = [arrays[name] for name in ("numerator", "denominator") if name in arrays]
    if not fields:
        return ""
    if len(fields) != 2 or any(f.dtype != np.int64 or f.shape != indices.shape for f in fields):
        return "its weights are not one fraction for each edge"
    if any(f.size and (f.min() < 1 or f.max() > LARGEST) for f in fields):
        return f"a weight is not a fraction of whole numbers in 1..{LARGEST}"
    if (np.gcd(*fields) != 1).any():
        return "a weight is not in lowest terms"
    keys = entries_of(indptr, indices)
    order = np.argsort(keys, kind="stable").reshape(-1, 2)  # both directions of each edge
    if any((f[order[:, 0]] != f[order[:, 1]]).any() for f in fields):
        return "an edge has two weights"
    return ""
