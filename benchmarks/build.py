"""What has to be made before the first release, and how much memory it takes."""

import numpy as np

import pglp_fast as pf


class Policies:
    """A policy and a mechanism on a million cells: O(N), whatever the number of edges."""

    params = [["blocks5", "categories", "complete100k", "neighbours8"]]
    param_names = ["policy"]

    def setup(self, policy):
        self.grid = pf.Grid(1000, 1000)
        self.labels = np.random.default_rng(0).integers(-1, 4, self.grid.size)
        pf.certify(pf.PPIM(self._graph(policy), epsilon=1.0, sampler="geometric"))

    def _graph(self, policy):
        if policy == "blocks5":
            return pf.blocks(self.grid, 5)
        if policy == "categories":
            return pf.categories(self.grid, self.labels, 6)
        if policy == "complete100k":
            return pf.complete(self.grid, np.arange(100_000))
        return pf.neighbours8(self.grid)

    def time_policy(self, policy):
        self._graph(policy)

    def time_policy_and_mechanism(self, policy):
        pf.PPIM(self._graph(policy), epsilon=1.0).geometry.polygons

    def peakmem_policy_and_mechanism(self, policy):
        pf.PPIM(self._graph(policy), epsilon=1.0).geometry.polygons


class Certificates:
    """Proof on every distinct shape."""

    params = [["blocks5", "neighbours8"]]
    param_names = ["policy"]

    def setup(self, policy):
        grid = pf.Grid(1000, 1000)
        self.mechanism = pf.PPIM(
            pf.blocks(grid, 5) if policy == "blocks5" else pf.neighbours8(grid), epsilon=1.0
        )
        pf.certify(self.mechanism)

    def time_certify(self, policy):
        pf.certify(self.mechanism)


class ExactMatrix:
    """Closed-form Pr(z|s) of a k x k block, all pairs."""

    params = [[3, 5, 10, 20]]
    param_names = ["k"]

    def setup(self, k):
        self.mechanism = pf.PPIM(pf.complete(pf.Grid(k, k)), epsilon=1.0)
        self.mechanism.matrix(0)

    def time_matrix(self, k):
        self.mechanism.matrix(0)
