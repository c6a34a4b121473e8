"""One component of a policy graph by itself: where its members lie, and who is joined to whom."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Component(NamedTuple):
    """What a mechanism is asked about. Places are positions of the members in index order.

    Attributes
    ----------
    sites : (k, 2) lattice offsets from the first member
    heads : (k,) place of the first member of each one's clique, its own place where it is in none
    pairs : (m, 2) further edges, as places
    members : which locations they are; None where only the shape is known
    hull : vertices of the sensitivity hull, for mechanisms that need it; ``denominator`` times as
        large as ``sites`` say
    weights : (m, 2) numerator and denominator of the weight of each of ``pairs``; None if all are
        1, as those within cliques always are
    denominator : 1 without weights
    """

    sites: NDArray[np.int64]
    heads: NDArray[np.int64]
    pairs: NDArray[np.int64]
    members: NDArray[np.int32] | None = None
    hull: NDArray[np.int64] | None = None
    weights: NDArray[np.int64] | None = None
    denominator: int = 1

    def known_members(self) -> NDArray[np.int32]:
        """Which locations they are, for a mechanism that is not the same everywhere."""
        assert self.members is not None, (
            "a mechanism that does not translate is only asked about known locations"
        )
        return self.members

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both ends of every edge, in both directions."""
        same = self.heads[:, None] == self.heads[None]
        np.fill_diagonal(same, False)
        i, j = np.nonzero(same)
        a, b = self.pairs.T
        return np.concatenate([i, a, b]), np.concatenate([j, b, a])

    def pair_weights(self) -> NDArray[np.float64]:
        """The weight of each of ``pairs``."""
        if self.weights is None:
            return np.ones(len(self.pairs))
        return np.asarray(self.weights[:, 0] / self.weights[:, 1])

    def edge_weights(self) -> NDArray[np.float64]:
        """The weight of each of ``edges()``."""
        own = self.pair_weights()
        return np.concatenate([np.ones(len(self.edges()[0]) - 2 * len(own)), own, own])

    def least_weight(self) -> float:
        """The smallest weight of an edge; 1 where there is none."""
        own = self.pair_weights()
        joined = bool((self.heads != np.arange(len(self.heads))).any())
        return float(own.min(initial=1.0 if joined or not len(own) else np.inf))

    def hops(self) -> NDArray[np.float64]:
        """The fewest edges between places, infinite where there is no way."""
        return self._shortest(unweighted=True)

    def distances(self) -> NDArray[np.float64]:
        """d_G between places, infinite where there is no way: hops, or with weights the least sum
        of weights along a path."""
        return self._shortest(unweighted=self.weights is None)

    def _shortest(self, *, unweighted: bool) -> NDArray[np.float64]:
        from scipy.sparse import csgraph, csr_array

        k = len(self.sites)
        if not len(self.pairs) and not self.heads.any():  # one clique
            return 1.0 - np.eye(k)
        joined = csr_array((self.edge_weights(), self.edges()), shape=(k, k))
        return np.asarray(csgraph.shortest_path(joined, unweighted=unweighted))
