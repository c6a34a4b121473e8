"""Releasing traces, for a whole city at once or one step at a time.

The paper's algorithm "Location Trace Release Mechanism for PGLP"."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import ArrayLike

from pglp_fast._util import validate as check
from pglp_fast._util.storage import locked, read_arrays, write_arrays
from pglp_fast.adversary.events import Events
from pglp_fast.adversary.evidence import Evidence
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.adversary.priors import make_priors
from pglp_fast.errors import InvalidParameter, InvalidState
from pglp_fast.io import Traces
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.losses import make_loss
from pglp_fast.mechanisms.randomness import make_key
from pglp_fast.mechanisms.registry import find
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.policy.graph_repair import checked_strategy
from pglp_fast.policy.groups import CALIBRATIONS
from pglp_fast.space.locations import require_on_map

from .choices import choices_of
from .earlier_releases import past_of
from .engine import TraceEngine, Users, first_state
from .layout import (
    Layout,
    checked_cycle,
    day_cycle,
    layout_of_array,
    layout_of_events,
    layout_of_traces,
)
from .policies import PolicySet
from .replay import replay_steps
from .results import TraceResult
from .run import Job, observe_job, run_job
from .settings import check_model, checked_delta, make_settings, per_component
from .spending import Limits
from .stream import Stream
from .stream_file import KIND, unpack
from .stream_state import first_stream_state
from .table_cache import TableCache


class TraceReleaser:
    """Private traces under policies, against an adversary who knows how people move.

    Parameters
    ----------
    graph : PolicyGraph or mapping
        The policy G; at each step the constrained graph is made from it anew. Or several over one
        map, by name: which one holds for whom and when is said to ``run`` and ``step``. Unless it
        is said, it is the one named "default", or the first.
    model : MobilityModel
        What the adversary knows about movement.
    epsilon : float
        For each release, unless ``run`` or ``step`` say another.
    mechanism : str or class
        "ppim", "plm" or "planar-laplace", which add noise; "krr", "graph-exponential" or "optimal",
        which draw from tables; "pim" and "lm" are P-PIM and P-LM for a policy that joins every pair
        (``pf.complete``). Or a class of ``pf.Mechanism``.
    calibration : {"component", "graph"}
        Mechanisms by table know "component" only.
    repair : {"min-area", "nearest", "arbitrary", "min-error", "none"}
        Strategy for isolated locations. "none" is unsafe and warned of: they are released as they
        are, ``exposed`` tells at which steps. For comparisons only.
    delta : float
        0: C_t is everything possible. Above: the smallest set of mass 1 - delta.
    likelihood : {"exact", "density"}
        "density" is the density at the released location, faster; it changes the adversary's
        posterior, never the guarantee.
    budget : float or mapping, optional
        Epsilon for each user of a stream (or a ``run``, which is one). What would exceed it is
        refused before any noise is drawn. Several at once: a mapping from windows to budgets, None
        for the total, such as ``{24: 5.0, None: 100.0}``.
    window : int, optional
        The budget holds for any so many consecutive steps (w-event privacy); None: in total.
    rng : int, optional
        None for a fresh key from the operating system for each stream; a seed for reproducible
        research.
    remap : str, array or callable, optional
        A loss ("euclidean", "squared", a matrix or a function, as for ``pf.Optimal``): what is
        drawn is post-processed to the location of least expected loss under the adversary's own
        p_t^-. The guarantee stays, the error shrinks; the posterior is that of an adversary who
        sees the remapped location.
    options : dict, optional
        Of the mechanism; for "optimal": prior, loss, cache, as for ``pf.Optimal``.

    Attributes
    ----------
    engine : TraceEngine
        What all streams of this releaser share.

    Notes
    -----
    Releases are drawn from integer weights, proved for each distinct component before they are
    drawn from; P-PIM, P-LM and planar Laplace draw noise by the geometric sampler in components
    with more locations than ``Mechanism.trace_table``. Which it is depends on the component alone.
    A release at step t of user u is a pure function of (key, u, t, input).
    """

    def __init__(
        self,
        graph: PolicyGraph | Mapping[str, PolicyGraph],
        model: MobilityModel,
        *,
        epsilon: float,
        mechanism: str | type[Mechanism] = "ppim",
        calibration: str = "component",
        repair: str = "min-area",
        delta: float = 0.0,
        likelihood: str = "exact",
        budget: float | Mapping[int | None, float] | None = None,
        window: int | None = None,
        rng: int | None = None,
        remap: Any = None,
        options: dict[str, Any] | None = None,
    ):
        self.policies = PolicySet.of(graph)
        self.graph, self.model, self.locations = self.policies.graph, model, self.policies.locations
        check_model(self.graph, model)
        self.epsilon = check.epsilon(epsilon)
        kind = find(mechanism)
        self.mechanism = kind.name
        self.calibration = check.choice(calibration, "calibration", CALIBRATIONS)
        self.repair = checked_strategy(repair, "repair")
        self.likelihood = check.choice(likelihood, "likelihood", ("exact", "density"))
        self.delta = checked_delta(delta)
        limits = Limits(budget, window)
        self.budget, self.window = budget, window
        make_key(rng)  # a bad seed is refused now
        self.rng = rng
        self.remap = None if remap is None else make_loss(self.locations, remap)
        tables = TableCache(
            per_component(kind, self.policies.graphs, options), self.epsilon, self.remap,
            everyone=self.calibration == "graph", density=self.likelihood == "density",
        )  # fmt: skip
        self.per_component = tables.mechanism
        settings = make_settings(
            self.per_component, calibration=self.calibration, repair=self.repair, delta=self.delta,
            likelihood=self.likelihood, remap=self.remap is not None, anchored=tables.anchored,
        )  # fmt: skip
        self.engine = TraceEngine(self.policies, model, settings, tables, limits)

    def fingerprint(self) -> str:
        """Digest of everything that a saved stream depends on: policy, map, model, settings."""
        return self.engine.fingerprint()

    def step_mechanism(
        self, graph: PolicyGraph, domain: Domain | None = None, epsilon: float | None = None
    ) -> Mechanism:
        """The mechanism that draws a release over the repaired policy of a step.

        It can be certified, plotted, and so on. Of a release that is remapped, it is what is
        remapped.

        Parameters
        ----------
        graph : PolicyGraph
            Such as ``stream.policy(u)``.
        domain : Domain, optional
            Such as ``stream.domain(u)``.
        epsilon : float, optional
            Of the step; that of the releaser unless given.
        """
        own = self.epsilon if epsilon is None else check.epsilon(epsilon)
        mechanism = self.engine.tables.for_epsilon(own)
        return mechanism.bound_to(graph, domain=domain, calibration=self.calibration)

    # -- the two ways to run

    def start(
        self, users: int | ArrayLike = 1, priors: Any = None, *, ledger: Any = None
    ) -> Stream:
        """Users ready for their first step.

        Parameters
        ----------
        users : int or array_like of int
            How many, or their numbers, which key the noise: the same user must keep the same
            number.
        priors : optional
            What the adversary thinks at each user's first observation: None the stationary
            distribution, "point" the first true cell, "move" one move after it (the start is
            known, and is where they were one step ago), an array (N,) for all, or (users, N), dense
            or SciPy sparse.
        ledger : Ledger or path, optional
            What was released about these users before, by their numbers: it counts in budgets, in
            the stream's ledger and its certificate. A path is a file that several processes share:
            every release is written down there before any noise is drawn.
        """
        ids = check.user_numbers(users)
        found = make_priors(self.model, priors, len(ids))
        known = Users(ids, make_key(self.rng), found.rows, found.point)
        state = first_stream_state(
            known, first_state(found, len(self.policies)), self.model.periods,
            self.policies.default, self.epsilon,
        )  # fmt: skip
        past = past_of(ledger, self.policies)
        return Stream(self, state._replace(past=past.known), past.file)

    def run(
        self,
        traces: ArrayLike | Events,
        priors: Any = None,
        *,
        users: ArrayLike | None = None,
        policy: Any = None,
        epsilon: Any = None,
        ledger: Any = None,
        periods: ArrayLike | None = None,
        cycle: ArrayLike | None = None,
        progress: bool = False,
        evidence: bool = False,
    ) -> TraceResult:
        """Release whole traces.

        Parameters
        ----------
        traces : array_like of int, Events, or Traces
            (users, T), -1 for missing; before a user's first cell nothing happens to them. Or
            events, with gaps of any length: the belief moves through every step of silence. All
            rows of one person of ``Traces`` belong together: one belief, one budget.
        priors : optional
            As in ``start``; of events, one for each of ``events.ids``.
        users : array_like of int, optional
            Numbers of the users, 0, 1, ... unless given. Events number their persons themselves.
        policy : str, array_like of str, mapping or Schedule, optional
            Name of the policy: one; one for each user, or row of Traces; one for each cell (users,
            T), or event; a mapping from user numbers; or by a schedule. It must follow from what
            everybody may know, never from where somebody is.
        epsilon : float, array_like of float or mapping, optional
            The same for epsilon.
        ledger : Ledger or path, optional
            As in ``start``.
        periods : array_like of int, optional
            The model's period at each of the T steps, ``t % model.periods`` unless given.
        cycle : array_like of int, optional
            The same for events: step t is in period ``cycle[t % len(cycle)]``. Steps of Traces are
            counted from 1970; their periods are those of the day in UTC unless given.
        progress : bool
            Show a line with the rate and the time left on standard error.
        evidence : bool
            Keep what the releases say about where users were, for ``pf.attack``: some 12 bytes for
            each location that is possible at each step.

        Returns
        -------
        TraceResult
            Arrays (users, T), of Traces (rows, longest); of events, one entry for each in the
            order given.
        """
        layout, when = self._laid_out(traces, users, periods, cycle)
        job = self._asked(layout, priors, when, policy, epsilon)
        past = past_of(ledger, self.policies)
        return run_job(self.engine, job, past, progress=progress, evidence=evidence)

    def _laid_out(
        self, traces: Any, users: Any, periods: Any, cycle: Any
    ) -> tuple[Layout, ArrayLike | None]:
        """(events by user, the period of each step)."""
        require_on_map(traces, self.locations, InvalidParameter)
        if not isinstance(traces, Events | Traces):
            if cycle is not None:
                raise InvalidParameter("cycle= is for events and Traces: of an array give periods=")
            return layout_of_array(traces, self.locations.size, users), periods
        if users is not None or periods is not None:
            raise InvalidParameter(
                "users= and periods= are for arrays: events and Traces number their persons, and "
                "take cycle="
            )
        if isinstance(traces, Events):
            return layout_of_events(traces, self.locations.size), cycle
        if cycle is None:
            cycle = day_cycle(traces.step, self.model.periods)
        return layout_of_traces(traces), cycle

    def observe(
        self,
        released: ArrayLike | Events,
        priors: Any = None,
        *,
        policy: Any = None,
        epsilon: Any = None,
        periods: ArrayLike | None = None,
        cycle: ArrayLike | None = None,
        progress: bool = False,
    ) -> Evidence:
        """What released traces say to an adversary who knows this releaser but not its key.

        Parameters
        ----------
        released : array_like of int, or Events
            (users, T) released cells, -1 for none, as in ``run(...).released``; or events whose
            cells are what was released.
        priors, policy, epsilon, periods, cycle, progress : optional
            As in ``run``; "point" and "move" are not known to an observer: give a sparse matrix.
        """
        if isinstance(priors, str):
            raise InvalidParameter(
                f"priors={priors!r} is where users truly were, which no observer sees: give an "
                "array"
            )
        layout, when = self._laid_out(released, None, periods, cycle)
        job = self._asked(layout, priors, when, policy, epsilon)
        return observe_job(self.engine, job, progress=progress)

    def replay(
        self, evidence: Evidence, users: ArrayLike | None = None
    ) -> Iterator[tuple[Stream, TraceResult]]:
        """The streams of released traces, as any observer works them out again from the releases.

        Parameters
        ----------
        evidence : Evidence
            Of ``run`` or ``observe``, under this releaser.
        users : array_like of int, optional
            Rows of the evidence; all unless given. They are users 0, 1, ... of the stream.

        Yields
        ------
        stream : Stream
            After each step: domains, repaired policies, beliefs and the ledger.
        result : TraceResult
            Counts of the step. Whether a surrogate was released cannot be seen from releases.
        """
        for state, result in replay_steps(self.engine, evidence, users):
            yield Stream(self, state), result

    def _asked(self, layout: Layout, priors: Any, cycle: Any, policy: Any, epsilon: Any) -> Job:
        """What a run is asked for, checked."""
        when = checked_cycle(self.model.periods, cycle, layout.steps)
        asked = layout.asked(when)
        epsilons, periods = self.engine.epsilons, self.model.periods
        choices = choices_of(self.policies, epsilons, policy, epsilon, asked, periods)
        found = make_priors(self.model, priors, len(layout.ids))
        return Job(layout, found, when, choices, make_key(self.rng))

    def resume(
        self, path: str | os.PathLike[str], *, again: bool = False, ledger: Any = None
    ) -> Stream:
        """A saved stream, to go on as if it had never stopped.

        Parameters
        ----------
        path : str or path
            Where it was saved.
        again : bool
            A file is resumed once: two streams that go on from it would release different inputs
            with the same noise. After a crash, ``again=True`` resumes it once more; feed it the
            very inputs that it was fed since, which gives the very same releases.
        ledger : path, optional
            The ledger file that the stream was started with, if it was. After a crash, what is fed
            once more is counted once more.
        """
        past = past_of(ledger, self.policies)
        if past.known is not None:
            raise InvalidParameter("a saved stream knows its past: ledger= is for a ledger file")
        name, path = os.fspath(path), os.path.realpath(path)  # links lead to the same noise
        with locked(path):  # two processes must not both go on from it
            arrays, facts = read_arrays(path, KIND)
            if facts.get("fingerprint") != self.fingerprint():
                raise InvalidState(
                    f"{name} was saved under another policy, map, model or setting: make the "
                    "releaser it was saved with"
                )
            state = unpack(arrays, facts, self.policies, self.model.periods)
            if bool(facts.get("booked")) != (past.file is not None):
                told = "was" if facts.get("booked") else "was not"
                raise InvalidState(
                    f"{name} is of a stream that {told} started with a ledger file: resume it the "
                    "same way, ledger="
                )
            generation = facts.get("generation")
            if not again and generation != 0:
                raise InvalidState(
                    f"{name} was resumed before: two streams that go on from it would share their "
                    "noise. Save the stream that goes on, and resume that; or, to feed the very "
                    "same inputs once more, use again=True"
                )
            if generation == 0:
                write_arrays(path, KIND, arrays, facts | {"generation": 1})
        return Stream(self, state, past.file)

    def __repr__(self) -> str:
        how = f"mechanism={self.mechanism!r}, calibration={self.calibration!r}"
        more = f", {len(self.policies)} policies" if len(self.policies) > 1 else ""
        return f"TraceReleaser({self.graph!r}{more}, epsilon={self.epsilon}, {how})"
