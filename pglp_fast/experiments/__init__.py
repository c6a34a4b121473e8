"""The paper's experiments (its section 5), on real data where there is any and on a made-up city
otherwise.

>>> from pglp_fast import experiments
>>> results = experiments.run("mechanisms", out="results")  # doctest: +SKIP
>>> print(results[0].findings())  # doctest: +SKIP
"""

import os
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from pglp_fast._util import validate as check
from pglp_fast._util.storage import replacing
from pglp_fast.errors import InvalidParameter
from pglp_fast.plot import pyplot

from .claims import NOT_SUPPORTED, SUPPORTED, UNDECIDED, Claim, Difference, judge
from .data import SYNTHETIC, VARIABLE, find_folder
from .result import Result
from .rows import COLUMNS, Row
from .setup import QUICK_REPETITIONS, Setup

NAMES = ("mechanisms", "policies", "repair", "areas", "traces", "authors")
ALL = "all"


def run(
    name: str,
    *,
    out: str | os.PathLike[str] | None = "pglp-experiments",
    data: str | os.PathLike[str] | None = None,
    repetitions: int = 200,
    seed: int = 0,
    quick: bool = False,
    progress: bool = True,
    force: bool = False,
) -> list[Result]:
    """Run one experiment, or "all", and write numbers, figures and findings.

    Parameters
    ----------
    name : "mechanisms", "policies", "repair", "areas", "traces", "authors" or "all"
    out : folder; each experiment writes to a folder of its name in it: results.csv, times.csv
        (running times), figures as PNG and SVG, findings.md; "all" also writes findings.md of all.
        None: nothing is written
    data : folder of the real data (Gowalla may be missing), or a table of your own (user, time,
        lat, lon, and category if there is one); unless told, what the environment variable
        PGLP_FAST_DATA says, or ../shared/data, or else a made-up city. "synthetic": the made-up
        city. The findings say which was used
    repetitions : of each release (of each random domain, for "repair"); at least 2
    seed : for numbers that repeat, whatever the threads; running times do not
    quick : a small made-up city and at most 6 repetitions, to see that it works
    progress : say on standard error what is being done
    force : overwrite results that are there
    """
    check.choice(name, "name", (*NAMES, ALL))
    repetitions = check.whole(repetitions, "repetitions", 2)
    if quick and data is not None and os.fspath(data) != SYNTHETIC:
        raise InvalidParameter(
            "quick=True runs on a small made-up city: leave data out, or run without quick"
        )
    setup = Setup(
        folder=None if quick else find_folder(data),
        repetitions=min(repetitions, QUICK_REPETITIONS) if quick else repetitions,
        seed=check.whole(seed, "seed", 0),
        quick=bool(quick),
        progress=bool(progress),
    )
    wanted = NAMES if name == ALL else (name,)
    if out is not None:
        _refuse_results(Path(out), wanted, force)
        pyplot()  # or an error, before the work, that says how to get it
    results = []
    for one in wanted:
        started = time.perf_counter()
        result: Result = import_module(f".{one}", __name__).run(setup)
        result = replace(result, seconds=time.perf_counter() - started)
        setup.say(f"{one}: {result.seconds:.0f} s")
        if out is not None:
            result.write(Path(out) / one)
        results.append(result)
    if out is not None and name == ALL:
        with replacing(Path(out) / "findings.md") as path:
            path.write_text(findings(results), encoding="utf-8")
    return results


def _refuse_results(out: Path, wanted: tuple[str, ...], force: bool) -> None:
    """Refuse to run over results that are there, unless forced; before the work."""
    there = [out / one / "findings.md" for one in wanted] + [out / "findings.md"] * (
        len(wanted) > 1
    )
    found = next((path for path in there if path.exists()), None)
    if found is not None and not force:
        raise InvalidParameter(f"{found} is there: force=True overwrites it, or choose another out")


def findings(results: list[Result]) -> str:
    """What all the experiments found, as Markdown: a table of verdicts, then each experiment."""
    table = ["| experiment | claim | verdict |", "|---|---|---|"]
    table += [
        f"| {result.name} | {claim.text} | {claim.told} |"
        for result in results
        for claim in result.claims
    ]
    parts = [
        "# The paper's experiments\n",
        "\n".join(table) + "\n",
        *(result.findings(heading="##") for result in results),
    ]
    return "\n".join(parts)


__all__ = [
    "ALL",
    "COLUMNS",
    "NAMES",
    "NOT_SUPPORTED",
    "SUPPORTED",
    "SYNTHETIC",
    "UNDECIDED",
    "VARIABLE",
    "Claim",
    "Difference",
    "Result",
    "Row",
    "find_folder",
    "findings",
    "judge",
    "run",
]
