"""What a job has to answer for: what its parts drew from, and what they left to people."""

from dataclasses import asdict, dataclass, field
from typing import Any

from pglp_fast.traces.certificate import TraceCertificate, Verdict, in_words
from pglp_fast.traces.proof import Proof


@dataclass(frozen=True)
class Account:
    """Of persons who move. Parts have different persons: their accounts add up.

    Attributes
    ----------
    proof : what was drawn from
    persons : how many released something
    most : the largest sum of epsilon of a person
    bare : persons of whom no edge of the policy was kept throughout
    """

    proof: Proof = field(default_factory=Proof)
    persons: int = 0
    most: float = 0.0
    bare: int = 0

    @classmethod
    def of(cls, certificate: TraceCertificate) -> "Account":
        """Of a run."""
        ledger = certificate.ledger
        spent, kept = ledger.epsilons(), ledger.kept_edges()
        return cls(
            certificate.proof, len(spent), float(spent.max(initial=0.0)), int((kept == 0).sum())
        )

    def __or__(self, other: "Account") -> "Account":
        return Account(
            self.proof | other.proof,
            self.persons + other.persons,
            max(self.most, other.most),
            self.bare + other.bare,
        )

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self) | {"proof": self.proof.to_dict()}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> "Account":
        """What ``to_dict`` wrote."""
        return cls(**{**facts, "proof": Proof.from_dict(facts["proof"])})


@dataclass(frozen=True)
class Certificate:
    """What is proved of a table that was released.

    Attributes
    ----------
    ok : whether everything that was drawn from is proved
    worst : the largest ln ratio that was delivered
    tables, noises : distinct tables and noises that were drawn from
    rounding : bound on what float64 adds to noise
    exposed : releases of a location that nothing could hide
    persons, without_edges : who released something, and of how many no edge was kept throughout;
        None for rows that were released one by one
    text : all of it in words
    """

    ok: bool
    worst: float
    tables: int
    noises: int
    rounding: float
    exposed: int
    persons: int | None
    without_edges: int | None
    text: str

    @classmethod
    def of_account(cls, account: Account, verdict: Verdict, epsilon: float) -> "Certificate":
        """Of persons who move."""
        proof, (persons, bare) = account.proof, (account.persons, account.bare)
        return cls(
            verdict.ok, verdict.worst, len(proof.tables), len(proof.claims), verdict.rounding,
            proof.exposed, persons, bare,
            in_words(proof, verdict, epsilon, persons, account.most, bare),
        )  # fmt: skip
