"""Building and drawing from the mechanisms that are given by tables; compare with
release.TableRelease."""

import numpy as np

import pglp_fast as pf

KINDS = {
    "ppim": lambda G: pf.PPIM(G, epsilon=1.0),
    "planar laplace": lambda G: pf.PlanarLaplace(G, epsilon=1.0),
    "krr": lambda G: pf.KRR(G, epsilon=1.0),
    "graph exponential": lambda G: pf.GraphExponential(G, epsilon=1.0),
    "optimal": lambda G: pf.Optimal(G, epsilon=1.0),
    "remapped": lambda G: pf.Remapped(pf.PPIM(G, epsilon=1.0)),
}


class Mechanisms:
    """A million cells in blocks of 5 x 5: until the first release, and a million more."""

    params = [list(KINDS)]
    param_names = ["mechanism"]

    def setup(self, kind):
        self.graph = pf.blocks(pf.Grid(1000, 1000), 5)
        self.cells = np.random.default_rng(0).integers(0, 1_000_000, 1_000_000).astype(np.int32)
        self.mechanism = KINDS[kind](self.graph)
        self.mechanism.release([0])

    def time_build(self, kind):
        KINDS[kind](self.graph).release([0])

    def time_release(self, kind):
        self.mechanism.release(self.cells)


class Solve:
    """The linear program of one block, k x k, and of as many scattered cells."""

    params = [[3, 5, 8], ["block", "scattered"]]
    param_names = ["k", "shape"]

    def setup(self, k, shape):
        cells = np.random.default_rng(1).choice(400, k * k, replace=False)
        self.graph = (
            pf.blocks(pf.Grid(k, k), k) if shape == "block" else pf.complete(pf.Grid(20, 20), cells)
        )

    def time_solve(self, k, shape):
        pf.Optimal(self.graph, epsilon=1.0).release([0])
