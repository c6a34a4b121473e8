"""Releases a second, on one and two threads, for both samplers."""

import numpy as np

import pglp_fast as pf


def _cells(candidates, n):
    return np.random.default_rng(0).choice(candidates, n).astype(np.int32)


class TableRelease:
    """10 million P-PIM releases, 1000 x 1000 grid, blocks of 5 x 5; compare with
    baseline.NumpyLaplace."""

    params = [[1, 2], ["unnumbered", "shuffled"]]
    param_names = ["threads", "users"]

    def setup(self, threads, users):
        grid = pf.Grid(1000, 1000)
        self.mechanism = pf.PPIM(pf.blocks(grid, 5), epsilon=1.0)
        self.cells = _cells(grid.size, 10_000_000)
        self.users = (
            None if users == "unnumbered" else np.random.default_rng(1).permutation(self.cells.size)
        )
        self.mechanism.release(
            self.cells[:10], users=None if self.users is None else self.users[:10]
        )
        pf.set_num_threads(threads)

    def time_release(self, threads, users):
        self.mechanism.release(self.cells, users=self.users)


class GeometricRelease:
    """10 million releases from one large component: a full square, scattered cells (a k-d tree),
    8-neighbours."""

    params = [["square", "scattered", "neighbours8"]]
    param_names = ["component"]
    timeout = 300

    def setup(self, component):
        if component == "neighbours8":
            graph = pf.neighbours8(pf.Grid(1000, 1000))
        else:
            grid = pf.Grid(100, 100) if component == "square" else pf.Grid(1000, 1000)
            graph = pf.complete(
                grid, np.random.default_rng(1).choice(grid.size, 10_000, replace=False)
            )
        self.mechanism = pf.PPIM(graph, epsilon=1.0, sampler="geometric")
        self.cells = _cells(np.flatnonzero(graph.degrees()), 10_000_000)
        self.mechanism.release(self.cells[:10])
        pf.set_num_threads(1)

    def time_release(self, component):
        self.mechanism.release(self.cells)
