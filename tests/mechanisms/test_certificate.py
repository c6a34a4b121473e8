"""The certificate holds where it should, and fails where what is sampled was tampered with."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import pglp_fast as pf
from cases import (
    DOMAINS,
    MECHANISMS,
    SAMPLERS,
    SMALL,
    TOTAL,
    domain_of,
    large,
    random_tree,
    rounding_of,
    row_of,
    set_weights,
    some_cells,
)
from pglp_fast._kernels.geometry.polygons import Polygons
from pglp_fast.errors import InvalidParameter
from pglp_fast.mechanisms.exp_bound import exp_lower_bound

EPSILONS = (1e-6, 0.01, 0.1, 1, 5, 20, 100, 2000)


def assert_holds(m, kind):
    c = pf.certify(m)
    assert c.ok, str(c)
    assert c.reason == ""
    assert c.epsilon == m.epsilon
    assert c.worst <= m.epsilon
    assert c.proof == kind
    assert c.edges == m.graph.n_edges
    assert c.shapes == len(m.groups.representative)
    assert "holds" in str(c)
    if c.edge is not None:
        if m.calibration == "graph":
            a, b = m.locations.lattice[list(c.edge)]
            assert pf.sensitivity_hull(m.graph).contains([b - a])[0]
        else:
            assert m.graph.has_edges([c.edge])[0]
    return c


def kind_of(sampler):
    return {"table": "table", "geometric": "premises"}[sampler]


# It holds


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", SMALL)
def test_component_calibration(name, mechanism, sampler):
    for epsilon in EPSILONS:
        c = assert_holds(mechanism(SMALL[name], epsilon=epsilon, sampler=sampler), kind_of(sampler))
        assert c.edge is not None or c.worst == 0  # at 1e-6 a table's rows may all be their mean
        assert (c.output is None) == (sampler == "geometric" or c.edge is None)
        assert (c.rounding > 0) == (sampler == "geometric")
        if sampler == "geometric" and mechanism is pf.PPIM:
            assert c.worst == epsilon  # a vertex of K is an edge's difference


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize("name", DOMAINS)
def test_domains(name, calibration, mechanism, sampler):
    graph, domain = domain_of(name)
    for epsilon in EPSILONS:
        m = mechanism(
            graph, epsilon=epsilon, domain=domain, calibration=calibration, sampler=sampler
        )
        c = assert_holds(m, kind_of(sampler))
        assert (c.edge is None) == (m.graph.n_edges == 0 or c.worst == 0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 43.6, 43.69, 43.7, 700, 1e6])
def test_extreme_epsilons(epsilon, mechanism):
    """What is delivered is never more than what is promised, not even by the rounding of a
    logarithm."""
    assert_holds(
        mechanism(
            pf.blocks(pf.Grid(5, 5, cell_km=(0.3, 0.7)), 4), epsilon=epsilon, sampler="table"
        ),
        "table",
    )


def test_worst_is_the_matrix_worst():
    """The table's worst case is the exact matrix's, to what was mixed in."""
    from cases import log_ratio

    m = pf.PPIM(SMALL["tree"], epsilon=1, sampler="table")
    c = pf.certify(m)
    assert c.worst == pytest.approx(log_ratio(m, c.edge[0]), abs=1e-7)
    (_, w), (_, v) = m.table(c.edge[0]), m.table(c.edge[1])
    z = m.graph.component(c.edge[0]).tolist().index(c.output)
    assert c.worst == pytest.approx(abs(np.log(float(w[z]) / float(v[z]))), rel=1e-12)


def test_both_proofs():
    g = pf.Grid(20, 20)
    big = pf.complete(g, np.arange(150)).with_edges([(398, 399), (300, 321)])
    assert_holds(pf.PPIM(big, epsilon=1), "table+premises")
    assert_holds(pf.PLM(pf.neighbours8(g), epsilon=1), "table" if g.size <= 128 else "premises")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_to_prove(mechanism, sampler):
    g = pf.Grid(2, 3)
    for domain in (None, pf.Domain(g, [])):
        c = pf.certify(
            mechanism(pf.PolicyGraph.from_edges(g, []), epsilon=1, sampler=sampler, domain=domain)
        )
        assert c.ok
        assert c.edge is None
        assert c.output is None
        assert c.edges == 0
        assert c.worst <= 1


@large
@pytest.mark.parametrize("rows, cols, shapes", [(1000, 1000, 1), (1003, 998, 4)])
def test_translates_are_proved_once(rows, cols, shapes):
    g = pf.Grid(rows, cols)
    c = assert_holds(pf.PPIM(pf.blocks(g, 5), epsilon=1), "table")
    assert c.shapes == shapes
    assert c.edges == pf.blocks(g, 5).n_edges


def test_only_mechanisms():
    with pytest.raises(InvalidParameter, match=r"pf\.PPIM"):
        pf.certify(pf.Grid(2, 2))


# It fails: tables


def python_ints(w):
    return [int(v) for v in w]


def rows_with_one_tight_edge(m, s, r, z, factor):
    """Rows that are all the same but at output z: there s has e^eps * factor times what r has,
    all others are in between."""
    outputs = m.table(s)[0].tolist()
    k, tenth = len(outputs), TOTAL // 10_000
    at_z = {i: int(tenth / Decimal(m.epsilon / 2).exp()) for i in outputs}
    at_z[r] = int(tenth / Decimal(m.epsilon).exp())
    at_z[s] = int(Decimal(m.epsilon).exp() * at_z[r] * Decimal(factor))
    for i in outputs:
        w = [(TOTAL - at_z[i]) // (k - 1)] * k
        w[outputs.index(z)] = at_z[i]
        w[outputs.index(z) - 1] += TOTAL - sum(w)
        set_weights(m, i, w)
        assert python_ints(m.table(i)[1]) == w


@pytest.mark.parametrize("epsilon", [0.01, 1, 5])
@pytest.mark.parametrize(
    "name", ["block 3", "tree", "star", "two places", "clique and tail", "1 x N path"]
)
def test_a_weight_past_the_bound(name, epsilon):
    """Catches a proof that skips an edge or an output: one weight 0.1 % past e^eps is found and
    named, 0.1 % below is not."""
    m = pf.PPIM(SMALL[name], epsilon=epsilon, sampler="table")
    edges = m.graph.edges().tolist()
    for n, (s, r) in enumerate([*edges, *(e[::-1] for e in edges)]):
        outputs = m.graph.component(s)
        z = int(outputs[n % len(outputs)])
        rows_with_one_tight_edge(m, s, r, z, "0.999")
        assert pf.certify(m).ok
        rows_with_one_tight_edge(m, s, r, z, "1.001")
        c = pf.certify(m)
        assert not c.ok
        assert (c.edge, c.output) == ((s, r), z)
        assert c.worst == pytest.approx(epsilon + np.log(1.001), rel=1e-9)
        assert c.worst > epsilon
        assert "FAILS" in str(c) and c.verdict == "does not hold"
        assert "e^epsilon" in c.reason


@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
def test_the_bound_is_sharp(epsilon):
    """In integers: the last weight below e^eps passes (but for 2^-60 of it), the first above
    does not."""
    m = pf.PPIM(SMALL["two places"], epsilon=epsilon, sampler="table")
    small = 2**30 + 12345
    with localcontext() as context:
        context.prec = 60
        limit = int(Decimal(epsilon).exp() * small)
    for weight, ok in ((limit - (limit >> 60) - 1, True), (limit + 1, False)):
        set_weights(m, 0, [TOTAL - weight, weight])
        set_weights(m, 1, [TOTAL - small, small])
        assert pf.certify(m).ok == ok


def test_every_edge_and_output_is_walked():
    """A zero in one row of any one column breaks every edge at that place, in cliques and
    outside them."""
    m = pf.PPIM(SMALL["clique and tail"], epsilon=3, sampler="table")
    component = m.graph.component(6).tolist()
    for s in component:
        original = m.table(s)[1]
        for z in range(len(component)):
            w = python_ints(original)
            other = (z + 1) % len(w)
            w[other], w[z] = w[other] + w[z], 0
            set_weights(m, s, w)
            c = pf.certify(m)
            assert not c.ok
            assert c.worst == np.inf
            assert s in c.edge
            assert c.output == component[z]
        set_weights(m, s, original)
    assert pf.certify(m).ok


def test_a_fault_in_any_shape_is_found():
    """One shape of many is tampered with: the reported places are of its representative."""
    g = pf.Grid(7, 8)
    m = pf.PPIM(pf.blocks(g, 3), epsilon=1, sampler="table")
    for s in (0, 6, 48, 54):  # the four shapes of the cut-off blocks
        original = m.table(s)[1]
        w = [0] * (len(original) - 1) + [TOTAL]
        set_weights(m, s, w)
        c = pf.certify(m)
        assert not c.ok
        assert s in c.edge
        set_weights(m, s, original)
    assert pf.certify(m).ok


@pytest.mark.parametrize("name", ["block 3", "two places", "pair"])
def test_a_table_that_releases_elsewhere(name):
    """Columns past the last output must be empty."""
    m = pf.PPIM(SMALL[name], epsilon=1, sampler="table")
    s = int(np.flatnonzero(m.graph.degrees())[0])
    row, bits = row_of(m, s)
    k = len(m.table(s)[0])
    if k < 1 << bits:
        m.tables.arrays.cut[row][k] = 1
        c = pf.certify(m)
        assert not c.ok
        assert "outside its output set" in c.reason


def test_a_single_location_that_releases_elsewhere():
    """A location without edges has one output: the other column of its row must be empty, and a
    fault there is reported."""
    m = pf.PPIM(pf.PolicyGraph.from_edges(pf.Grid(3, 3), []), epsilon=1, sampler="table")
    m.tables.ensure()
    m.tables.arrays.cut[:], m.tables.arrays.alias[:] = 0, 1
    c = pf.certify(m)
    assert not c.ok
    assert "outside its output set" in c.reason


# It fails: premises


def with_polygons(change):
    class Tampered(pf.PPIM):
        def noise_polygons(self, hulls):
            return Polygons(*change(*super().noise_polygons(hulls)))

    return Tampered


@pytest.mark.parametrize("calibration", ["component", "graph"])
@pytest.mark.parametrize(
    "factor, ok", [(0.999, False), (1 - 2**-50, False), (1.0, True), (1.001, True)]
)
def test_a_body_that_is_too_small(factor, ok, calibration):
    """Catches gauges that are compared with a tolerance."""
    Tampered = with_polygons(lambda body, starts: (body * factor, starts))
    for name in ("tree", "block 3", "oblique path", "pair"):
        c = pf.certify(
            Tampered(SMALL[name], epsilon=1, sampler="geometric", calibration=calibration)
        )
        assert c.ok == ok
        assert c.worst == pytest.approx(1 / factor, rel=1e-15)
        assert (c.reason == "") == ok
        assert c.edge is not None


@pytest.mark.parametrize(
    "body",
    [
        [(-2, 0), (2, 0)],
        [(0, -2), (0, 2)],
        [(-2, -2), (2, 2)],
        [(0, 0)],
        [(-2, -2), (2, -2), (0, 0), (2, 2), (-2, 2)],
        [(-2, -2), (2, -2), (2, 2)],
        [(-2, -2), (-2, 2), (2, 2), (1, -3)],
    ],
    ids=["flat", "upright", "diagonal", "point", "dented", "triangle", "missing corner"],
)
def test_a_body_of_the_wrong_shape(body):
    """K of a 3 x 3 block is the square of side 4: these do not hold all differences, or do not
    surround the origin."""
    Tampered = with_polygons(lambda *_: (np.array(body, float), np.array([0, len(body)])))
    assert not pf.certify(Tampered(SMALL["block 3"], epsilon=1, sampler="geometric")).ok


@pytest.mark.parametrize(
    "body",
    [[(0, 0)], [(-1, 0), (1, 0)], [(-1, 1), (1, -1)], [(-0.5, -0.5), (1, 1)]],
    ids=["point", "turned", "mirrored", "lopsided"],
)
def test_a_segment_in_the_wrong_direction(body):
    """An edge (1, 1): noise along another line tells its ends apart every time; too little of it
    one way, half of the time."""
    Tampered = with_polygons(lambda *_: (np.array(body, float), np.array([0, len(body)])))
    places = pf.Points([(0, 0), (0.001, 0.001)])
    assert not pf.certify(Tampered(pf.complete(places), epsilon=1, sampler="geometric")).ok


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("cliques", [True, False])
def test_a_hull_that_misses_an_edge(mechanism, cliques):
    """The exact hull itself is checked against every edge: here one vertex pair was pulled in."""
    graph = SMALL["clique"] if cliques else SMALL["tree"]

    m = mechanism(graph, epsilon=1, sampler="geometric")
    vertices, starts = m.groups.hulls
    shape = int(np.argmax(np.diff(starts)))
    for k in (starts[shape], starts[shape] + (starts[shape + 1] - starts[shape]) // 2):
        vertices[k] -= np.sign(vertices[k])
    c = pf.certify(m)
    assert not c.ok
    assert "outside the noise body" in c.reason


@pytest.mark.parametrize("cell", [0, 4, 7, 20])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_edge_between_two_groups(sampler, cell):
    """What is named is the edge that was cut, not the one of the largest ratio."""
    m = pf.PPIM(pf.blocks(pf.Grid(6, 6), 3), epsilon=1, sampler=sampler)
    m.groups.address[cell, 0] = 3
    c = pf.certify(m)
    assert not c.ok
    assert cell in c.edge
    assert "share" in c.reason


def test_a_fault_is_not_hidden_by_a_larger_ratio_elsewhere():
    """A tampered table beside a large component that is sound, and whose worst case is exactly
    epsilon."""
    g = pf.Grid(20, 20)
    m = pf.PPIM(pf.complete(g, np.arange(150)).with_edges([(300, 321), (321, 340)]), epsilon=1)
    row, _ = row_of(m, 300)
    m.tables.ensure()
    m.tables.arrays.cut[row][3] = 1
    c = pf.certify(m)
    assert not c.ok
    assert c.proof == "table+premises"
    assert "outside its output set" in c.reason
    assert c.edge is None or set(c.edge) <= {300, 321, 340}


# The numbers it rests on


@pytest.mark.parametrize(
    "epsilon",
    [5e-324, 1e-60, 1e-20, 1e-12, 1e-6, 0.01, 0.5, np.log(2), 1, 5, 20, 43.6, 43.66, 43.69],
)
def test_exp_lower_bound(epsilon):
    numerator, shift = exp_lower_bound(float(epsilon))
    assert 0 <= shift <= 63
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(float(epsilon)).exp()
        bound = Decimal(int(numerator)) / 2**shift
        assert exact * (1 - Decimal(2) ** -60) <= bound <= exact
    assert Fraction(int(numerator), 2**shift) >= 1  # equal weights always pass


@pytest.mark.parametrize("epsilon", [43.7, 44, 700, 1e6, 1e300])
def test_exp_lower_bound_beyond_all_weights(epsilon):
    """Any positive weight will do: e^eps is above 2**63, and above it only."""
    assert exp_lower_bound(epsilon) == (0, -1)
    assert np.exp(43.7) > 2.0**63


@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
def test_rounding_bound_grows_with_the_map(epsilon):
    maps = [pf.neighbours8(pf.Grid(n, n)) for n in (3, 20, 60)]
    sizes = [rounding_of(pf.PPIM(graph, epsilon=epsilon, sampler="geometric"), 0) for graph in maps]
    assert 0 < sizes[0] < sizes[1] < sizes[2] < 1e-6
    g = pf.Grid(12, 12)
    holes = pf.PPIM(random_tree(g, some_cells(g, 70, 0), 0), epsilon=epsilon, sampler="geometric")
    assert rounding_of(holes, int(holes.groups.sizes.argmax())) < 1e-5


@pytest.mark.parametrize("mechanism", [pf.PPIM, pf.PLM, pf.PlanarLaplace])
@pytest.mark.parametrize("epsilon", [0.5, 5.0, 10.0, 20.0])
def test_graph_calibration_proves_every_pair_in_the_hull(mechanism, epsilon):
    """Location 8 has lost its neighbour but is not isolated: 6 lies in f(8) + K and hides it,
    though no edge says so. Rounding that looks at edges alone gave 6 a floor of 2^-30 where 8 kept
    its thin tail: a ratio of e^16 at epsilon = 10, certified."""
    g = pf.Grid(1, 9)
    G = pf.PolicyGraph.from_edges(g, [(0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (8, 7)])
    C = pf.Domain(g, [0, 1, 2, 3, 4, 5, 6, 8])
    assert pf.isolated(G, C, calibration="graph").size == 0
    m = mechanism(G, epsilon=epsilon, domain=C, calibration="graph", sampler="table")
    assert pf.certify(m).ok
    w8, w6 = (m.table(s)[1].astype(object) for s in (8, 6))
    with localcontext() as context:
        context.prec = 60
        bound = Decimal(epsilon).exp()
        assert all(int(a) <= bound * int(b) and int(b) <= bound * int(a) for a, b in zip(w8, w6))


def test_a_broken_pair_in_the_hull_fails():
    """No edge between 8 and 6, and yet the certificate must see it."""
    g = pf.Grid(1, 9)
    G = pf.PolicyGraph.from_edges(g, [(0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (8, 7)])
    m = pf.PPIM(
        G,
        epsilon=1.0,
        domain=pf.Domain(g, [0, 1, 2, 3, 4, 5, 6, 8]),
        calibration="graph",
        sampler="table",
    )
    assert pf.certify(m).ok
    w = m.table(8)[1]
    half = w[-1] // np.uint64(2)
    w[0] += half  # far too likely to be released as location 0
    w[-1] -= half
    set_weights(m, 8, w)
    assert not pf.certify(m).ok
