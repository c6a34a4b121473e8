"""Attacks against the releases they attack, against SciPy's products, and against themselves on a larger map."""

import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast import attacks
from pglp_fast._kernels import attack as kernels
from pglp_fast._kernels import guess

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.attacks import releases

pytestmark = [pytest.mark.perf, pytest.mark.skipif(numba.config.DISABLE_JIT, reason="times compiled code")]


@pytest.mark.parametrize("k", [3, 5])
def test_an_attack_is_cheaper_than_the_release(k, ratio):
    """Filter, smooth, Viterbi, Bayes, entropies and lift of 1,000 users x 100 steps, blocks of k x k, 9 moves a cell, against
    ``TraceReleaser.run`` with exact likelihoods, which made the very releases."""
    evidence, truth = releases(300, 1000, 100)
    releaser = pf.TraceReleaser(pf.blocks(evidence.model.locations, k), evidence.model, epsilon=1.0, rng=0)
    prior = evidence.model.stationary()
    found = releaser.run(truth, prior, evidence=True)
    value = ratio(lambda: pf.attack(found), lambda: releaser.run(truth, prior), rounds=1)
    print(f"attack / release: {value:.2f}")
    assert value <= 1.0


def test_an_attack_is_far_cheaper_than_dense_products(ratio):
    """Forward and backward alone are two products with M for each user-step: SciPy's take 20 times as long as ours, at least."""
    evidence, _ = releases(300, 64, 100)
    matrix = evidence.model.matrix()
    p = np.full(matrix.shape[0], 1 / matrix.shape[0])
    before = pf.get_num_threads()
    pf.set_num_threads(1)
    try:
        value = ratio(lambda: pf.attack(evidence), lambda: [(p @ matrix, matrix @ p) for _ in range(64)], rounds=2) / 100
    finally:
        pf.set_num_threads(before)
    print(f"a user-step takes 1 / {1 / value:.0f} of two dense products")
    assert value <= 1 / 20


def test_the_cost_of_a_step_does_not_grow_with_the_map():
    """200 users on 300 x 300 and on 1,800 x 1,800, the best of several runs of CPU time each: would catch a pass over the map."""
    times = {}
    for side in (300, 1800):
        evidence, _ = releases(side, 200, 100)
        seen, moves, place = attacks._check(evidence), attacks._moves(evidence), attacks._place(evidence)
        n, T = evidence.shape
        cells, numbers = np.full((kernels.ESTIMATORS, n, T), -1, np.int32), np.empty((kernels.ESTIMATORS, n, T))
        cells[kernels.RELEASED] = evidence.released
        report = kernels.Report(cells, numbers, *(np.empty((n, T)) for _ in range(4)), np.empty(n), np.empty(n))
        each = []
        for _ in range(6):
            started = time.thread_time()
            kernels.attack_users(moves, seen, *place, 0, n, report, np.empty(n, np.int64))
            each.append(time.thread_time() - started)
        times[side] = min(each)
        print(f"{side} x {side}: {times[side] / n / T * 1e6:.1f} us of one core a user-step")
    assert times[1800] <= 1.6 * times[300]


def test_the_best_guess_over_the_whole_map_takes_a_few_sums(ratio):
    """90,000 cells, any of which may be the answer: at most 40 sums of distances, not 90,000."""
    w = np.random.default_rng(0).dirichlet(np.ones(90_000))
    y, x = np.divmod(np.arange(90_000), 300)
    mass = guess.Mass(np.arange(90_000, dtype=np.int32), x.astype(float), y.astype(float), w, 1.0, 1.0, 300)
    space = np.empty((guess.STACK, 5), np.int64), np.empty(90_000)
    value = ratio(lambda: guess.best_guess(mass, 90_000, *space), lambda: guess.expected_distance(mass, 90_000, 7, 9))
    print(f"{value:.0f} sums")
    assert value <= 40
