"""Attacks on released traces: the whole of it, what steps without release cost, and the best
guess by itself."""

import numpy as np

import pglp_fast as pf
from pglp_fast._kernels.attack import guess
from pglp_fast.adversary.priors import make_priors


def releases(side, users, steps, radius=2, missing=0.0, seed=0):
    """(evidence, truth): walks on side x side, released within a cell, (2 radius + 1)^2
    locations possible at each release."""
    grid = pf.Grid(side, side)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, side, (2, users))
    dy, dx = np.mgrid[-radius : radius + 1, -radius : radius + 1].reshape(2, -1)
    truth, released = np.empty((2, users, steps), np.int32)
    cells, logs = np.empty((users, steps, len(dx)), np.int32), np.empty((users, steps, len(dx)))
    for t in range(steps):
        truth[:, t] = row * side + col
        y, x = (
            np.clip(v + rng.integers(-1, 2, users), radius, side - 1 - radius) for v in (row, col)
        )
        released[:, t] = y * side + x
        cells[:, t] = released[:, t, None] + dy * side + dx
        logs[:, t] = -np.hypot(dx, dy)
        row, col = (np.clip(v + rng.integers(-1, 2, users), 0, side - 1) for v in (row, col))
    kept = rng.random((users, steps)) >= missing
    kept[:, 0] = True
    released[~kept] = -1
    return pf.Evidence.of_array(
        model,
        make_priors(model, None, users),
        [0],
        released,
        kept * len(dx),
        cells[kept].ravel(),
        logs[kept].ravel(),
    ), truth


class Attack:
    """1,000 users x 100 steps on 300 x 300, 9 moves from each cell; divide by 100,000 for a
    user-step."""

    params = [[9, 25, 81], [0.0, 0.3], [1, 2]]
    param_names = ["support", "missing", "threads"]

    def setup(self, support, missing, threads):
        pf.set_num_threads(threads)
        radius = (int(support**0.5) - 1) // 2
        self.evidence, self.truth = releases(300, 1000, 100, radius, missing)
        pf.attack(releases(30, 20, 3, radius)[0])

    def time_attack(self, support, missing, threads):
        pf.attack(self.evidence)

    def time_table(self, support, missing, threads):
        pf.attack(self.evidence, self.truth).table()


class BestGuess:
    """The cell of least expected distance: a few cells, cells far apart, the whole map; beside
    one sum of distances."""

    params = [["5 x 5", "25 of 300 x 300", "300 x 300"]]
    param_names = ["mass"]

    def setup(self, mass):
        rng = np.random.default_rng(0)
        side = 5 if mass == "5 x 5" else 300
        cells = (
            np.sort(rng.choice(side * side, 25, replace=False))
            if mass.startswith("25 of")
            else np.arange(side * side)
        )
        y, x = np.divmod(cells, side)
        w = rng.dirichlet(np.ones(len(cells)))
        self.mass = guess.Mass(
            cells.astype(np.int32), x.astype(float), y.astype(float), w, 1.0, 1.0, side
        )
        self.space = np.empty((guess.STACK, 5), np.int64), np.empty(max(guess.STACK, len(cells)))
        self.time_guess(mass), self.time_one_sum(mass)

    def time_guess(self, mass):
        guess.best_guess(self.mass, len(self.mass.w), *self.space)

    def time_one_sum(self, mass):
        guess.expected_distance(self.mass, len(self.mass.w), 2, 2)
