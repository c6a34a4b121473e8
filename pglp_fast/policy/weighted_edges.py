"""Weighted edges: an edge of weight w promises Pr(z|i) <= e^(w epsilon) Pr(z|j).

Its difference enters the sensitivity hull divided by w. Weights are small rationals, so that all of
them times a common denominator are whole: hulls stay exact integers, in units of 1 / denominator of
a lattice unit."""

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.geometry import hull as kernels
from pglp_fast._kernels.geometry.hull import MAX_SPAN
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast.errors import InvalidPolicy

if TYPE_CHECKING:
    from .graph import PolicyGraph

LARGEST = 2**10  # numerator or denominator of a weight
_SAME = 2.0**-50  # a float this near to a small rational, relatively, stands for it

Ints = NDArray[np.int64]


class Weights:
    """The weight of each entry of a CSR of edges, as a fraction in lowest terms.

    Attributes
    ----------
    numerator, denominator : int64 arrays
    common : what all weights' inverses times it are whole numbers
    lattice : see ``fine_lattice``; None until it is asked for
    """

    def __init__(self, numerator: Ints, denominator: Ints):
        self.numerator, self.denominator = numerator, denominator
        self.lattice: NDArray[np.int32] | None = None
        self.common = math.lcm(*np.unique(numerator).tolist()) if len(numerator) else 1

    @cached_property
    def fractions(self) -> Ints:
        """(entries, 2) numerator and denominator."""
        return np.stack([self.numerator, self.denominator], axis=1)

    @property
    def all_one(self) -> bool:
        """Whether the weights say nothing: every edge has weight 1."""
        return bool((self.numerator == self.denominator).all())

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The weights as floats; no two that differ become the same."""
        return self.numerator / self.denominator

    @cached_property
    def factors(self) -> Ints:
        """common / weight, whole: what the difference of each entry is multiplied with."""
        return self.common // self.numerator * self.denominator

    def of(self, entries: NDArray[Any]) -> "Weights":
        """The weights of some entries."""
        return Weights(self.numerator[entries], self.denominator[entries])


def read_weights(values: ArrayLike, count: int) -> tuple[Ints, Ints]:
    """(numerators, denominators) of weights given as numbers, or as (m, 2) whole numbers."""
    array = np.asarray(values, object)
    if array.shape == (count, 2):
        whole = check.integers(values, "weights", InvalidPolicy).tolist()
        numbers = [
            Fraction(a, b) if b > 0 else _bad(k, f"{a}/{b}") for k, (a, b) in enumerate(whole)
        ]
        numbers = [read_fraction(value, k) for k, value in enumerate(numbers)]
    elif array.shape == (count,):
        known: dict[Any, Fraction] = {}  # as a rule few weights differ
        numbers = []
        for k, value in enumerate(array.tolist()):
            key = (type(value), value) if isinstance(value, int | float) else None
            if key is None or key not in known:
                known[key] = read_fraction(value, k)
            numbers.append(known[key])
    else:
        raise InvalidPolicy(
            f"weights has shape {array.shape}: give one number for each of the {count} edges, or "
            "a numerator and a denominator"
        )
    return (
        np.array([f.numerator for f in numbers], np.int64),
        np.array([f.denominator for f in numbers], np.int64),
    )


def _bad(k: int, value: Any) -> Fraction:
    raise InvalidPolicy(
        f"weights[{k}] = {value}: a weight is above 0, and a fraction of whole numbers up to "
        f"{LARGEST}, such as 0.5, 3 or Fraction(2, 3); round it down to one (a smaller weight "
        "promises more)"
    )


def read_fraction(value: Any, k: int = 0) -> Fraction:
    """A weight as a small rational, or an error that says which one it is."""
    kinds = int | float | Fraction | np.integer | np.floating
    if isinstance(value, bool | np.bool_) or not isinstance(value, kinds):
        return _bad(k, check.brief(value))
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return _bad(k, value)
    exact = Fraction(value.item() if isinstance(value, np.generic) else value)
    near = exact.limit_denominator(LARGEST)
    if not 0 < near.numerator <= LARGEST or abs(near - exact) > _SAME * exact:
        return _bad(k, check.brief(value))
    return near


def entries_of(indptr: Ints, indices: NDArray[np.int32]) -> Ints:
    """A key for each entry of a symmetric CSR: the same for both directions of an edge."""
    n = len(indptr) - 1
    row = np.repeat(np.arange(n), np.diff(indptr))
    return np.minimum(row, indices).astype(np.int64) * n + np.maximum(row, indices)


def weights_of_rows(
    indptr: Ints,
    indices: NDArray[np.int32],
    pairs: NDArray[Any],
    numerator: Ints,
    denominator: Ints,
) -> Weights:
    """Weights of the entries of a CSR, from those of its edges (i < j)."""
    n = len(indptr) - 1
    keys = pairs[:, 0].astype(np.int64) * n + pairs[:, 1]
    order = np.argsort(keys)
    at = order[np.searchsorted(keys[order], entries_of(indptr, indices))]
    return Weights(numerator[at], denominator[at])


def weights_with(
    graph: "PolicyGraph", indptr: Ints, indices: NDArray[np.int32], fresh: NDArray[np.int32]
) -> Weights:
    """Weights of the entries of a CSR of the graph's edges outside cliques and of fresh ones, whose
    weight is 1."""
    old = graph.extra_edges()
    known = np.concatenate([graph.edge_weights(old), np.ones((len(fresh), 2), np.int64)])
    pairs = np.concatenate([old, np.sort(fresh, axis=1)])
    return weights_of_rows(indptr, indices, pairs, *np.ascontiguousarray(known.T))


def check_range(graph: "PolicyGraph") -> None:
    """Refuse weights whose common denominator exact arithmetic cannot take."""
    weights = graph.weights
    if weights is None:
        return
    lattice, indptr = graph.locations.lattice.astype(np.int64), graph.extra_indptr
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    far = np.abs(lattice[row] - lattice[graph.extra_indices]).max(axis=1)
    most = max(graph.clique_extents[1:]) * weights.common
    if weights.common <= MAX_SPAN and len(far):
        worst = int(np.argmax(far * (weights.factors / weights.common)))
        most = max(most, int(far[worst]) * int(weights.factors[worst]))
    if weights.common > MAX_SPAN or most > MAX_SPAN:
        raise InvalidPolicy(
            f"the weights have a common denominator of {weights.common}, and a difference of "
            f"locations divided by its weight then has {most} steps; exact arithmetic takes "
            f"{MAX_SPAN}: use fewer different numerators (powers of two, say), or a coarser map"
        )


def weighted_hull(graph: "PolicyGraph", members: NDArray[np.int32]) -> Ints:
    """common * conv{+-(f(i) - f(j)) / w} over the edges among ``members``, exact."""
    points = np.concatenate([[(0, 0)], scaled_differences(graph, members)])
    return np.asarray(kernels.chain(np.concatenate([points, -points])))


def scaled_differences(graph: "PolicyGraph", members: NDArray[np.int32]) -> Ints:
    """common * (f(j) - f(i)) / w of the edges among ``members``; of a clique the corners of all
    its differences."""
    assert graph.weights is not None
    lattice = graph.locations.lattice.astype(np.int64)
    entries, row = _entries(graph, members)
    ahead = lattice[graph.extra_indices[entries]] - lattice[row]
    found = [ahead * graph.weights.factors[entries][:, None]]
    label = graph.cliques[members]
    for c in np.unique(label[label >= 0]):
        corners = kernels.chain(lattice[members[label == c]])
        found.append(kernels.minkowski_difference(corners) * graph.weights.common)
    return np.concatenate(found)


def _entries(graph: "PolicyGraph", members: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Entries of the CSR that are edges i < j from these members, and their rows."""
    starts, counts = graph.extra_indptr[members], np.diff(graph.extra_indptr)[members]
    entries = ranges_of(starts, counts)
    row = np.repeat(members.astype(np.int64), counts)
    up = graph.extra_indices[entries] > row
    return entries[up], row[up]


def weighted_hulls(graph: "PolicyGraph", groups: list[NDArray[np.int32]]) -> Polygons:
    """``weighted_hull`` of each group, end to end."""
    each = [weighted_hull(graph, members) for members in groups]
    vertices = np.concatenate([np.zeros((0, 2), np.int64), *each])
    return Polygons(vertices, starts_of(np.array([len(h) for h in each], np.int64)))


def edge_with(
    graph: "PolicyGraph", members: NDArray[np.int32], vertex: Ints
) -> tuple[int, int] | None:
    """An edge outside cliques whose scaled difference is this vertex of the hull, or its
    negative."""
    assert graph.weights is not None
    lattice = graph.locations.lattice.astype(np.int64)
    entries, row = _entries(graph, members)
    ahead = lattice[graph.extra_indices[entries]] - lattice[row]
    ahead = ahead * graph.weights.factors[entries][:, None]
    hit = np.flatnonzero((ahead == vertex).all(axis=1) | (ahead == -vertex).all(axis=1))
    return (int(row[hit[0]]), int(graph.extra_indices[entries[hit[0]]])) if len(hit) else None


def shortest_paths(
    graph: "PolicyGraph", sources: NDArray[np.int32], targets: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The least sum of weights along a path from each source to its target, inf where none is."""
    from scipy.sparse import csgraph, csr_array

    n, out = graph.locations.size, np.empty(len(sources))
    weight = graph.edge_weights()
    i, j = graph.edges().T
    length = np.tile(weight[:, 0] / weight[:, 1], 2)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    joined = csr_array((length, ends), shape=(n, n))
    for s in np.unique(sources):
        asked = sources == s
        out[asked] = csgraph.dijkstra(joined, indices=int(s))[targets[asked]]
    return out


def epsilon_of_noise(denominator: int, epsilon: float) -> float:
    """Epsilon times the common denominator, rounded down: for noise of a hull that is so much too
    large."""
    if denominator == 1:
        return epsilon
    exact = Fraction(epsilon) * denominator
    nearest = float(exact)
    return nearest if nearest <= exact else float(np.nextafter(nearest, 0.0))


def fine_lattice(graph: "PolicyGraph") -> NDArray[np.int32]:
    """Coordinates of the locations on a lattice that is ``graph.denominator`` times as fine: there
    all differences divided by their weights are whole, and so are those of weight 1."""
    assert graph.weights is not None
    if graph.weights.lattice is not None:  # of this very graph
        return graph.weights.lattice
    fine = graph.locations.lattice.astype(np.int64) * graph.denominator
    if fine.size and fine.max() > MAX_SPAN:
        raise InvalidPolicy(
            f"the weights have a common denominator of {graph.denominator}, and the map then spans "
            f"{fine.max()} steps; repair, which may join any two locations, takes {MAX_SPAN}: use "
            "fewer different numerators (powers of two, say), or a coarser map"
        )
    graph.weights.lattice = fine.astype(np.int32)
    return graph.weights.lattice
