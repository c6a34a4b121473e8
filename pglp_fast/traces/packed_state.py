"""The state of few users as one array, which compiled code takes and gives."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.patterns import MAX_CELLS
from pglp_fast._kernels.trace.records import OWN, Beliefs, LedgerRows

from .engine import AnyState, State
from .spending import Spending
from .state_rows import from_bytes, to_bytes


class PackedState:
    """A ``State`` once somebody asks what is in it. It is never changed.

    Attributes
    ----------
    words : as in ``_kernels.trace.few_users``
    """

    def __init__(self, words: NDArray[np.int64], like: State):
        self.words, self._like = words, like

    @cached_property
    def _opened(self) -> State:
        n = len(self._like.beliefs.kind)
        bounds = self.words[: n + 1].tolist()
        users = [self.words[first:last].tobytes() for first, last in pairwise(bounds)]
        return from_bytes(users, self._like)

    @property
    def beliefs(self) -> Beliefs:
        return self._opened.beliefs

    @property
    def ledger(self) -> LedgerRows:
        return self._opened.ledger

    @property
    def spending(self) -> Spending:
        return self._opened.spending


def packed(state: AnyState) -> NDArray[np.int64] | None:
    """The words of a state; None where it cannot be one that common steps start from."""
    if isinstance(state, PackedState):
        return state.words
    beliefs, n = state.beliefs, len(state.beliefs.kind)
    if (beliefs.kind != OWN).any() or len(beliefs.cells) > n * MAX_CELLS:
        return None
    rows = [octets + bytes(-len(octets) % 8) for octets in to_bytes(state)]
    start, at = [], n + 1
    for octets in rows:
        start.append(at)
        at += len(octets) // 8
    whole = bytearray(np.array([*start, at], np.int64).tobytes() + b"".join(rows))
    return np.frombuffer(whole, np.int64)
