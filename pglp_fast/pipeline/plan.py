"""A plan: everything that decides a release, in one object that can be kept, sent and compared."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import times
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.errors import InvalidLocation, InvalidParameter, InvalidPolicy
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.registry import find
from pglp_fast.mechanisms.remapped import Remapped
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.space.grid import Grid
from pglp_fast.traces.policies import DEFAULT, PolicySet
from pglp_fast.traces.releaser import TraceReleaser
from pglp_fast.traces.spending import SLACK, Limits

from . import plan_budgets, plan_facts, plan_file
from .maps import describe, open_model
from .plan_checks import MOVING, check_plan
from .plan_policies import spelt_policy
from .plan_schedule import Rules

Path = str | os.PathLike[str]
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
        "categories:6" with ``labels``, "edges:FILE"). With others, it is the one called "default".
    policies : mapping, optional
        Further policies by name, each a graph or a spelling, for ``schedule`` and
        ``policy_column``.
    schedule : mapping, optional
        Which policy and epsilon hold when ("times", "periods"), for whom ("persons") and after
        which release ("released"): see ``docs/pipelines.md``. Never by true place.
    policy_column, epsilon_column : str, optional
        Columns of the table with names of policies, and with epsilons; where they are empty,
        "default" and ``epsilon`` hold. They must follow from what everybody may know: the released
        table tells them.
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
    budget : float or mapping, optional
        Epsilon of a person, whatever pieces the data comes in: in total, or over any ``window``.
        Several: a mapping from windows, "total" for the total, such as {"total": 100, "1d": 8}.
    window : int or str, optional
        Steps, or a duration, that the budget is for; with ``mobility`` only.
    ledger : path, optional
        A file in which every release is written down before it is made, by persons' labels: the
        budget then holds for all tables, days and processes that share it.
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
    policies: Mapping[str, PolicyGraph | str] | None = None
    schedule: Mapping[str, Any] | None = None
    policy_column: str | None = None
    epsilon_column: str | None = None
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
    budget: float | Mapping[Any, float] | None = None
    window: int | str | None = None
    ledger: Path | None = None
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
        check_plan(self)

    # -- what the fields stand for

    @cached_property
    def rules(self) -> Rules | None:
        """The schedule."""
        return None if self.schedule is None else Rules(self.schedule, self.policy_names)

    @property
    def policy_names(self) -> tuple[str, ...]:
        """Names of the policies, by number."""
        return (DEFAULT, *(self.policies or {}))

    @property
    def many_epsilons(self) -> bool:
        """Whether epsilon differs by row."""
        return self.epsilon_column is not None or (
            self.rules is not None and self.rules.says_epsilon
        )

    @property
    def chooses(self) -> bool:
        """Whether either differs by row."""
        return bool(self.policies) or self.many_epsilons

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """By cell, the policy of who released it last, -1 for none; empty if it does not matter."""
        return np.empty(0, np.int64) if self.rules is None else self.rules.by_place(self.map.size)

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
        """The policy on the map; the one that holds unless told."""
        return self._on_map(self.policy)

    @cached_property
    def policy_set(self) -> PolicySet:
        """All policies on the map."""
        named = {name: self._on_map(policy) for name, policy in (self.policies or {}).items()}
        return PolicySet.of({DEFAULT: self.graph, **named} if named else self.graph)

    def _on_map(self, policy: PolicyGraph | str) -> PolicyGraph:
        if isinstance(policy, str):
            labels = self.labels if policy.startswith(("categories:", "hide:")) else None
            alone = not self.policies
            return spelt_policy(policy, self.map, self.labels if alone else labels)
        if not policy.locations.same_map(self.map):
            raise InvalidPolicy("the policy is over another map than the release")
        return policy

    @cached_property
    def bare(self) -> NDArray[np.bool_]:
        """Of each policy, which cells it does not ask to hide."""
        return np.stack([graph.degrees() == 0 for graph in self.policy_set.graphs])

    @property
    def _kind(self) -> type[Mechanism]:
        return find(self.mechanism)

    def for_rows(self, policy: int = 0, epsilon: float | None = None) -> Mechanism:
        """The mechanism for rows that are released one by one, under the policy of a number."""
        kind, graph = self._kind, self.policy_set.graphs[policy] if policy else self.graph
        if kind.every_pair and (graph.n_cliques != 1 or len(graph.extra_indices)):
            raise InvalidPolicy(
                f"mechanism={kind.name!r} is for policy='complete': use "
                f"{getattr(kind.__base__, 'name', 'ppim')} for others"
            )
        if self.calibration not in kind.calibrations:
            raise InvalidParameter(
                f"mechanism={kind.name!r} knows calibration='component' only: for graph use ppim "
                "or plm"
            )
        own = self.epsilon if epsilon is None else epsilon
        made = kind.for_components(graph.locations, epsilon=own)
        bound = made.bound_to(graph, calibration=self.calibration)
        return bound if self.remap is None else Remapped(bound, loss=self.remap)

    def for_traces(self, rng: int | None = None) -> TraceReleaser:
        """The releaser for users who move."""
        assert self.model is not None
        policies = self.policy_set
        graphs = dict(zip(policies.names, policies.graphs)) if self.policies else self.graph
        return TraceReleaser(
            graphs, self.model, epsilon=self.epsilon, mechanism=self._kind, rng=rng,
            calibration=self.calibration, remap=self.remap, budget=self.limits.limits or None,
            **self.moving,
        )  # fmt: skip

    @property
    def moving(self) -> dict[str, Any]:
        """repair, delta and likelihood, as they are used."""
        given = {name: getattr(self, name) for name in MOVING}
        return {k: MOVING[k] if v is None else v for k, v in given.items()}

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
        """Releases that a person's budget is enough for; None where that depends."""
        total = self.limits.limits.get(None)
        alike = len(self.limits.limits) == 1 and self.ledger is None and not self.many_epsilons
        return int(total * SLACK / self.epsilon) if total is not None and alike else None

    @cached_property
    def limits(self) -> Limits:
        """Budgets, in steps."""
        given = plan_budgets.read_budgets(self.budget, self.window)
        return plan_budgets.limits_of(given, None if self.model is None else self.step_ms)

    @property
    def reading(self) -> dict[str, Any]:
        """Keyword arguments of ``read_table``."""
        return {name: getattr(self, name) for name in _READING}

    def check(self) -> "Plan":
        """The plan, after all that it stands for was made once: what does not go together is
        refused here."""
        if self.model is None:
            self.limits, [self.for_rows(k) for k in range(len(self.policy_names))]
        else:
            self.step_ms, self.for_traces(0), self.places
            if self.rules is not None:
                self.rules.check_periods(self.model.periods)
        return self

    # -- what it says about itself

    @property
    def facts(self) -> dict[str, Any]:
        """What a released table says about how it was released."""
        return dict(self._facts)

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """Made once: digests of large models and policies are in it."""
        return plan_facts.facts_of(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the output."""
        return plan_facts.digest_of(self, (*_READING, "keep", "prefix", "on_error"))

    def describe(self) -> str:
        """The plan in words."""
        return plan_facts.describe_plan(self)

    # -- keeping and sending

    def to_toml(self, path: Path) -> None:
        """Write the plan; graphs and models go by the files they were read from."""
        kinds = PolicyGraph, MobilityModel
        objects = {"policy": self.policy, "mobility": self.mobility, **(self.policies or {})}
        for name, value in objects.items():
            if isinstance(value, kinds):
                raise InvalidParameter(
                    f"{name} is an object in memory: save it, and give the plan its path or "
                    "spelling, to write it as TOML"
                )
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        spelt = None if self.rules is None else self.rules.spelt
        plan_file.write(path, said | {"schedule": spelt})

    @classmethod
    def from_toml(cls, path: Path) -> "Plan":
        """The plan that ``to_toml`` wrote, or that somebody typed."""
        return cls(**plan_file.read(path, [f.name for f in fields(cls)]))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what they stand for is made again where it is needed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
