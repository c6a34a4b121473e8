"""Composition of ledgers, streams and single releases, against sets and exact sums."""

import math
from dataclasses import replace

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import edge_set, policy_of_kind, random_map, random_prior, random_transitions
from pglp_fast._util import validate as check
from pglp_fast.traces.spending import Limits, nothing_spent

EPSILONS = [0.1, 0.3, 2.0]


class History:
    """Everything that was released about persons, kept literally."""

    def __init__(self):
        self.spent, self.graphs = {}, {}

    def add(self, person, epsilon, edges):
        self.spent.setdefault(person, []).append(epsilon)
        self.graphs.setdefault(person, []).append(edges)

    def check(self, ledger, whole):
        kept = ledger.kept_edges()
        for u, person in enumerate(ledger.ids.tolist()):
            if person in self.spent:
                total, edges = naive.ledger(self.spent[person], self.graphs[person])
                assert ledger.epsilon(u) == total
                assert edge_set(ledger.graph(u)) == edges
                assert kept[u] == len(edges)
                assert ledger.index(person) == u
            else:
                assert ledger.epsilon(u) == 0.0
                assert ledger.graph(u) == whole


def streams(rng, locations, histories, rounds=3):
    """Ledgers of streams of some persons, under policies and epsilons of all kinds."""
    A = random_transitions(rng, locations.size, 4.0)
    model = pf.MobilityModel(locations, A)
    for _ in range(rounds):
        graphs = {n: policy_of_kind(rng, locations, int(rng.integers(3))) for n in "ab"}
        ids = rng.permutation(6)[: rng.integers(1, 6)]
        T = pf.TraceReleaser(graphs, model, epsilon=1.0, rng=1)
        S = T.start(ids, random_prior(rng, locations.size))
        for _ in range(rng.integers(0, 4)):
            cells = rng.integers(-1, locations.size, len(ids))
            names, values = rng.choice(list("ab"), len(ids)), rng.choice(EPSILONS, len(ids))
            S.step(cells, policy=names, epsilon=values)
            for u in np.flatnonzero(cells >= 0):
                for history in histories:
                    history.add(int(ids[u]), values[u], edge_set(S.policy(u)))
        yield S


@pytest.mark.parametrize("seed", range(25))
def test_compose_is_the_literal_one(seed, tmp_path):
    """Random histories of streams and single releases, composed at once, one by one, and through
    files."""
    rng, history = np.random.default_rng(seed), History()
    locations = random_map(rng, seed)
    parts = [S.ledger for S in streams(rng, locations, [history])]
    persons = set(np.concatenate([p.ids for p in parts]).tolist())
    for k in range(rng.integers(0, 3)):
        G, epsilon = policy_of_kind(rng, locations, k), float(rng.choice(EPSILONS))
        some = rng.permutation(6)[:2] if rng.random() < 0.5 else None
        parts.append((epsilon, G) if some is None else (epsilon, G, some))
        persons |= set([] if some is None else some.tolist())
    for part in [p for p in parts if isinstance(p, tuple)]:
        for person in part[2].tolist() if len(part) == 3 else persons:
            history.add(person, part[0], edge_set(part[1]))
    whole = pf.compose(*parts)
    assert set(whole.ids.tolist()) == persons
    history.check(whole, whole.policies.graph)
    whole.save(tmp_path / "ledger")
    again = pf.Ledger.load(tmp_path / "ledger", locations)
    history.check(again, again.policies.graph)
    ledgers = [p for p in parts if not isinstance(p, tuple)]
    one_by_one = ledgers[0]
    for ledger in ledgers[1:]:
        one_by_one = one_by_one.merge(ledger)
    at_once = pf.compose(*ledgers)
    for u, person in enumerate(at_once.ids):
        v = one_by_one.index(person)
        assert one_by_one.epsilon(v) == at_once.epsilon(u)
        assert one_by_one.graph(v) == at_once.graph(u)


def test_what_can_be_composed():
    grid = pf.Grid(4, 4)
    G, H = pf.blocks(grid, 2), pf.blocks(grid, 4)
    T = pf.TraceReleaser(G, pf.MobilityModel(grid, np.full((16, 16), 1 / 16)), epsilon=1.0, rng=1)
    S, R = T.start(2), T.run([[0], [1]])
    S.step([0, 5])
    assert pf.compose(S, R, pf.PPIM(H, epsilon=0.5)).epsilons().tolist() == [2.5, 2.5]
    assert pf.compose(S.ledger, (0.5, G, [1, 7])).ids.tolist() == [0, 1, 7]
    alone = pf.compose((0.5, G), (1.0, H))
    assert (alone.epsilon(0), alone.graph(0)) == (1.5, G & H)
    inside = pf.PPIM(H, epsilon=0.5, domain=pf.Domain(grid, [0, 1, 2]))
    assert pf.compose(inside).graph(0).n_edges == 3
    for bad, message in (
        ((), "nothing to compose"),
        ((3,), "compose takes ledgers"),
        (((0.5,),), "compose takes ledgers"),
        (((0.0, G),), "epsilon must be"),
        (((1.0, 3),), "must be a PolicyGraph"),
        ((S, (1.0, pf.blocks(pf.Grid(2, 2), 2))), "over different maps"),
    ):
        with pytest.raises(pf.PGLPError, match=message):
            pf.compose(*bad)
    with pytest.raises(pf.InvalidParameter, match="nobody with the number 9"):
        S.ledger.index(9)


def world(budget=None, window=None):
    grid = pf.Grid(3, 3)
    model = pf.MobilityModel(grid, np.full((9, 9), 1 / 9))
    return pf.TraceReleaser(
        pf.blocks(grid, 3), model, epsilon=1.0, rng=1, budget=budget, window=window
    )


def test_a_budget_over_any_window_of_steps():
    """Three in any five steps: silence gives the budget back, and nothing that is refused is
    spent."""
    T = world(3.0, window=5)
    S = T.start(2)
    for _ in range(3):
        S.step([0, 0])
    with pytest.raises(
        pf.BudgetExceeded, match="user 0 would spend more than 3 within the 5 steps"
    ):
        S.step([0, -1])
    S.step([-1, -1])
    S.step([-1, -1])
    S.step([0, 0])
    with pytest.raises(pf.BudgetExceeded, match="up to step 6"):
        S.step([0, 0], epsilon=[1.0, 1.5])
    assert (S.step([0, 0]).released >= 0).all()
    assert S.ledger.epsilons().tolist() == [5.0, 5.0]
    with pytest.raises(pf.BudgetExceeded):
        T.run([[0, 0, 0, 0]])
    assert (T.run([[0, 0, 0, -1, -1, 0, 0, 0, -1, -1]]).released[0, 7] >= 0).all()


def test_a_window_beside_the_total():
    S = world({5: 3.0, None: 4.0}).start(1)
    for _ in range(3):
        S.step([0])
    for _ in range(5):
        S.step([-1])
    S.step([0])
    with pytest.raises(pf.BudgetExceeded, match="has spent 4 of 4"):
        S.step([0])
    for bad in (dict(window=3), dict(budget={3: 1.0}, window=3), dict(budget=1.0, window=0)):
        with pytest.raises(pf.InvalidParameter, match="window"):
            world(**bad)


@pytest.mark.parametrize("seed", range(10))
def test_windows_are_the_literal_ones(seed):
    """Steps at random, one by one: refused where a loop over all windows says so. What is
    remembered between steps suffices."""
    rng = np.random.default_rng(seed)
    window, limit = int(rng.integers(1, 8)), 2.0
    limits, spent, past, step, refused = Limits(limit, window), nothing_spent(1), [], 0, 0
    for _ in range(200):
        step += int(rng.integers(1, 4))
        epsilon = float(rng.choice([0.3, 0.5, 1.1]))
        inside = [e for s, e in past if s > step - window]
        event = np.array([0, 1]), np.array([step]), np.array([epsilon])
        if math.fsum([*inside, epsilon]) > limit * (1 + 1e-12):
            with pytest.raises(pf.BudgetExceeded):
                limits.check(np.array([7]), spent, *event)
            refused += 1
            continue
        limits.check(np.array([7]), spent, *event)
        spent = spent.after(*event, window)
        past.append((step, epsilon))
        assert len(spent.steps) <= window
    assert spent.total[0] == math.fsum(e for _, e in past)
    assert 0 < refused < 200


def test_a_past_counts():
    """A ledger of another day: in budgets, in the stream's ledger, in certificates, in what is
    saved."""
    T = world(3.0)
    first = T.start([4, 5])
    first.step([0, 0])
    first.step([0, -1])
    S = T.start([5, 4, 6], ledger=first.ledger)
    S.step([0, 0, 0])
    assert S.ledger.epsilons().tolist() == [2.0, 3.0, 1.0]
    assert S.certificate.epsilon(1) == 3.0
    with pytest.raises(pf.BudgetExceeded, match="user 4 has spent 3 of 3"):
        S.step([0, 0, 0])
    R = T.run([[1, -1], [1, 2]], users=[5, 6], ledger=S.ledger)
    assert R.certificate.ledger.epsilons().tolist() == [3.0, 3.0]
    with pytest.raises(pf.BudgetExceeded):
        T.run([[1, 1]], users=[5], ledger=S.ledger)


def test_a_stream_saves_its_past(tmp_path):
    T = world(3.0)
    first = T.start([4])
    first.step([0])
    S = T.start([4], ledger=first.ledger)
    S.step([0])
    S.save(tmp_path / "stream")
    S = T.resume(tmp_path / "stream")
    assert S.ledger.epsilon(0) == 2.0
    S.step([0])
    with pytest.raises(pf.BudgetExceeded):
        S.step([0])
    S.save(tmp_path / "stream")
    with pytest.raises(pf.InvalidParameter, match="a saved stream knows its past"):
        T.resume(tmp_path / "stream", ledger=first.ledger)


def test_undated_releases_count_in_every_window():
    """Of a single release it is not known when it was: no window can be sure it is outside."""
    T = world(1.0, window=2)
    G = T.graph
    S = T.start([0], ledger=pf.compose((0.5, G)))
    for _ in range(9):
        S.step([-1])
    with pytest.raises(pf.BudgetExceeded):
        S.step([0])
    S.step([0], epsilon=0.5)


def test_what_composition_leaves():
    """An edge goes for good once one of its ends is ruled out: people who move keep little, one
    large block keeps more than small ones."""
    grid = pf.Grid(12, 12)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")
    rng = np.random.default_rng(0)
    row, col = np.cumsum(rng.integers(-1, 2, (2, 30, 60)), axis=2) + 6
    traces = np.clip(row, 0, 11) * 12 + np.clip(col, 0, 11)
    without = []
    for k in (3, 12):
        T = pf.TraceReleaser(pf.blocks(grid, k), model, epsilon=1.0, rng=1)
        ledger = T.run(traces).certificate.ledger
        without.append(int((ledger.kept_edges() == 0).sum()))
    assert without[0] > 15 > without[1]


@pytest.mark.parametrize("seed", range(15))
def test_composition_is_associative(seed, tmp_path):
    """Releases about some and about everybody, composed at once, and in random groups through
    files: also for persons who are met late, or never. Would catch a release about everybody that
    is about those of one call."""
    rng, history = np.random.default_rng(seed), History()
    locations = random_map(rng, seed)
    parts, everyone = [], np.arange(8)
    for k in range(6):
        G, epsilon = policy_of_kind(rng, locations, k % 3), float(rng.choice(EPSILONS))
        some = rng.permutation(6)[:2] if rng.random() < 0.6 else None
        parts.append((epsilon, G) if some is None else (epsilon, G, some))
        for person in everyone if some is None else some:
            history.add(int(person), epsilon, edge_set(G))
    grouped = list(parts)
    while len(grouped) > 1:
        k = int(rng.integers(len(grouped) - 1))
        made = pf.compose(*grouped[k : k + 2])
        made.save(tmp_path / "made")
        grouped[k : k + 2] = [pf.Ledger.load(tmp_path / "made", locations)]
    for ledger in (pf.compose(*parts), pf.compose(grouped[0])):
        asked = ledger.select(everyone)
        history.check(asked, asked.policies.graph)
    assert any(len(part) == 2 for part in parts) == (ledger.others is not None)


def test_a_release_about_everybody_counts_for_who_comes_later(tmp_path):
    T = world(1.5)
    earlier = pf.compose((0.25, T.graph, [1, 2]), (1.0, T.graph))
    earlier.save(tmp_path / "ledger")
    for ledger in (earlier, tmp_path / "ledger"):
        with pytest.raises(pf.BudgetExceeded, match=r"user 9 has spent 1 of 1\.5"):
            T.start([9], ledger=ledger).step([0])
        with pytest.raises(pf.BudgetExceeded, match=r"user 9 has spent 1 of 1\.5"):
            T.run([[0]], users=[9], ledger=ledger)
    S = T.start([9], ledger=tmp_path / "ledger")
    S.step([0], epsilon=0.5)
    assert S.ledger.epsilons().tolist() == [1.5] and S.ledger.others.epsilon(0) == 1.0
    again = pf.Ledger.load(tmp_path / "ledger")
    assert again.ids.tolist() == [1, 2, 9] and again.others.epsilon(0) == 1.0
    assert "about everybody" in repr(again)


def test_steps_of_two_durations_are_not_one_clock():
    """What was at step 7 of one duration is not at step 7 of another: it counts in every window,
    whichever ledger comes first, and a window of others is refused."""
    T = world({3: 2.0})
    S = T.start([4])
    S.step([0])
    for _ in range(5):
        S.step([-1])
    minutes, hours = (replace(S.ledger, step_ms=n * 60_000) for n in (5, 60))
    alone = replace(minutes, ids=np.array([5]))
    bare = replace(hours, spending=hours.spending.undated())
    for both in (pf.compose(minutes, hours), pf.compose(hours, minutes), bare.merge(minutes)):
        assert both.epsilons().tolist() == [2.0]
        assert both.spending.since.tolist() == [check.MAX_TIME] and not len(both.spending.steps)
    both = pf.compose(hours, alone)
    assert both.step_ms == 3_600_000 and both.spending.steps.tolist() == [0]  # of person 4 alone
    event = np.array([0, 1]), np.array([9]), np.array([1.5])
    for ledger, fits in ((minutes, True), (pf.compose(minutes, bare), False), (bare, False)):
        limits = Limits(2.0, 3, step_ms=300_000)
        past = ledger.past_of(ledger.ids, limits)
        if fits:
            limits.check(ledger.ids, past, *event)
        else:
            with pytest.raises(pf.BudgetExceeded):
                limits.check(ledger.ids, past, *event)
    windowed = Limits(2.0, 3, step_ms=300_000)
    with pytest.raises(pf.InvalidParameter, match=r"the ledger counts steps of .*, and these"):
        hours.past_of(hours.ids, windowed)
    assert hours.past_of(np.array([7]), windowed).total.tolist() == [0.0]  # a window of nobody's
    assert hours.past_of(hours.ids, Limits(2.0, step_ms=300_000)).total.tolist() == [1.0]
    unknown = replace(hours, step_ms=None)
    past = unknown.past_of(hours.ids, windowed)
    assert past.since.tolist() == [check.MAX_TIME] and past.forgotten.tolist() == [1.0]
    assert pf.compose(unknown, alone).step_ms == pf.compose(alone, unknown).step_ms == 300_000
    with pytest.raises(pf.InvalidParameter, match="of 1h, and these are of no known duration"):
        T.start([4], ledger=hours).step([0])


def test_a_ledger_file_keeps_the_duration_of_steps(tmp_path):
    T = world({3: 2.0})
    S = T.start([4])
    S.step([0])
    ledger = replace(S.ledger, step_ms=300_000)
    ledger.save(tmp_path / "ledger")
    assert pf.Ledger.load(tmp_path / "ledger").step_ms == 300_000
    with pytest.raises(pf.InvalidParameter, match="of 5min, and these are of no known duration"):
        T.run([[0]], users=[4], ledger=tmp_path / "ledger")
