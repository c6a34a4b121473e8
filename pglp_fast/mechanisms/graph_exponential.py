"""The exponential mechanism over distances in the policy graph (McSherry and Talwar, FOCS 2007)."""

import numpy as np

from pglp_fast.policy.components import Component

from .contract import Floats, Mechanism


class GraphExponential(Mechanism):
    """Pr(z|s) proportional to exp(-eps d_G(s, z) / 2), d_G in hops; with weights the least sum of
    weights along a path.

    An edge of weight w changes d_G by at most w: e^(w eps/2) in the weight of an output and as much
    in the normaliser."""

    name, label = "graph-exponential", "graph exponential"
    weighted = True

    def log_probabilities(self, component: Component) -> Floats:
        logs = -0.5 * self.epsilon * component.distances()
        return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
