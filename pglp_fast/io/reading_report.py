"""What was read, what was left out, and why."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

SHOWN = 100  # malformed rows that are named; all are counted


class Malformed(NamedTuple):
    """A row that could not be read: its line in a text file (from 1), or its row in a table
    (from 0)."""

    source: str
    unit: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, {self.unit} {self.number}: {self.reason}"


class Step(NamedTuple):
    """One step of cleaning and how many rows it left out."""

    name: str
    dropped: int


@dataclass(frozen=True)
class Report:
    """Rows read, rows left out at each step, rows kept: they add up.

    Attributes
    ----------
    rows : rows that were read
    steps : (name, dropped), in the order taken
    malformed : the first 100 rows that could not be read; the step "malformed rows" counts all
    """

    rows: int
    steps: tuple[Step, ...] = ()
    malformed: tuple[Malformed, ...] = ()

    @property
    def kept(self) -> int:
        """Rows that are left."""
        return self.rows - sum(step.dropped for step in self.steps)

    def then(self, name: str, dropped: int) -> "Report":
        """The report with one more step."""
        return replace(self, steps=(*self.steps, Step(name, int(dropped))))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        dropped: dict[str, int] = {}
        for name, count in self.steps:
            dropped[name] = dropped.get(name, 0) + count
        return {
            "rows": self.rows,
            "dropped": dropped,
            "kept": self.kept,
            "malformed": [str(m) for m in self.malformed],
        }

    def __str__(self) -> str:
        width = len(f"{self.rows:,}") + 2
        lines = [f"{self.rows:>{width},} rows read"]
        lines += [f"{-step.dropped:>{width},} {step.name}" for step in self.steps]
        lines.append(
            f"{self.kept:>{width},} rows kept ({self.kept / self.rows:.1%})"
            if self.rows
            else f"{0:>{width}} rows kept"
        )
        lines += [f"{'':>{width}} malformed: {m}" for m in self.malformed[:5]]
        hidden = sum(s.dropped for s in self.steps if s.name == MALFORMED) - len(self.malformed[:5])
        if hidden > 0:
            lines.append(f"{'':>{width}} and {hidden:,} more")
        return "\n".join(lines)


MALFORMED = "malformed rows"
