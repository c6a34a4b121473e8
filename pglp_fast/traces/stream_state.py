"""The state of a stream between two steps."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check

from .engine import AnyState, Done, Ints, State, Users
from .ledger import Ledger
from .proof import Proof


class StreamState(NamedTuple):
    """It is never changed: a step makes a new one.

    Attributes
    ----------
    users : who, with keys and priors
    t : number of the next step
    now, before : what is known after the last step, and before it
    cycle : the period of each move so far, over and over where no periods were given
    told : whether periods were given
    policy, epsilon : number of the policy, and epsilon, of each user's last release; before the
        first, what holds unless told
    released : what each user released last, -1 for nothing
    proof : what was drawn from so far
    past : what was released before the stream began, where that was told
    """

    users: Users
    t: int
    now: AnyState
    before: AnyState
    cycle: Ints
    told: bool
    policy: Ints
    epsilon: NDArray[np.float64]
    released: NDArray[np.int32]
    proof: Proof = Proof()
    past: Ledger | None = None

    @property
    def last_step(self) -> int:
        return max(self.t - 1, 0)

    def with_move(self, period: int | None, periods: int) -> Ints:
        """The cycle with the move to the next step made in a period; None: as the cycle goes.

        From the first period that is told, the periods of all moves are listed."""
        if period is None and not self.told:
            return self.cycle
        if period is None:
            period = (self.t - 1) % periods
        which = check.whole(period, "period", 0, periods - 1)
        moves = max(self.t, 1)  # from steps 0 .. t - 1
        past = self.cycle[np.arange(moves - 1) % len(self.cycle)]
        return np.append(past, which)

    def after(
        self,
        done: Done,
        cycle: Ints,
        seen: NDArray[np.bool_],
        policies: int,
        epsilons: NDArray[np.float64],
    ) -> "StreamState":
        """The state after one more step, at which some users of so many policies released, with
        these epsilons."""
        told, proof = self.told or cycle is not self.cycle, self.proof | done.proof
        policy, released = self.policy.copy(), self.released.copy()
        policy[seen], released[seen] = done.out.choice % policies, done.out.released
        epsilon = self.epsilon.copy()
        epsilon[seen] = epsilons
        return self._replace(
            t=self.t + 1, now=done.state, before=done.before, cycle=cycle, told=told,
            policy=policy, epsilon=epsilon, released=released, proof=proof,
        )  # fmt: skip


def first_stream_state(
    users: Users, state: State, periods: int, policy: int, epsilon: float
) -> StreamState:
    """Before the first step; ``policy``, ``epsilon``: what holds unless told."""
    n = len(users.ids)
    last = np.full(n, policy), np.full(n, epsilon), np.full(n, -1, np.int32)
    return StreamState(users, 0, state, state, np.arange(periods), False, *last)
