"""What an adversary learns from released traces: the best guesses, how wrong they are, and how uncertain the adversary stays.

The adversary knows the mobility model, the mechanism and every release z_1..z_T, and guesses where a user was. A user's
locations s_1..s_T are a hidden chain: s_t has the prior of ``Evidence`` at the first release and moves by the model from then on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate as check
from ._kernels import attack as kernels
from .errors import InvalidEvidence, InvalidParameter
from .evidence import Evidence
from .locations import Grid
from .stream import TraceResult
from .threads import run_ranges

Reals = NDArray[np.float64]
Interval = tuple[float, float]

_NAMES = ("released", "map", "viterbi", "bayes", "online map", "online bayes")  # in the kernels' order
_NO_RELEASE = "no release"
_FLAWS = ("", "a cell that is not on the map", "cells that do not ascend", "a logarithm that is NaN or +inf")
_SMALLEST = 16  # users worth a thread


@dataclass(frozen=True)
class AttackRow:
    """How one estimator does, over the steps that the table counts.

    Attributes
    ----------
    expected_km : mean over the steps of E d(guess, s_t) under Pr(s_t | all z)
    expected_interval : its confidence interval, users being drawn at random
    error_km, error_interval : mean distance from the truth; NaN without truth
    hit_rate, hit_interval : how often the guess is the very location; NaN without truth
    """

    estimator: str
    expected_km: float
    expected_interval: Interval
    error_km: float
    error_interval: Interval
    hit_rate: float
    hit_interval: Interval


@dataclass(frozen=True)
class AttackTable:
    """Privacy and utility side by side.

    Attributes
    ----------
    rows : one for each estimator; ``table["bayes"]`` picks one
    utility_km : how far the release is from where the user was: from the truth if there is one, else expected under the
        adversary's posterior. What privacy costs.
    utility_interval : its confidence interval
    privacy_km : expected error of the best guess (Bayes). What privacy buys.
    entropy_bits : mean conditional entropy of a location given all releases
    lift : the largest ln p_t^+ / p_t^- of all steps
    users, steps : how many are counted
    confidence : of all intervals
    """

    rows: tuple[AttackRow, ...]
    utility_km: float
    utility_interval: Interval
    privacy_km: float
    entropy_bits: float
    lift: float
    users: int
    steps: int
    confidence: float

    def __iter__(self) -> Iterator[AttackRow]:
        return iter(self.rows)

    def __getitem__(self, estimator: str) -> AttackRow:
        names = [row.estimator for row in self.rows]
        return self.rows[names.index(check.choice(estimator, "estimator", names))]

    def __str__(self) -> str:
        def span(value: float, interval: Interval, digits: int = 3) -> str:
            if np.isnan(value):
                return "-"
            if np.isnan(interval[0]):
                return f"{value:.{digits}f}"
            return f"{value:.{digits}f} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"

        lines = [("estimator", "expected km", "error km", "hit rate")]
        for r in self.rows:
            lines.append(
                (
                    r.estimator,
                    span(r.expected_km, r.expected_interval),
                    span(r.error_km, r.error_interval),
                    span(r.hit_rate, r.hit_interval),
                )
            )
        widths = [max(len(line[k]) for line in lines) for k in range(4)]
        body = "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
        return (
            f"{body}\n"
            f"utility: the release is {span(self.utility_km, self.utility_interval)} km off; "
            f"privacy: the best guess is expected to be {self.privacy_km:.3f} km off\n"
            f"{self.entropy_bits:.2f} bits left of a location, ln lift at most {self.lift:.2f}; "
            f"{self.users} users, {self.steps} steps, {self.confidence:.0%} intervals"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """What the adversary makes of the evidence. Arrays are (users, T); before a user's first release cells are -1, numbers NaN.

    Attributes
    ----------
    bayes : the location of least expected distance in km under Pr(s_t | z_1..z_T): any cell of a Grid, one of the posterior's
        support for Points. Ties to the lower index, as everywhere; values that agree to 11 digits are ties.
    map : the most likely location at each step
    viterbi : the most likely whole path; among equals the lowest last cell, then the lowest cell before that, and so on
    expected_error : expected distance in km of ``bayes``
    errors : the same for every estimator, by name: "released" (the last release), "map", "viterbi", "bayes", "online map",
        "online bayes"
    entropy : H(s_t | z_1..z_T) in bits
    lift : ln of the largest p_t^+(s) / p_t^-(s): how much this release raised the belief in a location; 0 where none was made
    online_bayes, online_map : guesses from z_1..z_t alone, under p_t^+, as an adversary who cannot wait makes them
    online_error : expected distance in km of ``online_bayes`` under p_t^+
    online_entropy : H(s_t | z_1..z_t) in bits
    path_entropy : (users,) H(s_1..s_T | z_1..z_T) in bits
    log_evidence : (users,) ln Pr(z_1..z_T), short of the constants that the evidence's logarithms are short of
    """

    evidence: Evidence
    truth: check.Cells | None
    bayes: check.Cells
    map: check.Cells
    viterbi: check.Cells
    expected_error: Reals
    errors: dict[str, Reals]
    entropy: Reals
    lift: Reals
    online_bayes: check.Cells
    online_map: check.Cells
    online_error: Reals
    online_entropy: Reals
    path_entropy: Reals
    log_evidence: Reals
    _released: check.Cells = field()
    _moves: kernels.Moves = field()
    _seen: kernels.Seen = field()

    def posterior(self, u: int, t: int) -> Reals:
        """Pr(s_t | z_1..z_T) of user u, dense (N,); worked out when asked for."""
        return self._look(u, t, True)

    def filtered(self, u: int, t: int) -> Reals:
        """p_t^+ = Pr(s_t | z_1..z_t) of user u, dense (N,); worked out when asked for."""
        return self._look(u, t, False)

    def _look(self, u: int, t: int, smoothed: bool) -> Reals:
        n, T = self.bayes.shape
        u, t = check.whole(u, "u", 0, n - 1), check.whole(t, "t", 0, T - 1)
        if self.bayes[u, t] < 0:
            raise InvalidParameter(f"user {u} has not released anything by step {t}: there is no posterior yet")
        out = np.zeros(self.evidence.model.locations.size)
        kernels.look(self._moves, self._seen, len(out), u, t, smoothed, out)
        return out

    def expected(self, guesses: ArrayLike) -> Reals:
        """Expected distance in km of any guesses (users, T) under Pr(s_t | z_1..z_T); NaN where the guess is -1 or too early."""
        cells = _cells(guesses, self.bayes.shape, self.evidence.model.locations.size, "guesses")
        out = np.full(cells.shape, np.nan)
        place = _place(self.evidence)
        run_ranges(
            lambda start, stop: kernels.judge_users(self._moves, self._seen, *place, start, stop, cells, out),
            len(cells),
            smallest=_SMALLEST,
        )
        return out

    def no_release(self) -> check.Cells:
        """The best guesses (users, T) of who sees no release: from the prior alone, moved along the chain.

        Users who share a prior share the work. A prior that spreads over the map costs what the map holds at each step.
        """
        n, T = self.bayes.shape
        known = self.bayes >= 0
        out = np.full((n, T), -1, check.CELL)
        users = np.flatnonzero(known.any(axis=1))
        if not users.size:
            return out
        first = known[users].argmax(axis=1)
        rows = self.evidence.priors.of[users]
        starts = first if self.evidence.model.periods > 1 else np.zeros_like(first)  # one matrix: only the steps since then count
        groups, of = np.unique(np.stack([rows, starts], axis=1), axis=0, return_inverse=True)
        of = of.reshape(-1)
        horizon = np.zeros(len(groups), np.int64)
        np.maximum.at(horizon, of, T - first)
        guesses = np.full((len(groups), T), -1, check.CELL)
        place = _place(self.evidence)
        row, start_step = np.ascontiguousarray(groups[:, 0]), np.ascontiguousarray(groups[:, 1])
        run_ranges(
            lambda start, stop: kernels.guess_unseen(
                self._moves, self._seen, *place, row, start_step, horizon, start, stop, guesses
            ),
            len(groups),
            smallest=1,
        )
        since = np.maximum(np.arange(T) - first[:, None], 0)
        out[users] = np.where(known[users], guesses[of[:, None], since], -1)
        return out

    def table(
        self,
        truth: ArrayLike | None = None,
        *,
        steps: str = "released",
        no_release: bool = True,
        confidence: float = 0.95,
    ) -> AttackTable:
        """Every estimator's error beside the release's own: what privacy buys, and what it costs.

        Parameters
        ----------
        truth : (users, T) where users really were, -1 for unknown; what ``attack`` was given unless told. Steps where it is -1
            are not counted, in any column.
        steps : "released" counts the steps with a release; "all" also those without one, where the last release stands in
        no_release : with a row for who sees no release at all. It costs what the prior spreads to (see ``no_release()``).
        confidence : of the intervals. Steps of one user depend on each other: users, not steps, are the sample. NaN for one user.
        """
        check.choice(steps, "steps", ("released", "all"))
        if not 0 < check.positive(confidence, "confidence") < 1:
            raise InvalidParameter(f"confidence must be between 0 and 1, got {confidence!r}")
        locations = self.evidence.model.locations
        shape = self.bayes.shape
        true = self.truth if truth is None else _cells(truth, shape, locations.size, "truth")
        counted = self.bayes >= 0
        if steps == "released":
            counted &= self.evidence.released >= 0
        if true is not None:
            counted &= true >= 0
        guesses = dict(zip(_NAMES, (self._released, self.map, self.viterbi, self.bayes, self.online_map, self.online_bayes)))
        errors = dict(self.errors)
        if no_release:
            guesses[_NO_RELEASE] = self.no_release()
            errors[_NO_RELEASE] = self.expected(guesses[_NO_RELEASE])
        user = np.nonzero(counted)[0]

        def mean(values: NDArray[np.generic]) -> tuple[float, Interval]:
            return _clustered(values.astype(np.float64), user, shape[0], float(confidence))

        nothing = (np.nan, (np.nan, np.nan))
        rows = []
        for name, cells in guesses.items():
            error, hit = nothing, nothing
            if true is not None:
                error = mean(locations.distance(cells[counted], true[counted]))
                hit = mean(cells[counted] == true[counted])
                hit = hit[0], (max(hit[1][0], 0.0), min(hit[1][1], 1.0)) if hit[1][0] == hit[1][0] else hit[1]
            rows.append(AttackRow(name, *mean(errors[name][counted]), *error, *hit))
        at_release = counted & (self.evidence.released >= 0)
        user = np.nonzero(at_release)[0]
        if true is not None:
            utility = mean(locations.distance(self.evidence.released[at_release], true[at_release]))
        else:
            utility = mean(self.errors["released"][at_release])
        by_name = {row.estimator: row for row in rows}
        return AttackTable(
            tuple(rows),
            *utility,
            privacy_km=by_name["bayes"].expected_km,
            entropy_bits=float(self.entropy[counted].mean()) if counted.any() else np.nan,
            lift=float(self.lift[counted].max()) if counted.any() else np.nan,
            users=int(counted.any(axis=1).sum()),
            steps=int(counted.sum()),
            confidence=float(confidence),
        )

    def __repr__(self) -> str:
        n, T = self.bayes.shape
        return f"Attack({n} users, {T} steps, {self.evidence.model!r})"


def attack(evidence: Evidence | TraceResult, truth: ArrayLike | None = None) -> Attack:
    """Attack released traces, knowing the model, the mechanism and all releases.

    Parameters
    ----------
    evidence : what ``TraceReleaser.run(..., evidence=True)`` or ``TraceReleaser.observe(released)`` gave
    truth : (users, T) where users really were, -1 for unknown; the attack does not see it, ``Attack.table`` compares with it

    Notes
    -----
    p_t^+ by filtering, Pr(s_t | all z) by the forward-backward recursion, the most likely path by Viterbi's; on sparse vectors,
    by logarithm where float64 would underflow. H(s_1..s_T | z) = H(s_1 | z) + sum_t H(s_t | s_{t-1}, z): given all releases
    the path is still a Markov chain, with transitions M(i, j) Pr(z_t.. | s_t = j) / Pr(z_t.. | s_{t-1} = i).

    Raises ``InvalidEvidence`` where releases contradict the model: no path has them all.
    """
    if isinstance(evidence, TraceResult):
        if evidence.evidence is None:
            raise InvalidEvidence(
                "these traces were released without keeping evidence: use TraceReleaser.run(..., evidence=True)"
            )
        evidence = evidence.evidence
    if not isinstance(evidence, Evidence):
        raise InvalidEvidence(
            f"evidence must be an Evidence, got {type(evidence).__name__}: TraceReleaser.run(..., evidence=True)"
        )
    seen = _check(evidence)
    (n, T), size = evidence.shape, evidence.model.locations.size
    true = None if truth is None else _cells(truth, (n, T), size, "truth")
    moves = _moves(evidence)
    place = _place(evidence)
    guesses = np.full((kernels.ESTIMATORS, n, T), -1, check.CELL)
    guesses[kernels.RELEASED] = _last_release(evidence.released)
    errors = np.full((kernels.ESTIMATORS, n, T), np.nan)
    entropy, lift, online_error, online_entropy = (np.full((n, T), np.nan) for _ in range(4))
    report = kernels.Report(guesses, errors, entropy, lift, online_error, online_entropy, np.zeros(n), np.zeros(n))
    failed = np.full(n, -1, np.int64)
    run_ranges(lambda start, stop: kernels.attack_users(moves, seen, *place, start, stop, report, failed), n, smallest=_SMALLEST)
    bad = np.flatnonzero(failed >= 0)
    if bad.size:
        u = bad[0]
        raise InvalidEvidence(
            f"the releases of user {u} up to step {failed[u]} have probability 0 under the model ({bad.size} users in all): "
            "attack with the model, the priors and the mechanism that they were released with"
        )
    return Attack(
        evidence,
        true,
        guesses[kernels.BAYES],
        guesses[kernels.MAP],
        guesses[kernels.VITERBI],
        errors[kernels.BAYES],
        dict(zip(_NAMES, errors, strict=True)),
        report.entropy,
        report.lift,
        guesses[kernels.ONLINE_BAYES],
        guesses[kernels.ONLINE_MAP],
        report.online_error,
        report.online_entropy,
        report.path_entropy,
        report.log_evidence,
        guesses[kernels.RELEASED],
        moves,
        seen,
    )


def _cells(values: ArrayLike, shape: tuple[int, ...], size: int, name: str) -> check.Cells:
    array = check.integers(values, name)
    if array.shape != shape:
        raise InvalidParameter(f"{name} must have shape {shape}, as the releases, got {array.shape}")
    bad = np.argwhere((array < -1) | (array >= size))
    if len(bad):
        u, t = bad[0]
        raise InvalidParameter(f"{name} has {array[u, t]} for user {u} at step {t}: cells are 0..{size - 1}, and -1 for unknown")
    return np.ascontiguousarray(array, dtype=check.CELL)


def _own(array: NDArray[np.generic], kind: type[np.generic]) -> NDArray[np.generic]:
    """Contiguous, of the dtype that kernels take, and writable (kernels are compiled once more for arrays that are not)."""
    return np.require(array, kind, ["C", "W"])


def _moves(evidence: Evidence) -> kernels.Moves:
    """The matrices of all periods in one."""
    chains = evidence.model.chains
    offsets = np.cumsum([0] + [len(c.data) for c in chains[:-1]])
    indptr = np.stack([_own(c.indptr, np.int64) + offset for c, offset in zip(chains, offsets, strict=True)])
    indices = _own(chains[0].indices if len(chains) == 1 else np.concatenate([c.indices for c in chains]), np.int32)
    data = _own(chains[0].data if len(chains) == 1 else np.concatenate([c.data for c in chains]), np.float64)
    logs = np.empty_like(data)
    run_ranges(lambda start, stop: np.log(data[start:stop], out=logs[start:stop]), len(data))
    return kernels.Moves(indptr, indices, data, logs)


def _place(evidence: Evidence) -> tuple[NDArray[np.int32], float, float, int]:
    """The map as guesses need it: lattice, km a step, columns (0: scattered points)."""
    locations = evidence.model.locations
    return locations.lattice, *locations.scale, locations.cols if isinstance(locations, Grid) else 0


def _last_release(released: check.Cells) -> check.Cells:
    """Each step's release, or the one before where there is none."""
    at = np.maximum.accumulate(np.where(released >= 0, np.arange(released.shape[1]), 0), axis=1)
    return np.take_along_axis(released, at, axis=1)


def _check(evidence: Evidence) -> kernels.Seen:
    """The evidence as kernels take it, after a look at whether it is one."""
    model, priors, released = evidence.model, evidence.priors, evidence.released
    if released.ndim != 2:
        raise InvalidEvidence(f"released must have shape (users, T), got {released.shape}")
    n, T = evidence.shape
    size = model.locations.size
    periods, start = _own(evidence.periods, np.int64), _own(evidence.start, np.int64)
    cells, logs = _own(evidence.cells, np.int32), _own(evidence.logs, np.float64)
    if periods.shape != (T,) or (T > 1 and (periods[1:].min() < 0 or periods[1:].max() >= model.periods)):
        raise InvalidEvidence(f"periods must be {T} numbers in 0..{model.periods - 1}, one for each step")
    if (
        start.shape != (n * T + 1,)
        or start[0] != 0
        or start[-1] != len(cells)
        or len(cells) != len(logs)
        or (np.diff(start) < 0).any()
    ):
        raise InvalidEvidence(
            f"start must ascend from 0 to the number of cells and of logs, with {n * T + 1} entries for {n} x {T} rows"
        )
    row, flaw = kernels.first_flaw(start, cells, logs, size)
    if row >= 0:
        raise InvalidEvidence(f"the row of user {row // T} at step {row % T} has {_FLAWS[flaw]}")
    if released.size and (released.min() < -1 or released.max() >= size):
        u, t = np.argwhere((released < -1) | (released >= size))[0]
        raise InvalidEvidence(f"user {u} released {released[u, t]} at step {t}: cells are 0..{size - 1}, and -1 for none")
    odd = np.argwhere((released >= 0) != (np.diff(start) > 0).reshape(n, T))
    if len(odd):
        u, t = odd[0]
        what = "no location that it is possible from" if released[u, t] >= 0 else "a row of likelihoods, but no release"
        raise InvalidEvidence(f"user {u} has {what} at step {t}: a step has both a release and its likelihoods, or neither")
    of, rows = _own(priors.of, np.int64), priors.rows
    if of.shape != (n,) or (n and (of.min() < 0 or of.max() >= len(rows.start) - 1)):
        raise InvalidEvidence(f"priors.of must be {n} row numbers in 0..{len(rows.start) - 2}, one for each user")
    prior = _own(rows.start, np.int64), _own(rows.cells, np.int32), _own(rows.values, np.float64)
    return kernels.Seen(periods, start, cells, logs, of, *prior)


def _clustered(values: Reals, user: NDArray[np.int64], users: int, confidence: float) -> tuple[float, Interval]:
    """Mean and confidence interval where the sample is users: the ratio of two sums over users, linearised, with Student's t."""
    from scipy.special import stdtrit

    if not len(values):
        return np.nan, (np.nan, np.nan)
    sums, counts = np.bincount(user, values, users), np.bincount(user, minlength=users)
    mean, groups = float(sums.sum() / counts.sum()), int((counts > 0).sum())
    if groups < 2:
        return mean, (np.nan, np.nan)
    variance = groups / (groups - 1) * float(((sums - mean * counts) ** 2).sum()) / float(counts.sum()) ** 2
    half = float(stdtrit(groups - 1, 0.5 + confidence / 2)) * variance**0.5
    return mean, (mean - half, mean + half)
