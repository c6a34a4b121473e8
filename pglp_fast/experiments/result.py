"""What an experiment gives: numbers, figures and findings, in memory and on disk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pglp_fast._util.storage import replacing

from .claims import Claim
from .figures import save
from .rows import Row, write_csv


@dataclass(frozen=True)
class Result:
    """An experiment's outcome.

    Attributes
    ----------
    name, title : of the experiment
    data : which data was used, in words
    rows : the numbers; the same for the same seed, whatever the threads
    claims : what the paper says, decided
    figures : functions that draw, by name
    notes : what else the reader must know
    times : rows that are measured running times: another run gives others
    credit : whom the data is from
    seconds : that the experiment took
    """

    name: str
    title: str
    data: str
    rows: list[Row]
    claims: list[Claim]
    figures: dict[str, Callable[[], Any]]
    notes: list[str] = field(default_factory=list)
    times: list[Row] = field(default_factory=list)
    credit: str = ""
    seconds: float = 0.0

    def findings(self, *, heading: str = "#") -> str:
        """Which claims the numbers support, as Markdown."""
        parts = [
            f"{heading} {self.title}",
            f"Data: {self.data}",
            *self.notes,
            "\n".join(map(str, self.claims)),
        ]
        return "\n\n".join([*parts, *([f"Credit: {self.credit}"] if self.credit else [])]) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """results.csv, times.csv (if any), each figure as PNG and SVG, and findings.md; returns
        their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [write_csv(folder / "results.csv", self.rows)]
        if self.times:
            paths.append(write_csv(folder / "times.csv", self.times))
        for name, draw in self.figures.items():
            figure = draw()
            paths += [save(figure, folder / f"{name}.{ending}") for ending in ("png", "svg")]
        paths.append(folder / "findings.md")
        with replacing(paths[-1]) as path:
            path.write_text(self.findings(), encoding="utf-8")
        return paths
