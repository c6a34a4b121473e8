"""What an adversary learns from released traces.

The adversary knows the mobility model, the mechanism and every release z_1..z_T, and guesses where
a user was. A user's locations s_1..s_T are a hidden chain: s_t has the prior of ``Evidence`` at the
first release and moves by the model from then on, once for each step that passes."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.attack import estimates, records
from pglp_fast._util import validate as check
from pglp_fast._util.stats import Interval
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidEvidence, InvalidParameter
from pglp_fast.io.labels import person_codes
from pglp_fast.space.locations import Locations

from .attack_inputs import (
    cells_beside,
    evidence_of,
    has_gaps,
    moves_of,
    observations_of,
    persons_worth_a_thread,
    workspace_of,
)
from .attack_table import NOTHING, AttackRow, AttackTable, clustered_mean
from .evidence import Evidence
from .no_release import guesses_without_release

Reals = NDArray[np.float64]

# in the kernels' order
_NAMES = ("released", "map", "viterbi", "bayes", "online map", "online bayes")
_NO_RELEASE = "no release"


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """What the adversary makes of the evidence.

    Arrays are (users, T) of a run of arrays; before a user's first release cells are -1, numbers
    NaN. Of a run of events they are 1-d, one for each event in the order given.

    Attributes
    ----------
    bayes : int32 array
        The location of least expected distance in km under Pr(s_t | z_1..z_T): any cell of a Grid,
        one of the posterior's support for Points. Ties to the lower index, as everywhere; values
        that agree to 11 digits are ties.
    map : int32 array
        The most likely location at each step.
    viterbi : int32 array
        The most likely whole path over all steps from the first release to the last row, those of
        gaps too; among equals the one of the lowest last cell, then the lowest cell before that,
        and so on.
    expected_error : float64 array
        Expected distance in km of ``bayes``.
    errors : dict of float64 arrays
        The same for every estimator, by name: "released" (the last release), "map", "viterbi",
        "bayes", "online map", "online bayes".
    entropy : float64 array
        H(s_t | z_1..z_T) in bits.
    lift : float64 array
        ln of the largest p_t^+(s) / p_t^-(s): how much this release raised the belief in a
        location; 0 where none was made.
    online_bayes, online_map : int32 array
        Guesses from z_1..z_t alone, under p_t^+, as an adversary who cannot wait makes them.
    online_error : float64 array
        Expected distance in km of ``online_bayes`` under p_t^+.
    online_entropy : float64 array
        H(s_t | z_1..z_t) in bits.
    path_entropy : float64 array (users,)
        H(s_1..s_T | z_1..z_T) in bits: of the same whole path, the steps of gaps included.
    log_evidence : float64 array (users,)
        ln Pr(z_1..z_T), short of the constants that the evidence's logarithms are short of.
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
    _last_release: check.Cells
    _moves: records.Moves
    _turned: records.Moves
    _seen: records.Observations

    @property
    def _locations(self) -> Locations:
        return self.evidence.model.locations

    @property
    def released(self) -> check.Cells:
        """Released cells, -1 where there is none."""
        return self.evidence.as_given(self.evidence.released, -1)

    def _cells(self, values: ArrayLike, name: str) -> check.Cells:
        return cells_beside(values, self.evidence, name)

    def posterior(self, u: int, t: int) -> Reals:
        """Pr(s_t | all z) of user u at step t, dense (N,); worked out when asked for.

        Of events, u is a position in ``events.ids`` and t a step with an event of that person."""
        return self._posterior(u, t, True)

    def filtered(self, u: int, t: int) -> Reals:
        """p_t^+ = Pr(s_t | z up to t) of user u at step t, as ``posterior``."""
        return self._posterior(u, t, False)

    def _posterior(self, u: int, t: int, all_releases: bool) -> Reals:
        shape, first = self.evidence.shape, self._seen.first
        u = check.whole(u, "u", 0, self.evidence.persons - 1)
        t = check.whole(t, "t", 0, (check.MAX_TIME if shape is None else shape[1]) - 1)
        steps = self._seen.steps[first[u] : first[u + 1]]
        row = int(np.searchsorted(steps, t))
        if row == len(steps) or steps[row] != t:
            if shape is None:
                raise InvalidParameter(f"user {u} has no event at step {t}: ask for one that is")
            raise InvalidParameter(
                f"user {u} has not released anything by step {t}: there is no posterior yet"
            )
        out = np.zeros(self._locations.size)
        estimates.posterior_at(
            self._moves, self._turned, self._seen, workspace_of(self._locations), u,
            first[u] + row, all_releases, out,
        )  # fmt: skip
        return out

    def expected(self, guesses: ArrayLike) -> Reals:
        """Expected distance in km of any guesses, one for each result, under Pr(s_t | all z).

        NaN where the guess is -1 or too early."""
        cells = self.evidence.at_rows(self._cells(guesses, "guesses"))
        out = np.full(len(cells), np.nan)
        lattice = self._locations.lattice
        run_ranges(
            lambda start, stop: estimates.expected_errors(
                self._moves,
                self._turned,
                self._seen,
                lattice,
                workspace_of(self._locations),
                start,
                stop,
                cells,
                out,
            ),
            self.evidence.persons,
            smallest=persons_worth_a_thread(self._seen),
        )
        return self.evidence.as_given(out, np.nan)

    def no_release(self) -> check.Cells:
        """The best guesses of an adversary who sees no release.

        From the prior alone, moved along the chain. Users who share a prior share the work. A prior
        that spreads over the map costs what the map holds at each step, until it settles."""
        return guesses_without_release(self.evidence, self._seen, self._moves, self._turned)

    def table(
        self,
        truth: ArrayLike | None = None,
        *,
        persons: ArrayLike | None = None,
        steps: str = "released",
        no_release: bool = True,
        confidence: float = 0.95,
    ) -> AttackTable:
        """Every estimator's error beside the release's own: what privacy buys, and what it costs.

        Parameters
        ----------
        truth : array_like of int, optional
            Where users really were, -1 for unknown; what ``attack`` was given unless told. Steps
            where it is -1 are not counted, in any column.
        persons : array_like, optional
            Whose trace each row of the arrays is, a name or number for each; one person for each
            row unless given. Events know their persons.
        steps : {"released", "all"}
            "released" counts the steps with a release; "all" also those without one, where the last
            release stands in.
        no_release : bool
            With a row for an adversary who sees no release at all. It costs what the prior spreads
            to (see ``no_release()``).
        confidence : float
            Of the intervals. Steps of one person depend on each other: persons, not steps or
            traces, are the sample. NaN for one person.
        """
        check.choice(steps, "steps", ("released", "all"))
        if not 0 < check.positive(confidence, "confidence") < 1:
            raise InvalidParameter(f"confidence must be between 0 and 1, got {confidence!r}")
        true = self.truth if truth is None else self._cells(truth, "truth")
        at_rows, clusters = self.evidence.at_rows, self._clusters(persons)
        released = self.evidence.released >= 0
        counted = released if steps == "released" else np.ones_like(released)
        if true is not None:
            counted = counted & (at_rows(true) >= 0)
        rows = self._rows(true, counted, clusters, no_release, float(confidence))
        made = counted & released
        missed = np.nan
        if true is not None and made.any():
            missed = float(self.evidence.ruled_out(at_rows(true))[made].mean())
        off = at_rows(self.errors["released"])[made]
        if true is not None:
            off = self._locations.distance(self.evidence.released[made], at_rows(true)[made])
        entropy, lift = at_rows(self.entropy)[counted], at_rows(self.lift)[made]
        return AttackTable(
            rows,
            *clustered_mean(off, clusters[made], float(confidence)),
            privacy_km=next(row.expected_km for row in rows if row.estimator == "bayes"),
            ruled_out=missed,
            entropy_bits=float(entropy.mean()) if counted.any() else np.nan,
            lift=float(lift.max(initial=0.0)) if made.any() else np.nan,
            median_lift=float(np.median(lift)) if made.any() else np.nan,
            users=len(np.unique(clusters[counted])),
            steps=int(counted.sum()),
            confidence=float(confidence),
        )

    def _clusters(self, persons: ArrayLike | None) -> NDArray[np.int64]:
        """A number for the person of each row."""
        if persons is None:
            return self.evidence.person
        names = np.asarray(persons)
        if names.shape != (self.evidence.persons,):
            raise InvalidParameter(
                f"persons has shape {names.shape}: give one name or number for each of the "
                f"{self.evidence.persons} users"
            )
        try:
            codes = person_codes(persons if isinstance(persons, list | tuple) else names)
        except ValueError as error:
            raise InvalidParameter(f"persons must be whole numbers or text: {error}") from None
        return codes[self.evidence.person]

    def _rows(
        self,
        true: check.Cells | None,
        counted: NDArray[np.bool_],
        clusters: NDArray[np.int64],
        no_release: bool,
        confidence: float,
    ) -> tuple[AttackRow, ...]:
        online = self.online_map, self.online_bayes
        named = (self._last_release, self.map, self.viterbi, self.bayes, *online)
        guesses, errors = dict(zip(_NAMES, named, strict=True)), dict(self.errors)
        if no_release:
            guesses[_NO_RELEASE] = self.no_release()
            errors[_NO_RELEASE] = self.expected(guesses[_NO_RELEASE])

        def mean(values: NDArray[Any]) -> tuple[float, Interval]:
            return clustered_mean(values.astype(np.float64), clusters[counted], confidence)

        rows = []
        for name, array in guesses.items():
            error = hit = NOTHING
            if true is not None:
                cells, truth = (self.evidence.at_rows(a)[counted] for a in (array, true))
                error = mean(self._locations.distance(cells, truth))
                rate, (low, high) = mean(cells == truth)
                hit = rate, (float(np.maximum(low, 0.0)), float(np.minimum(high, 1.0)))
            expected = mean(self.evidence.at_rows(errors[name])[counted])
            rows.append(AttackRow(name, *expected, *error, *hit))
        return tuple(rows)

    def __repr__(self) -> str:
        n, shape = self.evidence.persons, self.evidence.result_shape
        many = f"{shape[-1]} {'events' if self.evidence.shape is None else 'steps'}"
        return f"Attack({n} users, {many}, {self.evidence.model!r})"


class WithEvidence(Protocol):
    """Released traces that may have kept their evidence, such as ``pf.TraceResult``."""

    @property
    def evidence(self) -> Evidence | None: ...


def attack(evidence: Evidence | WithEvidence, truth: ArrayLike | None = None) -> Attack:
    """Attack released traces, knowing the model, the mechanism and all releases.

    Parameters
    ----------
    evidence : Evidence or TraceResult
        What ``TraceReleaser.run(..., evidence=True)`` or ``TraceReleaser.observe(released)`` gave.
    truth : array_like of int, optional
        Where users really were, -1 for unknown, in the shape of ``released``; the attack does not
        see it, ``Attack.table`` compares with it.

    Raises
    ------
    InvalidEvidence
        Where releases contradict the model: no path has them all.

    Notes
    -----
    p_t^+ by filtering, Pr(s_t | all z) by the forward-backward recursion, the most likely path by
    Viterbi's; on sparse vectors, by logarithm where float64 would underflow. H(s_1..s_T | z) =
    H(s_1 | z) + sum_t H(s_t | s_{t-1}, z): given all releases the path is still a Markov chain,
    with transitions M(i, j) Pr(z_t.. | s_t = j) / Pr(z_t.. | s_{t-1} = i). In a gap the vectors
    move until they come back, short of a common factor; then whole windows are skipped.

    References
    ----------
    L. R. Rabiner, A Tutorial on Hidden Markov Models and Selected Applications in Speech
    Recognition, Proceedings of the IEEE 77 (1989). R. Shokri et al., Quantifying Location Privacy,
    IEEE Symposium on Security and Privacy (2011), for the adversary's expected error.
    """
    evidence = evidence_of(evidence)
    seen, moves = observations_of(evidence), moves_of(evidence.model)
    turned = moves_of(evidence.model, transposed=True) if has_gaps(seen) else moves
    true = None if truth is None else cells_beside(truth, evidence, "truth")
    n, persons = len(seen.steps), evidence.persons
    guesses = np.full((records.ESTIMATORS, n), -1, check.CELL)
    # each row's release, or the one before where there is none: a first row has one
    last = np.maximum.accumulate(np.where(evidence.released >= 0, np.arange(n), 0))
    guesses[records.RELEASED] = evidence.released[last]
    errors, zeros = np.full((records.ESTIMATORS, n), np.nan), np.zeros((2, persons))
    numbers = np.full((4, n), np.nan)  # entropy, lift, online error, online entropy
    report = records.Report(guesses, errors, *numbers, *zeros)
    failed, locations = np.full(persons, -1, np.int64), evidence.model.locations
    run_ranges(
        lambda start, stop: estimates.attack_persons(
            moves,
            turned,
            seen,
            locations.lattice,
            workspace_of(locations),
            start,
            stop,
            report,
            failed,
        ),
        persons,
        smallest=persons_worth_a_thread(seen),
    )
    bad = np.flatnonzero(failed >= 0)
    if bad.size:
        u = bad[0]
        raise InvalidEvidence(
            f"the releases of user {u} up to step {seen.steps[failed[u]]} have probability 0 under "
            f"the model ({bad.size} users in all): attack with the model, the priors and the "
            "mechanism that they were released with"
        )
    found, errors = evidence.as_given(guesses, -1), evidence.as_given(errors, np.nan)
    entropy, lift, online_error, online_entropy = evidence.as_given(numbers, np.nan)
    return Attack(
        evidence,
        true,
        bayes=found[records.BAYES],
        map=found[records.MAP],
        viterbi=found[records.VITERBI],
        expected_error=errors[records.BAYES],
        errors=dict(zip(_NAMES, errors, strict=True)),
        entropy=entropy,
        lift=lift,
        online_bayes=found[records.ONLINE_BAYES],
        online_map=found[records.ONLINE_MAP],
        online_error=online_error,
        online_entropy=online_entropy,
        path_entropy=report.path_entropy,
        log_evidence=report.log_evidence,
        _last_release=found[records.RELEASED],
        _moves=moves,
        _turned=turned,
        _seen=seen,
    )
