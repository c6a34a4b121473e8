"""The best guess of an adversary who sees no release at all."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel

from .estimates import guess_of
from .gaps import PLAIN, empty_layer, pass_gap

_SETTLED = 1e-13  # a distribution that changed by less has the same guess


@kernel
def _change(cells, p, known, settled, n):
    """sum |p - settled| of two sparse distributions of n locations each."""
    change = 0.0
    for k in range(n):
        change += abs(p[k] - settled[k]) if cells[k] == known[k] else p[k] + settled[k]
    return change


@kernel
def guess_unseen(
    moves, turned, seen, lattice, space, rows, steps, first, after, start, stop, guesses
):  # fmt: skip
    """guesses[k], k = first[g]..first[g + 1] - 1: the best one ``after[k]`` moves from the prior.

    Of groups start..stop-1: the prior ``rows[g]`` at step ``steps[g]``; ``after`` ascends. Plain
    probabilities: what underflows is of no use to a guess."""
    size = lattice.shape[0]
    layers, p = space.layers, np.empty(size)
    known, settled = np.empty(size, np.int32), np.empty(size)
    for g in range(start, stop):
        low = seen.prior_start[rows[g]]
        n, here = seen.prior_start[rows[g] + 1] - low, layers.here
        for k in range(n):
            here.cells[k] = seen.prior_cells[low + k]
            here.value[here.cells[k]] = np.exp(seen.prior_logs[low + k])
        n_known, moved = -1, 0
        for at in range(first[g], first[g + 1]):
            layers, n, _, _, _ = pass_gap(
                moves, turned, seen.cycle, steps[g] + moved, 1, after[at] - moved, PLAIN, n, layers
            )
            moved, here = after[at], layers.here
            for k in range(n):
                p[k] = here.value[here.cells[k]]
            if n_known == n and _change(here.cells, p, known, settled, n) <= _SETTLED:
                guesses[at] = guesses[at - 1]
                continue
            n_known = n
            for k in range(n):
                known[k], settled[k] = here.cells[k], p[k]
            guesses[at], _, _ = guess_of(here.cells[:n], p, lattice, space.guessing)
        empty_layer(here, n)
