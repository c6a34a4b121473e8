"""The mechanism with the least expected loss that a policy allows."""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pglp_fast._kernels.noise.alias_rows import TOTAL, read_rows
from pglp_fast._util.storage import read_arrays, write_arrays
from pglp_fast.errors import InvalidParameter, PGLPError
from pglp_fast.policy.components import Component
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.graph import PolicyGraph

from .contract import Floats, Mechanism
from .graph_exponential import GraphExponential
from .krr import KRR
from .linear_program import (
    MAX_GAP,
    RESOLUTION,
    Solution,
    committed,
    constraints,
    feasible,
    lower_bound,
    solve,
    truthful_bound,
    two_locations,
)
from .losses import make_loss, make_prior

# in a component: a 12 x 12 block takes half a second, an irregular component of as many a minute
MAX_LOCATIONS = 144
_KIND = "solution"


class Optimal(Mechanism):
    """Minimises the expected loss subject to Pr(z|s) <= e^eps Pr(z|s') on every edge, or
    e^(w eps) on one of weight w.

    A linear program for each component shape: see ``linear_program``. The solver's answer is not a
    proof: it is repaired until every ratio holds (see ``feasible``), and the certificate then
    checks the integer weights, as for every mechanism.

    Parameters
    ----------
    graph, epsilon, domain : as for ``PPIM``
    **options : prior, loss and cache, as in ``configure``

    Notes
    -----
    At small epsilon the best answer is to say nothing at all: always the same central location.
    ``gap`` bounds how far what is released is above the least expected loss: below 0.1 %, or a
    ``RuntimeWarning`` says so. That may happen above epsilon = 20, where a prior is as skewed as
    e^-epsilon, or where the solver does not end within its limit of iterations, which is the same
    on every machine.
    """

    name, label = "optimal", "Optimal"
    largest = MAX_LOCATIONS
    slow = True
    weighted = True
    instead = "use PPIM, GraphExponential or KRR, or a policy of smaller blocks"

    def configure(
        self,
        *,
        prior: Any = None,
        loss: Any = "euclidean",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        """Take the options.

        Parameters
        ----------
        prior : how likely each location is, (N,); even unless told. Public knowledge: it shapes
            the noise, never the guarantee.
        loss : "euclidean" (km), "squared" (km^2), an (N, N) matrix of loss[s, z], or a function
            loss(s, z) of two integer arrays of locations that broadcast
        cache : a folder to keep solutions in, for the next process; none unless told
        """
        self.prior = make_prior(self.locations, prior)
        self.loss = make_loss(self.locations, loss)
        self.translates = self.prior is None and self.loss.translates
        self._solved: dict[str, Solution] = {}
        if cache is not None and not isinstance(cache, str | os.PathLike):
            raise InvalidParameter(f"cache must be a folder, got {type(cache).__name__}")
        self.folder = None if cache is None else Path(cache)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                raise InvalidParameter(
                    f"cache must be a folder that can be written to, got {self.folder}: {error}"
                ) from None

    def log_probabilities(self, component: Component) -> Floats:
        k = len(component.sites)
        self.check_size(k)
        if k == 1:
            return np.zeros((1, 1))
        cost = self._cost(component)
        if k == 2:
            candidates = two_locations(self.epsilon * component.least_weight())
        else:
            solved = feasible(self._solution(cost, component).P, component, self.epsilon)
            limit = committed(cost, component, self.epsilon)
            kinds = KRR, GraphExponential
            closed = [kind.for_components(self.locations, epsilon=self.epsilon) for kind in kinds]
            with np.errstate(divide="ignore"):
                candidates = [np.log(solved), np.log(limit)]
            candidates += [m.log_probabilities(component) for m in closed]
        loss, best = min(
            (float((np.exp(logs) * cost).sum()), n) for n, logs in enumerate(candidates)
        )
        if abs(loss) > self._least(component):
            self._warn(self._above(loss, cost, component), component)
        return candidates[best]

    def _cost(self, component: Component) -> Floats:
        """pi(s) loss(s, z)."""
        even = np.full(len(component.sites), 1.0 / len(component.sites))
        weight = even if self.prior is None else self.prior[component.known_members()]
        weight = weight / weight.sum() if weight.sum() > 0 else even
        return np.asarray(weight[:, None] * self.loss.matrix(component))

    @property
    def gap(self) -> float:
        """How far what is released may be above the least expected loss, as a share: 0.001 is
        0.1 %.

        The largest over all components, of (loss - bound) / loss: the loss of the integer weights
        that are drawn from, against a lower bound on the loss of every mechanism under the policy
        (weak duality, with its rounding taken off). Losses below a billionth of the component's
        largest are not told apart. It is computed at most once for each shape; tables are made
        where they are missing."""
        self.tables.ensure()
        shapes = np.flatnonzero(self.groups.sizes > 1).tolist()
        for shape in shapes:
            if shape not in self._gaps:
                self._gaps[shape] = self._gap(shape)
        return max((self._gaps[shape] for shape in shapes), default=0.0)

    def __repr__(self) -> str:
        known = f", gap={max(self._gaps.values()):.1e})" if self._gaps else ")"
        return super().__repr__()[:-1] + known

    def _gap(self, shape: int) -> float:
        component = self.groups.component(shape)
        cost = self._cost(component)
        drawn = np.empty(cost.shape, np.uint64)
        read_rows(self.tables.arrays, shape, drawn)
        above = self._above(float((cost * (drawn / float(TOTAL))).sum()), cost, component)
        self._warn(above, component)
        return above

    def _warn(self, above: float, component: Component) -> None:
        """Say that a loss may be further above the least than is promised, see ``gap``."""
        if above > MAX_GAP:
            warnings.warn(
                f"the expected loss of a component of {len(component.sites)} locations may be "
                f"{above:.2%} above the least that epsilon = {self.epsilon:g} allows, while "
                "privacy holds: the solver gave up, as it may above epsilon = 20 where a skewed "
                "prior asks for more digits than it has, or a solution that was read from "
                "``cache`` is damaged",
                RuntimeWarning,
                stacklevel=3,
            )

    def _above(self, loss: float, cost: Floats, component: Component) -> float:
        """The share by which a loss may be above the least, see ``gap``."""
        bounds = [cost.min(axis=1).sum(), truthful_bound(cost, component, self.epsilon)]
        if len(cost) == 2:
            pair = two_locations(self.epsilon * component.least_weight())
            bounds.append(min((np.exp(V) * cost).sum() for V in pair))
        else:
            prices = self._solution(cost, component).prices
            bounds.append(lower_bound(cost, component, self.epsilon, prices))
        excess = max(0.0, loss - float(max(bounds)))
        return excess / max(abs(loss), self._least(component)) if excess else 0.0

    def _least(self, component: Component) -> float:
        """Losses below this are not told apart: nobody feels them, and the solver does not see
        them."""
        return RESOLUTION * float(np.abs(self.loss.matrix(component)).max())

    def bind(
        self, graph: PolicyGraph, domain: Domain | None, calibration: str, sampler: str
    ) -> None:
        super().bind(graph, domain, calibration, sampler)
        self._gaps: dict[int, float] = {}

    def _solution(self, cost: Floats, component: Component) -> Solution:
        """Solved, or remembered, or read from the folder of solutions.

        What is read is made feasible again, and any prices give a true bound: a file can cost
        utility only."""
        digest = hashlib.sha256(repr((self.epsilon, len(cost))).encode())
        arrays = [cost, component.sites, component.heads, component.pairs]
        if component.weights is not None:
            arrays.append(component.weights)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        name = digest.hexdigest()[:32]
        if name not in self._solved:
            self._solved[name] = self._kept_or_solved(name, cost, component)
        return self._solved[name]

    def _kept_or_solved(self, name: str, cost: Floats, component: Component) -> Solution:
        if self.folder is None:
            return solve(cost, component, self.epsilon)
        path = self.folder / f"{name}.npz"
        kept = _read(path, len(cost), len(constraints(component).plus))
        if kept is None:
            kept = solve(cost, component, self.epsilon)
            try:
                write_arrays(path, _KIND, kept._asdict(), {})
            except (OSError, PGLPError) as error:
                warnings.warn(
                    f"a solution could not be kept in {self.folder}: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return kept

    def describe(self) -> str:
        prior = "even" if self.prior is None else hashlib.sha256(self.prior.tobytes()).hexdigest()
        return f"prior={prior} loss={self.loss.describe()}"


def _read(path: Path, k: int, n_constraints: int) -> Solution | None:
    """A solution that was kept; None where there is none, or what is there is none."""
    try:
        arrays = read_arrays(path, _KIND)[0]
        kept = Solution(arrays["P"], arrays["prices"])
    except (OSError, PGLPError, KeyError):
        return None
    sound = (
        all(a.dtype == np.float64 and np.isfinite(a).all() and (a >= 0).all() for a in kept)
        and kept.P.shape == (k, k)
        and kept.prices.shape == (n_constraints,)
        and (kept.P.sum(axis=1) > 0.5).all()
    )
    return kept if sound else None
