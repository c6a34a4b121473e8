"""Utility of a city of 1000 x 1000 cells: exact, and estimated from samples."""

import numpy as np

import pglp_fast as pf


class ExactUtility:
    """Blocks of 5 x 5 (one shape, 25 million pairs), and 300,000 scattered cells of them (38,000
    shapes)."""

    params = [["full", "scattered"], ["distance", "distance, regions and categories"]]
    param_names = ["domain", "metrics"]
    timeout = 300

    def setup(self, domain, metrics):
        grid = pf.Grid(1000, 1000)
        rng = np.random.default_rng(0)
        C = (
            pf.Domain(grid, rng.choice(grid.size, 300_000, replace=False))
            if domain == "scattered"
            else None
        )
        self.mechanism = pf.PPIM(pf.blocks(grid, 5), epsilon=1.0, domain=C)
        everything = metrics != "distance"
        self.options = (
            dict(region=7, categories=rng.integers(-1, 5, grid.size)) if everything else {}
        )
        pf.utility(self.mechanism, **self.options)

    def time_utility(self, domain, metrics):
        pf.utility(self.mechanism, **self.options)


class EstimatedUtility:
    """10 million pairs, as independent or as 100,000 users of 100 steps each."""

    params = [["independent", "rows"]]
    param_names = ["clusters"]
    timeout = 300

    def setup(self, clusters):
        self.grid = pf.Grid(1000, 1000)
        mechanism = pf.PPIM(pf.blocks(self.grid, 5), epsilon=1.0)
        rng = np.random.default_rng(0)
        self.true = rng.integers(0, self.grid.size, (100_000, 100)).astype(np.int32)
        self.released = mechanism.release(self.true.reshape(-1)).reshape(self.true.shape)
        self.options = dict(
            categories=rng.integers(-1, 5, self.grid.size),
            clusters=None if clusters == "independent" else "rows",
        )
        pf.estimate_utility(self.grid, self.true[:10], self.released[:10], **self.options)

    def time_estimate(self, clusters):
        pf.estimate_utility(self.grid, self.true, self.released, **self.options)
