"""Detection and repair on a 1000 x 1000 grid with blocks of 3 x 3."""

import numpy as np

import pglp_fast as pf


class _City:
    def make(self, cells):
        self.grid = pf.Grid(1000, 1000)
        self.policy = pf.blocks(self.grid, 3)
        rng = np.random.default_rng(0)
        self.domain = pf.Domain(self.grid, rng.choice(self.grid.size, cells, replace=False))
        self.mask, self.other = self.domain.mask(), rng.random(self.grid.size) < 0.5


class Detection(_City):
    """All disconnected nodes and the isolation check, against one NumPy pass over a boolean
    mask; doubling the domain."""

    params = [
        [10_000, 20_000, 40_000, 80_000, 100_000, 160_000, 320_000, 640_000, 1_000_000],
        ["graph", "component"],
    ]
    param_names = ["cells", "calibration"]

    def setup(self, cells, calibration):
        self.make(cells)
        pf.isolated(self.policy, self.domain, calibration=calibration)

    def time_isolated(self, cells, calibration):
        pf.isolated(self.policy, self.domain, calibration=calibration)

    def time_numpy_pass(self, cells, calibration):
        np.count_nonzero(self.mask & self.other)


class Repair(_City):
    """100,000 cells: tens of thousands of isolated nodes (component), a few (graph)."""

    params = [["min-area", "nearest", "arbitrary", "min-error"], ["graph", "component"]]
    param_names = ["strategy", "calibration"]

    def setup(self, strategy, calibration):
        self.make(100_000)
        self.words = np.stack([self.domain.words])
        pf.repair_many(self.policy, self.words, strategy=strategy, calibration=calibration)

    def time_repair(self, strategy, calibration):
        pf.repair_many(self.policy, self.words, strategy=strategy, calibration=calibration)


class ManyDomains:
    """10,000 users with domains of some 25 cells each over one policy."""

    params = [["graph", "component"]]
    param_names = ["calibration"]

    def setup(self, calibration):
        grid = pf.Grid(100, 100)
        self.policy = pf.blocks(grid, 3)
        rng = np.random.default_rng(0)
        corner = rng.integers(0, 94, (10_000, 2))
        offsets = np.stack(np.meshgrid(np.arange(7), np.arange(7)), axis=-1).reshape(-1, 2)
        masks = np.zeros((10_000, grid.size), bool)
        cells = (corner[:, None, 1] + offsets[:, 1]) * 100 + corner[:, None, 0] + offsets[:, 0]
        np.put_along_axis(masks, cells, rng.random(cells.shape) < 0.5, axis=1)
        self.words = np.stack([pf.Domain.from_mask(grid, mask).words for mask in masks])
        pf.repair_many(self.policy, self.words, calibration=calibration)

    def time_repair(self, calibration):
        pf.repair_many(self.policy, self.words, calibration=calibration)
