"""A stream that saves itself after every step and is killed: the file is always whole, and going on
from it gives what would have come."""

import os
import sys

import numpy as np
import pytest

import pglp_fast as pf
from cases import large
from faults import forked, stopped

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and signals of POSIX"),
    large,
]
KILLS = int(os.environ.get("PGLP_KILLS", 12))
STEPS = 40


def test_killed_at_any_moment(tmp_path):
    grid = pf.Grid(6, 6)
    model = pf.MobilityModel.fit(grid, np.zeros((1, 1), np.int64), unseen="neighbours8")
    T = pf.TraceReleaser(pf.blocks(grid, 3), model, epsilon=1.0, budget=1e3, rng=5)
    rng = np.random.default_rng(2)
    traces = rng.integers(0, 36, (20, STEPS))
    undisturbed, ref = T.start(20), []
    for cells in traces.T:
        ref.append(undisturbed.step(cells).released)
    path = tmp_path / "stream"
    T.start(20).save(path)

    def work():
        stream = T.resume(path, again=True)
        while stream.t < STEPS:
            stream.step(traces[:, stream.t])
            stream.save(path)

    for _ in range(KILLS):
        stopped(forked(work), rng.uniform(0, 0.2))
        stream = T.resume(path, again=True)
        if stream.t < STEPS:
            at = stream.t
            assert stream.step(traces[:, at]).released.tolist() == ref[at].tolist()
            assert stream.ledger.epsilon(0) == at + 1
        else:
            T.start(20).save(path)
    T.resume(path, again=True).save(path)  # a save sweeps up what killed ones left
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == []
