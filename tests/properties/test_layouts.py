"""Arrays that are read-only, strided, of the other byte order or small integers give the same
answers, and compile no kernel again."""

import importlib
import pkgutil

import numpy as np
import pandas as pd
import pytest

import pglp_fast as pf
from pglp_fast import _kernels
from pglp_fast._kernels.base.linking import Kernel
from pglp_fast._kernels.trace import run

N = 12
GRID = pf.Grid(3, 4, cell_km=0.5, origin=(35.0, 139.0))
POINTS = pf.Points(np.random.default_rng(0).uniform(0, 3, (N, 2)))
POLICY = pf.blocks(GRID, 2)
DOMAIN = pf.Domain(GRID, [0, 1, 2, 5, 7])
MECHANISM = pf.PPIM(POLICY, epsilon=1.0)
NOISE = pf.PPIM(pf.complete(POINTS), epsilon=1.0, sampler="geometric")
MODEL = pf.MobilityModel.fit(GRID, [np.arange(N)], smoothing="neighbours8")
HULL = pf.sensitivity_hull(POLICY)

CELLS = np.array([0, 5, 2, 7])
LABELS = np.arange(N) % 3
EDGES = np.array([[0, 1], [4, 2], [5, 9]])
PRIOR = np.arange(N) + 1.0
XY = np.array([[0.1, 0.2], [1.5, 0.3], [0.9, 0.9]])
TRACES = np.array([[0, 1, 2, -1], [3, 3, 4, 5]])

CALLS = {
    "xy": (GRID.xy, CELLS),
    "latlon": (GRID.latlon, CELLS),
    "locate": (lambda v: GRID.locate(v, 139.001), np.array([35.0, 35.005])),
    "nearest": (GRID.nearest, XY),
    "Points": (lambda v: pf.Points(v).lattice, XY),
    "Points.nearest": (POINTS.nearest, XY),
    "categories": (lambda v: pf.categories(GRID, v, 2).edges(), LABELS),
    "complete": (lambda v: pf.complete(GRID, v).edges(), CELLS),
    "from_edges": (lambda v: pf.PolicyGraph.from_edges(GRID, v).edges(), EDGES),
    "has_edges": (POLICY.has_edges, EDGES),
    "distance": (lambda v: POLICY.distance(v, 1), CELLS),
    "Domain": (lambda v: pf.Domain(GRID, v).cells(), CELLS),
    "from_mask": (lambda v: pf.Domain.from_mask(GRID, v).cells(), LABELS == 1),
    "contains": (DOMAIN.contains, CELLS),
    "isolated_many": (
        lambda v: pf.isolated_many(POLICY, v).cells,
        np.repeat(DOMAIN.words[None], 2, axis=0),
    ),
    "repair_many": (
        lambda v: pf.repair_many(POLICY, v).added,
        np.repeat(DOMAIN.words[None], 2, axis=0),
    ),
    "gauge": (HULL.gauge, XY),
    "hull.contains": (HULL.contains, EDGES),
    "release": (lambda v: MECHANISM.release(v, rng=1), CELLS),
    "release users": (lambda v: MECHANISM.release(CELLS, users=v, rng=1), np.array([9, 3, 4, 1])),
    "release t": (lambda v: MECHANISM.release(CELLS, t=v, rng=1), np.array([9, 3, 4, 1])),
    "release noise": (lambda v: NOISE.release(v, rng=1), CELLS),
    "utility": (lambda v: pf.utility(MECHANISM, prior=v).e_eu, PRIOR),
    "utility labels": (lambda v: pf.utility(MECHANISM, region=v, categories=v).e_r, LABELS),
    "privacy": (lambda v: pf.privacy(MECHANISM, prior=v).error, PRIOR),
    "estimate": (lambda v: pf.estimate_utility(GRID, v, TRACES).e_eu, TRACES),
    "remapped": (lambda v: pf.Remapped(MECHANISM, v).to, PRIOR),
    "fit": (lambda v: pf.MobilityModel.fit(GRID, v).matrix().toarray(), TRACES),
    "model": (lambda v: pf.MobilityModel(GRID, v).matrix().toarray(), np.full((N, N), 1 / N)),
    "forward": (MODEL.forward, PRIOR),
    "forward many": (MODEL.forward, np.stack([PRIOR, PRIOR])),
    "forward_sparse": (lambda v: MODEL.forward_sparse(CELLS, v)[1], np.array([0.1, 0.2, 0.3, 0.4])),
}


def layouts(array):
    """The same numbers, kept in other ways."""
    frozen = array.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "strided", np.repeat(array, 2, axis=0)[::2]
    yield "reversed", array[::-1].copy()[::-1]
    yield "columns", np.asfortranarray(array)
    yield "list", array.tolist() if array.dtype != np.uint64 else array
    yield (
        "unaligned",
        np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape),
    )
    if array.dtype.kind != "b":
        yield "other byte order", array.astype(array.dtype.newbyteorder())
    if array.dtype == np.int64:
        yield "small", array.astype(np.int8)
    if array.ndim == 1:
        yield "pandas", pd.Series(array)


def signatures():
    """How many versions of kernels have been compiled."""
    count = 0
    for module in pkgutil.walk_packages(_kernels.__path__, f"{_kernels.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Kernel):
                count += len(value.signatures) + len(value.entry.signatures)
    return count


@pytest.mark.parametrize("name", CALLS)
def test_no_layout_compiles_a_kernel_again(name):
    call, array = CALLS[name]
    wanted = np.asarray(call(array))
    before = signatures()
    for layout, other in layouts(array):
        assert np.array_equal(np.asarray(call(other)), wanted), layout
        assert signatures() == before, f"{layout} arrays compile kernels again"


def test_every_way_of_a_trace_takes_the_same_kernel():
    """Dense with and without gaps, events, streams: the largest kernel is compiled once. Would
    catch a strided array, or an integer of another size, that one of the ways hands on."""
    T = pf.TraceReleaser(POLICY, MODEL, epsilon=1.0, rng=1)
    stream = T.start(users=2)
    for call in (
        lambda: T.run(TRACES[:, :3]),
        lambda: T.run(TRACES),
        lambda: T.run(pf.Events([4, 4, 2], [0, 3, 5], [0, 1, 2])),
        lambda: stream.step([0, 1]),
        lambda: stream.step([-1, 2]),
    ):
        call()
        assert len(run.run_users.entry.signatures) == 1
