"""Traces of a data set released many times, and what became of them step by step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf

from .data import Movement
from .setup import Setup

EPSILON = 1.0
SIDES = {"G_k9": 3, "G_k16": 4, "G_k25": 5}
OTHERS, EVERYONE = "learned from others", "learned from everyone"
LETTER = "graph calibration, known start"
OPTIONS: dict[str, dict[str, Any]] = {
    "P-LM": {"mechanism": "plm"},
    "P-PIM": {"mechanism": "ppim"},
    "P-PIM remapped": {"mechanism": "ppim", "remap": "euclidean"},
    "Optimal": {"mechanism": "optimal"},
}
# the paper's algorithms for isolated nodes and graph repair to the letter, from a start that the
# adversary knows: the domain then grows from a single location
_TO_THE_LETTER = {"mechanism": "ppim", "calibration": "graph", "likelihood": "density"}

# fields of a series, and what they are called in the table
METRICS = {
    "error": "e_eu",
    "adversary": "adversary",
    "online": "adversary_online",
    "domain": "domain_size",
    "isolated": "isolated",
    "surrogate": "surrogate",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """What one releaser did to the users of a data set; arrays are (users, T), means over
    repetitions, NaN where nothing is.

    Attributes
    ----------
    error : E_eu, km
    adversary : distance from the truth of the best guess that knows all releases, km; None where no
        attack was made
    online : the same, of the best guess that knows the releases so far
    domain : |C_t|
    isolated : share of C_t that stood exposed before the repair
    surrogate : share of releases whose true location the model called impossible
    """

    data: str
    policy: str
    mechanism: str
    setting: str
    error: Floats
    adversary: Floats | None
    online: Floats | None
    domain: Floats
    isolated: Floats
    surrogate: Floats

    @property
    def by_user(self) -> Floats:
        """Mean error of each user, over the timestamps."""
        return np.asarray(np.nanmean(self.error, axis=1))


def release(movement: Movement, setting: str, policy: str, mechanism: str, setup: Setup) -> Series:
    """All users and repetitions at once; each has randomness of its own."""
    letter = setting == LETTER
    known = movement.everyone if setting == EVERYONE else movement.others
    releaser = pf.TraceReleaser(
        pf.blocks(movement.grid, SIDES[policy]),
        known.model,
        epsilon=EPSILON,
        rng=setup.seed_of("traces", movement.name, setting, policy, mechanism),
        **(_TO_THE_LETTER if letter else OPTIONS[mechanism]),
    )
    kinds = ("error", "domain", "isolated", "surrogate") if letter else tuple(METRICS)
    out = {kind: np.full(movement.truth.shape, np.nan) for kind in kinds}
    how = {"priors": "point" if letter else known.prior, "evidence": not letter}
    for some, truth, run in repeated(releaser, movement.truth, setup.repetitions, **how):
        found = {
            "error": distances(movement.grid, truth, run.released),
            "domain": run.domain_size,
            "surrogate": run.surrogate,
        }
        found["isolated"] = run.isolated / np.maximum(run.domain_size, 1)
        if not letter:
            guesses = pf.attack(run)
            found["adversary"] = distances(movement.grid, truth, guesses.bayes)
            found["online"] = distances(movement.grid, truth, guesses.online_bayes)
        for kind, values in found.items():
            put_means(out[kind], some, truth, values)
    return Series(
        movement.name,
        policy,
        mechanism,
        setting,
        out["error"],
        out.get("adversary"),
        out.get("online"),
        out["domain"],
        out["isolated"],
        out["surrogate"],
    )


def repeated(
    releaser: pf.TraceReleaser, truth: NDArray[np.int32], repetitions: int, **how: Any
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], Any]]:
    """(some users, their traces so many times each, what became of these).

    Traces that end earlier apart: beyond its end a belief would spread over the whole map, at great
    cost and to no use."""
    lengths = truth.shape[1] - np.argmax(truth[:, ::-1] >= 0, axis=1)
    for length in np.unique(lengths):
        some = np.flatnonzero(lengths == length)
        numbers = (some[:, None] * repetitions + np.arange(repetitions)).ravel()
        each = np.repeat(truth[some, :length], repetitions, axis=0)
        yield some, each, releaser.run(each, users=numbers, **how)


def put_means(
    out: Floats, some: NDArray[np.int64], truth: NDArray[np.int32], values: NDArray[Any]
) -> None:
    """Means over the repetitions of some users, where there is something."""
    seen, length = np.where(truth >= 0, values, np.nan), truth.shape[1]
    out[some, :length] = seen.reshape(len(some), -1, length).mean(axis=1)


def distances(grid: Any, truth: NDArray[np.int32], cells: NDArray[np.int32]) -> Floats:
    """From the true cells, in km; NaN where there is none."""
    out = np.full(truth.shape, np.nan)
    there = truth >= 0
    out[there] = grid.distance(truth[there], cells[there])
    return out
