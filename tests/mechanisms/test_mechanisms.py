"""Mechanisms from the outside: what they take and give, degenerate policies, lazily built
tables."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pglp_fast as pf
from cases import (
    DOMAINS,
    MECHANISMS,
    SAMPLERS,
    SMALL,
    assert_private,
    domain_of,
    expected,
    first_cells,
    large,
    path,
)
from pglp_fast.errors import (
    InvalidDomain,
    InvalidLocation,
    InvalidParameter,
    InvalidPolicy,
    PGLPError,
    TooLarge,
)
from pglp_fast.mechanisms import table_sampler

both = pytest.mark.parametrize("mechanism", MECHANISMS)
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS)


# Shapes and types


@both
@each_sampler
def test_one_many_none(mechanism, sampler):
    m = mechanism(SMALL["block 3"], epsilon=1, sampler=sampler)
    one, many, none = m.release(4, rng=1), m.release([4, 0, 8], rng=1), m.release([], rng=1)
    assert np.ndim(one) == 0
    assert one.dtype == many.dtype == none.dtype == np.int32
    assert one == many[0]
    assert many.shape == (3,)
    assert none.shape == (0,)


@each_sampler
@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">i4"],
)
def test_any_integer_dtype(dtype, sampler):
    m = pf.PPIM(SMALL["block 4"], epsilon=1, sampler=sampler)
    cells = np.arange(16)
    assert m.release(cells.astype(dtype), rng=3).tolist() == m.release(cells, rng=3).tolist()
    assert (
        m.release(cells[::-2].astype(dtype), rng=3).tolist()
        == m.release(cells[::-2].copy(), rng=3).tolist()
    )


def test_inputs_are_left_alone():
    m = pf.PPIM(SMALL["block 3"], epsilon=1)
    cells = np.arange(9)
    m.release(cells, rng=1)
    assert cells.tolist() == list(range(9))
    m.matrix(0)[0][:] = -1  # what is given out is a copy
    m.table(0)[1][:] = 0
    assert m.matrix(0)[0].tolist() == list(range(9))
    assert sum(int(w) for w in m.table(0)[1]) == 2**63


@each_sampler
def test_batches_and_threads_do_not_matter(sampler):
    """The draw for (key, user, t) is a pure function of the three."""
    g = pf.Grid(20, 20)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=1, sampler=sampler)
    cells = np.random.default_rng(0).integers(0, 400, 600)
    users = np.random.default_rng(1).permutation(5000)[:600]
    whole = m.release(cells, users=users, t=7, rng=5)
    parts = [
        m.release(cells[a : a + 133], users=users[a : a + 133], t=7, rng=5)
        for a in range(0, 600, 133)
    ]
    assert whole.tolist() == np.concatenate(parts).tolist()
    order = np.random.default_rng(2).permutation(600)
    assert (
        whole[order].tolist()
        == m.release(cells[order], users=users[order], t=np.full(600, 7), rng=5).tolist()
    )
    assert whole.tolist() != m.release(cells, users=users, t=8, rng=5).tolist()


@large
@each_sampler
def test_number_of_threads_does_not_matter(sampler):
    m = pf.PPIM(pf.blocks(pf.Grid(20, 20), 5), epsilon=1, sampler=sampler)
    cells = np.random.default_rng(0).integers(0, 400, 300_000)
    before = pf.get_num_threads()
    results = []
    try:
        for n in (1, 2, 5):
            pf.set_num_threads(n)
            results.append(m.release(cells, rng=5))
    finally:
        pf.set_num_threads(before)
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


@each_sampler
def test_without_a_seed_every_call_is_fresh(sampler):
    m = pf.PPIM(SMALL["block 5"], epsilon=0.1, sampler=sampler)
    cells = np.full(200, 12)
    assert m.release(cells).tolist() != m.release(cells).tolist()


# Degenerate policies


@both
@each_sampler
@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_no_edges_at_all(mechanism, sampler, calibration):
    """No edge, no noise: every location may be disclosed."""
    g = pf.Grid(4, 5)
    m = mechanism(
        pf.PolicyGraph.from_edges(g, []), epsilon=1, sampler=sampler, calibration=calibration
    )
    assert m.release(np.arange(20), rng=1).tolist() == list(range(20))
    outputs, P = m.matrix(7)
    assert P.tolist() == np.eye(len(outputs)).tolist()
    assert pf.certify(m).ok


@both
@each_sampler
def test_a_lone_location_is_released_as_it_is(mechanism, sampler):
    g = pf.Grid(30, 30)
    graph = pf.complete(g, np.arange(200)).with_edges([(500, 501), (510, 570)])
    if sampler == "table":
        graph = pf.blocks(g, 4) & graph
    lone = np.flatnonzero(graph.degrees() == 0)
    m = mechanism(graph, epsilon=0.5, sampler=sampler)
    assert (m.release(np.tile(lone, 5), rng=2) == np.tile(lone, 5)).all()
    outputs, p = m.pmf(lone[-1])
    assert (outputs.tolist(), p.tolist()) == ([lone[-1]], [1.0])
    joined = np.flatnonzero(graph.degrees())
    released = m.release(joined, rng=2)
    assert (graph.components[released] == graph.components[joined]).all()
    assert (released != joined).any()


@both
@each_sampler
def test_two_locations(mechanism, sampler):
    """P-PIM is a Laplace number against 1/2; both ends are each other's mirror image."""
    m = mechanism(pf.PolicyGraph.from_edges(pf.Grid(3, 3), [(2, 6)]), epsilon=2, sampler=sampler)
    outputs, P = m.matrix(2)
    assert outputs.tolist() == [2, 6]
    assert P[0, 1] == P[1, 0]
    if mechanism is pf.PPIM:
        assert P[0, 1] == pytest.approx(np.exp(-1) / 2, rel=1e-14)
    released = m.release(np.full(4000, 2), rng=1)
    assert set(released.tolist()) == {2, 6}
    assert abs((released == 6).mean() - P[0, 1]) < 5 * np.sqrt(0.25 / 4000)


@both
@each_sampler
@pytest.mark.parametrize("rows, cols", [(1, 9), (9, 1), (1, 1), (1, 2)])
def test_maps_of_one_row(mechanism, sampler, rows, cols):
    g = pf.Grid(rows, cols, cell_km=(0.2, 0.7))
    for graph in (pf.neighbours8(g), pf.blocks(g, 4), pf.complete(g)):
        m = mechanism(graph, epsilon=1, sampler=sampler)
        assert_private(m, 0)
        released = m.release(np.arange(g.size), rng=1)
        assert (graph.components[released] == graph.components).all()


@both
@each_sampler
@pytest.mark.parametrize("calibration", ["component", "graph"])
def test_domains_of_no_and_one_location(mechanism, sampler, calibration):
    g = pf.Grid(3, 3)
    options = {"epsilon": 1, "sampler": sampler, "calibration": calibration}
    empty = mechanism(pf.blocks(g, 3), domain=pf.Domain(g, []), **options)
    assert empty.release([]).shape == (0,)
    with pytest.raises(InvalidDomain, match="domain"):
        empty.release([0])
    with pytest.raises(InvalidDomain, match="domain"):
        empty.matrix(0)
    single = mechanism(pf.blocks(g, 3), domain=pf.Domain(g, [4]), **options)
    assert single.release([4, 4], rng=1).tolist() == [4, 4]
    assert single.matrix(4)[1].tolist() == [[1.0]]


@both
@each_sampler
@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("name", DOMAINS)
def test_releases_stay_in_the_output_set(name, calibration, mechanism, sampler):
    graph, domain = domain_of(name)
    m = mechanism(graph, epsilon=0.2, domain=domain, calibration=calibration, sampler=sampler)
    cells = np.tile(domain.cells(), 60)
    released = m.release(cells, rng=1)
    assert domain.contains(released).all()
    if calibration == "component":
        assert (m.graph.components[released] == m.graph.components[cells]).all()


@both
@each_sampler
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 100, 2000, 1e6])
@pytest.mark.parametrize("name", ["block 3", "tree", "oblique path", "hexagon"])
def test_large_and_small_epsilon(name, epsilon, mechanism, sampler):
    m = mechanism(SMALL[name], epsilon=epsilon, sampler=sampler)
    s = np.flatnonzero(m.graph.degrees())
    assert_private(m, s[0])
    outputs, L = m.matrix(s[0], log=True)
    assert not np.isnan(L).any()
    released = m.release(np.tile(s, 30), rng=1)
    assert np.isin(released, outputs).all()
    if epsilon >= 2000:
        assert (released == np.tile(s, 30)).all()


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-160, 1e-60, 1e200, 1.7e308])
def test_absurd_epsilons_are_refused_or_right(epsilon):
    """Where floats overflow: no release from another component, no infinite probability, no
    false certificate."""
    for mechanism, sampler, name in product(MECHANISMS, SAMPLERS, ["tree", "block 3"]):
        try:
            m = mechanism(SMALL[name], epsilon=epsilon, sampler=sampler)
        except InvalidParameter:
            continue
        s = np.flatnonzero(m.graph.degrees())
        outputs, P = m.matrix(s[0])
        assert np.isfinite(P).all()
        assert abs(P.sum(axis=1) - 1).max() < 1e-12
        assert np.isin(m.release(np.tile(s, 30), rng=1), outputs).all()
        assert pf.certify(m).ok


# Refusals


def test_errors_say_what_and_where():
    g = pf.Grid(4, 4)
    G = pf.blocks(g, 2)
    C = pf.Domain(g, [0, 1, 4, 5, 10])
    m = pf.PPIM(G, epsilon=1, domain=C)
    with pytest.raises(InvalidDomain, match=r"cells\[2\] = 2 is outside the domain"):
        m.release([0, 1, 2])
    with pytest.raises(InvalidDomain, match="location 3 is outside the domain of 5 locations"):
        m.pmf(3)
    with pytest.raises(InvalidLocation, match=r"cells\[1\] = 16"):
        m.release([0, 16])
    with pytest.raises(InvalidLocation, match=r"cells\[0\] = -2"):
        m.release([-2])
    for wrong in ([0.0, 1.0], [True], ["a"]):
        with pytest.raises(InvalidLocation, match="integers"):
            m.release(wrong)
    with pytest.raises(InvalidLocation, match="1-d"):
        m.release([[0, 1]])
    with pytest.raises(InvalidPolicy, match="PolicyGraph"):
        pf.PPIM(g, epsilon=1)
    with pytest.raises(InvalidDomain, match="Domain"):
        pf.PPIM(G, epsilon=1, domain=[1, 2])
    for epsilon in (0, -1, np.nan, np.inf, "one", None):
        with pytest.raises(InvalidParameter, match="epsilon"):
            pf.PPIM(G, epsilon=epsilon)
    with pytest.raises(InvalidParameter, match="calibration"):
        pf.PPIM(G, epsilon=1, calibration="clique")
    with pytest.raises(InvalidParameter, match="sampler"):
        pf.PPIM(G, epsilon=1, sampler="alias")
    with pytest.raises(InvalidParameter, match="geometric sampler"):
        pf.PPIM(G, epsilon=1, sampler="geometric").table(0)
    with pytest.raises(InvalidParameter, match="twice"):
        m.release([0, 1], users=[3, 3])
    assert issubclass(InvalidDomain, PGLPError)
    assert issubclass(InvalidDomain, ValueError)


@both
def test_too_large_for_a_matrix_or_a_table(mechanism):
    g = pf.Grid(46, 45)
    assert g.size > table_sampler.MAX_TABLE
    m = mechanism(pf.neighbours8(g), epsilon=1)
    with pytest.raises(TooLarge, match="2070 locations"):
        m.matrix(0)
    with pytest.raises(TooLarge, match="2048"):
        mechanism(pf.neighbours8(g), epsilon=1, sampler="table")
    with pytest.raises(TooLarge, match="5000"):
        mechanism(pf.complete(pf.Grid(150, 150)), epsilon=1).pmf(0)


@large
def test_a_single_row_of_a_large_component():
    m = pf.PPIM(pf.neighbours8(pf.Grid(46, 45)), epsilon=1)
    outputs, p = m.pmf(1000)
    assert len(outputs) == 2070
    assert abs(p.sum() - 1) < 1e-12
    assert p.argmax() == 1000


# Many shapes


def test_every_component_has_its_own_matrix():
    """Translates share a shape; what looks alike but has other edges, another order or another
    place in a clique does not."""
    g = pf.Grid(6, 8, cell_km=(1, 0.5))
    paths = [
        (0, 1),
        (1, 9),
        (16, 24),
        (24, 25),
        (19, 20),
        (20, 28),
        (22, 30),
        (30, 31),
        (32, 40),
        (35, 43),
    ]
    triangle = [(3, 4), (4, 12), (3, 12)]
    for graph in (
        pf.PolicyGraph.from_edges(g, paths + triangle),
        pf.complete(g, [0, 1, 9]).with_edges(paths[4:6] + triangle[:2]),
    ):
        for mechanism in MECHANISMS:
            m = mechanism(graph, epsilon=1)
            P, _ = expected(m)
            for s in first_cells(m):
                outputs, ours = m.matrix(s)
                np.testing.assert_allclose(ours, P[np.ix_(outputs, outputs)], rtol=0, atol=1e-9)


def crowd(rows=24, cols=24, kinds=3, block=4):
    g = pf.Grid(rows, cols)
    labels = np.random.default_rng(0).integers(-1, kinds, g.size)
    return g, pf.categories(g, labels, block)


@both
def test_tables_are_built_when_needed_and_are_the_same(monkeypatch, mechanism):
    """Hundreds of distinct shapes: asking for few of them builds few, in any order, and changes
    nothing."""
    monkeypatch.setattr(table_sampler, "EAGER_ENTRIES", 0)
    g, graph = crowd()
    lazy, eager = (mechanism(graph, epsilon=1, sampler="table") for _ in range(2))
    eager.tables.ensure()
    assert not eager.tables.missing.any()
    cells = np.random.default_rng(1).permutation(g.size)
    few = lazy.release(cells[:3], rng=4)
    assert few.tolist() == eager.release(cells[:3], rng=4).tolist()
    assert lazy.tables.missing.sum() >= len(lazy.tables.missing) - 3
    for start in range(0, g.size, 100):
        part = cells[start : start + 100]
        assert lazy.release(part, rng=start).tolist() == eager.release(part, rng=start).tolist()
    assert not lazy.tables.missing.any()
    used = slice(0, len(eager.tables.arrays.cut))
    assert (lazy.tables.arrays.cut[used] == eager.tables.arrays.cut[used]).all()
    assert (lazy.tables.arrays.alias[used] == eager.tables.arrays.alias[used]).all()


def test_tables_built_by_many_threads_at_once(monkeypatch):
    monkeypatch.setattr(table_sampler, "EAGER_ENTRIES", 0)
    g, graph = crowd(12, 12)
    cells = np.arange(g.size)
    expected_cells = pf.PPIM(graph, epsilon=1, sampler="table").release(cells, rng=1).tolist()
    m = pf.PPIM(graph, epsilon=1, sampler="table")
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(m.release, cells[k::8], users=cells[k::8], rng=1) for k in range(8)]
        for k, job in enumerate(jobs):
            assert job.result().tolist() == expected_cells[k::8]


@both
def test_auto_mixes_both_samplers(mechanism):
    """Small components from tables, a large one by geometry: each as its sampler alone would."""
    g = pf.Grid(20, 20)
    graph = pf.complete(g, np.arange(150)).with_edges([(398, 399), (300, 321), (321, 340)])
    auto, geometric = mechanism(graph, epsilon=1), mechanism(graph, epsilon=1, sampler="geometric")
    sizes = auto.groups.sizes
    assert auto.tabled.tolist() == (sizes <= table_sampler.AUTO_TABLE).tolist()
    cells = np.arange(400)
    released = auto.release(cells, rng=1)
    assert released[:150].tolist() == geometric.release(cells, rng=1)[:150].tolist()
    small = mechanism(
        pf.PolicyGraph.from_edges(g, [(398, 399), (300, 321), (321, 340)]),
        epsilon=1,
        sampler="table",
    )
    assert released[150:].tolist() == small.release(cells, rng=1)[150:].tolist()


def test_auto_keeps_tables_within_memory(monkeypatch):
    """Too many distinct shapes for all to have a table: the larger ones are sampled by geometry,
    the certificate covers both."""
    monkeypatch.setattr(table_sampler, "AUTO_ENTRIES", 1000)
    _, graph = crowd()
    m = pf.PPIM(graph, epsilon=1)
    assert 0 < m.tabled.sum() < m.tabled.size
    assert len(m.tables.arrays.cut) <= 1000
    c = pf.certify(m)
    assert c.ok
    assert c.proof == "table+premises"


@given(
    st.integers(0, 2**32),
    st.sampled_from(MECHANISMS),
    st.sampled_from(SAMPLERS),
    st.sampled_from(["component", "graph"]),
)
def test_any_policy_any_domain(seed, mechanism, sampler, calibration):
    """Releases lie in the output set, the matrix is a distribution, the certificate holds."""
    rng = np.random.default_rng(seed)
    g = pf.Grid(
        int(rng.integers(1, 6)),
        int(rng.integers(1, 6)),
        cell_km=(1.0, float(rng.choice([1.0, 0.3]))),
    )
    edges = rng.integers(0, g.size, (int(rng.integers(0, 12)), 2))
    graph = pf.PolicyGraph.from_edges(g, edges[edges[:, 0] != edges[:, 1]])
    domain = pf.Domain(g, np.flatnonzero(rng.random(g.size) < 0.8))
    m = mechanism(
        graph,
        epsilon=float(rng.choice([0.05, 1, 8])),
        domain=domain,
        calibration=calibration,
        sampler=sampler,
    )
    cells = domain.cells()
    released = m.release(cells, rng=seed)
    for s, z in zip(cells, released, strict=True):
        assert z in m.pmf(s)[0]
    for s in first_cells(m):
        assert_private(m, s)
    assert pf.certify(m).ok


@both
def test_repr_says_what_it_is(mechanism):
    text = repr(mechanism(path(pf.Grid(1, 4), np.arange(4)), epsilon=0.5))
    assert mechanism.__name__ in text
    assert "0.5" in text
