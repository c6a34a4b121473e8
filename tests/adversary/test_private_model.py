"""A private model: the sensitivity of its counts, its noise, and that nothing else tells."""

import math

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.adversary import fitting
from pglp_fast.adversary.private_counts import Private

GRID = pf.Grid(4, 5, cell_km=1.0)


def exact_counts(traces, contribution, monkeypatch, persons=None, periods=1):
    """The counts before noise, as the library makes them."""
    found = []
    monkeypatch.setattr(Private, "noise", lambda self, count: np.zeros(count, np.int64))
    real = fitting._private_counts
    monkeypatch.setattr(
        fitting, "_private_counts", lambda *given: found.append(real(*given)) or found[-1]
    )
    pf.MobilityModel.fit(
        GRID, traces, private=1.0, contribution=contribution, persons=persons, periods=periods
    )
    monkeypatch.undo()
    return found[0]


def random_traces(rng, users, steps):
    """Walks to the cells around, with jumps and gaps."""
    cells = rng.integers(0, GRID.size, (users, steps))
    for t in range(1, steps):
        row, col = np.divmod(cells[:, t - 1], GRID.cols)
        row = np.clip(row + rng.integers(-1, 2, users), 0, GRID.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, GRID.cols - 1)
        cells[:, t] = np.where(rng.random(users) < 0.8, row * GRID.cols + col, cells[:, t])
    cells[rng.random(cells.shape) < 0.1] = -1
    return cells


@pytest.mark.parametrize("seed", range(8))
def test_adding_a_person_changes_the_counts_by_at_most_the_contribution(seed, monkeypatch):
    """The L1 sensitivity, on neighbouring data: would catch a bound on traces instead of persons,
    or on moves before those that are no candidates are left out."""
    rng = np.random.default_rng(seed)
    traces, contribution = random_traces(rng, 9, 30), int(rng.integers(1, 25))
    persons, periods = rng.integers(0, 4, 9), int(rng.integers(1, 3))
    for gone in range(4):
        keep = persons != gone
        with_, without = (
            exact_counts(traces[some], contribution, monkeypatch, persons[some], periods)
            for some in (np.ones(9, bool), keep)
        )
        moved = abs(with_ - without).sum()
        assert moved <= contribution
    one = exact_counts(traces[persons == persons[0]], contribution, monkeypatch)
    assert one.sum() > 0


def test_the_bound_is_reached(monkeypatch):
    """Would catch a bound that cuts off more than it says."""
    still = np.zeros((1, 100), int)
    assert exact_counts(still, 20, monkeypatch).sum() == 20
    assert exact_counts([[0, 1, 2], [2, 3]], 20, monkeypatch, persons=["a", "a"]).sum() == 3
    assert exact_counts([[0, 1, 2], [2, 3]], 2, monkeypatch, persons=["a", "a"]).sum() == 2


def test_noise_is_two_sided_geometric():
    """Pr(k) = (1 - r) / (1 + r) r^|k|, r = e^(-epsilon / contribution): a wrong scale, or noise on
    one side, would be far off. 200,000 draws, five standard errors."""
    how, n = Private(0.7, 3, rng=11), 200_000
    draws, ratio = how.noise(n), math.exp(-0.7 / 3)
    for k in range(-6, 7):
        p = (1 - ratio) / (1 + ratio) * ratio ** abs(k)
        assert (draws == k).mean() == pytest.approx(p, abs=5 * math.sqrt(p / n))
    assert draws.std() == pytest.approx(how.deviation, rel=0.02)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.012


def test_every_candidate_gets_noise_whatever_was_seen():
    """Would catch noise on observed moves alone, whose support tells who was where."""
    here, there = (pf.MobilityModel.fit(GRID, [[cell] * 5], private=0.1, rng=3) for cell in (0, 19))
    both = pf.neighbours8(GRID).n_edges * 2 + GRID.size
    for model in (here, there):
        assert len(model.chains[0].data) == both
        rows = model.matrix().sum(axis=1)
        np.testing.assert_allclose(rows, 1.0, atol=1e-12)
        assert len(np.unique(model.matrix().data)) > 20
    assert np.array_equal(here.chains[0].indices, there.chains[0].indices)


def test_with_much_data_it_is_the_model():
    rng = np.random.default_rng(0)
    traces = random_traces(rng, 4000, 21)
    smooth = pf.MobilityModel.fit(GRID, traces, smoothing="neighbours8").matrix().toarray()
    private = pf.MobilityModel.fit(GRID, traces, private=4.0, contribution=20, rng=1)
    around = private.matrix().toarray() > 0
    smooth[~around] = 0
    smooth /= smooth.sum(axis=1, keepdims=True)
    assert abs(private.matrix().toarray() - smooth).max() < 0.02


def test_unseeded_models_differ_and_the_promise_is_kept_beside(tmp_path):
    one, other = (pf.MobilityModel.fit(GRID, [[0, 1]], private=1.0) for _ in range(2))
    assert (one.matrix() != other.matrix()).nnz
    one.save(tmp_path / "m.npz")
    kept = pf.MobilityModel.open(tmp_path / "m.npz").notes["private"]
    assert kept == {"epsilon": 1.0, "contribution": 20}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"private": 0.0}, "epsilon"),
        ({"private": 1.0, "contribution": 0}, "contribution"),
        ({"private": 1.0, "persons": ["a", "b"]}, "persons has 2 names for 1 traces"),
        ({"persons": ["a"]}, "are for private"),
        ({"rng": 1}, "are for private"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(pf.PGLPError, match=message):
        pf.MobilityModel.fit(GRID, [[0, 1]], **options)
    with pytest.raises(pf.InvalidParameter, match="needs a Grid"):
        pf.MobilityModel.fit(pf.Points([[0, 0], [1, 1]]), [[0, 1]], private=1.0)


@pytest.mark.parametrize(
    "names",
    [[7, 7.0], [True, "true"], ["7", 7], ["7.0", " 7"], ["José", "Jose\u0301"], [b"a", "a"]],
)
def test_a_person_counts_once_whatever_its_name_is_written_like(names, monkeypatch):
    """Would catch names compared as Python prints them: each spelling had a contribution."""
    traces = [np.tile([0, 1], 30), np.tile([1, 0], 30)]
    for persons in (names, np.array(names, object)):
        assert exact_counts(traces, 5, monkeypatch, persons).sum() == 5
    assert exact_counts(traces, 5, monkeypatch, ["a", "b"]).sum() == 10


@pytest.mark.parametrize("nobody", [None, np.nan, float("nan"), np.datetime64("NaT"), 7.5, []])
def test_names_of_nobody_are_refused(nobody):
    traces = [[0, 1], [1, 0]]
    with pytest.raises(pf.InvalidTransition, match="persons must be whole numbers or text"):
        pf.MobilityModel.fit(GRID, traces, private=1.0, persons=["a", nobody])


@pytest.mark.parametrize(("epsilon", "contribution"), [(1e-9, 1 << 31), (1e-15, 1), (1e-12, 20)])
def test_noise_that_floats_do_not_count_is_refused(epsilon, contribution):
    """Would catch sums that overflow, and noise that is even wherever it is large, so that the
    lowest bit of a count shows."""
    with pytest.raises(pf.InvalidParameter, match="contribution / epsilon is"):
        Private(epsilon, contribution)
    with pytest.raises(pf.InvalidParameter, match="contribution / epsilon is"):
        pf.MobilityModel.fit(GRID, [[0, 1]], private=epsilon, contribution=contribution)


def test_the_largest_noise_has_all_its_low_bits():
    noise = Private(2.0**-20, 1 << 20, 5).noise(100_000)
    assert abs(noise).max() < 2**46
    for bit in range(4):
        ones = int((noise >> bit & 1).sum())
        assert abs(ones - 50_000) < 5 * math.sqrt(25_000)
