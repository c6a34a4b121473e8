"""Releases of one user: by a table that is missing, by one that is there, by noise, by pattern."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from cases import oracle_of, tables_of, trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.exposure.repaired_domain import discard, make_repaired_domain
from pglp_fast._kernels.trace import records, release
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import LOGS, OWN
from pglp_fast.policy.kernel_arrays import kernel_policy

GRAPH = pf.blocks(pf.Grid(2, 4), 2)
P = np.array([[0.75, 0.25], [0.5, 0.5]])
TABLE = trace_settings(tables=9, with_hull=False)
HALF = np.array([2**63, 0, 0, 0], np.uint64)
MOST = np.array([2**64 - 2, 0, 0, 0], np.uint64)


def place(graph, cells):
    """(kernel policy, work space, cells) of a domain."""
    space = records.make_step_workspace(graph.locations.size, graph.n_cliques)
    cells = np.array(cells, np.int32)
    set_cells(space.domain.words, cells)
    return kernel_policy(graph), space, cells


def repaired_of(policy, space, cells, calibration=0):
    return make_repaired_domain(policy, 0, calibration, space.domain, cells)


def even(cells, kind=OWN):
    p = np.full(len(cells), 1 / len(cells))
    return Belief(kind, cells, p if kind == OWN else np.log(p))


def test_a_missing_table_is_asked_for_and_then_drawn_from():
    policy, space, cells = place(GRAPH, [0, 5])
    repaired = repaired_of(policy, space, cells)

    def released(key, words=HALF, replay=False):
        tables = tables_of([(key, P)] if len(key) else [])
        return release.release_from(
            policy, TABLE, tables, repaired, even(cells), 0, replay, words, space
        )

    none = released(np.empty(0, np.int64))
    assert (none.cell, none.entry) == (-1, -1)
    assert none.key[0] == 2  # members
    found = released(none.key)
    assert found.cell == 0  # 0.5 < 0.75
    assert (found.entry, found.column) == (0, 0)
    assert found.positions.tolist() == [0, 1]
    assert released(none.key, MOST).cell == 5
    assert released(none.key, replay=True).cell == 0


@pytest.mark.parametrize("kind", [OWN, LOGS])
def test_remapped_answers_have_likelihoods_of_their_own(kind):
    """Everything is remapped to the place that costs least: here all answers become the first."""
    policy, space, cells = place(GRAPH, [0, 5])
    repaired = repaired_of(policy, space, cells)
    settings = trace_settings(tables=9, with_hull=False, remap=True)
    how = even(cells, kind), 0, False, MOST, space
    key = release.release_from(policy, settings, tables_of([]), repaired, *how).key
    tables = tables_of([(key, P)], [np.array([[0.0, 3.0], [0.0, 3.0]])])
    found = release.release_from(policy, settings, tables, repaired, *how)
    assert (found.cell, found.entry, found.column) == (0, 0, -1)
    assert np.exp(space.likelihood[:2]) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("calibration", "name"), [(0, "component"), (1, "graph")])
def test_noise_says_how_likely_it_was_and_what_is_to_be_proved(calibration, name):
    grid = pf.Grid(3, 4, cell_km=(1.0, 0.5))
    graph = pf.blocks(grid, 2).with_edges([(3, 7)])
    policy, space, cells = place(graph, [0, 1, 4, 5, 8, 11])
    repaired = repaired_of(policy, space, cells, calibration)
    settings = trace_settings(calibration=calibration)
    sites, scale, edges, domain = oracle_of(graph, cells.tolist())
    _, kept, _ = naive.repair(sites, scale, edges, domain, "min-area", name)
    E, _ = naive.emission(sites, scale, kept, domain, 1.3, "ppim", name)
    for s in (0, 4, 11):
        words = np.array([2**60 + s, 2**62, 2**61, 2**63], np.uint64)
        found = release.release_from(
            policy, settings, tables_of([]), repaired, even(cells), s, False, words,
            space,
        )  # fmt: skip
        members = cells[found.positions]
        outputs = sorted(domain) if calibration else naive.component(12, kept, s)
        assert members.tolist() == outputs
        assert found.cell in outputs
        assert (found.entry, found.column) == (-1, -1)
        likely = np.exp(space.likelihood[: len(members)])
        assert likely == pytest.approx(E[members, found.cell], abs=1e-12)
        own = {e for e in kept if calibration or e[0] in outputs}
        hull = naive.sensitivity_hull(sites, own)
        inside, size, width, height, boxed, _, _, h = found.key[: release.CLAIM].tolist()
        xy = np.array(sites)[outputs]
        assert (inside, size) == (1, len(outputs))
        assert [width, height] == (np.ptp(xy, axis=0) + 1).tolist()
        assert boxed == (width * height == size)
        assert found.key[release.CLAIM :].reshape(h, 2).tolist() == [list(v) for v in hull]


def test_a_tie_along_a_line_is_broken_as_its_likelihoods_are():
    """The noise ends one unit east of s, as near to s as to cell 10 and to cell 1, whose region the
    line only touches. An observer, who does not know s, must be able to follow: once cell 1 was
    released and the belief followed the true line."""
    graph = pf.PolicyGraph.from_edges(pf.Grid(3, 8), [(21, 22)])
    policy, space, cells = place(graph, [1, 8, 10, 21, 22])
    repaired = repaired_of(policy, space, cells, 1)
    words = np.array([2**63, 0, int(np.exp(-1.3) * 2**64), 0], np.uint64)

    def released(s, replay):
        found = release.release_from(
            policy, trace_settings(calibration=1), tables_of([]), repaired, even(cells), s,
            replay, words, space,
        )  # fmt: skip
        return found.cell, space.likelihood[: len(cells)].copy()

    z, likely = released(8, False)
    assert z in (8, 10)
    assert np.isfinite(likely[1])  # s itself
    again, seen = released(z, True)
    assert again == z
    assert seen.tolist() == likely.tolist()


def test_a_claim_of_scattered_points_never_fills_a_box():
    sites = pf.Points(np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * 0.001)
    policy, space, cells = place(pf.complete(sites), range(4))
    claim = release.release_from(
        policy, trace_settings(), tables_of([]), repaired_of(policy, space, cells), even(cells),
        0, False, HALF, space,
    ).key  # fmt: skip
    assert claim[:6].tolist() == [1, 4, 2, 2, 0, 0]


def test_a_claim_says_where_the_hull_misses_an_edge():
    policy, space, cells = place(GRAPH, [0, 1, 4, 5])
    repaired = repaired_of(policy, space, cells)
    whole = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    for hull, inside in ((whole, 1), (whole[[0, 1, 2]], 0), (whole[[0, 2]], 0), (whole[:1] * 0, 0)):
        claim = release._claim(policy, TABLE, repaired, np.arange(4, dtype=np.int32), hull)
        assert claim[0] == inside


def learned(policy, settings, space, cells):
    """The slot of a domain's pattern, learned as a run does."""
    slot, _ = release.look_up(policy, settings, space, cells)
    how = settings.strategy, settings.calibration
    repaired = make_repaired_domain(policy, *how, space.domain, cells)
    slot = release.learn(policy, settings, space, slot, repaired)
    discard(repaired)
    return slot


@pytest.mark.parametrize("calibration", [0, 1])
def test_a_pattern_releases_what_its_domain_does(calibration):
    """First learned, then met elsewhere: the same answers as of the repaired domain itself."""
    graph = pf.blocks(pf.Grid(6, 6), 2)
    settings = trace_settings(tables=9, with_hull=False, calibration=calibration)
    space = records.make_step_workspace(36, graph.n_cliques)
    policy, slots = kernel_policy(graph), []
    for corner in (0, 14, 12):
        cells = np.array([0, 1, 9], np.int32) + np.int32(corner)  # a pair, and one cut off
        set_cells(space.domain.words, cells)
        slot = learned(policy, settings, space, cells)
        slots.append(slot)
        domain = even(cells)
        for s in cells.tolist():
            repaired = make_repaired_domain(policy, 0, calibration, space.domain, cells)
            how = domain, s, False, MOST
            none = release.release_from(policy, settings, tables_of([]), repaired, *how, space)
            k = len(none.positions)
            tables = tables_of([(none.key, np.full((k, k), 1 / k))])
            direct = release.release_from(policy, settings, tables, repaired, *how, space)
            discard(repaired)
            known = release.Known(domain, s, slot, True, -1, -1)
            assert release.known_entry(space.patterns, slot, cells, s)[1] == -1
            release.learn_entry(space.patterns, slot, known, direct.entry)
            _, entry = release.known_entry(space.patterns, slot, cells, s)
            assert entry == direct.entry
            known = release.Known(domain, s, slot, True, entry, -1)
            found = release.release_pattern(settings, space, tables, known, False, MOST)
            assert found.cell == direct.cell
            assert found.positions.tolist() == direct.positions.tolist()
            assert (found.entry, found.column) == (direct.entry, direct.column)
            space.patterns.entries[slot] = -1
        space.domain.words[:] = 0
        assert (space.domain.head == -1).all()
    assert len(set(slots)) == 1


def test_patterns_are_for_tables_only():
    policy, space, cells = place(GRAPH, [0, 5])
    assert release.look_up(policy, trace_settings(tables=0), space, cells) == (-1, False)
    slot, known = release.look_up(policy, TABLE, space, cells)
    assert slot >= 0
    assert not known
    assert learned(policy, TABLE, space, cells) == slot
    assert release.look_up(policy, TABLE, space, cells) == (slot, True)


def test_what_is_learned_is_the_repair():
    policy, space, cells = place(GRAPH, [0, 1, 7])
    slot = learned(policy, TABLE, space, cells)
    repaired = repaired_of(policy, space, cells)
    assert space.patterns.counts[slot].tolist() == repaired.counts.tolist()
    joined = cells[space.patterns.edges[slot, : repaired.counts[2]]]
    assert joined.tolist() == repaired.added.tolist()
    assert space.patterns.label[slot, :3].tolist() == [0, 0, 0]


def test_surrogates_and_replays():
    """Who is not in the domain is taken for the nearest who is; a replay draws nothing."""
    graph = pf.blocks(pf.Grid(3, 4, cell_km=(1.0, 0.5)), 2)
    policy, space, cells = place(graph, [0, 1, 4, 5, 11])
    repaired = repaired_of(policy, space, cells)
    assert release.surrogate_of(policy, cells, space.domain.words, 4) == 4
    assert release.surrogate_of(policy, cells, space.domain.words, 2) == 1
    found = release.release_from(
        policy, trace_settings(), tables_of([]), repaired, even(cells), 4, True, HALF,
        space,
    )  # fmt: skip
    assert found.cell == 4
    assert set(cells[found.positions].tolist()) >= {0, 1, 4, 5}


def test_nothing():
    none = release.nothing_released()
    assert none.cell == -1
    assert len(none.positions) == len(none.key) == 0
