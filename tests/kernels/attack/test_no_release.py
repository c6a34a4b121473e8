"""Guesses without any release against dense products."""

import numpy as np
import pytest

import naive_attacks as naive
from cases import HiddenWalk
from pglp_fast._kernels.attack import no_release


@pytest.mark.parametrize("seed", range(3))
def test_guesses_follow_the_moved_prior(seed):
    walk = HiddenWalk(seed)
    guesses, one = np.full(walk.steps, -1, np.int32), np.zeros(1, np.int64)
    first, after = np.array([0, walk.steps]), np.arange(walk.steps)
    space = walk.workspace()
    how = walk.moves, walk.turned, walk.seen, walk.lattice, space, one, one, first, after, 0, 1
    no_release.guess_unseen(*how, guesses)
    xy, every = walk.grid.xy(np.arange(walk.size)), np.arange(walk.size)
    p = np.array([float(x) for x in walk.paths.prior])
    for t in range(walk.steps):
        if t > 0:
            p = p @ np.array([[float(x) for x in row] for row in walk.paths.moves[t]])
        assert guesses[t] == naive.guess_dense(xy, p, every)[0]


def test_a_settled_prior_keeps_its_guess():
    """Moves that change nothing: the guess is not made again, and stays."""
    walk = HiddenWalk(0)
    stay = walk.moves._replace(
        indptr=np.tile(np.arange(6), (2, 1)), indices=np.arange(5, dtype=np.int32),
        data=np.ones(5), logs=np.zeros(5),
    )  # fmt: skip
    guesses, one = np.full(4, -1, np.int32), np.array([0])
    first, after = np.array([0, 4]), np.array([0, 1, 2, 9])
    how = stay, stay, walk.seen, walk.lattice, walk.workspace(), one, one, first, after, 0, 1
    no_release.guess_unseen(*how, guesses)
    assert len(set(guesses.tolist())) == 1
