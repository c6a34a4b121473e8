"""What a mechanism is: it answers ln Pr(z|s) over a component. All else follows from that.

A class says what it needs in a few attributes and answers ``log_probabilities(component)``. From
there on tables are made and proved, releases drawn, traces run, certificates, metrics, pictures and
reports made, by code that knows no more of it than is written here. docs/extending.md writes one.
"""

import copy
import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.noise.alias_tables import Requests
from pglp_fast._util import validate as check
from pglp_fast.errors import (
    InvalidDomain,
    InvalidParameter,
    InvalidPolicy,
    PGLPError,
    TooLarge,
)
from pglp_fast.policy.components import Component
from pglp_fast.policy.domain import Domain, require_domain
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.policy.groups import CALIBRATIONS, Groups, make_groups
from pglp_fast.policy.weighted_edges import epsilon_of_noise
from pglp_fast.space.locations import Locations, require_locations, require_same_map

from .options import check_weights, checked_outputs
from .releasing import Releasing
from .table_sampler import MAX_TABLE, ROW_SUM, SAMPLERS, TableSampler

Floats = NDArray[np.float64]


def _ask_draw(mechanism: Any, key: NDArray[np.uint32], t: int, cell: int) -> int:
    """``draw_one`` of a mechanism that draws in a way of its own."""
    return -1


class Mechanism(Releasing, ABC):
    """A mechanism that satisfies {epsilon, G^C}-location privacy.

    A subclass overrides ``log_probabilities``, and ``configure`` if it has options. It then works
    in two ways: bound to a policy graph, ``Mine(graph, epsilon=1).release(cells)``; and asked about
    single components, ``TraceReleaser(graph, model, epsilon=1, mechanism=Mine)``.

    Parameters
    ----------
    graph : the policy
    epsilon : e^epsilon bounds the ratio of probabilities across an edge
    domain : C, what the adversary thinks possible; the whole map if None
    calibration : "component", or "graph" (the paper's Finding Isolated Node and Graph Repair to the
        letter), for mechanisms that know it: see the docs on calibrations
    sampler : "table" (64-bit integer weights), "geometric" (continuous noise, then snapped; for
        mechanisms that add noise), or "auto": table where a component is small enough. It never
        changes what is promised.
    outputs : what noise is snapped to, for mechanisms that add noise: "component", the component of
        the true location, or "map", the whole map (the paper's P-LM
        and P-PIM to the letter)
    options : those of ``configure``

    Attributes
    ----------
    graph : the policy, constrained to the domain
    policy : the policy as it was given
    epsilon, domain, calibration, sampler, outputs : as given
    locations : the map
    groups : which locations share one output set, and which of those sets are translates of each
        other
    noise_epsilon : epsilon for noise of ``polygon``, which is ``graph.denominator`` times too large
    noise_groups : which locations share one noise: ``groups``, but components with outputs="map"
    tables : what is drawn from tables

    Notes
    -----
    What a class says of itself:

    name, label : as in ``TraceReleaser`` and on the command line; as in text and pictures. The
        class's own name unless told.
    calibrations : those that it knows
    needs_hull : whether components must come with their sensitivity hull
    every_pair : whether the policy must join every pair of a set
    geometric : whether it adds K-norm noise, which can be drawn geometrically (``k_norm``)
    noise_kind : which noise polygon kernels make of a sensitivity hull; None: none of theirs
    largest, instead : members of a component that it takes; what to use beyond
    trace_table : members of a component up to which traces draw from tables
    slow : whether an answer takes a solver's time, so that reports ask for few
    weighted : whether answers heed the weights of edges: across an edge of weight w, rows differ by
        at most w epsilon (``component.weights``). Where not, policies with weights are refused.
    translates : whether components that are translates of each other get the same answer. A class
        whose answer depends on ``component.members`` (on a prior, say) sets it to False.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    calibrations: ClassVar[tuple[str, ...]] = ("component",)
    needs_hull: ClassVar[bool] = False
    every_pair: ClassVar[bool] = False
    geometric: ClassVar[bool] = False
    noise_kind: ClassVar[int | None] = None
    largest: ClassVar[int] = MAX_TABLE
    instead: ClassVar[str] = "use PPIM, or a policy of smaller components"
    trace_table: ClassVar[int] = check.MAX_LOCATIONS
    slow: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    translates: bool = True

    graph: PolicyGraph
    policy: PolicyGraph
    epsilon: float
    noise_epsilon: float
    domain: Domain | None
    calibration: str
    sampler: str
    outputs: str = "component"
    locations: Locations
    groups: Groups
    noise_groups: Groups
    tables: TableSampler

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "draw" in cls.__dict__ and "draw_one" not in cls.__dict__:
            cls.draw_one = _ask_draw  # type: ignore[assignment]
        cls.name = cls.__dict__.get("name", cls.__name__)
        cls.label = cls.__dict__.get("label", cls.name)

    def __init__(
        self,
        graph: PolicyGraph,
        *,
        epsilon: float,
        domain: Domain | None = None,
        calibration: str = "component",
        sampler: str = "auto",
        outputs: str = "component",
        **options: Any,
    ):
        require_policy(graph)
        self._configure(graph.locations, epsilon, options)
        self.outputs = checked_outputs(self, outputs, domain, calibration)
        self.bind(graph, domain, calibration, sampler)

    @classmethod
    def for_components(cls, locations: Locations, *, epsilon: float, **options: Any) -> Self:
        """One that is asked about single components, as traces do: no policy is looked at."""
        self = cls.__new__(cls)
        self._configure(locations, epsilon, options)
        return self

    def bound_to(
        self,
        graph: PolicyGraph,
        *,
        domain: Domain | None = None,
        calibration: str = "component",
        sampler: str = "auto",
        outputs: str = "component",
    ) -> Self:
        """The same mechanism, with the same options, for another policy."""
        place = require_policy(graph).locations
        require_same_map(place, self.locations, "the policy and the mechanism", InvalidPolicy)
        other = copy.copy(self)
        other.outputs = checked_outputs(other, outputs, domain, calibration)
        other.bind(graph, domain, calibration, sampler)
        return other

    def _configure(self, locations: Locations, epsilon: float, options: dict[str, Any]) -> None:
        self.locations, self.epsilon = require_locations(locations), check.epsilon(epsilon)
        self.noise_epsilon = self.epsilon
        self.configure(**options)

    def bind(
        self, graph: PolicyGraph, domain: Domain | None, calibration: str, sampler: str
    ) -> None:
        """Group the policy's locations and lay out what is drawn from."""
        if domain is not None:
            require_domain(domain)
        self.calibration = check.choice(calibration, "calibration", CALIBRATIONS)
        if calibration not in self.calibrations:
            raise InvalidParameter(
                f"{type(self).__name__} knows calibration={self.calibrations[0]!r} only: for "
                f"{calibration!r} use PPIM or PLM"
            )
        self.sampler = check.choice(sampler, "sampler", SAMPLERS)
        if sampler == "geometric" and not self.geometric:
            raise InvalidParameter(
                f"{type(self).__name__} adds no noise that sampler='geometric' could draw: use "
                "'table'"
            )
        check_weights(type(self), graph)
        self.domain, self.policy = domain, graph
        self.graph = graph if domain is None else graph.constrain(domain)
        self.noise_epsilon = epsilon_of_noise(self.graph.denominator, self.epsilon)
        groups = make_groups(self.graph, domain, self.calibration)
        self.groups = self.noise_groups = groups if self.translates else groups.apart()
        if self.outputs == "map":
            self.groups = make_groups(self.graph, None, "graph")  # one group of the whole map
        self.tables = TableSampler(self)
        self.check_size(int(self.groups.sizes.max(initial=0)))
        self._matrices: dict[int, Floats] = {}

    # -- what a class answers

    @abstractmethod
    def log_probabilities(self, component: Component) -> Floats:
        """ln Pr(place z | place s) over a component, (k, k): the row of s is a distribution.

        It must keep the bound: across an edge of the component, rows differ by at most epsilon, or
        w epsilon where the edge has a weight w (``weighted``)."""

    def configure(self) -> None:
        """Take the options that this class has, as keyword arguments with defaults."""
        return

    @classmethod
    def options(cls) -> list[str]:
        """Names of the options that ``configure`` takes."""
        return [name for name in inspect.signature(cls.configure).parameters if name != "self"]

    def describe(self) -> str:
        """What tells this mechanism from others of its class, epsilon aside."""
        return ""

    @property
    def source(self) -> "Mechanism":
        """The mechanism that draws: this one, unless it post-processes another one's answers."""
        return self

    def polygon(self, shape: int) -> Floats | None:
        """The noise polygon K of a shape of ``noise_groups``, in lattice units; with weights
        ``graph.denominator`` times as large. None where no noise is added."""
        return None

    def cones(self, shape: int) -> NDArray[np.uint64]:
        """The weights, of sum 2**63, with which the cones over K's edges are drawn; empty where
        none are."""
        return np.zeros(0, np.uint64)

    def check_size(self, k: int) -> None:
        """Refuse a component of k locations that is too large for this mechanism."""
        if k > self.largest:
            raise TooLarge(
                f"a component has {k} locations, {type(self).__name__} takes {self.largest}: "
                f"{self.instead}"
            )

    # -- exact probabilities

    def log_densities(self, component: Component, logs: Floats) -> Floats:
        """``logs``, or ln of the noise's density at z instead, up to a constant in each column:
        what ``likelihood="density"`` takes for the adversary's likelihoods in traces. What is
        impossible stays so."""
        return logs

    def log_matrix(self, component: Component) -> Floats:
        """``log_probabilities``, checked."""
        k = len(component.sites)
        logs = np.asarray(self.log_probabilities(component), np.float64)
        if logs.shape != (k, k):
            raise PGLPError(
                f"{type(self).__name__}.log_probabilities gave shape {logs.shape} for a component "
                f"of {k} locations: it must be ({k}, {k})"
            )
        if not np.abs(np.exp(logs).sum(axis=1) - 1).max() <= ROW_SUM:
            raise PGLPError(
                f"the probabilities of a component of {k} locations do not sum to 1: nothing is "
                "released"
            )
        return logs

    def log_rows(self, shape: int, sources: NDArray[np.int64]) -> Floats:
        """ln Pr(z|s) for the given places s of a shape and every place z."""
        if shape not in self._matrices:
            component = self.groups.component(shape, with_hull=self.needs_hull)
            self._matrices[shape] = self.log_matrix(component)
        return self._matrices[shape][sources]

    def log_matrices(self, which: NDArray[np.int64]) -> Floats:
        """ln Pr(z|s) of these shapes, each (k, k) row by row, end to end."""
        sizes = self.groups.sizes
        blocks = [self.log_rows(shape, np.arange(sizes[shape])).ravel() for shape in which.tolist()]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def probabilities(self, which: NDArray[np.int64]) -> Floats:
        """Pr(z|s) of these shapes, as ``log_matrices``."""
        return np.asarray(np.exp(self.log_matrices(which)))

    def check_inside(self, s: int) -> int:
        """The number of a location that can be released from."""
        s = check.one_cell(s, self.locations.size)
        if self.groups.address[s, 0] < 0:
            raise InvalidDomain(
                f"location {s} is outside the domain of {len(self.groups.members)} locations: "
                "nothing can be released from it"
            )
        return s

    def matrix(self, s: int, *, log: bool = False) -> tuple[check.Cells, Floats]:
        """Exact probabilities over the output set of s: ``P[i, j] = Pr(outputs[j] | outputs[i])``.

        ``log=True`` gives ln P, which also tells probabilities below 1e-308 apart. Rows of P sum to
        1 within 1e-12. Logarithms differ across an edge by epsilon (1 + 1e-9) at most, or, where
        epsilon is so small that float64 has no such digits, by 1e-13 more than epsilon; what is
        drawn from a table keeps the bound itself, in integers."""
        s = self.check_inside(s)
        outputs = self.groups.of(s).copy()
        if len(outputs) > MAX_TABLE:
            raise TooLarge(
                f"the output set of {s} has {len(outputs)} locations, a matrix is made up to "
                f"{MAX_TABLE}: ask for single rows with pmf(s)"
            )
        rows = self.log_rows(self.groups.shape(s), np.arange(len(outputs)))
        return outputs, rows if log else np.exp(rows)

    def pmf(self, s: int, *, log: bool = False) -> tuple[check.Cells, Floats]:
        """(outputs, Pr(outputs | s)), exact."""
        s = self.check_inside(s)
        row = self.log_rows(self.groups.shape(s), self.groups.address[s, 1:].astype(np.int64))[0]
        return self.groups.of(s).copy(), row if log else np.exp(row)

    def table(self, s: int) -> tuple[check.Cells, NDArray[np.uint64]]:
        """(outputs, weights): the integers, of sum 2**63, that a release from s is drawn with.

        They are read back from the table itself, and are what ``certify`` checks."""
        s = self.check_inside(s)
        return self.groups.of(s).copy(), self.tables.weights(s)

    @property
    def tabled(self) -> NDArray[np.bool_]:
        """For each shape, whether it is sampled from a table."""
        return self.tables.tabled

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """For each shape of ``noise_groups``, whether its noise is drawn: it has no table."""
        if self.outputs == "map":
            return np.full(len(self.noise_groups.representative), not self.tabled.all())
        return ~self.tabled

    # -- release: see ``Releasing``

    def draw(self, requests: Requests, out: check.Cells) -> None:
        """Write the released cell of every request."""
        self.tables.release(requests, out)

    def draw_one(self, key: NDArray[np.uint32], t: int, cell: int) -> int:
        """What ``draw`` gives for user 0; -1 where only ``draw`` can tell."""
        return self.tables.release_one(key, 0, t, cell)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.graph!r}, epsilon={self.epsilon}, "
            f"calibration={self.calibration!r})"
        )
