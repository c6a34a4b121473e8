"""Steps of few users at the cost of a call: what stays the same is prepared once.

Somebody's next release is mostly like the last one: under the policy and the epsilon that hold
unless told, from a domain of a pattern and with a table that are known. Such a step is one call of
``_kernels.trace.few_users.step_few``. Any other step is left to the engine, which says what is
wrong where something is; both release the same cells."""

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.few_users import TOLD, step_few
from pglp_fast._util import validate as check

from .engine import WORTH_A_THREAD, State, TraceEngine
from .packed_state import PackedState, packed
from .proof import Proof
from .results import TraceResult
from .spending import SLACK
from .stream_state import StreamState

_WHOLE = {int, *(np.dtype(code).type for code in "bhilqBHILQ")}


class FewUsers:
    """The users of a stream, if they are so few that a second thread would not help.

    Parameters
    ----------
    engine : TraceEngine
    state : StreamState
        Of the stream.
    """

    def __init__(self, engine: TraceEngine, state: StreamState):
        self._engine, self._n, self._size = engine, len(state.users.ids), engine.locations.size
        self._like = State(state.now.beliefs, state.now.ledger, state.now.spending)
        self._limit = engine.limits.limits.get(None, inf) * SLACK
        # (version of the tables, digests of those that were proved, their entries)
        self._proved = -1, frozenset[int](), frozenset[int]()

    @classmethod
    def of(cls, engine: TraceEngine, state: StreamState) -> "FewUsers | None":
        """None where there are too many, or where no step is a common one."""
        settings = engine.settings
        plain = not (settings.remap or settings.delta > 0 or settings.tables == 0)
        known = not (engine.limits.window or engine.policies.weighted or state.past)
        few = 0 < len(state.users.ids) < 2 * WORTH_A_THREAD
        return cls(engine, state) if plain and known and few else None

    def step(self, state: StreamState, cells: Any) -> tuple[StreamState, TraceResult] | None:
        """(state after a step, what it gives); None where it is not a common one: nothing has
        happened then."""
        true = self._checked(cells)
        words = None if true is None or state.told else self._packed(state)
        if words is None:
            return None
        engine, users, cache = self._engine, state.users, self._engine.tables.bound
        told = np.empty((TOLD, self._n), np.int64)
        world = engine.worlds.take()
        after = step_few(
            world, cache, users.key, users.ids, state.cycle, words, true, state.t, self._limit, told
        )
        engine.worlds.give_back(world)
        proof = self._with_proofs(state.proof, told, cache.value.version) if after.size else None
        return None if proof is None else self._done(state, after, told, proof)

    def _checked(self, cells: Any) -> check.Cells | None:
        """Where users are; None for anything but a list or an array of one cell or -1 for each."""
        if type(cells) is np.ndarray and cells.ndim == 1 and cells.dtype.kind in "iu":
            cells = cells.tolist()
        elif type(cells) is not list:
            return None
        if len(cells) != self._n:
            return None
        for cell in cells:
            if type(cell) not in _WHOLE or not -1 <= cell < self._size:
                return None
        return np.array(cells, np.int32)

    def _packed(self, state: StreamState) -> NDArray[np.int64] | None:
        """The state as words, if the last releases were made with what holds unless told."""
        if isinstance(state.now, PackedState):
            return state.now.words
        usual = state.policy == self._engine.policies.default
        if not (usual & (state.epsilon == self._engine.epsilon)).all():
            return None
        return packed(state.now)

    def _with_proofs(self, proof: Proof, told: NDArray[np.int64], version: int) -> Proof | None:
        """With the releases that are told of; None where the tables are not there any more."""
        entries = frozenset(told[TOLD - 1].tolist()) - {-1}
        known, digests, proved = self._proved
        if known != version or digests is not proof.tables:
            proved = frozenset()
        if not entries <= proved:
            tables = self._engine.tables
            with tables.in_use():
                if tables.arrays.version != version:
                    return None
                found = tables.proofs(np.array(sorted(entries), np.int32))
            proof |= Proof.of(found, [], 0, 0)
            self._proved = version, proof.tables, proved | entries
        releases = self._n - told[0].tolist().count(-1)
        return proof.counting(int(told[TOLD - 2].sum()), releases)

    def _done(
        self, state: StreamState, after: NDArray[np.int64], told: NDArray[np.int64], proof: Proof
    ) -> tuple[StreamState, TraceResult]:
        cells, size, disconnected, isolated, added, exposed, _ = told
        released = cells.astype(np.int32)
        last = np.where(released < 0, state.released, released)
        users, t, now, _, cycle, periods, policy, epsilon, _, _, past = state
        new = StreamState(
            users, t + 1, PackedState(after, self._like), now, cycle, periods, policy, epsilon,
            last, proof, past,
        )  # fmt: skip
        result = TraceResult(
            released, size, disconnected, isolated, added, np.zeros(self._n, np.bool_),
            exposed.astype(np.bool_),
        )  # fmt: skip
        return new, result
