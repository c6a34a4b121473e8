"""The mechanism with the least expected loss that a policy allows: a linear program for each component shape."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from ..components import Component
from ..domain import Domain
from ..errors import InvalidState, PGLPError
from ..files import read_arrays, write_arrays
from ..locations import Locations
from ..losses import make_loss, make_prior
from ..policy import PolicyGraph, require_policy
from .recipe import Recipe
from .symmetry import orbits, symmetries
from .tabled import Tabled

MAX_LOCATIONS = 144  # in a component: a 12 x 12 block takes half a second, an irregular component of as many a minute
_KIND = "solution"


class LeastLoss(Recipe):
    """min sum_s pi(s) sum_z x(s, z) loss(s, z) with x >= 0, rows summing to 1, x(s, z) <= e^eps x(s', z) on every edge."""

    name = "Optimal"
    largest = MAX_LOCATIONS
    instead = "use PPIM, GraphExponential or KRR, or a policy of smaller blocks"

    def __init__(self, locations: Locations, epsilon: float, *, prior: Any, loss: Any, cache: str | os.PathLike[str] | None):
        self.epsilon = check.epsilon(epsilon)
        self.prior, self.loss = make_prior(locations, prior), make_loss(locations, loss)
        self.translates = self.prior is None and self.loss.translates
        self.folder = None if cache is None else Path(cache)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        k = len(component.sites)
        self.check_size(k)
        if k == 1:
            return np.zeros((1, 1))
        weight = np.full(k, 1.0 / k) if self.prior is None else self.prior[component.known_members()]
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(k, 1.0 / k)
        cost = weight[:, None] * self.loss.matrix(component)
        P = feasible(self._solution(cost, component), component, self.epsilon)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(P))

    def _solution(self, cost: NDArray[np.float64], component: Component) -> NDArray[np.float64]:
        """Solved, or read from the folder of solutions. What is read is made feasible again: a file can cost utility only."""
        if self.folder is None:
            return solve(cost, component, self.epsilon)
        digest = hashlib.sha256(repr((self.epsilon, len(cost))).encode())
        for array in (cost, component.sites, component.lead, component.pairs):
            digest.update(np.ascontiguousarray(array).tobytes())
        path = self.folder / f"{digest.hexdigest()[:32]}.npz"
        try:
            return read_arrays(path, _KIND)[0]["P"].reshape(cost.shape)
        except (FileNotFoundError, InvalidState):
            P = solve(cost, component, self.epsilon)
            write_arrays(path, _KIND, {"P": P}, {})
            return P

    def describe(self) -> str:
        prior = "even" if self.prior is None else hashlib.sha256(self.prior.tobytes()).hexdigest()
        return f"prior={prior} loss={self.loss.describe()}"


class Optimal(Tabled):
    """Minimises the expected loss subject to Pr(z|s) <= e^eps Pr(z|s') on every edge.

    min sum_s pi(s) sum_z x(s, z) loss(s, z)  with  x >= 0, rows summing to 1, and x(s, z) <= e^eps x(s', z). In a clique the last
    is said with one number m(z) for all its members, m(z) <= x(s, z) <= e^eps m(z): O(k^2) constraints, not O(k^3). Where the
    component looks the same turned or mirrored, an optimum does too, and only one variable of each orbit is solved for.

    The solver's answer is not a proof. As much of the component's mean row is mixed in as the bound needs; the certificate then
    checks the integer weights, as for every mechanism.

    Parameters
    ----------
    graph, epsilon, domain : as for ``PPIM``
    prior : how likely each location is, (N,); even unless told. Public knowledge: it shapes the noise, never the guarantee.
    loss : "euclidean" (km), "squared" (km^2), an (N, N) matrix of loss[s, z], or a function loss(s, z) of two integer arrays of
        locations that broadcast
    cache : a folder to keep solutions in, for the next process; none unless told

    Notes
    -----
    At small epsilon the best answer is to say nothing at all: always the same central location.
    """

    def __init__(
        self,
        graph: PolicyGraph,
        *,
        epsilon: float,
        domain: Domain | None = None,
        prior: ArrayLike | None = None,
        loss: Any = "euclidean",
        cache: str | os.PathLike[str] | None = None,
    ):
        require_policy(graph)
        recipe = LeastLoss(graph.locations, epsilon, prior=prior, loss=loss, cache=cache)
        super().__init__(graph, recipe, epsilon=epsilon, domain=domain)


def solve(cost: NDArray[np.float64], component: Component, epsilon: float) -> NDArray[np.float64]:
    """The linear program's optimum x (k, k) for cost[s, z]; one variable for each orbit under the component's symmetries."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    k = len(cost)
    lead, pairs = component.lead, component.pairs
    bound = float(np.exp(min(epsilon, 30.0)))
    moves = symmetries(component, cost)
    every = np.arange(k)
    # variables before shrinking: x[s, z] at s * k + z, then m[c, z] at k * k + c * k + z for the clique that c leads
    orbit, n_variables = orbits(moves, lead)
    members = np.flatnonzero(np.bincount(lead, minlength=k)[lead] > 1)  # in cliques of two or more
    x = orbit[(members[:, None] * k + every).ravel()]
    m = orbit[(k * k + lead[members][:, None] * k + every).ravel()]
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    a, b = orbit[(i[:, None] * k + every).ravel()], orbit[(j[:, None] * k + every).ravel()]
    # m <= x, x <= e^eps m, and across further edges x <= e^eps x': each "plus - factor minus <= 0"
    low, high = np.stack([m, x], axis=1), np.concatenate([np.stack([x, m], axis=1), np.stack([a, b], axis=1)])
    low, high = np.unique(low, axis=0), np.unique(high, axis=0)
    plus, minus = np.concatenate([low, high]).T
    factor = np.concatenate([np.ones(len(low)), np.full(len(high), bound)])
    row = np.arange(len(plus))
    A = coo_array(
        (np.concatenate([np.ones(len(row)), -factor]), (np.concatenate([row, row]), np.concatenate([plus, minus]))),
        shape=(len(row), n_variables),
    ).tocsr()
    own = orbit[: k * k].reshape(k, k)
    rows = np.unique(np.sort(own, axis=1), axis=0)  # rows of one orbit say the same
    E = coo_array(
        (np.ones(rows.size), (np.repeat(np.arange(len(rows)), k), rows.ravel())), shape=(len(rows), n_variables)
    ).tocsr()
    c = np.bincount(own.ravel(), cost.ravel() / max(float(np.abs(cost).max()), 1e-300), minlength=n_variables)
    found = linprog(c, A_ub=A, b_ub=np.zeros(len(row)), A_eq=E, b_eq=np.ones(len(rows)), bounds=(0, None), method="highs")
    if found.status != 0:
        raise PGLPError(f"the solver did not find the best mechanism for a component of {k} locations: {found.message}")
    return np.asarray(found.x[own])


def feasible(P: NDArray[np.float64], component: Component, epsilon: float) -> NDArray[np.float64]:
    """Rows made distributions, and as much of their mean mixed in as every ratio needs to be within e^eps."""
    P = np.clip(P, 0.0, None)
    P /= P.sum(axis=1, keepdims=True)
    mean = P.mean(axis=0) + 1e-12 / len(P)  # positive everywhere: never a zero opposite a positive
    mean /= mean.sum()
    i, j = component.edges()
    bound = np.exp(min(epsilon, 700.0)) * (1 - 1e-13)
    # (1 - eta)(P_i - e^eps P_j) <= eta (e^eps - 1) mean, for every edge and output
    excess = np.max((P[i] - bound * P[j]) / ((bound - 1) * mean), initial=0.0)
    eta = excess / (1 + excess)
    return np.asarray((1 - eta) * P + eta * mean)
