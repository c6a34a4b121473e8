"""A run: whole traces of users, released block by block."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.records import Outputs, make_outputs
from pglp_fast._util.progress import Progress
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.priors import Priors

from .choices import Choices
from .earlier_releases import Past
from .engine import Ints, LikelihoodRows, State, TraceEngine, Users, first_state
from .layout import Chosen, Layout
from .ledger import Ledger
from .ledger_rows import join_rows
from .proof import Proof
from .results import TraceResult
from .spending import nothing_spent, shares_of

_BLOCK = 4096  # users who are taken through all steps together


class Job(NamedTuple):
    """What is to be released, or was.

    Attributes
    ----------
    layout : events by user and step
    priors : what the adversary thinks at each user's first event
    cycle : the period of each step
    choices : policy and epsilon of each event
    key : of the noise
    """

    layout: Layout
    priors: Priors
    cycle: Ints
    choices: Choices
    key: NDArray[np.uint32]


class _Drawn(NamedTuple):
    """What was drawn for all users."""

    out: Outputs
    rows: list[LikelihoodRows]
    proof: Proof
    states: list[State]


def run_job(
    engine: TraceEngine, job: Job, past: Past, *, progress: bool, evidence: bool
) -> TraceResult:
    """Release, within the budgets."""
    ids, trace, epsilons = job.layout.ids, job.layout.trace, job.choices.epsilon
    spent, limits = nothing_spent(len(ids)), engine.limits.in_steps_of(job.layout.step_ms)
    with past.releasing(limits, ids, trace, epsilons, spent):
        drawn = _blocks(engine, job, progress, keep=evidence)
    spent = spent.after(trace.start, trace.steps, epsilons, limits.window)
    spent = spent.with_shares(shares_of(engine.policies, trace.start, drawn.out.choice, epsilons))
    kept = join_rows([state.ledger for state in drawn.states])
    own = Ledger(ids, engine.policies, spent, kept, job.priors.rows, step_ms=limits.step_ms)
    whole = past.settle(own, np.diff(trace.start) > 0)
    return TraceResult(
        evidence=_evidence(engine, job, drawn) if evidence else None,
        certificate=engine.certificate(drawn.proof, whole),
        **job.layout.arrange(drawn.out),
    )


def observe_job(engine: TraceEngine, job: Job, *, progress: bool) -> Evidence:
    """What was released says to an adversary who does not know the key."""
    return _evidence(engine, job, _blocks(engine, job, progress, keep=True, replay=True))


def _blocks(
    engine: TraceEngine, job: Job, progress: bool, *, keep: bool, replay: bool = False
) -> _Drawn:
    """Take users through all their events, block by block."""
    layout, priors, trace = job.layout, job.priors, job.layout.trace
    policies, out = len(engine.policies), make_outputs(len(trace.cells))
    rows: list[LikelihoodRows] = []
    proof, states = Proof(), [first_state(priors.part(slice(0, 0)), policies)]
    bar = Progress(len(trace.cells)) if progress else None
    for first in range(0, len(layout.ids), _BLOCK):
        block = slice(first, min(first + _BLOCK, len(layout.ids)))
        known = Users(layout.ids[block], job.key, priors.rows, priors.point)
        part, some = trace.part(block)
        done = engine.release(
            known, first_state(priors.part(block), policies), part, job.cycle,
            job.choices.part(some), replay=replay, keep=keep,
            out=Outputs(*(array[some] for array in out)),
        )  # fmt: skip
        proof |= done.proof
        states.append(done.state)
        if done.rows:
            rows.append(done.rows)
        if bar:
            bar.advance(len(part.cells))
    if bar:
        bar.close()
    return _Drawn(out, rows, proof, states)


def _evidence(engine: TraceEngine, job: Job, drawn: _Drawn) -> Evidence:
    """What was released, with its likelihoods, and the choices where there were any."""
    chosen, policies, released = None, len(engine.policies), drawn.out.released
    if policies > 1 or job.choices.number.any():
        chosen = Chosen((drawn.out.choice % policies).astype(np.int64), job.choices.epsilon)
    return job.layout.evidence(engine.model, job.priors, job.cycle, released, drawn.rows, chosen)
