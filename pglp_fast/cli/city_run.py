"""The stages of ``pglp-fast city``, and what is measured of them."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast._util.packages import Later
from pglp_fast._util.progress import Progress
from pglp_fast._util.times import moment
from pglp_fast.adversary.attacks import attack
from pglp_fast.pipeline.maps import describe
from pglp_fast.pipeline.simulation import Simulation, write_parts
from pglp_fast.pipeline.steps import step_numbers
from pglp_fast.report.inputs import in_utc

from . import maps
from .plans import headline_of
from .read_back import evenly, sample_in_words
from .simulate_run import save_model

parquet = Later("pyarrow.parquet")
_SHOWN = 12  # persons in the report


class _Sample(NamedTuple):
    """Released and true cells of some persons, and when."""

    events: pf.Events
    truth: NDArray[np.int32]
    times: NDArray[np.datetime64]
    labels: list[str]


class CityRun:
    """One city from its people to the report; every stage is timed."""

    def __init__(self, options: argparse.Namespace, out: Path):
        self._options, self._out = options, out
        self.seconds: dict[str, float] = {}
        self._plan = pf.Plan(
            policy=options.policy, epsilon=options.epsilon, mechanism=options.mechanism,
            mobility=out / "model.npz", seed=options.seed,
        )  # fmt: skip

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - begun

    def make(self) -> None:
        """The people and the model."""
        o = self._options
        grid = maps.grid_of(o.bounds, o.cell_km)
        city = pf.synthetic.City.on(grid)
        start = moment(o.start, "--start")
        with self._timed("simulate"):
            made = Simulation(city, o.users, o.steps, o.step, start, seed=o.seed)
            bar = Progress(o.users * o.steps, "rows", "people ", shown=o.progress or None)
            for rows in write_parts(self._out / "trips", made):
                bar.advance(rows)
            bar.close()
        with self._timed("model"):
            save_model(city, self._out / "model.npz", o.periods, o.step)

    def release(self) -> None:
        """All parts, with a certificate."""
        o = self._options
        with self._timed("release"), _pool(o.workers) as workers:
            self.outcome = pf.release_files(
                self._out / "trips", self._out / "private", self._plan, workers,
                force=o.force, progress=o.progress or None,
            )  # fmt: skip

    def attack(self) -> None:
        """Of some persons, and a report on them."""
        plan, read = self._plan, self._sample()
        releaser = plan.for_traces(0)
        with self._timed("attack"):
            observed = releaser.observe(read.events, cycle=plan.cycle)
            self.table = attack(observed, truth=read.truth).table()
        with self._timed("report"):
            pf.write_report(
                self._out / "report.html", releaser, observed, read.truth,
                users=evenly(len(read.labels), _SHOWN), labels=read.labels,
                times=in_utc(read.times),
                title="A made-up city", note="Nobody in this report is real.",
                sample=sample_in_words(len(read.labels), self._options.users),
                overwrite=self._options.force,
            )  # fmt: skip

    def _sample(self) -> _Sample:
        """At most --traces persons, evenly picked, read from true and released parts."""
        wanted = evenly(self._options.users, self._options.traces)
        width, grid = len(str(self._options.users - 1)), self._plan.map
        names = {f"u{k:0{width}d}" for k in wanted.tolist()}
        found: list[tuple[Any, ...]] = []
        for path in sorted((self._out / "trips").glob("part-*.parquet")):
            true = parquet.read_table(path, columns=["user", "time", "lat", "lon"])
            free = parquet.read_table(self._out / "private" / path.name, columns=["released_cell"])
            user = true["user"].to_numpy()
            at = np.flatnonzero(np.isin(user, list(names)))
            true, free = true.take(at), free.take(at)
            cells = grid.locate(true["lat"].to_numpy(), true["lon"].to_numpy())
            when = true["time"].to_numpy().astype("datetime64[ms]").astype(np.int64)
            found.append((user[at].astype(str), when, cells, free["released_cell"].to_numpy()))
        user, ms, truth, cells = (np.concatenate(c) for c in zip(*found, strict=True))
        labels, code = np.unique(user, return_inverse=True)
        steps = step_numbers(ms, self._plan.step_ms)
        events = pf.Events(code.reshape(-1), steps, cells.astype(np.int32))
        return _Sample(
            events, truth, ms.astype("datetime64[ms]").astype("datetime64[s]"), labels.tolist()
        )

    # -- what came of it

    def document(self) -> dict[str, Any]:
        """For JSON."""
        said, table, rows = self.outcome, self.table, self.outcome.rows
        assert said.certificate is not None
        return {
            "rows": rows,
            "users": self._options.users,
            "map": self._plan.map.to_dict(),
            "periods": self._options.periods,
            "plan": self._plan.digest,
            "headline": " ".join(headline_of(self._plan)),
            "seconds": self.seconds,
            "rows_per_second": rows / self.seconds["release"],
            "peak_bytes": peak_bytes(),
            "error_km": table.utility_km,
            "exposed": said.exposed,
            "exposed_share": said.exposed / max(1, rows),
            "surrogates": said.surrogates,
            "adversary_km": table["bayes"].error_km,
            "adversary_expects_km": table.privacy_km,
            "adversary_hit_rate": table["bayes"].hit_rate,
            "attacked": table.users,
            "certificate": asdict(said.certificate),
        }

    def text(self) -> str:
        """For people."""
        d, o = self.document(), self._options
        lines = [
            *headline_of(self._plan),
            f"{self._out}: {d['rows']:,} rows of {o.users:,} people on {describe(self._plan.map)}, "
            f"{o.periods} periods of a day",
            "time: " + ", ".join(f"{k} {v:.1f} s" for k, v in d["seconds"].items()),
            f"release: {d['rows_per_second']:,.0f} rows a second"
            + ("" if d["peak_bytes"] is None else f", {d['peak_bytes'] / 1e6:,.0f} MB at most"),
            f"error of a release: {d['error_km']:.3f} km",
            f"adversary's error: {d['adversary_km']:.3f} km, right {d['adversary_hit_rate']:.1%} "
            f"of the time ({d['attacked']:,} people)",
            f"exposed: {d['exposed']:,} releases ({d['exposed_share']:.2%})",
            f"certificate: {d['certificate']['text']}",
            f"{self._out / 'report.html'}: some of the people on a map",
        ]
        return "\n".join(lines)


def peak_bytes() -> int | None:
    """The most memory that this process had, or one that it started; None where nobody knows."""
    try:
        import resource
    except ImportError:
        return None
    most = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return int(most) * (1 if os.uname().sysname == "Darwin" else 1024)


def _pool(workers: int | None) -> Any:
    if workers is None:
        return nullcontext()
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
