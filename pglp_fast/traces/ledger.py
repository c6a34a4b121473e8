"""What releases have cost (the paper's section "Privacy Composition", spec section 8)."""

import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace.records import NOT_STARTED, LedgerRows
from pglp_fast._util import times, validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast.errors import InvalidParameter
from pglp_fast.io.labels import canonical
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.space.locations import Locations

from .ledger_rows import join_rows, take_rows, unstarted_rows
from .policies import PolicySet
from .spending import Limits, Spending, join_spending, nothing_spent

EVERYBODY_ELSE = -1  # the number of their row


@dataclass(frozen=True, eq=False)
class Ledger:
    """Each person's sum of epsilon, and the edges that every release so far kept.

    Releases that satisfy (eps_t, G_t) compose to (sum of eps_t, intersection of the G_t); an edge
    of weight w_t in G_t to a sum of w_t eps_t. An edge that all policies of a person have survives
    while both its ends are in every domain. Any other survives while each step's repair adds it, or
    its policy has it. So a person's ledger is a set of policies, a set of locations and a few
    edges, and no graph is made until asked for.

    Persons are known by their numbers (``ids``); ``u`` below counts them from 0.

    Attributes
    ----------
    ids : int64 array
        Numbers of the persons.
    policies : PolicySet
        Policies that were released under.
    spending : Spending
        Sums of epsilon.
    rows : LedgerRows
        Locations in every domain, or the number of a shared set of locations; edges that were
        repaired once and kept throughout; which policies were used.
    shared : Rows
        Sets of locations that persons share, such as the supports of priors.
    unsettled : int64 array, optional
        How many releases were begun of which nothing more is known: no edge counts as kept by
        them.
    others : Ledger, optional
        Of one row: what was released about everybody, and so about each person who is not among
        ``ids``.
    step_ms : int, optional
        Duration of the steps of ``spending``, where it is known.
    """

    ids: NDArray[np.int64]
    policies: PolicySet
    spending: Spending
    rows: LedgerRows
    shared: Rows
    unsettled: NDArray[np.int64] | None = None
    others: "Ledger | None" = None
    step_ms: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def releases(self) -> NDArray[np.int64]:
        """How many releases each person made."""
        return self.spending.releases

    def _user(self, u: int) -> int:
        return check.whole(u, "u", 0, len(self) - 1)

    def index(self, person: int | str) -> int:
        """u of the person with this number; or with this label, where tables were released with
        ``ledger=``."""
        number = number_of(canonical(person)) if isinstance(person, str) else person
        at = np.flatnonzero(self.ids == number)
        if not at.size:
            if isinstance(person, str):
                raise InvalidParameter(f"the ledger has nobody called {check.brief(person)}")
            check.whole(person, "person", 0)
            raise InvalidParameter(f"the ledger has nobody with the number {person}")
        return int(at[0])

    def epsilon(self, u: int) -> float:
        """Sum of epsilon spent by person u.

        An edge of weight w that is kept throughout is kept with w times that, or less: see
        ``edge_epsilons``. Budgets limit this sum."""
        return float(self.spending.total[self._user(u)])

    def epsilons(self) -> NDArray[np.float64]:
        """Sum of epsilon spent by every person."""
        return self.spending.total

    def _lost(self) -> NDArray[np.bool_]:
        """Of whom nothing is known to be kept."""
        if self.unsettled is None:
            return np.zeros(len(self), bool)
        return self.unsettled > 0

    def kept_edges(self) -> NDArray[np.int64]:
        """How many edges every release of each person kept."""
        own = self.rows
        out: NDArray[np.int64] = np.diff(own.edge_start)
        words, which = np.unique(own.used, axis=0, return_inverse=True)
        for k, word in enumerate(words):
            some = np.flatnonzero(which.reshape(-1) == k)
            out[some] += self._kept_within(self.policies.common(word), some)
        out[self._lost()] = 0
        return out

    def _kept_within(self, graph: PolicyGraph, some: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many edges of a graph lie within what these persons' domains have in common."""
        kind, start = self.rows.kind[some], self.rows.start
        lengths = np.diff(start)[some]
        cells = self.rows.cells[ranges_of(start[some], lengths)]
        out = edges_within(graph, starts_of(lengths), cells)
        if (kind >= 0).any():
            shared = edges_within(graph, self.shared.start, self.shared.cells)
            out[kind >= 0] = shared[kind[kind >= 0]]
        return np.where(kind == NOT_STARTED, graph.n_edges, out)

    def graph(self, u: int) -> PolicyGraph:
        """The edges kept throughout; the whole policy before the first release.

        Of several weights that an edge had, the graph has the largest, so that e^(w epsilon(u))
        bounds what all releases tell of it. ``edge_epsilons`` has the sum itself."""
        own = self.rows
        kind = own.kind[self._user(u)]
        graph, locations = self.policies.common(own.used[u]), self.policies.locations
        if self._lost()[u]:
            return graph.constrain(Domain(locations, []))
        if kind != NOT_STARTED:
            rows, row = (self.shared, kind) if kind >= 0 else (own, u)
            graph = graph.constrain(
                Domain(locations, rows.cells[rows.start[row] : rows.start[row + 1]])
            )
        edges = own.edges[own.edge_start[u] : own.edge_start[u + 1]]
        if not len(edges):
            return graph
        if not self.policies.weighted:
            return graph.with_edges(edges)
        weights = self._weights(u, edges)
        largest = np.maximum(weights.max(axis=0), 1.0)  # a repair adds edges of weight 1
        return graph | PolicyGraph.from_edges(self.policies.locations, edges, largest)

    def _weights(self, u: int, edges: NDArray[np.int32]) -> NDArray[np.float64]:
        """(policies, edges) the weight of each edge under the policies that person u used; 1 where
        the policy does not have it, so that its repairs added it, and where it was not used."""
        used = set(self.policies.members(self.rows.used[u]))
        out = np.ones((len(self.policies), len(edges)))
        for k, graph in enumerate(self.policies.graphs):
            if k in used and graph.weights is not None:
                numerator, denominator = graph.edge_weights(edges).T
                out[k] = np.where(numerator > 0, numerator / denominator, 1.0)
        return out

    def edge_epsilons(self, u: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """(edges, what all releases of person u tell of each): the edges of ``graph(u)`` and, for
        each, the sum over releases of w_t eps_t, w_t its weight then.

        All releases together satisfy Pr(z|i) <= e^sum Pr(z|j) for every edge (i, j). Edges without
        weights have the sum ``epsilon(u)``."""
        edges = self.graph(u).edges()
        out, shares = np.full(len(edges), self.epsilon(u)), self.spending.shares[u]
        if len(shares):
            out += shares @ (self._weights(u, edges) - 1.0)
        return edges, out

    # -- with others

    def merge(self, *others: Any) -> "Ledger":
        """This ledger and further releases about the same persons: ``pf.compose`` of all."""
        from .composition import compose

        return compose(self, *others)

    def select(self, ids: NDArray[np.int64]) -> "Ledger":
        """The ledger of the persons with these numbers, in this order. Those that it does not have
        made the releases about everybody, see ``others``."""
        order, last = np.argsort(self.ids, kind="stable"), len(self)
        at = np.full(len(ids), last)
        if last:
            near = order[np.minimum(np.searchsorted(self.ids, ids, sorter=order), last - 1)]
            at = np.where(self.ids[near] == ids, near, last)
        whole = self if (at < last).all() else self.with_others()
        return replace(whole.take(at), ids=ids, others=self.others)

    def take(self, rows: NDArray[np.int64]) -> "Ledger":
        """These rows, in this order."""
        lost = None if self.unsettled is None else self.unsettled[rows]
        return replace(
            self, ids=self.ids[rows], spending=self.spending.select(rows),
            rows=take_rows(self.rows, rows), unsettled=lost,
        )  # fmt: skip

    def with_others(self) -> "Ledger":
        """With everybody else as one more row, the last, numbered ``EVERYBODY_ELSE``."""
        one, lost = self.others, self.unsettled
        rows = unstarted_rows(1, len(self.policies)) if one is None else one.rows
        spent = nothing_spent(1) if one is None else one.spending
        if lost is not None:
            begun = 0 if one is None or one.unsettled is None else one.unsettled[0]
            lost = np.append(lost, begun)
        return replace(
            self, ids=np.append(self.ids, EVERYBODY_ELSE), others=None, unsettled=lost,
            rows=join_rows([self.rows, rows]), spending=join_spending([self.spending, spent]),
        )  # fmt: skip

    def without_others(self) -> "Ledger":
        """What ``with_others`` made, taken back."""
        last = len(self) - 1
        one = self.take(np.array([last]))
        some = one.releases.any() or (one.unsettled is not None and one.unsettled.any())
        return replace(self.take(np.arange(last)), others=one if some else None)

    def past_of(self, ids: NDArray[np.int64], limits: Limits) -> Spending:
        """What budgets see of the persons with these numbers. Of steps of another duration nobody
        knows in which window they are: they count in all. A window that is known is not thrown away
        like that: an error. Files of older versions tell of no duration."""
        spent = self.select(ids).spending
        if self.step_ms == limits.step_ms or not spent.dated:
            return spent
        if limits.window and len(spent.steps) and self.step_ms is not None:
            mine, theirs = _duration(limits.step_ms), _duration(self.step_ms)
            raise InvalidParameter(
                f"the ledger counts steps {theirs}, and these are {mine}: a budget over a window "
                "cannot tell which releases lie in it. Use steps of one duration, another ledger, "
                "or a budget in total"
            )
        return spent.undated()

    # -- keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to one file, atomically, readable by its owner only."""
        from .ledger_file import write

        write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], locations: Locations | None = None) -> "Ledger":
        """Read a ledger. A Grid is read with it, ``Points`` must be given."""
        from .ledger_file import read

        return read(path, locations)

    def __repr__(self) -> str:
        more = "" if self.others is None else f", {int(self.others.releases[0])} about everybody"
        return f"Ledger({len(self)} persons, {int(self.releases.sum())} releases{more})"


def _duration(step_ms: int | None) -> str:
    return "of no known duration" if step_ms is None else f"of {times.shown(step_ms)}"


def number_of(label: str) -> int:
    """The number in ledgers of a person of a table. It follows from the label alone, so that a
    person has one in all tables and ledgers."""
    octets = hashlib.blake2b(label.encode(), digest_size=8, person=b"pglp ledger").digest()
    return int.from_bytes(octets, "big") >> 4


def edges_within(
    policy: PolicyGraph, start: NDArray[np.int64], cells: NDArray[np.int32]
) -> NDArray[np.int64]:
    """How many edges of the policy have both ends in each row of cells, ascending."""
    n, size = len(start) - 1, policy.locations.size
    row = np.repeat(np.arange(n), np.diff(start))
    clique = policy.cliques[cells]
    inside = clique >= 0
    groups, count = np.unique(
        row[inside] * max(policy.n_cliques, 1) + clique[inside], return_counts=True
    )
    pairs = count * (count - 1) // 2
    out = np.bincount(groups // max(policy.n_cliques, 1), weights=pairs, minlength=n)
    first, last = policy.extra_indptr[cells], policy.extra_indptr[cells + 1]
    if (last > first).any():
        others = policy.extra_indices[ranges_of(first, last - first)]
        here, this = np.repeat(row, last - first), np.repeat(cells, last - first)
        keys, wanted = row * size + cells, here * size + others
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        met = (keys[at] == wanted) & (others > this)
        out = out + np.bincount(here[met], minlength=n)
    return out.astype(np.int64)
