"""The mechanism with the least expected loss that a policy allows: a linear program for each component shape."""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from ..components import Component
from ..domain import Domain
from ..errors import InvalidParameter, InvalidState, PGLPError
from ..files import read_arrays, write_arrays
from ..locations import Locations
from ..losses import make_loss, make_prior
from ..policy import PolicyGraph, require_policy
from .recipe import Recipe
from .response import HopDecay, RandomisedResponse
from .symmetry import orbits, symmetries
from .tabled import Tabled

MAX_LOCATIONS = 144  # in a component: a 12 x 12 block takes half a second, an irregular component of as many a minute
_KIND = "solution"
_RESOLVED = 20.0  # ln of the largest factor between variables that the solver is asked to tell from none
_SCALED = 6.0  # epsilon from which variables have units of their own
_DUST = 1e-9  # an output that nobody is released as with more than this probability is the solver's rounding
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


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
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InvalidParameter(
                    f"cache must be a folder that can be written to, got {os.fspath(cache or '')}: {error}"
                ) from None

    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        k = len(component.sites)
        self.check_size(k)
        if k == 1:
            return np.zeros((1, 1))
        weight = np.full(k, 1.0 / k) if self.prior is None else self.prior[component.known_members()]
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(k, 1.0 / k)
        cost = weight[:, None] * self.loss.matrix(component)
        with np.errstate(divide="ignore"):
            solved = np.log(feasible(self._solution(cost, component), component, self.epsilon))
        # where epsilon is beyond what the solver can resolve, a closed form may be the better one
        closed = [kind(self.epsilon).log_matrix(component) for kind in (RandomisedResponse, HopDecay)]
        return min([*closed, solved], key=lambda logs: float((np.exp(logs) * cost).sum()))

    def _solution(self, cost: NDArray[np.float64], component: Component) -> NDArray[np.float64]:
        """Solved, or read from the folder of solutions. What is read is made feasible again: a file can cost utility only."""
        if self.folder is None:
            return solve(cost, component, self.epsilon)
        digest = hashlib.sha256(repr((self.epsilon, len(cost))).encode())
        for array in (cost, component.sites, component.lead, component.pairs):
            digest.update(np.ascontiguousarray(array).tobytes())
        path = self.folder / f"{digest.hexdigest()[:32]}.npz"
        kept = _read(path, len(cost))
        if kept is None:
            kept = solve(cost, component, self.epsilon)
            try:
                write_arrays(path, _KIND, {"P": kept}, {})
            except OSError as error:
                warnings.warn(f"a solution could not be kept in {self.folder}: {error}", RuntimeWarning, stacklevel=2)
        return kept

    def describe(self) -> str:
        prior = "even" if self.prior is None else hashlib.sha256(self.prior.tobytes()).hexdigest()
        return f"prior={prior} loss={self.loss.describe()}"


class Optimal(Tabled):
    """Minimises the expected loss subject to Pr(z|s) <= e^eps Pr(z|s') on every edge.

    min sum_s pi(s) sum_z x(s, z) loss(s, z)  with  x >= 0, rows summing to 1, and x(s, z) <= e^eps x(s', z). In a clique the last
    is said with one number m(z) for all its members, m(z) <= x(s, z) <= e^eps m(z): O(k^2) constraints, not O(k^3). Where the
    component looks the same turned or mirrored, an optimum does too, and only one variable of each orbit is solved for.

    The solver's answer is not a proof: it is repaired until every ratio holds (see ``feasible``), and the certificate then checks
    the integer weights, as for every mechanism.

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


def _read(path: Path, k: int) -> NDArray[np.float64] | None:
    """A solution that was kept; None where there is none, or what is there is none."""
    try:
        P = read_arrays(path, _KIND)[0]["P"]
    except (OSError, InvalidState, KeyError, ValueError, TypeError, AttributeError, EOFError):
        return None
    sound = (
        P.dtype == np.float64 and P.shape == (k, k) and np.isfinite(P).all() and (P >= 0).all() and (P.sum(axis=1) > 0.5).all()
    )
    return P if sound else None


def solve(cost: NDArray[np.float64], component: Component, epsilon: float) -> NDArray[np.float64]:
    """The linear program's optimum x (k, k) for cost[s, z]; one variable for each orbit under the component's symmetries.

    At large epsilon x spans many orders of magnitude: about e^(-eps d_G(s, z)). There it is solved for in those units, as far as
    float64 resolves them; what binds beyond that is left to ``feasible``. Nor is epsilon taken above what can be resolved: an
    answer for a smaller one keeps the bound of a larger one.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    k = len(cost)
    lead, pairs = component.lead, component.pairs
    moves = symmetries(component, cost)
    every = np.arange(k)
    epsilon = min(epsilon, _RESOLVED)
    hops = np.minimum(component.hops(), 0 if epsilon < _SCALED else max(1, _RESOLVED // epsilon))
    # variables before shrinking: x[s, z] at s * k + z, then m[c, z] at k * k + c * k + z for the clique that c leads, each with
    # the logarithm of its unit, in epsilon: its distance from z, the largest of its members' for a clique
    orbit, n_variables = orbits(moves, lead)
    farthest = np.zeros((k, k))
    np.maximum.at(farthest, lead, hops)
    unit = np.zeros(n_variables)
    unit[orbit] = -np.concatenate([hops.ravel(), farthest[lead].ravel()])
    members = np.flatnonzero(np.bincount(lead, minlength=k)[lead] > 1)  # in cliques of two or more
    x = orbit[(members[:, None] * k + every).ravel()]
    m = orbit[(k * k + lead[members][:, None] * k + every).ravel()]
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    a, b = orbit[(i[:, None] * k + every).ravel()], orbit[(j[:, None] * k + every).ravel()]
    # m <= x, x <= e^eps m, and across further edges x <= e^eps x': each "plus <= e^(eps step) minus"
    low, high = np.stack([m, x], axis=1), np.concatenate([np.stack([x, m], axis=1), np.stack([a, b], axis=1)])
    low, high = np.unique(low, axis=0), np.unique(high, axis=0)
    plus, minus = np.concatenate([low, high]).T
    step = np.concatenate([np.zeros(len(low)), np.ones(len(high))]) + unit[minus] - unit[plus]
    binding = epsilon * step < _RESOLVED
    plus, minus, factor = plus[binding], minus[binding], np.exp(epsilon * step[binding])
    size = np.maximum(factor, 1.0)
    row = np.arange(len(plus))
    A = coo_array(
        (np.concatenate([1 / size, -factor / size]), (np.concatenate([row, row]), np.concatenate([plus, minus]))),
        shape=(len(row), n_variables),
    ).tocsr()
    own = orbit[: k * k].reshape(k, k)
    rows = np.unique(np.sort(own, axis=1), axis=0)  # rows of one orbit say the same
    scale = np.exp(epsilon * unit)
    E = coo_array(
        (scale[rows.ravel()], (np.repeat(np.arange(len(rows)), k), rows.ravel())), shape=(len(rows), n_variables)
    ).tocsr()
    c = scale * np.bincount(own.ravel(), cost.ravel(), minlength=n_variables).astype(np.float64)
    c = c / max(float(np.abs(c).max()), 1e-300)
    bounds = np.stack([np.zeros(n_variables), 1 / scale], axis=1)
    program = dict(A_ub=A, b_ub=np.zeros(len(row)), A_eq=E, b_eq=np.ones(len(rows)), bounds=bounds)
    for how in ("highs", "highs-ipm"):
        found = linprog(c, method=how, options=_TOLERANCES, **program)
        if found.status == 0:
            return np.asarray((found.x * scale)[own])
    raise PGLPError(f"the solver did not find the best mechanism for a component of {k} locations: {found.message}")


def feasible(P: NDArray[np.float64], component: Component, epsilon: float) -> NDArray[np.float64]:
    """The solver's answer made to keep the bound, changed as little as can be.

    Outputs that nobody has but for the solver's rounding are dropped. Then every entry is raised to what its neighbours ask for,
    max over s' of P(s', z) e^(-eps d_G(s, s')), which settles all ratios and adds no more than the solver was off. Rows are made
    distributions again, and what that disturbs is mended with a share of the mean row, of the same order.
    """
    P = np.clip(P, 0.0, None)
    P[:, P.max(axis=0) < _DUST] = 0.0
    reach = np.exp(-min(epsilon, 700.0) * component.hops())
    P = np.stack([(reach * P[:, z]).max(axis=1) for z in range(len(P))], axis=1)
    P /= P.sum(axis=1, keepdims=True)
    mean = P.mean(axis=0)
    i, j = component.edges()
    gain = np.expm1(min(epsilon, 700.0)) * (1 - 1e-9)  # e^eps - 1, with a little room for rounding
    # (1 - eta)(P_i - e^eps P_j) <= eta (e^eps - 1) mean, for every edge and output
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.nanmax(np.where(mean > 0, (P[i] - P[j] - gain * P[j]) / (gain * mean), 0.0), initial=0.0)
    eta = excess / (1 + excess)
    return np.asarray((1 - eta) * P + eta * mean)
