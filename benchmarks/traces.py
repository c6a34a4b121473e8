"""The adversary's forward step and whole traces."""

import numpy as np

import pglp_fast as pf

from .workloads import check_ins, city, many_users, places, walks, whole_map


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


class Sizes:
    """Exact P-PIM by number of users, steps and locations."""

    params = [[1000, 10_000], [10, 100], [300, 1000]]
    param_names = ["users", "steps", "side"]
    timeout = 300

    def setup(self, users, steps, side):
        grid, model = city(side)
        self.releaser = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0)
        self.traces = walks(grid, users, steps)
        self.time_run(users, steps, side)

    def time_run(self, users, steps, side):
        self.releaser.run(self.traces, "point")

    def peakmem_run(self, users, steps, side):
        self.releaser.run(self.traces, "point")


class Largest:
    """Memory of 100,000 users x 100 steps on a million cells."""

    timeout = 600

    def setup(self):
        self.releaser, self.traces = many_users()

    def peakmem_run(self):
        self.releaser.run(self.traces, "point")


class Domains:
    """A step by |C|: 8 neighbours as a policy, the whole map possible."""

    params = [[10, 20, 40, 60, 100], ["exact", "density"]]
    param_names = ["side", "likelihood"]

    def setup(self, side, likelihood):
        self.releaser, self.prior = whole_map(side, likelihood)
        self.traces = walks(self.releaser.locations, 4, 10)
        self.time_forty_steps(side, likelihood)

    def time_forty_steps(self, side, likelihood):
        self.releaser.run(self.traces, self.prior)


class CheckIns:
    """30 users, 3,632 events over 1,041 steps on 7,004 places."""

    timeout = 300

    def setup(self):
        _, model, graph = places()
        self.events = check_ins(model)
        self.releaser = pf.TraceReleaser(graph, model, epsilon=1.0, rng=0)
        self.released = self.releaser.run(self.events, "point", evidence=True)

    def time_release(self):
        self.releaser.run(self.events, "point", evidence=True)

    def time_attack(self):
        pf.attack(self.released)


class OneCall:
    """One user's step, and one release."""

    def setup(self):
        grid, model = city(300)
        self.mechanism = pf.PPIM(pf.blocks(grid, 3), epsilon=1.0)
        self.stream = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0).start(1, "point")
        self.time_step(), self.time_release()

    def time_release(self):
        self.mechanism.release(5)

    def time_step(self):
        self.stream.step([45_000])


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
