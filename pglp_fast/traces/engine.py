"""The trace engine: what every release of every stream under one releaser shares.

It holds the policies, the model, the settings, the table cache and work space, and no user's state.
A release is a function from a state and events to a new state and results."""

import hashlib
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace import records, run
from pglp_fast._kernels.trace.records import LOGS, Beliefs, LedgerRows
from pglp_fast._util.arrays import end_to_end, ranges_of, starts_of
from pglp_fast._util.threads import run_ranges
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.adversary.priors import Priors
from pglp_fast.errors import InvalidTransition
from pglp_fast.policy.kernel_arrays import kernel_policy

from .certificate import TraceCertificate, Verdict, prove
from .choices import Choices, Epsilons
from .ledger import Ledger
from .order import by_place, rows_of_users
from .policies import PolicySet
from .proof import Proof
from .spending import Limits, Spending, nothing_spent, shares_of
from .table_cache import TableCache
from .workspaces import Worlds

WORTH_A_THREAD = 16  # events that are

Ints = NDArray[np.int64]


class Users(NamedTuple):
    """What stays the same for the users of a stream.

    Attributes
    ----------
    ids : numbers of the users, which key the noise
    key : of the noise
    priors : distinct priors; one for each location where ``point``
    point : a user's prior is the row of its first true cell
    """

    ids: Ints
    key: NDArray[np.uint32]
    priors: Rows
    point: bool


class State(NamedTuple):
    """What is known of users between two releases. It is never changed: a release makes a new one.

    Attributes
    ----------
    beliefs : p_t^+ of each user after its last release, or the prior before the first
    ledger : locations in every domain, edges that repairs added, policies used by each user
    spending : what each user has spent
    """

    beliefs: Beliefs
    ledger: LedgerRows
    spending: Spending


class AnyState(Protocol):
    """A ``State``, or what becomes one where somebody asks."""

    @property
    def beliefs(self) -> Beliefs: ...
    @property
    def ledger(self) -> LedgerRows: ...
    @property
    def spending(self) -> Spending: ...


class Trace(NamedTuple):
    """The events of some users, end to end.

    Attributes
    ----------
    start : events of user u are start[u] .. start[u + 1] - 1
    steps : ascending within a user
    cells : where users are; in a replay, what they released
    """

    start: Ints
    steps: Ints
    cells: NDArray[np.int32]

    def part(self, users: slice) -> "tuple[Trace, slice]":
        """The events of some users, and which those are."""
        start = self.start[users.start : users.stop + 1]
        some = slice(int(start[0]), int(start[-1]))
        return Trace(start - start[0], self.steps[some], self.cells[some]), some


class LikelihoodRows(NamedTuple):
    """ln Pr(z|s) of events: row e is start[e] .. start[e + 1] - 1."""

    start: Ints
    cells: NDArray[np.int32]
    logs: NDArray[np.float64]


class Done(NamedTuple):
    """What a release gives: the state before it (with priors that first cells tell) and after it;
    by event what was released and how likely, and what there is to prove of it."""

    before: AnyState
    state: State
    out: records.Outputs
    rows: LikelihoodRows | None
    proof: Proof


def first_state(priors: Priors, policies: int) -> State:
    """The state of users of so many policies before their first release."""
    n = len(priors.of)
    nothing = np.zeros(n + 1, np.int64)
    beliefs = Beliefs(priors.of.copy(), np.full(n, -1), nothing, np.empty(0, np.int32), np.empty(0))
    ledger = LedgerRows(
        np.full(n, records.NOT_STARTED, np.int64), nothing, np.empty(0, np.int32), nothing,
        np.empty((0, 2), np.int32), np.zeros((n, records.words_for(policies)), np.uint64),
    )  # fmt: skip
    return State(beliefs, ledger, nothing_spent(n))


def _with_points(state: AnyState, trace: Trace, counts: Ints) -> AnyState:
    """The prior of users who start now is their first true cell."""
    fresh = (state.beliefs.kind >= 0) & (counts > 0)
    if not fresh.any():
        return state
    kind = state.beliefs.kind.copy()
    kind[fresh] = trace.cells[trace.start[:-1][fresh]]
    return State(state.beliefs._replace(kind=kind), state.ledger, state.spending)


class TraceEngine:
    """The shared part of a ``TraceReleaser`` and of its streams.

    Parameters
    ----------
    policies : PolicySet
        The policies, by name.
    model : MobilityModel
        What the adversary knows about movement.
    settings : records.Settings
        As kernels take them.
    tables : TableCache
        Tables that were made so far.
    limits : Limits
        Budgets of each user of a stream.
    """

    def __init__(
        self,
        policies: PolicySet,
        model: MobilityModel,
        settings: records.Settings,
        tables: TableCache,
        limits: Limits,
    ):
        self.policies, self.model, self.locations = policies, model, policies.locations
        self.settings, self.tables, self.limits = settings, tables, limits
        self.epsilon: float = settings.epsilon
        self.epsilons = Epsilons(self.epsilon)
        self._stacked = policies.stacked()
        # the choices of the last step: the next one mostly has as many events
        self._default = Choices(np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32))
        self.worlds = Worlds(self._make_world)

    def _make_world(self) -> records.World:
        """All that users share; of the settings, with the choice that holds unless told."""
        rows, cols = int(self._stacked.rows.max()), int(self._stacked.cols.max())
        space = records.make_step_workspace(
            self.locations.size, self.policies.n_cliques, len(self.policies), rows, cols
        )
        bits = int(np.float64(self.epsilon).view(np.int64))
        settings = self.settings._replace(bits=bits, choice=self.policies.default)
        return records.World(self._stacked, *self.model.stacked, settings, space)

    def moves(self, cycle: Ints) -> records.Moves:
        """The model as kernels take it; ``cycle``: the period of each step, over and over."""
        return records.Moves(*self.model.stacked, cycle)

    def fingerprint(self) -> str:
        """Digest of everything that a saved stream depends on: policy, map, model, settings."""
        locations, m, remap = self.locations, self.tables.mechanism, self.tables.remap
        facts = (
            locations.scale,
            locations.offset_km,
            tuple(self.settings),
            sorted(self.limits.limits.items(), key=str),
            self.policies.names,
            type(m).__name__,
            m.describe(),
            "" if remap is None else remap.describe(),
        )
        digest = hashlib.sha256(repr(facts).encode())
        arrays: list[NDArray[Any]] = [locations.lattice]
        for graph in self.policies.graphs:
            arrays += [graph.cliques, graph.extra_indptr, graph.extra_indices]
            if graph.weights is not None:
                arrays += [graph.weights.numerator, graph.weights.denominator]
        for array in arrays + [part for chain in self.model.chains for part in chain]:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # -- releasing

    def default_choices(self, events: int) -> Choices:
        """The policy and the epsilon that hold unless told, for so many events."""
        choices = self._default
        if len(choices.number) != events:
            number = np.full(events, self.policies.default, np.int32)
            choices = Choices(number, np.full(events, self.epsilon), np.empty(0, np.int32))
            self._default = choices
        return choices

    def release(
        self,
        users: Users,
        state: AnyState,
        trace: Trace,
        cycle: Ints,
        choices: Choices,
        *,
        replay: bool = False,
        keep: bool = False,
        out: records.Outputs | None = None,
    ) -> Done:
        """Take every user through its events. On any error nothing has happened.

        Budgets are the caller's to check.

        Parameters
        ----------
        users, state : Users, State
            Who, and what is known about them.
        trace : Trace
            Where they are, after the step of their belief.
        cycle : int64 array
            The move from step t to t + 1 is made by the model's matrix ``cycle[t % len(cycle)]``.
        choices : Choices
            Policy and epsilon of each event.
        replay : bool
            Cells are what was released before. Nothing is drawn, beliefs follow.
        keep : bool
            Keep likelihoods.
        out : Outputs, optional
            Where to write what each event gives.
        """
        counts = np.diff(trace.start)
        before = _with_points(state, trace, counts) if users.point else state
        requests = records.Requests(
            users.key, trace.start, trace.start[:-1].copy(), by_place(trace.start, trace.cells),
            np.repeat(users.ids, counts), trace.steps, trace.cells, choices.number, choices.places,
            self.epsilons.values, replay, keep,
        )  # fmt: skip
        if out is None:
            out = records.make_outputs(len(trace.cells))
        with self.tables.in_use():
            beliefs, ledger, rows, claims = self._run(
                requests, before.beliefs, users.priors, state.ledger, cycle, out
            )
            tables = self.tables.proofs(out.table)
        if replay and out.surrogate.any():
            e = int(np.flatnonzero(out.surrogate)[0])
            raise InvalidTransition(
                f"user {requests.who[e]} cannot have released {trace.cells[e]} at step "
                f"{trace.steps[e]}: under this policy, model and prior it has probability 0; give "
                "the releaser and the prior it was made with"
            )
        proof = Proof.of(tables, claims, int(out.exposed.sum()), len(trace.cells))
        spent = state.spending.after(trace.start, trace.steps, choices.epsilon, self.limits.window)
        spent = spent.with_shares(
            shares_of(self.policies, trace.start, out.choice, choices.epsilon)
        )
        after = State(beliefs, ledger, spent)
        return Done(before, after, out, rows, proof)

    def _run(
        self,
        requests: records.Requests,
        beliefs: Beliefs,
        priors: Rows,
        ledger: LedgerRows,
        cycle: Ints,
        out: records.Outputs,
    ) -> tuple[Beliefs, LedgerRows, LikelihoodRows | None, list[NDArray[np.int64]]]:
        """The kernel over all users in threads, and again for as long as tables are missing."""
        all_claims: list[NDArray[np.int64]] = []
        row_cells, row_logs, kept, order = [np.empty(0, np.int32)], [np.empty(0)], 0, requests.order
        while True:
            ends = records.make_ends(len(beliefs.kind), len(self.policies))
            parts = self._pass(requests, beliefs, priors, ledger, cycle, out, ends)
            cells, values, held, edges, rows, logs, keys, claims = end_to_end(parts.values())
            all_claims.append(claims)
            if requests.keep:
                for (first, last), part in parts.items():
                    some = order[first:last] if order.size else slice(first, last)
                    begin = requests.next[some]
                    events = ranges_of(begin, ends.next[some] - begin)
                    out.row_start[events] += kept
                    kept += len(part[4])
                row_cells.append(rows)
                row_logs.append(logs)
            beliefs = Beliefs(
                ends.belief_kind, ends.at, *rows_of_users(order, ends.belief_length, cells, values)
            )
            kept_by = rows_of_users(order, ends.kept_length, held)
            edges_by = rows_of_users(order, ends.edge_length, edges)
            ledger = LedgerRows._make((ends.ledger_kind, *kept_by, *edges_by, ends.used))
            if not keys.size or (requests.replay and out.surrogate.any()):
                break  # all is done, or a replay contradicts itself
            requests = requests._replace(next=ends.next)
            self.tables.add(keys)
        if not requests.keep:
            return beliefs, ledger, None, all_claims
        at = ranges_of(out.row_start, out.row_length)
        found = LikelihoodRows(
            starts_of(out.row_length), np.concatenate(row_cells)[at], np.concatenate(row_logs)[at]
        )
        return beliefs, ledger, found, all_claims

    def _pass(
        self,
        requests: records.Requests,
        beliefs: Beliefs,
        priors: Rows,
        ledger: LedgerRows,
        cycle: Ints,
        out: records.Outputs,
        ends: records.Ends,
    ) -> dict[tuple[int, int], tuple[NDArray[Any], ...]]:
        """Every user as far as tables go; by range of users, in order, what the kernel returns."""
        parts = {}

        def part(start: int, stop: int) -> None:
            with self.worlds.one() as world:
                parts[start, stop] = run.run_users(
                    world, cycle, self.tables.bound, requests, beliefs, priors, ledger,
                    (start, stop), out, ends,
                )  # fmt: skip

        users, events = len(beliefs.kind), max(len(requests.cells), 1)
        run_ranges(part, users, smallest=max(1, WORTH_A_THREAD * users // events))
        return dict(sorted(parts.items()))

    # -- what it cost, and what is proved

    def ledger(self, users: Users, state: AnyState) -> Ledger:
        """What users have spent, and which edges were kept throughout."""
        return Ledger(users.ids, self.policies, state.spending, state.ledger, users.priors)

    def certificate(self, proof: Proof, ledger: Ledger) -> TraceCertificate:
        """What is proved of some releases."""
        verdict = self.prove(proof)
        promised = max(verdict.delivered, default=self.epsilon)
        return TraceCertificate(proof, verdict, ledger, promised)

    def prove(self, proof: Proof) -> Verdict:
        """What is proved of what was drawn from."""
        return prove(proof, self.settings.polygon, self.locations)

    # -- what the adversary knows

    def domain(
        self, users: Users, state: AnyState, u: int, step: int, cycle: Ints, policy: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(cells of C_t, edges that the repair adds) of user u at a step after its last release,
        under the policy of that number."""
        with self.worlds.one() as world:
            cells, added = run.domain_of(
                kernel_policy(self.policies.graphs[policy]), self.moves(cycle), self.settings,
                world.value.space, state.beliefs, users.priors, u, step,
            )  # fmt: skip
        return cells, added

    def posterior(
        self, users: Users, state: AnyState, u: int, step: int, cycle: Ints
    ) -> NDArray[np.float64]:
        """p_t^+ of user u at a step, dense (N,); the prior, before the first release."""
        beliefs = state.beliefs
        kind = int(beliefs.kind[u])
        if kind >= 0:
            at = slice(users.priors.start[kind], users.priors.start[kind + 1])
            cells, values, kind = users.priors.cells[at], users.priors.values[at], LOGS
        else:
            with self.worlds.one() as world:
                space, moves = world.value.space, self.moves(cycle)
                cells, values, kind = run.belief_of(moves, space, beliefs, u, step)
        out = np.zeros(self.locations.size)
        out[cells] = np.exp(values) if kind == LOGS else values
        return out
