"""The policy graph G = (S, E) and the policies that have names (spec section 2).

A graph is kept as *disjoint cliques plus extra edges*: one clique label a location, and a CSR for the rest. The named policies of
the paper are all cliques, so a million cells cost a million labels, not their edges; a repaired or hand-made graph adds
what it needs.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import graph as kernels
from .domain import Domain
from .errors import InvalidDomain, InvalidPolicy
from .locations import Grid, Locations


class PolicyGraph:
    """An undirected graph over locations: an edge says "these two must not be told apart" (Definition 4).

    Make one with ``from_edges``, ``from_scipy`` or a named policy. Graphs are values: operations give new ones.
    """

    def __init__(self, locations: Locations, cliques: NDArray[np.int32], indptr: NDArray[np.int64], indices: NDArray[np.int32]):
        """For the package's own use: arrays are taken as they are.

        ``cliques`` must be numbered 0..n-1 with two members or more.
        """
        self.locations = locations
        self.cliques, self.extra_indptr, self.extra_indices = cliques, indptr, indices
        self.n_cliques = int(cliques.max(initial=-1)) + 1

    # -- making one

    @classmethod
    def from_edges(cls, locations: Locations, edges: ArrayLike) -> "PolicyGraph":
        """From an (m, 2) list of edges, in either direction; repeats are merged."""
        return _no_edges(locations).with_edges(edges)

    @classmethod
    def from_scipy(cls, locations: Locations, matrix: Any) -> "PolicyGraph":
        """From a symmetric sparse matrix (or dense array): its non-zero entries are the edges."""
        import scipy.sparse  # here: it would double the time of "import pglp_fast"

        n = locations.size
        try:
            csr = scipy.sparse.csr_array(matrix, copy=True)  # it is tidied in place below
        except (TypeError, ValueError) as error:
            raise InvalidPolicy(f"this is not a matrix ({error}): it must be {n} x {n}, sparse or dense") from None
        if csr.shape != (n, n):
            shape = " x ".join(map(str, csr.shape))
            raise InvalidPolicy(f"the matrix is {shape}, but there are {n} locations: it must be {n} x {n}")
        csr.sum_duplicates()
        csr.eliminate_zeros()
        csr.sort_indices()
        loops = np.flatnonzero(csr.diagonal())
        if loops.size:
            raise InvalidPolicy(f"entry ({loops[0]}, {loops[0]}) joins a location to itself: set the diagonal to zero")
        indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32)
        i, j = kernels.first_asymmetry(indptr, indices)
        if i >= 0:
            raise InvalidPolicy(
                f"the matrix is not symmetric: entry ({i}, {j}) has no mirror image ({j}, {i}); add it, e.g. with m + m.T"
            )
        return cls(locations, np.full(n, -1, np.int32), indptr, indices)

    # -- reading it

    @cached_property
    def _clique_members(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        members, starts = kernels.group_by(self.cliques, self.n_cliques)
        return members, starts

    @cached_property
    def clique_extents(self) -> tuple[NDArray[np.int32], int, int]:
        """(width, height) of each clique in lattice units, the largest width and the largest height."""
        extent = kernels.clique_extents(self.locations.lattice, self.cliques, self.n_cliques)
        widest, tallest = extent.max(axis=0, initial=0).tolist()
        return extent, widest, tallest

    @cached_property
    def _csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        if self.n_cliques == 0:
            return self.extra_indptr, self.extra_indices
        indptr, indices = kernels.expand(*self._clique_members, self.cliques, self.extra_indptr, self.extra_indices)
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

    def extra_edges(self) -> NDArray[np.int32]:
        """The edges that are not inside a clique, (m, 2), i < j, sorted."""
        return np.asarray(kernels.upper_pairs(self.extra_indptr, self.extra_indices))

    def has_edges(self, pairs: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair (m, 2) is an edge."""
        array = _pairs(self.locations, pairs)
        out = np.empty(len(array), bool)
        kernels.has_edges(self.cliques, self.extra_indptr, self.extra_indices, array, out)
        return out

    def neighbours(self, s: int) -> check.Cells:
        """N(s), sorted (Definition 6)."""
        s = check.one_cell(s, self.locations.size)
        members, starts = self._clique_members
        c = self.cliques[s]
        room = self.extra_indptr[s + 1] - self.extra_indptr[s] + (starts[c + 1] - starts[c] if c >= 0 else 0)
        out = np.empty(room, check.CELL)
        n = kernels.neighbour_row(members, starts, self.cliques, self.extra_indptr, self.extra_indices, s, out)
        return out[:n]

    def degrees(self) -> NDArray[np.int64]:
        """|N(s)| for every location, without expanding anything."""
        sizes = np.diff(self._clique_members[1], append=0)
        inside = np.where(self.cliques >= 0, sizes[self.cliques] - 1, 0)
        return np.asarray(np.diff(self.extra_indptr) + inside)

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """The component of each location, numbered by its lowest location; one without edges is its own component."""
        out = np.empty(self.locations.size, check.LABEL)
        if len(self.extra_indices) == 0:
            kernels.relabel(self.cliques, True, out)
        else:
            kernels.components(self.cliques, self.n_cliques, self.extra_indptr, self.extra_indices, out)
        return out

    def component(self, s: int) -> check.Cells:
        """N^P(s): the locations in the component of s, sorted, s among them."""
        s = check.one_cell(s, self.locations.size)
        return np.flatnonzero(self.components == self.components[s]).astype(check.CELL)

    def distance(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """d_G(a[i], b[i]) in hops, inf across components (Definition 5)."""
        a, b = (check.cells(v, self.locations.size, name) for v, name in ((a, "a"), (b, "b")))
        try:
            source, target = np.broadcast_arrays(a, b)
        except ValueError:
            raise InvalidPolicy(f"a and b must be equally long, got {a.size} and {b.size}") from None
        flat, goal = source.reshape(-1).astype(check.CELL), target.reshape(-1).astype(check.CELL)
        out = np.empty(flat.size)
        order = np.argsort(flat, kind="stable")
        members, starts = self._clique_members
        kernels.hops(members, starts, self.cliques, self.extra_indptr, self.extra_indices, flat, goal, order, out)
        return out.reshape(source.shape)[()]

    # -- combining

    def constrain(self, domain: Domain) -> "PolicyGraph":
        """G^C: the edges with both ends in the domain (Definition 13)."""
        if not isinstance(domain, Domain):
            raise InvalidDomain(f"domain must be a Domain, got {type(domain).__name__}: make one with pf.Domain")
        if not domain.locations.same_map(self.locations):
            raise InvalidPolicy(
                f"the domain is over {domain.locations.size} locations, the policy over {self.locations.size} of another map"
            )
        cliques = np.where(domain.mask(), self.cliques, np.int32(-1))
        indptr, indices = kernels.filter_rows(self.extra_indptr, self.extra_indices, domain.words)
        return PolicyGraph(self.locations, _tidy(cliques), indptr, indices)

    def __and__(self, other: "PolicyGraph") -> "PolicyGraph":
        """Edges that both graphs have (composition, Theorem 10). Cliques that meet in cliques stay compact."""
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        if not other.locations.same_map(self.locations):
            raise InvalidPolicy(
                f"the graphs have {self.locations.size} and {other.locations.size} locations: they must be over one map"
            )
        both = (self.cliques >= 0) & (other.cliques >= 0)
        joint = np.where(both, self.cliques.astype(np.int64) * max(other.n_cliques, 1) + other.cliques, -1)
        cliques = np.full(self.locations.size, -1, np.int32)
        cliques[both] = np.unique(joint[both], return_inverse=True)[1]
        mine, theirs = self.extra_edges(), other.extra_edges()
        pairs = np.concatenate([mine[other.has_edges(mine)], theirs[self.has_edges(theirs)]])
        return PolicyGraph(self.locations, _tidy(cliques), *kernels.pairs_to_csr(self.locations.size, pairs))

    def with_edges(self, pairs: ArrayLike) -> "PolicyGraph":
        """This graph and these edges, (m, 2)."""
        array = _pairs(self.locations, pairs)
        loops = np.flatnonzero(array[:, 0] == array[:, 1])
        if loops.size:
            raise InvalidPolicy(f"edge {loops[0]} joins location {array[loops[0], 0]} to itself: leave it out")
        fresh = array[~self.has_edges(array)]
        extra = np.concatenate([self.extra_edges(), fresh])
        return PolicyGraph(self.locations, self.cliques, *kernels.pairs_to_csr(self.locations.size, extra))

    def __eq__(self, other: object) -> bool:
        """Same locations, same edges, however they are kept."""
        if not isinstance(other, PolicyGraph) or not other.locations.same_map(self.locations):
            return False
        if self.n_edges != other.n_edges:
            return False
        return (self & other).n_edges == self.n_edges

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PolicyGraph({self.locations!r}, {self.n_edges} edges)"


def _pairs(locations: Locations, pairs: ArrayLike) -> NDArray[np.int32]:
    array = check.integers(pairs, "edges", InvalidPolicy)
    if array.size == 0:
        return np.empty((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidPolicy(f"edges must have shape (m, 2), got {array.shape}")
    n = locations.size
    bad = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if bad.size:
        raise InvalidPolicy(f"edge {bad[0]} = {array[bad[0]].tolist()} leaves the {n} locations 0..{n - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


def _tidy(cliques: NDArray[np.int32]) -> NDArray[np.int32]:
    """Labels numbered by lowest member; a label with one member is no clique."""
    if cliques.size:
        counts = np.bincount(cliques[cliques >= 0], minlength=1)
        cliques = np.where((cliques >= 0) & (counts[cliques] > 1), cliques, np.int32(-1))
    out = np.empty(cliques.size, np.int32)
    kernels.relabel(cliques, False, out)
    return out


def _from_labels(locations: Locations, labels: NDArray[Any]) -> PolicyGraph:
    return PolicyGraph(locations, _tidy(labels.astype(np.int32)), np.zeros(locations.size + 1, np.int64), np.empty(0, np.int32))


def _no_edges(locations: Locations) -> PolicyGraph:
    return _from_labels(locations, np.full(locations.size, -1, np.int32))


def _grid_only(locations: Locations, what: str) -> Grid:
    if not isinstance(locations, Grid):
        raise InvalidPolicy(f"{what} needs a Grid, got {locations!r}: use complete, categories or from_edges on Points")
    return locations


def require_policy(graph: Any) -> None:
    """Refuse what is not a policy graph."""
    if not isinstance(graph, PolicyGraph):
        raise InvalidPolicy(
            f"the first argument must be a PolicyGraph, got {type(graph).__name__}: "
            "make one with pf.blocks, pf.PolicyGraph.from_edges, ..."
        )


def block_labels(grid: Grid, k: int) -> NDArray[np.int64]:
    """Which k x k block each cell lies in, counted from the south-west."""
    across = -(-grid.cols // k)
    return ((np.arange(grid.rows) // k)[:, None] * across + np.arange(grid.cols) // k).reshape(-1)


def blocks(grid: Locations, k: int) -> PolicyGraph:
    """Cells of each k x k block fully connected: G_k9, G_k16, G_k25 for k = 3, 4, 5. Blocks at the edge are cut off."""
    grid = _grid_only(grid, "blocks")
    return _from_labels(grid, block_labels(grid, check.whole(k, "k", 1)))


def categories(locations: Locations, labels: ArrayLike, block: float | None = 6) -> PolicyGraph:
    """Same category within the same block, fully connected: G_poi. Label -1: no category, no edges.

    ``block``: cells a side on a Grid (6 in the paper), km a side on Points, None for the whole map.
    """
    label = check.integers(labels, "labels", InvalidPolicy)
    if label.shape != (locations.size,):
        raise InvalidPolicy(f"labels has shape {label.shape}: give one integer for each of the {locations.size} locations")
    if label.size and label.min() < -1:
        at = int(np.flatnonzero(label < -1)[0])
        raise InvalidPolicy(f"labels[{at}] = {label[at]}: categories are 0, 1, ..., and -1 for none")
    if block is None:
        region = np.zeros(locations.size, np.int64)
    elif isinstance(locations, Grid):
        region = block_labels(locations, check.whole(block, "block", 1))
    else:
        tiles = np.floor(locations.lattice * np.asarray(locations.scale) / check.positive(block, "block")).astype(np.int64)
        region = np.unique(tiles, axis=0, return_inverse=True)[1].reshape(-1)  # at most one a location: nothing below overflows
    own = np.unique(label, return_inverse=True)[1].astype(np.int64)
    joint = np.unique(region * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return _from_labels(locations, np.where(label >= 0, joint, -1))


def neighbours8(grid: Locations) -> PolicyGraph:
    """Each cell joined to the eight around it: G_1, implies Geo-Indistinguishability (Theorem 1)."""
    grid = _grid_only(grid, "neighbours8")
    indptr, indices = kernels.neighbours8(grid.rows, grid.cols)
    return PolicyGraph(grid, np.full(grid.size, -1, np.int32), indptr, indices)


def complete(locations: Locations, cells: ArrayLike | None = None) -> PolicyGraph:
    """All of the cells (or of the map) joined: G_2, implies delta-Location Set Privacy (Theorem 2)."""
    labels = np.full(locations.size, -1 if cells is not None else 0, np.int32)
    if cells is not None:
        labels[check.cells(cells, locations.size, error=InvalidPolicy)] = 0
    return _from_labels(locations, labels)
