"""The mechanism with the least expected loss that a policy allows: a linear program for each component shape."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..domain import Domain
from ..errors import InvalidParameter, PGLPError, TooLarge
from ..policy import PolicyGraph
from .tabled import Tabled

MAX_LOCATIONS = 64  # in a component; beyond, the linear program takes minutes
LOSSES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "euclidean": lambda d: np.asarray(np.hypot(d[..., 0], d[..., 1])),
    "squared": lambda d: np.asarray((d**2).sum(axis=-1)),
}


class Optimal(Tabled):
    """Minimises the expected loss subject to Pr(z|s) <= e^eps Pr(z|s') on every edge.

    min sum_s pi(s) sum_z x(s, z) loss(s, z)  with  x >= 0, rows summing to 1, and x(s, z) <= e^eps x(s', z). In a clique the last
    is said with one number m(z) for all its members, m(z) <= x(s, z) <= e^eps m(z): O(k^2) constraints, not O(k^3).

    The solver's answer is not a proof. As much of the component's mean row is mixed in as the bound needs; the certificate then
    checks the integer weights, as for every mechanism.

    Parameters
    ----------
    graph, epsilon, domain : as for ``PPIM``
    prior : how likely each location is, (N,); even unless told. Public knowledge: it shapes the noise, never the guarantee.
    loss : "euclidean" (km), "squared" (km^2), or an (N, N) matrix of loss[s, z]

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
        loss: str | ArrayLike = "euclidean",
    ):
        super().__init__(graph, epsilon=epsilon, domain=domain)
        n = self.locations.size
        self.prior = _prior(prior, n)
        self.loss: str | NDArray[np.float64] = _loss(loss, n)
        largest = int(self.groups.sizes.max(initial=0))
        if largest > MAX_LOCATIONS:
            raise TooLarge(
                f"a component has {largest} locations, the linear program takes {MAX_LOCATIONS}: use PPIM, GraphExponential "
                "or KRR, or a policy of smaller blocks"
            )
        if self.prior is not None or not isinstance(self.loss, str):  # translates are no longer alike: one shape a component
            count = np.arange(len(self.groups.starts) - 1, dtype=np.int32)
            self.groups = replace(self.groups, shape_of=count, representative=count)
            self._lay_out_tables()

    def _probabilities(self, shape: int) -> NDArray[np.float64]:
        members, lead, pairs = self._places(shape)
        k = len(members)
        if k == 1:
            return np.ones((1, 1))
        weight = np.full(k, 1.0 / k) if self.prior is None else self.prior[members]
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(k, 1.0 / k)
        if isinstance(self.loss, str):
            at = self.locations.lattice[members] * np.asarray(self.locations.scale)
            loss = LOSSES[self.loss](at[:, None] - at[None])
        else:
            loss = self.loss[np.ix_(members, members)]
        return _feasible(_solve(weight[:, None] * loss, lead, pairs, self.epsilon), lead, pairs, self.epsilon)


def _prior(prior: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    if prior is None:
        return None
    array = np.asarray(prior, dtype=np.float64)
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any() or not array.sum() > 0:
        raise InvalidParameter(f"prior must be {n} numbers, one for each location, none negative and not all zero")
    return array


def _loss(loss: Any, n: int) -> str | NDArray[np.float64]:
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise InvalidParameter(f"loss must be one of {', '.join(map(repr, LOSSES))} or a matrix, got {loss!r}")
        return loss
    array = np.asarray(loss, dtype=np.float64)
    if array.shape != (n, n) or not np.isfinite(array).all():
        raise InvalidParameter(f"loss must be 'euclidean', 'squared' or a finite ({n}, {n}) matrix, got shape {array.shape}")
    return array


def _solve(cost: NDArray[np.float64], lead: NDArray[np.int64], pairs: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """The linear program's optimum x (k, k)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, hstack, kron

    k = len(cost)
    bound = float(np.exp(min(epsilon, 30.0)))
    heads = np.unique(lead[np.bincount(lead, minlength=k)[lead] > 1])  # cliques of two or more
    of = {int(h): c for c, h in enumerate(heads)}
    members = np.array([s for s in range(k) if int(lead[s]) in of], dtype=np.int64)
    clique = np.array([of[int(lead[s])] for s in members], dtype=np.int64)
    every = np.arange(k)
    # variables: x[s, z] at s * k + z, then m[c, z] at k * k + c * k + z
    x = (members[:, None] * k + every).ravel()
    m = (k * k + clique[:, None] * k + every).ravel()
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    a, b = (i[:, None] * k + every).ravel(), (j[:, None] * k + every).ravel()
    plus, minus = np.concatenate([m, x, a]), np.concatenate([x, m, b])
    factor = np.concatenate([np.ones(len(m)), np.full(len(x), bound), np.full(len(a), bound)])
    count, width = len(plus), k * k + len(heads) * k
    row = np.arange(count)
    values = np.concatenate([np.ones(count), -factor])
    A = coo_array((values, (np.concatenate([row, row]), np.concatenate([plus, minus]))), shape=(count, width)).tocsr()
    rows = kron(eye_array(k), np.ones((1, k)), format="csr")
    E = hstack([rows, coo_array((k, width - k * k))], format="csr")
    c = np.concatenate([cost.ravel() / max(float(np.abs(cost).max()), 1e-300), np.zeros(width - k * k)])
    found = linprog(c, A_ub=A, b_ub=np.zeros(count), A_eq=E, b_eq=np.ones(k), bounds=(0, None), method="highs")
    if found.status != 0:
        raise PGLPError(f"the solver did not find the best mechanism for a component of {k} locations: {found.message}")
    return np.asarray(found.x[: k * k].reshape(k, k))


def _feasible(P: NDArray[np.float64], lead: NDArray[np.int64], pairs: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Rows made distributions, and as much of their mean mixed in as every ratio needs to be within e^eps."""
    P = np.clip(P, 0.0, None)
    P /= P.sum(axis=1, keepdims=True)
    mean = P.mean(axis=0) + 1e-12 / len(P)  # positive everywhere: never a zero opposite a positive
    mean /= mean.sum()
    same = lead[:, None] == lead[None]
    i, j = np.nonzero(same & ~np.eye(len(P), dtype=bool))
    i, j = np.concatenate([i, pairs[:, 0], pairs[:, 1]]), np.concatenate([j, pairs[:, 1], pairs[:, 0]])
    bound = np.exp(min(epsilon, 700.0)) * (1 - 1e-13)
    # (1 - eta)(P_i - e^eps P_j) <= eta (e^eps - 1) mean, for every edge and output
    excess = np.max((P[i] - bound * P[j]) / ((bound - 1) * mean), initial=0.0)
    eta = excess / (1 + excess)
    return np.asarray((1 - eta) * P + eta * mean)
