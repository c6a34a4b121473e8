"""A plan: everything that decides a release, in one object that can be kept, sent and compared."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import times, validate as check
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.errors import InvalidLocation, InvalidParameter, InvalidPolicy
from pglp_fast.io.read import check_forms
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.registry import MECHANISMS, load
from pglp_fast.mechanisms.remapped import Remapped
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.space.grid import Grid
from pglp_fast.traces.releaser import TraceReleaser

from . import plan_file
from .maps import describe, open_model
from .policies import spelt_policy

Path = str | os.PathLike[str]
_SLACK = 1 + 1e-12  # so that ten times 0.1 fits in 1
_MOVING = {"repair": "min-area", "delta": 0.0, "likelihood": "exact"}  # only with mobility
_READING = ("columns", "names", "delimiter", "timezone", "time_format", "decimal")


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Everything that decides a release of tables. Checked when it is made.

    Parameters
    ----------
    epsilon : float
        For each release.
    policy : PolicyGraph or str
        What to protect: a graph, or a spelling ("blocks:3", "neighbours8", "complete",
        "categories:6" with ``labels``, "edges:FILE").
    grid : Grid, optional
        The map, with latitude and longitude; the model's, where there is one.
    labels : path, optional
        Categories of places or cells, for "categories:K".
    mechanism, calibration, remap : str
        As in ``TraceReleaser``. ``mechanism`` may be "module:Class".
    mobility : MobilityModel or path, optional
        What the adversary knows about movement. Without one, rows are released one by one.
    repair, delta, likelihood : optional
        As in ``TraceReleaser``; with ``mobility`` only.
    step : str, optional
        Duration of a step, with ``mobility``; the model's, where it says its own.
    budget : float, optional
        Total epsilon of a person, whatever pieces the data comes in.
    columns, names, delimiter, timezone, time_format, decimal : optional
        How tables are read, as in ``read_table``.
    keep : sequence of str or "all", optional
        Columns that stay in the output; the user and the time, unless given.
    prefix : str
        How new columns start.
    on_error : {"raise", "skip"}
        What becomes of rows that cannot be read or are beyond the budget.
    allow_outside : bool
        Whether more than half of the rows may lie off the map.
    seed : int, optional
        For results that repeat; whoever knows it can subtract the noise.

    Attributes
    ----------
    digest : str
        Of everything that decides the output; models and files by their content.
    """

    epsilon: float
    policy: PolicyGraph | str
    grid: Grid | None = None
    labels: Path | None = None
    mechanism: str = "ppim"
    calibration: str = "component"
    remap: str | None = None
    mobility: MobilityModel | Path | None = None
    repair: str | None = None
    delta: float | None = None
    likelihood: str | None = None
    step: Any = None
    budget: float | None = None
    columns: Mapping[str, Any] | None = None
    names: Sequence[str] | None = None
    delimiter: str | None = None
    timezone: str = "UTC"
    time_format: str | None = None
    decimal: str = "."
    keep: Sequence[str] | str | None = None
    prefix: str = "released_"
    on_error: str = "raise"
    allow_outside: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        check.epsilon(self.epsilon)
        check.choice(self.calibration, "calibration", CALIBRATIONS)
        check.choice(self.on_error, "on_error", ("raise", "skip"))
        check_forms(self.timezone, self.time_format, self.decimal)
        if self.budget is not None:
            check.positive(self.budget, "budget")
        if self.seed is not None:
            check.whole(self.seed, "seed", 0)
        if self.step is not None:
            times.duration(self.step, "step")
        if not isinstance(self.policy, str | PolicyGraph):
            raise InvalidPolicy(
                "policy must be a PolicyGraph or a spelling such as 'blocks:3', got "
                f"{type(self.policy).__name__}"
            )
        if isinstance(self.keep, str) and self.keep != "all":
            raise InvalidParameter(
                f"keep must be a list of columns, or 'all' for every one, got {self.keep!r}"
            )
        for name in () if self.mobility is not None else _MOVING:
            if getattr(self, name) is not None:
                raise InvalidParameter(
                    f"{name} is for users who move: give mobility=MODEL, or leave it out"
                )

    # -- what the fields stand for

    @cached_property
    def model(self) -> MobilityModel | None:
        """The mobility model."""
        if self.mobility is None or isinstance(self.mobility, MobilityModel):
            return self.mobility
        return open_model(self.mobility)

    @cached_property
    def map(self) -> Grid:
        """The map: the one given, or the model's; both, if they agree."""
        own = None if self.model is None else self.model.locations
        grid = self.grid if self.grid is not None else own
        if grid is None and isinstance(self.policy, PolicyGraph):
            grid = self.policy.locations
        if not isinstance(grid, Grid):
            raise InvalidParameter("which map? Give grid=Grid.from_bounds(...), or mobility=MODEL")
        if grid.projection is None:
            raise InvalidLocation(
                "the grid has no latitude and longitude: make it with Grid.from_bounds"
            )
        if isinstance(own, Grid) and own.to_dict() != grid.to_dict():
            raise InvalidLocation(
                f"the grid is not the model's, which has {describe(own)}: leave it out"
            )
        return grid

    @cached_property
    def graph(self) -> PolicyGraph:
        """The policy on the map."""
        if isinstance(self.policy, str):
            return spelt_policy(self.policy, self.map, self.labels)
        if not self.policy.locations.same_map(self.map):
            raise InvalidPolicy("the policy is over another map than the release")
        return self.policy

    @property
    def _kind(self) -> type[Mechanism]:
        return load(MECHANISMS.get(self.mechanism, self.mechanism))

    def for_rows(self) -> Mechanism:
        """The mechanism for rows that are released one by one."""
        kind = self._kind
        if kind.every_pair and (self.graph.n_cliques != 1 or len(self.graph.extra_indices)):
            raise InvalidPolicy(
                f"mechanism={kind.name!r} is for policy='complete': use "
                f"{getattr(kind.__base__, 'name', 'ppim')} for others"
            )
        if self.calibration not in kind.calibrations:
            raise InvalidParameter(
                f"mechanism={kind.name!r} knows calibration='component' only: for graph use ppim "
                "or plm"
            )
        made = kind.for_components(self.graph.locations, epsilon=self.epsilon)
        bound = made.bound_to(self.graph, calibration=self.calibration)
        return bound if self.remap is None else Remapped(bound, loss=self.remap)

    def for_traces(self, rng: int | None = None) -> TraceReleaser:
        """The releaser for users who move."""
        assert self.model is not None
        return TraceReleaser(
            self.graph, self.model, epsilon=self.epsilon, mechanism=self._kind,
            calibration=self.calibration, remap=self.remap, rng=rng, **self.moving,
        )  # fmt: skip

    @property
    def moving(self) -> dict[str, Any]:
        """repair, delta and likelihood, as they are used."""
        given = {name: getattr(self, name) for name in _MOVING}
        return {k: _MOVING[k] if v is None else v for k, v in given.items()}

    @cached_property
    def step_ms(self) -> int:
        """Duration of a step in ms."""
        assert self.model is not None
        known = self.model.notes.get("step_ms")
        given = None if self.step is None else times.duration(self.step, "step")
        if given is None and known is None:
            named = self.mobility if isinstance(self.mobility, str | os.PathLike) else "the model"
            raise InvalidParameter(
                f"{named} does not say how long its steps are: give step='5min' or the like"
            )
        if given is not None and known is not None and given != known:
            raise InvalidParameter(
                f"step is {given / 1000:g} s, the model's steps are {known / 1000:g} s: leave "
                "step out"
            )
        step = int(given or known or 0)
        if self.model.periods > 1 and times.DAY_MS % step:
            raise InvalidParameter(
                f"the model has {self.model.periods} periods of a day: steps must divide the day, "
                f"{step / 1000:g} s do not"
            )
        return step

    @property
    def cycle(self) -> NDArray[np.int64] | None:
        """Period of the model at each step of a day; None if a day is one period."""
        assert self.model is not None
        if self.model.periods == 1:
            return None
        ahead = int(self.model.notes.get("ahead_ms", 0))
        moments = np.arange(0, times.DAY_MS, self.step_ms) + ahead
        return np.asarray(moments % times.DAY_MS * self.model.periods // times.DAY_MS)

    @property
    def allowed(self) -> int | None:
        """Releases that a person's budget is enough for."""
        return None if self.budget is None else int(self.budget * _SLACK / self.epsilon)

    @property
    def reading(self) -> dict[str, Any]:
        """Keyword arguments of ``read_table``."""
        return {name: getattr(self, name) for name in _READING}

    def check(self) -> "Plan":
        """The plan, after all that it stands for was made once: what does not go together is
        refused here."""
        if self.model is None:
            self.for_rows()
        else:
            self.step_ms, self.for_traces(0)
        return self

    # -- what it says about itself

    @property
    def facts(self) -> dict[str, Any]:
        """What a released table says about how it was released."""
        model, graph = self.model, self.graph
        w = graph.weights
        weights = () if w is None else (w.numerator, w.denominator)
        return {
            "epsilon": self.epsilon,
            "policy": self.policy if isinstance(self.policy, str) else "a graph",
            "edges": graph.n_edges,
            "edges_digest": _digest(
                graph.cliques, graph.extra_indptr, graph.extra_indices, *weights
            ),
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "remap": self.remap,
            "map": self.map.to_dict(),
            "adversary": "none: rows were released one by one"
            if model is None
            else "knows the mobility model",
            "mobility": None if model is None else _digest(*(a for c in model.chains for a in c)),
            **(self.moving | {"step_ms": self.step_ms} if model is not None else {}),
            "budget": self.budget,
            "seeded": self.seed is not None,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the output."""
        plain = {n: getattr(self, n) for n in (*_READING, "keep", "prefix", "on_error")}
        ahead = None if self.model is None else self.model.notes.get("ahead_ms")
        text = json.dumps([self.facts, plain, ahead, self.allow_outside, self.seed], default=list)
        return hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> str:
        """The plan in words."""
        facts = self.facts
        lines = [
            f"map: {describe(self.map)}",
            f"policy {facts['policy']} ({facts['edges']:,} edges), {self.mechanism}, epsilon "
            f"{self.epsilon:g} a release"
            + ("" if self.budget is None else f", at most {self.budget:g} for a person"),
            "adversary: none; rows are released one by one"
            if self.model is None
            else "adversary: knows how people move; a person releases once in "
            f"{times.shown(self.step_ms)}",
            f"kept: {kept_words(self.keep)}",
        ]
        lines += [] if self.seed is None else ["seeded: for research, not for people"]
        return "\n".join(lines)

    # -- keeping and sending

    def to_toml(self, path: Path) -> None:
        """Write the plan; graphs and models go by the files they were read from."""
        for name, kind in (("policy", PolicyGraph), ("mobility", MobilityModel)):
            if isinstance(getattr(self, name), kind):
                raise InvalidParameter(
                    f"{name} is an object in memory: save it, and give the plan its path or "
                    "spelling, to write it as TOML"
                )
        plan_file.write(path, {f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def from_toml(cls, path: Path) -> "Plan":
        """The plan that ``to_toml`` wrote, or that somebody typed."""
        return cls(**plan_file.read(path, [f.name for f in fields(cls)]))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what they stand for is made again where it is needed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def kept_words(keep: Sequence[str] | str | None) -> str:
    """Which columns stay, in words."""
    if keep is None:
        return "the user and the time"
    return "every column, the true places too" if keep == "all" else ", ".join(keep) or "none"


def _digest(*arrays: NDArray[Any]) -> str:
    """SHA-256 of arrays, with their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
