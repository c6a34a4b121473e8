"""The adversary's forward step and whole traces."""

import numpy as np

import pglp_fast as pf


def city(side):
    """8 neighbours and staying, all alike."""
    grid = pf.Grid(side, side)
    return grid, pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")


def walks(grid, users, steps, seed=0):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, grid.rows, users), rng.integers(0, grid.cols, users)
    out = np.empty((users, steps), np.int32)
    for t in range(steps):
        out[:, t] = row * grid.cols + col
        row = np.clip(row + rng.integers(-1, 2, users), 0, grid.rows - 1)
        col = np.clip(col + rng.integers(-1, 2, users), 0, grid.cols - 1)
    return out


class Forward:
    """p M on a million cells: SciPy's dense product, ours, and ours for 25 cells."""

    def setup(self):
        self.grid, self.model = city(1000)
        self.matrix = self.model.matrix()
        self.p = np.full(self.grid.size, 1 / self.grid.size)
        rows, cols = np.meshgrid(np.arange(500, 505), np.arange(500, 505), indexing="ij")
        self.cells, self.few, self.space = (
            (rows * 1000 + cols).ravel(),
            np.full(25, 0.04),
            self.model.workspace(),
        )
        self.time_dense(), self.time_sparse()

    def time_scipy(self):
        self.p @ self.matrix

    def time_dense(self):
        self.model.forward(self.p)

    def time_sparse(self):
        self.model.forward_sparse(self.cells, self.few, workspace=self.space)


class Traces:
    """1,000 users x 100 steps on 300 x 300, blocks of 3 x 3."""

    params = [["component"], ["density", "exact"], ["ppim", "plm"]]
    param_names = ["calibration", "likelihood", "mechanism"]

    def setup(self, calibration, likelihood, mechanism):
        grid, model = city(300)
        self.releaser = pf.TraceReleaser(
            pf.blocks(grid, 3),
            model,
            epsilon=1.0,
            calibration=calibration,
            likelihood=likelihood,
            mechanism=mechanism,
        )
        self.prior, self.traces = model.stationary(), walks(grid, 1000, 100)
        self.releaser.run(self.traces[:40, :3], self.prior)

    def time_run(self, calibration, likelihood, mechanism):
        self.releaser.run(self.traces, self.prior)

    def track_bytes_per_user(self, calibration, likelihood, mechanism):
        stream = self.releaser.start(1000, "point")
        for t in range(20):
            stream.step(self.traces[:, t])
        return stream.memory() / 1000


class Mixed:
    """The same users under one policy, and under two with two epsilons, by user and by step."""

    params = [["one", "by user", "by step"]]
    param_names = ["choice"]

    def setup(self, choice):
        grid, model = city(100)
        self.prior, self.traces = model.stationary(), walks(grid, 1000, 100)
        graphs = {"a": pf.blocks(grid, 3), "b": pf.blocks(grid, 4)}
        self.releaser = pf.TraceReleaser(graphs, model, epsilon=1.0)
        shape = {"one": (), "by user": (1000,), "by step": self.traces.shape}[choice]
        names = np.array(["a", "b"])[np.random.default_rng(0).integers(0, 2, shape)]
        self.policy = "a" if choice == "one" else names
        self.epsilon = np.where(np.asarray(self.policy) == "a", 1.0, 2.0)
        self.time_run(choice)

    def time_run(self, choice):
        self.releaser.run(self.traces, self.prior, policy=self.policy, epsilon=self.epsilon)


class WholeMap:
    """One user of the graph calibration whose domain is all of 300 x 300, against p @ M."""

    def setup(self):
        self.grid, self.model = city(300)
        self.matrix, self.p = self.model.matrix(), np.full(self.grid.size, 1 / self.grid.size)
        releaser = pf.TraceReleaser(
            pf.blocks(self.grid, 3),
            self.model,
            epsilon=1.0,
            calibration="graph",
            likelihood="density",
        )
        self.stream = releaser.start(1, self.p)
        self.time_step()

    def time_step(self):
        self.stream.step([45_000])

    def time_scipy(self):
        self.p @ self.matrix
