"""What releases have cost: composition (Theorem 10, spec section 8)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _validate as check
from ._kernels.trace import NOT_STARTED, Ragged
from .domain import Domain
from .policy import PolicyGraph


@dataclass(frozen=True)
class Ledger:
    """Each user's sum of epsilon, and the edges that every release so far kept.

    T releases that satisfy (eps_t, G_t) compose to (sum of eps_t, intersection of the G_t). An edge of G survives while both
    its ends are in every domain, a repaired edge while every repair adds it: so a user's ledger is a set of locations and a few
    edges, and no graph is made until asked for.

    Attributes
    ----------
    policy : G
    each : epsilon of one release
    releases : how many each user made
    kept : locations in every domain, or the number of the prior whose support they are
    priors : distinct priors of the stream
    edges : repaired edges in every repair
    """

    policy: PolicyGraph
    each: float
    releases: NDArray[np.int64]
    kept: Ragged
    priors: Ragged
    edges: Ragged

    def _user(self, u: int) -> int:
        return check.whole(u, "u", 0, len(self.releases) - 1)

    def epsilon(self, u: int) -> float:
        """Sum of epsilon spent by user number u of the stream."""
        return float(self.releases[self._user(u)] * self.each)

    def graph(self, u: int) -> PolicyGraph:
        """The edges kept throughout; the whole policy before the first release."""
        kind = self.kept.kind[self._user(u)]
        if kind == NOT_STARTED:
            return self.policy
        rows, row = (self.priors, kind) if kind >= 0 else (self.kept, u)
        domain = Domain(self.policy.locations, rows.cells[rows.start[row] : rows.start[row + 1]])
        return self.policy.constrain(domain).with_edges(self.edges.cells[self.edges.start[u] : self.edges.start[u + 1]])
