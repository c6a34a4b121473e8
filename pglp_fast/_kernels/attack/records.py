"""What inference along the hidden chain takes and gives, as named tuples of arrays.

A person's rows are a chain of short lists, the *states* of a row: the locations that transitions
lead to and the release of that row allows. Between two rows the chain moves once or more."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.growing import with_room
from pglp_fast._kernels.base.jit import kernel

from .guess import STACK, Mass

RELEASED, MAP, VITERBI, BAYES, ONLINE_MAP, ONLINE_BAYES = range(6)
ESTIMATORS = 6

TINY = 1e-280  # sums of probabilities below this are done again with logarithms
TIE = 1e-11  # logarithms that agree to so many digits count as equal

# the matrices of all periods: row i of period k is indptr[k, i]..indptr[k, i + 1]; logs = ln data
Moves = namedtuple("Moves", "indptr indices data logs")
# evidence: rows first[u]..first[u + 1] - 1 of person u, each at its step; the move from step t is
# made by matrix cycle[t % len(cycle)]; the prior (row ``of[u]``) holds at the person's first row
Observations = namedtuple(
    "Observations", "cycle first steps start cells logs of prior_start prior_cells prior_logs"
)
# states of a person's row r at start[r]..start[r + 1]: the location, the index of its best
# predecessor within row r - 1, p^+, ln p^+, ln Pr(z | s), and ln Pr(later z | s)
Messages = namedtuple("Messages", "start cells back p logs likelihood beta")
# a sparse vector: which locations, then by location up to three numbers; value is 0 elsewhere
Layer = namedtuple("Layer", "cells value other origin")
# where gaps are passed: three layers; a bitmask of locations, empty; by location, one more than the
# moves from there to where a gap ends, 0 between uses
Layers = namedtuple("Layers", "here there kept words hops")
# of the targets of a move, by location: p^- or its logarithm, the best path's score, and the state
# that comes from, -1 for none; arbitrary elsewhere
Arrivals = namedtuple("Arrivals", "sum best back")
# where guesses are worked out
Guessing = namedtuple("Guessing", "mass boxes bounds")
# one number for each state of a row: targets and likelihood of a move, scores of paths, the entropy
# of the path from there on, a distribution
Workspace = namedtuple("Workspace", "layers arrivals guessing targets likelihood score future p")
# guesses and errors are (estimators, rows), the next four (rows,), the last two (persons,)
Report = namedtuple(
    "Report", "guesses errors entropy lift online_error online_entropy path_entropy log_evidence"
)


def make_layer(n: int) -> Layer:
    return Layer(np.empty(n, np.int32), np.zeros(n), np.zeros(n), np.empty(n, np.int32))


def make_workspace(n: int, dx: float, dy: float, cols: int) -> Workspace:
    """Work space of one thread, as large as the map. ``dx, dy``: km a lattice step; ``cols``: of a
    grid, 0 for scattered points.

    All of it may be touched, little of it is: NumPy's zeros, unlike a kernel's, are no pass over
    the map."""
    mass = Mass(np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n), dx, dy, cols)
    words = np.zeros((n + 63) >> 6, np.uint64)
    return Workspace(
        Layers(make_layer(n), make_layer(n), make_layer(n), words, np.zeros(n, np.int32)),
        Arrivals(np.empty(n), np.empty(n), np.empty(n, np.int32)),
        Guessing(mass, np.empty((STACK, 5), np.int64), np.empty(max(n, STACK))),
        np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip


@kernel
def make_messages(rows):
    """Room for the messages of a person of so many rows."""
    start, n = np.zeros(rows + 1, np.int64), 1024
    ints = np.empty(n, np.int32), np.empty(n, np.int32)
    return Messages(start, *ints, np.empty(n), np.empty(n), np.empty(n), np.empty(n))


@kernel
def most_rows(first, start, stop):
    """The most rows that any of these persons has."""
    most = 0
    for u in range(start, stop):
        most = max(most, first[u + 1] - first[u])
    return most


@kernel
def with_states(messages, used, n):
    """Messages with room for n states after the first ``used``."""
    if used + n <= messages.cells.shape[0]:
        return messages
    return Messages(
        messages.start,
        with_room(messages.cells, used, n),
        with_room(messages.back, used, n),
        with_room(messages.p, used, n),
        with_room(messages.logs, used, n),
        with_room(messages.likelihood, used, n),
        with_room(messages.beta, used, n),
    )


@kernel
def first_flaw(start, cells, logs, size):
    """(row, what is wrong with it) of the first row that is not one of evidence, or (-1, 0).

    1: a cell off the map; 2: cells do not ascend; 3: a logarithm is NaN or +inf."""
    for row in range(start.shape[0] - 1):
        for k in range(start[row], start[row + 1]):
            if cells[k] < 0 or cells[k] >= size:
                return row, 1
            if k > start[row] and cells[k] <= cells[k - 1]:
                return row, 2
            if not logs[k] < np.inf:
                return row, 3
    return -1, 0
