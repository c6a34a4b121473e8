"""States of users taken apart, put together, and as bytes: one user after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.records import Beliefs
from pglp_fast._util.arrays import ranges_of, starts_of

from .engine import AnyState, Ints, State
from .ledger_rows import join_rows, take_rows
from .spending import Spending, join_shares, join_spending

_HEAD = 9  # whole numbers in front of a user's bytes
_EDGE = 2  # locations of an edge


def take_users(state: State, users: Ints) -> State:
    """The state of these users, in this order."""
    beliefs = state.beliefs
    length = np.diff(beliefs.start)[users]
    cells = ranges_of(beliefs.start[users], length)
    return State(
        Beliefs(
            beliefs.kind[users], beliefs.at[users], starts_of(length), beliefs.cells[cells],
            beliefs.values[cells],
        ),
        take_rows(state.ledger, users),
        state.spending.select(users),
    )  # fmt: skip


def join_users(states: Sequence[State]) -> State:
    """Users of several states, one behind the other."""
    beliefs = [state.beliefs for state in states]
    return State(
        Beliefs(
            np.concatenate([b.kind for b in beliefs]),
            np.concatenate([b.at for b in beliefs]),
            starts_of(np.concatenate([np.diff(b.start) for b in beliefs])),
            np.concatenate([b.cells for b in beliefs]),
            np.concatenate([b.values for b in beliefs]),
        ),
        join_rows([state.ledger for state in states]),
        join_spending([state.spending for state in states]),
    )


def to_bytes(state: AnyState) -> list[bytes]:
    """Each user's state, exactly."""
    beliefs, ledger, spent = state.beliefs, state.ledger, state.spending
    starts = (beliefs.start, ledger.start, ledger.edge_start, spent.start)
    numbers = (beliefs.kind, beliefs.at, ledger.kind, spent.releases, spent.since)
    head = np.stack([*numbers, *(np.diff(start) for start in starts)], axis=1)
    sums = np.stack([spent.high, spent.low], axis=1)
    out = []
    for u in range(len(head)):
        own = slice(beliefs.start[u], beliefs.start[u + 1])
        kept = slice(ledger.start[u], ledger.start[u + 1])
        edges = slice(ledger.edge_start[u], ledger.edge_start[u + 1])
        dated = slice(spent.start[u], spent.start[u + 1])
        parts = (
            head[u].astype(np.int64), sums[u], ledger.used[u], spent.steps[dated],
            spent.epsilons[dated], beliefs.values[own], beliefs.cells[own], ledger.cells[kept],
            ledger.edges[edges], spent.shares[u],
        )  # fmt: skip
        out.append(b"".join(part.tobytes() for part in parts))
    return out


class _Reader:
    """Arrays out of bytes, one behind the other."""

    def __init__(self, octets: bytes):
        self._octets, self._at = octets, 0

    def take(self, kind: type, n: int) -> NDArray[Any]:
        found: NDArray[Any] = np.frombuffer(self._octets, kind, int(n), self._at)
        self._at += found.nbytes
        return found

    def rest(self, kind: type) -> NDArray[Any]:
        """All that is left."""
        return self.take(kind, (len(self._octets) - self._at) // np.dtype(kind).itemsize)


def from_bytes(users: Sequence[bytes], like: State) -> State:
    """What ``to_bytes`` made; ``like``: any state, for the types of its records."""
    words = like.ledger.used.shape[1]
    head = np.zeros((len(users), _HEAD), np.int64)
    sums, used = np.zeros((len(users), 2)), np.zeros((len(users), words), np.uint64)
    steps, epsilons = [np.empty(0, np.int64)], [np.empty(0)]
    values, cells, held, joins = [np.empty(0)], [_NONE], [_NONE], [_NONE]
    shares = [np.zeros((0, 0))]
    for u, octets in enumerate(users):
        read = _Reader(octets)
        head[u], sums[u] = read.take(np.int64, _HEAD), read.take(np.float64, 2)
        used[u] = read.take(np.uint64, words)
        own, kept, edges, dated = head[u, -4:]
        steps.append(read.take(np.int64, dated))
        epsilons.append(read.take(np.float64, dated))
        values.append(read.take(np.float64, own))
        cells.append(read.take(np.int32, own))
        held.append(read.take(np.int32, kept))
        joins.append(read.take(np.int32, _EDGE * edges))
        shares.append(read.rest(np.float64)[None])
    kind, at, ledger_kind, releases, since, own, kept, edges, dated = head.T.copy()
    return State(
        Beliefs(kind, at, starts_of(own), np.concatenate(cells), np.concatenate(values)),
        type(like.ledger)(
            ledger_kind, starts_of(kept), np.concatenate(held), starts_of(edges),
            np.concatenate(joins).reshape(-1, _EDGE), used,
        ),
        Spending(
            releases, sums[:, 0].copy(), sums[:, 1].copy(), since, starts_of(dated),
            np.concatenate(steps), np.concatenate(epsilons), join_shares(shares),
        ),
    )  # fmt: skip


_NONE = np.empty(0, np.int32)
