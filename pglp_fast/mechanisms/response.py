"""Mechanisms that look at the policy graph alone: randomised response and the graph exponential mechanism."""

import numpy as np
from numpy.typing import NDArray

from .. import _validate as check
from ..components import Component
from ..domain import Domain
from ..policy import PolicyGraph
from .recipe import Recipe
from .tabled import Tabled


class RandomisedResponse(Recipe):
    """The truth with probability e^eps / (e^eps + k - 1), any other place evenly."""

    name = "KRR"

    def __init__(self, epsilon: float):
        self.epsilon = check.epsilon(epsilon)

    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        k = len(component.sites)
        other = -np.logaddexp(self.epsilon, np.log(max(k - 1, 1e-300)))
        out = np.full((k, k), other)
        np.fill_diagonal(out, min(other + self.epsilon, 0.0))
        return out


class HopDecay(Recipe):
    """ln Pr(z|s) = -eps d_G(s, z) / 2, up to the normaliser of each s."""

    name = "GraphExponential"

    def __init__(self, epsilon: float):
        self.epsilon = check.epsilon(epsilon)

    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        logs = -0.5 * self.epsilon * component.hops()
        return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


class KRR(Tabled):
    """k-ary randomised response: the truth with probability e^eps / (e^eps + k - 1), any other location of the component evenly.

    The ratio of any two rows is e^eps or 1, whatever the edges: made for cliques. On other components it protects pairs
    that the policy does not ask for, and pays for it.
    """

    def __init__(self, graph: PolicyGraph, *, epsilon: float, domain: Domain | None = None):
        super().__init__(graph, RandomisedResponse(epsilon), epsilon=epsilon, domain=domain)


class GraphExponential(Tabled):
    """Pr(z|s) proportional to exp(-eps d_G(s, z) / 2), d_G in hops.

    One hop changes d_G by at most one: e^(eps/2) in the weight and as much in its normaliser.
    """

    def __init__(self, graph: PolicyGraph, *, epsilon: float, domain: Domain | None = None):
        super().__init__(graph, HopDecay(epsilon), epsilon=epsilon, domain=domain)
