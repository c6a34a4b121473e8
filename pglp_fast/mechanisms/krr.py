"""KRR: k-ary randomised response (Kairouz, Bonawitz and Ramage, ICML 2016)."""

import numpy as np

from pglp_fast.policy.components import Component

from .contract import Floats, Mechanism


class KRR(Mechanism):
    """k-ary randomised response: the truth with probability e^eps / (e^eps + k - 1), any other
    location of the component evenly.

    The ratio of any two rows is e^eps or 1, whatever the edges: made for cliques. On other
    components it protects pairs that the policy does not ask for, and pays for it. With weights, it
    is that of the component's smallest weight: e^(w eps)."""

    name, label = "krr", "KRR"
    weighted = True

    def log_probabilities(self, component: Component) -> Floats:
        k = len(component.sites)
        epsilon = self.epsilon * component.least_weight()
        other = -np.logaddexp(epsilon, np.log(max(k - 1, 1e-300)))
        out = np.full((k, k), other)
        np.fill_diagonal(out, min(other + epsilon, 0.0))
        return out
