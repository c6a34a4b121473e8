"""What a release of traces drew from, gathered for its certificate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.release import CLAIM


@dataclass(frozen=True)
class Proof:
    """What has to be true, and what was found, of some releases.

    Attributes
    ----------
    tables : digests of the keys of the tables that were drawn from, each proved for its epsilon
    delivered : for each epsilon, the largest ln ratio of the weights of its tables
    claims : of the noise that was drawn: see ``_kernels.trace.release``
    exposed : releases of a domain of one location that the policy wants hidden
    releases : how many
    """

    tables: frozenset[int] = frozenset()
    delivered: Mapping[float, float] = field(default_factory=dict)
    claims: frozenset[bytes] = frozenset()
    exposed: int = 0
    releases: int = 0

    @classmethod
    def of(
        cls,
        tables: dict[int, tuple[float, float]],
        claims: list[NDArray[np.int64]],
        exposed: int,
        releases: int,
    ) -> "Proof":
        """From what kernels give; of each table its epsilon and the largest ln ratio."""
        found = frozenset(claim.tobytes() for part in claims for claim in _split(part))
        return cls(frozenset(tables), largest(tables.values()), found, exposed, releases)

    @property
    def worst(self) -> float:
        """The largest ln ratio of a table's weights."""
        return max(self.delivered.values(), default=-np.inf)

    def __or__(self, other: "Proof") -> "Proof":
        """Of both."""
        return Proof(
            self.tables if other.tables <= self.tables else self.tables | other.tables,
            largest([*self.delivered.items(), *other.delivered.items()]),
            self.claims if other.claims <= self.claims else self.claims | other.claims,
            self.exposed + other.exposed,
            self.releases + other.releases,
        )

    def counting(self, exposed: int, releases: int) -> "Proof":
        """With more releases from what there is."""
        more = self.exposed + exposed, self.releases + releases
        return Proof(self.tables, self.delivered, self.claims, *more)

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "tables": sorted(self.tables),
            "delivered": sorted([e, worst] for e, worst in self.delivered.items()),
            "claims": [np.frombuffer(c, np.int64).tolist() for c in sorted(self.claims)],
            "exposed": self.exposed,
            "releases": self.releases,
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Proof":
        """What ``to_dict`` wrote."""
        delivered = {float(e): float(worst) for e, worst in facts["delivered"]}
        claims = frozenset(np.array(c, np.int64).tobytes() for c in facts["claims"])
        counts = int(facts["exposed"]), int(facts["releases"])
        return cls(frozenset(map(int, facts["tables"])), delivered, claims, *counts)


def largest(found: Iterable[tuple[float, float]]) -> dict[float, float]:
    """The largest value of each epsilon."""
    out: dict[float, float] = {}
    for epsilon, value in found:
        out[epsilon] = max(value, out.get(epsilon, -np.inf))
    return out


def _split(claims: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Claims that lie end to end; each tells how many vertices it has."""
    out = []
    while claims.size:
        length = CLAIM + 2 * int(claims[CLAIM - 1])
        out.append(claims[:length])
        claims = claims[length:]
    return out
