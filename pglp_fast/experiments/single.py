"""Single releases under the paper's policies: what the experiments on mechanisms and on policies
share."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pglp_fast as pf
from pglp_fast.mechanisms.registry import find

from .claims import LEVEL
from .data import Town
from .rows import Row
from .setup import Setup

EPSILONS = (0.3, 0.5, 1.0, 2.0)
METRICS = ("e_eu", "e_r", "e_poi")
POLICIES = ("G_k9", "G_k16", "G_k25", "G_poi")

# label: (name in the registry, whether its answers are remapped)
MECHANISMS = {
    find(name).label + " remapped" * remapped: (name, remapped)
    for name, remapped in (
        ("plm", False), ("ppim", False), ("ppim", True), ("optimal", False), ("krr", False),
        ("planar-laplace", False),
    )
}  # fmt: skip


def make_mechanism(
    mechanism: str,
    graph: pf.PolicyGraph,
    epsilon: float,
    domain: pf.Domain,
    prior: NDArray[np.float64],
) -> pf.Mechanism:
    name, remapped = MECHANISMS[mechanism]
    kind = find(name)
    options: dict[str, Any] = {"prior": prior} if "prior" in kind.options() else {}
    m = kind(graph, epsilon=epsilon, domain=domain, **options)
    return pf.Remapped(m, prior=prior) if remapped else m


def paper_policies(grid: pf.Grid, labels: NDArray[np.int32]) -> dict[str, pf.PolicyGraph]:
    """G_k9, G_k16, G_k25 and G_poi: cells of one label in the same 6 x 6 block."""
    graphs = {f"G_k{k * k}": pf.blocks(grid, k) for k in (3, 4, 5)}
    return {**graphs, "G_poi": pf.categories(grid, labels, 6)}


USERS = "users anywhere"


def measure_all(
    name: str, town: Town, mechanisms: Iterable[str], setup: Setup, who: str = ""
) -> list[Row]:
    """Every mechanism under every policy, for the experiment of this name."""
    rows: list[Row] = []
    for policy, graph in paper_policies(town.grid, town.restaurants).items():
        for mechanism in mechanisms:
            setup.say(f"{name}: {policy}, {mechanism}{f', {who}' if who else ''}")
            rows += measure(town, policy, graph, mechanism, setup, who)
    return rows


def measure(
    town: Town,
    policy: str,
    graph: pf.PolicyGraph,
    mechanism: str,
    setup: Setup,
    who: str = "",
) -> list[Row]:
    """E_eu, E_r, E_poi and the adversary's error at each epsilon: exact, and estimated from
    repeated releases.

    The people are those who visit restaurants, or with ``who=USERS`` users wherever they are, all
    of them in each repetition. The releases are the
    independent units; that who is released is the same in each repetition makes the intervals a
    little wider than need be, never too narrow."""
    counts = town.visits if town.users is None or not who else town.users
    people = np.repeat(np.arange(town.grid.size, dtype=np.int32), counts)
    prior = counts.astype(np.float64)
    # components without visitors take no part: leaving them out changes nothing but the time it
    # takes
    busy = np.bincount(graph.components, weights=prior)[graph.components] > 0
    domain = pf.Domain.from_mask(town.grid, busy)
    rows = []
    for epsilon in EPSILONS:
        m = make_mechanism(mechanism, graph, epsilon, domain, prior)
        exact = pf.utility(m, prior=prior, categories=town.restaurants, quantiles=())
        true = np.tile(people, setup.repetitions)
        named = (policy, mechanism, epsilon, *([who] if who else []))
        released = m.release(true, rng=setup.seed_of("single", *named))
        found = pf.estimate_utility(
            town.grid, true, released, categories=town.restaurants, quantiles=(), level=LEVEL
        )
        left = pf.privacy(m, prior=prior).error
        series = (town.name, policy, mechanism, who)
        for metric in METRICS:
            value = getattr(found, metric)
            interval = found.intervals[metric]
            rows.append(
                Row(
                    *series,
                    metric,
                    "epsilon",
                    epsilon,
                    value,
                    *interval,
                    found.count,
                    getattr(exact, metric),
                )
            )
        rows.append(Row(*series, "adversary", "epsilon", epsilon, left, left, left, 0, left))
    return rows


def what_is_measured(town: Town) -> str:
    """For the findings."""
    return (
        f"True locations are the {town.visits.sum():,} visits to restaurants, all of them released "
        "in each repetition: under G_poi a location that is no restaurant is released as it is, "
        "which would make G_poi look better than it is. `mean` is over all releases, with a 95 % "
        "interval; `exact` is the expected value, computed from the probabilities. The adversary, "
        "Optimal and remapping know how visits are spread over the map. Optimal and remapping may "
        "answer any cell of the component, so their small errors owe much to that knowledge."
    )
