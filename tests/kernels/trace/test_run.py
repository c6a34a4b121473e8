"""Users through their events, step by step against the oracle."""

import numba
import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import (
    moves_of,
    oracle_of,
    random_transitions,
    tables_of,
    trace_requests,
    trace_settings,
)
from pglp_fast._kernels.base.bound_arrays import bind
from pglp_fast._kernels.base.rows import Rows
from pglp_fast._kernels.trace import records, run
from pglp_fast._kernels.trace.records import LOGS, NOT_STARTED, OWN
from pglp_fast._kernels.trace.release import CLAIM
from pglp_fast._kernels.trace.table_cache import HEADER
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.policy.kernel_arrays import kernel_policy
from pglp_fast.traces.policies import PolicySet

GRID = pf.Grid(3, 4, cell_km=(1.0, 0.5))
GRAPH = pf.blocks(GRID, 2).with_edges([(3, 7)])
A = random_transitions(np.random.default_rng(3), 12)
SITES, SCALE, EDGES, _ = oracle_of(GRAPH, range(12))
NO_PRIORS = Rows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


def rows_of(dense):
    """(start, cells, values) of dense rows."""
    cells = [np.flatnonzero(p).astype(np.int32) for p in dense]
    values = [p[c] for p, c in zip(dense, cells)]
    start = np.cumsum([0, *map(len, cells)])
    return start, np.concatenate(cells), np.concatenate(values)


def beliefs_of(dense, at):
    """Each user's own distribution after a release at a step."""
    return records.Beliefs(np.full(len(dense), OWN), np.array(at), *rows_of(dense))


def priors_of(dense):
    start, cells, values = rows_of(dense)
    return Rows(start, cells, np.log(values))


class Users:
    """Users, their events [(step, cell), ...], and what a run of the kernel makes of them."""

    def __init__(self, events, beliefs, priors=NO_PRIORS, *, graph=GRAPH, **options):
        self.graph, self.settings = graph, trace_settings(**options)
        self.moves, self.priors = moves_of([A]), priors
        n = len(events)
        self.start = np.cumsum([0, *map(len, events)])
        flat = np.array([e for own in events for e in own], np.int64).reshape(-1, 2)
        self.steps, self.cells = flat[:, 0].copy(), flat[:, 1].astype(np.int32)
        self.who = np.repeat(np.arange(n), np.diff(self.start))
        self.out, self.space = (
            records.make_outputs(len(flat)), records.make_step_workspace(12, graph.n_cliques)
        )  # fmt: skip
        nothing = np.zeros(n + 1, np.int64)
        ledger = records.LedgerRows(
            np.full(n, NOT_STARTED), nothing, np.empty(0, np.int32), nothing,
            np.empty((0, 2), np.int32), np.zeros((n, 1), np.uint64),
        )  # fmt: skip
        self.state = beliefs, ledger, self.start[:-1].copy()

    def run(self, tables, *, replay=False, keep=False, some=None):
        """One pass; the state becomes what the kernel left."""
        beliefs, ledger, following = self.state
        n = len(following)
        self.ends = records.make_ends(n)
        requests = trace_requests(
            make_key(1), self.start, following, self.who, self.steps, self.cells, replay, keep
        )
        policies = PolicySet((self.graph,)).stacked()
        world = records.World(policies, *self.moves[:3], self.settings, self.space)
        cells, values, kept, edges, self.rows, self.logs, keys, self.claims = run.run_users(
            bind(world), self.moves.cycle, bind(tables), requests, beliefs, self.priors, ledger,
            some or (0, n), self.out, self.ends,
        )  # fmt: skip
        assert not (self.space.domain.words.any() or self.space.large.words.any())
        assert (self.space.domain.head == -1).all()
        assert not self.space.flagged.any()
        end = self.ends
        if some is None:
            beliefs = records.Beliefs(
                end.belief_kind, end.at, np.cumsum([0, *end.belief_length]), cells, values
            )
            ledger = records.LedgerRows(
                end.ledger_kind, np.cumsum([0, *end.kept_length]), kept,
                np.cumsum([0, *end.edge_length]), edges, end.used,
            )  # fmt: skip
            self.state = beliefs, ledger, end.next
        return keys

    def belief(self, u):
        b = self.state[0]
        p, here = np.zeros(12), slice(b.start[u], b.start[u + 1])
        p[b.cells[here]] = np.exp(b.values[here]) if b.kind[u] == LOGS else b.values[here]
        return p

    def kept(self, u):
        r = self.state[1]
        edges = r.edges[r.edge_start[u] : r.edge_start[u + 1]].tolist()
        cells = set(r.cells[r.start[u] : r.start[u + 1]].tolist())
        return naive.constrain(EDGES, cells) | {(min(e), max(e)) for e in edges}


def literal(users, u, p, at, calibration, mechanism="ppim"):
    """User u's events by the oracle, from a belief p at a step (a prior: at is None)."""
    graphs = []
    for e in range(users.start[u], users.start[u + 1]):
        step, z = int(users.steps[e]), int(users.out.released[e])
        moves = 0 if at is None else step - at
        support = {int(i) for i in np.flatnonzero(p @ np.linalg.matrix_power(A, moves))}
        ref = naive.trace_step(
            SITES, SCALE, EDGES, A, p @ np.linalg.matrix_power(A, moves), support, z, 1.3,
            mechanism=mechanism, calibration=calibration, strategy="min-area", delta=0.0,
        )  # fmt: skip
        counts = users.out.counts[e]
        assert (counts[0], counts[3]) == (len(ref["domain"]), len(ref["added"]))
        assert users.out.exposed[e] == bool(ref["exposed"])
        assert users.out.surrogate[e] == (int(users.cells[e]) not in ref["domain"])
        graphs.append(ref["edges"])
        p, at = ref["p_plus"], step
    return p, graphs


def some_beliefs(rng, n):
    rows = [np.where(rng.random(12) < 0.3, rng.random(12), 0.0) for _ in range(n)]
    for p in rows:
        p[rng.integers(12)] += 0.1
        p /= p.sum()
    return rows


EVENTS = [[(3, 0), (4, 5), (9, 6)], [], [(7, 11)], [(3, 2), (5, 2), (6, 2), (7, 1)]]


@pytest.mark.parametrize(("calibration", "name"), [(0, "component"), (1, "graph")])
def test_noise_is_the_oracles(calibration, name):
    """With gaps, with nobody seen, with truths that the model calls impossible."""
    start = some_beliefs(np.random.default_rng(calibration), 4)
    users = Users(EVENTS, beliefs_of(start, [2, 2, 0, 2]), calibration=calibration)
    assert users.run(tables_of([])).size == 0
    for u, at in enumerate([2, 2, 0, 2]):
        p, graphs = literal(users, u, start[u], at, name)
        assert np.abs(users.belief(u) - p).max() < 1e-10
        if graphs:
            assert users.kept(u) == naive.ledger([], graphs)[1]
        else:
            assert (users.ends.at[u], users.ends.ledger_kind[u]) == (at, NOT_STARTED)
    claims = users.claims
    while claims.size:
        assert claims[0] == 1  # every edge lies in the hull
        claims = claims[CLAIM + 2 * claims[CLAIM - 1] :]


@pytest.mark.parametrize(("calibration", "name"), [(0, "component"), (1, "graph")])
def test_tables_are_asked_for_and_the_run_goes_on(calibration, name):
    """Each pass stops users before the first table that is missing; together they give what the
    oracle's probabilities give."""
    start = some_beliefs(np.random.default_rng(calibration), 4)
    users = Users(
        EVENTS, beliefs_of(start, [2, 2, 0, 2]), calibration=calibration, tables=12,
    )  # fmt: skip
    entries, passes = [], 0
    while (keys := users.run(tables_of(entries))).size:
        passes += 1
        assert passes < 9
        key = keys[: length_of(keys)]
        assert not any(np.array_equal(key, known) for known, _ in entries)
        entries.append((key, probabilities(key)))
    assert len(entries) > 1
    for u, at in enumerate([2, 2, 0, 2]):
        p, graphs = literal(users, u, start[u], at, name)
        assert np.abs(users.belief(u) - p).max() < 1e-10
        if graphs:
            assert users.kept(u) == naive.ledger([], graphs)[1]
    assert (users.out.table >= 0).all()
    assert users.claims.size == 0


def length_of(key):
    k, m, h, anchored = key[:4].tolist()
    return HEADER + (3 + anchored) * k + 2 * (m + h)


def probabilities(key):
    """P-PIM's table for a key, by the oracle, from the lattice points and the hull that it says."""
    k, m, h, _ = key[:4].tolist()
    sites = key[HEADER : HEADER + 3 * k].reshape(k, 3)[:, :2]
    hull = key[HEADER + 3 * k + 2 * m :][: 2 * h].reshape(h, 2)
    return naive.pmf_matrix(sites, SCALE, range(k), hull * np.array(SCALE), 1.3)


def test_shared_priors_do_not_move():
    """Whenever a user is first seen; a large prior's domain serves all who share it."""
    prior = np.random.default_rng(5).dirichlet(np.ones(12))
    n = 3
    beliefs = records.Beliefs(
        np.zeros(n, np.int64), np.full(n, -1), np.zeros(n + 1, np.int64), np.empty(0, np.int32),
        np.empty(0),
    )  # fmt: skip
    users = Users([[(0, 3)], [(8, 3), (9, 7)], []], beliefs, priors_of([prior]))
    users.run(tables_of([]))
    for u in range(2):
        p, _ = literal(users, u, prior, None, "component")
        assert np.abs(users.belief(u) - p).max() < 1e-10
    assert users.ends.belief_kind[2] == 0
    assert users.ends.ledger_kind.tolist() == [0, OWN, NOT_STARTED]


@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="compiled kernels have it compiled in")
def test_users_of_a_large_prior_share_its_domain(monkeypatch):
    """What is large made small: the domain goes from user to user, until another prior comes."""
    monkeypatch.setattr(run, "MAX_CELLS", 4)
    priors = priors_of(np.random.default_rng(6).dirichlet(np.ones(12), 2))
    kinds = np.array([0, 1, 1, 0, 0])
    beliefs = records.Beliefs(
        kinds, np.full(5, -1), np.zeros(6, np.int64), np.empty(0, np.int32), np.empty(0)
    )
    users = Users([[(u, 2 * u), (u + 2, u)] for u in range(5)], beliefs, priors)
    users.run(tables_of([]))
    for u in range(5):
        p = np.exp(priors.values[priors.start[kinds[u]] : priors.start[kinds[u] + 1]])
        assert np.abs(users.belief(u) - literal(users, u, p, None, "component")[0]).max() < 1e-10


def test_only_the_users_asked_for():
    start = some_beliefs(np.random.default_rng(2), 4)
    users = Users(EVENTS, beliefs_of(start, [2, 2, 0, 2]))
    users.run(tables_of([]), some=(2, 4))
    assert (users.out.released[:3] == -1).all()
    assert (users.out.released[3:] >= 0).all()
    part = users.out.released[3:].copy()
    users.run(tables_of([]))
    assert users.out.released[3:].tolist() == part.tolist()


def test_likelihoods_are_those_of_the_release():
    start = some_beliefs(np.random.default_rng(4), 1)
    users = Users([[(3, 0), (4, 5)]], beliefs_of(start, [2]))
    users.run(tables_of([]), keep=True)
    p = start[0]
    for e in range(2):
        z, support = int(users.out.released[e]), {int(i) for i in np.flatnonzero(p @ A)}
        ref = naive.trace_step(SITES, SCALE, EDGES, A, p @ A, support, z, 1.3)
        row = slice(users.out.row_start[e], users.out.row_start[e] + users.out.row_length[e])
        assert set(users.rows[row].tolist()) == ref["support_plus"]
        likely = ref["likelihood"][users.rows[row]]
        assert np.exp(users.logs[row]) == pytest.approx(likely, abs=1e-12)
        p = ref["p_plus"]


def test_a_replay_draws_nothing_and_flags_what_is_impossible():
    start = some_beliefs(np.random.default_rng(2), 4)
    first = Users(EVENTS, beliefs_of(start, [2, 2, 0, 2]))
    first.run(tables_of([]))
    again = Users(EVENTS, beliefs_of(start, [2, 2, 0, 2]))
    again.cells = first.out.released
    again.run(tables_of([]), replay=True)
    assert again.out.released.tolist() == first.out.released.tolist()
    assert not again.out.surrogate.any()
    for u in range(4):
        assert again.belief(u).tolist() == first.belief(u).tolist()
    p = np.eye(12)[0]
    impossible = int(np.flatnonzero(p @ A == 0)[0])
    users = Users([[(3, impossible), (4, 0)]], beliefs_of([p], [2]))
    users.run(tables_of([]), replay=True)
    assert users.out.surrogate.tolist() == [True, False]
    assert users.ends.next.tolist() == [0]


@pytest.mark.parametrize("gap", [1, 2, 5])
def test_domains_and_beliefs_at_any_step(gap):
    p = np.zeros(12)
    p[[2, 9]] = 0.5
    users = Users([[]], beliefs_of([p], [6]))
    how = users.moves, users.settings, users.space, users.state[0], NO_PRIORS, 0
    cells, added = run.domain_of(kernel_policy(GRAPH), *how, 6 + gap)
    moved = np.linalg.matrix_power(A, gap)
    assert set(cells.tolist()) == {int(j) for i in (2, 9) for j in np.flatnonzero(moved[i])}
    expected, _, _ = naive.repair(*oracle_of(GRAPH, cells.tolist()), "min-area", "component")
    assert [tuple(e) for e in added.tolist()] == expected
    found = run.belief_of(users.moves, users.space, users.state[0], 0, 6 + gap)
    assert found[2] == OWN
    assert found[0].tolist() == cells.tolist()
    assert found[1] == pytest.approx((p @ moved)[cells], abs=1e-12)
    same = run.belief_of(users.moves, users.space, users.state[0], 0, 6)
    assert (same[0].tolist(), same[1].tolist()) == ([2, 9], [0.5, 0.5])


def test_the_domain_of_a_prior():
    prior = np.zeros(12)
    prior[[1, 6]] = 0.5
    beliefs = records.Beliefs(
        np.zeros(1, np.int64), np.array([-1]), np.zeros(2, np.int64), np.empty(0, np.int32),
        np.empty(0),
    )  # fmt: skip
    users = Users([[]], beliefs, priors_of([prior]))
    how = users.moves, users.settings, users.space, beliefs, users.priors, 0
    cells, added = run.domain_of(kernel_policy(GRAPH), *how, 33)
    assert (cells.tolist(), added.tolist()) == ([1, 6], [[1, 6]])
