"""The exponential mechanism over hops of the policy graph (McSherry and Talwar, FOCS 2007)."""

import numpy as np

from pglp_fast.policy.components import Component

from .contract import Floats, Mechanism


class GraphExponential(Mechanism):
    """Pr(z|s) proportional to exp(-eps d_G(s, z) / 2), d_G in hops.

    One hop changes d_G by at most one: e^(eps/2) in the weight and as much in its normaliser."""

    name, label = "graph-exponential", "graph exponential"

    def log_probabilities(self, component: Component) -> Floats:
        logs = -0.5 * self.epsilon * component.hops()
        return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
