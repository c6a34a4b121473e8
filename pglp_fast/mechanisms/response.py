"""Mechanisms that look at the policy graph alone: randomised response and the graph exponential mechanism."""

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidPolicy
from .tabled import Tabled


class KRR(Tabled):
    """k-ary randomised response on cliques: the truth with probability e^eps / (e^eps + k - 1), any other location evenly.

    The ratio across every edge is exactly e^eps or 1. Every component must be a clique.
    """

    def _probabilities(self, shape: int) -> NDArray[np.float64]:
        members, _, _ = self._places(shape)
        k = len(members)
        if (self.graph.degrees()[members] != k - 1).any():
            raise InvalidPolicy(
                f"the component of location {members[0]} is not a clique: randomised response needs every pair joined; "
                "use GraphExponential, Optimal or PPIM"
            )
        other = 1.0 / (np.exp(min(self.epsilon, 700.0)) + k - 1)
        P = np.full((k, k), other)
        np.fill_diagonal(P, 1.0 - (k - 1) * other)
        return P


class GraphExponential(Tabled):
    """Pr(z|s) proportional to exp(-eps d_G(s, z) / 2), d_G in hops.

    One hop changes d_G by at most one: e^(eps/2) in the weight and as much in its normaliser.
    """

    def _probabilities(self, shape: int) -> NDArray[np.float64]:
        members, _, _ = self._places(shape)
        k = len(members)
        hops = self.graph.distance(np.repeat(members, k), np.tile(members, k)).reshape(k, k)
        weight = np.exp(-0.5 * self.epsilon * hops)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))
