"""What is reported of the adversary's distributions: guesses, expected errors, entropies."""

import numpy as np

from pglp_fast._kernels.base.jit import kernel

from .backward import smooth_person, smoothed
from .forward_viterbi import filter_person
from .guess import best_guess, expected_distance
from .records import (
    BAYES,
    ESTIMATORS,
    MAP,
    ONLINE_BAYES,
    ONLINE_MAP,
    TIE,
    VITERBI,
    make_messages,
    most_rows,
)


@kernel
def _entropy(p, from_p, logs, beta, begin, end, shift):
    """-sum p log2 p, for ln p = logs + beta - shift of the states begin..end-1.

    ``p`` of the first of them is at ``from_p``."""
    total = 0.0
    for k in range(begin, end):
        if p[from_p + k - begin] > 0.0:
            total -= p[from_p + k - begin] * (logs[k] + beta[k] - shift)
    return max(total / np.log(2.0), 0.0)


@kernel
def _most_likely(logs, beta, begin, end):
    """The state of the largest logs + beta, counted from ``begin``; ties to the lower."""
    best, at = -np.inf, begin
    for k in range(begin, end):
        value = logs[k] + beta[k]
        if value > best and value - TIE * (1.0 + abs(value)) > best:
            best, at = value, k
    return at - begin


@kernel
def place_mass(cells, p, lattice, mass):
    """Put a distribution on the lattice; returns how many locations have any of it."""
    listed, x, y, w = mass.cells, mass.x, mass.y, mass.w
    n = 0
    for k in range(cells.shape[0]):
        if p[k] > 0.0:
            listed[n], w[n] = cells[k], p[k]
            x[n], y[n] = lattice[cells[k], 0], lattice[cells[k], 1]
            n += 1
    return n


@kernel
def guess_of(cells, p, lattice, guessing):
    """(location of least expected distance, that distance, how many locations have any mass)."""
    n = place_mass(cells, p, lattice, guessing.mass)
    guess, error = best_guess(guessing.mass, n, guessing.boxes, guessing.bounds)
    return guess, error, n


@kernel
def _report_online(messages, first, rows, lattice, guessing, report):
    """Guesses, expected errors and entropies under p_t^+ of a person's rows; ``beta`` is all 0."""
    start, cells, _, p, logs, _, zero = messages
    guesses, errors, entropies = report.guesses, report.online_error, report.online_entropy
    for r in range(rows):
        begin, end, row = start[r], start[r + 1], first + r
        entropies[row] = _entropy(p, begin, logs, zero, begin, end, 0.0)
        guesses[ONLINE_MAP, row] = cells[begin + _most_likely(logs, zero, begin, end)]
        guesses[ONLINE_BAYES, row], errors[row], _ = guess_of(
            cells[begin:end], p[begin:end], lattice, guessing
        )


@kernel
def _report_smoothed(messages, first, rows, walker, lattice, space, report):
    """Guesses, expected errors and entropies under Pr(s_t | all z) of a person's rows, backward.

    ``walker``: the last state of the most likely path. ``space.p`` is left as that of the first
    row."""
    start, cells, back, _, logs, _, beta = messages
    guesses, errors, entropies = report.guesses, report.errors, report.entropy
    guessing, p = space.guessing, space.p
    mass = guessing.mass
    for r in range(rows - 1, -1, -1):
        begin, end, row = start[r], start[r + 1], first + r
        shift = smoothed(logs, beta, begin, end, p)
        entropies[row] = _entropy(p, 0, logs, beta, begin, end, shift)
        guesses[MAP, row] = cells[begin + _most_likely(logs, beta, begin, end)]
        guesses[VITERBI, row] = cells[begin + walker]
        walker = back[begin + walker]
        guesses[BAYES, row], errors[BAYES, row], n = guess_of(
            cells[begin:end], p, lattice, guessing
        )
        for who in range(ESTIMATORS):
            if who != BAYES:
                x, y = lattice[guesses[who, row], 0], lattice[guesses[who, row], 1]
                errors[who, row] = expected_distance(mass, n, x, y)


@kernel
def attack_persons(moves, turned, seen, lattice, space, start, stop, report, failed):
    """The whole attack on persons start..stop-1.

    ``report.guesses[RELEASED]`` is given; everything else is filled in. ``failed[u]`` is the row
    whose release is impossible, or -1."""
    messages = make_messages(most_rows(seen.first, start, stop))
    for u in range(start, stop):
        first, rows = seen.first[u], seen.first[u + 1] - seen.first[u]
        messages, report.log_evidence[u], failed[u] = filter_person(
            moves, turned, seen, u, space, messages, report.lift
        )
        if failed[u] >= 0 or rows == 0:
            continue
        messages.beta[: messages.start[rows]] = 0.0
        n = messages.start[rows] - messages.start[rows - 1]
        walker = _most_likely(space.score, messages.beta, 0, n)
        _report_online(messages, first, rows, lattice, space.guessing, report)
        smooth_person(moves, turned, seen, u, space, messages, rows - 1)
        _report_smoothed(messages, first, rows, walker, lattice, space, report)
        ahead = 0.0
        for k in range(messages.start[1]):
            ahead += space.p[k] * space.future[k]
        report.path_entropy[u] = ahead / np.log(2.0) + report.entropy[first]


@kernel
def expected_errors(moves, turned, seen, lattice, space, start, stop, guesses, errors):
    """errors[row] = expected distance of guesses[row] (-1: none) under Pr(s_t | all z)."""
    lift = np.empty(seen.steps.shape[0])
    messages, mass = make_messages(most_rows(seen.first, start, stop)), space.guessing.mass
    for u in range(start, stop):
        first, rows = seen.first[u], seen.first[u + 1] - seen.first[u]
        messages, _, _ = filter_person(moves, turned, seen, u, space, messages, lift)
        if rows > 0:
            smooth_person(moves, turned, seen, u, space, messages, rows - 1)
        for r in range(rows):
            begin, end, guess = messages.start[r], messages.start[r + 1], guesses[first + r]
            if guess >= 0:
                smoothed(messages.logs, messages.beta, begin, end, space.p)
                n = place_mass(messages.cells[begin:end], space.p, lattice, mass)
                x, y = lattice[guess, 0], lattice[guess, 1]
                errors[first + r] = expected_distance(mass, n, x, y)


@kernel
def posterior_at(moves, turned, seen, space, u, row, all_releases, out):
    """out (N,) = Pr(s_t | all z) at a row of person u, or p_t^+ where not ``all_releases``."""
    r, rows = row - seen.first[u], seen.first[u + 1] - seen.first[u]
    messages = make_messages(rows)
    lift = np.empty(seen.steps.shape[0])
    messages, _, _ = filter_person(moves, turned, seen, u, space, messages, lift)
    smooth_person(moves, turned, seen, u, space, messages, rows - 1 if all_releases else r)
    begin, end = messages.start[r], messages.start[r + 1]
    smoothed(messages.logs, messages.beta, begin, end, space.p)
    for k in range(end - begin):
        out[messages.cells[begin + k]] = space.p[k]
