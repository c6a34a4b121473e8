"""One component of a policy graph by itself: where its members lie, and who is joined to whom."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Component(NamedTuple):
    """What a mechanism needs to know of a component; places are positions in index order.

    Attributes
    ----------
    sites : (k, 2) lattice offsets from the first member
    lead : (k,) place of the first member of each one's clique, its own place where it is in none
    pairs : (m, 2) further edges, as places
    members : which locations they are; None where only the shape is known
    hull : vertices of the sensitivity hull, for mechanisms that want it
    """

    sites: NDArray[np.int64]
    lead: NDArray[np.int64]
    pairs: NDArray[np.int64]
    members: NDArray[np.int32] | None = None
    hull: NDArray[np.int64] | None = None

    def known_members(self) -> NDArray[np.int32]:
        assert self.members is not None, "a recipe that does not translate is only asked about known locations"
        return self.members

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both ends of every edge, in both directions."""
        same = self.lead[:, None] == self.lead[None]
        np.fill_diagonal(same, False)
        i, j = np.nonzero(same)
        a, b = self.pairs.T
        return np.concatenate([i, a, b]), np.concatenate([j, b, a])

    def hops(self) -> NDArray[np.float64]:
        """d_G between places, infinite where there is no way."""
        from scipy.sparse import csgraph, csr_array

        k = len(self.sites)
        i, j = self.edges()
        return np.asarray(csgraph.shortest_path(csr_array((np.ones(len(i)), (i, j)), shape=(k, k)), unweighted=True))
