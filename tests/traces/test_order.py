"""Users are taken by where they are. Nobody can tell from what comes out."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.traces import order


def test_users_are_ordered_by_their_first_place():
    start = np.array([0, 8, 16, 16, 24])
    cells = np.repeat(np.array([5, 2, 9], np.int32), 8)
    assert order.by_place(start, np.append(cells, cells)).tolist() == [1, 0, 2, 3]
    assert not order.by_place(start, cells).size  # too few events for four users
    assert not order.by_place(start[:2], cells).size  # one user


def test_rows_in_an_order_are_put_back():
    which, lengths = np.array([2, 0, 1]), np.array([1, 3, 2])
    rows = np.array([20, 21, 0, 10, 11, 12])
    start, back, pairs = order.rows_of_users(which, lengths, rows, np.stack([rows, -rows], axis=1))
    assert start.tolist() == [0, 1, 4, 6]
    assert back.tolist() == [0, 10, 11, 12, 20, 21]
    assert pairs.tolist() == [[r, -r] for r in back]
    assert order.rows_of_users(which[:0], lengths, rows)[1] is rows


@pytest.fixture(scope="module")
def walkers():
    grid = pf.Grid(12, 12)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")
    rng = np.random.default_rng(3)
    row, col = rng.integers(0, 12, (2, 40))
    cells = np.empty((40, 20), np.int64)
    for t in range(20):
        cells[:, t] = row * 12 + col
        row, col = (np.clip(x + rng.integers(-1, 2, 40), 0, 11) for x in (row, col))
    cells[rng.random(cells.shape) < 0.1] = -1
    cells[7] = -1  # nobody ever sees this one
    return grid, model, cells


@pytest.mark.parametrize("priors", [None, "point"])
@pytest.mark.parametrize("threads", [1, 2])
def test_everybody_gets_what_they_get_one_by_one(walkers, priors, threads):
    """Cells and ledgers of users in an order, as of each user alone, who has none."""
    grid, model, cells = walkers
    before = pf.get_num_threads()
    pf.set_num_threads(threads)
    try:
        T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, rng=4)
        together = T.run(cells, priors)
        for u in range(len(cells)):
            alone = T.run(cells[u : u + 1], priors, users=[u])
            assert np.array_equal(together.released[u], alone.released[0])
            assert np.array_equal(together.domain_size[u], alone.domain_size[0])
            whole, own = together.certificate, alone.certificate
            assert whole.epsilon(u) == own.epsilon(0)
            assert np.array_equal(whole.graph(u).edges(), own.graph(0).edges())
    finally:
        pf.set_num_threads(before)


def test_attacks_find_the_same_in_any_order(walkers):
    """The likelihoods belong to the right events."""
    grid, model, cells = walkers
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, rng=4)
    ahead = np.random.default_rng(0).permutation(len(cells))
    one = pf.attack(T.run(cells, evidence=True), truth=cells)
    other = pf.attack(T.run(cells[ahead], users=ahead, evidence=True), truth=cells[ahead])
    assert np.array_equal(one.bayes[ahead], other.bayes)
    assert np.allclose(one.expected_error[ahead], other.expected_error, rtol=1e-12, equal_nan=True)
