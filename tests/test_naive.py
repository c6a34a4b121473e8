"""Hand-solved checks of the oracles in `naive.py` themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import naive

SQUARE = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
DIAMOND = [(-1, 0), (0, -1), (1, 0), (0, 1)]


def grid(rows, cols):
    return np.array([(col, row) for row in range(rows) for col in range(cols)])


def scattered(count, size, seed):
    rng = np.random.default_rng(seed)
    lattice = rng.permutation(grid(size, size))[:count]
    edges = {tuple(sorted(map(int, rng.choice(count, 2, replace=False)))) for _ in range(count)}
    return lattice, edges


def sample_noise(body, epsilon, count, rng):
    """Cone measure times Gamma(2, 1/eps); Laplace along a segment."""
    body = np.asarray(body, float)
    if len(body) == 2:
        return rng.laplace(scale=1 / epsilon, size=(count, 1)) * body[1]
    after = np.roll(body, -1, axis=0)
    cones = body[:, 0] * after[:, 1] - body[:, 1] * after[:, 0]
    side = rng.choice(len(body), count, p=cones / cones.sum())
    w = body[side] + rng.random((count, 1)) * (after - body)[side]
    return w * rng.gamma(2, 1 / epsilon, (count, 1))


# Geometry


@pytest.mark.parametrize(
    "points, expected",
    [
        ([(3, 4)], [(3, 4)]),
        ([(3, 4), (3, 4)], [(3, 4)]),
        ([(0, 0), (2, 1), (4, 2), (-2, -1)], [(-2, -1), (4, 2)]),
        ([(0, 5), (0, -5), (0, 0)], [(0, -5), (0, 5)]),
        (
            [(0, 0), (2, 0), (2, 2), (0, 2), (1, 1), (1, 0), (2, 1)],
            [(0, 0), (2, 0), (2, 2), (0, 2)],
        ),
        ([(1, 0), (0, 1), (-1, 0), (0, -1)], DIAMOND),
    ],
)
def test_hull(points, expected):
    assert naive.hull(points) == expected


@pytest.mark.parametrize("seed", range(20))
def test_hull_against_qhull(seed):
    points = np.random.default_rng(seed).integers(-9, 10, (30, 2))
    vertices = naive.hull(points)
    assert naive.twice_area(vertices) == pytest.approx(2 * ConvexHull(points).volume, rel=1e-12)
    assert all(naive.contains(vertices, p) for p in points)
    turns = [
        naive.cross(np.subtract(b, a), np.subtract(c, b))
        for a, b, c in zip(
            vertices, vertices[1:] + vertices[:1], vertices[2:] + vertices[:2], strict=True
        )
    ]
    assert min(turns) > 0


def test_hull_does_not_overflow():
    far = 2**62
    assert (
        naive.twice_area(naive.hull([(-far, -far), (far, -far), (far, far), (-far, far)]))
        == 8 * far**2
    )


def test_twice_area():
    assert naive.twice_area(SQUARE) == 8
    assert naive.twice_area(DIAMOND) == 4
    assert naive.twice_area([(0, 0)]) == naive.twice_area([(-1, -2), (1, 2)]) == 0


@pytest.mark.parametrize(
    "vertices, inside, outside",
    [
        ([(0, 0)], [(0, 0)], [(0, 1)]),
        ([(-2, -2), (2, 2)], [(-2, -2), (0, 0), (2, 2)], [(3, 3), (0, 1)]),
        (DIAMOND, [(0, 0), (1, 0), (0, -1)], [(1, 1)]),
        (SQUARE, [(1, 1), (1, 0)], [(2, 0), (0, -2)]),
    ],
)
def test_contains_its_boundary(vertices, inside, outside):
    assert all(naive.contains(vertices, p) for p in inside)
    assert not any(naive.contains(vertices, p) for p in outside)


def test_gauge_is_the_norm_of_its_body():
    points = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(naive.gauge(SQUARE, points), abs(points).max(axis=1))
    np.testing.assert_allclose(
        naive.gauge(np.array(DIAMOND) * 2.0, points), abs(points).sum(axis=1) / 2
    )
    assert naive.gauge(SQUARE, (0.5, -3)) == 3


def test_nearest_breaks_ties_downwards():
    lattice = grid(2, 2)
    assert naive.nearest(lattice, (1, 1), range(4), (0.5, 0.5)) == 0
    assert naive.nearest(lattice, (1, 1), [3, 1], (0.5, 0.5)) == 1
    assert naive.nearest(lattice, (1, 1), range(4), (0.5, 0.75)) == 2
    assert naive.nearest(lattice, (0.5, 4), range(4), (0.3, 1.9)) == 1
    assert naive.surrogate(lattice, (1, 1), {1, 2}, 0) == 1
    assert naive.surrogate(lattice, (1, 1), {0, 2}, 2) == 2


# Graphs

PATH_AND_PAIR = {(0, 1), (1, 2), (3, 4)}


def test_components_and_hops():
    assert naive.component(6, PATH_AND_PAIR, 2) == [0, 1, 2]
    assert naive.component(6, PATH_AND_PAIR, 5) == [5]
    assert naive.hop_distance(6, PATH_AND_PAIR, 0, 2) == 2
    assert naive.hop_distance(6, PATH_AND_PAIR, 4, 4) == 0
    assert naive.hop_distance(6, PATH_AND_PAIR, 0, 3) == math.inf
    assert naive.constrain(PATH_AND_PAIR, {0, 2, 3, 4}) == {(3, 4)}


def test_named_policies():
    assert naive.blocks(2, 3, 2) == naive.complete([0, 1, 3, 4]) | {(2, 5)}
    assert len(naive.blocks(4, 4, 3)) == 36 + 3 + 3
    assert len(naive.neighbours8(3, 3)) == 12 + 8
    assert naive.neighbours8(1, 3) == {(0, 1), (1, 2)}
    assert naive.categories(2, 3, [7, 7, 7, -1, 0, -1], 2) == {(0, 1)}
    assert naive.categories(2, 3, [7, 7, 7, 7, -1, -1], 6) == naive.complete([0, 1, 2, 3])


def test_sensitivity_of_a_block():
    lattice, edges = grid(3, 3), naive.complete(range(9))
    assert naive.sensitivity_hull(lattice, edges) == [(-2, -2), (2, -2), (2, 2), (-2, 2)]
    assert naive.sensitivity_hull(lattice, set()) == [(0, 0)]
    assert naive.sensitivity_hull(lattice, {(0, 5), (3, 8)}) == [(-2, -1), (2, 1)]
    np.testing.assert_array_equal(
        naive.noise_body(lattice, (0.5, 0.25), edges, "ppim"),
        [(-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5)],
    )
    np.testing.assert_array_equal(
        naive.noise_body(lattice, (0.5, 0.25), edges, "plm"), 1.5 * np.array(DIAMOND)
    )
    assert len(naive.noise_body(lattice, (1, 1), set(), "plm")) == 1


def test_only_edges_enter_the_hull():
    lattice = np.array([(0, 0), (1, 0), (2, 0)])
    assert naive.sensitivity_hull(lattice, {(0, 1), (1, 2)}) == [(-1, 0), (1, 0)]


# Pr(z|s)


@pytest.mark.parametrize("mechanism, expected", [("ppim", 1.3396), ("plm", 1.3720)])
def test_error_of_a_block(mechanism, expected):
    lattice, edges = grid(3, 3), naive.complete(range(9))
    body = naive.noise_body(lattice, (1, 1), edges, mechanism)
    P = naive.pmf_matrix(lattice, (1, 1), range(9), body, 1.0)
    distance = np.linalg.norm(lattice[:, None] - lattice[None], axis=2)
    assert round((P * distance).sum(axis=1).mean(), 4) == expected


def laplace_table(size, step, radius, epsilon):
    """Mass of each of `size` unit intervals (the outer ones unbounded) around each centre, per
    axis."""
    cuts = np.concatenate([[-np.inf], np.arange(size - 1) + 0.5, [np.inf]]) * step
    offsets = cuts[None] - step * np.arange(size)[:, None]
    below = np.where(
        offsets < 0,
        np.exp(-epsilon * abs(offsets) / radius) / 2,
        1 - np.exp(-epsilon * abs(offsets) / radius) / 2,
    )
    return np.diff(below, axis=1)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_plm_on_a_grid_is_a_product_of_laplace_masses(epsilon):
    rows, cols, scale = 3, 4, (0.27, 0.41)
    lattice = grid(rows, cols)
    body = naive.noise_body(lattice, scale, naive.neighbours8(rows, cols), "plm")
    radius = body[2, 0]
    expected = np.kron(
        laplace_table(rows, scale[1], radius, epsilon),
        laplace_table(cols, scale[0], radius, epsilon),
    )
    P = naive.pmf_matrix(lattice, scale, range(12), body, epsilon)
    np.testing.assert_allclose(P, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_rotated_grid_and_diamond(epsilon):
    turn = np.array([(3, 4), (-4, 3)])
    lattice, body = grid(3, 3), 2.0 * np.array(DIAMOND)
    straight = naive.pmf_matrix(lattice, (1, 1), range(9), body, epsilon)
    rotated = naive.pmf_matrix(lattice @ turn, (0.2, 0.2), range(9), body @ turn / 5, epsilon)
    np.testing.assert_allclose(rotated, straight, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_two_outputs_by_hand(epsilon):
    """The other half-plane starts half way: exp(-eps/2)/2 for the diamond, the square and the
    segment."""
    lattice = np.array([(0, 0), (2, 0)])
    other = math.exp(-epsilon / 2) / 2
    segment = naive.pmf_matrix(lattice, (1, 1), [0, 1], [(-2, 0), (2, 0)], epsilon)
    diamond = naive.pmf_matrix(lattice, (1, 1), [0, 1], 2.0 * np.array(DIAMOND), epsilon)
    np.testing.assert_allclose(segment, [(1 - other, other), (other, 1 - other)], rtol=1e-14)
    np.testing.assert_allclose(diamond, [(1 - other, other), (other, 1 - other)], rtol=1e-12)
    # Square: a marginal of eps^2/16 exp(-eps max(|x|,|y|)/2) is eps/8 exp(-eps x/2) (eps x/2 + 1).
    tail = math.exp(-epsilon / 2) * (2 + epsilon / 2) / 4
    square = naive.pmf_matrix(lattice, (1, 1), [0, 1], 2.0 * np.array(SQUARE), epsilon)
    assert square[0, 1] == pytest.approx(tail, rel=1e-12)


def test_degenerate_bodies():
    lattice = np.array([(0, 0), (2, 1), (2, -1)])
    np.testing.assert_array_equal(
        naive.pmf_matrix(lattice, (1, 1), range(3), [(0, 0)], 1.0), np.eye(3)
    )
    np.testing.assert_array_equal(naive.pmf_matrix(lattice, (1, 1), [1], DIAMOND, 1.0), [[1]])

    P = naive.pmf_matrix(lattice, (1, 1), range(3), [(-1, 0), (1, 0)], 1.0)
    tail = math.exp(-1.25) / 2  # |tau|^2 = |tau - 2|^2 + 1 at tau = 5/4; then 1 and 2 tie
    np.testing.assert_allclose(P[0], [1 - tail, tail, 0])
    np.testing.assert_array_equal(
        naive.possible_matrix(lattice, (1, 1), range(3), [(-1, 0), (1, 0)]), P > 0
    )


def test_line_on_a_boundary_is_exact_for_rounded_kilometres():
    lattice = np.array([(0, 0), (4, -2), (2, 4)])  # mirror images about (3, 1)
    P = naive.pmf_matrix(lattice, (0.1, 0.1), range(3), np.array([(-3, -1), (3, 1)]) * 0.1, 1.0)
    tail = math.exp(-1.0) / 2  # |tau v|^2 = |tau v - (4, -2)|^2 at tau = 1
    np.testing.assert_allclose(P[0], [1 - tail, tail, 0])


CASES = [(12, 6, (1.0, 1.0)), (16, 7, (0.27, 0.41)), (20, 9, (2.0, 0.125))]


@pytest.mark.parametrize("mechanism", ["ppim", "plm"])
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 20.0])
@pytest.mark.parametrize("count, size, scale", CASES)
def test_pmf_of_scattered_points(count, size, scale, epsilon, mechanism):
    lattice, edges = scattered(count, size, seed=count)
    body = naive.noise_body(lattice, scale, edges, mechanism)
    P = naive.pmf_matrix(lattice, scale, range(count), body, epsilon)
    twice = naive.pmf_matrix(lattice, scale, range(count), body, epsilon, nodes=48)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(P, twice, rtol=1e-12, atol=0)
    assert naive.max_log_ratio(P, edges, range(count)) <= epsilon * (1 + 1e-9)


def test_pmf_of_collinear_outputs_with_a_planar_body():
    lattice = np.array([(3 * i, 2 * i) for i in range(6)])
    P = naive.pmf_matrix(lattice, (0.5, 0.3), range(6), np.array(SQUARE, float), 1.0)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(P, P[::-1, ::-1], rtol=1e-13)


@pytest.mark.parametrize("mechanism", ["ppim", "plm"])
def test_pmf_against_sampling(mechanism):
    lattice, edges = scattered(10, 6, seed=4)
    scale, count = (0.5, 0.8), 400_000
    body = naive.noise_body(lattice, scale, edges, mechanism)
    P = naive.pmf_matrix(lattice, scale, range(10), body, 1.3)
    rng = np.random.default_rng(8)
    xy = lattice * np.array(scale)
    for s in (0, 7):
        z = xy[s] + sample_noise(body, 1.3, count, rng)
        snapped = np.argmin(((z[:, None] - xy[None]) ** 2).sum(axis=2), axis=1)
        share = np.bincount(snapped, minlength=10) / count
        assert np.all(abs(share - P[s]) <= 5 * np.sqrt(P[s] / count))
        assert all(
            naive.nearest(lattice, scale, range(10), p) == k
            for p, k in zip(z[:50], snapped, strict=False)
        )


def test_max_log_ratio():
    P = np.array([(0.5, 0.5, 0.0), (0.25, 0.75, 0.0), (0.0, 0.5, 0.5)])
    assert naive.max_log_ratio(P, {(3, 5)}, [3, 5, 8]) == pytest.approx(math.log(2))
    assert naive.max_log_ratio(P, {(5, 8)}, [3, 5, 8]) == math.inf
    assert naive.max_log_ratio(P, {(3, 4)}, [3, 5, 8]) == 0


# Exposure and repair


@pytest.mark.parametrize(
    "body", [[(-3.0, -1.0), (3.0, 1.0)], SQUARE, DIAMOND, [(-4, -1), (-1, -1), (4, 1), (1, 1)]]
)
def test_expected_noise_against_sampling(body):
    lengths = np.linalg.norm(sample_noise(body, 1.0, 1_000_000, np.random.default_rng(3)), axis=1)
    margin = 5 * lengths.std() / 1000
    assert abs(lengths.mean() - naive.expected_noise(body)) <= margin


def test_expected_noise_by_hand():
    assert naive.expected_noise([(0, 0)]) == 0
    assert naive.expected_noise([(-3, -4), (3, 4)]) == pytest.approx(5)
    assert naive.expected_noise(SQUARE) == pytest.approx(math.sqrt(2) + math.asinh(1))
    assert naive.expected_noise(DIAMOND) == pytest.approx(
        (math.sqrt(2) + math.asinh(1)) / math.sqrt(2)
    )


def test_disconnected_needs_neighbours_in_the_policy():
    edges = {(0, 1), (1, 2), (3, 4)}
    assert naive.disconnected(6, edges, {0, 2, 3, 4, 5}) == [0, 2]
    assert naive.disconnected(6, edges, {1}) == [1]
    assert naive.disconnected(6, edges, {5}) == []


def test_disconnected_but_not_isolated():
    """f(2) + K = [1, 3] x {0} holds location 1, on its boundary."""
    lattice, edges, domain = np.array([(0, 0), (1, 0), (2, 0), (9, 9)]), {(0, 1), (2, 3)}, {0, 1, 2}
    assert naive.disconnected(4, edges, domain) == [2]
    assert naive.isolated(lattice, (1, 1), edges, domain, "graph") == []
    assert naive.isolated(lattice, (1, 1), edges, domain, "component") == [2]
    assert naive.repair(lattice, (1, 1), edges, domain, "min-area", "graph") == ([], {(0, 1)}, [])


@pytest.mark.parametrize("seed", range(6))
def test_isolated_agrees_with_containment(seed):
    """Finding Isolated Node's two readings: no location inside f(s) + K, and every new hull
    differs from K."""
    lattice, edges = scattered(14, 6, seed)
    domain = set(np.random.default_rng(seed).permutation(14)[:7].tolist())
    body = naive.sensitivity_hull(lattice, naive.constrain(edges, domain))
    expected = [
        s
        for s in naive.disconnected(14, edges, domain)
        if not any(naive.contains(body, lattice[j] - lattice[s]) for j in domain - {s})
    ]
    assert naive.isolated(lattice, (1, 1), edges, domain, "graph") == expected


# 0 lost its neighbour 4; 1 has no neighbours; 2-3 is the edge that is left, K = +-(1, 0). The new
# hull is the
# parallelogram of +-(1, 0) and +-v, v = f(j) - f(0); twice its area is 4 |v_y|: 12, 4, 4.
FIGURE = np.array([(0, 0), (2, 3), (4, 1), (5, 1), (0, 9)])
FIGURE_EDGES = {(0, 4), (2, 3)}


@pytest.mark.parametrize(
    "strategy, calibration, partner",
    [
        ("min-area", "graph", 2),
        ("nearest", "graph", 1),
        ("arbitrary", "graph", 1),
        ("min-error", "graph", 1),
        ("min-area", "component", 1),
        ("nearest", "component", 1),
        ("arbitrary", "component", 1),
        ("min-error", "component", 1),
    ],
)
def test_repair_of_four_nodes(strategy, calibration, partner):
    added, edges, exposed = naive.repair(
        FIGURE, (1, 1), FIGURE_EDGES, {0, 1, 2, 3}, strategy, calibration
    )
    assert added == [(0, partner)]
    assert edges == {(2, 3), (0, partner)}
    assert exposed == []


def test_repair_costs_by_hand():
    kept = {(2, 3)}
    costs = naive.repair_costs(FIGURE, (1, 1), kept, {0, 1, 2, 3}, 0, "min-area", "graph")
    assert costs == {1: (12, 0), 2: (4, 0), 3: (4, 0)}
    costs = naive.repair_costs(FIGURE, (1, 1), kept, {0, 1, 2, 3}, 0, "min-area", "component")
    assert costs == {1: (0, 0), 2: (4, 0), 3: (4, 0)}
    costs = naive.repair_costs(FIGURE, (1, 1), kept, {0, 1, 2, 3}, 0, "min-error", "component")
    assert costs[1][0] == pytest.approx(2 * math.sqrt(13))


def test_area_misleads_where_error_does_not():
    """A far singleton makes a segment of zero area and huge error; a near pair makes a diamond."""
    lattice = np.array([(0, 0), (100, 0), (1, 0), (1, 1), (0, 50)])
    arguments = (lattice, (1, 1), {(0, 4), (2, 3)}, {0, 1, 2, 3})
    assert naive.repair(*arguments, "min-area", "component")[0] == [(0, 1)]
    assert naive.repair(*arguments, "min-error", "component")[0] == [(0, 2)]
    costs = naive.repair_costs(lattice, (1, 1), {(2, 3)}, {0, 1, 2, 3}, 0, "min-error", "component")
    assert costs[1][0] == pytest.approx(2 * 100)
    assert costs[2][0] == pytest.approx(3 * naive.expected_noise(DIAMOND) - 2 * 1)


def test_only_the_joined_component_counts():
    """Joining the pair 1-2 makes a diamond of twice area 8; 3 and 4 lie in the block's hull, 5 adds
    two triangles of area 9 to it."""
    lattice = np.array([(0, 0), (0, 2), (1, 2), (0, 3), (3, 3), (0, 6), (3, 6), (50, 50)])
    edges = {(0, 7), (1, 2)} | naive.complete([3, 4, 5, 6])
    costs = naive.repair_costs(
        lattice, (1, 1), edges - {(0, 7)}, set(range(7)), 0, "min-area", "component"
    )
    assert [costs[j][0] for j in (1, 3, 4, 5)] == [8, 0, 0, 36]
    assert naive.repair(lattice, (1, 1), edges, set(range(7)), "min-area", "component")[0] == [
        (0, 3)
    ]


def test_ties_go_to_the_shorter_edge_in_kilometres():
    lattice, edges = np.array([(0, 0), (2, 0), (0, 3), (9, 9)]), {(0, 3)}
    for scale, partner in [((1, 1), 1), ((1, 0.5), 2), ((1, Fraction(2, 3)), 1)]:
        for strategy in ("min-area", "nearest"):
            for calibration in ("graph", "component"):
                added, _, _ = naive.repair(lattice, scale, edges, {0, 1, 2}, strategy, calibration)
                assert added == [(0, partner)]


@pytest.mark.parametrize("calibration", ["graph", "component"])
def test_min_error_ties_go_to_the_lower_index(calibration):
    lattice, edges = np.array([(0, 0), (-3, 1), (1, 3), (3, -1), (9, 9)]), {(0, 4)}
    assert naive.repair(lattice, (0.1, 0.1), edges, {0, 1, 2, 3}, "min-error", calibration)[0] == [
        (0, 1)
    ]


@pytest.mark.parametrize("strategy", ["min-area", "nearest", "arbitrary", "min-error"])
def test_an_earlier_repair_connects_a_later_node(strategy):
    lattice, edges = np.array([(0, 0), (1, 0), (9, 0), (9, 9)]), {(0, 2), (1, 3)}
    for calibration in ("graph", "component"):
        added, kept, exposed = naive.repair(lattice, (1, 1), edges, {0, 1}, strategy, calibration)
        assert (added, kept, exposed) == ([(0, 1)], {(0, 1)}, [])


def test_a_repair_protects_later_nodes_implicitly():
    """0-1 makes K = +-(1, 0); then 2 sees 3 inside f(2) + K: one edge (graph), two (component)."""
    lattice = np.array([(0, 0), (1, 0), (5, 5), (6, 5), (99, 99)])
    edges = {(0, 4), (1, 4), (2, 4), (3, 4)}
    assert naive.repair(lattice, (1, 1), edges, {0, 1, 2, 3}, "nearest", "graph")[0] == [(0, 1)]
    assert naive.repair(lattice, (1, 1), edges, {0, 1, 2, 3}, "nearest", "component")[0] == [
        (0, 1),
        (2, 3),
    ]
    assert naive.isolated(lattice, (1, 1), edges, {0, 1, 2, 3}, "graph") == [0, 1, 2, 3]


def test_the_repaired_node_comes_first():
    lattice, edges = np.array([(0, 0), (1, 0), (0, 9), (9, 9)]), {(0, 1), (2, 3)}
    added, kept, _ = naive.repair(lattice, (1, 1), edges, {0, 1, 2}, "nearest", "component")
    assert added == [(2, 0)]
    assert kept == {(0, 1), (0, 2)}


def test_a_single_location_is_exposed():
    lattice, edges = grid(1, 3), {(0, 1)}
    for calibration in ("graph", "component"):
        assert naive.repair(lattice, (1, 1), edges, {1}, "min-area", calibration) == (
            [],
            set(),
            [1],
        )
        assert naive.repair(lattice, (1, 1), edges, {2}, "min-area", calibration) == ([], set(), [])
        assert naive.isolated(lattice, (1, 1), edges, {1}, calibration) == [1]


# The adversary


def test_constrained_domain():
    p = np.array([0.125, 0.5, 0.125, 0.0, 0.25])
    assert naive.constrained_domain(p, 0) == {0, 1, 2, 4}
    assert naive.constrained_domain(p, 0, support={0, 1, 2, 3, 4}) == {0, 1, 2, 3, 4}
    assert naive.constrained_domain(p, 0.125) == {0, 1, 4}
    assert naive.constrained_domain(p, 0.25) == {1, 4}
    assert naive.constrained_domain(p, 0.2) == {0, 1, 4}
    assert naive.constrained_domain(p, 0.9) == {1}


PAIR = np.array([(0, 0), (1, 0), (5, 5)])
MOVES = np.array([(0.5, 0.0, 0.5), (0.0, 1.0, 0.0), (0.25, 0.25, 0.5)])


@pytest.mark.parametrize("mechanism", ["ppim", "plm"])
def test_a_step_by_hand(mechanism):
    """A pair one edge apart: Pr(other) = exp(-eps/2)/2 for both mechanisms."""
    other = math.exp(-0.5) / 2
    prior = np.array([0.25, 0.5, 0.25])
    step = naive.trace_step(
        PAIR, (1, 1), {(0, 1)}, MOVES, prior, {0, 1, 2}, 0, 1.0, mechanism=mechanism
    )
    weights = np.array([0.25 * (1 - other), 0.5 * other, 0])
    assert step["domain"] == {0, 1, 2}
    assert (step["added"], step["exposed"], step["edges"]) == ([], [], {(0, 1)})
    np.testing.assert_allclose(step["p_plus"], weights / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(step["next_p_minus"], weights @ MOVES / weights.sum(), rtol=1e-12)
    assert step["support_plus"] == {0, 1}
    assert step["next_support"] == {0, 1, 2}


def test_a_step_repairs_the_original_graph():
    step = naive.trace_step(PAIR, (1, 1), {(0, 1)}, MOVES, np.array([0.5, 0, 0.5]), {0, 2}, 2, 1.0)
    assert step["domain"] == {0, 2}
    assert step["added"] == [(0, 2)]
    assert step["support_plus"] == {0, 2}
    other = math.exp(-0.5) / 2
    np.testing.assert_allclose(step["p_plus"], [other, 0, 1 - other])


def test_underflow_never_shrinks_the_support():
    step = naive.trace_step(PAIR, (1, 1), {(0, 1)}, MOVES, np.array([1.0, 0, 0]), {0, 1}, 0, 1.0)
    assert step["domain"] == step["support_plus"] == {0, 1}
    np.testing.assert_array_equal(step["p_plus"], [1, 0, 0])
    assert step["next_support"] == {0, 1, 2}


def test_a_step_with_the_graph_calibration():
    """K = +-(1, 0): from 2 the line y = 1 enters region 1 at x = 1 and never region 0."""
    lattice = np.array([(0, 0), (1, 0), (0, 1)])
    prior = np.full(3, 1 / 3)
    options = {"calibration": "graph", "mechanism": "ppim"}
    step = naive.trace_step(lattice, (1, 1), {(0, 1)}, MOVES, prior, {0, 1, 2}, 0, 1.0, **options)
    assert step["support_plus"] == {0, 1}
    step = naive.trace_step(lattice, (1, 1), {(0, 1)}, MOVES, prior, {0, 1, 2}, 1, 1.0, **options)
    assert step["support_plus"] == {0, 1, 2}
    assert step["likelihood"][2] == pytest.approx(math.exp(-1) / 2)


@pytest.mark.parametrize("calibration", ["graph", "component"])
def test_no_policy_no_noise(calibration):
    prior = np.full(3, 1 / 3)
    step = naive.trace_step(
        PAIR, (1, 1), set(), MOVES, prior, {0, 1, 2}, 1, 1.0, calibration=calibration
    )
    np.testing.assert_array_equal(step["p_plus"], [0, 1, 0])
    assert step["support_plus"] == step["next_support"] == {1}


@pytest.mark.parametrize("calibration", ["graph", "component"])
@pytest.mark.parametrize("mechanism", ["ppim", "plm"])
def test_bayes_averages_back_to_the_prior(mechanism, calibration):
    lattice, edges = grid(4, 4), naive.blocks(4, 4, 2)
    rng = np.random.default_rng(5)
    prior = np.where(rng.random(16) < 0.6, rng.random(16), 0)
    prior /= prior.sum()
    domain = naive.constrained_domain(prior, 0)
    options = {"mechanism": mechanism, "calibration": calibration}
    _, kept, _ = naive.repair(lattice, (1, 1), edges, domain, "min-area", calibration)
    P, possible = naive.emission(lattice, (1, 1), kept, domain, 0.8, **options)
    np.testing.assert_allclose(P[sorted(domain)].sum(axis=1), 1, atol=1e-14)
    assert naive.max_log_ratio(P, kept, range(16)) <= 0.8 * (1 + 1e-9)
    total = np.zeros(16)
    for z in np.flatnonzero(possible.any(axis=0)):
        step = naive.trace_step(
            lattice, (1, 1), edges, np.eye(16), prior, domain, z, 0.8, **options
        )
        assert step["edges"] == kept
        total += step["p_plus"] * (prior @ P[:, z])
    np.testing.assert_allclose(total, prior, atol=1e-14)


def test_ledger():
    epsilons, graphs = [0.1] * 10, [{(0, 1), (1, 2), (2, 3)}, {(1, 2), (2, 3)}, {(1, 2), (0, 3)}]
    assert naive.ledger(epsilons, graphs) == (1.0, {(1, 2)})
