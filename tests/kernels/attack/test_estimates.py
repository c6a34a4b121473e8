"""Guesses, expected errors and entropies of a user against every path there is."""

import numpy as np
import pytest

import naive_attacks as naive
from cases import HiddenWalk
from pglp_fast._kernels.attack import estimates as kernels, records


def report_of(steps):
    cells, numbers = np.zeros((6, steps), np.int32), np.full((6, steps), np.nan)
    return records.Report(
        cells, numbers, *(np.full(steps, np.nan) for _ in range(4)), np.empty(1), np.empty(1)
    )


def expected(xy, p, cell):
    return float(sum(w * np.hypot(*(xy[cell] - xy[s])) for s, w in enumerate(p)))


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_attack(seed):
    walk = HiddenWalk(seed)
    report, failed = report_of(walk.steps), np.empty(1, np.int64)
    how = walk.moves, walk.moves, walk.seen, walk.lattice, walk.workspace()
    kernels.attack_persons(*how, 0, 1, report, failed)
    assert failed[0] == -1
    assert report.log_evidence[0] == pytest.approx(walk.paths.log_evidence(), rel=1e-12)
    assert report.path_entropy[0] == pytest.approx(walk.paths.path_entropy(), rel=1e-10)
    assert tuple(report.guesses[records.VITERBI].tolist()) == walk.paths.viterbi()
    xy, every = walk.grid.xy(np.arange(walk.size)), np.arange(walk.size)
    for t in range(walk.steps):
        for exact, guess, error, entropy in (
            (walk.paths.smoothed(t), records.BAYES, report.errors[records.BAYES], report.entropy),
            (
                walk.paths.filtered(t),
                records.ONLINE_BAYES,
                report.online_error,
                report.online_entropy,
            ),
        ):
            p = np.array([float(x) for x in exact])
            cell, least = naive.guess_dense(xy, p, every)
            assert report.guesses[guess, t] == cell
            assert error[t] == pytest.approx(least, rel=1e-9)
            assert entropy[t] == pytest.approx(naive.entropy_bits(exact), rel=1e-9)
        smoothed = np.array([float(x) for x in walk.paths.smoothed(t)])
        assert report.guesses[records.MAP, t] == smoothed.argmax()
        assert report.errors[records.MAP, t] == pytest.approx(
            expected(xy, smoothed, smoothed.argmax()), rel=1e-9
        )


def test_errors_of_given_guesses():
    walk = HiddenWalk(1)
    guesses, errors = np.array([0, -1, 3, 4], np.int32), np.full(4, np.nan)
    how = walk.moves, walk.moves, walk.seen, walk.lattice, walk.workspace()
    kernels.expected_errors(*how, 0, 1, guesses, errors)
    xy = walk.grid.xy(np.arange(walk.size))
    for t, cell in enumerate(guesses.tolist()):
        if cell >= 0:
            p = [float(x) for x in walk.paths.smoothed(t)]
            assert errors[t] == pytest.approx(expected(xy, p, cell), rel=1e-10)
    assert np.isnan(errors[1])


@pytest.mark.parametrize("every", [True, False])
def test_the_posterior_of_a_step(every):
    walk = HiddenWalk(2)
    for t in range(walk.steps):
        out = np.zeros(walk.size)
        kernels.posterior_at(walk.moves, walk.moves, walk.seen, walk.workspace(), 0, t, every, out)
        exact = walk.paths.smoothed(t) if every else walk.paths.filtered(t)
        assert out == pytest.approx([float(x) for x in exact], rel=1e-10, abs=1e-300)
