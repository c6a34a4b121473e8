"""Randomised response, graph exponential and the linear program's optimum, against known figures
and a plain program."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import eye_array, kron, lil_array

import pglp_fast as pf
from cases import large, set_weights
from pglp_fast._util.storage import read_arrays, write_arrays
from pglp_fast.mechanisms import optimal
from pglp_fast.mechanisms.symmetries import orbits, symmetries

EPSILONS = (0.01, 0.1, 1.0, 3.0, 10.0)


def mean_error(m, s=0, loss=None):
    """Expected loss in cells, the true location even over the component of s."""
    outputs, P = m.matrix(s)
    k = len(outputs)
    d = (
        m.locations.distance(np.repeat(outputs, k), np.tile(outputs, k)).reshape(k, k)
        if loss is None
        else loss
    )
    return float((P * d).sum(axis=1).mean())


def plain_optimum(loss, edges, epsilon):
    """The program as the paper would write it: one row for each directed edge and output."""
    k = len(loss)
    rows = []
    for i, j in [*edges, *[(j, i) for i, j in edges]]:
        for z in range(k):
            rows.append((i * k + z, j * k + z))
    A = lil_array((len(rows), k * k))
    for n, (a, b) in enumerate(rows):
        A[n, a], A[n, b] = 1.0, -np.exp(epsilon)
    A_eq = kron(eye_array(k), np.ones((1, k)), format="csr")
    found = linprog(
        loss.ravel() / k,
        A_ub=A.tocsr(),
        b_ub=np.zeros(len(rows)),
        A_eq=A_eq,
        b_eq=np.ones(k),
        method="highs",
    )
    return found.fun


def connected(rng, k, cliques):
    """A random irregular component of k cells: a random tree of joins, a few more edges, maybe
    made of cliques."""
    g = pf.Grid(9, 9, cell_km=(1.0, 1.0) if rng.integers(2) else (0.5, 0.75))
    cells = rng.choice(g.size, k, replace=False)
    tree = [(cells[n], cells[rng.integers(n)]) for n in range(1, k)]
    more = [rng.choice(cells, 2, replace=False) for _ in range(k // 2)]
    G = pf.PolicyGraph.from_edges(g, [*tree, *more])
    if cliques:
        labels = np.full(g.size, -1)
        labels[cells] = rng.integers(0, 3, k)
        G = pf.categories(g, labels, None).with_edges([*tree, *more])
    return g, G, int(cells[0])


POLICIES = {
    "block": lambda: (pf.blocks(pf.Grid(4, 4), 4), 0),
    "cut blocks": lambda: (pf.blocks(pf.Grid(5, 7), 3), 34),
    "path": lambda: (pf.PolicyGraph.from_edges(pf.Grid(1, 9), [[i, i + 1] for i in range(8)]), 0),
    "star": lambda: (
        pf.PolicyGraph.from_edges(pf.Grid(3, 3), [[4, i] for i in range(9) if i != 4]),
        4,
    ),
    "neighbours8": lambda: (pf.neighbours8(pf.Grid(4, 4)), 5),
    "random": lambda: connected(np.random.default_rng(5), 14, True)[1:],
    "alone": lambda: (pf.PolicyGraph.from_edges(pf.Grid(2, 2), []), 3),
}


@pytest.mark.parametrize(
    ("k", "epsilon", "best"),
    [(3, 1, 1.050), (3, 2, 0.824), (4, 1, 1.368), (4, 2, 1.137), (5, 1, 1.766), (5, 2, 1.464)],
)
def test_known_optima_of_blocks(k, epsilon, best):
    m = pf.Optimal(pf.blocks(pf.Grid(k, k), k), epsilon=epsilon)
    assert mean_error(m) == pytest.approx(best, abs=5.5e-4)
    assert pf.certify(m).ok


def test_known_figures_of_the_others():
    g = pf.Grid(5, 5)
    assert mean_error(pf.Optimal(pf.neighbours8(g), epsilon=2)) == pytest.approx(0.649, abs=5e-4)
    for epsilon, error in ((1, 2.384), (2, 2.029)):
        assert mean_error(pf.KRR(pf.blocks(g, 5), epsilon=epsilon)) == pytest.approx(
            error, abs=5e-4
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "mechanism", [pf.KRR, pf.GraphExponential, pf.Optimal, pf.PPIM, pf.PLM, pf.PlanarLaplace]
)
def test_certified_on_every_policy(mechanism, policy, epsilon):
    """Rows sum to 1, no ratio above e^eps in the matrix or in the integers, no zero opposite a
    positive."""
    graph, s = POLICIES[policy]()
    m = mechanism(graph, epsilon=epsilon)
    outputs, logs = m.matrix(s, log=True)
    place = {int(c): i for i, c in enumerate(outputs)}
    assert np.abs(np.exp(logs).sum(axis=1) - 1).max() <= 1e-12
    for a, b in graph.edges().tolist():
        if a in place:
            here, there = logs[place[a]], logs[place[b]]
            never = np.isneginf(
                here
            )  # at small epsilon the best is to never name most places, from anywhere
            assert (never == np.isneginf(there)).all()
            assert np.abs(here[~never] - there[~never]).max() <= epsilon * (1 + 1e-9)
    c = pf.certify(m)
    assert c.ok, c
    assert c.proof == "table"
    assert c.mixed <= 2.0**-28


@pytest.mark.parametrize("seed", range(6))
def test_optimal_is_within_a_thousandth_of_the_plain_program(seed):
    """Irregular components, cliques and not.

    Catches a wrong clique constraint (too loose fails certify, too tight loses here).
    """
    rng = np.random.default_rng(seed)
    g, G, s = connected(rng, int(rng.integers(4, 11)), seed % 2 == 0)
    epsilon = (0.3, 1.0, 2.5)[seed % 3]
    m = pf.Optimal(G, epsilon=epsilon)
    outputs = G.component(s)
    k = len(outputs)
    place = {int(c): i for i, c in enumerate(outputs)}
    loss = g.distance(np.repeat(outputs, k), np.tile(outputs, k)).reshape(k, k)
    ref = plain_optimum(loss, [(place[a], place[b]) for a, b in G.edges().tolist()], epsilon)
    assert ref * (1 - 1e-6) <= mean_error(m, s) <= ref * 1.001 + 1e-9
    assert pf.certify(m).ok
    for other in (
        pf.PPIM(G, epsilon=epsilon),
        pf.PLM(G, epsilon=epsilon),
        pf.GraphExponential(G, epsilon=epsilon),
    ):
        assert mean_error(m, s) <= mean_error(other, s) * (1 + 1e-6)


@large
@pytest.mark.parametrize(
    ("k", "cliques", "epsilon"),
    [(24, False, 0.5), (30, True, 2.0), (36, True, 1.0), (36, False, 1.0)],
)
def test_up_to_thirty_six_locations(k, cliques, epsilon):
    """Irregular components, after the repair within 0.1 % of the plain program's optimum."""
    g, G, s = connected(np.random.default_rng(9), k, cliques)
    m = pf.Optimal(G, epsilon=epsilon)
    outputs = G.component(s)
    assert len(outputs) == k
    place = {int(c): i for i, c in enumerate(outputs)}
    loss = g.distance(np.repeat(outputs, k), np.tile(outputs, k)).reshape(k, k)
    ref = plain_optimum(loss, [(place[a], place[b]) for a, b in G.edges().tolist()], epsilon)
    assert ref * (1 - 1e-6) <= mean_error(m, s) <= ref * 1.001
    assert pf.certify(m).ok


SHAPES = {
    "square": (lambda: pf.blocks(pf.Grid(5, 5), 5), 8, 91),
    "rectangle": (lambda: pf.blocks(pf.Grid(3, 5), 5), 4, 65),
    "flat cells": (lambda: pf.blocks(pf.Grid(4, 4, cell_km=(1.0, 2.0)), 4), 4, 64),
    "neighbours": (lambda: pf.neighbours8(pf.Grid(3, 3)), 8, 15),
    "corner": (lambda: pf.PolicyGraph.from_edges(pf.Grid(2, 2), [[0, 1], [0, 2]]), 2, None),
    "crooked": (lambda: pf.PolicyGraph.from_edges(pf.Grid(2, 3), [[0, 1], [1, 2], [2, 5]]), 1, 16),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_symmetry_shrinks_the_program_and_not_the_optimum(shape):
    """Group orders and orbit counts by hand (Burnside); the optimum is that without symmetry. A
    turn that does not keep the edges, or cells that are not square, would give a wrong (larger)
    group and a worse mechanism."""
    make, order, pairs = SHAPES[shape]
    G = make()
    m = pf.Optimal(G, epsilon=1.0)
    component = m.groups.component(0)
    k = len(component.sites)
    at = component.sites * np.asarray(G.locations.scale)
    loss = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1))
    moves = symmetries(component, loss)
    assert len(moves) == order
    orbit, _ = orbits(moves, component.heads)
    if pairs is not None:
        assert len(np.unique(orbit[: k * k])) == pairs
    outputs = G.component(0)
    place = {int(c): i for i, c in enumerate(outputs)}
    edges = [(place[a], place[b]) for a, b in G.edges().tolist() if a in place]
    assert mean_error(m) == pytest.approx(plain_optimum(loss, edges, 1.0), rel=1e-6)


def test_symmetry_respects_prior_and_loss():
    g = pf.Grid(3, 3)
    G = pf.blocks(g, 3)
    prior = np.ones(9)
    prior[1] = 5.0  # only the mirror left-right is left
    m = pf.Optimal(G, epsilon=1.0, prior=prior)
    d = g.distance(np.repeat(np.arange(9), 9), np.tile(np.arange(9), 9)).reshape(9, 9)
    assert len(symmetries(m.groups.component(0), prior[:, None] * d)) == 2
    cost = prior[:, None] / prior.sum() * d
    rows = plain_optimum(9 * cost, [(i, j) for i in range(9) for j in range(i)], 1.0)
    assert (m.matrix(0)[1] * cost).sum() == pytest.approx(rows, rel=1e-6)


def test_solutions_on_disk(tmp_path, monkeypatch):
    """A second process solves nothing; a damaged file is solved again; a file that lies costs
    utility, never the promise."""
    G = pf.blocks(pf.Grid(4, 5), 3)
    folder = tmp_path / "solutions"
    first = pf.Optimal(G, epsilon=1.0, cache=folder)
    P = [first.matrix(s)[1] for s in range(20)]
    files = sorted(folder.iterdir())
    assert len(files) == 3  # two locations have a closed form
    solve = optimal.solve
    calls = []
    monkeypatch.setattr(optimal, "solve", lambda *a: calls.append(1) or solve(*a))
    second = pf.Optimal(G, epsilon=1.0, cache=folder)
    assert all(np.array_equal(second.matrix(s)[1], P[s]) for s in range(20))
    assert not calls
    pf.Optimal(G, epsilon=1.1, cache=folder).matrix(0)
    assert len(calls) == 1  # another epsilon is another program
    files[0].write_bytes(files[0].read_bytes()[:-7])
    third = pf.Optimal(G, epsilon=1.0, cache=folder)
    assert all(np.allclose(third.matrix(s)[1], P[s]) for s in range(20))
    assert len(calls) == 2
    for path in folder.iterdir():
        k = round(len(read_arrays(path, "solution")[0]["P"].ravel()) ** 0.5)
        write_arrays(path, "solution", {"P": np.eye(k)}, {})
    liar = pf.Optimal(G, epsilon=1.0, cache=folder)
    assert pf.certify(liar).ok


@pytest.mark.parametrize(
    "content",
    [
        {"P": np.full((9, 9), np.nan)},
        {"P": np.zeros((9, 9))},
        {"P": -np.eye(9)},
        {"P": np.eye(9, dtype=np.float32)},
        {"P": np.eye(3)},
        {"P": np.array(["a"] * 81).reshape(9, 9)},
        {"Q": np.eye(9)},
    ],
)
def test_a_file_that_is_no_solution_is_solved_again(content, tmp_path):
    """NaN once passed for a solution: released cells then came from NaN cast to integers, under
    a certificate."""
    G = pf.blocks(pf.Grid(3, 3), 3)
    right = pf.Optimal(G, epsilon=1.0, cache=tmp_path).matrix(0)[1]
    (path,) = tmp_path.iterdir()
    write_arrays(path, "solution", content, {})
    assert np.array_equal(pf.Optimal(G, epsilon=1.0, cache=tmp_path).matrix(0)[1], right)


def test_a_folder_that_cannot_be_written_to(tmp_path):
    G = pf.blocks(pf.Grid(3, 3), 3)
    m = pf.Optimal(G, epsilon=1.0, cache=tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.warns(RuntimeWarning, match="a solution could not be kept in"):
        assert m.matrix(0)[1].shape == (9, 9)
    (tmp_path / "file").write_text("")
    with pytest.raises(pf.InvalidParameter, match="cache must be a folder that can be written to"):
        pf.Optimal(G, epsilon=1.0, cache=tmp_path / "file")


def test_the_solvers_dust_does_not_blow_up():
    """A residue of 1e-13 in an output that nobody else has once took a share of 0.56 of the mean
    row to repair: 0.555 km."""
    g = pf.Grid(5, 5, cell_km=0.3)
    G = pf.blocks(g, 3).with_edges([(12, 13), (2, 3), (10, 15), (24, 4)])
    prior = np.array(
        [
            9,
            56,
            152,
            34,
            5,
            9,
            8,
            42,
            16,
            9,
            53,
            32,
            24,
            12,
            28,
            53,
            3,
            11,
            1,
            4,
            3,
            4,
            33,
            19,
            31.0,
        ]
    )
    m = pf.Optimal(G, epsilon=1.0, prior=prior)
    assert pf.utility(m, prior=prior).e_eu == pytest.approx(0.37876, abs=1e-5)
    assert pf.certify(m).ok


@pytest.mark.parametrize("seed", range(12))
def test_skewed_priors_and_any_epsilon(seed):
    """Epsilon from 0.003 to 12, priors over six orders of magnitude, sparse graphs: within 0.1 %
    of the plain program."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(4, 13))
    g, G, s = connected(rng, k, seed % 3 == 0)
    epsilon = float(10 ** rng.uniform(-2.5, 1.1))
    prior = np.zeros(g.size)
    outputs = G.component(s)
    prior[outputs] = rng.integers(1, 200, len(outputs)).astype(float) ** rng.integers(1, 4)
    m = pf.Optimal(G, epsilon=epsilon, prior=prior)
    k = len(outputs)
    place = {int(c): i for i, c in enumerate(outputs)}
    loss = (
        g.distance(np.repeat(outputs, k), np.tile(outputs, k)).reshape(k, k)
        * (prior[outputs] / prior.sum())[:, None]
    )
    ref = plain_optimum(k * loss, [(place[a], place[b]) for a, b in G.edges().tolist()], epsilon)
    assert float((m.matrix(s)[1] * loss).sum()) <= ref * 1.001 + 1e-7
    assert pf.certify(m).ok


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-15, 1e-13, 1e-6, 15.0, 22.0, 40.0, 1000.0, 1e9])
def test_extreme_epsilons(policy, epsilon):
    """Never a failure of the solver, never worse than a closed form, always proved."""
    graph, s = POLICIES[policy]()
    m = pf.Optimal(graph, epsilon=epsilon)
    for other in (pf.KRR, pf.GraphExponential):
        assert (
            mean_error(m, s) <= mean_error(other(graph, epsilon=epsilon), s) * (1 + 1e-9) + 1e-300
        )
    assert pf.certify(m).ok
    logs = m.matrix(s, log=True)[1]
    outputs = m.matrix(s)[0]
    place = {int(c): i for i, c in enumerate(outputs)}
    for a, b in graph.edges().tolist():
        if a in place:
            here, there = logs[place[a]], logs[place[b]]
            said = ~np.isneginf(here)
            assert (np.isneginf(there) == ~said).all()
            assert np.abs(here[said] - there[said]).max() <= epsilon * (1 + 1e-9) + 4e-15 * (
                1 + np.abs(here[said]).max()
            )


def test_priors_and_losses_belong_to_the_mechanism():
    """Huge numbers do not overflow, and what the caller changes later changes nothing."""
    g = pf.Grid(3, 3)
    G = pf.blocks(g, 3)
    assert np.allclose(
        pf.Optimal(G, epsilon=5.0, prior=np.full(9, 1e308)).matrix(0)[1],
        pf.Optimal(G, epsilon=5.0, prior=np.ones(9)).matrix(0)[1],
    )
    prior, loss = np.ones(9), 1.0 - np.eye(9)
    m = pf.Optimal(G, epsilon=1.0, prior=prior, loss=loss)
    prior[:], loss[:] = np.nan, np.nan
    assert np.isfinite(m.matrix(0)[1]).all()
    for bad in ("even", ["a"] * 9, np.ones(9, complex)):
        with pytest.raises(pf.InvalidParameter, match="prior must be 9 numbers"):
            pf.Optimal(G, epsilon=1.0, prior=bad)
    with pytest.raises(pf.InvalidParameter, match=r"a finite \(9, 9\) matrix, got shape"):
        pf.Optimal(G, epsilon=1.0, loss=np.ones((9, 8)))


def test_a_loss_that_is_a_function():
    g = pf.Grid(3, 6)
    G = pf.blocks(g, 3)
    matrix = (
        np.abs(np.arange(18)[:, None] // 6 - np.arange(18)[None] // 6) + 0.0
    )  # rows matter, columns do not
    a = pf.Optimal(G, epsilon=1.0, loss=lambda s, z: np.abs(s // 6 - z // 6))
    b = pf.Optimal(G, epsilon=1.0, loss=matrix)
    inside = matrix[np.ix_(G.component(0), G.component(0))]
    assert mean_error(a, loss=inside) == pytest.approx(mean_error(b, loss=inside), rel=1e-9)
    assert mean_error(a, loss=inside) < mean_error(pf.Optimal(G, epsilon=1.0), loss=inside)
    with pytest.raises(pf.InvalidParameter, match="must give finite numbers of shape"):
        pf.Optimal(G, epsilon=1.0, loss=lambda s, z: np.nan).matrix(0)


@large
def test_one_solve_for_each_distinct_shape():
    """40,000 blocks of a million cells, one program; a block cut off at the edge is another."""
    m = pf.Optimal(pf.blocks(pf.Grid(1000, 1000), 5), epsilon=1.0)
    m.release(np.arange(1000))
    assert len(m._matrices) == 1
    m = pf.Optimal(pf.blocks(pf.Grid(11, 12), 5), epsilon=1.0)
    assert pf.certify(m).shapes == len(m._matrices) == 4


def test_a_prior_and_a_loss_of_ones_own():
    g = pf.Grid(3, 6)
    G = pf.blocks(g, 3)
    prior = np.ones(g.size)
    prior[0] = 50.0
    m = pf.Optimal(G, epsilon=1.0, prior=prior)
    even = pf.Optimal(G, epsilon=1.0)
    assert len(m.groups.representative) == 2  # the two blocks are no longer alike
    assert m.pmf(0)[1][0] > even.pmf(0)[1][0]
    assert pf.certify(m).ok
    squared = np.square(
        g.distance(np.repeat(np.arange(18), 18), np.tile(np.arange(18), 18)).reshape(18, 18)
    )
    by_name, by_matrix = (
        pf.Optimal(G, epsilon=1.0, loss="squared"),
        pf.Optimal(G, epsilon=1.0, loss=squared),
    )
    inside = squared[np.ix_(G.component(0), G.component(0))]
    assert mean_error(by_name, loss=inside) == pytest.approx(
        mean_error(by_matrix, loss=inside), rel=1e-6
    )
    assert mean_error(by_name, loss=inside) <= mean_error(even, loss=inside)


@large
@pytest.mark.parametrize("mechanism", [pf.KRR, pf.GraphExponential, pf.Optimal])
def test_release_follows_the_matrix(mechanism):
    """Chi-square on 400,000 draws at a fixed seed: a wrong row or a shifted output would be
    dozens of sigma off."""
    g = pf.Grid(4, 4)
    m = mechanism(pf.blocks(g, 4), epsilon=1.5)
    n = 400_000
    outputs, p = m.pmf(6)
    seen = np.bincount(m.release(np.full(n, 6), rng=11), minlength=g.size)[outputs]
    expected = n * p
    rare = expected < 10
    chi2 = (((seen - expected)[~rare]) ** 2 / expected[~rare]).sum()
    assert chi2 < 60  # 15 degrees of freedom: 1e-6
    assert seen[rare].sum() <= expected[rare].sum() + 6 * np.sqrt(expected[rare].sum() + 1)


def test_one_weight_past_the_bound_fails_the_certificate():
    m = pf.KRR(pf.blocks(pf.Grid(3, 3), 3), epsilon=1.0)
    assert pf.certify(m).ok
    w = m.table(0)[1]
    shift = np.uint64(int(w[0]) // 1000)
    w[0] += shift
    w[1] -= shift
    set_weights(m, 0, w)
    c = pf.certify(m)
    assert not c.ok
    assert 0 in c.edge


def test_errors():
    g = pf.Grid(3, 3)
    with pytest.raises(
        pf.TooLarge,
        match="a component has 169 locations, Optimal takes 144: use PPIM, GraphExponential or KRR",
    ):
        pf.Optimal(pf.complete(pf.Grid(13, 13)), epsilon=1.0)
    with pytest.raises(
        pf.InvalidParameter,
        match=r"loss must be one of 'euclidean', 'squared', a matrix or a function of "
        r"\(s, z\), got 'cubic'",
    ):
        pf.Optimal(pf.blocks(g, 3), epsilon=1.0, loss="cubic")
    with pytest.raises(
        pf.InvalidParameter,
        match=r"loss must be 'euclidean', 'squared' or a finite \(9, 9\) matrix",
    ):
        pf.Optimal(pf.blocks(g, 3), epsilon=1.0, loss=np.zeros((2, 2)))
    for prior in (np.ones(4), -np.ones(9), np.zeros(9)):
        with pytest.raises(pf.InvalidParameter, match="prior must be 9 numbers"):
            pf.Optimal(pf.blocks(g, 3), epsilon=1.0, prior=prior)
