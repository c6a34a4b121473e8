"""Composition of everything that was released about persons (spec sections 8 and 10)."""

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace.records import NOT_STARTED, OWN, LedgerRows, words_for
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import ranges_of, starts_of
from pglp_fast.errors import InvalidParameter, InvalidPolicy
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.space.locations import require_same_map

from .ledger import EVERYBODY_ELSE, Ledger
from .ledger_rows import unstarted_rows
from .policies import PolicySet
from .spending import Spending, nothing_spent

Ints = NDArray[np.int64]


def compose(*releases: Any) -> Ledger:
    """What several releases about the same persons leave together.

    Releases that satisfy (eps_i, G_i) compose to (sum of eps_i, intersection of the edges of the
    G_i): the paper's Composability theorem. An edge that has the weight w_i in G_i is kept with a
    sum of w_i eps_i: see ``Ledger.edge_epsilons``.

    Parameters
    ----------
    *releases : Ledger, Stream, TraceResult, Mechanism or tuple
        Ledgers, or what has one: a stream, the result of a run. Their persons are matched by
        number (``Ledger.ids``); who is not in one released nothing there. A mechanism, or a tuple
        (epsilon, G), is one release about everybody, those too who are met later
        (``Ledger.others``); (epsilon, G, persons) about the persons with these numbers. Where
        nobody is named, there is one person.

    Returns
    -------
    Ledger
        ``.epsilon(u)``, ``.graph(u)``, ``.edge_epsilons(u)``, for person number ``.ids[u]``.

    Notes
    -----
    Of a tuple or a mechanism it is not known when it was released: it counts in every window of a
    budget by window. So does, of two ledgers whose steps have different durations, what is known
    by the steps of one of them. In whatever order and groups releases are composed, the sums and
    the edges are the same.

    Examples
    --------
    >>> import pglp_fast as pf
    >>> g = pf.Grid(6, 6)
    >>> both = pf.compose((0.5, pf.blocks(g, 3)), (1.0, pf.blocks(g, 2)))
    >>> both.epsilon(0), both.graph(0).n_edges
    (1.5, 28)
    """
    if not releases:
        raise InvalidParameter("there is nothing to compose: give ledgers or (epsilon, G)")
    ledgers = [_ledger_of(r) for r in releases]
    known = [ledger for ledger in ledgers if ledger is not None]
    single = [_single(r) for r, ledger in zip(releases, ledgers, strict=True) if ledger is None]
    told = [np.asarray(ledger.ids) for ledger in known]
    told += [persons for _, _, persons in single if persons is not None]
    ids = reduce(_union, told) if told else np.zeros(1, np.int64)
    known += [_one_release(*one) for one in single]
    first = known[0].policies.locations
    for ledger in known[1:]:
        require_same_map(
            ledger.policies.locations, first, "the policies that are composed", InvalidPolicy
        )
    if all(ledger.others is None for ledger in known):
        return reduce(_both, (ledger.select(ids) for ledger in known))
    ids = np.append(ids, EVERYBODY_ELSE)
    return reduce(_both, (_own(ledger.select(ids)) for ledger in known)).without_others()


def _own(ledger: Ledger) -> Ledger:
    return replace(ledger, others=None)


def _union(a: Ints, b: Ints) -> Ints:
    """The persons of both, in the order they are first met."""
    return a if np.array_equal(a, b) else np.concatenate([a, b[~np.isin(b, a)]])


def _ledger_of(release: Any) -> Ledger | None:
    if isinstance(release, Ledger):
        return release
    found = getattr(release, "ledger", None)
    if found is None:
        found = getattr(getattr(release, "certificate", None), "ledger", None)
    return found if isinstance(found, Ledger) else None


def _single(release: Any) -> tuple[float, PolicyGraph, Ints | None]:
    if isinstance(release, Mechanism):
        graph = release.graph
        if release.domain is not None:
            graph = graph.constrain(release.domain)
        return release.epsilon, graph, None
    if not isinstance(release, tuple) or len(release) not in (2, 3):
        raise InvalidParameter(
            "compose takes ledgers, streams, results of run, mechanisms, and tuples (epsilon, G) "
            f"or (epsilon, G, persons), got {check.brief(release)}"
        )
    persons: ArrayLike | None = release[2] if len(release) == 3 else None
    numbers = None if persons is None else check.user_numbers(np.atleast_1d(np.asarray(persons)))
    return check.epsilon(release[0]), require_policy(release[1]), numbers


def _one_release(epsilon: float, graph: PolicyGraph, persons: Ints | None) -> Ledger:
    """The ledger of one release about some persons, or everybody, at a step that is not known."""
    ids, policies = np.array([EVERYBODY_ELSE]) if persons is None else persons, PolicySet((graph,))
    n = len(ids)
    rows = unstarted_rows(n, 1)._replace(used=np.ones((n, 1), np.uint64))
    spent = nothing_spent(n)._replace(
        releases=np.ones(n, np.int64), high=np.full(n, epsilon), since=np.full(n, check.MAX_TIME),
        shares=np.full((n, 1 if policies.weighted else 0), epsilon),
    )  # fmt: skip
    made = Ledger(ids, policies, spent, rows, no_sets())
    return made.without_others() if persons is None else made


def no_sets() -> Rows:
    """No shared sets of locations."""
    return Rows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


def _both(a: Ledger, b: Ledger) -> Ledger:
    """Two ledgers of the same persons."""
    policies, numbers, used_a, used_b = _joint_policies(a, b)
    kind, start, cells, shared = _joint_cells(a, b)
    edge_start, edges = _joint_edges(a, b)
    rows = LedgerRows(kind, start, cells, edge_start, edges, used_a | used_b)
    lost = [ledger.unsettled for ledger in (a, b) if ledger.unsettled is not None]
    unsettled = sum(lost[1:], lost[0]) if lost else None
    spent_a, spent_b, step_ms = _on_one_clock(a, b)
    spent_a = spent_a._replace(shares=_shares_over(policies, a, list(range(len(a.policies)))))
    spent_b = spent_b._replace(shares=_shares_over(policies, b, numbers))
    return Ledger(a.ids, policies, spent_a + spent_b, rows, shared, unsettled, step_ms=step_ms)


def _on_one_clock(a: Ledger, b: Ledger) -> tuple[Spending, Spending, int | None]:
    """What both spent, by steps of one duration, and that; of steps of another it is not known when
    they were. Those that are remembered one by one are kept rather than others, and
    those of a known duration rather than of none."""
    mine, theirs = a.spending, b.spending
    if a.step_ms == b.step_ms:
        return mine, theirs, a.step_ms
    ranks = [
        (len(ledger.spending.steps) > 0, ledger.spending.dated, ledger.step_ms is not None)
        for ledger in (a, b)
    ]
    if ranks[1] > ranks[0]:
        return mine.undated(), theirs, b.step_ms
    return mine, theirs.undated(), a.step_ms


def _shares_over(policies: PolicySet, ledger: Ledger, numbers: list[int]) -> NDArray[np.float64]:
    """What was spent under each of the policies of both, of which the ledger's have these
    numbers."""
    out = np.zeros((len(ledger), len(policies) if policies.weighted else 0))
    if ledger.spending.shares.shape[1]:
        np.add.at(out.T, numbers, ledger.spending.shares.T)
    return out


def _joint_policies(
    a: Ledger, b: Ledger
) -> tuple[PolicySet, list[int], NDArray[Any], NDArray[Any]]:
    """The policies of both, equal ones once; the numbers of b's among these; and the bitmasks of
    both over these."""
    graphs, names = list(a.policies.graphs), list(a.policies.names)
    numbers = []
    for graph, name in zip(b.policies.graphs, b.policies.names, strict=True):
        same = [k for k, other in enumerate(graphs) if other is graph or other == graph]
        if not same:
            fresh = name if name not in names else f"{name} ({len(graphs)})"
            graphs.append(graph)
            names.append(fresh)
            same = [len(graphs) - 1]
        numbers.append(same[0])
    out = PolicySet(tuple(graphs), tuple(names))
    width = words_for(len(out))
    used_a = np.zeros((len(a), width), np.uint64)
    used_a[:, : a.rows.used.shape[1]] = a.rows.used
    used_b = np.zeros((len(b), width), np.uint64)
    for k, number in enumerate(numbers):
        bit = (b.rows.used[:, k >> 6] >> np.uint64(k & 63)) & np.uint64(1)
        used_b[:, number >> 6] |= bit << np.uint64(number & 63)
    return out, numbers, used_a, used_b


def _joint_cells(a: Ledger, b: Ledger) -> tuple[Ints, Ints, NDArray[np.int32], Rows]:
    """(kind, start, cells, shared sets) of what the domains of both have in common."""
    ka, kb = a.rows.kind, b.rows.kind
    both = (ka != NOT_STARTED) & (kb != NOT_STARTED)
    offset = len(a.shared.start) - 1
    kind = np.where(ka == NOT_STARTED, np.where(kb >= 0, kb + offset, kb), ka)
    shared = Rows(
        np.concatenate([a.shared.start, a.shared.start[-1] + b.shared.start[1:]]),
        np.concatenate([a.shared.cells, b.shared.cells]),
        np.concatenate([a.shared.values, b.shared.values]),
    )
    of_sets = both & (ka >= 0) & (kb >= 0)
    if of_sets.any():  # each pair of shared sets is met once
        pairs, which = np.unique(
            np.stack([ka[of_sets], kb[of_sets]], 1), axis=0, return_inverse=True
        )
        met = _meet(_rows(a.shared, pairs[:, 0]), _rows(b.shared, pairs[:, 1]))
        kind[of_sets] = len(shared.start) - 1 + which.reshape(-1)
        shared = Rows(
            np.concatenate([shared.start, shared.start[-1] + met[0][1:]]),
            np.concatenate([shared.cells, met[1]]),
            np.concatenate([shared.values, np.zeros(len(met[1]))]),
        )
    mixed = both & ~of_sets
    kind[mixed] = OWN
    met = _meet(_sets(a, mixed), _sets(b, mixed))
    lengths = np.zeros(len(ka), np.int64)
    lengths[mixed] = np.diff(met[0])
    cells = np.empty(0, np.int32)
    for ledger, some in ((a, kb == NOT_STARTED), (b, ka == NOT_STARTED)):
        lengths[some] = np.diff(ledger.rows.start)[some]
    start = starts_of(lengths)
    cells = np.empty(start[-1], np.int32)
    cells[ranges_of(start[:-1][mixed], lengths[mixed])] = met[1]
    for ledger, some in ((a, kb == NOT_STARTED), (b, ka == NOT_STARTED)):
        own = ranges_of(ledger.rows.start[:-1][some], lengths[some])
        cells[ranges_of(start[:-1][some], lengths[some])] = ledger.rows.cells[own]
    return kind, start, cells, shared


def _rows(rows: Any, which: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Some rows of cells, end to end."""
    lengths = np.diff(rows.start)[which]
    return starts_of(lengths), rows.cells[ranges_of(rows.start[:-1][which], lengths)]


def _sets(ledger: Ledger, some: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.int32]]:
    """The locations in every domain of some persons, who have released, written out."""
    who = np.flatnonzero(some)
    kind = ledger.rows.kind[who]
    own = np.diff(ledger.rows.start)[who]
    at = ledger.rows.start[:-1][who]
    cells = ledger.rows.cells
    if (kind >= 0).any():
        row = np.maximum(kind, 0)
        own = np.where(kind >= 0, np.diff(ledger.shared.start)[row], own)
        at = np.where(kind >= 0, ledger.shared.start[:-1][row] + len(cells), at)
        cells = np.concatenate([cells, ledger.shared.cells])
    return starts_of(own), cells[ranges_of(at, own)]


def _meet(
    a: tuple[Ints, NDArray[np.int32]], b: tuple[Ints, NDArray[np.int32]]
) -> tuple[Ints, NDArray[np.int32]]:
    """Row by row, the cells that are in both."""
    n, size = len(a[0]) - 1, 1 << 32
    mine, theirs = (
        np.repeat(np.arange(n), np.diff(start)) * size + cells for start, cells in (a, b)
    )
    met = np.intersect1d(mine, theirs, assume_unique=True)
    return starts_of(np.bincount(met // size, minlength=n)), (met % size).astype(np.int32)


def _joint_edges(a: Ledger, b: Ledger) -> tuple[Ints, NDArray[np.int32]]:
    """(start, edges) that were repaired once, and that both ledgers kept."""
    found = []
    for mine, other in ((a, b), (b, a)):
        person, edges = _edges(mine)
        kept = _kept(other, person, edges)
        if mine is b:  # those of both are there already
            kept &= ~_repaired(a, person, edges)
        found.append((person[kept], edges[kept]))
    person = np.concatenate([p for p, _ in found])
    edges = np.concatenate([e for _, e in found])
    order = np.argsort(person, kind="stable")
    return starts_of(np.bincount(person, minlength=len(a))), edges[order]


def _edges(ledger: Ledger) -> tuple[Ints, NDArray[np.int32]]:
    lengths = np.diff(ledger.rows.edge_start)
    return np.repeat(np.arange(len(ledger)), lengths), ledger.rows.edges


def _repaired(ledger: Ledger, person: Ints, edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether persons have edges among those that were repaired once."""
    whose, theirs = _edges(ledger)
    all_edges = np.sort(np.concatenate([theirs, edges]), axis=1)
    names = np.unique(all_edges, axis=0, return_inverse=True)[1].reshape(-1)
    key = np.concatenate([whose, person]) * (len(all_edges) + 1) + names
    return np.isin(key[len(whose) :], key[: len(whose)])


def _kept(ledger: Ledger, person: Ints, edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether everything that persons released under a ledger kept these edges of theirs."""
    out = _repaired(ledger, person, edges)
    used = ledger.rows.used[person]
    out |= ~used.any(axis=1)  # nothing was released
    words, which = np.unique(used, axis=0, return_inverse=True)
    policy = np.zeros(len(person), bool)
    for k, word in enumerate(words):
        some = which.reshape(-1) == k
        policy[some] = ledger.policies.common(word).has_edges(edges[some])
    bound = ledger.rows.kind != NOT_STARTED
    start, cells = _sets(ledger, bound)
    row = np.cumsum(bound) - 1
    keys, size = np.repeat(np.arange(len(start) - 1), np.diff(start)) * (1 << 32) + cells, 1 << 32
    inside = np.ones(len(person), bool)
    for end in range(2):
        inside &= np.isin(row[person] * size + edges[:, end], keys)
    return np.asarray(out | (policy & (inside | ~bound[person])))
