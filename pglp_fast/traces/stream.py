"""A stream: users who release step by step, what the adversary knows, and what was spent."""

import os
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.process import OwnProcess
from pglp_fast._util.storage import write_arrays
from pglp_fast.errors import InvalidParameter, InvalidState, InvalidTransition
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph

from .certificate import TraceCertificate
from .choices import Asked, Choices, choices_of
from .earlier_releases import Past
from .engine import Trace
from .few_users import FewUsers
from .ledger import Ledger
from .ledger_file import LedgerFile
from .results import TraceResult, by_user
from .schedule import Moment
from .spending import shares_of
from .stream_file import KIND, pack
from .stream_state import StreamState

if TYPE_CHECKING:
    from .releaser import TraceReleaser


class Stream:
    """Users who release one step at a time, made by ``TraceReleaser.start``.

    Attributes
    ----------
    releaser : TraceReleaser
    ids : int64 array
        Numbers of the users.
    """

    def __init__(
        self, releaser: "TraceReleaser", state: StreamState, file: LedgerFile | None = None
    ):
        self.releaser, self._engine = releaser, releaser.engine
        # replaced as a whole, in one assignment: an interrupt leaves the old state or the new one
        self._state = state
        # who was looked at last: a belief may have a long way to go through silence
        self._looked: tuple[StreamState, int, tuple[Domain, NDArray[np.int32]]] | None = None
        self._past = Past(state.past, file)
        self._few = FewUsers.of(self._engine, state) if file is None else None
        # one step at a time: two would share their draws and their budget
        self._lock = RLock()
        self._process = OwnProcess(
            "this stream was made",
            "Start a stream of its own in each process, or save it before the fork and resume it "
            "in one of them",
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy would have the same key and the same t, and a budget of its own."""
        raise InvalidState(
            "a stream cannot be copied or pickled: both would release with the same noise. Save "
            "it, and resume it once"
        )

    @property
    def ids(self) -> NDArray[np.int64]:
        """Numbers of the users, in the order in which cells are given."""
        return self._state.users.ids

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.ids)

    @property
    def t(self) -> int:
        """Number of the next step."""
        return self._state.t

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far, and which edges were kept throughout; with what was released
        before the stream began, or by other processes, if it was started with a ledger."""
        return self._past.whole(self._engine.ledger(self._state.users, self._state.now))

    @property
    def certificate(self) -> TraceCertificate:
        """What is proved of all releases so far."""
        return self._engine.certificate(self._state.proof, self.ledger)

    def step(
        self,
        cells: ArrayLike,
        *,
        policy: Any = None,
        epsilon: Any = None,
        period: int | None = None,
    ) -> TraceResult:
        """Release one cell for each user and move on to the next t. On any error, nothing changes.

        Parameters
        ----------
        cells : array_like of int
            Where each user is, -1 for missing.
        policy, epsilon : optional
            Name of the policy and epsilon of this step: one, one for each user, or a mapping from
            user numbers; a policy also by a ``Schedule``.
        period : int, optional
            Of the model, for the move from the last step to this one; ``(t - 1) % periods`` unless
            given.
        """
        self._process.require()
        with self._lock:
            state = self._state
            if self._few and policy is None and epsilon is None and period is None:
                common = self._few.step(state, cells)
                if common:
                    self._state, result = common
                    return result
            cells = self._checked(cells)
            seen = cells >= 0
            cycle = state.with_move(period, self._engine.model.periods)
            trace = Trace(
                starts_of(seen.astype(np.int64)), np.full(int(seen.sum()), state.t), cells[seen]
            )
            choices = self._choices(state, trace, seen, policy, epsilon, period)
            ids, limits = state.users.ids, self._engine.limits
            spent = state.now.spending
            with self._past.releasing(limits, ids, trace, choices.epsilon, spent):
                done = self._engine.release(state.users, state.now, trace, cycle, choices)
            if self._past.file is not None:
                own = self._engine.ledger(state.users, done.state)
                shares = shares_of(own.policies, trace.start, done.out.choice, choices.epsilon)
                self._past.file.settle(own, seen, shares)
            policies = len(self._engine.policies)
            self._state = state.after(done, cycle, seen, policies, choices.epsilon)
        return by_user(done.out, seen)

    def _choices(
        self,
        state: StreamState,
        trace: Trace,
        seen: NDArray[np.bool_],
        policy: Any,
        epsilon: Any,
        period: int | None,
    ) -> Choices:
        """Policy and epsilon of the users who are seen."""
        if policy is None and epsilon is None:
            return self._engine.default_choices(len(trace.steps))
        policies, epsilons = self._engine.policies, self._engine.epsilons
        periods = self._engine.model.periods
        when = np.full(len(trace.steps), state.t % periods if period is None else period)
        asked = Asked(seen.shape, seen, self.ids, np.flatnonzero(seen), Moment(trace.steps, when))
        out = choices_of(policies, epsilons, policy, epsilon, asked, periods)
        if not out.places.size:
            return out
        last, n = state.released[seen], len(policies)
        place = np.where(last >= 0, out.places[last], -1)
        number = np.where(place >= 0, out.number - out.number % n + place, out.number)
        return out._replace(number=number.astype(np.int32), places=out.places[:0])

    def _checked(self, cells: ArrayLike) -> check.Cells:
        true = check.integers(cells, "cells", InvalidTransition).reshape(-1)
        if true.size != self.users:
            raise InvalidTransition(
                f"cells has {true.size} entries for {self.users} users: give one for each, -1 for "
                "missing"
            )
        return check.cells_or_missing(
            true,
            self._engine.locations.size,
            error=InvalidTransition,
            where=lambda cell, u: f"user {self.ids[u]} is at {cell}",
        )

    # -- what the adversary knows

    def _known(self, state: StreamState, u: int) -> int:
        u = check.whole(u, "u", 0, self.users - 1)
        if state.users.point and state.now.beliefs.kind[u] >= 0:
            raise InvalidParameter(
                f"user {self.ids[u]} has not started: with priors='point' or 'move' nothing is "
                "known until then"
            )
        return u

    def _domain(self, u: int) -> tuple[Domain, NDArray[np.int32]]:
        state, kept = self._state, self._looked
        u = self._known(state, u)
        if kept is not None and kept[0] is state and kept[1] == u:
            return kept[2]
        cells, added = self._engine.domain(
            state.users, state.before, u, state.last_step, state.cycle, int(state.policy[u])
        )
        found = Domain(self._engine.locations, cells), added
        self._looked = state, u, found
        return found

    def domain(self, u: int) -> Domain:
        """C_t of user u at the last step (the prior's, before the first)."""
        return self._domain(u)[0]

    def added(self, u: int) -> NDArray[np.int32]:
        """(k, 2) edges that the repair added for user u at the last step, in order."""
        return self._domain(u)[1].copy()

    def policy(self, u: int) -> PolicyGraph:
        """The repaired policy G_t of user u at the last step."""
        domain, added = self._domain(u)
        graph = self._engine.policies.graphs[int(self._state.policy[u])]
        return graph.constrain(domain).with_edges(added)

    def policy_name(self, u: int) -> str:
        """Name of the policy of user u's last release; before the first, of the one that holds
        unless told."""
        u = check.whole(u, "u", 0, self.users - 1)
        return self._engine.policies.names[int(self._state.policy[u])]

    def epsilon(self, u: int) -> float:
        """Epsilon of user u's last release; before the first, what holds unless told."""
        return float(self._state.epsilon[check.whole(u, "u", 0, self.users - 1)])

    def posterior(self, u: int) -> NDArray[np.float64]:
        """p_t^+ of user u after the last step, dense (N,); the prior, before the first."""
        state = self._state
        return self._engine.posterior(
            state.users, state.now, self._known(state, u), state.last_step, state.cycle
        )

    def memory(self) -> int:
        """Bytes of state kept for all users together: beliefs, ledger cells and repaired edges."""
        now, before = self._state.now, self._state.before
        arrays: list[NDArray[Any]] = [*now.beliefs, *before.beliefs, *now.ledger]
        arrays += [*now.spending, self._state.policy, self._state.epsilon, self._state.released]
        return sum(a.nbytes for a in [*arrays, self.ids])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to go on, atomically; ``TraceReleaser.resume`` goes on once.

        The file contains the key of the noise: it is readable by its owner only. A stream that goes
        on after it was saved and is then lost must be fed the very same inputs again when the file
        is resumed: its noise is the same. Two files of one stream hold the same noise too: resume
        one of them."""
        booked = self._past.file is not None
        write_arrays(path, KIND, *pack(self._state, self._engine.fingerprint(), booked))

    def __repr__(self) -> str:
        return f"Stream({self.users} users, t={self.t}, {self.releaser!r})"
