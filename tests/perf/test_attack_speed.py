"""Attacks against the releases they attack, against SciPy's products, and against themselves on
a larger map."""

import time

import numpy as np
import pytest

import pglp_fast as pf
from benchmarks.attacks import releases
from pglp_fast._kernels.attack import estimates, guess, records as kernels
from pglp_fast.adversary.attack_inputs import moves_of, observations_of, workspace_of


@pytest.mark.parametrize("k", [3, 5])
def test_an_attack_costs_a_few_releases(k, ratio, promise):
    """Filter, smooth, Viterbi, Bayes, entropies and lift of 1,000 users x 100 steps, blocks of k x
    k, 9 moves a cell, against ``TraceReleaser.run`` with exact likelihoods, which made the very
    releases. (A release took as long as an attack before it knew domains by their pattern.)"""
    evidence, truth = releases(300, 1000, 100)
    releaser = pf.TraceReleaser(
        pf.blocks(evidence.model.locations, k), evidence.model, epsilon=1.0, rng=0
    )
    prior = evidence.model.stationary()
    found = releaser.run(truth, prior, evidence=True)
    value = ratio(lambda: pf.attack(found), lambda: releaser.run(truth, prior), rounds=1)
    promise(value, 2.5, "attack / release")


def test_an_attack_is_far_cheaper_than_dense_products(ratio, promise):
    """Forward and backward alone are two products with M for each user-step: SciPy's take 20
    times as long as ours, at least."""
    evidence, _ = releases(300, 64, 100)
    matrix = evidence.model.matrix()
    p = np.full(matrix.shape[0], 1 / matrix.shape[0])
    before = pf.get_num_threads()
    pf.set_num_threads(1)
    try:
        value = (
            ratio(
                lambda: pf.attack(evidence),
                lambda: [(p @ matrix, matrix @ p) for _ in range(64)],
                rounds=2,
            )
            / 100
        )
    finally:
        pf.set_num_threads(before)
    promise(value, 1 / 20)


def test_the_cost_of_a_step_does_not_grow_with_the_map(promise):
    """200 users on 300 x 300 and on 1,800 x 1,800, the best of several runs of CPU time each:
    would catch a pass over the map."""
    times = {}
    for side in (300, 1800):
        evidence, _ = releases(side, 200, 100)
        seen, moves = observations_of(evidence), moves_of(evidence.model)
        locations = evidence.model.locations
        persons, n = evidence.persons, len(evidence.released)
        cells, numbers = np.full((kernels.ESTIMATORS, n), -1, np.int32), np.empty((10, n))
        cells[kernels.RELEASED] = evidence.released
        report = kernels.Report(cells, numbers[:6], *numbers[6:], *np.empty((2, persons)))
        each = []
        for _ in range(6):
            started = time.thread_time()
            estimates.attack_persons(
                moves, moves, seen, locations.lattice, workspace_of(locations), 0, persons, report,
                np.empty(persons, np.int64),
            )  # fmt: skip
            each.append(time.thread_time() - started)
        times[side] = min(each)
        print(f"{side} x {side}: {times[side] / n * 1e6:.1f} us of one core a user-step")
    promise(times[1800] / times[300], 1.6)


def test_the_best_guess_over_the_whole_map_takes_a_few_sums(ratio, promise):
    """90,000 cells, any of which may be the answer: at most 40 sums of distances, not 90,000."""
    w = np.random.default_rng(0).dirichlet(np.ones(90_000))
    y, x = np.divmod(np.arange(90_000), 300)
    mass = guess.Mass(
        np.arange(90_000, dtype=np.int32), x.astype(float), y.astype(float), w, 1.0, 1.0, 300
    )
    space = np.empty((guess.STACK, 5), np.int64), np.empty(90_000)
    value = ratio(
        lambda: guess.best_guess(mass, 90_000, *space),
        lambda: guess.expected_distance(mass, 90_000, 7, 9),
    )
    promise(value, 40)
