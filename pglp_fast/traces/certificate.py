"""The certificate of a whole release of traces (spec section 12)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.noise import noise_polygon
from pglp_fast._kernels.noise.cones import drawn_cones
from pglp_fast._kernels.trace.release import CLAIM
from pglp_fast.mechanisms.rounding import MAX_ROUNDING, Noise, drawn_off, gauges_of
from pglp_fast.policy.graph import PolicyGraph

from .ledger import Ledger
from .proof import Proof, largest


class Verdict(NamedTuple):
    """What is proved of what was drawn from; ``delivered``: for each epsilon the largest ln
    ratio; ``fails``: whether one was found above its epsilon."""

    delivered: dict[float, float]
    rounding: float
    reason: str
    fails: bool = False

    @property
    def worst(self) -> float:
        """The largest ln ratio that is delivered; -inf where nothing was released."""
        return max(self.delivered.values(), default=-np.inf)

    @property
    def ok(self) -> bool:
        """Whether nothing is missing from the proof."""
        return not self.reason

    @property
    def told(self) -> str:
        """What becomes of the promise."""
        if self.ok:
            return "holds"
        return "does not hold" if self.fails else "is not proved"


@dataclass(frozen=True, eq=False)
class TraceCertificate:
    """What is proved of everything that some persons released.

    Attributes
    ----------
    proof : Proof
        What was drawn from.
    verdict : Verdict
        What is proved of it.
    ledger : Ledger
        What composition leaves each person.
    promised : float
        Epsilon of one release; the largest, where there are several.
    """

    proof: Proof
    verdict: Verdict
    ledger: Ledger
    promised: float

    @property
    def ok(self) -> bool:
        """Whether all that was drawn from was read back and proved: integer weights of tables, in
        integers; noise polygons and cone weights, exactly, with float64's rounding below a
        bound."""
        return self.verdict.ok

    @property
    def worst(self) -> float:
        """The largest ln ratio of a table's weights, or epsilon times the largest
        ||f(s) - f(s')||_K; of edges with weights, divided by the edge's own weight."""
        return self.verdict.worst

    @property
    def rounding(self) -> float:
        """Bound on the total variation distance that float64 adds to noise; 0 for tables."""
        return self.verdict.rounding

    @property
    def reason(self) -> str:
        """Why it is not proved; empty if it is."""
        return self.verdict.reason

    @property
    def delivered(self) -> dict[float, float]:
        """For each epsilon that was released with, the largest ln ratio: each table and noise is
        proved for its own."""
        return dict(self.verdict.delivered)

    @property
    def tables(self) -> int:
        """Distinct tables that were drawn from."""
        return len(self.proof.tables)

    @property
    def noises(self) -> int:
        """Distinct noises that were drawn."""
        return len(self.proof.claims)

    @property
    def releases(self) -> int:
        """How many releases it is about."""
        return self.proof.releases

    @property
    def exposed(self) -> int:
        """Releases of a domain of one location that the policy wants hidden: those are released as
        they are, whatever else is proved. With repair="none", releases of a domain with any
        isolated location: whoever is there is released as they are."""
        return self.proof.exposed

    def epsilon(self, u: int) -> float:
        """Sum of epsilon spent by person number u."""
        return self.ledger.epsilon(u)

    def graph(self, u: int) -> PolicyGraph:
        """The edges of person number u that every release kept."""
        return self.ledger.graph(u)

    def __str__(self) -> str:
        spent, kept = self.ledger.epsilons(), self.ledger.kept_edges()
        most, bare = float(spent.max(initial=0.0)), int((kept == 0).sum())
        return in_words(self.proof, self.verdict, self.promised, len(kept), most, bare)


def in_words(
    proof: Proof, verdict: Verdict, epsilon: float, persons: int, most: float, bare: int
) -> str:
    """A certificate as a sentence; ``most``: the largest sum of epsilon of a person; ``bare``:
    persons of whom no edge was kept throughout."""
    told = "holds" if verdict.ok else f"is NOT PROVED: {verdict.reason}"
    told = f"FAILS: {verdict.reason}" if verdict.fails else told
    drawn = f"{len(proof.tables):,} tables"
    drawn += f", {len(proof.claims):,} noises" if proof.claims else ""
    several = sorted(verdict.delivered)
    promised = f"{epsilon:g}"
    if len(several) > 1:
        promised = f"{several[0]:g} to {several[-1]:g} ({len(several)} values)"
    text = (
        f"epsilon = {promised} promised for each of {proof.releases:,} releases, "
        f"{max(verdict.worst, 0.0):.9f} delivered: the promise {told} (proof of {drawn})"
    )
    if proof.exposed:
        text += f"; {proof.exposed:,} releases of a location that nothing could hide"
    if persons:
        text += (
            f"; all releases together: epsilon at most {most:g} a person, and {bare:,} of "
            f"{persons:,} persons keep no edge throughout"
        )
    return text


def prove(proof: Proof, polygon: int, locations: Any) -> Verdict:
    """Prove what was gathered of releases, each for its own epsilon.

    Tables are proved already: nothing is drawn from one that is not. ``polygon``: which noise
    polygon kernels make of a sensitivity hull."""
    found, rounding, reasons, fails = list(proof.delivered.items()), 0.0, [], False
    for claim in _claims(proof.claims):
        dx, dy = (km / claim.denominator for km in locations.scale)
        K = np.asarray(noise_polygon.noise_polygon(claim.hull, polygon, dx, dy))
        gauge = max(gauges_of(K, claim.hull)) if len(claim.hull) > 1 else 0
        if not claim.inside or gauge > 1:
            reasons.append("an edge's difference lies outside the noise polygon")
            fails |= gauge > 1
        found.append((claim.epsilon, claim.epsilon * float(gauge)))
        noise = Noise(K, claim.extent, claim.size, claim.boxed, claim.in_line)
        rounding = max(rounding, drawn_off(noise, drawn_cones(K), claim.epsilon, locations.stretch))
    if not reasons and rounding > MAX_ROUNDING:
        reasons.append(
            f"float64 may move {rounding:.1e} of the probability of a large or thin domain: use "
            "delta, or smaller blocks"
        )
    delivered = largest(found)
    if not reasons:  # proved exactly; logarithms round
        delivered = {epsilon: min(worst, epsilon) for epsilon, worst in delivered.items()}
    return Verdict(delivered, rounding, "; ".join(dict.fromkeys(reasons)), bool(fails))


@dataclass(frozen=True)
class _Claim:
    """What a kernel says of the noise that it drew: see ``_kernels.trace.release``. Extent and hull
    are on a lattice that is ``denominator`` times as fine as the map's."""

    inside: bool
    size: int
    extent: NDArray[np.float64]
    boxed: bool
    in_line: bool
    epsilon: float
    hull: NDArray[np.int64]
    denominator: int


def _claims(claims: Iterable[bytes]) -> Iterable[_Claim]:
    for octets in sorted(claims):
        row = np.frombuffer(octets, np.int64)
        inside, size, width, height, flags, in_line, _, _ = row[:CLAIM].tolist()
        epsilon = float(row[6:7].view(np.float64)[0])
        extent = np.array([width, height], np.float64)
        hull = row[CLAIM:].reshape(-1, 2).copy()
        yield _Claim(
            bool(inside), size, extent, bool(flags & 1), bool(in_line), epsilon, hull,
            max(1, flags >> 1),
        )  # fmt: skip
