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
    hull : vertices of the sensitivity hull, for mechanisms that need it
    """

    sites: NDArray[np.int64]
    heads: NDArray[np.int64]
    pairs: NDArray[np.int64]
    members: NDArray[np.int32] | None = None
    hull: NDArray[np.int64] | None = None

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

    def hops(self) -> NDArray[np.float64]:
        """d_G between places, infinite where there is no way."""
        from scipy.sparse import csgraph, csr_array

        k = len(self.sites)
        if not len(self.pairs) and not self.heads.any():  # one clique
            return 1.0 - np.eye(k)
        i, j = self.edges()
        joined = csr_array((np.ones(len(i)), (i, j)), shape=(k, k))
        return np.asarray(csgraph.shortest_path(joined, unweighted=True))
