"""What an experiment gives: numbers, figures and findings, in memory and on disk."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from .claims import Claim


@dataclass(frozen=True)
class Row:
    """One point of one series.

    Attributes
    ----------
    data : which data
    policy, mechanism, setting : which series
    metric : "e_eu" (km), "e_r", "e_poi" (shares), "adversary" (km), "seconds", ...
    along, x : what runs along the series, and where this point is
    mean, low, high : estimate and 95 % confidence interval
    n : independent units that the estimate is a mean of (see the experiment)
    exact : the expected value, where it is computed without drawing
    """

    data: str
    policy: str
    mechanism: str
    setting: str
    metric: str
    along: str
    x: float
    mean: float
    low: float
    high: float
    n: int
    exact: float | None = None


COLUMNS = tuple(f.name for f in fields(Row))


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows whose fields are as wanted."""
    return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]


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
        parts = [f"{heading} {self.title}", f"Data: {self.data}", *self.notes, "\n".join(map(str, self.claims))]
        return "\n\n".join([*parts, *([f"Credit: {self.credit}"] if self.credit else [])]) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """results.csv, times.csv (if any), each figure as PNG and SVG, and findings.md; returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [write_csv(folder / "results.csv", self.rows)]
        if self.times:
            paths.append(write_csv(folder / "times.csv", self.times))
        for name, draw in self.figures.items():
            figure = draw()
            for ending, options in (("png", {"dpi": 110}), ("svg", {"metadata": {"Date": None}})):
                path = folder / f"{name}.{ending}"
                figure.savefig(path, **options)
                paths.append(path)
        paths.append(folder / "findings.md")
        paths[-1].write_text(self.findings(), encoding="utf-8")
        return paths


def write_csv(path: Path, rows: Iterable[Row]) -> Path:
    """Ten digits are more than the data has, and hide how sums were ordered."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow(["" if v is None else f"{v:.10g}" if isinstance(v, float) else v for v in asdict(row).values()])
    return path
