"""The maps, policies, domains and helpers that several test files share."""

import io
import math
import os
import stat
from fractions import Fraction
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import strategies as st

import naive
import naive_attacks
import pglp_fast as pf
from pglp_fast._kernels.attack import records as attack_records
from pglp_fast._kernels.base import chacha
from pglp_fast._kernels.exposure import domain_view
from pglp_fast._kernels.geometry import hull
from pglp_fast._kernels.noise import alias_rows, cones
from pglp_fast._kernels.noise.noise_polygon import HULL
from pglp_fast._kernels.trace import records as trace_records, table_cache as trace_tables
from pglp_fast._kernels.trace.choices import choose
from pglp_fast._util.validate import MAX_TIME, MAX_USER
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.mechanisms.rounding import noise_over, rounding_bound
from pglp_fast.policy.kernel_arrays import kernel_policy
from pglp_fast.traces.policies import PolicySet

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("PGLP_FAST_DATA") or ROOT / ".." / "shared" / "data")

large = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="large input")
real = pytest.mark.skipif(
    not DATA.is_dir(), reason="real data is not there: set PGLP_FAST_DATA to its folder"
)


MECHANISMS = (pf.PPIM, pf.PLM)


def points(lattice):
    return pf.Points(np.asarray(lattice) * 0.001)


def path(locations, cells):
    return pf.PolicyGraph.from_edges(locations, np.stack([cells[:-1], cells[1:]], axis=1))


def random_tree(locations, cells, seed):
    rng = np.random.default_rng(seed)
    cells = rng.permutation(cells)
    return pf.PolicyGraph.from_edges(
        locations, [(cells[rng.integers(i)], cells[i]) for i in range(1, len(cells))]
    )


def some_cells(locations, count, seed):
    return np.random.default_rng(seed).permutation(locations.size)[:count]


GRID = pf.Grid(9, 9, cell_km=(0.7, 0.3))

SQUARE = pf.Grid(5, 5)

HEXAGON = points(
    [(round(500 * math.cos(a)), round(500 * math.sin(a))) for a in np.arange(6) * math.pi / 3]
    + [(0, 0)]
)

CIRCLE = points(
    [(x + 9, y + 9) for x in range(-9, 10) for y in range(-9, 10) if x * x + y * y == 65]
)  # 16, one Voronoi corner

THIN = points([(3 * i + i % 2, 2 * i) for i in range(12)])

SMALL = {
    "block 3": pf.blocks(pf.Grid(3, 3), 3),
    "block 4": pf.blocks(pf.Grid(4, 4, cell_km=(0.3, 0.7)), 4),
    "block 5": pf.blocks(pf.Grid(5, 5, cell_km=0.27), 5),
    "cut-off blocks": pf.blocks(pf.Grid(5, 4), 3),
    "pair": pf.PolicyGraph.from_edges(GRID, [(3, 40)]),
    "two places": pf.complete(pf.Grid(1, 2)),
    "clique": pf.complete(GRID, some_cells(GRID, 14, 1)),
    "tree": random_tree(GRID, some_cells(GRID, 14, 2), 2),
    "star": pf.PolicyGraph.from_edges(SQUARE, [(12, i) for i in (0, 2, 4, 10, 14, 20, 23)]),
    "8 neighbours": pf.neighbours8(pf.Grid(4, 4, cell_km=(1, 0.4))),
    "collinear clique": pf.complete(GRID, [0, 20, 30, 80]),
    "oblique path": path(GRID, [0, 11, 22, 33, 44]),
    "1 x N path": path(pf.Grid(1, 9), np.arange(9)),
    "N x 1 8-neighbours": pf.neighbours8(pf.Grid(7, 1, cell_km=(0.2, 3))),
    "thin": path(THIN, np.arange(12)),
    "hexagon": pf.complete(HEXAGON),
    "circle": path(CIRCLE, np.arange(16)),
    "scattered points": random_tree(
        points([(0, 0), (17, 4), (900, 35), (901, 36), (450, 800), (5, 799)]), np.arange(6), 3
    ),
    "clique and tail": pf.complete(SQUARE, [0, 1, 5, 6]).with_edges([(6, 12), (12, 24), (17, 12)]),
}

# Graph calibration: (policy, domain). The domain has cells with and without neighbours.
DOMAINS = {
    "blocks": (pf.blocks(SQUARE, 3), some_cells(SQUARE, 13, 4)),
    "tree": (random_tree(GRID, some_cells(GRID, 30, 5), 5), some_cells(GRID, 16, 6)),
    "rank 1 in the plane": (
        pf.PolicyGraph.from_edges(SQUARE, [(0, 6), (13, 19)]),
        [0, 6, 8, 13, 16, 19, 21, 4],
    ),
    "rank 1, ties": (pf.PolicyGraph.from_edges(SQUARE, [(10, 12)]), [0, 20, 10, 12, 4, 24]),
    "rank 1, oblique ties": (pf.PolicyGraph.from_edges(SQUARE, [(0, 6)]), [0, 6, 9, 17, 21, 13]),
    "rank 0": (pf.blocks(SQUARE, 3), [0, 3, 20]),
    "points": (path(HEXAGON, [0, 1, 2]), [0, 1, 2, 4, 6]),
}


def domain_of(name):
    graph, cells = DOMAINS[name]
    return graph, pf.Domain(graph.locations, cells)


def log_ratio(m, s):
    """Largest |ln Pr(z|s) - ln Pr(z|s')| over the edges among the outputs of s, and the outputs;
    0 - 0 is no difference."""
    outputs, L = m.matrix(s, log=True)
    edges = m.graph.edges()
    edges = edges[np.isin(edges, outputs).all(axis=1)]
    a, b = (L[np.searchsorted(outputs, edges[:, k])] for k in (0, 1))
    with np.errstate(invalid="ignore"):
        difference = np.where(a == b, 0.0, np.abs(a - b))
    return difference.max(initial=0.0)


def assert_private(m, s):
    P = m.matrix(s)[1]
    assert not np.isnan(P).any()
    assert abs(P.sum(axis=1) - 1).max() < 1e-12
    assert (
        log_ratio(m, s) <= m.epsilon * (1 + 1e-9) + 1e-14
    )  # what a logarithm's own rounding costs


def expected(m, scale=None):
    """The oracle's dense (N, N) matrix for the mechanism's own policy, domain and calibration."""
    places = m.locations
    cells = range(places.size) if m.domain is None else m.domain.cells().tolist()
    edges = {tuple(e) for e in m.graph.edges().tolist()}
    name = "ppim" if isinstance(m, pf.PPIM) else "plm"
    return naive.emission(
        places.lattice, scale or places.scale, edges, set(cells), m.epsilon, name, m.calibration
    )


def first_cells(m):
    """One location of each group."""
    return m.groups.members[m.groups.starts[:-1]]


SAMPLERS = ("table", "geometric")

TOTAL = 2**63


def row_of(m, s):
    """(slice of the tables' cut and alias, bits) of the alias row of s."""
    shape, tables = m.groups.shape(s), m.tables.arrays
    bits = int(tables.bits[shape])
    start = int(tables.offset[shape]) + (int(m.groups.address[s, 1]) << bits)
    return slice(start, start + (1 << bits)), bits


def set_weights(m, s, new):
    """Replace the weights that releases from s (and all its translates) are drawn with."""
    row, bits = row_of(m, s)
    tables = m.tables.arrays
    alias_rows.build_alias(np.asarray(new, np.uint64), bits, tables.cut[row], tables.alias[row])


@numba.njit
def noises(words, body, cut, alias, at, bits, epsilon, out):
    for i in range(len(words)):
        out[i] = cones.noise(words[i], body, cut, alias, at, bits, epsilon)


def draw_words(seed, n):
    """The words of users 0..n-1 at t = 0, as the geometric sampler draws them."""
    key, zero = make_key(seed), np.zeros(1, np.int64)
    counters, scratch = (
        np.empty((4, chacha.LANES), np.uint32),
        np.empty((16, chacha.LANES), np.uint32),
    )
    words = np.empty((n, 4), np.uint64)
    for start in range(0, n, chacha.CHUNK):
        stop = min(n, start + chacha.CHUNK)
        chacha.draw(
            key, zero, zero, start, stop, 2, chacha.GEOMETRIC, counters, scratch, words[start:stop]
        )
    return words


def draw_noise(m, s, words):
    """Noise in lattice units for these words, by the sampler's own kernel."""
    shape = m.groups.shape(s)
    bits, starts, cut, alias = m.geometry.geometry.cones
    out = np.empty((len(words), 2))
    noises(
        words,
        np.ascontiguousarray(m.polygon(shape)),
        cut,
        alias,
        starts[shape],
        bits[shape],
        m.epsilon,
        out,
    )
    return out


@st.composite
def mixed(draw, top=9, span=6):
    """A policy of random cliques and random edges between scattered points, and the set of its
    edges made by hand."""
    near = st.integers(0, span)
    sites = draw(st.lists(st.tuples(near, near), min_size=1, max_size=top, unique=True))
    n = len(sites)
    labels = draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    cell = st.integers(0, n - 1)
    pairs = (
        draw(st.lists(st.tuples(cell, cell).filter(lambda p: p[0] != p[1]), max_size=8))
        if n > 1
        else []
    )
    graph = pf.categories(pf.Points(sites, resolution_km=1.0), labels, None).with_edges(pairs)
    cliques = {(i, j) for i in range(n) for j in range(i + 1, n) if labels[i] == labels[j] >= 0}
    return graph, cliques | {(min(p), max(p)) for p in pairs}


def cells_of(n):
    return st.lists(st.integers(0, n - 1), max_size=n)


SCALES = (
    (1.0, 1.0),
    (0.5, 0.25),
    (0.25, 1.0),
    (2.0, 1.0),
)  # dyadic, so that lengths in km tie exactly in both codes


def random_locations(rng, side):
    if rng.integers(2):
        rows, cols = rng.integers(1, side + 1, 2)
        if rng.integers(4) == 0:
            rows = 1  # thin maps make thin hulls
        return pf.Grid(int(rows), int(cols), cell_km=SCALES[rng.integers(len(SCALES))])
    span = (2, side, 10 * side)[rng.integers(3)]
    points = np.unique(rng.integers(0, span + 1, (int(rng.integers(1, side * side)), 2)), axis=0)
    rng.shuffle(points)
    if rng.integers(4) == 0:
        points[:, 1] = 2 * points[:, 0]  # collinear, oblique
        points = np.unique(points, axis=0)
    return pf.Points(points.astype(float), resolution_km=1.0)


def random_policy(rng, locations):
    n = locations.size
    kind = rng.integers(5)
    if kind == 0 and isinstance(locations, pf.Grid):
        return pf.blocks(locations, int(rng.integers(1, 5)))
    pairs = rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if kind <= 2:
        return pf.PolicyGraph.from_edges(locations, pairs)
    cliques = pf.categories(locations, rng.integers(-1, 4, n), None)
    return cliques if kind == 3 else cliques.with_edges(pairs[: len(pairs) // 2])


def random_domain(rng, locations):
    n = locations.size
    size = (
        (0, 1, 2, n)[rng.integers(4)]
        if rng.integers(4) == 0
        else rng.binomial(n, (0.15, 0.3, 0.5)[rng.integers(3)])
    )
    return pf.Domain(locations, rng.choice(n, min(size, n), replace=False))


FIELDS = ("released", "domain_size", "disconnected", "isolated", "added", "surrogate", "exposed")


def random_weights(locations, seed, edges=12):
    """{edge: weight} at random."""
    rng = np.random.default_rng(seed)
    values = [Fraction(1, 2), Fraction(2), Fraction(2, 3), Fraction(3, 4), Fraction(5), Fraction(1)]
    found = {}
    for i, j in rng.integers(0, locations.size, (edges, 2)).tolist():
        if i != j:
            found[min(i, j), max(i, j)] = values[rng.integers(len(values))]
    return found


def weighted_policy(locations, weights):
    return pf.PolicyGraph.from_edges(locations, list(weights), list(weights.values()))


def weights_of(graph):
    """{edge: weight} of a policy."""
    edges = map(tuple, graph.edges().tolist())
    return dict(zip(edges, (Fraction(a, b) for a, b in graph.edge_weights().tolist())))


def edge_set(graph):
    return {tuple(e) for e in graph.edges().tolist()}


def random_map(rng, k):
    if k % 3 == 2:
        sites = rng.permutation(49)[: rng.integers(6, 13)]
        return pf.Points(np.stack([sites % 7, sites // 7], axis=1) * 0.1, resolution_km=0.1)
    rows, cols = rng.integers(1, 5), rng.integers(2, 5)
    return pf.Grid(int(rows), int(cols), cell_km=[(1.0, 1.0), (0.5, 0.25)][rng.integers(2)])


def policy_of_kind(rng, locations, k):
    n = locations.size
    edges = rng.integers(0, n, (n, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    if k % 3 == 0 and isinstance(locations, pf.Grid):
        return pf.blocks(locations, int(rng.integers(2, 4)))
    if k % 3 == 1:
        return pf.PolicyGraph.from_edges(locations, edges)
    return pf.categories(locations, rng.integers(-1, 3, n), None).with_edges(edges[: n // 3])


def random_transitions(rng, n, moves=2.0):
    A = (rng.random((n, n)) < moves / n) * rng.random((n, n)) + np.eye(n) * (
        0.001 + 0.5 * rng.random((n, 1))
    )
    return A / A.sum(axis=1, keepdims=True)


def random_prior(rng, n):
    prior = rng.random(n) * (rng.random(n) < 0.6)
    prior[rng.integers(n)] += 1
    return prior / prior.sum()


def walk(rng, A, start, steps):
    cells = [int(start)]
    for _ in range(steps - 1):
        cells.append(int(rng.choice(len(A), p=A[cells[-1]])))
    return cells


def fields(result):
    return {name: getattr(result, name) for name in FIELDS}


PURPOSES = [chacha.TABLE, chacha.GEOMETRIC]


def block(key, state):
    """64 bytes of key stream for state words 12..15, in the second of three lanes."""
    counters, out = np.zeros((4, 3), np.uint32), np.zeros((16, 3), np.uint32)
    counters[:, 1] = state
    chacha.blocks(key, counters, out, 2)
    assert not out[:, 2].any(), "only the lanes asked for are written"
    return out[:, 1].astype("<u4").tobytes()


def words(key, user, t, log_width, purpose):
    """The documented layout: a user's share of block user * width // 8; t and the purpose in
    words 14 and 15."""
    width = 1 << log_width
    number = user * width // 8
    state = [number % 2**32, number >> 32, t % 2**32, (t >> 32) | (purpose << 24)]
    stream = np.frombuffer(block(key, state), "<u8")
    return stream[user * width % 8 :][:width].tolist()


users_of = st.one_of(
    st.integers(0, 40),
    st.sampled_from([2**32 - 3, 2**35 - 2, MAX_USER - 12]),
    st.integers(0, MAX_USER - 12),
)


times_of = st.one_of(
    st.integers(0, 5),
    st.sampled_from([2**32 - 1, 2**32, MAX_TIME - 1]),
    st.integers(0, MAX_TIME - 1),
)


def noise_polygon_of(m, s):
    """The vertices of the polygon that the geometric sampler draws noise from at s, in lattice
    units."""
    return m.polygon(m.groups.shape(s))


def random_views(seeds, side=4):
    """(graph, domain, kernel policy, linked view) of random policies and domains.

    The work space of a view is its own; cliques are linked, positions are written.
    """
    for seed in seeds:
        rng = np.random.default_rng(seed)
        locations = random_locations(rng, side)
        graph, domain = random_policy(rng, locations), random_domain(rng, locations)
        policy, n = kernel_policy(graph), locations.size
        head, position = np.full(max(graph.n_cliques, 1), -1, np.int32), np.full(n, -1, np.int32)
        rows = np.empty((4, n), np.int32)
        view = domain_view.make_view(domain.words.copy(), rows, head, position)
        domain_view.link_cliques(policy, view)
        position[view.cells] = np.arange(len(view.cells))
        yield graph, domain, policy, view


def oracle_of(graph, domain):
    """What the oracles of exposure take: sites, scale, edges, cells."""
    places = graph.locations
    sites, edges = [tuple(p) for p in places.lattice.tolist()], graph.edges().tolist()
    return sites, places.scale, {tuple(e) for e in edges}, set(domain)


class HiddenWalk:
    """A small hidden chain as the kernels of attacks take it, and all its paths.

    Five cells of a grid, two periods, four steps: a release, none, two releases; each rules some
    cells out.
    """

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, self.grid = 5, pf.Grid(1, 5, cell_km=0.5)
        A = (rng.random((2, n, n)) < 0.6) * rng.random((2, n, n)) + 0.2 * np.eye(n)
        A /= A.sum(axis=2, keepdims=True)
        self.periods, self.steps, self.size = np.array([0, 1, 0, 1]), 4, n
        prior = rng.dirichlet(np.ones(n))
        rows = [
            None if t == 1 else {int(s): float(np.log(rng.random())) for s in range(n) if s != t}
            for t in range(4)
        ]
        self.paths = naive_attacks.Paths(prior, [A[k] for k in self.periods], rows)
        whole = np.arange(n, dtype=np.int32)
        self.moves = attack_records.Moves(*self._moves(A))
        self.turned = attack_records.Moves(*self._moves(A.transpose(0, 2, 1)))
        lengths = [0 if row is None else len(row) for row in rows]
        cells = np.array([s for row in rows if row for s in sorted(row)], np.int32)
        logs = np.array([row[s] for row in rows if row for s in sorted(row)])
        self.seen = attack_records.Observations(
            np.array([1, 0, 1]), np.array([0, 4]), np.arange(4), np.cumsum([0, *lengths]), cells,
            logs, np.zeros(1, np.int64), np.array([0, n]), whole, np.log(prior),
        )  # fmt: skip
        self.lattice = self.grid.lattice

    def workspace(self):
        return attack_records.make_workspace(self.size, *self.grid.scale, self.grid.cols)

    @staticmethod
    def _moves(A):
        indptr, indices, data = [], [], []
        for matrix in A:
            ends = np.cumsum([0, *(matrix > 0).sum(axis=1)]) + len(data)
            indptr.append(ends)
            indices += np.nonzero(matrix)[1].tolist()
            data += matrix[matrix > 0].tolist()
        data = np.array(data)
        return np.array(indptr), np.array(indices, np.int32), data, np.log(data)


def attack_moves(*matrices):
    """Dense matrices, one for each period, as the kernels of attacks take them; and transposed."""
    A = np.array(matrices)
    return tuple(attack_records.Moves(*HiddenWalk._moves(B)) for B in (A, A.transpose(0, 2, 1)))


def ring(n, stay):
    """Stay, or go one on."""
    return stay * np.eye(n) + (1 - stay) * np.roll(np.eye(n), 1, axis=1)


def moves_of(matrices, cycle=(0,)):
    """Dense matrices, one for each period, as the kernels of traces take them."""
    return trace_records.Moves(*HiddenWalk._moves(np.asarray(matrices))[:3], np.array(cycle))


def tables_of(entries, losses=()):
    """Tables for (key, probabilities) as kernels draw from them; losses: one matrix for each."""
    keys = [np.asarray(key, np.int64) for key, _ in entries]
    starts, slots = np.cumsum([0, *map(len, keys)]), np.full(16, -1, np.int64)
    flat = np.concatenate([np.empty(0, np.int64), *keys])
    trace_tables.enter(slots, starts, flat, 0, len(keys))
    at = np.cumsum([0, *(P.size for _, P in entries)])
    whole = [np.cumsum((P * 2.0**63).astype(np.uint64), axis=1) for _, P in entries]
    chances = np.concatenate([np.empty(0), *(P.T.ravel() for _, P in entries)])
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    flat_losses = np.concatenate([np.zeros(0 if len(losses) else at[-1]), *map(np.ravel, losses)])
    cumulative = np.concatenate([np.empty(0, np.uint64), *(rows.ravel() for rows in whole)])
    return trace_tables.Tables(1, slots, starts, flat, at, cumulative, chances, logs, flat_losses)


def trace_settings(**options):
    """Settings of a trace by noise alone, unless told otherwise."""
    usual = {
        "epsilon": 1.3, "polygon": HULL, "calibration": domain_view.COMPONENT, "strategy": 0,
        "delta": 0.0, "exact": True, "tables": 0, "with_hull": True, "anchored": False,
        "remap": False,
    }  # fmt: skip
    usual |= options
    bits = int(np.float64(usual["epsilon"]).view(np.int64))
    return trace_records.Settings(**({"bits": bits, "choice": 0} | usual))


def trace_requests(key, start, following, who, steps, cells, replay, keep, epsilon=1.3):
    """Requests of events under one policy with one epsilon."""
    return trace_records.Requests(
        key, start, following, np.empty(0, np.int64), who, steps, cells,
        np.zeros(len(cells), np.int32), np.empty(0, np.int32), np.array([epsilon]), replay, keep,
    )  # fmt: skip


def chosen_of(graphs, settings, number=0):
    """A choice of policy and epsilon at hand."""
    stacked = PolicySet(tuple(graphs)).stacked()
    return choose(stacked, settings, np.array([settings.epsilon]), np.int64(number))


LATTICE_LIMIT = 2**29


def near_straight_sets(rng, count):
    """Three to seven lattice points along a line: with jitter below one unit, of some units, or in
    equal steps that are off by one."""
    while count:
        k, span = int(rng.integers(3, 8)), 2.0 ** rng.uniform(4, 28.9)
        angle = rng.uniform(0, 2 * np.pi)
        along = np.array([np.cos(angle), np.sin(angle)])
        if rng.random() < 1 / 3:
            points = np.outer(np.arange(k), np.rint(along * span / k)) + rng.integers(-1, 2, (k, 2))
        else:
            jitter = 0.5 if rng.random() < 0.5 else 2.0 ** rng.uniform(0, 8)
            points = np.outer(rng.random(k) * span, along) + rng.normal(size=(k, 2)) * jitter
        sites = np.unique(np.rint(points - points.min(axis=0)).astype(np.int64), axis=0)
        if len(sites) >= 3 and sites.max() <= LATTICE_LIMIT:
            count -= 1
            yield np.ascontiguousarray(rng.permutation(sites) - sites[0])


def rounding_of(mechanism, shape):
    """The bound on what float64 adds to the geometric sampler of a shape."""
    sites = mechanism.locations.lattice[mechanism.groups.of_shape(shape)]
    noise = noise_over(mechanism.polygon(shape), sites, isinstance(mechanism.locations, pf.Grid))
    return rounding_bound(noise, mechanism.epsilon, mechanism.locations.stretch)


# -- files


def mode(path):
    """Who may read and write a file."""
    return stat.S_IMODE(path.stat().st_mode)


def put(name, at, value):
    """A change of one entry of a saved array."""

    def change(arrays, facts):
        arrays[name][at] = value

    return change


def npy(array):
    """The bytes that ``np.save`` writes, of objects too."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


# -- hulls


def vertices(polygon):
    assert polygon.dtype == np.int64
    return [tuple(v) for v in polygon.tolist()]


def random_hull(rng):
    points = rng.integers(-12, 13, (int(rng.integers(1, 8)), 2)).astype(np.int64)
    return hull.chain(np.concatenate([points, -points]))
