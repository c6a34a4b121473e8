"""Released traces, followed step by step as any observer can."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.priors import Priors
from pglp_fast.errors import InvalidEvidence
from pglp_fast.mechanisms.randomness import make_key

from .choices import Choices, numbered
from .engine import Trace, TraceEngine, Users, first_state
from .results import TraceResult, by_user
from .stream_state import StreamState, first_stream_state


def replay_steps(
    engine: TraceEngine, evidence: Evidence, users: Any
) -> Iterator[tuple[StreamState, TraceResult]]:
    """After each step, the state of a stream of some persons of the evidence, and its counts."""
    n, policies = evidence.persons, len(engine.policies)
    rows = np.arange(n) if users is None else check.cells(users, n, "users").reshape(-1)
    priors = Priors(evidence.priors.rows, evidence.priors.of[rows], False)
    # a fresh key: nothing is drawn, unless somebody goes on from there
    known = Users(np.arange(len(rows)), make_key(None), priors.rows, False)
    state = first_stream_state(
        known, first_state(priors, policies), engine.model.periods, engine.policies.default,
        engine.epsilon,
    )._replace(cycle=evidence.cycle)  # fmt: skip
    for step, cells, at in evidence.by_step(rows.astype(np.int64)):
        seen = cells >= 0
        trace = Trace(starts_of(seen.astype(np.int64)), np.full(seen.sum(), step), cells[seen])
        choices = _choices_of(engine, evidence, at[seen])
        done = engine.release(known, state.now, trace, state.cycle, choices, replay=True)
        state = state._replace(t=step).after(done, state.cycle, seen, policies, choices.epsilon)
        yield state, by_user(done.out, seen)


def _choices_of(engine: TraceEngine, evidence: Evidence, rows: NDArray[np.int64]) -> Choices:
    """The choices of rows of evidence; what holds unless told, where it has none."""
    policy, epsilon = (
        np.full(len(rows), engine.policies.default),
        np.full(len(rows), engine.epsilon),
    )
    if evidence.policy is not None and evidence.epsilon is not None:
        policy, epsilon = evidence.policy[rows], evidence.epsilon[rows]
        if policy.size and not (policy.min() >= 0 and policy.max() < len(engine.policies)):
            raise InvalidEvidence(
                f"the evidence has policy number {policy.max()}, this releaser has "
                f"{len(engine.policies)} policies: give the releaser it was made with"
            )
    return numbered(engine.policies, engine.epsilons, policy, epsilon)
