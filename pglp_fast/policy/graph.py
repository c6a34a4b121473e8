"""The policy graph G = (S, E).

A graph is kept as disjoint cliques plus extra edges: one clique label for each location, and a
CSR for the other edges. Most named policies are cliques, so a million cells cost a million
labels, not their edges; a repaired or hand-made graph adds the edges it needs.
"""

import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.policy import graph as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.matrices import as_csr
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.locations import Locations, require_locations, require_same_map

from .domain import Domain, require_domain
from .graph_arrays import checked_pairs, no_rows, tidy
from .weighted_edges import (
    Weights,
    check_range,
    entries_of,
    read_weights,
    shortest_paths,
    weights_of_rows,
    weights_with,
)

if TYPE_CHECKING:
    from .summary import PolicySummary


class PolicyGraph:
    """An undirected graph over locations: the paper's Location Policy Graph.

    An edge says that its two ends must not be told apart from what is released, within a factor
    e^epsilon, or e^(w epsilon) if it has a weight w. Make one with ``from_edges``, ``from_scipy``
    or a named policy. Graphs are values: operations give new graphs.
    """

    def __init__(
        self,
        locations: Locations,
        cliques: NDArray[np.int32],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weights: Weights | None = None,
    ):
        """For the package's own use: arrays are taken as they are.

        ``cliques`` must be numbered 0..n-1 with two members or more; their edges have weight 1.
        ``weights`` are of the entries of ``indices``; None: all are 1.
        """
        if weights is not None and weights.all_one:
            weights = None
        self.locations, self.weights = locations, weights
        self.cliques, self.extra_indptr, self.extra_indices = cliques, indptr, indices
        self.n_cliques = int(cliques.max(initial=-1)) + 1
        check_range(self)

    # -- making one

    @classmethod
    def from_edges(
        cls, locations: Locations, edges: ArrayLike, weights: ArrayLike | None = None
    ) -> "PolicyGraph":
        """From an (m, 2) list of edges, in either direction; repeats are merged.

        An edge of weight w promises e^(w epsilon); 1 unless given. Weights are fractions of whole
        numbers up to 1024: numbers, or (m, 2) numerators and denominators. Of a repeated edge the
        smallest weight holds, which promises most."""
        plain = _no_edges(locations).with_edges(edges)
        if weights is None:
            return plain
        pairs = checked_pairs(locations, edges)
        return weighted_graph(locations, pairs, *read_weights(weights, len(pairs)))

    @classmethod
    def from_scipy(cls, locations: Locations, matrix: Any) -> "PolicyGraph":
        """From a symmetric sparse matrix (or dense array): its non-zero entries are the edges."""
        n = require_locations(locations).size
        csr = as_csr(matrix, "the matrix of edges", InvalidPolicy)
        if csr.shape != (n, n):
            shape = " x ".join(map(str, csr.shape))
            raise InvalidPolicy(
                f"the matrix is {shape}, but there are {n} locations: it must be {n} x {n}"
            )
        csr.sum_duplicates()
        bad = np.flatnonzero(~np.isfinite(csr.data))
        if bad.size:
            i = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
            raise InvalidPolicy(
                f"entry ({i}, {csr.indices[bad[0]]}) is {csr.data[bad[0]]}: an edge is there or "
                "not; set it to 1 or 0"
            )
        csr.eliminate_zeros()
        loops = np.flatnonzero(csr.diagonal())
        if loops.size:
            raise InvalidPolicy(
                f"entry ({loops[0]}, {loops[0]}) joins a location to itself: set the diagonal to "
                "zero"
            )
        indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32)
        i, j = kernels.first_asymmetry(indptr, indices)
        if i >= 0:
            raise InvalidPolicy(
                f"the matrix is not symmetric: entry ({i}, {j}) has no mirror image ({j}, {i}); "
                "add it, e.g. with m + m.T"
            )
        return cls(locations, np.full(n, -1, np.int32), indptr, indices)

    # -- reading it

    @cached_property
    def _clique_members(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        members, starts = kernels.group_by(self.cliques, self.n_cliques)
        return members, starts

    @cached_property
    def clique_extents(self) -> tuple[NDArray[np.int32], int, int]:
        """(width, height) of each clique in lattice units, the largest width and the largest
        height."""
        extent = kernels.clique_extents(self.locations.lattice, self.cliques, self.n_cliques)
        widest, tallest = extent.max(axis=0, initial=0).tolist()
        return extent, widest, tallest

    @property
    def denominator(self) -> int:
        """What all differences divided by their weights are whole numbers with; 1 without
        weights."""
        return 1 if self.weights is None else self.weights.common

    @cached_property
    def _csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        if self.n_cliques == 0:
            return self.extra_indptr, self.extra_indices
        indptr, indices = kernels.expand(
            *self._clique_members, self.cliques, self.extra_indptr, self.extra_indices
        )
        return indptr, indices

    @property
    def indptr(self) -> NDArray[np.int64]:
        """CSR row pointers. Asking for them expands cliques to their edges: O(edges)."""
        return self._csr[0]

    @property
    def indices(self) -> NDArray[np.int32]:
        """CSR column indices, sorted in each row; both directions of every edge."""
        return self._csr[1]

    @property
    def n_edges(self) -> int:
        """Number of undirected edges, without expanding anything."""
        sizes = np.diff(self._clique_members[1])
        return int((sizes * (sizes - 1) // 2).sum()) + len(self.extra_indices) // 2

    def edges(self) -> NDArray[np.int32]:
        """All edges (m, 2), i < j, sorted."""
        return np.asarray(kernels.upper_pairs(*self._csr))

    def edge_weights(self, pairs: ArrayLike | None = None) -> NDArray[np.int64]:
        """(m, 2) numerator and denominator of the weight of each edge, those of ``edges()`` unless
        given; (0, 1) for a pair that is no edge."""
        array = self.edges() if pairs is None else checked_pairs(self.locations, pairs)
        out = np.ones((len(array), 2), np.int64)
        out[~self.has_edges(array), 0] = 0
        if self.weights is not None:
            keys = entries_of(self.extra_indptr, self.extra_indices)
            order = np.argsort(keys, kind="stable")
            low, high = array.min(axis=1), array.max(axis=1)
            wanted = low.astype(np.int64) * self.locations.size + high
            at = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
            hit = keys[at] == wanted
            out[hit, 0] = self.weights.numerator[at[hit]]
            out[hit, 1] = self.weights.denominator[at[hit]]
        return out

    def extra_edges(self) -> NDArray[np.int32]:
        """The edges that are not inside a clique, (m, 2), i < j, sorted."""
        return np.asarray(kernels.upper_pairs(self.extra_indptr, self.extra_indices))

    def has_edges(self, pairs: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair (m, 2) is an edge."""
        array = checked_pairs(self.locations, pairs)
        out = np.empty(len(array), bool)
        kernels.has_edges(self.cliques, self.extra_indptr, self.extra_indices, array, out)
        return out

    def neighbours(self, s: int) -> check.Cells:
        """The neighbours N(s), sorted."""
        s = check.one_cell(s, self.locations.size)
        members, starts = self._clique_members
        c = self.cliques[s]
        room = (
            self.extra_indptr[s + 1]
            - self.extra_indptr[s]
            + (starts[c + 1] - starts[c] if c >= 0 else 0)
        )
        out = np.empty(room, check.CELL)
        n = kernels.neighbour_row(
            members, starts, self.cliques, self.extra_indptr, self.extra_indices, s, out
        )
        return out[:n]

    def degrees(self) -> NDArray[np.int64]:
        """|N(s)| for every location, without expanding anything."""
        sizes = np.diff(self._clique_members[1], append=0)
        inside = np.where(self.cliques >= 0, sizes[self.cliques] - 1, 0)
        return np.asarray(np.diff(self.extra_indptr) + inside)

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """The component of each location, numbered by its lowest location; one without edges is
        its own component."""
        out = np.empty(self.locations.size, check.LABEL)
        if len(self.extra_indices) == 0:
            kernels.relabel(self.cliques, True, out)
        else:
            kernels.components(
                self.cliques, self.n_cliques, self.extra_indptr, self.extra_indices, out
            )
        return out

    def component(self, s: int) -> check.Cells:
        """N^P(s): the locations in the component of s, sorted, s among them."""
        s = check.one_cell(s, self.locations.size)
        return np.flatnonzero(self.components == self.components[s]).astype(check.CELL)

    def distance(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """d_G(a[i], b[i]) in hops, inf across components (Distance in Policy Graph); with weights
        the least sum of weights along a path."""
        a, b = (check.cells(v, self.locations.size, name) for v, name in ((a, "a"), (b, "b")))
        try:
            source, target = np.broadcast_arrays(a, b)
        except ValueError:
            raise InvalidPolicy(
                f"a and b must be equally long, got {a.size} and {b.size}"
            ) from None
        flat, goal = source.reshape(-1).astype(check.CELL), target.reshape(-1).astype(check.CELL)
        out = np.empty(flat.size)
        if self.weights is not None:
            return shortest_paths(self, flat, goal).reshape(source.shape)[()]
        order = np.argsort(flat, kind="stable")
        members, starts = self._clique_members
        kernels.hops(
            members,
            starts,
            self.cliques,
            self.extra_indptr,
            self.extra_indices,
            flat,
            goal,
            order,
            out,
        )
        return out.reshape(source.shape)[()]

    # -- combining

    def constrain(self, domain: Domain) -> "PolicyGraph":
        """G^C: the edges with both ends in the domain (Constrained Policy Graph)."""
        require_domain(domain)
        require_same_map(
            domain.locations, self.locations, "the domain and the policy", InvalidPolicy
        )
        cliques = np.where(domain.mask(), self.cliques, np.int32(-1))
        indptr, indices = kernels.filter_rows(self.extra_indptr, self.extra_indices, domain.words)
        weights = self.weights
        if weights is not None:
            inside = domain.mask()
            row = np.repeat(inside, np.diff(self.extra_indptr))
            weights = weights.of(row & inside[self.extra_indices])
        return PolicyGraph(self.locations, tidy(cliques), indptr, indices, weights)

    def __and__(self, other: "PolicyGraph") -> "PolicyGraph":
        """Edges that both graphs have, as in the Composability theorem; of two weights the larger.

        Cliques that meet in cliques stay compact.
        """
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        from .combining import intersection

        self._same_map(other)
        return intersection(self, other)

    def __or__(self, other: "PolicyGraph") -> "PolicyGraph":
        """Edges that either graph has; of two weights the smaller, which promises more.

        A clique of ``other`` stays compact where it holds whole cliques of this graph, or lies
        in one of them; else its edges are listed.
        """
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        from .combining import union

        self._same_map(other)
        return union(self, other)

    def _same_map(self, other: "PolicyGraph") -> None:
        require_same_map(self.locations, other.locations, "the policies", InvalidPolicy)

    def with_edges(self, pairs: ArrayLike) -> "PolicyGraph":
        """This graph and these edges, (m, 2)."""
        array = checked_pairs(self.locations, pairs)
        loops = np.flatnonzero(array[:, 0] == array[:, 1])
        if loops.size:
            raise InvalidPolicy(
                f"edge {loops[0]} joins location {array[loops[0], 0]} to itself: leave it out"
            )
        fresh = array[~self.has_edges(array)]
        extra = np.concatenate([self.extra_edges(), fresh])
        indptr, indices = kernels.pairs_to_csr(self.locations.size, extra)
        weights = None if self.weights is None else weights_with(self, indptr, indices, fresh)
        return PolicyGraph(self.locations, self.cliques, indptr, indices, weights)

    # -- keeping and describing

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy and its map to one file, atomically; nothing in it is secret."""
        from .graph_files import save_policy

        save_policy(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "PolicyGraph":
        """The policy that ``save`` wrote, on its map."""
        from .graph_files import load_policy

        return load_policy(path)

    def describe(self, epsilons: Iterable[float] = (0.5, 1.0, 2.0)) -> "PolicySummary":
        """In words and numbers: locations protected, component sizes, expected error by epsilon.

        ``print`` it, or read its attributes."""
        from .summary import summary_of

        return summary_of(self, epsilons)

    def __eq__(self, other: object) -> bool:
        """Same locations, same edges, however they are kept."""
        if not isinstance(other, PolicyGraph) or not other.locations.same_map(self.locations):
            return False
        if self.n_edges != other.n_edges or (self & other).n_edges != self.n_edges:
            return False
        if self.weights is None and other.weights is None:
            return True
        return bool((self.edge_weights() == other.edge_weights()).all())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "edges" if self.weights is None else "weighted edges"
        return f"PolicyGraph({self.locations!r}, {self.n_edges} {kind})"


def from_labels(locations: Locations, labels: NDArray[Any]) -> PolicyGraph:
    """Locations of the same label form a clique; label -1: no edges."""
    return PolicyGraph(
        locations,
        tidy(labels.astype(np.int32)),
        *no_rows(locations),
    )


def _no_edges(locations: Locations) -> PolicyGraph:
    return from_labels(locations, np.full(require_locations(locations).size, -1, np.int32))


def weighted_graph(
    locations: Locations,
    pairs: NDArray[np.int32],
    numerator: NDArray[np.int64],
    denominator: NDArray[np.int64],
) -> PolicyGraph:
    """Edges with weights; of a repeated edge the smallest weight holds."""
    ends = np.sort(pairs, axis=1).astype(np.int32).reshape(-1, 2)
    # small rationals: two that differ do so by 2^-20 at least
    order = np.lexsort((numerator / denominator, ends[:, 1], ends[:, 0]))
    ends, numerator, denominator = ends[order], numerator[order], denominator[order]
    first = np.append(True, (np.diff(ends, axis=0) != 0).any(axis=1))[: len(ends)]
    ends, numerator, denominator = ends[first], numerator[first], denominator[first]
    indptr, indices = kernels.pairs_to_csr(locations.size, ends)
    weights = weights_of_rows(indptr, indices, ends, numerator, denominator)
    return PolicyGraph(locations, np.full(locations.size, -1, np.int32), indptr, indices, weights)


def require_policy(graph: Any) -> PolicyGraph:
    """Refuse what is not a policy graph."""
    how = "make one with pf.blocks, pf.PolicyGraph.from_edges, ..."
    what = "the first argument must be a PolicyGraph"
    return check.instance(graph, PolicyGraph, what, how, InvalidPolicy)
